"""What a silo refuses, and what the coordinator refuses of a silo."""

import json
import re
import shutil
from pathlib import Path

import pytest

from cosilo import Run
from cosilo.errors import RunError
from cosilo.runs.audit import outgoing

pytest.importorskip("nvflare")
from cosilo.engines.flare import processes
from cosilo.engines.flare.job import export_job
from cosilo.engines.flare.kits import CLASSES
from cosilo.engines.flare.runs import resume
from cosilo.engines.flare.session import session

LIES = {
    4: "field 'votes': label 99 of instance 0 is outside the task; wants 0 … 3, or -1 for an abstention",
    7: "field 'votes': got 600 labels; the pool has 300 instances",
    10: "field 'patients' was not declared; declared are ['votes']",
    13: "got N bytes that are not a message (ValueError)",  # a pickle
}


def test_bad_replies_are_rejected_and_named_and_the_run_goes_on(deployment):
    """No label outside the task, no NaN, nothing undeclared, no pickle; and no silo asks another."""
    deployment.write_cofed(tree='{ use = "tricks.liar" }', svm='{ use = "tricks.intruder" }')
    run = deployment.submit(("tree", "svm", "net"), "cofed", _rounds=4, _accept="always", quorum=0.3)
    assert run.status == "finished"
    assert list(run.scores("federated")) == ["net"]
    failures = {(one["ask"], one["silo"]): one["text"] for one in run.result["failures"]}
    for ask, lie in LIES.items():
        told = re.sub(r"\d+ bytes", "N bytes", failures[ask, "tree"])
        assert told == f"silo 'tree': its reply was rejected: {lie}"
    nan = "silo 'tree': its reply was rejected: field 'accuracy': got nan; wants one finite number"
    assert failures[3, "tree"] == nan
    unread = "silo 'svm': sent something that cannot be read where a reply is expected"
    assert {text for (_, name), text in failures.items() if name == "svm"} == {unread}
    assert failures[13, "svm"] == unread
    assert not [name for _, name in failures if name == "net"]

    # What the others said to the silo that asked them: the first two got a message, the last two a pickle.
    answers = (deployment.folder / "intruder.txt").read_text().splitlines()
    assert [line.split()[:2] for line in answers] == [
        [name, kind] for kind in ("bytes", "Bomb") for name in ("tree", "net")
    ]
    assert all("'failure': ['refused', 'only the coordinator may ask']" in line for line in answers[:2])
    assert all("Type 'tricks.Bomb' is not allowed" in line for line in answers[2:])
    assert not (deployment.folder / "exploded").exists()

    # The learner's story is in the silo's logs, and no log of a silo has come to the coordinator.
    assert failures[5, "tree"] == "silo 'tree': step 'update' failed; its own log says why"
    secret = b"patient 4711"
    assert secret in (deployment.record(run, "tree") / "log.txt").read_bytes()
    jobs = [
        path
        for path in deployment.kits["tree"].rglob("log.txt")
        if path.parent.parent == deployment.kits["tree"]
    ]
    assert any(secret in path.read_bytes() for path in jobs)
    here = [path for folder in (deployment.coordinator, run.folder) for path in folder.rglob("*")]
    assert len([path for path in here if path.is_file()]) > 50
    assert not [path for path in here if path.is_file() and secret in path.read_bytes()]


def test_a_policy_that_does_not_allow_a_field_ends_the_run_before_anything_is_computed(deployment):
    deployment.write_cofed()
    deployment.file("tree").write_text('shares = ["metrics"]\n' + deployment.file("tree").read_text())
    with pytest.raises(RunError) as stopped:
        deployment.submit(("tree",), "cofed")
    why, then = str(stopped.value).splitlines()
    assert why == (
        "silo 'tree': does not share 'labels', which cofed needs (step 'label', field 'votes'); "
        "it shares ['metrics']: add 'labels' there to allow it"
    )
    folder = Path(then.removeprefix("nothing was computed; the run is in "))
    run = Run(folder)
    assert run.status == "refused"
    assert {event["step"] for event in run.events() if event["event"] == "ask"} == {"hello"}
    assert not list(deployment.record(run, "tree").glob("state-*"))
    assert [line.get("failure") for line in outgoing(deployment.record(run, "tree") / "audit.jsonl")] == [why]
    with pytest.raises(RunError, match="fix that and submit a new run"):
        resume(folder, print)


def test_a_job_carries_no_code(deployment, tmp_path):
    deployment.write_cofed()
    job = export_job(deployment.federation(("tree", "net"), "cofed"), "a-run", tmp_path, "salt", "")
    files = sorted(str(path.relative_to(job)) for path in job.rglob("*") if path.is_file())
    assert files == [
        "app_net/config/config_fed_client.json",
        "app_server/config/config_fed_server.json",
        "app_tree/config/config_fed_client.json",
        "meta.json",
    ]
    classes = re.findall(r'"path": "(.*?)"', "".join((job / file).read_text() for file in files))
    assert set(classes) == set(CLASSES)


def test_a_silo_refuses_a_job_that_brings_code_or_names_other_classes(deployment, until, tmp_path):
    """Whoever submits it: the coordinator here allows everything."""
    deployment.write_cofed()
    job = export_job(deployment.federation(("tree", "svm"), "cofed"), "hostile", tmp_path, "salt", "")
    mark = deployment.folder / "hostile-was-here"
    (job / "app_tree" / "custom").mkdir()
    (job / "app_tree" / "custom" / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil:\n    pass\n")
    evil = {
        "tree": {"path": "evil.Evil"},
        "svm": {"path": "subprocess.Popen", "args": {"args": ["touch", str(mark)]}},
    }
    for name, component in evil.items():
        config = job / f"app_{name}" / "config" / "config_fed_client.json"
        values = json.loads(config.read_text())
        values["components"].append({"id": "evil", **component})
        config.write_text(json.dumps(values))
    with session(deployment.coordinator) as flare:
        number = flare._flare.submit_job(str(job))
        log = deployment.kits["svm"] / number / "log.txt"
        until(lambda: log.exists() and "is not in allow_list" in log.read_text())
        assert "Component 'subprocess.Popen' at config path" in log.read_text()
        deployed = flare._flare.get_job_meta(number)["job_deploy_detail"]
        assert "tree: NVFLARE_ERROR: BYOC not permitted" in deployed
        flare.stop(number)
        until(lambda: flare.status(number).startswith("FINISHED"))
    assert not (deployment.kits["tree"] / number).exists()
    assert not mark.exists()


@pytest.mark.slow
def test_a_silo_takes_no_orders_but_jobs_whatever_the_coordinator_runs(deployment, until, tmp_path):
    deployment.write_cofed()
    job = export_job(deployment.federation(("tree",), "cofed"), "spy", tmp_path, "salt", "")
    out = tmp_path / "spied.json"
    (job / "app_server" / "custom").mkdir()
    shutil.copy(Path(__file__).with_name("spy.py"), job / "app_server" / "custom")
    config = job / "app_server" / "config" / "config_fed_server.json"
    values = json.loads(config.read_text())
    orders = {"sys.shell": "cat local/cosilo.json", "sys.info": "", "train.shutdown": "", "no.such.order": ""}
    values["workflows"] = [{"id": "spy", "path": "spy.Spy", "args": {"orders": orders, "out": str(out)}}]
    values["components"] = []
    config.write_text(json.dumps(values))
    with session(deployment.coordinator) as flare:
        number = flare._flare.submit_job(str(job))
        until(out.exists)
        flare.stop(number)
        until(lambda: flare.status(number).startswith("FINISHED"))
    assert json.loads(out.read_text()) == dict.fromkeys(orders, "invalid_request")
    assert len(processes.running(deployment.kits["tree"])) == 1
