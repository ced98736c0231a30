"""What can be wrong with a cluster is one line, and a run that it stopped can go on."""

import platform
import shutil

import pytest

from cosilo import Run
from cosilo.engines.ray import hosts
from cosilo.errors import CosiloError
from cosilo.runs.durable_files import read_json

NODE = f"node {platform.node()}: "


def line(federation, folder) -> str:
    with pytest.raises(CosiloError) as error:
        federation.run(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_that_nodes_cannot_read_is_one_line_and_the_run_goes_on_when_they_can(bench, tmp_path):
    hidden = bench.folder.with_name("hidden")
    settings = {"method": {"use": "local"}, "workers": 1}
    federation = bench.federation(**settings)
    shutil.move(bench.folder, hidden)
    try:
        said = line(federation, tmp_path / "run")
    finally:
        shutil.move(hidden, bench.folder)
    assert said == (
        f"{NODE}{bench.folder}: cannot be read here; wants recipe.toml, its data and its own code in a "
        "folder that all nodes share"
    )
    assert Run(tmp_path / "run").status == "stopped"
    assert bench.federation(**settings).run(tmp_path / "run").status == "finished"


def test_what_no_node_has_is_one_line(bench, tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "PATIENCE", 1.0)
    values = bench.values()
    values["simulation"]["learners"][2]["needs"] = {"cpus": 0.5, "gpus": 1, "memory": 2}
    said = line(bench.federation(simulation=values["simulation"]), tmp_path / "run")
    assert said.startswith("silo 'silo-3': wants 0.5 CPU, 1 GPU, 2 GiB of memory, and no node of the cluster")
    assert "1 CPU, 0 GPU" in said


def test_commands_work_on_a_cluster_and_say_what_is_wrong_and_how_to_go_on(bench, tmp_path, cosilo):
    recipe = bench.folder / "recipe.toml"
    recipe.write_text(
        'pool = { rest = true, size = 100 }\n[simulation]\ndataset = "digits"\n'
        'split = { use = "iid", silos = 2, size = 50 }\n'
        'learners = [{ use = "own.Bayes", needs = { cpus = 0.5, memory = 0.1 } }, { use = "own.Bayes" }]\n'
    )
    at = ("--engine", "ray", "--address", bench.address)
    local = ("--set", "method.use=local")
    code, said, wrong = cosilo("run", recipe, "--dir", tmp_path / "run", *local, *at)
    assert (code, wrong) == (0, "")
    assert "silo-1" in said
    assert read_json(tmp_path / "run" / "run.json")["engine"] == "ray"
    both = tmp_path / "both"
    code, said, _ = cosilo("compare", recipe, "--methods", "local", "--seeds", "1", "--dir", both, *at)
    assert code == 0
    assert Run(both / "local-seed0").about["engine"] == "ray"
    own = bench.folder / "own.py"
    kept = own.read_text()
    own.write_text("import not_installed_there\n")
    try:
        code, _, wrong = cosilo("run", recipe, "--dir", tmp_path / "stopped", *local, *at)
    finally:
        own.write_text(kept)
    assert code == 2
    first, last = wrong.strip().splitlines()
    assert first.startswith(f"error: {NODE}{recipe}: simulation.learners.0")
    assert "not_installed_there" in first
    resume = f"cosilo resume {tmp_path / 'stopped'} {' '.join(at)}"
    assert last == f"error: completed steps are kept: {resume}"


@pytest.mark.parametrize("address", ["127.0.0.1:9", "nowhere", "127.0.0.1:port"])
def test_no_cluster_at_the_address_is_one_line(address, bench, tmp_path, cosilo):
    (bench.folder / "plain.toml").write_text(
        '[simulation]\ndataset = "digits"\nsplit = { use = "iid", silos = 2 }\n'
        'learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]\n[method]\nuse = "local"\n'
    )
    recipe = bench.folder / "plain.toml"
    code, _, wrong = cosilo("run", recipe, "--dir", tmp_path / "r", "--engine", "ray", "--address", address)
    assert code == 2
    assert len(wrong.strip().splitlines()) == 1
    assert f"--address {address}: cannot connect to a Ray cluster (" in wrong
    assert not (tmp_path / "r").exists()
