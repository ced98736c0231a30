"""The same federation in process and with workers; timeouts, lost processes, quorum, bad replies."""

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from pydantic import Field
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from cosilo import CoFED, Federation, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.engines.local.in_process import InProcess
from cosilo.engines.local.workers import Workers
from cosilo.errors import RunError
from cosilo.methods import Method, step
from cosilo.protocol.carrier import Ask, Failure
from cosilo.protocol.contract import Contract
from cosilo.protocol.findings import Findings
from cosilo.protocol.wire import encode


class Shaky:
    """Draws from the global random state, in training and in prediction."""

    def fit(self, X, y):
        self.bias = np.random.normal(size=X.shape[1])  # noqa: NPY002

    def predict(self, X):
        noise = np.random.normal(size=len(X))  # noqa: NPY002
        return (X @ self.bias + noise > 0).astype(int)


def forms(ask: dict) -> dict:
    """What came in, without the time that it took."""
    return {name: arrival["fields"] for name, arrival in sorted(ask["arrivals"].items())}


def outcome(run, pool) -> dict:
    """Everything a run came to, without its timing."""
    asks = [{**ask, "seconds": 0, "arrivals": forms(ask)} for ask in run.asks()]
    labels = {name: silo.label_pool().tolist() for name, silo in run.silos.items() if name != "shaky"}
    return {
        "result": run.result,
        "asks": asks,
        "labels": labels,
        "audit": {
            name: [(line["ask"], line["step"], line["fields"], line["bytes"]) for line in run.audit(name)]
            for name in run.silos
        },
    }


def test_the_same_results_in_process_and_with_any_number_of_workers(tmp_path, silos, pool):
    X, y = pool[:60], ["a", "b"] * 30
    extra = [
        Silo("forest", *silos()[0].data.all, RandomForestClassifier(10)),
        Silo("network", *silos()[0].data.all, MLPClassifier((16,), max_iter=30)),
        Silo("shaky", X, y, Shaky()),
        Silo("shaky2", X, y, Shaky()),
    ]
    outcomes = []
    for workers in (0, 1, 2, 7):
        federation = Federation(
            [*silos(), *extra], pool, CoFED(alpha=0.3), seed=3, engine=LocalEngine(workers)
        )
        outcomes.append(outcome(federation.run(tmp_path / str(workers)), pool))
    for other in outcomes[1:]:
        assert other == outcomes[0]
    again = Federation([*silos(), *extra], pool, CoFED(alpha=0.3), seed=4).run(tmp_path / "seed")
    assert outcome(again, pool) != outcomes[0]


class Answered(Findings):
    """Who answered the first ask, and who the second."""

    first: list[str] = Field(default_factory=list)
    second: list[str] = Field(default_factory=list)


class Probe(Method):
    """Steps for trying the engine."""

    name: ClassVar[str] = "probe"
    victim: str = "bayes"
    do: str = "nothing"

    def coordinate(self, silos):
        found = silos.found(Answered)
        found.first = sorted(silos.ask("act", {"big": np.zeros(10)}))
        found.second = sorted(silos.ask("act", each=lambda name: {"big": np.zeros(len(name))}))

    @step(length="size")
    def act(self, silo, big):
        if silo.name == self.victim:
            if self.do == "sleep":
                time.sleep(60)
            if self.do == "nap":
                time.sleep(0.5)
            if self.do == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            times = {"die once": 1, "die twice": 2}.get(self.do, 0)
            died = sorted(Path().glob(f"{self.victim}-*"))
            if len(died) < times:
                Path(f"{self.victim}-{len(died)}").touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return {"length": len(big)}


def probe(silos, do, folder, workers=0, **options):
    members = silos(shares=["size"])
    return Federation(members, method=Probe(do=do), engine=LocalEngine(workers), **options).run(folder)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_silo_that_is_too_slow_is_left_out_and_its_worker_lives_on(tmp_path, silos, workers):
    started = time.monotonic()
    run = probe(silos, "sleep", tmp_path / "run", workers=workers, timeout=0.5)
    assert run.result["first"] == run.result["second"] == ["nearest", "tree"]
    failure = run.result["failures"][0]
    assert failure["kind"] == "timeout"
    assert failure["text"] == "silo 'bayes': took longer than its timeout of 0.5 s"
    assert time.monotonic() - started < 30  # far less than one sleep


def test_in_process_a_late_reply_is_refused(tmp_path, silos):
    run = probe(silos, "nap", tmp_path / "run", timeout=0.2)
    assert run.result["first"] == ["nearest", "tree"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_dies_twice_costs_one_reply(tmp_path, silos, workers):
    run = probe(silos, "die", tmp_path / "run", workers=workers)
    assert run.result["first"] == ["nearest", "tree"]
    assert "its worker process died (signal 9)" in run.result["failures"][0]["text"]


def test_a_silo_that_was_lost_takes_part_again_from_the_next_ask(tmp_path, silos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = probe(silos, "die twice", tmp_path / "run", workers=1)
    assert run.result["first"] == ["nearest", "tree"]
    assert run.result["second"] == ["bayes", "nearest", "tree"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_dies_once_is_started_again_and_asked_again(tmp_path, silos, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    run = probe(silos, "die once", tmp_path / "run", workers=workers)
    assert run.result["failures"] == []
    assert run.result["first"] == run.result["second"] == ["bayes", "nearest", "tree"]


def test_below_the_quorum_the_run_stops_and_can_go_on(tmp_path, silos, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError) as error:
        probe(silos, "die twice", tmp_path / "run", workers=1, quorum=1.0)
    assert "step 'act': 2 of 3 silos answered, the quorum is 3" in str(error.value)
    assert "silo 'bayes': its worker process died" in str(error.value)
    run = probe(silos, "die twice", tmp_path / "run", workers=1, quorum=1.0)
    assert run.result["first"] == ["bayes", "nearest", "tree"]


class Liar(Method):
    """Its silos answer whatever they like."""

    name: ClassVar[str] = "liar"

    def coordinate(self, silos):
        silos.found(Answered).first = sorted(silos.ask("act"))

    @step(votes="labels")
    def act(self, silo):
        good = np.zeros(len(silo.pool), np.int8)
        bad = {"bayes": good[:-1], "nearest": good + 3}
        return {"votes": bad.get(silo.name, good)}


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_votes_are_rejected_counted_and_named(tmp_path, silos, pool, workers):
    federation = Federation(silos(), pool, Liar(), engine=LocalEngine(workers), quorum=0.3)
    run = federation.run(tmp_path / "run")
    assert run.result["first"] == ["tree"]
    assert sorted(failure["text"] for failure in run.result["failures"]) == [
        "silo 'bayes': its reply was rejected: field 'votes': got 299 labels; the pool has 300 instances",
        "silo 'nearest': its reply was rejected: field 'votes': label 3 of instance 0 is outside the task; "
        "wants 0 … 2, or -1 for an abstention",
    ]


@pytest.mark.parametrize("make", [InProcess, lambda silos: Workers(silos, 2)], ids=["here", "workers"])
def test_a_carrier_alone_gives_one_answer_for_each_silo(tmp_path, silos, make):
    carrier = make(silos(shares=["size"]))
    method = Probe(do="nothing")
    contract = Contract.of(method)
    carrier.open(method, contract, tmp_path)
    try:
        request = Ask(1, "act", encode({"big": np.zeros(4)}), contract.hash)
        answers = list(carrier.call(["tree", "nearest"], lambda _: request, None))
    finally:
        carrier.close()
    assert sorted(answer.silo for answer in answers) == ["nearest", "tree"]
    assert not any(isinstance(answer.content, Failure) for answer in answers)


def test_large_messages_travel_whole_both_ways(tmp_path, silos):
    class_ = Echo()
    run = Federation(silos(shares=["logits"]), method=class_, engine=LocalEngine(2)).run(tmp_path / "run")
    assert run.result["sums"] == {"tree": 3 * 2.0**21, "bayes": 3 * 2.0**21, "nearest": 3 * 2.0**21}


class Sums(Findings):
    """What came back, added up."""

    sums: dict[str, float] = Field(default_factory=dict)


class Echo(Method):
    """Sends 16 MB to everyone and back."""

    name: ClassVar[str] = "echo"

    def coordinate(self, silos):
        replies = silos.ask("act", {"big": np.ones(2**21)})
        silos.found(Sums).sums = {name: float(reply.array("big").sum()) for name, reply in replies.items()}

    @step(big="logits")
    def act(self, silo, big):
        return {"big": big * 3}


def test_no_process_is_left_behind(tmp_path, silos):
    import multiprocessing

    probe(silos, "die", tmp_path / "run", workers=3)
    assert multiprocessing.active_children() == []
