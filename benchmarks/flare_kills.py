"""Processes of FLARE that are killed on both sides: `python benchmarks/flare_kills.py [COUNT]`.

Two silos and a coordinator in processes of their own do FedAvg for two rounds, with a quorum of all
silos. In every run all processes of one side are killed once by SIGKILL: a silo's or the coordinator's
in turn, a quarter of them in hello, the others spread over the rest of the run. Then that side is started
again and the run is resumed. The models of a run are the same if the global weights and all that both
silos keep of theirs are, to the last bit, those of a run that nothing disturbed. A silo that is gone when
scores are asked for does not stop a run: its scores of that stage are missing then, and the result says so
among the failures; else the result has to be the same too. A run that ends before its kill does not count.
COUNT is the number of kills, 8 unless given; each takes about half a minute.
"""

import argparse
import math
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from cosilo import Run
from cosilo.engines.flare import admission, processes, runs
from cosilo.engines.flare.party_files import FederationSettings, as_federation
from cosilo.engines.flare.reach import check_can_listen
from cosilo.engines.flare.session import until_reachable
from cosilo.errors import ConfigError, RunError
from cosilo.runs.durable_files import read_json, read_lines
from cosilo.runs.run import RunDirectory
from cosilo.runs.silo_state import last_state

SILOS = ("north", "south")
#: Of a silo's file: the same network everywhere, and as many runs a day as this takes.
SILO = """name = "{name}"
path = "{name}.csv"
label = "digit"
learner = {{ use = "mlp", hidden = [8], training = {{ optimiser = "sgd", lr = 0.05, batch = 16 }} }}
shares = ["weights", "size", "metrics"]
[allow]
runs_per_day = 10000
"""
#: How often a run is resumed before it counts as lost.
RESUMED = 5
#: How often a run is begun again that ends before its kill.
_TRIES = 3


def find_port() -> int:
    """A free port below those that connections get.

    A silo that looks for its coordinator again and again may else take the port itself while that is down.
    """
    for port in range(20_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as trial, suppress(OSError):
            trial.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


@dataclass
class Deployment:
    """The processes, and where everything is."""

    folder: Path
    settings: FederationSettings
    kits: dict[str, Path]

    @classmethod
    def make(cls, folder: Path) -> "Deployment":
        """Make the kits and the files of all three."""
        X, y = load_digits(return_X_y=True)
        table = pd.DataFrame(X, columns=[f"p{place}" for place in range(64)])
        table["digit"] = [f"d{label}" for label in y]
        order = np.random.default_rng(0).permutation(len(X))
        for name, part in zip(SILOS, np.array_split(order, len(SILOS)), strict=True):
            table.iloc[part].to_csv(folder / f"{name}.csv", index=False)
            (folder / f"{name}.toml").write_text(SILO.format(name=name))
        port = find_port()
        values = {
            "name": "kills",
            "members": list(SILOS),
            "method": {"use": "fedavg", "rounds": 2},
            "quorum": 1.0,
            "seed": 1,
            "coordinator": {"port": port},
        }
        settings = as_federation(values, "federation")
        return cls(folder, settings, admission.make_all(settings, folder / "kits"))

    @property
    def coordinator(self) -> Path:
        """The coordinator's kit, both parts of it."""
        return self.folder / "kits" / "coordinator"

    def start(self, name: str) -> None:
        """Start a silo, or the coordinator's server."""
        with (self.folder / f"{name}.log").open("a") as log:
            if name in SILOS:
                records = self.folder / "silos" / name
                processes.start_site(self.kits[name], self.folder / f"{name}.toml", records, log)
                return
            self._wait_for_port()
            processes.start_server(self.kits[name], self.folder / "runs", log)
        until_reachable(self.coordinator)

    def _wait_for_port(self) -> None:
        """Wait until what was killed lets go of its port: that is after its main thread has ended."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with suppress(ConfigError):
                check_can_listen(self.kits["server"])
                return
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        """Kill all processes of a kit, and wait until they are gone."""
        for number in processes.running(self.kits[name]):
            os.kill(number, signal.SIGKILL)
        while processes.running(self.kits[name]):
            time.sleep(0.05)

    def submit(self) -> RunDirectory:
        """A new run, to its end."""
        return runs.submit(self.settings, self.coordinator, lambda line: None)

    def outcome(self, run: RunDirectory) -> "Outcome":
        """What a run ended with."""
        weights = Run(run.folder).global_weights()
        models: dict[str, Any] = {"global": {name: one.tobytes() for name, one in weights.items()}}
        for name in SILOS:
            state = last_state(self.folder / "silos" / name / run.folder.name)
            assert state is not None
            models[name] = (state.models, state.files)
        return Outcome(models, read_json(run.folder / "result.json"))


@dataclass(frozen=True)
class Outcome:
    """The global weights, and by silo where its models are and their checksums; and the result."""

    models: dict[str, Any]
    result: dict[str, Any]

    def differs(self, expected: "Outcome") -> str:
        """What is not as expected, in a word; nothing if all is."""
        if self.models != expected.models:
            return "MODELS"
        if self.result == expected.result:
            return ""
        failed = [one for one in self.result["failures"] if one["step"] == "evaluate"]
        if failed != self.result["failures"] or any(one["kind"] != "lost" for one in failed):
            return "RESULT"
        scores, whole = self.result["scores"], expected.result["scores"]
        missing = sum(len(whole[stage]) - len(scores.get(stage, {})) for stage in whole)
        same = all(whole[stage].get(name) == one for stage in scores for name, one in scores[stage].items())
        return "scores" if same and missing == len(failed) else "RESULT"


@dataclass(frozen=True)
class Moment:
    """When to kill: some seconds after hello was asked, or when there were this many events."""

    seconds: float | None = None
    events: int = 0

    def has_come(self, events: list[dict[str, Any]], hello_since: float | None) -> bool:
        """Whether it is now; `hello_since` is when hello was first seen to be asked."""
        if self.seconds is None:
            return len(events) >= self.events
        return hello_since is not None and time.monotonic() - hello_since >= self.seconds


def moments(count: int, events: list[dict[str, Any]]) -> list[Moment]:
    """One for each kill, in turn for both sides: a quarter in hello, the others over the rest of a run."""
    done = next(place for place, event in enumerate(events) if event["event"] == "answered")
    seconds, rest = float(events[done]["seconds"]), len(events) - done - 2
    found, in_hello = [], math.ceil(count / 4)
    later = count - in_hello
    hello = [Moment(seconds=0.8 * seconds * place / in_hello) for place in range(in_hello)]
    others = [Moment(events=done + 2 + rest * place // max(later, 1)) for place in range(later)]
    for place in range(count):
        # Pairs of a silo's and the coordinator's: one pair in four is in hello.
        in_turn = place // 2 % 4 == 0
        if (in_turn and hello) or not others:
            found.append(hello.pop(0))
        else:
            found.append(others.pop(0))
    return found


@dataclass
class Killed:
    """What came of a run in which one side was killed."""

    place: str
    stopped: bool
    finished: bool
    #: What was not as in an undisturbed run.
    differs: str = ""

    def __str__(self) -> str:
        if not self.finished:
            return "cannot be resumed"
        how = "stopped and resumed" if self.stopped else "went on"
        if self.differs == "scores":
            return f"{how}, the same models; scores of the silo are missing, and the result says so"
        return f"{how}, {f'OTHER {self.differs}' if self.differs else 'identical'}"


def events_of(folder: Path) -> list[dict[str, Any]]:
    """What has happened in a run so far; nothing before it begins."""
    return read_lines(folder / "events.jsonl")


def run_and_kill(deployment: Deployment, name: str, moment: Moment, expected: Outcome) -> Killed | None:
    """One run; None if it ended before the moment came."""
    before = {path.name for path in (deployment.folder / "runs").iterdir()}
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(deployment.submit)
        folder, events = until_killed(deployment, name, moment, before, following.done)
        if folder is None:
            following.exception()  # a machine that is busy loses a silo by itself
            return None
        if name in SILOS:
            following.exception()
        deployment.start(name)
        stopped = following.exception() is not None
    asked = [event["step"] for event in events if event["event"] == "ask"]
    finished = resume(folder)
    differs = deployment.outcome(RunDirectory(folder)).differs(expected) if finished else ""
    return Killed(asked[-1] if asked else "the start", stopped, finished, differs)


def until_killed(
    deployment: Deployment, name: str, moment: Moment, before: set[str], ended: Callable[[], bool]
) -> tuple[Path | None, list[dict[str, Any]]]:
    """Watch a run until the moment comes; returns its folder and what had happened, or None if it ended."""
    hello_since: float | None = None
    while not ended():
        new = [path for path in (deployment.folder / "runs").iterdir() if path.name not in before]
        events = events_of(new[0]) if new else []
        if hello_since is None and any(event.get("step") == "hello" for event in events):
            hello_since = time.monotonic()
        if new and moment.has_come(events, hello_since):
            deployment.kill(name)
            if any(event["event"] == "finish" for event in events_of(new[0])):
                deployment.start(name)
                return None, []
            return new[0], events_of(new[0])
        time.sleep(0.005)
    return None, []


def resume(folder: Path) -> bool:
    """Resume a run until it is finished; False if it cannot be."""
    for _ in range(RESUMED):
        try:
            return runs.resume(folder, lambda line: None).status == "finished"
        except RunError as error:
            print(f"  {str(error).splitlines()[0]}", flush=True)
            if (folder / "run.json").exists() and RunDirectory(folder).status == "refused":
                return False
    return False


def measure(deployment: Deployment, count: int) -> None:
    """Kill as often as wanted, and print what came of it."""
    undisturbed = deployment.submit()
    expected = deployment.outcome(undisturbed)
    found: list[Killed] = []
    planned = moments(count, events_of(undisturbed.folder))
    for number, moment in enumerate(planned):
        name = SILOS[number // 2 % len(SILOS)] if number % 2 == 0 else "server"
        for _ in range(_TRIES):
            one = run_and_kill(deployment, name, moment, expected)
            if one is not None:
                break
            print(f"{name}: the run ended before its kill", flush=True)
        else:
            continue
        found.append(one)
        print(f"{name}: killed in {one.place}: {one}", flush=True)
    print(f"figure kills {len(found)}")
    print(f"figure kills_in_hello {sum(one.place == 'hello' for one in found)}")
    done = [one for one in found if one.finished]
    print(f"figure same_models {sum(one.differs in ('', 'scores') for one in done)}")
    print(f"figure identical {sum(not one.differs for one in done)}")
    print(f"figure scores_missing_and_said {sum(one.differs == 'scores' for one in done)}")
    print(f"figure stops_resumed {sum(one.stopped and one.finished for one in found)}")
    print(f"figure not_resumed {sum(not one.finished for one in found)}")


def main() -> None:
    """Start the processes, measure, and end them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=8, help="how many kills")
    count = parser.parse_args().count
    folder = Path(tempfile.mkdtemp())
    deployment = Deployment.make(folder)
    try:
        for name in ("server", *SILOS):
            deployment.start(name)
        measure(deployment, count)
    finally:
        for kit in deployment.kits.values():
            processes.stop(kit)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
