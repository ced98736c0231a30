"""What compared methods are not equal in is named, on the terminal and on the page."""

from pathlib import Path

import pytest

from cosilo.comparison.compare import compare, read_comparison
from cosilo.comparison.fairness import unequal
from cosilo.config.source import Source
from cosilo.methods.effort import Effort
from cosilo.report.comparison_page import render

MLP = {"use": "mlp", "hidden": [8], "training": {"optimiser": "sgd", "lr": 0.1, "batch": 20, "epochs": 4}}
SPLIT = {"use": "superclasses", "silos": 5, "classes": [3, 5], "per_class": 10}
SHARES = ["labels", "logits", "weights", "similarity", "metrics", "size"]


#: A silo has 40 instances in the mean, and so has the pool: 1 + 2 public epochs, and 1 + 2 private ones.
FEDMD = {"rounds": 2, "public_epochs": 1, "private_epochs": 1, "revisit_epochs": 1}


def recipe(**compared):
    simulation = {"dataset": "digits", "split": SPLIT, "learners": [MLP], "shares": SHARES}
    pool = {"rest": True, "size": 40, "labelled": True}
    return {"simulation": simulation, "pool": pool, "compare": compared, "seed": 1}


def test_equal_methods_have_no_line():
    assert unequal({"a": Effort(3, 10.0, 1, 0.0), "b": Effort(3, 10.0, 1, 0.0), "c": Effort()}) == []
    assert unequal({"a": Effort(epochs=4.0), "b": Effort(epochs=1.2 / 0.3)}) == []
    # Silos differ in size: what comes nearest in whole epochs is as good as equal.
    assert unequal({"a": Effort(epochs=324.0), "b": Effort(epochs=329.6)}) == []
    assert unequal({"a": Effort(uploads=40), "b": Effort(uploads=41)}) != []


def test_one_line_for_each_difference():
    found = unequal(
        {"a": Effort(3, 10.0, 1, 0.2), "b": Effort(4, 12.5, 5, 0.0), "c": Effort(3, 10.0, 1, 0.2)}
    )
    assert found == [
        "Not equal: models uploaded in a round: 3 (a, c), 4 (b)",
        "Not equal: epochs of a silo's training in all: 10 (a, c), 12 (b)",
        "Not equal: rounds between judgements: 1 (a, c), 5 (b)",
        "Not equal: share of a silo's labelled data that is never trained on: 20% (a, c), 0% (b)",
    ]


def test_a_comparison_names_what_is_unequal_and_runs(tmp_path):
    compared = {
        "fedavg": {"rounds": 2, "epochs": 3, "fraction": 0.4, "evaluate_every": 2},
        "fedfomo": {"rounds": 2, "epochs": 2},
    }
    told = []
    made = compare(
        recipe(**compared), Source("r", Path()), list(compared), 1, tmp_path / "c", tell=told.append
    )
    lines = [
        "Not equal: models uploaded in a round: 2 (fedavg), 5 (fedfomo)",
        "Not equal: epochs of a silo's training in all: 2.4 (fedavg), 4 (fedfomo)",
        "Not equal: rounds between judgements: 2 (fedavg), 1 (fedfomo)",
        "Not equal: share of a silo's labelled data that is never trained on: 0% (fedavg), 20% (fedfomo)",
    ]
    assert told[:4] == lines
    assert list(made.unequal) == lines
    assert not made.failures
    page = render(read_comparison(tmp_path / "c"))
    assert "Not equal: models uploaded in a round: 2 (fedavg), 5 (fedfomo)" in page


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"fedavg": {"rounds": 2, "epochs": 5}}, {"fedprox": {"rounds": 5, "epochs": 2}}),
        ({"cofed": {}}, {"personalised_fedavg": {"rounds": 3, "epochs": 1, "tuning_epochs": 9}}),
        ({"local": {}}, {"fml": {"rounds": 2, "epochs": 2}}),
        ({"fedmd": FEDMD}, {"fedavg": {"rounds": 3, "epochs": 2}}),
        ({"fedavg": {"rounds": 2, "fraction": 0.4}}, {"fednova": {"rounds": 2, "fraction": 0.4}}),
    ],
)
def test_equal_work_in_other_words(one, other, tmp_path, monkeypatch):
    """CoFED has 4 epochs of local training, and 4 of update with the pool: as 3 rounds, and 9 of tuning."""
    from cosilo.comparison import compare as module

    monkeypatch.setattr(module, "_run", lambda plan, *_: plan)
    plan = compare(recipe(**one, **other), Source("r", Path()), [*one, *other], 1, tmp_path / "c")
    assert plan.unequal == ()


def test_fedbes_training_on_the_pool_is_named(tmp_path, monkeypatch):
    """Beside 2 rounds of 2 epochs: 2 · 20 epochs of a pool, each by one of the silos."""
    from cosilo.comparison import compare as module

    monkeypatch.setattr(module, "_run", lambda plan, *_: plan)
    both = {name: {"rounds": 2, "epochs": 2} for name in ("fedavg", "fedbe")}
    plan = compare(recipe(**both), Source("r", Path()), list(both), 1, tmp_path / "c")
    silos, pool = plan.members(plan.seeds[0])
    more = 2 * 20 * len(pool.X) / sum(silo.size for silo in silos)
    assert plan.unequal == (
        f"Not equal: epochs of a silo's training in all: 4 (fedavg), {4 + more:.2g} (fedbe)",
    )
