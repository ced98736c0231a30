"""Tempo: the server sets each institution's epochs from how far its model is from the global one (eq. 9)."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from cosilo import FedAvg, Federation, Institution, Silo, Tempo
from cosilo.aggregation.epoch_pacing import epochs
from cosilo.errors import ConfigError
from cosilo.learners import trainee

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402

SHARED = ["weights", "size", "metrics"]
RECIPE = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant")
#: By institution: the data of its clients, further and further from what the others say.
DATA = {
    "near": [([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1]), ([-2.0, 1.0], [0, 1])],
    "apart": [([0.5, -1.5, 2.0], [0, 1, 1]), ([1.5, -0.5], [1, 0])],
    "far": [([4.0, -3.0, 5.0], [0, 1, 0]), ([-6.0, 2.0], [1, 0])],
}


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


#: Which institution is at work, and how many steps its clients' optimisers have done.
at_work: list[str] = []
steps: Counter[str] = Counter()


class Watched(Network):
    """Says whose it is while it trains; `fails` is the number of federated trainings that fail."""

    def __init__(self, owner, fails=()):
        super().__init__(OneWeight, RECIPE)
        self.owner, self.fails = owner, fails

    alone = False

    def fit(self, *arguments, **options):
        self.alone = True
        super().fit(*arguments, **options)
        self.alone = False

    def train(self, *arguments, **options):
        at_work[:] = [f"{self.owner}, alone" if self.alone else self.owner]
        if not self.alone:
            trainings[self.owner] += 1
            if trainings[self.owner] in self.fails:
                raise ValueError
        return super().train(*arguments, **options)


trainings: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    steps.clear()
    trainings.clear()
    step = trainee.Optimiser.step

    def counting(self, *arguments):
        steps[at_work[0]] += 1
        return step(self, *arguments)

    monkeypatch.setattr(trainee.Optimiser, "step", counting)


def silo(name, data, learner):
    values, labels = data
    options = {"test": None, "shares": SHARED, "task": ["0", "1"]}
    return Silo(name, np.array(values)[:, None], labels, learner, **options)


def institution(name, fails=(), data=None):
    clients = enumerate(data or DATA[name])
    return Institution(name, [silo(f"c{n}", d, Watched(name, fails)) for n, d in clients], shares=SHARED)


def test_clients_really_do_the_epochs_that_the_server_sets(tmp_path):
    method = Tempo(rounds=4, first_epochs=6, local_rounds=3)
    run = Federation([institution(name) for name in DATA], method=method).run(tmp_path / "run")
    pace = run.result["pace"]
    assert [one["round"] for one in pace] == [1, 2, 3, 4]
    assert pace[0]["epochs"] == {"near": 6, "apart": 6, "far": 6}
    for name in DATA:
        # Full batches: an epoch is a step. Two clients, three local rounds in each of the four.
        assert steps[name] == 2 * 3 * sum(one["epochs"][name] for one in pace)
        assert (
            steps[f"{name}, alone"] == 2 * 3 * 4 * 6
        )  # local training does as many as if nothing were tuned
    assert len({tuple(one["epochs"].values()) for one in pace}) > 1


def test_end_points_and_order_in_every_round(tmp_path):
    method = Tempo(rounds=5, first_epochs=6, local_rounds=2)
    run = Federation([institution(name) for name in DATA], method=method).run(tmp_path / "run")
    pace = run.result["pace"]
    for before, after in pairwise(pace):
        differences, tuned = before["differences"], after["epochs"]
        by_difference = sorted(differences, key=lambda name: differences[name])
        assert (tuned[by_difference[0]], tuned[by_difference[-1]]) == (12, 3)  # least 2c, most c/2
        assert tuned[by_difference[0]] >= tuned[by_difference[1]] >= tuned[by_difference[2]]
        assert tuned == epochs(differences, 6, before["epochs"])


def test_differences_are_distances_to_the_new_global_model(tmp_path):
    method = Tempo(rounds=1, first_epochs=1, local_rounds=1)
    run = Federation([institution(name) for name in DATA], method=method).run(tmp_path / "run")

    def gradient(name):
        x, y = (np.concatenate([np.array(part[place]) for part in DATA[name]]) for place in (0, 1))
        return float(np.mean((1 / (1 + np.exp(-0.5 * x)) - y) * x))

    sizes = {name: sum(len(part[1]) for part in parts) for name, parts in DATA.items()}
    own = {name: 0.5 - 0.1 * gradient(name) for name in DATA}
    merged = sum(sizes[name] * own[name] for name in DATA) / sum(sizes.values())
    (w,) = run.global_weights()["w"]
    assert w == pytest.approx(merged, abs=1e-6)
    for name, found in run.result["pace"][0]["differences"].items():
        assert found == pytest.approx(abs(own[name] - merged), abs=1e-6)


def test_a_missing_institution_keeps_its_epochs(tmp_path):
    """It misses round 2: its two clients' trainings 3 and 4, with one local round."""
    method = Tempo(rounds=4, first_epochs=6, local_rounds=1)
    silos = [institution("near"), institution("apart", fails=(3, 4)), institution("far")]
    run = Federation(silos, method=method).run(tmp_path / "run")
    pace = run.result["pace"]
    assert sorted(pace[1]["differences"]) == ["far", "near"]
    assert pace[2]["epochs"]["apart"] == pace[1]["epochs"]["apart"]
    others = {name: pace[2]["epochs"][name] for name in ("near", "far")}
    assert sorted(others.values()) == [3, 12]
    assert sorted(pace[2]["differences"]) == ["apart", "far", "near"]
    (failure,) = [one for one in run.result["failures"] if one["step"] == "train"]
    assert failure["text"] == "silo 'apart': too few of its members could do step 'train'"


def test_with_equal_models_everyone_keeps_c(tmp_path):
    silos = [institution(name, data=DATA["near"]) for name in ("near", "far")]
    method = Tempo(rounds=3, first_epochs=5, local_rounds=1)
    run = Federation(silos, method=method).run(tmp_path / "run")
    assert [set(one["epochs"].values()) for one in run.result["pace"]] == [{5}, {5}, {5}]
    assert math.isclose(max(run.result["pace"][0]["differences"].values()), 0, abs_tol=1e-7)
    # Then it is FedAvg with c epochs.
    same = FedAvg(rounds=3, epochs=5, local_rounds=1)
    silos = [institution(name, data=DATA["near"]) for name in ("near", "far")]
    other = Federation(silos, method=same).run(tmp_path / "fedavg")
    assert other.global_weights()["w"] == run.global_weights()["w"]


def test_a_silo_without_members_takes_part(tmp_path):
    plain = silo("plain", DATA["far"][0], Watched("plain"))
    method = Tempo(rounds=3, first_epochs=4, local_rounds=2)
    run = Federation([institution("near"), institution("apart"), plain], method=method).run(tmp_path / "run")
    assert steps["plain"] == sum(one["epochs"]["plain"] for one in run.result["pace"])
    assert {one["epochs"]["plain"] for one in run.result["pace"]} - {4}


def test_epochs_are_not_a_parameter():
    with pytest.raises(ConfigError, match="epochs"):
        Tempo(epochs=3)
    assert "weights" in Tempo().needs()
