"""What is read from runs: a mean over silos, and the silos that it is the mean of."""

from pathlib import Path
from statistics import fmean

import pytest

pytest.importorskip("torch")

from cosilo.comparison.compare import compare
from cosilo.config.reproduces import Reproduces
from cosilo.config.source import Source
from cosilo.reproduce.measures import measure, measure_silos

TRAINING = {"optimiser": "sgd", "lr": 0.1, "batch": 10, "epochs": 15}
MEASURES = {
    "cofed": ["accuracy", "local", "relative", "share", "control", "taught", "own_votes", "bytes"],
    "fedavg": ["accuracy", "joint"],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    split = {"use": "superclasses", "silos": 4, "classes": [4, 6], "per_class": 12}
    learner = {"use": "mlp", "hidden": [8], "training": TRAINING}
    shares = ["labels", "weights", "metrics", "size"]
    simulation = {"dataset": "digits", "split": split, "learners": [learner], "shares": shares}
    values = {"simulation": simulation, "pool": {"rest": True, "size": 60}}
    folder = tmp_path_factory.mktemp("runs") / "case"
    compared = {"fedavg": {"rounds": 2}, "cofed": {"rule": "paper", "alpha": 0.2, "accept": "always"}}
    return {"all": compare({**values, "compare": compared}, Source("r", Path()), list(compared), 1, folder)}


@pytest.mark.parametrize(("method", "what"), [(m, what) for m, all_ in MEASURES.items() for what in all_])
def test_with_one_seed_the_silos_behind_a_number_are_known(found, method, what):
    path = f"all.{method}.{what}"
    about = Reproduces.model_validate(
        {
            "paper": "CoFED",
            "what": "",
            "shows": "",
            "methods": list(MEASURES),
            "minutes": {"laptop": 1},
            "number": [{"text": "", "of": path}],
        }
    )
    (value,) = measure(found, about)[path]
    (by_silo,) = measure_silos(found, about)[path]
    assert len(by_silo) >= 2
    if what == "joint":  # a silo counts by the instances that no silo before it has
        assert min(by_silo.values()) <= value <= max(by_silo.values())
    else:
        assert fmean(by_silo.values()) == pytest.approx(value)
