import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cosilo.data import Split, balanced, by_value, dirichlet, iid, shards, superclasses
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


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([], "y: is empty"),
        ([[0, 1]], r"y: got int64 of shape \(1, 2\)"),
        (["a", "b"], r"y: got <U1 of shape \(2,\); wants one integer code per instance"),
        ([0.0, 1.0], "y: got float64"),
        ([0, -1], "y: holds the code -1; wants codes from 0"),
    ],
)
def test_codes_are_checked(y, words):
    with pytest.raises(DataError, match=words):
        iid(y, 1)


class TestPlot:
    def test_a_bubble_for_each_silo_and_class(self):
        y = np.array([0, 0, 0, 0, 1])
        split = by_value(["a", "a", "b", "b", "b"], y)
        figure = split.plot(y, ["cat", "dog"])
        axes = figure.axes[0]
        (bubbles,) = axes.collections
        assert bubbles.get_offsets().tolist() == [[0, 0], [1, 0], [1, 1]]
        sizes = bubbles.get_sizes()
        assert sizes[0] == pytest.approx(2 * sizes[2])
        assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog"]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]

    def test_can_be_saved_and_leaves_nothing_global(self, tmp_path):
        import matplotlib.pyplot as plt

        y = np.repeat(np.arange(20), 50)
        iid(y, 100).plot(y, [f"class {code}" for code in range(20)]).savefig(tmp_path / "split.png")
        assert (tmp_path / "split.png").stat().st_size > 1000
        assert plt.get_fignums() == []

    def test_another_y(self):
        with pytest.raises(DataError, match="y: has 2 labels, but the split holds index 4"):
            iid(np.zeros(5, int), 2).plot([0, 0], ["a"])
        with pytest.raises(DataError, match="y: holds the code 3, but there are 1 classes"):
            iid(np.zeros(5, int), 2).plot([0, 0, 0, 0, 3], ["a"])


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
