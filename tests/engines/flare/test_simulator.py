"""FLARE's simulator may lose a port to somebody else: then it is begun again, and only then."""

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
TAKEN = "OSError: [Errno 98] Address already in use"
WRONG = "Communication error with client silo-2: [Errno 104] Connection reset by peer"
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
def starts(monkeypatch) -> Callable[..., list[str]]:
    def prepare(*what: tuple[str, Callable[[], None]]) -> list[str]:
        """What each start of the simulator says, and what happens in it; returns what was said."""
        said: list[str] = []

        def start(command: Any, **options: Any) -> Any:
            text, happen = what[min(len(said), len(what) - 1)]
            said.append(text)
            happen()
            return REAL([sys.executable, "-c", f"print({text!r})"], **options)

        monkeypatch.setattr(simulator.subprocess, "Popen", start)
        return said

    return prepare


def happens(folder: Path, what: Happening, **facts: Any) -> None:
    with EventLog(folder / "events.jsonl") as log:
        log(Event(what, facts))


def nothing() -> None:
    pass


@pytest.mark.parametrize("lost", [TAKEN, WRONG], ids=["to a listener", "to a silo of others"])
def test_a_simulator_that_lost_a_port_is_begun_again(folder, starts, lost):
    def finish() -> None:
        happens(folder, Happening.FINISH)
        RunDirectory(folder).set_status("finished")

    happens(folder, Happening.START)  # in an earlier job
    said = starts((lost, nothing), ("done", finish))
    simulator.simulate(folder, ["silo-1", "silo-2"])
    assert said == [lost, "done"]
    assert (folder / "flare.txt").read_text() == f"{lost}\ndone\n"


def test_a_run_that_is_under_way_is_not_begun_again_when_a_silo_dies(folder, starts):
    said = starts((WRONG, lambda: happens(folder, Happening.START)))
    with pytest.raises(RunError, match=r"flare\.txt: FLARE's simulator ended too early; this is its log"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(said) == 1


def test_after_three_times_the_log_is_named(folder, starts):
    said = starts((TAKEN, nothing))
    with pytest.raises(RunError, match=r"flare\.txt: FLARE's simulator ended too early; this is its log"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert said == [TAKEN] * 3


def test_whatever_else_it_ends_by_is_not_tried_again(folder, starts):
    (folder / "flare.txt").write_text(f"{TAKEN}\n")  # of an earlier try
    said = starts(("ImportError: no such module", nothing))
    with pytest.raises(RunError, match=r"flare\.txt: FLARE's simulator ended too early; this is its log"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(said) == 1


def test_what_stopped_a_run_is_said_at_once(folder, starts):
    said = starts(("bye", lambda: happens(folder, Happening.STOP, text="too few silos")))
    with pytest.raises(RunError, match=r"^too few silos$"):
        simulator.simulate(folder, ["silo-1", "silo-2"])
    assert len(said) == 1
