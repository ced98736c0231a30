"""The recipes that come with cosilo: they are whole, name what exists, and sizes differ in scale only."""

import pytest

from cosilo.comparison.compare import check
from cosilo.config import settings
from cosilo.errors import ConfigError
from cosilo.reproduce.library import find, reproductions

#: Keys that say how much of something there is.
SCALE = {"silos", "size", "per_class", "unlabelled", "rounds", "epochs", "public_epochs", "batch", "split"}
NAMES = list(reproductions())


def test_every_table_and_figure_is_there():
    told = " ".join(f"{one.about.paper} {one.about.what}" for one in reproductions().values())
    cofed = ["Fig. 2", "Fig. 3", "Fig. 5", "Fig. 6", "Figs. 7 and 8", "Fig. 9", "Table 2 and Fig. 10"]
    others = ["FML Table 1", "FML Fig. 5", "FML Fig. 6", "catfish", "DoFed-SPP Table 1", "Tempo Fig. 2"]
    for figure in [*(f"CoFED {figure}" for figure in cofed), "Fig. 11", *others]:
        assert figure in told


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["laptop", "paper"])
def test_all_methods_and_parameters_of_all_cases_exist(name, size, tmp_path):
    for plan in find(name).plans(size, 3, tmp_path).values():
        assert plan.seeds == (0, 1, 2)
        plan.make_methods()


@pytest.mark.parametrize("name", NAMES)
def test_sizes_differ_in_scale_only(name):
    one = find(name)
    for case in one.about.case:
        small, large = (one.case(case, size) for size in ("laptop", "paper"))
        for key, before, after in _differences(small, large):
            last = key.rpartition(".")[2]
            assert last in SCALE | {"test"}, key
            assert type(before) is type(after)
            assert after > before or last == "test"  # many silos share one test set


def _differences(one, other, at=""):
    if isinstance(one, dict) and isinstance(other, dict):
        # So many instances of each class that some are left for the pool.
        assert other.keys() - one.keys() <= ({"per_class"} if at == ".simulation" else set())
        for key in one:
            yield from _differences(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for place, (mine, its) in enumerate(zip(one, other, strict=True)):
            yield from _differences(mine, its, f"{at}.{place}")
    elif one != other:
        yield at, one, other


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["laptop", "paper"])
def test_every_size_could_be_run(name, size, real_data, tmp_path):
    """Of the datasets that are there it takes no more than they have."""
    for plan in find(name).plans(size, 1, tmp_path).values():
        check(plan, tmp_path / "none")


@pytest.mark.parametrize("name", NAMES)
def test_a_laptop_takes_at_most_ten_minutes_by_its_own_word(name):
    assert find(name).about.minutes["laptop"] <= 10


@pytest.mark.parametrize("name", NAMES)
def test_only_what_says_so_is_chosen_on_test_data(name):
    values = find(name).values
    peeks = [key for key, table in values.get("compare", {}).items() if table.get("selection") == "test"]
    assert values.get("method", {}).get("selection") != "test"
    assert peeks == (["on_test"] if name == "cofed_selection" else [])


def test_a_misspelt_name_gets_a_guess():
    with pytest.raises(ConfigError, match=r"'fml_minst' .did you mean 'fml_mnist'\?.; there are"):
        find("fml_minst")


def test_a_file_without_the_table_says_what_runs_it(tmp_path):
    path = tmp_path / "mine.toml"
    split, learners = '{use="iid", silos=2}', '[{use="mlp"}]'
    path.write_text(f'[simulation]\ndataset = "digits"\nsplit = {split}\nlearners = {learners}\n')
    with pytest.raises(ConfigError, match=r"has no \[reproduces\]; `cosilo run`"):
        find(str(path))


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ("all.cofed", "wants case.method.measure, perhaps followed by @silo or @learner; got 'all.cofed'"),
        ("none.cofed.relative", "wants cases all in 'none.cofed.relative'"),
        ("all.fml.relative", "wants methods cofed in 'all.fml.relative'"),
        ("all.cofed.speed", "wants a measure in 'all.cofed.speed': accuracy, local"),
    ],
)
def test_places_that_are_not_there_are_refused(of, message):
    table = {
        "paper": "CoFED",
        "what": "Fig. 2",
        "shows": "x",
        "methods": ["cofed"],
        "minutes": {"laptop": 1, "paper": 2},
        "number": [{"text": "n", "of": of}],
    }
    simulation = {"dataset": "digits", "split": {"use": "iid", "silos": 2}, "learners": [{"use": "mlp"}]}
    with pytest.raises(ConfigError) as error:
        settings.validate({"simulation": simulation, "reproduces": table}, "mine.toml")
    assert f"mine.toml: reproduces: {message}" in str(error.value)
