"""Institutions: silos with members, which average among themselves before they reply; two borders."""

import json
import os
import signal
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from cosilo import (
    FML,
    CoFED,
    FedAdp,
    FedAvg,
    FedBE,
    Federation,
    Institution,
    Local,
    PersonalisedFedAvg,
    Run,
    Silo,
    Tempo,
)
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError, RunError
from cosilo.protocol.stage import FEDERATED, Measure

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

SHARED = ["weights", "size", "metrics"]
X, Y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
#: Full batches: whose epoch it is does not depend on the order of the instances.
FULL = Training(optimiser="sgd", momentum=0, lr=0.3, batch=1000, epochs=1, schedule="constant")
CLASSES = [str(c) for c in range(10)]
SIZES = [20, 35, 50, 25, 40, 30]


def linear(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh(), torch.nn.Linear(8, 10))


def client(place, learner=None, **options):
    """One of six clients with different digits; all networks begin with the same weights."""
    start = 200 * place
    part = slice(start, start + SIZES[place])
    test = slice(start + 100, start + 110 + place)
    options = {"shares": SHARED, "test": (X[test], Y[test]), "task": CLASSES, **options}
    return Silo(f"client-{place}", X[part], Y[part], learner or Network(linear(), FULL), **options)


def two_by_three(**options):
    return [
        Institution("a", [client(0), client(1), client(2)], shares=SHARED, **options),
        Institution("b", [client(3), client(4), client(5)], shares=SHARED, **options),
    ]


def close(one, other, within=1e-6):
    return all(np.abs(one[name] - other[name]).max() < within for name in one)


# ---------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize("groups", [[[0, 1, 2], [3, 4, 5]], [[0, 1], [2], 3, [4, 5]], [[0, 1, 2, 3, 4, 5]]])
def test_with_one_local_round_three_layers_are_two(tmp_path, groups):
    """Σ_m |D_m| (Σ_n |D_n| w_n / |D_m|) / |D| is Σ_n |D_n| w_n / |D|, whoever belongs together."""
    silos = [
        client(group)
        if isinstance(group, int)
        else Institution(f"i{place}", [client(n) for n in group], shares=SHARED)
        for place, group in enumerate(groups)
    ]
    method = FedAvg(rounds=4, epochs=2)
    three = Federation(silos, method=method).run(tmp_path / "three")
    two = Federation([client(n) for n in range(6)], method=method).run(tmp_path / "two")
    assert close(three.global_weights(), two.global_weights())
    assert not close(three.global_weights(), state(linear()), 0.01)
    joint = [run.result["joint"]["federated"] for run in (three, two)]
    assert joint[0]["instances"] == joint[1]["instances"] == 75
    assert joint[0]["accuracy"] == pytest.approx(joint[1]["accuracy"], abs=1e-9)


def state(module):
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


A, B = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1]), ([-2.0, 1.0], [0, 1])
C = ([0.5, -1.5, 2.0], [0, 1, 1])


def one(name, data, learner=Network, **options):
    values, labels = data
    learner = learner(OneWeight, FULL.model_copy(update={"lr": 0.1}))
    return Silo(name, np.array(values)[:, None], labels, learner, test=None, **{"shares": SHARED, **options})


def gradient(w, *parts):
    x, y = (np.concatenate([np.array(part[place]) for part in parts]) for place in (0, 1))
    return float(np.mean((1 / (1 + np.exp(-w * x)) - y) * x))


def test_two_local_rounds_by_hand(tmp_path):
    silos = [Institution("a", [one("x", A), one("y", B)], shares=SHARED), one("c", C)]
    run = Federation(silos, method=FedAvg(rounds=1, local_rounds=2)).run(tmp_path / "run")
    inside = 0.5
    for _ in range(2):  # full batches: the mean of one step each is one step on both data sets
        inside -= 0.1 * gradient(inside, A, B)
    alone = 0.5 - 0.1 * gradient(0.5, C)  # a silo without members knows one round only
    (found,) = run.global_weights()["w"]
    assert found == pytest.approx((6 * inside + 3 * alone) / 9, abs=1e-6)


def test_members_train_alone_for_as_many_epochs_as_in_all_rounds(tmp_path):
    silos = [Institution("a", [one("x", A)], shares=SHARED), one("c", A)]
    method = FedAvg(rounds=3, epochs=2, local_rounds=2)
    run = Federation(silos, method=method).run(tmp_path / "run")
    fits = {"x": 12, "c": 6}
    for name, epochs in fits.items():
        silo = one(name, A)
        FedAvg.alone(method, silo, times=2 if name == "x" else 1)
        w = 0.5
        for _ in range(epochs):
            w -= 0.1 * gradient(w, A)
        assert float(silo.learner.weights()["w"][0]) == pytest.approx(w, abs=1e-5)
    asked = [ask["step"] for ask in run.asks("a")]
    assert asked.count("train") == 6


def test_scores_of_members_are_pooled_by_test_instances(tmp_path):
    run = Federation(two_by_three(), method=FedAvg(rounds=2)).run(tmp_path / "run")
    institution = run.institutions["a"]
    scores = [institution.member(f"client-{n}").scores[FEDERATED][Measure.OWN] for n in range(3)]
    assert [score.instances for score in scores] == [10, 11, 12]
    shared = run.result["scores"]["federated"]["a"]
    assert shared["instances"] == 33
    assert shared["accuracy"] == pytest.approx(sum(score.accuracy * score.instances for score in scores) / 33)


@pytest.mark.parametrize("method", [FML, PersonalisedFedAvg, Local])
def test_other_methods_know_institutions_too(tmp_path, method):
    settings = method() if method is Local else method(rounds=2, local_rounds=2, epochs=2)
    run = Federation([*two_by_three(), client(0)], method=settings).run(tmp_path / "run")
    last = "local" if method is Local else "federated"
    assert sorted(run.scores(last)) == ["a", "b", "client-0"]
    assert run.result["failures"] == []


# ---------------------------------------------------------------------- two borders


def everything(folder: Path) -> str:
    """All that the coordinator keeps: not what silos keep for themselves."""
    files = [path for path in folder.rglob("*") if path.is_file() and "silos" not in path.parts]
    files.remove(folder / "run.json")  # written by whoever simulates all of them, and knows who they are
    return "".join(path.read_text(errors="replace") for path in files)


def test_what_a_member_does_not_share_its_institution_cannot_ask_for(tmp_path):
    stingy = client(1, shares=["metrics", "size"])
    silos = [Institution("a", [client(0), stingy], shares=SHARED), client(2)]
    federation = Federation(silos, method=FedAvg(rounds=1))
    line = (
        "silo 'client-1': does not share 'weights', which fedavg needs (step 'train', field 'weights'); "
        "it shares ['metrics', 'size']: add 'weights' there to allow it"
    )
    assert federation.check() == [f"silo 'a': {line}"]
    with pytest.raises(RunError, match="silo 'a': not all of its members can take part") as error:
        federation.run(tmp_path / "run")
    # The owner of all learns the reason from the institution's log; the coordinator's own files are silent.
    assert line in str(error.value)
    assert "client-1" not in everything(tmp_path / "run")
    (entry,) = Run(tmp_path / "run").audit("a/client-1")
    assert entry.items() >= {"way": "out", "ask": 1, "step": "hello", "failure": line}.items()


def test_a_refused_run_starts_over_when_the_policy_has_changed(tmp_path):
    def run(shares):
        silos = [Institution("a", [client(0), client(1, shares=shares)], shares=SHARED)]
        return Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "run")

    with pytest.raises(RunError, match="not all of its members"):
        run(["size"])
    assert run(SHARED).status == "finished"


def test_what_an_institution_does_not_share_does_not_leave_it(tmp_path):
    silos = [Institution("a", [client(0), client(1)], shares=["size", "metrics"]), client(2)]
    with pytest.raises(RunError, match="silo 'a': does not share 'weights', which fedavg needs"):
        Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "refused")
    # Members show the institution their scores, or not, and it does not show them on, or does.
    silos = [
        Institution("a", [client(0), client(1)], shares=["weights", "size"]),
        Institution("b", [client(2), client(3, shares=["weights", "size"])], shares=SHARED),
    ]
    run = Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "run")
    assert {name: s["instances"] for name, s in run.result["scores"]["federated"].items()} == {"b": 12}
    assert "evaluate" not in {entry["step"] for entry in run.audit("b/client-3")}


def test_both_borders_have_their_audit_log(tmp_path):
    run = Federation(two_by_three(), method=FedAvg(rounds=1, local_rounds=2)).run(tmp_path / "run")
    (left,) = [entry for entry in run.audit("a") if entry["step"] == "train"]
    assert {field: facts["kind"] for field, facts in left["fields"].items()} == {
        "weights": "weights",
        "size": "size",
    }
    inner = [entry for entry in run.audit("a/client-0") if entry["step"] == "train"]
    assert [entry["fields"]["weights"] for entry in inner] == [left["fields"]["weights"]] * 2


# ---------------------------------------------------------------------- failures


class Broken(Network):
    """Cannot train, and says too much about it."""

    def train(self, *arguments, **options):
        raise ValueError("patient Jane Doe")


def test_an_institution_goes_on_without_a_lost_client(tmp_path):
    silos = [Institution("a", [one("x", A), one("y", B, Broken)], shares=SHARED), one("c", C)]
    run = Federation(silos, method=FedAvg(rounds=1, local_rounds=2)).run(tmp_path / "run")
    without = [Institution("a", [one("x", A)], shares=SHARED), one("c", C)]
    same = Federation(without, method=FedAvg(rounds=1, local_rounds=2)).run(tmp_path / "without")
    assert run.global_weights()["w"] == pytest.approx(same.global_weights()["w"], abs=1e-7)
    assert run.result["failures"] == []
    # Its owner knows who failed, when and how; not what is private to the client.
    found = [failure for failure in run.institutions["a"].failures() if failure["step"] == "train"]
    assert [(failure["silo"], failure["within"]) for failure in found] == [("y", 6), ("y", 6)]
    assert found[0]["text"] == "silo 'y': train raised ValueError"
    log = (tmp_path / "run/silos/a/log.txt").read_text()
    assert "ask 6 (train): silo 'y': train raised ValueError" in log
    assert "Jane" not in log
    assert "Jane" in (tmp_path / "run/silos/a/members/y/log.txt").read_text()
    assert "'y'" not in everything(tmp_path / "run")


def test_a_server_goes_on_without_a_lost_institution_and_learns_no_names(tmp_path):
    lost = Institution("lost", [one("x", A, Broken), one("y", B, Broken), one("z", C)], shares=SHARED)
    silos = [one("c", C), Institution("a", [one("d", A)], shares=SHARED), lost]
    run = Federation(silos, method=FedAvg(rounds=2)).run(tmp_path / "run")
    failures = [failure for failure in run.result["failures"] if failure["step"] == "train"]
    assert [failure["silo"] for failure in failures] == ["lost", "lost"]
    assert failures[0]["text"] == "silo 'lost': too few of its members could do step 'train'"
    assert not any(f"'{name}'" in everything(tmp_path / "run") for name in "xyz")
    assert "silo 'y'" in (tmp_path / "run/silos/lost/log.txt").read_text()
    # A smaller quorum is enough for the one that is left.
    silos[2] = Institution("lost", lost.silos, shares=SHARED, quorum=0.3)
    run = Federation(silos, method=FedAvg(rounds=2)).run(tmp_path / "again")
    assert not [failure for failure in run.result["failures"] if failure["step"] == "train"]


class Fatal(Network):
    """Kills its process once, in its second round of federated training."""

    alone = False
    kills = (2,)

    def fit(self, *arguments, **options):
        self.alone = True
        super().fit(*arguments, **options)
        self.alone = False

    def train(self, *arguments, **options):
        if not self.alone:
            count = Path("count")
            count.write_text(count.read_text() + "." if count.exists() else ".")
            if len(count.read_text()) in self.kills:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().train(*arguments, **options)


class FatalTwice(Fatal):
    """Kills the process that it is started in again, too."""

    kills = (2, 3)


def with_fatal(learner, workers=2, **options):
    silos = [Institution("a", [one("x", A), one("y", B, learner)], shares=SHARED), one("b", C), one("c", C)]
    return Federation(silos, method=FedAvg(rounds=2, local_rounds=3), engine=LocalEngine(workers), **options)


def test_a_killed_worker_resumes_inside_the_step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = with_fatal(Fatal, quorum=1.0).run(tmp_path / "run")
    assert run.result["failures"] == []
    events = [json.loads(line) for line in (tmp_path / "run/silos/a/events.jsonl").read_text().splitlines()]
    asked = [(event["ask"], event["silos"]) for event in events if event["event"] == "ask"]
    trained = [(number, names) for number, names in asked if number in (5, 6, 7)]
    # The first local round is complete; of the second, the one that had answered is not asked again.
    assert trained == [(5, ["x", "y"]), (6, ["x", "y"]), (6, ["y"]), (7, ["x", "y"])]
    whole = with_fatal(Network, workers=0).run(tmp_path / "whole")
    assert (run.global_weights()["w"] == whole.global_weights()["w"]).all()


def test_a_step_that_was_given_up_does_not_stand_in_the_way(tmp_path, monkeypatch):
    """The worker dies twice; the server goes on without the institution, which is there in the next round."""
    monkeypatch.chdir(tmp_path)
    run = with_fatal(FatalTwice).run(tmp_path / "run")
    (failure,) = run.result["failures"]
    assert (failure["silo"], failure["kind"], failure["step"]) == ("a", "lost", "train")
    rounds = [sorted(ask["arrivals"]) for ask in run.asks() if ask["step"] == "train"]
    assert rounds == [["b", "c"], ["a", "b", "c"]]
    numbers = [ask["number"] for ask in run.asks("a")]
    assert numbers == sorted(set(numbers))


# ---------------------------------------------------------------------- the same, whatever happens

METHODS = [
    FedAvg(rounds=2, local_rounds=2, evaluate_every=2),
    FedAdp(rounds=2, local_rounds=2, evaluate_every=2),
    Tempo(rounds=2, local_rounds=2, first_epochs=2, evaluate_every=2),
]
BATCHES = Training(optimiser="sgd", lr=0.1, batch=8, epochs=1)


def drawn(input_shape, n_classes):
    return torch.nn.Sequential(torch.nn.Linear(64, 6), torch.nn.ReLU(), torch.nn.Linear(6, n_classes))


def federation(method, workers=0):
    """Batches are drawn, weights are drawn, and test data is held out: all of that by seeds."""
    clients = [client(n, Network(drawn, BATCHES), test=0.25) for n in range(5)]
    silos = [
        Institution("a", clients[:2], shares=SHARED),
        Institution("b", clients[2:4], shares=SHARED),
        clients[4],
    ]
    return Federation(silos, method=method, seed=3, engine=LocalEngine(workers))


def outcome(run: Run) -> dict:
    """All that a run came to, without its timing."""

    def forms(ask):
        return {name: arrival["fields"] for name, arrival in sorted(ask["arrivals"].items())}

    asks = [(ask["number"], ask["step"], forms(ask)) for ask in run.asks()]
    inner = {
        name: [(ask["number"], ask["within"], ask["step"], forms(ask)) for ask in run.asks(name)]
        for name in run.institutions
    }
    members = {
        f"{name}/{silo.name}": (one.member(silo.name).scores, digest(one.member(silo.name).learner.weights()))
        for name, one in run.institutions.items()
        for silo in one.silos
    }
    notes = {name: repr(one.notes) for name, one in run.institutions.items()}
    weights = digest(run.global_weights())
    return {
        "result": run.result,
        "asks": asks,
        "inner": inner,
        "members": members,
        "notes": notes,
        "w": weights,
    }


def digest(weights):
    return {name: array.tobytes() for name, array in weights.items()}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_same_with_any_number_of_workers(tmp_path, method):
    runs = [federation(method, workers).run(tmp_path / str(workers)) for workers in (0, 2)]
    assert outcome(runs[0]) == outcome(runs[1])


def run_until(federation: Federation, folder: Path, at: int | None) -> int | None:
    """Run in a child that dies at its n-th file operation; None if it died, else how many there were."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        coordinator, count, inside = os.getpid(), 0, str(folder)

        def hook(event, arguments):
            nonlocal count
            operations = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"}
            if event in operations and str(arguments[0]).startswith(inside):
                count += 1
                if count == at:
                    os.kill(coordinator, signal.SIGKILL)
                    signal.pause()

        sys.addaudithook(hook)
        try:
            federation.run(folder)
            os.write(write, str(count).encode())
        finally:
            os._exit(0)  # a failed child must not go on with the other tests
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return None if os.WIFSIGNALED(status) else int(text)


@pytest.mark.parametrize("method", METHODS[1:], ids=lambda method: method.name)
def test_killed_at_many_points_and_resumed(tmp_path, method):
    undisturbed = outcome(federation(method).run(tmp_path / "undisturbed"))
    total = run_until(federation(method), tmp_path / "count", None)
    for at in np.linspace(0.2, 0.97, 4):
        folder = tmp_path / f"at-{at:.2f}"
        assert run_until(federation(method), folder, int(total * at)) is None
        assert outcome(federation(method).run(folder)) == undisturbed, f"killed at {at:.2f}"


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_a_damaged_step_file_is_one_line(tmp_path, damage):
    method = METHODS[1]
    total = run_until(federation(method), tmp_path / "count", None)
    assert run_until(federation(method), tmp_path / "run", int(total * 0.7)) is None
    for path in (tmp_path / "run/silos").glob("*/step.json"):
        path.unlink() if damage == "gone" else path.write_text("[3" if damage == "cut" else '{"ask": 3}')
    with pytest.raises(RunError, match=r"step\.json: is (missing|damaged)"):
        federation(method).run(tmp_path / "run")


def test_killed_again_and_again_with_workers(tmp_path):
    method, folder, deaths = METHODS[1], tmp_path / "run", 0
    while run_until(federation(method, workers=deaths % 3), folder, at=150 + 10 * deaths) is None:
        deaths += 1
    assert deaths >= 4
    undisturbed = outcome(federation(method).run(tmp_path / "undisturbed"))
    assert outcome(federation(method).run(folder)) == undisturbed


def test_a_run_does_not_grow_with_its_rounds(tmp_path):
    sizes = {}
    for rounds in (2, 8):
        folder = tmp_path / str(rounds)
        method = FedAdp(rounds=rounds, local_rounds=2, evaluate_every=100)
        Federation(two_by_three(), method=method).run(folder)
        logs = {"events.jsonl", "asks.jsonl", "audit.jsonl"}
        files = [path for path in folder.rglob("*") if path.is_file() and path.name not in logs]
        sizes[rounds] = len(files), sum(path.stat().st_size for path in files)
    assert sizes[8][0] == sizes[2][0]
    assert sizes[8][1] < 1.02 * sizes[2][1]


def test_between_steps_only_the_data_of_members_is_in_memory(tmp_path):
    alive, most = weakref.WeakSet(), 0

    def counted(input_shape, n_classes):
        nonlocal most
        module = drawn(input_shape, n_classes)
        alive.add(module)
        most = max(most, len(alive))
        return module

    members = [client(n % 6, Network(counted, BATCHES)) for n in range(12)]
    for place, member in enumerate(members):
        member.name = f"client-{place}"
    silos = [Institution("a", members[:6], shares=SHARED), Institution("b", members[6:], shares=SHARED)]
    federation = Federation(silos, method=FML(rounds=2, local_rounds=2))
    run = federation.run(tmp_path / "run")
    assert most <= 3  # the member's own, the one it forks, and one to try
    for institution in run.institutions.values():
        assert all(silo.learner.module_ is None and not silo.notes for silo in institution.silos)
    one = run.institutions["b"].member("client-7")
    assert sorted(one.notes) == ["codes", "optimiser", "outputs"]
    assert set(one.predict(X[:20])) <= set(one.classes)


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize("method", [CoFED(), FedBE()], ids=lambda method: method.name)
def test_methods_that_do_not_know_institutions_say_which_do(tmp_path, method):
    silos = [
        Institution("a", [client(0), client(1)], shares=[*SHARED, "labels", "logits"]),
        client(2, shares=[*SHARED, "labels", "logits"]),
    ]
    federation = Federation(silos, X[1500:1550], method)
    field = {"cofed": "'votes' (step 'label')", "fedbe": "'weights' (step 'distil')"}[method.name]
    line = (
        f"silo 'a': is an institution with members, and {method.name} does not say how their {field} become "
        "one; `cosilo methods` shows which methods take institutions"
    )
    assert federation.check() == [line]
    with pytest.raises(RunError) as error:
        federation.run(tmp_path / "run")
    assert str(error.value).splitlines()[0] == line


def test_a_learner_without_weights_is_found_before_anything_is_computed(tmp_path):
    tree = client(1, DecisionTreeClassifier())
    silos = [Institution("a", [client(0), tree], shares=SHARED)]
    (line,) = Federation(silos, method=FedAvg()).check()
    assert line.startswith("silo 'a': silo 'client-1': DecisionTreeClassifier has no weights to share")
    with pytest.raises(RunError, match="silo 'a': not all of its members can take part"):
        Federation(silos, method=FedAvg()).run(tmp_path / "run")


@pytest.mark.parametrize(
    ("members", "options", "line"),
    [
        ([], {}, "silo 'a': an institution needs members; got none"),
        ([0, 0], {}, "silo 'a': 2 members are called 'client-0'; give each its own name"),
        ([0], {"quorum": 2}, "silo 'a': quorum = 2; wants a fraction between 0 and 1"),
        ([0], {"shares": ["weight"]}, "silo 'a': shares 'weight'; wants some of labels"),
    ],
)
def test_mistakes_are_one_line(members, options, line):
    with pytest.raises(ConfigError, match="^" + line.replace(".", r"\.")):
        Institution("a", [client(n) for n in members], **options)


def test_members_are_silos():
    with pytest.raises(ConfigError, match="silo 'b': a member is of type Institution; wants silos"):
        Institution("b", [Institution("a", [client(0)])])
    with pytest.raises(ConfigError, match="its members can be asked in a run only"):
        Institution("a", [client(0)]).members.ask("train")
    with pytest.raises(ConfigError, match=r"there is no member 'client-1' \(did you mean 'client-0'\?\)"):
        Institution("a", [client(0)]).member("client-1")


def test_other_data_at_a_member_is_noticed(tmp_path):
    Federation([Institution("a", [client(0)], shares=SHARED)], method=Local()).run(tmp_path / "run")
    (tmp_path / "run/result.json").unlink()
    Run(tmp_path / "run").set_status("stopped")
    other = client(1)
    other.name = "client-0"
    with pytest.raises(RunError, match=r"silo 'a': silo 'client-0': is not what it was .*: training data"):
        Federation([Institution("a", [other], shares=SHARED)], method=Local()).run(tmp_path / "run")
    with pytest.raises(RunError, match=r"was begun with members.a = \['client-0'\], now"):
        Federation([Institution("a", [client(1)], shares=SHARED)], method=Local()).run(tmp_path / "run")
