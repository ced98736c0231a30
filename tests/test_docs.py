"""The examples in the documents run, as they stand."""

import importlib
import re
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from cosilo import Federation, Institution, Run, Training
from cosilo.config import settings
from cosilo.config.resolve import find_method
from cosilo.engines.flare.party_files import as_federation

ROOT = Path(__file__).parent.parent


def blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def test_the_python_example_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("README.md", "python")
    assert len([line for line in example.splitlines() if line]) <= 15
    names: dict = {}
    exec(example, names)
    assert sorted(names["run"].relative_accuracy()) == ["north", "south"]
    assert "'votes'" in capsys.readouterr().out


def run_blocks(document: str) -> dict:
    """Run all Python blocks of a document one after another, as a reader would; what they leave behind."""
    names: dict = {}
    for example in blocks(document, "python"):
        exec(example, names)
    return names


def test_the_python_example_about_networks(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    names = run_blocks("docs/networks.md")
    assert sorted(names["run"].relative_accuracy()) == ["even", "odd"]
    assert names["weights"]["head.weight"].shape == (10, 200)
    assert "'instances': 150" in capsys.readouterr().out
    assert names["layered"].about["members"] == {"hospital-a": ["ward-1", "ward-2"]}
    assert names["ward"].trained


def test_the_python_examples_about_data(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    names = run_blocks("docs/data.md")
    assert (tmp_path / "split.png").stat().st_size > 0
    assert sorted(names["run"].scores("local")) == ["clinic"]
    assert names["run"].silos["clinic"].predict(names["digits"].X[:1]).dtype == names["digits"].y.dtype


def test_the_python_example_about_privacy(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/privacy.md")
    assert "ε = 8, δ = 1e-05 for each record" in capsys.readouterr().out


def test_the_step_that_the_architecture_shows_is_that_of_fedavg():
    (shown,) = blocks("docs/architecture.md", "python")
    assert textwrap.indent(shown, "    ") in (ROOT / "src/cosilo/methods/fedavg.py").read_text()


def test_no_document_has_a_python_block_that_is_not_tested():
    tested = {"networks.md", "data.md", "architecture.md", "privacy.md"}
    found = {path.name for path in (ROOT / "docs").glob("*.md") if blocks(f"docs/{path.name}", "python")}
    assert found == tested


@pytest.mark.parametrize("document", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_toml_blocks_are_what_a_file_may_say(document):
    for example in blocks(f"docs/{document}", "toml"):
        values = tomllib.loads(example)
        if "members" in values:
            as_federation(values, document)
        elif "name" in values:
            settings.SiloSettings.model_validate(values)
        else:  # a recipe, or a part of one: what is missing does not matter, what is there does
            learner = values.pop("learner", None)
            rest = (
                {} if values.keys() & {"silo", "simulation"} else {"silo": [{"name": "a", "path": "a.csv"}]}
            )
            recipe = settings.validate({**values, **rest}, document)
            find_method(recipe.method, document)
            if learner is not None:
                Training(**settings.LearnerSettings(**learner).training)


def test_the_recipe_of_the_readme_is_valid(tmp_path):
    (example,) = blocks("README.md", "toml")
    (tmp_path / "clinics.toml").write_text(example)
    values = settings.validate(settings.read(tmp_path / "clinics.toml"), "clinics.toml")
    assert [silo.label for silo in values.silo] == ["diagnosis", "diagnosis"]


@pytest.fixture
def census(tmp_path, monkeypatch):
    """The contributors' example as a file of its own, in a folder that nobody imports from otherwise."""
    (example,) = blocks("CONTRIBUTING.md", "python")
    (tmp_path / "census.py").write_text(example)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("census", None)


def test_the_method_of_the_contributors_guide_from_the_command_line(census, cosilo):
    recipe = """
[method]
use = "census.Census"
at_least = 2

[simulation]
dataset = "digits"
split = { use = "iid", silos = 3 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
shares = ["size", "metrics"]
"""
    (census / "recipe.toml").write_text(recipe)
    code, _, errors = cosilo("run", "recipe.toml", "--dir", "run")
    assert (code, errors) == (0, "")
    result = Run(census / "run").result
    assert len(result["scores"]["local"]) == 3
    assert result["instances"] == 1297  # those that a dataset of 1797 keeps for training


def test_the_method_of_the_contributors_guide_in_python(census, monkeypatch, silos):
    monkeypatch.syspath_prepend(census)
    module = importlib.import_module("census")
    inside = Institution("inside", silos(shares=["size", "metrics"]), shares=["size"])
    federation = Federation([*silos(shares=["size"]), inside], method=module.Census(at_least=46))
    run = federation.run(census / "run")
    assert run.findings(module.Count).instances == 3 * 45  # the institution's alone is large enough
    assert run.audit("tree")[-1]["fields"]["size"]["about"] == "training instances"


def test_the_method_of_the_contributors_guide_imports_from_cosilo_only():
    (example,) = blocks("CONTRIBUTING.md", "python")
    assert re.findall(r"(?:from|import) (cosilo\S*)", example) == ["cosilo"]


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_documents_lead_somewhere(document):
    path = ROOT / document if (ROOT / document).exists() else ROOT / "docs" / document
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target
