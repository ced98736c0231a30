"""Targets, similarity, models that travel, simulated time, institutions: numbers by hand, and the page."""

import json
import math
import re

import numpy as np
import pytest

from cosilo.errors import RunError
from cosilo.report import lines
from cosilo.report.facts import gather
from cosilo.report.pace import Pace
from cosilo.report.phrases import labelling, verdict
from cosilo.report.run_page import render
from cosilo.runs.run import Run
from cosilo.simulated_time.clock import Clock, Link


def scores(values, instances):
    return {name: {"accuracy": value, "instances": instances} for name, value in values.items()}


#: 100 bytes per second, shared by the three silos; computing as measured.
CLOCK = {"up": {"rate": 100.0}}


@pytest.fixture
def with_targets(small):
    """The small run, with targets: labels of a get better, those of b worse, c's truth is not known."""
    small["wanted"] = {"a": ["eel"], "b": ["cat", "fox"], "c": ["fox"]}
    small["labelling"] = {
        "local": scores({"a": 0.5, "b": 0.7}, 20),
        "federated": scores({"a": 0.9, "b": 0.6}, 20),
    }
    return small


@pytest.fixture
def with_exchange(small):
    """Three rounds under a budget of 8 seconds; the models of the first round were downsized."""
    small["similarity"] = {"silos": ["a", "b", "c"], "values": [[0, 0.25, 0.75], [1, 0, 0], [0, 0, 0]]}
    small["budget"] = 8.0
    rounds = [(["a", "c"], 1.0, 2.5, {"a": 0.125, "c": 0.375}), (["b"], 0.25, 5.0, {}), ([], 0.0, 7.0, {})]
    small["exchange"] = [
        {
            "round": number,
            "uploaded": uploaded,
            "labellers": 2,
            "seconds": seconds,
            "labels_moved": moved,
            "reconstruction_error": errors,
        }
        for number, (uploaded, moved, seconds, errors) in enumerate(rounds, start=1)
    ]
    return small


def at_once(run: Run, **about) -> Run:
    """The run with more in its run.json."""
    path = run.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    return Run(run.folder)


# ---------------------------------------------------------------------- targets


def test_labelling_is_a_mean_over_silos_with_every_score(make, with_targets):
    found = gather(make(with_targets)).targets
    assert found.means == {"local": pytest.approx(0.6), "federated": pytest.approx(0.75)}
    assert found.compared == 2
    assert found.score("c", "federated") is None
    del with_targets["labelling"]["local"]["b"]
    found = gather(make(with_targets, name="less")).targets
    assert (found.means, found.compared) == ({"local": 0.5, "federated": 0.9}, 1)


def test_the_verdict_tells_about_labels(make, with_targets):
    text = verdict(gather(make(with_targets)))
    assert text.startswith("A mixed result: 1 of 3 silos gained")
    assert text.endswith(
        "75.0% of the unlabelled target points have the right label, 60.0% after local training "
        "(mean of 2 silos)."
    )
    with_targets["labelling"] = {"local": scores({"a": 0.5}, 20)}
    text = labelling(gather(make(with_targets, name="local")).targets)
    assert text == " 50.0% of the unlabelled target points have the right label (mean of 1 silo)."
    del with_targets["labelling"]
    assert labelling(gather(make(with_targets, name="unknown")).targets) == ""


def test_the_table_has_both_objectives(make, with_targets, reader_of):
    text = reader_of(render(gather(make(with_targets)))).cells
    assert "Local classification Federated classification" in text
    assert "Local labelling Federated labelling" in text
    assert "80.0% 72.0% ▼ 0.900 50.0% 90.0%" in text
    assert "= 1.000 – –" in text  # c
    assert "wants cat, fox" in text
    assert "cosilo labels 2026-01-02-cofed-1 SILO --out labels.csv" in text
    del with_targets["labelling"]  # targets of which nobody knows the truth
    text = reader_of(render(gather(make(with_targets, name="unknown")))).cells
    assert "Federated labelling" not in text
    assert "SILO --out labels.csv" in text


# ---------------------------------------------------------------------- the exchange


def test_the_exchange_by_hand(make, with_exchange):
    found = gather(make(with_exchange)).exchange
    assert found.similarity.kind == "similarity"
    assert found.similarity.values[0] == (0.0, 0.25, 0.75)
    assert [one.uploaded for one in found.rounds] == [("a", "c"), ("b",), ()]
    assert [one.mean_error for one in found.rounds] == [0.25, None, None]
    assert (found.budget, found.downsized) == (8.0, True)


def test_the_page_has_the_exchange(make, with_exchange, reader_of):
    reader = reader_of(render(gather(make(with_exchange))))
    assert {"similarity", "travels", "budget"} <= set(reader.ids)
    assert "1 2 2 100.0% 0.25 at most 0.375 2.5 s 31.2%" in reader.cells
    assert "2 1 2 25.0% – 5.0 s 62.5%" in reader.cells
    assert "The budget is 8.0 s for all rounds." in reader.cells
    assert "T = 8 s" in reader.cells


def test_without_budget_and_downsizing_nothing_is_said_about_them(make, with_exchange, reader_of):
    with_exchange["budget"] = None
    with_exchange["exchange"][0]["reconstruction_error"] = {}
    reader = reader_of(render(gather(make(with_exchange))))
    assert "travels" in reader.ids
    assert "budget" not in reader.ids
    assert "Reconstruction" not in reader.cells


def test_affinity_of_other_methods_and_a_matrix_of_nothing(make, small, reader_of):
    small["affinity"] = {"silos": ["c", "a"], "values": [[0, 1.5], [0.5, 0]]}  # not all took part
    facts = gather(make(small))
    assert facts.exchange.similarity.kind == "affinity"
    assert "added up over the rounds" in reader_of(render(facts)).cells
    small["affinity"]["values"] = [[0, 0], [0, 0]]
    assert 'id="similarity"' not in render(gather(make(small, name="zero")))
    small["affinity"]["values"] = [[0, 1]]
    with pytest.raises(RunError, match="affinity wants one row and one column for each silo"):
        gather(make(small, name="damaged"))


def test_nothing_is_missing_where_nothing_was_found(make, reader_of):
    reader = reader_of(render(gather(make())))
    new = {"similarity", "travels", "budget", "time-to-accuracy", "tree", "epochs", "differences"}
    assert not new & set(reader.ids)
    assert "Simulated" not in reader.cells
    assert "abelling" not in reader.cells


@pytest.mark.parametrize("silos", [4, 25, 100])
def test_any_number_of_silos(make, large, silos, reader_of):
    result = large(silos, 10, rounds=2)
    names = list(result["tasks"])
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.full(silos, 0.1), silos).round(4).tolist()
    result["similarity"] = {"silos": names, "values": values}
    result["exchange"] = [
        {"round": n, "uploaded": names[n::3], "labellers": 3, "seconds": 0.0, "labels_moved": 1 / n}
        for n in range(1, 31)
    ]
    page = render(gather(make(result)))
    assert {"similarity", "travels"} <= set(reader_of(page).ids)
    assert len(page.encode()) < 600_000


# ---------------------------------------------------------------------- simulated time


def test_moments_by_hand(make):
    run = at_once(make(), clock=CLOCK)
    assert run.clock == Clock(up=Link(rate=100.0))
    moments = run.moments()
    # hello and evaluate are free; train computes 0.2 s and sends nothing; label computes 0.4 s and sends
    # 3 · 50 bytes at 100 a second; update computes 0.5 s.
    assert [moment.step for moment in moments if moment.upload] == ["label"]
    assert [moment.at for moment in moments] == pytest.approx([0, 0.2, 0.2, 2.1, 2.6, 2.6])
    told = gather(run).simulated
    assert told.at == {"local": pytest.approx(0.2), "federated": pytest.approx(2.6)}
    assert (told.total, told.compute, told.upload) == pytest.approx((2.6, 1.1, 1.5))
    assert told.steps["label"] == (1, pytest.approx(0.4), 1.5)
    assert told.curve(gather(run).results.means) == ((pytest.approx(2.6), pytest.approx(1.72 / 3)),)


def test_another_clock_tells_another_time(make):
    run = make()
    assert (run.clock, run.moments()) == (None, [])
    assert gather(run).simulated is None
    assert run.moments(Clock(up=Link(rate=50.0)))[-1].at == pytest.approx(4.1)
    assert gather(run, Clock(up=Link(rate=50.0))).simulated.total == pytest.approx(4.1)


def test_asks_that_do_not_fit_the_stages_give_no_curve(make, small, reader_of):
    small["asks"] = small["asks"][:-1]
    run = at_once(make(small), clock=CLOCK)
    assert gather(run).simulated.at == {}
    reader = reader_of(render(gather(run)))
    assert "time-to-accuracy" not in reader.ids
    assert "Over the links of its clock the run would have taken 2.6 s" in reader.cells


def test_the_page_has_the_simulated_time(make, reader_of):
    reader = reader_of(render(gather(at_once(make(), clock=CLOCK))))
    assert "time-to-accuracy" in reader.ids
    assert "would have taken 2.6 s: 1.1 s of computing" in reader.cells
    assert "label 1 400 ms 1.5 s 1.9 s" in reader.cells
    assert "clock.up.rate 100.0" in reader.cells


def test_a_damaged_clock_is_one_line(make):
    with pytest.raises(RunError, match=r"run\.json: its clock is damaged") as caught:
        gather(at_once(make(), clock={"up": {"rate": -1}}))
    assert len(str(caught.value).splitlines()) == 1


# ---------------------------------------------------------------------- the global network, institutions


def test_the_global_network_has_its_curve(make, large, reader_of):
    result = large(3, 4, rounds=3)
    result["joint"] = {
        stage: {"accuracy": value, "instances": 300}
        for stage, value in (("round 1", 0.25), ("round 2", 0.5), ("federated", 0.625))
    }
    facts = gather(make(result))
    assert facts.results.joint == {"round 1": 0.25, "round 2": 0.5, "federated": 0.625}
    text = reader_of(render(facts)).cells
    assert "global 62.5%" in text
    assert "the orange line the global network" in text


def test_pace_by_hand(make, small, reader_of):
    small["pace"] = [
        {"round": 1, "epochs": {"a": 3, "b": 12}, "differences": {"a": 0.5, "b": 0.0}},
        {"round": 2, "epochs": {"a": 6, "c": 4}, "differences": {"a": 0.25, "c": 10.0}},
    ]
    found = gather(make(small)).pace
    assert found.rounds == (1, 2)
    assert found.epochs == {"a": (3, 6), "b": (12, None), "c": (None, 4)}
    assert found.differences == {"a": (0.5, 0.25), "b": (0.0, None), "c": (None, 10.0)}
    assert {"epochs", "differences"} <= set(reader_of(render(gather(make(small)))).ids)


def test_a_pace_without_differences(make, small, reader_of):
    small["pace"] = [{"round": 1, "epochs": {"a": 3}}]
    reader = reader_of(render(gather(make(small))))
    assert "epochs" in reader.ids
    assert "differences" not in reader.ids


@pytest.mark.parametrize("pair", [(0.9, 0.15), (0.51, 0.5), (10.0, 0.05)])
def test_the_axis_of_differences_has_numbers(pair):
    """Also where there is no power of ten among them."""
    svg = lines.differences(Pace((1, 2), {"a": (6, 6)}, {"a": pair}))
    written = {float(text) for text in re.findall(r">([0-9.]+)<", svg)} - {1.0, 2.0}  # without the rounds
    assert len([value for value in written if pair[1] <= value <= pair[0]]) >= 2


@pytest.mark.parametrize("institutions", [3, 30, 60])
def test_institutions_of_any_number(make, large, institutions, reader_of):
    result = large(institutions, 5, rounds=2)
    names = list(result["tasks"])
    rng = np.random.default_rng(0)
    result["pace"] = [
        {
            "round": number,
            "epochs": {name: int(rng.integers(3, 13)) for name in names},
            "differences": {name: math.exp(rng.normal()) / number for name in names},
        }
        for number in range(1, 21)
    ]
    members = {name: [f"{name}-{n}" for n in range(1, 15 * (place + 1))] for place, name in enumerate(names)}
    reader = reader_of(render(gather(at_once(make(result), members=members))))
    assert {"tree", "epochs", "differences"} <= set(reader.ids)
    assert "silo-002 29 silo-002-1, silo-002-2" in reader.cells
    assert "server" in reader.cells
