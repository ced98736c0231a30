"""A run on a cluster is the same, to the last bit, as one on the local engine; whatever happens to nodes."""

import json
import threading
import time
from typing import Any

from cosilo import Run
from cosilo.comparison.compare import run_plan
from cosilo.comparison.plan import make_plan
from cosilo.config import build
from cosilo.coordination.run_loop import contract_of
from cosilo.engines.ray.carrier import RayCarrier
from cosilo.engines.ray.cluster import connected
from cosilo.engines.ray.engine import RayEngine
from cosilo.protocol.carrier import Answer, Ask, Failure, FailureKind
from cosilo.protocol.wire import encode
from cosilo.runs.journal import replies_in

TIMES = {"seconds", "at", "digest", "chain", "checksum", "seal"}
#: What a record tells of how it was made.
RUN = {"minutes", "spent", "machine", "date"}


def outcome(run: Run) -> dict[str, Any]:
    """Results, replies as they lie in the journal, and all that left the silos; without when."""
    replies = {folder.name: replies_in(folder) for folder in (run.folder / "journal").glob("*-*")}
    audits = {
        name: [
            {key: value for key, value in line.items() if key not in TIMES}
            for line in map(json.loads, run.audit_path(name).read_text().splitlines())
            if line.get("way", "out") == "out" and not line.get("again")
        ]
        for name in run.about["silos"]
    }
    return {"result": run.result, "replies": replies, "audits": audits}


def wait_until(true: Any) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def test_results_journals_and_audit_logs_are_those_of_the_local_engine(bench, tmp_path):
    here = bench.federation("local").run(tmp_path / "here")
    assert bench.nodes() == {}
    there = bench.federation().run(tmp_path / "there")
    assert outcome(there) == outcome(here)
    assert outcome(there)["replies"]
    assert len(set(bench.nodes().values())) == 3
    assert there.about["engine"] == "ray"
    predicted = [run.silos["silo-4"].predict(here.silos["silo-1"].pool) for run in (here, there)]
    assert predicted[0].tolist() == predicted[1].tolist()


def test_a_node_that_is_killed_in_the_middle_changes_nothing(bench, add_node, tmp_path, capfd):
    here = bench.federation("local").run(tmp_path / "here")
    for who in "012345":
        (bench.folder / f"hold-{who}").touch()
    others = {node.node_id: node for node in bench.cluster.worker_nodes}
    killed: list[str] = []

    def kill() -> None:
        wait_until(lambda: set(bench.nodes().values()) & set(others))
        killed.append(next(node for node in bench.nodes().values() if node in others))
        bench.lose(others[killed[0]])
        for path in bench.folder.glob("hold-*"):
            path.unlink()

    killer = threading.Thread(target=kill)
    killer.start()
    there = bench.federation().run(tmp_path / "there")
    killer.join()
    add_node()
    assert killed
    assert there.failures == []
    assert outcome(there) == outcome(here)
    assert killed[0] not in bench.nodes().values()
    printed = capfd.readouterr()
    assert "aylet" not in printed.out + printed.err


def call(carrier: RayCarrier, number: int, step: str, silos: list[str], timeout: Any = None) -> list[Answer]:
    ask = Ask(number, step, encode({}), carrier.contract.hash)
    return list(carrier.call(silos, lambda _: ask, timeout))


def opened(bench: Any, folder: Any, **changes: Any) -> tuple[RayCarrier, list[str]]:
    """A carrier alone, for a method of one step, in a run directory."""
    federation = bench.federation(method={"use": "local"}, **changes)
    run = federation.open_folder(folder)
    carrier = RayCarrier(run.folder, federation.silos)
    contract = contract_of(run, federation.method, federation.terms())
    carrier.open(federation.method, contract, folder / "silos")
    return carrier, [silo.name for silo in federation.silos]


def test_a_node_that_is_added_takes_silos_over(bench, add_node, tmp_path):
    with connected(bench.address):
        carrier, names = opened(bench, tmp_path / "run")
        node = None
        try:
            assert len(call(carrier, 1, "hello", names)) == 6
            node = add_node()
            asked = 1
            while len(carrier._hosts._shared) < 4:
                asked += 1
                assert asked < 400
                assert not [a for a in call(carrier, asked, "hello", names) if isinstance(a.content, Failure)]
                time.sleep(0.2)
            answers = call(carrier, asked + 1, "train", names)
        finally:
            carrier.close()
            if node is not None:
                bench.cluster.remove_node(node)
    assert not [answer for answer in answers if isinstance(answer.content, Failure)]
    assert node.node_id in bench.nodes().values()


def test_a_step_that_takes_too_long_is_stopped_and_one_that_kills_its_host_is_asked_twice(bench, tmp_path):
    (bench.folder / "hold-1").touch()
    (bench.folder / "die-4").touch()
    with connected(bench.address):
        carrier, names = opened(bench, tmp_path / "run")
        try:
            call(carrier, 1, "hello", names)
            found = {answer.silo: answer.content for answer in call(carrier, 2, "train", names, 15.0)}
            (bench.folder / "hold-1").unlink()
            (bench.folder / "die-4").unlink()
            again = call(carrier, 3, "train", names)
        finally:
            carrier.close()
    failed = {name: content for name, content in found.items() if isinstance(content, Failure)}
    assert failed == {
        "silo-2": Failure(FailureKind.TIMEOUT, "silo 'silo-2': took longer than its timeout of 15 s"),
        "silo-5": Failure(
            FailureKind.LOST, "silo 'silo-5': its host on the cluster died in the middle of the step, twice"
        ),
    }
    assert len(found) == 6
    assert not [answer for answer in again if isinstance(answer.content, Failure)]


def test_runs_of_a_comparison_go_side_by_side_and_are_those_of_one_machine(bench, tmp_path):
    values = bench.values(workers=1)
    source = build.Source("recipe.toml", bench.folder)
    plan = make_plan(values, source, ["local", "cofed"], 2)
    here = run_plan(plan, tmp_path / "here")
    bench.clear()
    # Ray counts the CPU of a node that an earlier test took away for a while yet.
    wait_until(lambda: RayEngine(bench.address).runs_at_once(1) == 3)
    (bench.folder / "hold-0").touch()
    there, lines = tmp_path / "there", []
    at_once: list[int] = []

    def release() -> None:  # when the first silo of several runs is being trained
        begun = "*/journal/*-train"
        try:
            wait_until(lambda: len(list(there.glob(begun))) == 3)
            at_once.append(len(list(there.glob(begun))))
        finally:
            (bench.folder / "hold-0").unlink()

    releaser = threading.Thread(target=release)
    releaser.start()
    found = run_plan(plan, there, lines.append, engine=RayEngine(bench.address))
    releaser.join()
    assert not found.failures
    assert at_once == [3]
    assert "3 runs at once: the cluster has room for the workers of so many" in lines
    assert not found.failures
    for cell, run in here.runs.items():
        assert found.runs[cell].result == run.result

    again: list[str] = []
    run_plan(plan, there, again.append, engine=RayEngine(bench.address))
    assert sum("finished before" in line for line in again) == 4


REPRODUCTION = """
workers = 1

[simulation]
dataset = "digits"
split = { use = "iid", silos = 3, size = 50 }
learners = [{ use = "own.Bayes" }]

[pool]
rest = true
size = 100

[reproduces]
paper = "CoFED"
what = "Fig. 99"
shows = "digits"
methods = ["local", "cofed"]
minutes = { laptop = 1 }
why.laptop = "It is a test."

[reproduces.case.whole]

[[reproduces.number]]
text = "relative accuracy"
of = "whole.cofed.relative"
paper = 1.0

[[reproduces.number]]
text = "accuracy alone"
of = "whole.local.accuracy"
"""


def test_seeds_and_methods_of_a_reproduction_go_side_by_side_to_the_same_record(bench, tmp_path, cosilo):
    recipe = bench.folder / "mine.toml"
    recipe.write_text(REPRODUCTION)
    said = {}
    for name, where in {"here": (), "there": ("--engine", "ray", "--address", bench.address)}.items():
        code, _, said[name] = cosilo("reproduce", recipe, "--seeds", 2, "--dir", tmp_path / name, *where)
        assert code == 0
    assert "runs at once: the cluster has room" not in said["here"]
    assert "mine: 3 runs at once: the cluster has room" in said["there"]
    here, there = (
        {key: value for key, value in json.loads(path.read_text()).items() if key not in RUN}
        for path in (tmp_path / name / "mine-laptop" / "record.json" for name in said)
    )
    assert here == there
    assert there["seeds"] == [0, 1]
    runs = list((tmp_path / "there").glob("mine-laptop/whole/*-seed*"))
    assert len(runs) == 4
    assert {Run(run).about["engine"] for run in runs} == {"ray"}
