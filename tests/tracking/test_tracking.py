"""Runs in trackers: TensorBoard's files, and a real MLflow server with a database."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import cosilo as package
from cosilo import CoFED, DataError, RunError
from cosilo.tracking.tracking import metrics, parameters, track_comparison, track_run


@pytest.fixture
def run(federation, tmp_path):
    return federation(CoFED(alpha=0.3, rounds=2)).run(tmp_path / "run")


def test_parameters_and_metrics(run):
    told = parameters(run)
    assert told["method.alpha"] == 0.3
    assert (told["seed"], told["silos"], told["pool_size"]) == (0, 3, 300)
    found = {(name, step): value for name, value, step in metrics(run)}
    assert found["accuracy/tree", 0] == run.scores("local")["tree"]
    assert found["accuracy/tree", 1] == run.scores("round 1")["tree"]
    assert found["accuracy/tree", 2] == run.scores("federated")["tree"]
    assert found["relative_accuracy/tree", 2] == run.relative_accuracy()["tree"]
    assert found["bytes_sent/tree", 2] == run.bytes_sent("tree")


def test_tensorboard(run):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    where = track_run(run, "tensorboard")
    read = EventAccumulator(where)
    read.Reload()
    tags = read.Tags()
    name = "accuracy_mean"
    assert any(name in names for names in tags.values() if isinstance(names, list))


def test_wandb_offline(run, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    where = Path(track_run(run, "wandb"))
    (one,) = where.glob("offline-run-*")
    (log,) = one.glob("*.wandb")
    wanted = (b"method.alpha", b"accuracy/tree", b"accuracy_mean", b"relative_accuracy/tree")
    deadline = time.monotonic() + 60  # its own process writes the end a moment later
    while any(told not in log.read_bytes() for told in wanted):
        assert time.monotonic() < deadline, log.read_bytes()
        time.sleep(0.1)
    assert (one / "files" / "report.html").read_bytes() == run.report().read_bytes()


def test_without_wandb_it_is_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(DataError, match=r"make install EXTRAS=wandb, or pip install '.*\[wandb\]'$"):
        track_run(run, "wandb")


def test_a_server_that_is_not_there_is_one_line(run, monkeypatch):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    with pytest.raises(
        RunError, match=r"MLflow at http://127.0.0.1:9: .*; the run itself is finished and kept"
    ):
        track_run(run, "mlflow")


@pytest.mark.slow
def test_a_real_mlflow_server(run, federation, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db", "--workers", "1"]
    command += ["--artifacts-destination", str(tmp_path / "artefacts")]
    with (tmp_path / "server.txt").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 200
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (tmp_path / "server.txt").read_text()[-2000:]
                assert time.monotonic() < deadline
                time.sleep(0.5)
        uri = f"http://127.0.0.1:{port}"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        mlflow.set_tracking_uri(uri)
        assert track_run(run, "mlflow") == uri
        compared = package.compare(federation(), ["local", "cofed"], 1, tmp_path / "c")
        track_comparison(compared, "mlflow")
        client = mlflow.MlflowClient(uri)
        found = {one.info.run_name: one for one in client.search_runs(["0"])}
        assert sorted(found) == ["c", "cofed-seed0", "local-seed0", "run"]
        assert found["run"].data.params["method.alpha"] == "0.3"
        assert found["run"].data.metrics["accuracy/tree"] == run.scores("federated")["tree"]
        assert [m.step for m in client.get_metric_history(found["run"].info.run_id, "accuracy/tree")] == [
            0,
            1,
            2,
        ]
        assert [f.path for f in client.list_artifacts(found["run"].info.run_id)] == ["report.html"]
        assert found["cofed-seed0"].data.tags["mlflow.parentRunId"] == found["c"].info.run_id
        assert [f.path for f in client.list_artifacts(found["c"].info.run_id)] == ["comparison.html"]
    finally:
        import os
        import signal

        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
