"""CoFED's split into overlapping tasks."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosilo.data import Split, superclasses
from cosilo.errors import DataError

SEEDS = st.integers(0, 2**32)


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


def check_superclasses(
    split: Split,
    fine: np.ndarray,
    coarse: np.ndarray,
    classes: tuple[int, int],
    per_class: int,
    subclasses: tuple[int, int] | None,
    holders: int = 2,
) -> None:
    check(split, len(coarse))
    check_tasks(split, coarse)
    counts = split.counts(coarse, int(coarse.max()) + 1)
    assert set(np.unique(counts)) <= {0, per_class}
    for task in split.tasks:
        assert classes[0] <= len(task) <= classes[1]
    held = (counts > 0).sum(axis=0)
    assert (held[held > 0] >= min(holders, len(split))).all()
    for part in split.parts:
        for code in np.unique(coarse[part]):
            subs, sizes = np.unique(fine[part][coarse[part] == code], return_counts=True)
            everything = len(np.unique(fine[coarse == code]))
            if subclasses is None:
                assert len(subs) == min(everything, per_class)
            else:
                assert subclasses[0] <= len(subs) <= subclasses[1]
            assert sizes.max() - sizes.min() <= 1  # evenly


class TestSuperclasses:
    @settings(max_examples=60, deadline=None)
    @given(
        sizes=st.lists(st.lists(st.integers(8, 20), min_size=1, max_size=4), min_size=3, max_size=6),
        silos=st.integers(1, 8),
        per_class=st.integers(1, 9),
        subclasses=st.sampled_from([None, (1, 1), (1, 2), (1, 3)]),
        holders=st.integers(1, 3),
        seed=SEEDS,
    )
    def test_any(self, sizes, silos, per_class, subclasses, holders, seed):
        fine, coarse = nested(sizes)
        options = {"silos": silos, "classes": (1, 3), "per_class": per_class, "subclasses": subclasses}
        try:
            split = superclasses(fine, coarse, **options, holders=holders, seed=seed)
        except DataError:
            return  # the settings are random, and some ask for more than there is
        check_superclasses(split, fine, coarse, (1, 3), per_class, subclasses, holders)
        assert same(split, superclasses(fine, coarse, **options, holders=holders, seed=seed))

    @settings(max_examples=60, deadline=None)
    @given(
        kinds=st.integers(1, 5),
        half=st.integers(1, 4),
        halves=st.integers(1, 6),
        subclasses=st.sampled_from([None, (1, 2)]),
        seed=SEEDS,
    )
    def test_does_not_run_dry_while_there_is_enough(self, kinds, half, halves, subclasses, seed):
        # Every silo has every class, and nothing is left over: the hardest case that can be met.
        assume(kinds * halves % 2 == 0 and (subclasses or 2 * half % kinds == 0))
        fine, coarse = nested([[half * halves] * kinds] * 3)
        options = {"silos": kinds * halves // 2, "classes": (3, 3), "per_class": 2 * half}
        split = superclasses(fine, coarse, **options, subclasses=subclasses, seed=seed)
        check_superclasses(split, fine, coarse, (3, 3), 2 * half, subclasses)
        assert sum(map(len, split.parts)) == len(coarse)

    @pytest.mark.parametrize("subclasses", [None, (1, 2), (2, 2)])
    @pytest.mark.parametrize("seed", range(4))
    def test_shape_of_cifar100(self, subclasses, seed):
        fine, coarse = nested([[500] * 5] * 20)
        split = superclasses(fine, coarse, subclasses=subclasses, seed=seed)
        assert len(split) == 100
        check_superclasses(split, fine, coarse, (6, 8), 50, subclasses)
        assert {len(task) for task in split.tasks} == {6, 7, 8}

    def test_same_codes_twice_is_plain_overlap(self):
        y = np.repeat(np.arange(10), 120)
        for seed in range(20):
            split = superclasses(y, y, silos=4, classes=(3, 5), per_class=20, seed=seed)
            check_superclasses(split, y, y, (3, 5), 20, None)

    def test_holders(self):
        y = np.repeat(np.arange(10), 120)
        held = [
            (superclasses(y, y, 4, (3, 5), 20, holders=n).counts(y, 10) > 0).sum(axis=0) for n in (1, 2, 4)
        ]
        assert 1 in held[0]
        assert 1 not in held[1]
        assert set(held[2]) == {0, 4}

    def test_uneven_numbers_are_spread(self):
        # 5 from 3 subclasses are 2 + 2 + 1; with 5 instances each exactly 3 silos can have it.
        fine, coarse = nested([[5, 5, 5]])
        split = superclasses(fine, coarse, silos=3, classes=(1, 1), per_class=5)
        check_superclasses(split, fine, coarse, (1, 1), 5, None)

    def test_another_seed_is_another_split(self):
        y = np.repeat(np.arange(10), 120)
        one, two = (superclasses(y, y, 6, (3, 5), 20, seed=seed) for seed in (1, 2))
        assert one.tasks != two.tasks

    def test_errors(self):
        fine, coarse = nested([[10, 10], [10, 4]])
        options = {"silos": 2, "classes": (1, 2), "per_class": 5}
        cases = [
            ({"per_class": 21}, r"class 0 has 20 instances in 2 subclasses \(smallest: 10\), too few"),
            ({"per_class": 10}, r"class 1 has 14 instances in 2 subclasses \(smallest: 4\), too few"),
            ({"classes": (1, 3)}, r"classes: got \(1, 3\), but the data has 2 classes"),
            ({"classes": (2, 1)}, r"classes: got \(2, 1\); wants the smaller number first"),
            ({"classes": 2}, r"classes: got 2; wants a pair \(least, most\)"),
            ({"subclasses": (3, 3)}, r"subclasses: got \(3, 3\), but class 0 has 2 subclasses"),
            (
                {"silos": 6, "classes": (2, 2)},
                "6 silos with at least 2 classes each want 12 times 5 instances",
            ),
            ({"silos": 0}, "silos: got 0; wants a whole number of at least 1"),
            ({"silos": 2.5}, "silos: got 2.5; wants a whole number"),
            ({"holders": 0}, "holders: got 0"),
        ]
        for change, words in cases:
            with pytest.raises(DataError, match=words):
                superclasses(fine, coarse, **{**options, **change})
        with pytest.raises(DataError, match="fine has 34 codes, coarse 33"):
            superclasses(fine, coarse[:-1], **options)

    def test_too_many_places_says_so(self):
        y = np.repeat(np.arange(4), 30)
        with pytest.raises(DataError, match=r"no split in 100 draws: .*there are 12\); lower silos \(12\)"):
            superclasses(y, y, silos=12, classes=(1, 4), per_class=10)

    def test_too_many_holders_says_so(self):
        y = np.repeat(np.arange(4), 20)  # each class is enough for 2 silos, three are to hold it
        with pytest.raises(DataError, match=r"could be given to 3 silos; lower holders \(3\)"):
            superclasses(y, y, silos=4, classes=(1, 2), per_class=10, holders=3)


def nested(sizes: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Fine and coarse codes, mixed, for the sizes of the fine classes in each coarse one."""
    flat = [(code, size) for code, group in enumerate(sizes) for size in group]
    fine = np.repeat(np.arange(len(flat)), [size for _, size in flat])
    coarse = np.repeat([code for code, _ in flat], [size for _, size in flat])
    order = np.random.default_rng(0).permutation(len(fine))
    return fine[order], coarse[order]
