"""The page of a run that goes on, in a real browser where there is one."""

import http.client
import shutil
import subprocess
import threading
import time
import urllib.request

import pytest
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, ConfigError, Federation, Run
from cosilo.report.live_server import LiveServer
from cosilo.runs.durable_files import read_json, write_json

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Slow(GaussianNB):
    """Waits in its training until it is let go."""

    go = threading.Event()

    def fit(self, X, y, sample_weight=None):
        if len(X) > 45:  # not local training: that of 60 instances, a quarter held out
            Slow.go.wait(60)
        return super().fit(X, y, sample_weight)


def get(address):
    with urllib.request.urlopen(address) as answer:
        return answer.read().decode(), answer.headers["X-Run"]


def browser(address, *options, wait=3000):
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--virtual-time-budget={wait}"]
    return subprocess.run(
        [*command, *options, address], capture_output=True, text=True, check=True, timeout=120
    ).stdout


@pytest.fixture
def going_on(silos, pool, tmp_path):
    """A run that is in the middle of update training, in a thread."""
    Slow.go.clear()
    three = silos()
    three[1].learner.model = Slow()
    folder = tmp_path / "run"
    federation = Federation(three, pool, CoFED(alpha=0.3))
    thread = threading.Thread(target=lambda: federation.run(folder, observers=[]))
    thread.start()
    deadline = time.monotonic() + 60
    while not (folder / "so_far.json").exists() or '"update"' not in (folder / "events.jsonl").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield folder, thread
    Slow.go.set()
    thread.join(60)


def test_it_grows_with_the_run_and_ends_with_the_report(going_on):
    folder, thread = going_on
    with LiveServer(folder) as server:
        page, status = get(server.address)
        assert status == "running"
        assert "The run goes on." in page
        assert "step <code>update</code>" in page
        assert "not asked" in page or "asked" in page
        assert "local</th>" in page  # the stage that is scored so far
        assert "src=" not in page
        Slow.go.set()
        thread.join(60)
        assert get(server.address + "part")[1] == "finished"
        report, _ = get(server.address)
        assert "cosilo report" in report
    assert Run(folder).status == "finished"
    assert not (folder / "so_far.json").exists()


def test_only_this_machine_may_look(going_on):
    folder, _ = going_on
    with LiveServer(folder) as server:
        port = int(server.address.rstrip("/").rpartition(":")[2])
        for path, host, code in (
            ("/", "evil.example", 403),
            ("/run.json", "127.0.0.1", 404),
            ("/", "localhost", 200),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", path, headers={"Host": f"{host}:{port}"})
            assert connection.getresponse().status == code
            connection.close()
        with pytest.raises(ConfigError, match=f"--port {port}: cannot listen there"):
            LiveServer(folder, port)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_in_a_browser(going_on, tmp_path):
    folder, thread = going_on
    with LiveServer(folder) as server:
        shown = browser(server.address, "--dump-dom")
        assert "step <code>update</code>" in shown
        stages = read_json(folder / "so_far.json")["stages"]
        write_json(folder / "so_far.json", {"stages": [*stages, ["round 9", 0.987, 3]]})
        shown = browser(server.address, "--dump-dom", wait=5000)
        assert "98.7%" in shown
        Slow.go.set()
        thread.join(60)
        assert "cosilo report" in browser(server.address, "--dump-dom")
