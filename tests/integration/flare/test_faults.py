"""What goes wrong between organisations: who is told what, and what the run does then."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from cosilo.errors import RunError
from cosilo.report import write_report
from cosilo.runs.audit import outgoing
from cosilo.runs.run_folders import runs_in

pytest.importorskip("nvflare")
from cosilo.engines.flare import processes
from cosilo.engines.flare.kit_settings import HOLD
from cosilo.engines.flare.party_files import read_silo
from cosilo.engines.flare.runs import resume
from cosilo.engines.flare.session import until_reachable

LOST = "silo 'svm': not connected; rejoins when it reconnects"


def kill(kit):
    for number in processes.running(kit):
        os.kill(number, signal.SIGKILL)


class Stage:
    """Two silos with networks that train when they are let; a run that is followed meanwhile."""

    def __init__(self, deployment, until, pool):
        self.deployment, self.until, self._pool = deployment, until, pool
        self.before = {run.folder for run in self.runs()}
        deployment.write_networks("tree", "svm", learner='"tricks.Net"')

    def runs(self):
        return runs_in(self.deployment.folder / "runs")

    def submit(self, **values):
        return self._pool.submit(self.deployment.submit, ("tree", "svm"), "fedavg", **values)

    @property
    def run(self):
        return next((run for run in self.runs() if run.folder not in self.before), None)

    def until_answered(self, step, name):
        wanted = {"event": "reply", "step": step, "silo": name}
        self.until(lambda: self.run and any(wanted.items() <= event.items() for event in self.run.events()))

    def hold(self, name, ask):
        """A file: while it is there, the silo waits in the middle of an ask."""
        path = self.deployment.folder / f"hold-{name}-{ask}"
        path.touch()
        return path

    def computed(self, name):
        """The numbers of the asks for which a silo began to compute."""
        path = self.deployment.folder / f"computed-{name}"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def left(self, name):
        """The numbers of the asks that a silo answered, by its own audit log."""
        return [line["ask"] for line in outgoing(self.deployment.record(self.run, name) / "audit.jsonl")]


@pytest.fixture
def stage(deployment, until):
    for path in (*deployment.folder.glob("computed-*"), *deployment.folder.glob("hold-*")):
        path.unlink()
    with ThreadPoolExecutor(1) as pool:
        yield Stage(deployment, until, pool)
        for path in deployment.folder.glob("hold-*"):
            path.unlink()


def test_a_silo_that_is_killed_in_a_step_takes_part_again_when_it_is_back(stage):
    busy, waits = stage.hold("svm", 6), stage.hold("tree", 7)
    following = stage.submit(_rounds=3)
    stage.until_answered("train", "tree")
    stage.until(lambda: 6 in stage.computed("svm"))
    kill(stage.deployment.kits["svm"])
    busy.unlink()
    stage.deployment.start("svm")
    stage.until(lambda: (stage.run.folder / HOLD).exists())
    waits.unlink()
    run = following.result()

    assert run.status == "finished"
    assert [(one["ask"], one["step"], one["text"]) for one in run.result["failures"]] == [
        (6, "train", LOST),
        (7, "judge", LOST),
    ]
    assert LOST in stage.deployment.told
    assert LOST.replace("'", "&#39;") in write_report(run).read_text()
    assert "continues where it stopped" in stage.deployment.told
    took_part = {ask["number"]: sorted(ask["arrivals"]) for ask in run.asks() if ask["step"] == "train"}
    assert took_part == {6: ["tree"], 9: ["svm", "tree"], 12: ["svm", "tree"]}
    # It went on with the model that it had: nothing from before was done again.
    assert stage.left("svm") == [1, 2, 3, 4, *range(9, 15)]
    assert sorted(set(stage.computed("tree"))) == sorted(stage.computed("tree"))


@pytest.mark.slow
def test_a_coordinator_that_is_killed_goes_on_where_it_was(stage):
    """No silo computes a completed step again, and the result is that of a run that nothing disturbed."""
    deployment = stage.deployment
    holds = [stage.hold(name, 9) for name in ("tree", "svm")]
    following = stage.submit(_rounds=3)
    stage.until(lambda: all(9 in stage.computed(name) for name in ("tree", "svm")))
    kill(deployment.kits["server"])
    for hold in holds:
        hold.unlink()
    with pytest.raises(RunError) as stopped:
        following.result()
    assert str(stopped.value).endswith(f"completed steps are kept: cosilo resume {stage.run.folder}")
    deployment.start_server()
    until_reachable(deployment.coordinator)
    told = []
    run = resume(stage.run.folder, told.append)
    assert run.status == "finished"
    assert "continues where it stopped" in told
    for name in ("tree", "svm"):
        assert stage.computed(name) == sorted(set(stage.computed(name)))
        again = [line for line in outgoing(deployment.record(run, name) / "audit.jsonl") if line.get("again")]
        assert {line["ask"] for line in again} <= {9}
    undisturbed = deployment.submit(("tree", "svm"), "fedavg", _rounds=3)
    assert run.result == undisturbed.result
    assert {k: v.tobytes() for k, v in run.global_weights().items()} == {
        k: v.tobytes() for k, v in undisturbed.global_weights().items()
    }


@pytest.mark.slow
def test_a_run_without_a_quorum_stops_and_goes_on_when_it_is_resumed(stage):
    busy = stage.hold("svm", 6)
    following = stage.submit(_rounds=2, quorum=1.0)
    stage.until(lambda: 6 in stage.computed("svm"))
    kill(stage.deployment.kits["svm"])
    busy.unlink()
    with pytest.raises(RunError) as stopped:
        following.result()
    folder = stage.run.folder
    assert str(stopped.value).splitlines() == [
        "step 'train': 1 of 2 silos answered, the quorum is 2:",
        LOST,
        f"completed steps are kept: cosilo resume {folder}",
    ]
    stage.deployment.start("svm")
    told = []
    run = resume(folder, told.append)
    assert run.status == "finished"
    assert run.result["failures"] == []
    steps = [line.split(":")[0] for line in told if ": asked" in line]
    assert steps[0] == "train"  # what was before is neither done nor told again
    assert LOST not in told
    assert stage.computed("tree") == sorted(set(stage.computed("tree")))


@pytest.mark.slow
def test_a_slow_silo_has_its_time_for_each_ask(stage):
    late = stage.hold("svm", 6)
    following = stage.submit(_rounds=2, timeout=4.0)
    stage.until_answered("judge", "tree")
    late.unlink()
    run = following.result()
    first = run.result["failures"][0]
    assert (first["ask"], first["text"]) == (6, "silo 'svm': took longer than its timeout of 4 s")
    assert 10 in stage.left("svm")  # the second round
    assert sorted(run.scores("federated")) == ["svm", "tree"]


@pytest.mark.slow
def test_a_silo_that_hangs_does_not_keep_others_and_is_ended_with_the_run(stage):
    stage.hold("svm", 6)  # for ever
    run = stage.submit(_rounds=1, timeout=2.0).result()
    assert list(run.scores("federated")) == ["tree"]
    kit = stage.deployment.kits["svm"]
    stage.until(lambda: len(processes.running(kit)) == 1)  # the process of the job is gone


@pytest.mark.slow
def test_a_silo_with_another_pool_is_refused_and_named(deployment):
    deployment.write_cofed()
    deployment.file("svm").write_text(deployment.file("svm").read_text().replace("pool.csv", "other.csv"))
    pool = (deployment.folder / "pool.csv").read_text().splitlines()
    (deployment.folder / "other.csv").write_text("\n".join([*pool[:-2], pool[-1], pool[-2]]) + "\n")
    with pytest.raises(RunError) as stopped:
        deployment.submit(("tree", "svm"), "cofed")
    why, then = str(stopped.value).splitlines()
    theirs = read_silo(deployment.file("svm")).pool_fingerprint
    assert why == (
        f"silo 'svm': its pool has fingerprint {theirs}, the federation's {deployment.pool}; every silo "
        "needs the same pool, in the same order, and the same labels if it has any"
    )
    assert then.startswith("nothing was computed")
