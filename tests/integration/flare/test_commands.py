"""The commands between organisations, as their users type them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cosilo import Run

pytest.importorskip("nvflare")

COSILO = str(Path(sys.executable).with_name("cosilo"))


@pytest.fixture
def folder(deployment, tmp_path, monkeypatch):
    """The files of a federation of two, at a port that nobody listens at."""
    for name in ("tree.csv", "svm.csv", "pool.csv", "tricks.py"):
        shutil.copy(deployment.folder / name, tmp_path)
    deployment.write_cofed(tree='{ use = "tricks.patient" }')
    for name in ("tree", "svm"):
        shutil.copy(deployment.file(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def federation(folder, deployment, free_port):
    text = f"""name = "trial"
members = ["tree", "svm"]
quorum = 1.0
[method]
use = "cofed"
rounds = 3
[pool]
fingerprint = "{deployment.pool}"
size = 300
[coordinator]
port = {free_port}
"""
    (folder / "federation.toml").write_text(text)
    return text


def _heed_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """A command that stays, and what it says."""

    def __init__(self, *arguments, log):
        self.log = log
        with log.open("w") as file:
            environment = os.environ | {"COLUMNS": "200"}
            command = [COSILO, *map(str, arguments)]
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, env=environment, preexec_fn=_heed_interrupts
            )

    @property
    def said(self):
        return self.log.read_text()

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.wait(30)


def let_in(cosilo, folder, name):
    """What both sides type until a silo has its kit, kits/NAME here."""
    if not (folder / "kits").exists():
        assert cosilo("provision", "federation.toml")[0] == 0
    for command in (
        ("request", f"{name}.toml", "--kit", f"kits/{name}"),
        ("admit", "federation.toml", f"{name}.request", "--yes"),
        ("receive", f"{name}.admission", "--kit", f"kits/{name}", "--yes"),
    ):
        code, _, err = cosilo(*command)
        assert (code, err) == (0, ""), command


def test_the_files_of_all_parties_can_be_checked(folder, federation, cosilo):
    code, out, err = cosilo("check", "tree.toml")
    assert (code, err) == (0, "")
    fingerprint = re.search('fingerprint = "(.*)"', federation)[1]
    assert out.splitlines() == [
        "silo tree: 93 training instances, 31 to test by, classes d0, d1, d2, d3; may leave: labels, metrics",
        f"pool: size 300, fingerprint {fingerprint}",
        "ready to join",
    ]
    code, out, err = cosilo("check", "federation.toml")
    assert (code, err) == (0, "")
    assert out.startswith("federation trial: tree, svm; method cofed\ncoordinator at 127.0.0.1:")
    (folder / "labelled.toml").write_text(
        (folder / "tree.toml")
        .read_text()
        .replace('path = "pool.csv"', 'path = "svm.csv", label = "digit", labelled = true')
    )
    assert ", classes d2, d3, d4, d5\n" in cosilo("check", "labelled.toml")[1]
    (folder / "typo.toml").write_text(federation.replace("members", "memebrs"))
    assert "memebrs: there is no such key (did you mean 'members'?)" in cosilo("check", "typo.toml")[2]


def test_mistakes_are_one_line_each(folder, federation, cosilo):
    for name in ("tree", "svm"):
        let_in(cosilo, folder, name)
    port = re.search(r"port = (\d+)", federation)[1]
    (folder / "typo.toml").write_text(federation.replace('"svm"', '"swm"'))
    (folder / "mended.toml").write_text((folder / "tree.toml").read_text().replace("label =", "lable ="))
    (folder / "poor.toml").write_text((folder / "tree.toml").read_text().replace("tree.csv", "trie.csv"))
    near = "start it: cosilo coordinator start KIT"
    mistakes = {
        (
            "provision",
            "federation.toml",
        ): "kits: is not empty; choose another folder",
        ("request", "mended.toml"): "mended.toml: lable: there is no such key",
        ("admit", "federation.toml", "nowhere"): "nowhere: no such file; wants a request that cosilo req",
        ("admit", "typo.toml", "svm.request"): "svm.request: is from 'svm' (did you mean 'swm'?), which",
        ("admit", "federation.toml", "svm.toml"): "svm.toml: is not a request; wants a file that",
        ("receive", "nowhere", "--kit", "kits/svm"): "nowhere: no such file; wants an admission that cosilo",
        ("receive", "svm.request", "--kit", "kits/svm"): "svm.request: is not an admission; wants the file",
        ("receive", "svm.admission", "--yes", "--kit", "kits/svm"): "kits/svm: waits for no answer; ask fir",
        ("remove", "federation.toml", "swm"): "silo 'swm' is not admitted (did you mean 'svm'?); admitted",
        (
            "join",
            "kits/svm",
            "tree.toml",
        ): "tree.toml: name: got 'tree'; wants 'svm', which",
        (
            "join",
            "kits/coordinator",
            "tree.toml",
        ): "kits/coordinator: is not a silo's kit",
        ("join", "kits/tree", "nowhere.toml"): "nowhere.toml: no such file",
        (
            "join",
            "kits/tree",
            "mended.toml",
        ): "mended.toml: lable: there is no such key",
        ("join", "kits/tree", "poor.toml"): "poor.toml: silo 'tree': trie.csv: no such file or folder",
        (
            "coordinator",
            "start",
            "kits/tree",
        ): "kits/tree: is not a coordinator's kit",
        (
            "submit",
            "federation.toml",
        ): f"kits/coordinator/server: was never started on this machine; {near}",
        (
            "submit",
            "typo.toml",
        ): "members: 'swm' is not admitted (did you mean 'svm'?)",
        ("submit", "federation.toml", "--kit", "kits/tree"): "kits/tree: is not a coordinator's kit",
        (
            "status",
            "kits/coordinator",
        ): f"the coordinator at 127.0.0.1:{port}: not running; {near}",
        ("stop", "nowhere"): "nowhere: has no kit in it",
        ("up", "typo.toml"): "swm.toml: no such file",
    }
    for command, problem in mistakes.items():
        code, _, err = cosilo(*command)
        assert code == 2, command
        assert err.startswith(f"error: {problem}"), (command, err)
        assert len(err.splitlines()) == 1, (command, err)
    assert cosilo("stop", "kits") == (0, "nothing was running\n", "")
    assert not list(folder.rglob("runs/*"))


@pytest.mark.slow
def test_from_provisioning_to_a_report(folder, federation, cosilo, until):
    port = int(re.search(r"port = (\d+)", federation)[1])
    here = f"127.0.0.1:{port}"
    for name in ("tree", "svm"):
        let_in(cosilo, folder, name)
    hold = folder / "hold-tree-4"
    hold.touch()
    tree = Running("join", "kits/tree", "tree.toml", "--runs", "records", log=folder / "tree.log")
    coordinator = svm = None
    try:
        until(lambda: "trying until it is there" in tree.said)
        assert f"the coordinator at {here} cannot be reached (Connection refused)" in tree.said
        coordinator = Running("coordinator", "start", "kits/coordinator", log=folder / "coordinator.log")
        until(lambda: f"listens at {here}" in coordinator.said)
        until(lambda: f"connected to the coordinator at {here}" in tree.said)

        code, _, err = cosilo("coordinator", "start", "kits/coordinator")
        assert code == 2
        assert "is already running" in err
        code, out, err = cosilo("status", "kits/coordinator")
        assert code == 0
        assert "silos that are there: tree" in out

        # A run waits for its silos; Ctrl-C ends it, and it goes on from there.
        submit = Running("submit", "federation.toml", log=folder / "submit.log")
        until(lambda: "waiting for svm" in submit.said)
        svm = Running("join", "kits/svm", "svm.toml", log=folder / "svm.log")
        until(lambda: "label: asked" in submit.said)
        assert submit.end() == 2
        hold.unlink()
        *_, stopped, then = submit.said.splitlines()
        assert stopped == "error: stopped"
        assert then.startswith("error: completed steps are kept: cosilo resume ")
        run = Path(then.split()[-1])
        until(lambda: "interrupted" in cosilo("status", "kits/coordinator")[1])
        code, out, err = cosilo("resume", run)
        assert code == 0, err
        assert "continues where it stopped" in err
        assert "train: asked" not in err
        assert "mean relative accuracy" in out
        assert (run / "report.html").exists()
        assert list((folder / "records" / run.name).glob("state-*"))
        assert (folder / "kits" / "svm" / "runs" / run.name / "audit.jsonl").exists()
        assert "finished" in cosilo("status", "kits/coordinator")[1]

        code, out, _ = cosilo("stop", "kits")
        assert (code, out.count("stopped: ")) == (0, 3)
        until(lambda: tree.process.poll() is not None)
        assert tree.process.returncode == 0
    finally:
        for one in (tree, svm, coordinator):
            if one is not None and one.process.poll() is None:
                one.end(signal.SIGTERM)


@pytest.mark.slow
def test_a_run_whose_follower_is_lost_goes_on_and_can_be_followed_again(deployment, folder, cosilo, until):
    """A terminal that is closed ends nothing; who comes back sees the rest."""
    deployment.write_cofed(tree='{ use = "tricks.patient" }')
    hold = deployment.folder / "hold-tree-4"
    hold.touch()
    members = ("tree", "svm")
    settings = deployment.federation(members, "cofed").model_dump(exclude_none=True, exclude={"method"})
    text = "".join(f"{key} = {toml(value)}\n" for key, value in settings.items())
    (folder / "federation.toml").write_text(text)
    submit = Running("submit", "federation.toml", "--kit", deployment.coordinator, log=folder / "submit.log")
    until(lambda: "label: asked" in submit.said)
    job = re.search(r"(\S+): job (\S+)", submit.said)
    submit.end(signal.SIGKILL)
    resumed = Running("resume", deployment.folder / "runs" / job[1], log=folder / "resume.log")
    until(lambda: job[0] in resumed.said)  # the same job
    hold.unlink()
    assert resumed.process.wait(60) == 0
    assert "mean relative accuracy" in resumed.said
    events = [event["event"] for event in Run(deployment.folder / "runs" / job[1]).events()]
    assert "resume" not in events


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def processes_of(folder):
    """The commands that run with something of a folder; ps cuts lines unless it is told twice not to."""
    every = subprocess.run(["ps", "-wweo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in every.splitlines() if str(folder) in line]


@pytest.mark.slow
def test_up_tries_a_federation_out_and_leaves_nothing_running(folder, federation):
    done = subprocess.run([COSILO, "up", "federation.toml"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "mean relative accuracy" in done.stdout
    assert "started the coordinator and 2 silos; their logs: up/logs" in done.stderr
    time.sleep(1)
    assert processes_of(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
def test_up_that_is_killed_leaves_no_process(folder, federation, until, how):
    (folder / "hold-tree-4").touch()  # the run stays where it is, under way in the jobs of all three
    up = Running("up", "federation.toml", log=folder / "up.log")
    until(lambda: "label: asked" in up.said, patience=180)
    assert processes_of(folder)
    up.end(how)
    until(lambda: not processes_of(folder), patience=180)


@pytest.mark.slow
def test_a_silo_is_added_to_a_running_federation_and_another_one_removed(
    deployment, folder, federation, cosilo, until
):
    shutil.copy(deployment.folder / "net.csv", folder)
    shutil.copy(deployment.file("net"), folder)
    running = {}

    def join(name):
        running[name] = Running("join", f"kits/{name}", f"{name}.toml", log=folder / f"{name}.log")

    def write(*members):
        text = federation.replace('["tree", "svm"]', json.dumps(members)).replace("rounds = 3", "rounds = 1")
        (folder / "federation.toml").write_text(text)

    def there():
        return re.search("silos that are there: (.*)", cosilo("status", "kits/coordinator")[1])[1]

    try:
        write("tree", "svm")
        for name in ("tree", "svm"):
            let_in(cosilo, folder, name)
        coordinator = Running("coordinator", "start", "kits/coordinator", log=folder / "coordinator.log")
        running["coordinator"] = coordinator
        until(lambda: "listens at" in coordinator.said)
        join("tree")
        join("svm")
        until(lambda: there() == "svm, tree")
        ours = [path for name in ("tree", "svm") for path in (folder / "kits" / name / "startup").iterdir()]
        before = {path: path.read_bytes() for path in ours}

        # While the others stay connected: a third one.
        write("tree", "svm", "net")
        began = time.monotonic()
        let_in(cosilo, folder, "net")
        join("net")
        until(lambda: there() == "net, svm, tree")
        print(f"added in {time.monotonic() - began:.1f} s")
        assert {path: path.read_bytes() for path in ours} == before
        code, out, err = cosilo("submit", "federation.toml")
        assert code == 0, err
        assert re.search(r"net +│", out)

        # A silo that is removed is gone at once, and its certificate does not bring it back.
        assert cosilo("remove", "federation.toml", "svm")[0] == 0
        assert "members: 'svm' is not admitted" in cosilo("submit", "federation.toml")[2]
        until(lambda: there() == "net, tree")
        until(lambda: "the coordinator does not admit this silo" in running["svm"].said)
        running["svm"].end(signal.SIGTERM)
        join("svm")
        assert running["svm"].process.wait(60) == 2
        last = running["svm"].said.splitlines()[-1]
        assert last.startswith("error: kits/svm: the coordinator does not admit this silo, or not with this")
        write("tree", "net")
        code, out, err = cosilo("submit", "federation.toml")
        assert code == 0, err

        # It asks again and is in again; its old certificate is not.
        write("tree", "net", "svm")
        shutil.copytree(folder / "kits" / "svm", folder / "stolen")
        let_in(cosilo, folder, "svm")
        thief = Running("join", "stolen", "svm.toml", log=folder / "thief.log")
        running["thief"] = thief
        assert thief.process.wait(60) == 2
        assert "the coordinator does not admit this silo" in thief.said
        join("svm")
        until(lambda: there() == "net, svm, tree")
    finally:
        for one in running.values():
            if one.process.poll() is None:
                one.end(signal.SIGTERM)


def test_these_tests_share_one_federation(request):
    """pytest-xdist writes the group behind the name; with pytest 9.2 not, and each process had its own."""
    grouped = bool(request.config.getoption("loadgroup", default=False))
    assert request.node.nodeid.endswith("@flare") == grouped
