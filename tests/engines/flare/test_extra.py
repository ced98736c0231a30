"""Where FLARE is not installed: one line that says what to install, and nothing is begun."""

import importlib.util

import pytest
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Local, Silo
from cosilo.engines.flare import runs
from cosilo.errors import ConfigError


@pytest.fixture
def without_flare(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nvflare" else found(name))


def federation():
    silo = Silo("only", [[0.0], [1.0]] * 8, ["a", "b"] * 8, DecisionTreeClassifier())
    return Federation([silo], method=Local())


def test_the_simulator_needs_flare(without_flare, tmp_path):
    with pytest.raises(ConfigError, match=r"pip install 'cosilo\[flare\]'"):
        federation().run(tmp_path / "run", engine="flare")
    assert not (tmp_path / "run").exists()


def test_going_on_with_a_run_between_organisations_needs_flare(without_flare, tmp_path):
    with pytest.raises(ConfigError, match=r"pip install 'cosilo\[flare\]'"):
        runs.resume(tmp_path, print)


def test_silos_made_in_python_cannot_be_simulated(tmp_path):
    pytest.importorskip("nvflare")
    with pytest.raises(ConfigError, match="the flare engine runs recipes"):
        federation().run(tmp_path / "run", engine="flare")
    assert not (tmp_path / "run").exists()
