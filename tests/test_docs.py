"""The examples in the documents run, as they stand."""

import re
from pathlib import Path

import pytest

from cosilo import Federation
from cosilo.config import settings

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


def test_the_python_example_about_networks(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (example,) = blocks("docs/networks.md", "python")
    names: dict = {}
    exec(example, names)
    assert sorted(names["run"].relative_accuracy()) == ["even", "odd"]
    assert names["weights"]["head.weight"].shape == (10, 200)
    assert "'instances': 150" in capsys.readouterr().out


def test_the_recipe_of_the_readme_is_valid(tmp_path):
    (example,) = blocks("README.md", "toml")
    (tmp_path / "clinics.toml").write_text(example)
    values = settings.validate(settings.read(tmp_path / "clinics.toml"), "clinics.toml")
    assert [silo.label for silo in values.silo] == ["diagnosis", "diagnosis"]


def test_the_method_of_the_contributors_guide(tmp_path, silos):
    (example,) = blocks("CONTRIBUTING.md", "python")
    imports = (
        "from typing import ClassVar\nfrom cosilo.coordination.coordinator import Silos\n"
        "from cosilo.protocol.message import Message\n"
        "from cosilo.methods import Method, step\nfrom cosilo.silo.silo import Silo\n"
    )
    names: dict = {"__name__": "example"}
    exec(imports + example, names)
    run = Federation(silos(shares=["size"]), method=names["Census"]()).run(tmp_path / "run")
    assert run.result["instances"] == 3 * 45


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *sorted(p.name for p in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_documents_lead_somewhere(document):
    path = ROOT / document if (ROOT / document).exists() else ROOT / "docs" / document
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        assert target.startswith("http") or (path.parent / target).exists(), target
