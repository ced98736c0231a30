"""FLARE's simulator may end before anything was asked: then it is begun again, and only then."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from cosilo.config import build
from cosilo.engines.flare import simulator
from cosilo.errors import RunError
from cosilo.protocol.events import Event, Happening
from cosilo.runs.events import EventLog
from cosilo.runs.run import RunDirectory

REAL = simulator.subprocess.Popen
RECIPE = {
    "method": {"use": "local"},
    "simulation": {
        "dataset": "digits",
        "split": {"use": "iid", "silos": 2, "size": 50},
        "learners": [{"use": "sklearn.naive_bayes.GaussianNB"}],
    },
}


@pytest.fixture
def folder(tmp_path) -> Path:
    federation = build.federation(RECIPE, build.Source("recipe.toml", tmp_path), engine="flare")
    return federation.open_folder(tmp_path / "run").folder


@pytest.fixture
def starts(monkeypatch) -> Callable[..., list[int]]:
    def prepare(*what: Callable[[], None]) -> list[int]:
        """Have something happen at each start of the simulator, which ends at once; returns the starts."""
        begun: list[int] = []

        def start(command: Any, **options: Any) -> Any:
            begun.append(len(begun))
            if len(begun) <= len(what):
                what[begun[-1]]()
            return REAL([sys.executable, "-c", ""], **options)

        monkeypatch.setattr(simulator.subprocess, "Popen", start)
        return begun

    return prepare


def happens(folder: Path, what: Happening, **facts: Any) -> None:
    with EventLog(folder / "events.jsonl") as log:
        log(Event(what, facts))


def test_a_simulator_that_never_began_is_begun_again(folder, starts):
    def finish() -> None:
        happens(folder, Happening.FINISH)
        RunDirectory(folder).set_status("finished")

    begun = starts(lambda: None, finish)
    simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(begun) == 2


def test_after_three_times_the_log_is_named(folder, starts):
    begun = starts()
    with pytest.raises(RunError, match=r"flare\.txt: FLARE's simulator ended too early; this is its log"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(begun) == 3


def test_what_stopped_a_run_that_had_begun_is_said_at_once(folder, starts):
    begun = starts(lambda: happens(folder, Happening.STOP, text="too few silos"))
    with pytest.raises(RunError, match=r"^too few silos$"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(begun) == 1
