"""Splits with targets: training data of some classes, a target of others."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo.data import TargetSplit, normal, subset
from cosilo.errors import DataError

SEEDS = st.integers(0, 2**32)


def labels(sizes: list[int]) -> np.ndarray:
    y = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(0).permutation(y)


def check(split: TargetSplit, y: np.ndarray, per_class: int, labelled: int, unlabelled: int) -> None:
    """What holds for every such split: sorted indices, the asked numbers of the right classes, none twice."""
    assert len(split) == len(split.parts) == len(split.labelled) == len(split.unlabelled)
    assert len(split.tasks) == len(split.targets) == len(split)
    for silo in range(len(split)):
        task, target = split.tasks[silo], split.targets[silo]
        assert min(len(task), len(target)) >= 2
        assert task != target
        kinds = (split.parts[silo], split.labelled[silo], split.unlabelled[silo])
        for part in kinds:
            assert part.dtype == np.int64
            assert (np.diff(part) > 0).all()
            assert part.min() >= 0
            assert part.max() < len(y)
        everything = np.concatenate(kinds)
        assert len(np.unique(everything)) == len(everything)
        for part, classes, number in zip(
            kinds, (task, target, target), (per_class, labelled, unlabelled), strict=True
        ):
            counts = Counter(y[part].tolist())
            assert tuple(sorted(counts)) == classes
            for code, count in counts.items():
                enough = (y == code).sum() - labelled - unlabelled
                short = part is kinds[0] and code in target and enough < per_class
                assert count == (enough if short else number)


def same(one: TargetSplit, other: TargetSplit) -> bool:
    pairs = zip(
        (*one.parts, *one.labelled, *one.unlabelled),
        (*other.parts, *other.labelled, *other.unlabelled),
        strict=True,
    )
    tasks = (one.tasks, one.targets) == (other.tasks, other.targets)
    return tasks and all(np.array_equal(a, b) for a, b in pairs)


def used(split: TargetSplit) -> Counter:
    return Counter(np.concatenate([*split.parts, *split.labelled, *split.unlabelled]).tolist())


class TestSubset:
    @given(
        sizes=st.lists(st.integers(12, 40), min_size=4, max_size=12),
        silos=st.integers(1, 9),
        clusters=st.integers(2, 6),
        per_class=st.integers(1, 12),
        labelled=st.integers(1, 4),
        unlabelled=st.integers(1, 8),
        seed=SEEDS,
    )
    def test_any(self, sizes, silos, clusters, per_class, labelled, unlabelled, seed):
        clusters = min(clusters, len(sizes) // 2)
        y = labels(sizes)
        options = {"per_class": per_class, "labelled": labelled, "unlabelled": unlabelled, "seed": seed}
        split = subset(y, silos, clusters, **options)
        check(split, y, per_class, labelled, unlabelled)
        assert same(split, subset(y, silos, clusters, **options))
        blocks = {*split.tasks, *split.targets}
        assert all(a == b or not set(a) & set(b) for a in blocks for b in blocks)  # whole clusters
        assert all(len(block) >= len(sizes) // clusters for block in blocks)
        trained, wanted = Counter(split.tasks), Counter(split.targets)
        for uses in (trained, wanted):
            assert max(uses.values()) - (min(uses.values()) if len(uses) == clusters else 0) <= 1
        check_sharing(split, y, per_class, labelled + unlabelled)

    def test_the_shape_of_cifar10_needs_no_instance_twice(self):
        y = labels([5000] * 10)
        split = subset(y, silos=25, clusters=5)
        check(split, y, 500, 10, 190)
        assert [len(part) for part in split.parts] == [1000] * 25
        assert [len(part) for part in split.labelled] == [20] * 25
        assert [len(part) for part in split.unlabelled] == [380] * 25
        assert set(used(split).values()) == {1}
        assert np.bincount(y[list(used(split))]).tolist() == [3500] * 10

    def test_the_shape_of_cifar100_shares_instances_evenly(self):
        y = labels([500] * 100)
        split = subset(y, silos=25, clusters=10)
        check(split, y, 500, 10, 190)
        assert set(Counter(map(len, split.tasks))) == {10}
        for code in range(100):
            often = [count for place, count in used(split).items() if y[place] == code]
            assert max(often) - min(often) <= 1

    def test_classes_left_over_go_to_random_clusters(self):
        y = labels([20] * 14)  # as DBPedia: 14 classes, five clusters of two, four left over
        sizes = {tuple(sorted(map(len, set(subset(y, 5, 5, 5, 2, 3, seed=s).tasks)))) for s in range(30)}
        assert all(sum(one) == 14 for one in sizes)
        assert len(sizes) > 2

    def test_another_seed_is_another_split(self):
        y = labels([40] * 6)
        assert not same(subset(y, 4, 3, 5, 2, 3, seed=1), subset(y, 4, 3, 5, 2, 3, seed=2))

    def test_errors(self):
        y = labels([20] * 6)
        cases = [
            ({"clusters": 1}, "clusters: got 1 for 6 classes; wants at least 2 clusters"),
            ({"clusters": 4}, "clusters: got 4 for 6 classes; wants .* with at least 2 classes each"),
            ({"silos": 0}, "silos: got 0; wants a whole number"),
            ({"labelled": 0}, "labelled: got 0; wants a whole number"),
            ({"unlabelled": 0.5}, "unlabelled: got 0.5; wants a whole number"),
            ({"per_class": 21}, "class 0 has 20 instances, a silo wants 21; lower per_class"),
            ({"unlabelled": 30}, "class 0 has 20 instances, a silo wants 32; lower labelled and unlabelled"),
        ]
        for change, words in cases:
            options = {"silos": 6, "clusters": 3, "per_class": 5, "labelled": 2, "unlabelled": 3, **change}
            with pytest.raises(DataError, match=words):
                subset(y, **options)


class TestNormal:
    @given(
        sizes=st.lists(st.integers(13, 40), min_size=3, max_size=10),
        silos=st.integers(1, 9),
        most=st.integers(2, 10),
        per_class=st.integers(1, 12),
        labelled=st.integers(1, 4),
        unlabelled=st.integers(1, 8),
        seed=SEEDS,
    )
    def test_any(self, sizes, silos, most, per_class, labelled, unlabelled, seed):
        classes, y = (2, min(most, len(sizes))), labels(sizes)
        options = {"per_class": per_class, "labelled": labelled, "unlabelled": unlabelled, "seed": seed}
        split = normal(y, silos, classes, **options)
        check(split, y, per_class, labelled, unlabelled)
        assert same(split, normal(y, silos, classes, **options))
        assert all(classes[0] <= len(task) <= classes[1] for task in (*split.tasks, *split.targets))
        check_sharing(split, y, per_class, labelled + unlabelled)

    def test_numbers_of_classes_are_drawn_and_overlap(self):
        y = labels([5000] * 10)
        split = normal(y, silos=25)
        check(split, y, 500, 10, 190)
        assert {len(task) for task in (*split.tasks, *split.targets)} == set(range(2, 11))
        assert any(set(a) & set(b) for a, b in zip(split.tasks, split.targets, strict=True))

    def test_small_classes_give_the_target_its_number_and_training_the_rest(self):
        y = labels([500] * 10)  # 500 + 200 is more than there is
        split = normal(y, silos=25, seed=3)
        check(split, y, 500, 10, 190)
        short = [np.bincount(y[part]).tolist() for part in split.parts]
        assert {count for counts in short for count in counts} == {0, 300, 500}

    def test_what_a_silo_wants_another_one_trains_on(self):
        y, again = labels([40] * 14), 0
        for seed in range(200):
            split = normal(y, 8, (2, 10), 5, 2, 3, seed=seed)
            for silo, target in enumerate(split.targets):
                others = {code for other, task in enumerate(split.tasks) if other != silo for code in task}
                assert set(target) <= others
            again += not same(split, first_draw(y, seed))
        assert again > 10  # it does not come by itself

    def test_a_silo_alone_gets_what_it_wants_all_the_same(self):
        y = labels([40] * 6)
        check(normal(y, 1, (2, 4), 5, 2, 3), y, 5, 2, 3)

    def test_another_seed_is_another_split(self):
        y = labels([40] * 6)
        assert not same(normal(y, 4, (2, 4), 5, 2, 3, seed=1), normal(y, 4, (2, 4), 5, 2, 3, seed=2))

    def test_errors(self):
        y = labels([20] * 4)
        cases = [
            ({"classes": (1, 3)}, r"classes: got \(1, 3\); wants 2 to 4, the classes of the data"),
            ({"classes": (2, 5)}, r"classes: got \(2, 5\); wants 2 to 4"),
            ({"classes": (4, 4)}, r"classes: got \(4, 4\); training and target classes would always be"),
            ({"classes": (3, 2)}, "wants the smaller number first"),
            (
                {"per_class": 1, "unlabelled": 18},
                "class . has 20 instances, of which a target takes 20: none",
            ),
        ]
        for change, words in cases:
            options = {
                "silos": 9,
                "classes": (2, 3),
                "per_class": 5,
                "labelled": 2,
                "unlabelled": 3,
                **change,
            }
            with pytest.raises(DataError, match=words):
                normal(y, **options)


def first_draw(y: np.ndarray, seed: int) -> TargetSplit:
    """The split if classes were drawn once only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cosilo.data.targets.TRIES", 1)
        return normal(y, 8, (2, 10), 5, 2, 3, seed=seed)


def check_sharing(split: TargetSplit, y: np.ndarray, per_class: int, wanted: int) -> None:
    """Nobody has an instance twice, nobody shares one while there are enough, and targets stay apart."""
    trained = Counter(np.concatenate(split.parts).tolist())
    aimed = Counter(np.concatenate([*split.labelled, *split.unlabelled]).tolist())
    for code in np.unique(y).tolist():
        members = np.flatnonzero(y == code).tolist()
        users = sum(code in task for task in split.tasks)
        takers = sum(code in target for target in split.targets)
        demand = users * per_class + takers * wanted
        if demand <= len(members):
            assert max(trained[i] + aimed[i] for i in members) <= 1
        if len(members) >= per_class + wanted:
            assert not any(trained[i] and aimed[i] for i in members)


@pytest.mark.parametrize("kind", ["subset", "normal"])
def test_with_overlap_every_silo_draws_from_all_instances(kind):
    y = labels([60] * 10)
    numbers = {"per_class": 20, "labelled": 4, "unlabelled": 16, "seed": 3}
    make = {"subset": lambda **more: subset(y, 10, 5, **numbers, **more)}
    make["normal"] = lambda **more: normal(y, 10, (2, 4), **numbers, **more)
    shared = make[kind](overlap=True)
    check(shared, y, 20, 4, 16)
    trained = np.concatenate(shared.parts)
    aimed = np.concatenate([*shared.labelled, *shared.unlabelled])
    # A point is in a training set of 20 of 60 with a chance of a third, and most classes have two or more.
    assert np.isin(aimed, trained).mean() > 0.3
    plain = make[kind]()
    assert not np.isin(np.concatenate(plain.unlabelled), np.concatenate(plain.parts)).any()
    assert (make[kind](overlap=True).parts[0] == shared.parts[0]).all()
    assert shared.tasks == plain.tasks


def test_the_shape_of_cifar100_overlaps():
    y = labels([500] * 20)
    split = subset(y, 10, 5, 500, 10, 190, overlap=True)
    assert all(np.isin(part, np.concatenate(split.parts)).all() for part in split.unlabelled)
    assert all(len(np.unique(part)) == 500 * 4 for part in split.parts)
