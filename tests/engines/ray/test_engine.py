"""The engine of a Ray cluster without a cluster: what it refuses, in one line, and what silos ask for."""

import subprocess
import sys

import pytest
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Institution, Local, Silo
from cosilo.config import build
from cosilo.engines.ray import host as host_module
from cosilo.engines.ray.host import Host, unpacked
from cosilo.errors import ConfigError

WITHOUT_RAY = """
import sys
sys.modules["ray"] = None  # as if it were not installed: every import of it fails
from cosilo.cli.main import main
sys.argv = ["cosilo", *sys.argv[1:]]
main()
"""
RECIPE = """
[simulation]
dataset = "digits"
split = { use = "iid", silos = 2, size = 20 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
[method]
use = "local"
"""


def made(name: str, **needs: float) -> Silo:
    silo = Silo(name, [[0.0], [1.0]] * 8, ["a", "b"] * 8, DecisionTreeClassifier())
    if needs:
        silo.origin = {"learner": {"needs": needs}}
    return silo


@pytest.mark.parametrize("command", [["run"], ["compare", "--methods", "local"]])
def test_without_ray_it_is_one_line_and_nothing_is_begun(command, tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    line = [sys.executable, "-c", WITHOUT_RAY, command[0], "recipe.toml", *command[1:], "--engine", "ray"]
    done = subprocess.run([*line, "--dir", "run"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert (
        done.stderr == "error: this needs Ray: make install EXTRAS=ray, or pip install 'cosilo-….whl[ray]'\n"
    )
    assert not (tmp_path / "run").exists()


def test_an_address_is_for_ray_only(tmp_path, cosilo):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    code, _, wrong = cosilo("run", tmp_path / "recipe.toml", "--address", "10.0.0.7:6379")
    assert (code, wrong) == (
        2,
        "error: --address 10.0.0.7:6379: is for --engine ray; got --engine local\n",
    )


def test_silos_made_in_python_cannot_go_to_a_cluster(tmp_path):
    pytest.importorskip("ray")
    with pytest.raises(ConfigError, match="the ray engine runs recipes"):
        Federation([made("only")], method=Local(), engine="ray").run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_need_that_is_none_is_one_line_of_the_recipe(tmp_path):
    learner = {"use": "sklearn.naive_bayes.GaussianNB", "needs": {"cpu": 2}}
    silo = {"name": "a", "path": "a.csv", "label": "y", "learner": learner}
    with pytest.raises(ConfigError) as error:
        build.federation({"silo": [silo]}, build.Source("recipe.toml", tmp_path))
    assert str(error.value).startswith("recipe.toml: silo.a.learner.needs.cpu: there is no such key")


def test_an_institution_needs_the_most_that_one_of_its_members_does():
    pytest.importorskip("ray")
    from cosilo.engines.ray.hosts import needs_of

    members = [made("x", cpus=2.0, gpus=0.5), made("y", memory=4.0), made("z")]
    assert needs_of(Institution("all", members)) == {"cpus": 2.0, "gpus": 0.5, "memory": 4.0}
    assert needs_of(members[2]) == {}


def test_a_host_owns_the_silos_it_is_told_and_no_others(tmp_path, monkeypatch):
    for name in ("OneThread", "keep_freed_memory"):  # this process goes on afterwards
        monkeypatch.setattr(host_module, name, lambda: None)
    values = {"simulation": {"dataset": "digits", "split": {"use": "iid", "silos": 3, "size": 30}}}
    values["simulation"]["learners"] = [{"use": "sklearn.naive_bayes.GaussianNB"}]
    federation = build.federation(
        {**values, "method": {"use": "local"}}, build.Source("recipe.toml", tmp_path)
    )
    federation.open_folder(tmp_path / "run")
    host = Host(str(tmp_path / "run"), None)
    for names in (["silo-1", "silo-2"], ["silo-2", "silo-3"], []):
        assert unpacked(host.own(names)) == ({"ok": True}, b"")
        assert sorted(host._silos) == names
    missing = Host(str(tmp_path / "nothing"), None)
    head, _ = unpacked(missing.own(["silo-1"]))
    assert head["broken"].endswith(
        f"{tmp_path / 'nothing'}: cannot be read here; wants a folder that all nodes share: --dir FOLDER"
    )
