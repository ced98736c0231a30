"""Labels of the public pool: what is refused, what the fingerprint covers, and how a part is drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, FedMD, Silo
from cosilo.data.instances import fingerprint
from cosilo.data.pool_labels import as_pool_labels
from cosilo.data.stratified import stratified
from cosilo.errors import ConfigError, CosiloError, DataError, RunError

X, Y = np.arange(40.0).reshape(20, 2), np.array(list("ab" * 10))
POOL, LABELS = np.arange(12.0).reshape(6, 2), list("xyxyxz")


def silo(name="a", **options) -> Silo:
    return Silo(name, X, Y, DecisionTreeClassifier(), **options)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:4], "6 instances but 4 labels; wants one each"),
        ([LABELS] * 6, r"labels of shape \(6, 6\); wants one class per instance"),
        ([*LABELS[:5], None], "1 of 6 labels are missing, the first is that of instance 5"),
        ([1.0, 2.0, np.nan, 1.0, np.nan, 2.0], "2 of 6 labels are missing, the first is that of instance 2"),
        ([" ", *LABELS[1:]], "1 of 6 labels are missing, the first is that of instance 0"),
        ("x", r"labels of shape \(\)"),
    ],
)
def test_bad_labels_are_refused_in_one_line(labels, words):
    for make, owner in (
        (lambda: silo(pool=POOL, pool_labels=labels), "silo 'a', pool: "),
        (lambda: Federation([silo()], POOL, pool_labels=labels), "the federation's pool: "),
    ):
        with pytest.raises(DataError, match=words) as error:
            make()
        assert str(error.value).startswith(owner)
        assert "\n" not in str(error.value)


def test_an_empty_pool_has_no_labels_to_learn_from():
    with pytest.raises(DataError, match="silo 'a', pool: is empty; wants instances"):
        silo(pool=POOL[:0], pool_labels=[])


def test_labels_without_a_pool_are_a_mistake():
    with pytest.raises(ConfigError, match="silo 'a': got pool_labels but no pool"):
        silo(pool_labels=LABELS)
    with pytest.raises(ConfigError, match="the federation got pool_labels but no pool"):
        Federation([silo()], pool_labels=LABELS)


def test_numbers_are_class_names():
    assert as_pool_labels([3.0, 4.0], POOL[:2], "pool").tolist() == ["3", "4"]


def test_the_fingerprint_covers_labels_if_there_are_any():
    known = fingerprint(POOL)
    assert known == "bfc337c26dc0436a"  # of a pool without labels: as it always was
    labelled = [silo(pool=POOL, pool_labels=labels) for labels in (LABELS, LABELS[::-1], ["x"] * 6)]
    assert len({known, *(one.pool_fingerprint for one in labelled)}) == 4
    assert silo(pool=POOL).pool_fingerprint == known
    assert silo(pool=POOL, pool_labels=np.array(LABELS, object)).pool_fingerprint == (
        labelled[0].pool_fingerprint
    )
    # A pool of texts is not one with fewer texts and the others as labels.
    texts = np.array(["a", "b"], object)
    assert fingerprint(texts[:1], texts[1:]) != fingerprint(texts)


def test_the_federation_gives_pool_and_labels_to_silos_without():
    own = silo("own", pool=POOL, pool_labels=LABELS)
    federation = Federation([silo(), own], POOL, CoFED(), pool_labels=LABELS)
    assert [one.pool_labels.tolist() for one in federation.silos] == [LABELS, LABELS]
    assert {one.pool_fingerprint for one in federation.silos} == {federation.pool_fingerprint}
    assert federation.check() == []
    assert silo().pool_labels is None


def test_labels_that_every_silo_brings_are_the_federations():
    silos = [silo("a", pool=POOL, pool_labels=LABELS), silo("b", pool=POOL, pool_labels=LABELS)]
    federation = Federation(silos, method=CoFED())
    assert federation.pool_labels.tolist() == LABELS
    assert federation.pool_fingerprint == silos[0].pool_fingerprint


def test_the_same_instances_with_other_labels_are_another_pool(tmp_path):
    other = silo("odd", pool=POOL, pool_labels=LABELS[::-1])
    federation = Federation([silo(), other], POOL, CoFED(), pool_labels=LABELS)
    (line,) = federation.check()
    assert line.startswith(f"silo 'odd': its pool has fingerprint {other.pool_fingerprint}, the federation's")
    with pytest.raises(RunError, match=r"silo 'odd': its pool has fingerprint .* the same labels"):
        federation.run(tmp_path / "run")


def test_a_run_goes_on_with_the_same_labels_only(tmp_path):
    Federation([silo("a"), silo("b")], POOL, CoFED(), pool_labels=LABELS).run(tmp_path / "run")
    with pytest.raises(RunError, match="was begun with pool = "):
        Federation([silo("a"), silo("b")], POOL, CoFED(), pool_labels=LABELS[::-1]).run(tmp_path / "run")


def test_a_method_that_needs_labels_says_what_to_set():
    wanted = "fedmd needs a pool with labels; set labelled = true in [pool], in Python pool_labels=…"
    for make in (
        lambda: Federation([silo()], POOL, FedMD()),
        lambda: Federation([silo(pool=POOL)], method=FedMD()),
    ):
        with pytest.raises(CosiloError) as error:
            make()
        assert str(error.value) == wanted
    with pytest.raises(ConfigError, match="fedmd needs a pool; give one"):
        Federation([silo()], method=FedMD())


def test_who_asks_for_labels_that_are_not_there_is_told():
    with pytest.raises(DataError, match="silo 'a': its pool has no labels"):
        silo(pool=POOL).labelled_pool()
    with pytest.raises(DataError, match="silo 'a': has no pool"):
        silo().labelled_pool()


# ---------------------------------------------------------------------- a part of it


@given(st.lists(st.integers(0, 5), min_size=1, max_size=200), st.data())
def test_a_part_has_every_class_in_proportion(labels, data):
    labels = np.array(labels)
    size = data.draw(st.integers(1, len(labels) + 5))
    seed = data.draw(st.integers(0, 2**32 - 1))
    index = stratified(labels, size, seed)
    assert len(index) == min(size, len(labels)) == len(set(index.tolist()))
    assert (np.diff(index) > 0).all()
    assert index.min() >= 0
    assert index.max() < len(labels)
    assert (stratified(labels, size, seed) == index).all()
    for code in np.unique(labels):
        share = len(index) * np.mean(labels == code)
        assert abs(np.sum(labels[index] == code) - share) < 1


def test_another_seed_draws_another_part():
    labels = np.array(["a", "b"] * 100)
    parts = {tuple(stratified(labels, 20, seed)) for seed in range(50)}
    assert len(parts) == 50
    drawn = np.bincount(np.concatenate([stratified(labels, 20, seed) for seed in range(500)]), minlength=200)
    assert drawn.min() > 20  # 50 times on average: no instance is left out


def test_what_is_left_over_goes_to_the_largest_remainders():
    # 10 of 30: shares 5, 3⅓, 1⅔; one place is left over, and c has the largest remainder.
    labels = np.array(["a"] * 15 + ["b"] * 10 + ["c"] * 5)
    names, counts = np.unique(labels[stratified(labels, 10, 0)], return_counts=True)
    assert dict(zip(names, counts, strict=True)) == {"a": 5, "b": 3, "c": 2}


def test_a_part_as_large_as_the_pool_is_the_pool():
    assert stratified(np.array(["a", "b", "a"]), 3, 7).tolist() == [0, 1, 2]
