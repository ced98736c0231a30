"""Every rival of FedAvg, as its own recipe sets it up, says something else than FedAvg does.

A method that changes a model by no more than noise would be FedAvg under another name, and comparing it with
FedAvg would compare nothing. Recipes are those that come with cosilo, with fewer silos, images and rounds.
"""

import tomllib
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from cosilo.comparison.plan import make_plan
from cosilo.config.source import Source

#: Half of Σ_c |p(c) − q(c)|, mean over images: a thousandth is the order of rounding and of a few steps.
MORE_THAN_NOISE = 0.02
SMALL = {
    "dofed_cifar10_subset": {"split": {"silos": 2, "clusters": 2, "per_class": 8, "unlabelled": 4}},
    "dofed_dbpedia_subset": {"split": {"silos": 3, "per_class": 20, "unlabelled": 4}},
    "rounds_mnist": {"per_class": 40},
    "fml_mnist": {"per_class": 30},
    "cofed_fedavg": {"split": {"silos": 2, "classes": [3, 3], "per_class": 10}},
    "tempo_fashion_mnist": {"split": {"silos": 4, "size": 20}, "institutions": 2, "test": 50},
}
ROUNDS = 2


def said(recipe, method, folder):
    """What silos' models say about test images, silo by silo: those of FedAvg, then those of a method."""
    values = tomllib.loads(resources.files("cosilo").joinpath(f"recipes/{recipe}.toml").read_text("utf-8"))
    simulation = values["simulation"]
    for key, value in SMALL[recipe].items():
        simulation[key] = {**simulation[key], **value} if isinstance(value, dict) else value
    compared = values.setdefault("compare", {})
    for name in ("fedavg", method):
        compared[name] = {**compared.get(name, {}), "rounds": ROUNDS}
    if "epochs" in compared[method]:
        compared["fedavg"].setdefault("epochs", compared[method]["epochs"])
    plan = make_plan({**values, "workers": 0, "seed": 1}, Source(recipe, Path()), ["fedavg", method], 1)
    members = plan.members(1)
    for cell in plan.cells:
        run = plan.federation(cell, members).run(folder / cell[0])
        silos = [one.member(silo.name) for one in run.institutions.values() for silo in one.silos]
        yield [silo.predict_proba(silo.data.test[0][:50]) for silo in [*run.silos.values(), *silos]]


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("recipe", "method"),
    [
        pytest.param("dofed_cifar10_subset", "fedbe", marks=pytest.mark.slow),
        ("dofed_dbpedia_subset", "fedbe"),
        ("dofed_dbpedia_subset", "fedfomo"),
        ("rounds_mnist", "fedprox"),
        ("rounds_mnist", "scaffold"),
        ("rounds_mnist", "fednova"),
        ("fml_mnist", "fml"),
        ("cofed_fedavg", "personalised_fedavg"),
        ("tempo_fashion_mnist", "tempo"),
        ("tempo_fashion_mnist", "fedadp_6"),
    ],
)
def test_a_rival_is_not_fedavg(recipe, method, tmp_path):
    fedavg, theirs = said(recipe, method, tmp_path)
    apart = [np.abs(p - q).sum(1).mean() / 2 for p, q in zip(theirs, fedavg, strict=True)]
    assert np.mean(apart) > MORE_THAN_NOISE
