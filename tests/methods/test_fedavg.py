"""FedAvg, by hand on one-parameter models and end to end on digits."""

import os
import signal
import sys

import numpy as np
import pytest
from boundaries import asked, opened
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, FedAvg, Federation, FedProx, PersonalisedFedAvg, Run, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import DataError, RunError
from cosilo.protocol.wire import encode

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

SHARED = ["weights", "size", "metrics"]


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


def one(name, X, y, lr=0.1, batch=100, **options):
    training = Training(optimiser="sgd", momentum=0, lr=lr, batch=batch, epochs=1, schedule="constant")
    learner = Network(OneWeight, training)
    return Silo(name, np.array(X)[:, None], y, learner, test=None, shares=SHARED, **options)


def final(run: Run) -> float:
    """The one weight of the global model, which every silo holds after the last round."""
    found = {float(silo.learner.weights()["w"][0]) for silo in run.silos.values()}
    assert len(found) == 1
    return found.pop()


def gradient(w, X, y):
    """Of the mean cross-entropy: mean of (sigmoid(w·x) − y)·x."""
    X, y = np.array(X), np.array(y)
    return float(np.mean((1 / (1 + np.exp(-w * X)) - y) * X))


A = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1])
B = ([-2.0, 1.0, 0.5, -1.5], [0, 1, 0, 1])


def test_one_step_of_fedavg_is_one_step_of_centralised_sgd(tmp_path):
    silos = [one("a", *A), one("b", *B)]
    run = Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "run")
    together = (A[0] + B[0], A[1] + B[1])
    assert final(run) == pytest.approx(0.5 - 0.1 * gradient(0.5, *together), abs=1e-6)


def test_local_training_gets_as_many_epochs_as_the_federation(tmp_path):
    """Three epochs of full batches alone, as in three rounds of one."""
    silos = [one("a", *A), one("b", *A)]
    w = 0.5
    for _ in range(3):
        w -= 0.1 * gradient(w, *A)
    member = silos[0].fresh()
    FedAvg(rounds=3).alone(member)
    assert float(member.learner.weights()["w"][0]) == pytest.approx(w, abs=1e-6)
    # With equal data the federation does the same.
    assert final(Federation(silos, method=FedAvg(rounds=3)).run(tmp_path / "run")) == pytest.approx(
        w, abs=1e-6
    )


def test_a_silo_with_one_class_takes_part(tmp_path):
    """Of a task of two: a network has an output for the other one all the same."""
    ones = ([1.0, 2.0], [1, 1])
    silos = [one("a", *A), one("b", *ones, task=["0", "1"])]
    run = Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "run")
    after = [0.5 - 0.1 * gradient(0.5, *data) for data in (A, ones)]
    assert final(run) == pytest.approx((4 * after[0] + 2 * after[1]) / 6, abs=1e-6)
    with pytest.raises(DataError, match="silo 'b': all 2 instances are of class '1'"):
        one("b", *ones)


def test_without_local_training_the_federation_is_the_same(tmp_path):
    silos = [one("a", *A), one("b", *B)]
    runs = [
        Federation(silos, method=FedAvg(rounds=2, local=local)).run(tmp_path / str(local))
        for local in (True, False)
    ]
    steps = [[ask["step"] for ask in run.asks()] for run in runs]
    assert steps[0][:4] == ["hello", "alone", "evaluate", "begin"]
    assert steps[1][:2] == ["hello", "begin"]
    assert list(runs[1].result["scores"]) == ["round 1", "federated"]
    assert final(runs[0]) == pytest.approx(final(runs[1]), abs=1e-6)


def test_silos_weigh_by_size_or_equally(tmp_path):
    small = ([1.0, -3.0], [1, 0])
    silos = [one("a", *A), one("b", *small)]
    after = [0.5 - 0.1 * gradient(0.5, *data) for data in (A, small)]
    by_size = Federation(silos, method=FedAvg(rounds=1)).run(tmp_path / "size")
    assert final(by_size) == pytest.approx((4 * after[0] + 2 * after[1]) / 6, abs=1e-6)
    equal = Federation(silos, method=FedAvg(rounds=1, weighting="equal")).run(tmp_path / "equal")
    assert final(equal) == pytest.approx(np.mean(after), abs=1e-6)


def test_two_rounds_with_a_smaller_learning_rate_by_hand(tmp_path):
    run = Federation([one("a", *A), one("b", *B)], method=FedAvg(rounds=2, decay=0.5)).run(tmp_path / "run")
    together = (A[0] + B[0], A[1] + B[1])
    w = 0.5 - 0.1 * gradient(0.5, *together)
    assert final(run) == pytest.approx(w - 0.05 * gradient(w, *together), abs=1e-6)


class Net(torch.nn.Module):
    """A small network with batch norm: parameters, statistics and a counter."""

    def __init__(self, input_shape, n_classes, width=16):
        super().__init__()
        self.one = torch.nn.Linear(input_shape[0], width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.two = torch.nn.Linear(width, n_classes)

    def forward(self, x):
        return self.two(torch.relu(self.norm(self.one(x))))


def wider(input_shape, n_classes):
    return Net(input_shape, n_classes, width=20)


RECIPE = Training(epochs=4, lr=0.01, batch=20)


def digits(silos, builder=Net, shares=SHARED):
    """Networks at three silos with different classes."""
    found = []
    for silo in silos():
        X, y = silo.data.all
        learner = Network(builder, RECIPE)
        found.append(Silo(silo.name, X, silo.task.decode(y), learner, shares=shares, task=silo.task.classes))
    return found


def test_tasks_that_differ_share_one_network_over_the_vocabulary(tmp_path, silos):
    run = Federation(digits(silos), method=FedAvg(rounds=6, epochs=2)).run(tmp_path / "run")
    weights = run.silos["tree"].learner.weights()
    assert weights["two.weight"].shape == (4, 16)  # digits 0 to 3; each silo has three of them
    assert weights["norm.num_batches_tracked"].dtype == np.int64
    assert set(run.silos["bayes"].predict(np.zeros((5, 64)))) <= {"1", "2", "3"}
    assert np.mean(list(run.scores("federated").values())) > 0.8
    assert sorted(run.result["scores"]) == ["federated", "local", *[f"round {n}" for n in range(1, 6)]]


def test_batch_norm_statistics_are_averaged_too(tmp_path, silos):
    members = digits(silos)
    one_round = Federation(members, method=FedAvg(rounds=1)).run(tmp_path / "run")
    assert np.abs(one_round.silos["tree"].learner.weights()["norm.running_mean"]).max() > 0.01


def same(first: Run, second: Run) -> bool:
    pairs = [(first.silos[n].learner.weights(), second.silos[n].learner.weights()) for n in first.silos]
    equal = all((a[key] == b[key]).all() for a, b in pairs for key in a)
    return equal and first.result == second.result


@pytest.mark.parametrize("method", [FedAvg, FedProx, PersonalisedFedAvg])
def test_the_same_with_any_number_of_workers(tmp_path, silos, method):
    runs = [
        Federation(digits(silos), method=method(rounds=2, fraction=0.7), engine=LocalEngine(n)).run(
            tmp_path / str(n)
        )
        for n in (0, 2)
    ]
    assert same(*runs)


def test_evaluation_every_so_many_rounds(tmp_path, silos):
    method = FedAvg(rounds=5, evaluate_every=2)
    run = Federation(digits(silos), method=method).run(tmp_path / "run")
    assert sorted(run.result["scores"]) == ["federated", "local", "round 2", "round 4"]


def test_a_fraction_of_the_silos_takes_part(tmp_path, silos):
    run = Federation(digits(silos), method=FedAvg(rounds=8, fraction=0.34)).run(tmp_path / "run")
    rounds = [sorted(ask["arrivals"]) for ask in run.asks() if ask["step"] == "train"]
    assert all(len(names) == 1 for names in rounds)
    assert len({names[0] for names in rounds}) > 1


@pytest.mark.parametrize("at", [0.3, 0.55, 0.75, 0.95])
@pytest.mark.parametrize("method", [FedAvg, PersonalisedFedAvg])
def test_a_killed_run_goes_on_from_its_last_mark(tmp_path, silos, method, at):
    """As the crash tests do it: a child that dies at one of its file operations."""
    settings = method(rounds=4, fraction=0.7, evaluate_every=2)

    def run(folder, limit):
        child = os.fork()
        if child == 0:
            count = 0

            def hook(event, arguments):
                nonlocal count
                if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"):
                    count += str(arguments[0]).startswith(str(folder))
                    if count == limit:
                        os.kill(os.getpid(), signal.SIGKILL)

            try:
                sys.addaudithook(hook)
                Federation(digits(silos), method=settings).run(folder)
                (tmp_path / "count").write_text(str(count))
            finally:
                os._exit(0)  # a failed child must not go on with the other tests
        return os.waitpid(child, 0)[1]

    assert run(tmp_path / "whole", None) == 0
    total = int((tmp_path / "count").read_text())
    assert run(tmp_path / "killed", int(total * at)) == signal.SIGKILL
    whole = Federation(digits(silos), method=settings).run(tmp_path / "whole")
    resumed = Federation(digits(silos), method=settings).run(tmp_path / "killed")
    assert same(whole, resumed)


def test_a_run_does_not_grow_with_its_rounds(tmp_path, silos):
    sizes = {}
    for rounds in (3, 12):
        folder = tmp_path / str(rounds)
        Federation(digits(silos), method=FedAvg(rounds=rounds, evaluate_every=100)).run(folder)
        logs = {"events.jsonl", "asks.jsonl", "audit.jsonl"}
        sizes[rounds] = sum(
            path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name not in logs
        )
    assert sizes[12] < 1.02 * sizes[3]


def test_a_learner_without_weights_is_told_what_it_can_join(tmp_path):
    silos = [
        Silo("tree", np.eye(8), list("abababab"), DecisionTreeClassifier(), shares=SHARED),
        one("net", *A),
    ]
    federation = Federation(silos, method=FedAvg())
    (line,) = federation.check()
    assert line == (
        "silo 'tree': DecisionTreeClassifier has no weights to share, which fedavg needs; "
        "`cosilo methods` shows which methods take any learner"
    )
    with pytest.raises(RunError, match="`cosilo methods` shows which methods take any learner"):
        federation.run(tmp_path / "run")


def test_a_silo_that_does_not_share_weights_refuses(tmp_path, silos):
    members = digits(silos, shares=["labels", "metrics"])
    with pytest.raises(RunError, match=r"does not share 'weights', which fedavg needs \(step 'train'"):
        Federation(members, method=FedAvg()).run(tmp_path / "run")


def test_another_architecture_is_rejected_and_the_round_goes_on(tmp_path, silos):
    members = digits(silos)
    X, y = members[2].data.all
    members[2] = Silo("odd", X, members[2].task.decode(y), Network(wider, RECIPE), shares=SHARED)
    run = Federation(members, method=FedAvg(rounds=2)).run(tmp_path / "run")
    texts = {failure["text"] for failure in run.result["failures"] if failure["step"] == "train"}
    assert texts == {
        "silo 'odd': wider: 'norm.bias' is [16] in the global model, here [20]; the architectures differ"
    }
    assert sorted(run.scores("federated")) == ["bayes", "tree"]


class Poisoned(Network):
    """Sends NaN."""

    def weights(self):
        return {name: array * np.nan for name, array in super().weights().items()}


def test_weights_that_are_not_numbers_do_not_leave_and_do_not_stop_the_others(tmp_path, silos):
    members = digits(silos)
    X, y = members[2].data.all
    members[2] = Silo("sick", X, members[2].task.decode(y), Poisoned(Net, RECIPE), shares=SHARED)
    run = Federation(members, method=FedAvg(rounds=1)).run(tmp_path / "run")
    (failure,) = [failure for failure in run.result["failures"] if failure["step"] == "train"]
    assert failure["silo"] == "sick"
    assert "holds NaN or infinity" in failure["text"]


def test_after_fedavg_a_silo_may_join_cofed_as_itself(tmp_path, silos, pool):
    members = digits(silos, shares=[*SHARED, "labels"])
    Federation(members, method=FedAvg(rounds=1)).run(tmp_path / "avg")
    run = Federation(members, pool, CoFED(alpha=0.4)).run(tmp_path / "cofed")
    assert run.silos["tree"].learner.weights()["two.weight"].shape == (3, 16)


class Shuffled(torch.nn.Module):
    """Looks at its inputs in an order of its own, which is not among its weights."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.order = torch.randperm(input_shape[0])
        self.layer = torch.nn.Linear(input_shape[0], n_classes)

    def forward(self, x):
        return self.layer(x[:, self.order])


def test_a_network_that_is_not_kept_is_the_same_one_after_a_restart(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 64)), rng.integers(2, size=40)
    weights = {"layer.weight": np.zeros((2, 64), np.float32), "layer.bias": np.zeros(2, np.float32)}
    orders = []
    for number in (2, 3):
        silo = Silo("a", X, y, Network(Shuffled, Training(epochs=1)), test=None, shares=SHARED)
        border = opened(silo, FedAvg(), tmp_path)
        if number == 2:
            asked(border, 1, "begin", encode({"vocabulary": ["0", "1"]}))
        answer = asked(border, number, "train", encode({"weights": weights, "round": 1}))
        assert isinstance(answer.content, bytes)
        orders.append(silo.learner.fitted().order.tolist())
    assert orders[0] == orders[1]
    assert not list(tmp_path.glob("model-*"))
