import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cosilo.data import Split, balanced, by_value, dirichlet, iid, shards
from cosilo.errors import DataError

SEEDS = st.integers(0, 2**32)
LABELS = st.lists(st.integers(0, 5), min_size=1, max_size=120).map(np.array)


def check(split: Split, n: int) -> None:
    """What holds for every split: sorted indices of the data, none twice, and a task for each silo."""
    assert len(split.parts) == len(split.tasks) == len(split)
    for part in split.parts:
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()
    everything = np.concatenate(split.parts)
    assert len(np.unique(everything)) == len(everything)
    assert everything.min() >= 0
    assert everything.max() < n


def check_tasks(split: Split, y: np.ndarray) -> None:
    for part, task in zip(split.parts, split.tasks, strict=True):
        assert task == tuple(sorted(set(y[part].tolist())))


def same(first: Split, second: Split) -> bool:
    pairs = zip(first.parts, second.parts, strict=True)
    return first.tasks == second.tasks and all(np.array_equal(a, b) for a, b in pairs)


class TestIid:
    @given(LABELS, st.integers(1, 10), SEEDS)
    def test_equal_parts_of_everything(self, y, silos, seed):
        assume(silos <= len(y))
        split = iid(y, silos, seed=seed)
        check(split, len(y))
        check_tasks(split, y)
        sizes = [len(part) for part in split.parts]
        assert sum(sizes) == len(y)
        assert max(sizes) - min(sizes) <= 1
        assert same(split, iid(y, silos, seed=seed))

    def test_size(self):
        split = iid(np.zeros(100, int), silos=3, size=20)
        check(split, 100)
        assert [len(part) for part in split.parts] == [20, 20, 20]

    def test_another_seed_is_another_split(self):
        y = np.arange(50)
        assert not same(iid(y, 5, seed=1), iid(y, 5, seed=2))

    def test_errors(self):
        with pytest.raises(DataError, match=r"^4 silos want 4 instances; the data has 3$"):
            iid([0, 1, 2], 4)
        with pytest.raises(DataError, match=r"^2 silos of 2 instances want 4 instances; the data has 3$"):
            iid([0, 1, 2], 2, size=2)


class TestShards:
    def test_by_hand(self):
        # Two shards of zeros, two of ones: with two per silo each instance is dealt, in whole shards.
        y = np.array([1, 0, 1, 0, 1, 0, 1, 0])
        split = shards(y, silos=2, per_silo=2, seed=3)
        check(split, 8)
        assert [len(part) for part in split.parts] == [4, 4]
        for part in split.parts:
            assert np.bincount(y[part], minlength=2).tolist() in ([4, 0], [2, 2], [0, 4])

    @given(LABELS, st.integers(1, 6), st.integers(1, 4), SEEDS)
    def test_few_classes_each(self, y, silos, per_silo, seed):
        assume(silos * per_silo <= len(y))
        split = shards(y, silos, per_silo, seed=seed)
        check(split, len(y))
        check_tasks(split, y)
        assert sum(map(len, split.parts)) == len(y)
        smallest = len(y) // (silos * per_silo)
        for part in split.parts:
            assert per_silo * smallest <= len(part) <= per_silo * (smallest + 1)
        assert same(split, shards(y, silos, per_silo, seed=seed))

    def test_one_shard_is_one_class(self):
        y = np.repeat(np.arange(10), 30)
        split = shards(y, silos=5, per_silo=2)
        assert all(len(task) <= 2 for task in split.tasks)
        assert not same(split, shards(y, silos=5, per_silo=2, seed=1))

    def test_errors(self):
        with pytest.raises(DataError, match="2 silos × 3 shards want 6 instances; the data has 5; lower"):
            shards(np.zeros(5, int), 2, 3)
        with pytest.raises(DataError, match="per_silo: got 0; wants a whole number of at least 1"):
            shards(np.zeros(5, int), 2, 0)


class TestDirichlet:
    @given(st.integers(2, 6), st.floats(0.5, 100), SEEDS)
    def test_everything_is_dealt(self, silos, concentration, seed):
        y = np.repeat(np.arange(4), 40)
        split = dirichlet(y, silos, concentration, min_size=3, seed=seed)
        check(split, len(y))
        check_tasks(split, y)
        assert sum(map(len, split.parts)) == len(y)
        assert min(map(len, split.parts)) >= 3
        assert same(split, dirichlet(y, silos, concentration, min_size=3, seed=seed))

    def test_concentration_is_evenness(self):
        y = np.repeat(np.arange(10), 500)
        even = dirichlet(y, 10, 1e6).counts(y, 10)
        assert abs(even - 50).max() <= 3
        skewed = dirichlet(y, 10, 0.1).counts(y, 10)
        assert (skewed.max(axis=0) > 200).sum() >= 8  # most of a class goes to few silos

    def test_the_proportions_are_dirichlet(self):
        # The variance of a share is (1/k)(1 - 1/k) / (k·c + 1): here 0.1875 / 5.
        y = np.repeat(np.arange(400), 200)
        shares = dirichlet(y, 4, 1.0).counts(y, 400) / 200
        assert shares.var() == pytest.approx(0.1875 / 5, rel=0.1)

    def test_another_seed_is_another_split(self):
        y = np.repeat(np.arange(4), 40)
        assert not same(dirichlet(y, 4, 1.0, seed=1), dirichlet(y, 4, 1.0, seed=2))

    def test_a_hopeless_draw_ends(self):
        y = np.repeat(np.arange(2), 100)
        with pytest.raises(
            DataError, match=r"no split in 100 draws: the smallest of 10 silos had .* raise conc"
        ):
            dirichlet(y, 10, 0.01, min_size=10)

    @given(st.integers(1, 8), st.floats(0.01, 100), st.integers(1, 20), SEEDS)
    def test_with_a_size_every_silo_has_it(self, silos, concentration, size, seed):
        y = np.repeat(np.arange(4), 40)
        split = dirichlet(y, silos, concentration, size=size, seed=seed)
        check(split, len(y))
        check_tasks(split, y)
        assert [len(part) for part in split.parts] == [size] * silos
        assert same(split, dirichlet(y, silos, concentration, size=size, seed=seed))

    def test_with_a_size_each_silo_draws_its_own_proportions(self):
        # As above with 4 classes, and that of a draw of 200: its mean is (0.25 - (0.0625 + 0.0375)) / 200.
        y = np.repeat(np.arange(4), 100_000)
        shares = dirichlet(y, 500, 1.0, size=200).counts(y, 4) / 200
        assert shares.var() == pytest.approx(0.1875 / 5 + 0.15 / 200, rel=0.1)
        even = dirichlet(y, 50, 1e6, size=4000).counts(y, 4)
        assert abs(even - 1000).max() < 150

    def test_with_a_size_used_up_classes_are_replaced(self):
        y = np.array([0] * 10 + [1] * 2)
        split = dirichlet(y, 3, 0.01, size=4)  # a silo wants one class only, and there are 12 instances
        assert split.counts(y, 2).sum(axis=0).tolist() == [10, 2]

    def test_errors(self):
        with pytest.raises(DataError, match="3 silos of at least 10 instances want 30; the data has 20"):
            dirichlet(np.zeros(20, int), 3, 1.0)
        with pytest.raises(DataError, match="3 silos of 7 instances want 21; the data has 20; lower"):
            dirichlet(np.zeros(20, int), 3, 1.0, size=7)
        with pytest.raises(DataError, match="size: got 0; wants a whole number of at least 1"):
            dirichlet(np.zeros(20, int), 3, 1.0, size=0)
        for wrong in (0, -1.0, float("nan"), float("inf")):
            with pytest.raises(DataError, match=r"concentration: got .*; wants a number above 0"):
                dirichlet(np.zeros(20, int), 2, wrong)


class TestByValue:
    def test_by_hand(self):
        split = by_value(["b", "a", "b", "c"], y=[0, 1, 2, 0])
        check(split, 4)
        assert split.names == ("a", "b", "c")
        assert [part.tolist() for part in split.parts] == [[1], [0, 2], [3]]
        assert split.tasks == ((1,), (0, 2), (0,))

    @given(LABELS)
    def test_one_part_per_value(self, values):
        split = by_value(values)
        check(split, len(values))
        assert sum(map(len, split.parts)) == len(values)
        assert split.names == tuple(str(value) for value in sorted(set(values.tolist())))
        for part in split.parts:
            assert len(set(values[part])) == 1
        assert split.tasks == ((),) * len(split)

    def test_errors(self):
        with pytest.raises(DataError, match="values: 2 are missing, the first at index 1"):
            by_value(np.array(["a", None, np.nan], dtype=object))
        with pytest.raises(DataError, match="values: of different types"):
            by_value(np.array(["a", 1], dtype=object))
        with pytest.raises(DataError, match="values has 2 entries, y 1"):
            by_value(["a", "b"], y=[1])
        with pytest.raises(DataError, match="values: got shape"):
            by_value([])


@given(st.integers(1, 20), st.integers(0, 99))
def test_a_balanced_subset_has_as_many_of_each_class_and_none_twice(per_class, seed):
    y = np.repeat([0, 1, 2], [20, 25, 60])
    chosen = balanced(y, per_class, seed=seed)
    assert len(set(chosen.tolist())) == len(chosen)
    assert np.bincount(y[chosen]).tolist() == [per_class] * 3
    assert np.array_equal(chosen, balanced(y, per_class, seed=seed))


def test_a_class_that_is_too_small_for_a_balanced_subset():
    with pytest.raises(DataError, match=r"^per_class = 21; class 0 has 20 instances$"):
        balanced(np.repeat([0, 1], [20, 30]), 21)
