"""The engine of FLARE's simulator, also where FLARE is not installed: one line, and nothing is begun."""

import importlib.util
import subprocess
import sys

import pytest
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Local, Silo
from cosilo.engines.flare import runs
from cosilo.errors import ConfigError

WITHOUT_FLARE = """
import sys
sys.modules["nvflare"] = None  # as if it were not installed: every import of it fails
from sklearn.tree import DecisionTreeClassifier
from cosilo import Federation, Local, Silo
from cosilo.errors import ConfigError
silo = Silo("only", [[0.0], [1.0]] * 8, ["a", "b"] * 8, DecisionTreeClassifier())
try:
    Federation([silo], method=Local(), engine="flare").run("run")
except ConfigError as error:
    print(error)
"""


def federation(**options):
    silo = Silo("only", [[0.0], [1.0]] * 8, ["a", "b"] * 8, DecisionTreeClassifier())
    return Federation([silo], method=Local(), **options)


def test_the_simulator_needs_flare(tmp_path):
    command = [sys.executable, "-c", WITHOUT_FLARE]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said == (
        "this needs NVIDIA FLARE: make install EXTRAS=flare, or pip install 'cosilo-….whl[flare]'\n"
    )
    assert not (tmp_path / "run").exists()


def test_going_on_with_a_run_between_organisations_needs_flare(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nvflare" else found(name))
    with pytest.raises(ConfigError, match=r"make install EXTRAS=flare, or pip install '.*\[flare\]'"):
        runs.resume(tmp_path, print)


def test_silos_made_in_python_cannot_be_simulated(tmp_path):
    pytest.importorskip("nvflare")
    with pytest.raises(ConfigError, match="the flare engine runs recipes"):
        federation(engine="flare").run(tmp_path / "run")
    assert not (tmp_path / "run").exists()
