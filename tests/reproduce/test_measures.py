"""What is read from runs: a mean over silos, and the silos that it is the mean of."""

from pathlib import Path
from statistics import fmean

import pytest

pytest.importorskip("torch")

from cosilo.comparison.compare import compare
from cosilo.config.reproduces import Reproduces
from cosilo.config.source import Source
from cosilo.protocol.stage import FEDERATED, Stage
from cosilo.reproduce.measures import measure, measure_curves, measure_silos
from cosilo.reproduce.paper_verdict import number_values

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
    compared = {
        "fedavg": {"rounds": 2, "evaluate_every": 1},
        "cofed": {"rule": "paper", "alpha": 0.2, "accept": "always"},
    }
    compared["some"] = {**compared["cofed"], "use": "cofed", "updates": 2}
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


def test_lines_of_a_panel_are_means_over_the_same_silos(found):
    """Two of four silos update by CoFED: a curve of FedAvg beside theirs is that of these two."""
    curve = {"text": "", "of": {"CoFED": "all.some.accuracy", "FedAvg": "all.fedavg.accuracy"}}
    whole = {"text": "", "of": {"FedAvg": "all.fedavg.accuracy"}}
    about = {"paper": "CoFED", "what": "", "shows": "", "methods": ["some", "fedavg"]}
    runs = {name: found["all"].runs[name, found["all"].seeds[0]] for name in ("some", "fedavg")}
    two = list(runs["some"].scores(FEDERATED))
    assert len(two) == 2
    for panel, silos in [(curve, two), (whole, list(runs["fedavg"].scores(FEDERATED)))]:
        made = Reproduces.model_validate({**about, "minutes": {"laptop": 1}, "curve": [panel]})
        (points,) = measure_curves(found, made)["all.fedavg.accuracy over rounds"]
        expected = [
            fmean(runs["fedavg"].scores(stage)[name] for name in silos)
            for stage in (Stage.after_round(1), FEDERATED)
        ]
        assert [accuracy for _, accuracy in points] == pytest.approx(expected)


def test_a_quotient_of_accuracies_is_the_mean_of_silos_quotients(found):
    """Table 2 of CoFED: the mean of ratios, over the silos that both have, and not the ratio of means."""
    number = {"text": "", "of": "all.fedavg.accuracy", "over": "all.some.accuracy"}
    about = {"paper": "CoFED", "what": "", "shows": "", "methods": ["some", "fedavg"]}
    made = Reproduces.model_validate({**about, "minutes": {"laptop": 1}, "number": [number]})
    values = measure(found, made)
    seed = found["all"].seeds[0]
    mine, theirs = (found["all"].runs[name, seed].scores(FEDERATED) for name in ("fedavg", "some"))
    ratios = [mine[name] / theirs[name] for name in theirs]
    assert values["all.fedavg.accuracy / all.some.accuracy"] == [pytest.approx(fmean(ratios))]
    assert number_values(made.number[0], values) == values["all.fedavg.accuracy / all.some.accuracy"]
    (one,), (other,) = values["all.fedavg.accuracy"], values["all.some.accuracy"]
    assert fmean(ratios) != pytest.approx(one / other)
