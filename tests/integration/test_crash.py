"""Kill the process at many points of a run, resume, and compare with a run that nothing disturbed.

The points are file operations: a process that is killed between two of them has left the same on disk as one
that was killed just before the second. An audit hook of Python counts them, so nothing of cosilo is replaced.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from cosilo import CoFED, Federation, Run, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import CosiloError, RunError

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

OPERATIONS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}


@pytest.fixture(scope="module")
def make(silos, pool):
    """The same federation every time: trees, a network, a hand-written learner; two rounds."""
    X, y = silos()[0].data.all
    networks = [
        Silo("network", X, y, MLPClassifier((8,), max_iter=5)),
        Silo("torch", X, y, Network(torch.nn.Linear(64, 3), Training(epochs=2, lr=0.01))),
        Silo("forest", X, y, RandomForestClassifier(3)),
    ]
    method = CoFED(alpha=0.4, rounds=2, weights="accuracy", update_from="auto")

    def made(workers=0, names=None):
        members = [silo for silo in [*silos(), *networks] if names is None or silo.name in names]
        return Federation(members, pool, method, seed=5, engine=LocalEngine(workers))

    return made


def run_until(federation: Federation, folder: Path, at: int | None) -> int | None:
    """Run in a child that dies at its n-th file operation; None if it died, else how many there were."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        coordinator, count, inside = os.getpid(), 0, str(folder)

        def hook(event: str, arguments: tuple) -> None:
            nonlocal count
            # What is shown while a run goes on is written once a second: another number of times each time.
            path = str(arguments[0]) if event in OPERATIONS else ""
            if path.startswith(inside) and "so_far" not in path:
                count += 1
                if count == at:
                    os.kill(coordinator, signal.SIGKILL)
                    signal.pause()  # a worker: it ends with its coordinator

        sys.addaudithook(hook)
        try:
            federation.run(folder)
            os.write(write, str(count).encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        count = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    assert count.isdigit(), f"the run failed instead of being killed: {count}"
    return int(count)


def forms(ask: dict) -> dict:
    """What came in, without the time that it took."""
    return {name: arrival["fields"] for name, arrival in sorted(ask["arrivals"].items())}


def outcome(run: Run, pool: np.ndarray) -> dict:
    """Final models and everything a report shows, without the timing."""
    asks = [{**ask, "seconds": 0, "arrivals": forms(ask)} for ask in run.asks()]
    models = {}
    for name, silo in run.silos.items():
        learner = silo.learner
        models[name] = (learner.predict_proba if learner.has_probabilities else learner.predict)(
            pool
        ).tolist()
    times = {"at", "seconds", "digest", "chain", "checksum"}
    left = {
        name: [
            {key: value for key, value in line.items() if key not in times}
            for line in run.audit(name)
            if line.get("way", "out") == "out" and not line.get("again")
        ]
        for name in run.silos
    }
    return {"result": run.result, "asks": asks, "models": models, "left": left}


@pytest.fixture(scope="module")
def undisturbed(make, pool, tmp_path_factory):
    return outcome(make().run(tmp_path_factory.mktemp("undisturbed") / "run"), pool)


@pytest.fixture(scope="module")
def operations(make, tmp_path_factory):
    """How many file operations a run in process has."""
    return run_until(make(), tmp_path_factory.mktemp("counted") / "run", None)


def points(make, tmp_path, workers, how_many):
    total = run_until(make(workers), tmp_path / "count", None)
    assert total > 100
    return np.unique(np.linspace(1, total, how_many).astype(int)).tolist()


def kill_and_resume(make, pool, tmp_path, undisturbed, workers, how_many, part=0, parts=1):
    for at in points(make, tmp_path, workers, how_many)[part::parts]:
        folder = tmp_path / f"at-{at}"
        assert run_until(make(workers), folder, at) is None, f"was not killed at operation {at}"
        # A worker ends with its coordinator, but not at the same moment.
        left = {"interrupted", "finished"} | ({"running"} if workers else set())
        assert not (folder / "run.json").exists() or Run(folder).status in left
        assert outcome(make(workers).run(folder), pool) == undisturbed, f"killed at operation {at}"
        shutil.rmtree(folder)


def test_killed_at_many_points_in_process(make, pool, tmp_path, undisturbed):
    kill_and_resume(make, pool, tmp_path, undisturbed, workers=0, how_many=25)


def test_killed_at_many_points_with_workers(make, pool, tmp_path, undisturbed):
    kill_and_resume(make, pool, tmp_path, undisturbed, workers=2, how_many=8)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(8))
def test_killed_at_every_single_point(make, pool, tmp_path, undisturbed, part):
    kill_and_resume(make, pool, tmp_path, undisturbed, workers=0, how_many=10**6, part=part, parts=8)


def test_killed_again_and_again(make, pool, tmp_path, undisturbed):
    folder, deaths = tmp_path / "run", 0
    while run_until(make(workers=deaths % 3), folder, at=60 + 5 * deaths) is None:
        deaths += 1
    assert deaths >= 5
    assert outcome(make().run(folder), pool) == undisturbed


def run_with_a_worker_killed(federation: Federation, folder: Path, at: int) -> bool:
    """Run in a child, one of whose workers dies at its n-th file operation, once; whether one died."""
    mark = folder.with_name(f"{folder.name}-died")
    child = os.fork()
    if child == 0:
        coordinator, count, inside = os.getpid(), 0, str(folder)

        def hook(event: str, arguments: tuple) -> None:
            nonlocal count
            if os.getpid() == coordinator or event not in OPERATIONS:
                return
            if str(arguments[0]).startswith(f"{inside}/"):
                count += 1
                if count == at and not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            federation.run(folder)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return mark.exists()


def test_a_worker_that_is_killed_changes_nothing(make, pool, tmp_path, undisturbed):
    """It is started again and asked once more; not even a failure is noted."""
    for at in (5, 21, 40, 63, 90):
        folder = tmp_path / f"at-{at}"
        assert run_with_a_worker_killed(make(2), folder, at), f"there is no operation {at} in a worker"
        assert Run(folder).status == "finished"
        assert outcome(make(2).run(folder), pool) == undisturbed, f"killed at operation {at}"
        shutil.rmtree(folder)


DAMAGE = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(os.urandom(200)),
    "gone": lambda path: path.unlink(),
}


@pytest.fixture(scope="module")
def killed(make, pool, tmp_path_factory):
    """A run of two silos, whose folders are unlike each other, that was killed; and one that was not."""
    folder, names = tmp_path_factory.mktemp("damaged"), ["tree", "torch"]
    undisturbed = outcome(make(names=names).run(folder / "undisturbed"), pool)
    total = run_until(make(names=names), folder / "count", None)
    assert run_until(make(names=names), folder / "killed", int(total * 0.7)) is None
    return folder / "killed", undisturbed, lambda: make(names=names)


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_run_is_one_line_or_no_different(killed, pool, tmp_path, damage):
    """Whatever file of an interrupted run is damaged: never a traceback, never another result."""
    whole, undisturbed, make = killed
    files = sorted(path for path in whole.rglob("*") if path.is_file())
    noticed = 0
    # Every third file for each kind of damage, another third for each.
    for place, path in enumerate(files[sorted(DAMAGE).index(damage) % 3 :: 3]):
        if path.name == ".lock":
            continue
        folder = tmp_path / f"{damage}-{place}"
        shutil.copytree(whole, folder)
        DAMAGE[damage](folder / path.relative_to(whole))
        lines: list[str] = []
        try:
            run = make().run(folder)
        except CosiloError as error:
            lines = str(error).splitlines()
        if lines:
            assert len(lines) == 1, (path, lines)
            noticed += 1
        else:
            assert without_damaged_log(outcome(run, pool)) == without_damaged_log(undisturbed), path
        shutil.rmtree(folder)
    assert noticed >= 3


def without_damaged_log(outcome: dict) -> dict:
    """An audit log that somebody cut cannot say what was in it; results and models have to be right."""
    return {"result": outcome["result"], "models": outcome["models"]}


def test_a_completed_step_is_not_repeated(make, tmp_path, operations):
    assert run_until(make(), tmp_path / "run", int(operations * 0.8)) is None
    trained = sorted(path.parent.name for path in (tmp_path / "run/journal").glob("*/done.json"))
    assert "00002-train" in trained
    run = make().run(tmp_path / "run")
    asked_again = [e["step"] for e in _after_resume(run) if e["event"] == "ask"]
    assert "train" not in asked_again
    assert asked_again


def _after_resume(run: Run) -> list[dict]:
    events = run.events()
    place = max(i for i, event in enumerate(events) if event["event"] == "resume")
    return events[place:]


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="needs root to mount a small disk")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_full_disk_stops_the_run_and_more_space_lets_it_go_on(make, pool, tmp_path, undisturbed, workers):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small disk here")
    try:
        federation = make(workers)
        with pytest.raises(RunError, match="the disk is full; free some space, then resume the run"):
            federation.run(disk / "run")
        completed = len(list((disk / "run/journal").glob("*/done.json")))
        subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
        run = make(workers).run(disk / "run")
        assert outcome(run, pool) == undisturbed
        assert completed >= 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)
