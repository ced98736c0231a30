"""The grid: which runs there are, with which parameters, what is refused, what is run, what only opened."""

import json
from pathlib import Path

import pytest

from cosilo import Run
from cosilo.comparison.compare import compare, read_comparison
from cosilo.comparison.plan import read_plan
from cosilo.config.build import Source
from cosilo.errors import ConfigError, RunError

# ---------------------------------------------------------------------- the plan


# ---------------------------------------------------------------------- the runs

BROKEN = """
from pathlib import Path
from cosilo.methods import step
from cosilo.methods.local import Local
from cosilo.protocol.stage import LOCAL

class Broken(Local):
    name = "broken"
    flag: str = ""

    @step()
    def train(self, silo):
        if Path(self.flag).exists():
            raise ValueError("patient 4711")
        silo.fit(LOCAL)
"""


@pytest.fixture
def recipe(tmp_path):
    """A recipe of two trees and a pool, and a method beside it that fails as long as there is a file."""
    (tmp_path / "broken_method.py").write_text(BROKEN)
    (tmp_path / "flag").touch()
    values = {
        "compare": {"broken_method.Broken": {"flag": str(tmp_path / "flag")}},
        "simulation": {
            "dataset": "digits",
            "split": {"use": "iid", "silos": 2, "size": 60},
            "learners": [{"use": "sklearn.tree.DecisionTreeClassifier", "max_depth": 3}],
        },
        "pool": {"rest": True, "size": 80},
    }
    return values, Source("trees.toml", tmp_path)


def times(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("result.json")}


def test_runs_that_are_there_are_only_opened(recipe, tmp_path):
    values, source = recipe
    lines: list[str] = []
    folder = tmp_path / "c"
    compare(values, source, ["local"], 1, folder)
    before = times(folder)
    assert list(before) == ["local-seed0/result.json"]
    found = compare(values, source, ["cofed"], 2, folder, tell=lines.append)
    assert lines == [
        "local, seed 0 (1 of 4): finished before",
        "cofed, seed 0 (2 of 4)",
        "local, seed 1 (3 of 4)",
        "cofed, seed 1 (4 of 4)",
    ]
    assert sorted(found.runs) == [("cofed", 0), ("cofed", 1), ("local", 0), ("local", 1)]
    assert times(folder).items() >= before.items()
    kept = json.loads((folder / "comparison.json").read_text())
    assert (kept["methods"], kept["seeds"]) == (["local", "cofed"], [0, 1])
    assert read_plan(folder).seeds == found.seeds
    assert Run(folder / "cofed-seed1").about["seed"] == 1


def test_on_one_seed_all_methods_have_the_same_silos(recipe, tmp_path):
    values, source = recipe
    found = compare(values, source, ["local", "cofed"], 2, tmp_path / "c")

    def data(method, seed):
        path = found.runs[method, seed].folder / "silos/silo-1/identity.json"
        return path.read_text()

    assert data("local", 0) == data("cofed", 0)
    assert data("local", 1) == data("cofed", 1)
    assert data("local", 0) != data("local", 1)
    assert found.runs["local", 0].scores("local") == found.runs["cofed", 0].scores("local")


def test_a_run_that_fails_keeps_no_other_from_running(recipe, tmp_path):
    values, source = recipe
    names = ["broken_method.Broken", "local"]
    found = compare(values, source, names, 2, tmp_path / "c")
    assert sorted(found.runs) == [("local", 0), ("local", 1)]
    assert sorted(found.failures) == [(names[0], 0), (names[0], 1)]
    failure = found.failures[names[0], 0]
    assert "train raised ValueError" in failure.text
    assert "4711" not in failure.text  # it is in the silo's own log, and for its owner only
    assert "4711" in failure.story
    assert read_comparison(tmp_path / "c").failures[names[0], 0].text == failure.text

    (tmp_path / "flag").unlink()
    before = times(tmp_path / "c")
    again = compare(values, source, names, 2, tmp_path / "c")
    assert not again.failures
    assert times(tmp_path / "c").items() >= before.items()


def test_everything_is_checked_before_anything_is_trained(recipe, tmp_path):
    values, source = recipe
    with pytest.raises(ConfigError) as error:
        compare(values, source, ["local", "fedavg"], 2, tmp_path / "c")
    lines = str(error.value).splitlines()
    # Both silos, and each once although it is wrong on both seeds.
    wrong = [line for line in lines if "DecisionTreeClassifier has no weights to share" in line]
    assert [line[:13] for line in wrong] == ["silo 'silo-1'", "silo 'silo-2'"]
    assert len(lines) == len(set(lines))
    assert not (tmp_path / "c").exists()


def test_what_is_wrong_on_one_seed_only_is_found_too_and_names_it(recipe, tmp_path, monkeypatch):
    values, source = recipe

    def check(federation, learners=True):
        return ["out of luck"] if federation.seed == 1 else []

    monkeypatch.setattr("cosilo.federation.federation.Federation.check", check)
    with pytest.raises(ConfigError, match=r"^seed 1: out of luck$"):
        compare(values, source, ["local", "cofed"], 3, tmp_path / "c")


def test_data_that_changed_does_not_get_into_a_comparison(tmp_path):
    rows = "age,sick\n" + "".join(f"{age},{'yes' if age > 50 else 'no'}\n" for age in range(30, 70))
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text(rows)
    learner = {"use": "sklearn.naive_bayes.GaussianNB"}
    silos = [{"name": name, "path": f"{name}.csv", "label": "sick"} for name in ("north", "south")]
    values = {"defaults": {"learner": learner}, "silo": silos}
    source = Source("clinics.toml", tmp_path)
    compare(values, source, ["local"], 1, tmp_path / "c")
    (tmp_path / "south.csv").write_text(rows + "71,no\n")
    with pytest.raises(
        ConfigError,
        match=r"local-seed0: silo 'south': is not what it was .*: training data; .*such as .*/c-2, ",
    ):
        compare(values, source, ["local"], 2, tmp_path / "c")
    assert not (tmp_path / "c/local-seed1").exists()


def test_a_folder_with_something_else_in_it_is_refused(recipe, tmp_path):
    values, source = recipe
    (tmp_path / "c").mkdir()
    (tmp_path / "c/thesis.txt").touch()
    with pytest.raises(RunError, match="c: is not empty and not a comparison; choose another directory"):
        compare(values, source, ["local"], 1, tmp_path / "c")
    (tmp_path / "c/comparison.json").write_text("{}")
    with pytest.raises(RunError, match=r"comparison\.json: is damaged"):
        compare(values, source, ["local"], 1, tmp_path / "c")
