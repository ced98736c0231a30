"""A budget of simulated time ends any method between two rounds, and what exists then is the result."""

from pathlib import Path

import pytest

from cosilo.config import build
from cosilo.errors import ConfigError, RunError
from cosilo.simulated_time.time_limit import TimeLimit

ALL = ["labels", "logits", "weights", "similarity", "metrics", "size"]
MLP = {"use": "mlp", "hidden": [8], "training": {"optimiser": "sgd", "lr": 0.1, "batch": 20, "epochs": 1}}
OVERLAP = {"use": "superclasses", "silos": 3, "classes": [3, 5], "per_class": 8}
SUBSET = {"use": "subset", "silos": 4, "clusters": 4, "per_class": 10, "labelled": 2, "unlabelled": 4}
#: Every method that has rounds, and how its silos and steps are called that take 10 s each.
METHODS = {
    "fedavg": (OVERLAP, {}, ["train"]),
    "personalised_fedavg": (OVERLAP, {}, ["train"]),
    "fml": (OVERLAP, {}, ["train"]),
    "fedbe": (OVERLAP, {"samples": 2, "distil_epochs": 1}, ["train"]),
    "fedmd": (OVERLAP, {"public_epochs": 1, "private_epochs": 1, "revisit_epochs": 1}, ["revisit"]),
    "fedfomo": (OVERLAP, {"epochs": 1}, ["train"]),
    "cofed": (OVERLAP, {"alpha": 0.0}, ["update"]),
    "dofed_spp": (SUBSET, {"warm_up": 1, "stop_below": 0.0}, ["learn"]),
}


def recipe(name, budget, **more):
    split, parameters, slow = METHODS[name]
    kind = {"use": name, "rounds": 5, **parameters}
    method = build.find_kind(name, "method")(**{key: value for key, value in kind.items() if key != "use"})
    cycles = {step: 10.0 * (step in slow) for step in method.steps()}
    clock = {"up": {"rate": 1e300}, "compute": "cycles", "cycles_per_second": 1.0, "cycles": cycles}
    return {
        "seed": 1,
        "method": kind,
        "pool": {"rest": True, "size": 40, "labelled": True},
        "simulation": {"dataset": "digits", "split": split, "learners": [MLP], "shares": ALL},
        "clock": clock | ({} if budget is None else {"budget": budget}),
        **more,
    }


def federation(values):
    return build.federation(values, build.Source("limited.toml", Path()))


def test_another_round_takes_as_long_as_the_last_one():
    limit = TimeLimit(100.0, elapsed={1: 30.0, 2: 60.0, 3: 90.0}.__getitem__)
    assert limit.allows_another(began=1, now=1)
    assert limit.allows_another(began=1, now=2)  # 60 + 30
    assert not limit.allows_another(began=2, now=3)  # 90 + 30
    assert not limit.allows_another(began=1, now=3)  # 90 + 60


@pytest.mark.parametrize("name", METHODS)
def test_it_ends_any_method_and_what_exists_then_is_the_result(name, tmp_path):
    run = federation(recipe(name, 35.0)).run(tmp_path / "run")  # three rounds of 10 s, and no fourth
    assert run.result["stopped_after"] == 3
    (slow,) = METHODS[name][2]
    assert [ask["step"] for ask in run.asks()].count(slow) == 3
    assert list(run.result["scores"])[-1] == "federated"
    assert len(run.scores("federated")) == len(run.silos)
    assert run.moments()[-1].at == 30.0
    whole = federation(recipe(name, 50.0)).run(tmp_path / "whole")
    assert "stopped_after" not in whole.result
    assert [ask["step"] for ask in whole.asks()].count(slow) == 5


def test_what_was_measured_counts(tmp_path):
    values = recipe("fedavg", None)
    values["clock"] = {"up": {"rate": 1e300}, "speed": 1e12, "budget": 1.0}
    run = federation(values).run(tmp_path / "run")
    assert run.result["stopped_after"] == 1  # it is always begun
    assert run.moments()[-1].at > 1.0


def test_links_count_both_ways_with_their_latency(tmp_path):
    values = recipe("fedavg", 45.0)
    cycles = dict.fromkeys(values["clock"]["cycles"], 0.0)
    up, down = {"rate": 1e300, "latency": 4.0}, {"rate": 1e300, "latency": 6.0, "shared": False}
    values["clock"] |= {"up": up, "down": down, "cycles": cycles}
    run = federation(values).run(tmp_path / "run")
    # `begin` takes 6 + 4 s and `initial`, which is sent nothing, 4 s; then 10 s a round.
    assert run.moments()[-1].at == 44.0
    assert run.result["stopped_after"] == 3


def test_what_goes_on_inside_institutions_counts(tmp_path):
    values = recipe("fedavg", 60.0)
    values["method"] = {"use": "tempo", "rounds": 5, "local_rounds": 2, "first_epochs": 1}
    values["simulation"] |= {"split": {"use": "iid", "silos": 4, "size": 20}, "institutions": 2}
    cycles = dict.fromkeys(values["clock"]["cycles"], 0.0)
    links = {"up": 4.0, "down": 6.0, "inside": 1.0}
    links = {name: {"rate": 1e300, "latency": latency} for name, latency in links.items()}
    values["clock"] |= {"cycles": cycles} | links
    run = federation(values).run(tmp_path / "run")
    # `begin` takes 6 + 2 + 4 s, `initial` 1 + 4 s, a round with two inside 6 + 2 · 2 + 4 s: 17 and 14 each.
    assert run.moments()[-1].at == 59.0
    assert run.result["stopped_after"] == 3


@pytest.mark.parametrize("crash_at", ["judge", "evaluate"])
def test_a_run_that_is_continued_ends_where_it_would_have_ended(crash_at, tmp_path):
    whole = federation(recipe("fedavg", 35.0)).run(tmp_path / "whole")
    calls = []

    def watch(event):
        if event.what == "ask" and event.facts["step"] == crash_at:
            calls.append(event)
            if len(calls) == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        federation(recipe("fedavg", 35.0)).run(tmp_path / "run", observers=[watch])
    run = federation(recipe("fedavg", 35.0)).run(tmp_path / "run")
    assert run.result == whole.result
    assert run.result["stopped_after"] == 3


def test_a_clock_with_a_budget_is_part_of_the_run(tmp_path):
    def stop(event):
        if event.what == "ask" and event.facts["step"] == "judge":
            raise KeyboardInterrupt

    for folder, first, second in (("a", 35.0, None), ("b", None, 35.0), ("c", 35.0, 45.0)):
        with pytest.raises(KeyboardInterrupt):
            federation(recipe("fedavg", first)).run(tmp_path / folder, observers=[stop])
        with pytest.raises(RunError, match="was begun with"):
            federation(recipe("fedavg", second)).run(tmp_path / folder)


def test_what_a_budget_may_be():
    with pytest.raises(ConfigError, match=r"clock\.budget"):
        federation(recipe("fedavg", -1.0))
