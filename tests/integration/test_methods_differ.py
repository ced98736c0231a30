"""Every method, as its own recipe sets it up, says something else than FedAvg does, or than silos do alone.

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

#: As `apart` has it: a thousandth is the order of rounding and of a few steps.
MORE_THAN_NOISE = 0.02
SMALL = {
    "dofed_cifar10_subset": {"split": {"silos": 2, "clusters": 2, "per_class": 8, "unlabelled": 4}},
    "dofed_dbpedia_subset": {"split": {"silos": 3, "per_class": 20, "unlabelled": 4}},
    "rounds_mnist": {"per_class": 40},
    "fml_mnist": {"per_class": 30},
    "cofed_fedavg": {"split": {"silos": 2, "classes": [3, 3], "per_class": 10}},
    "cofed_fedmd": {"split": {"silos": 2, "classes": [11, 11], "per_class": 4}},
    "tempo_fashion_mnist": {"split": {"silos": 4, "size": 20}, "institutions": 2, "test": 50},
}
ROUNDS = 2


def small(recipe):
    """A recipe with fewer silos, images and passes."""
    values = tomllib.loads(resources.files("cosilo").joinpath(f"recipes/{recipe}.toml").read_text("utf-8"))
    simulation = values["simulation"]
    for key, value in SMALL[recipe].items():
        simulation[key] = {**simulation[key], **value} if isinstance(value, dict) else value
    for learner in simulation["learners"]:
        if "passes" in learner.get("update", {}):
            learner["update"]["passes"] = 400
    return {**values, "workers": 0, "seed": 1}


def said(recipe, method, folder, rounds=ROUNDS, **more):
    """What silos' models say about test images, silo by silo: those of FedAvg, then those of a method."""
    values = small(recipe)
    compared = values.setdefault("compare", {})
    for name in ("fedavg", method):
        compared[name] = {**compared.get(name, {}), "rounds": rounds}
    compared[method] |= more
    if "epochs" in compared[method]:
        compared["fedavg"].setdefault("epochs", compared[method]["epochs"])
    plan = make_plan(values, Source(recipe, Path()), ["fedavg", method], 1)
    members = plan.members(1)
    for cell in plan.cells:
        run = plan.federation(cell, members).run(folder / cell[0])
        silos = [one.member(silo.name) for one in run.institutions.values() for silo in one.silos]
        yield [silo.predict_proba(silo.data.test[0][:50]) for silo in [*run.silos.values(), *silos]]


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("recipe", "method"),
    [
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
    assert apart(*said(recipe, method, tmp_path)) > MORE_THAN_NOISE


def apart(some, others):
    """Half of Σ_c |p(c) − q(c)|, mean over images and silos."""
    return np.mean([np.abs(p - q).sum(1).mean() / 2 for p, q in zip(some, others, strict=True)])


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    "recipe", [pytest.param("dofed_cifar10_subset", marks=pytest.mark.slow), "dofed_dbpedia_subset"]
)
def test_fedbe_is_not_fedavg(recipe, tmp_path):
    """After one round, where nothing differs by chance: it asks silos more, and later seeds are others.

    With two rounds it is 0.03 from FedAvg even if the student learns nothing. One that had 20 steps, as it
    once had in these recipes, is 0.0001 from FedAvg on DBpedia, and now it is 0.006.
    """
    assert apart(*said(recipe, "fedbe", tmp_path / "nothing", rounds=1, distil_lr=1e-12)) < 1e-5
    assert apart(*said(recipe, "fedbe", tmp_path / "recipe", rounds=1)) > 0.002


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("recipe", "method"),
    [("cofed_fedmd", "cofed"), ("cofed_fedmd", "fedmd"), ("dofed_dbpedia_subset", "dofed_spp")],
)
def test_a_silo_does_not_end_where_it_was_alone(recipe, method, tmp_path):
    """These average nothing: what they have to differ from is training alone, which each has done first."""
    values = small(recipe)
    values["pool"]["size"] = 100
    if method == "dofed_spp":
        values["compare"][method]["uploads"] = 2
        values["simulation"]["split"]["clusters"] = 2  # so that somebody trains on what a silo wants
    plan = make_plan(values, Source(recipe, Path()), [method], 1)
    (cell,) = plan.cells
    run = plan.federation(cell, plan.members(1)).run(tmp_path / "run")
    alone, after = (
        [run.model(name, which).predict_proba(silo.data.test[0][:50]) for name, silo in run.silos.items()]
        for which in ("local", "federated")
    )
    assert apart(alone, after) > MORE_THAN_NOISE
