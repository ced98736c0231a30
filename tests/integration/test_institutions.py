"""Institutions in recipes: nested tables and simulations, checked, run and resumed by whole commands."""

import numpy as np
import pytest

from cosilo import Run
from cosilo.comparison.plan import make_plan
from cosilo.config import build, recipe_file
from cosilo.recipes import RECIPES
from cosilo.simulated_time.clock import Clock

pytest.importorskip("torch")

NESTED = """
[method]
use = "fedavg"
rounds = 2
local_rounds = 2
[defaults]
label = "sick"
shares = ["weights", "size", "metrics"]
learner = { use = "mlp", hidden = [4], training = { optimiser = "sgd", lr = 0.05, batch = 16 } }
[[silo]]
name = "hospital-a"
shares = ["weights", "size"]
[[silo.member]]
name = "ward-1"
path = "one.csv"
[[silo.member]]
name = "ward-2"
path = "two.csv"
test = 0.5
[[silo]]
name = "hospital-b"
quorum = 1.0
[[silo.member]]
name = "ward-1"
path = "three.csv"
[[silo]]
name = "practice"
path = "four.csv"
"""
SIMULATION = """
[method]
use = "tempo"
rounds = 2
first_epochs = 2
local_rounds = 2
[clock]
up = { rate = 1e5 }
inside = { rate = 1e6, shared = false }
[simulation]
dataset = "digits"
split = { use = "iid", silos = 6, size = 40 }
institutions = 3
shares = ["weights", "size", "metrics"]
learners = [{ use = "mlp", hidden = [8], training = { optimiser = "sgd", lr = 0.01, batch = 16 } }]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for name in ("one", "two", "three", "four"):
        ages = rng.normal(size=40)
        rows = [f"{age:.3f},{rng.normal():.3f},{'yes' if age > 0 else 'no'}" for age in ages]
        (tmp_path / f"{name}.csv").write_text("age,dose,sick\n" + "\n".join(rows) + "\n")
    (tmp_path / "nested.toml").write_text(NESTED)
    (tmp_path / "simulation.toml").write_text(SIMULATION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nested_tables_are_checked_and_run(folder, cosilo):
    code, out, err = cosilo("check", "nested.toml")
    assert (code, err) == (0, "")
    rows = [[cell.rstrip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if "│" in line]
    assert [row[0] for row in rows] == [
        " hospital-a",
        "   ward-1",
        "   ward-2",
        " hospital-b",
        "   ward-1",
        " practice",
    ]
    assert [row[3].strip() for row in rows[:4]] == ["(2 members)", "mlp", "mlp", "(1 member)"]
    assert rows[0][4].strip() == "size, weights"

    code, out, _ = cosilo("run", "nested.toml", "--dir", "run")
    assert code == 0
    run = Run(folder / "run")
    assert sorted(run.scores("federated")) == ["hospital-b", "practice"]  # hospital-a keeps its scores
    assert run.about["members"] == {"hospital-a": ["ward-1", "ward-2"], "hospital-b": ["ward-1"]}
    assert (folder / "run/report.html").exists()
    code, out, _ = cosilo("resume", "run")
    assert code == 0
    assert "finished already" in out


def test_a_simulation_deals_its_silos_to_institutions(folder, cosilo):
    code, _, err = cosilo("run", "simulation.toml", "--dir", "run")
    assert code == 0, err
    run = Run(folder / "run")
    assert run.about["members"] == {
        "institution-1": ["silo-1", "silo-2"],
        "institution-2": ["silo-3", "silo-4"],
        "institution-3": ["silo-5", "silo-6"],
    }
    assert len(run.result["pace"]) == 2
    # On the clock members compute at once, and their network is not the one to the server.
    trained = [moment for moment in run.moments() if moment.step == "train"]
    slow = Clock.model_validate({"up": {"rate": 1e5}, "inside": {"rate": 1e3, "shared": False}})
    slower = [moment for moment in run.moments(slow) if moment.step == "train"]
    weights = run.asks()[5]["arrivals"]["institution-1"]["fields"]["weights"]["bytes"]
    more = 2 * weights / 1e3 - 2 * weights / 1e6  # two local rounds over the slower link
    for one, other in zip(trained, slower, strict=True):
        assert other.compute == pytest.approx(one.compute + more, rel=0.01)
        assert other.upload == one.upload == pytest.approx(3 * (weights + 2) / 1e5, rel=0.01)
    assert "institution-1" in (folder / "run/report.html").read_text()


def test_a_test_set_is_judged_once_by_all_clients_together(folder, cosilo):
    options = ("simulation.tasks=all", "simulation.test=80", "method.local=false")
    sets = [part for one in options for part in ("--set", one)]
    code, _, err = cosilo("run", "simulation.toml", "--dir", "run", *sets)
    assert code == 0, err
    result = Run(folder / "run").result
    assert list(result["scores"]) == ["round 1", "federated"]
    assert {score["instances"] for score in result["scores"]["federated"].values()} == {160}
    assert result["joint"]["federated"]["instances"] == 480
    # All classes are everyone's own: the global model is as good as the mean over its clients.
    means = [score["accuracy"] for score in result["scores"]["federated"].values()]
    assert result["joint"]["federated"]["accuracy"] == pytest.approx(np.mean(means))
    by_client = Run(folder / "run").joint_accuracies()
    assert [name.partition("/")[2] for name in by_client] == [f"silo-{number}" for number in range(1, 7)]
    assert np.mean(list(by_client.values())) == pytest.approx(np.mean(means))


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("sets", "least", "most"),
    [
        ([], 0.5, 1),
        (["simulation.split.concentration=1"], 0.24, 0.5),
        (["simulation.split={use='iid',silos=10,size=40}"], 0.1, 0.24),
    ],
)
def test_the_recipe_of_tempo(sets, least, most):
    path = RECIPES / "tempo_fashion_mnist.toml"
    values = recipe_file.read(path, sets)
    names = ["tempo", "fedavg", "fedadp_4", "fedadp_6", "fedadp_8"]
    plan = make_plan(values, build.Source(path.name, path.parent), names, seeds=3)
    methods = plan.make_methods()
    assert [method.usual_epochs for method in methods.values()] == [6, 6, 4, 6, 8]
    common = {(method.local_rounds, method.local, method.evaluate_every) for method in methods.values()}
    assert common == {(4, False, 1)}
    silos, _ = plan.members(0)
    clients = [client for one in silos for client in one.silos]
    split = values["simulation"]["split"]
    assert (len(silos), len(clients)) == (5, split["silos"])
    assert {client.size for client in clients} == {split["size"]}
    # How much of a client's images its largest class is.
    shares = [np.bincount(client.data.train[1]).max() / client.size for client in clients]
    assert least < np.mean(shares) < most
    assert plan.federation(("tempo", 0), (silos, None)).check() == []


@pytest.mark.parametrize(
    ("recipe", "setting", "line"),
    [
        ("simulation", "simulation.institutions=4", "simulation.institutions: got 4 for 6 silos; wants a "),
        ("simulation", "simulation.institutions=0", "simulation.institutions: got 0; wants at least 1"),
        ("simulation", "simulation.institutions=12", "simulation.institutions: got 12 for 6 silos"),
        (
            "simulation",
            "method.epochs=2",
            "method.epochs: there is no such key (did you mean 'first_epochs'?)",
        ),
        (
            "simulation",
            "method.local_rounds=0",
            "method.local_rounds: got 0; wants at least 1",
        ),
        (
            "nested",
            "silo.hospital-a.path=one.csv",
            "silo.hospital-a: wants no path beside member tables: members have",
        ),
        ("nested", "silo.hospital-a.quorum=2", "silo.hospital-a.quorum: got 2; wants at most 1"),
        ("nested", "silo.practice.quorum=0.5", "silo.practice: wants quorum with member tables only"),
        (
            "nested",
            "silo.hospital-b.member=[]",
            "silo.hospital-b: wants one of path and dataset, or member tables",
        ),
        (
            "nested",
            "silo.hospital-a.member.ward-2.lable=x",
            "silo.hospital-a.member.1.lable: there is no such key (did",
        ),
        (
            "nested",
            'silo.hospital-b.member=[{name="x", member=[{name="y", path="one.csv"}]}]',
            "silo.hospital-b: wants members without members of their own",
        ),
        (
            "nested",
            "silo.hospital-a.member.ward-2.path=no.csv",
            "silo 'hospital-a': silo 'ward-2': no.csv: no such file or folder",
        ),
        (
            "nested",
            "silo.hospital-a.member.ward-2.name=ward-1",
            "silo 'hospital-a': 2 members are called 'ward-1'; give each its own name",
        ),
        (
            "nested",
            'silo.hospital-a.member.ward-2.shares=["size"]',
            "silo 'hospital-a': silo 'ward-2': does not share 'weights', which fedavg needs",
        ),
        ("nested", 'silo.hospital-a.shares=["size"]', "silo 'hospital-a': does not share 'weights', which"),
        (
            "nested",
            'method={use="fedfomo"}',
            "silo 'hospital-a': is an institution with members, and fedfomo does not say how their '",
        ),
    ],
)
def test_mistakes_are_lines_that_name_the_place(folder, cosilo, recipe, setting, line):
    code, _, err = cosilo("check", f"{recipe}.toml", "--set", setting)
    assert code == 2
    assert "Traceback" not in err
    assert line in err.splitlines()[0].removeprefix(f"error: {recipe}.toml: ").removeprefix("error: ")
