"""Numbers of made-up runs, worked out by hand; the sentences about them; the page."""

import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from cosilo.cli.results import comparison_table
from cosilo.comparison.plan import Plan
from cosilo.config.build import Source
from cosilo.config.reproduces import Reproduces
from cosilo.report import write_comparison
from cosilo.report.averages import Average, average
from cosilo.report.comparison_page import render
from cosilo.report.comparison_verdict import notes, verdict
from cosilo.report.line_ends import apart
from cosilo.report.mean_over_time import mean_over_time
from cosilo.report.summary import summarise
from cosilo.report.time_to_accuracy import TimeToAccuracy, time_to_accuracy
from cosilo.reproduce.measures import measure, measure_curves
from cosilo.reproduce.paper_verdict import number_values
from cosilo.runs.comparison import FailedRun
from cosilo.simulated_time.clock import Clock, Link

VALUES = {
    "simulation": {
        "dataset": "digits",
        "split": {"use": "iid", "silos": 2},
        "learners": [{"use": "mlp"}],
    }
}


def scores(**values):
    return {name: {"accuracy": value, "instances": 100} for name, value in values.items()}


def result(*stages, local=(0.8, 0.4), joint=None, **others):
    """Two silos; `stages` are their accuracies after each round, the last one is the end."""
    names = [*[f"round {number}" for number in range(1, len(stages))], "federated"][-len(stages) :]
    found = {"local": scores(a=local[0], b=local[1])}
    if stages:
        found |= {name: scores(a=a, b=b) for name, (a, b) in zip(names, stages, strict=True)}
    if joint:
        places = zip(names, joint, strict=True)
        others["joint"] = {name: {"accuracy": value, "instances": 200} for name, value in places}
    return {"tasks": {"a": ["x", "y"], "b": ["y", "z"]}, "scores": found, "failures": [], **others}


@pytest.fixture
def comparison(make, tmp_path):
    """Makes a comparison of results by method, one for each seed; a text stands for a failure."""

    def build(compare=None, first=0, **methods):
        runs, failures = {}, {}
        for name, results in methods.items():
            for seed, one in enumerate(results, start=first):
                if isinstance(one, str):
                    failures[name, seed] = FailedRun(one, one)
                    continue
                method = {"use": name} | ({} if name == "local" else {"rounds": len(one["scores"]) - 1})
                method |= (compare or {}).get(name, {})
                runs[name, seed] = make(one, name=f"c/{name}-seed{seed}", method=method, seed=seed)
        count = len(next(iter(methods.values())))
        values = {**VALUES, "compare": compare or {}}
        seeds = tuple(range(first, first + count))
        (tmp_path / "c").mkdir(exist_ok=True)
        plan = Plan(Source("digits.toml", Path()), values, tuple(methods), seeds)
        return plan.comparison(tmp_path / "c", runs, failures)

    return build


# ---------------------------------------------------------------------- numbers


def test_a_spread_is_the_sample_standard_deviation():
    # Mean 4, squares 4 + 0 + 4, by n − 1 = 2.
    assert average([2.0, 4.0, 6.0]) == Average(4.0, 2.0)
    assert average([0.3]) == Average(0.3, None)
    assert average([None, 0.3]) == Average(0.3, None)
    assert average([None]) is None
    assert Average(0.9, 0.0125).percent == "90.0% ± 1.2"
    assert Average(0.9, None).percent == "90.0%"


def test_the_numbers_of_a_method_by_hand(comparison):
    made = comparison(  # the best round is not the last
        compare={"fedavg": {"rounds": 3}},
        fedavg=[
            result((0.5, 0.3), (0.9, 0.6), (0.8, 0.5), joint=(0.2, 0.7, 0.6)),
            result((0.5, 0.3), (0.9, 0.6), (0.6, 0.4), joint=(0.2, 0.9, 0.5)),
        ],
    )
    (row,) = summarise(made).rows
    one, two = row.runs
    # Means over the silos: (0.8 + 0.5) / 2 and (0.6 + 0.4) / 2; relative (1 + 1.25) / 2 and (0.75 + 1) / 2.
    assert (one.accuracy, two.accuracy) == pytest.approx((0.65, 0.5))
    assert (one.local, two.local) == pytest.approx((0.6, 0.6))
    assert (one.relative, two.relative) == pytest.approx((1.125, 0.875))
    assert (one.gained, one.compared, two.gained) == (1, 2, 0)
    assert (one.joint, two.joint) == (0.6, 0.5)
    assert one.left == 556  # the bytes of the audit log of each silo
    assert one.seconds == pytest.approx(12.25)  # 0.25 before each of 6 asks and after, and 0.5 × (1 + … + 6)
    # Over the seeds: of two values, the standard deviation is their distance / √2.
    assert row.accuracy.mean == pytest.approx(0.575)
    assert row.accuracy.std == pytest.approx(0.15 / math.sqrt(2))
    assert row.relative.mean == pytest.approx(1.0)
    assert row.relative.std == pytest.approx(0.25 / math.sqrt(2))
    assert (row.share.mean, row.share.std) == pytest.approx((0.25, 0.5 / math.sqrt(2)))
    assert (row.joint.mean, row.joint.std) == pytest.approx((0.55, 0.1 / math.sqrt(2)))
    assert (row.left.std, row.rounds) == (0, 3)


def test_a_curve_is_the_mean_over_seeds_of_the_mean_over_silos(comparison):
    made = comparison(
        fedavg=[result((0.4, 0.2), (0.8, 0.6), joint=(0.1, 0.2)), result((0.6, 0.2), (0.9, 0.5))]
    )
    (row,) = summarise(made).rows
    first, last = row.curve
    assert (first.rounds, last.rounds, str(last.stage)) == (1, 2, "federated")
    assert (first.accuracy.mean, first.accuracy.std) == pytest.approx((0.35, 0.1 / math.sqrt(2)))
    assert (last.accuracy.mean, last.accuracy.std) == pytest.approx((0.7, 0))
    # One of the runs has a global model.
    assert [(mark.rounds, mark.accuracy) for mark in row.joint_curve] == [
        (1, Average(0.1, None)),
        (2, Average(0.2, None)),
    ]
    assert row.joint == Average(0.2, None)


def test_what_comes_after_the_last_round_has_no_round_of_its_own(comparison):
    one = result((0.5, 0.3), (0.7, 0.5), (0.9, 0.7), joint=(0.3, 0.4, 0.5))
    one["scores"]["round 3"] = one["scores"].pop("federated")  # fedavg's last round …
    one["joint"]["round 3"] = one["joint"].pop("federated")
    one["scores"]["federated"] = scores(a=0.95, b=0.85)  # … and then each silo for itself
    made = comparison(compare={"personalised_fedavg": {"rounds": 3}}, personalised_fedavg=[one])
    (row,) = summarise(made).rows
    assert [(mark.rounds, str(mark.stage)) for mark in row.curve] == [
        (1, "round 1"),
        (2, "round 2"),
        (3, "round 3"),
        (3, "federated"),
    ]
    assert row.accuracy.mean == pytest.approx(0.9)
    assert row.joint.mean == 0.5
    assert "After its last round personalised_fedavg continues at each silo" in render(made)


def test_rounds_that_were_not_judged_leave_their_place_free(comparison):
    one = result((0.5, 0.3), (0.7, 0.5), (0.9, 0.7))
    del one["scores"]["round 2"]
    (row,) = summarise(comparison(compare={"fedavg": {"rounds": 3}}, fedavg=[one])).rows
    assert [mark.rounds for mark in row.curve] == [1, 3]


def test_local_training_is_its_own_end(comparison):
    (row,) = summarise(comparison(local=[result(), result(local=(0.6, 0.4))])).rows
    assert row.alone
    assert row.accuracy.mean == pytest.approx(0.55)
    assert (row.relative, row.joint, row.rounds, row.curve) == (None, None, None, ())


def test_methods_with_the_same_local_models_have_one_baseline(comparison):
    one, other = result((0.9, 0.5)), result((0.9, 0.5), local=(0.7, 0.4))
    (same,) = summarise(comparison(fedavg=[one, one], local=[result(), "lost"])).baselines
    assert (same.methods, same.accuracy.mean) == (("fedavg", "local"), pytest.approx(0.6))
    found = summarise(comparison(fedavg=[one], cofed=[other], local=[result()]))
    assert [base.methods for base in found.baselines] == [("fedavg", "local"), ("cofed",)]
    assert [base.accuracy.mean for base in found.baselines] == pytest.approx([0.6, 0.55])
    told = " ".join(notes(found))
    assert "Local training is not the same for all methods (fedavg, local: 60.0%; cofed: 55.0%)" in told


# ---------------------------------------------------------------------- sentences


def even(*accuracies, **options):
    """Results in which both silos have that accuracy at the end."""
    return [result((value, value), **options) for value in accuracies]


def test_what_was_chosen_by_test_data_is_called_not_honest(comparison):
    found = summarise(comparison(cofed=even(0.8), fedavg=even(0.7)))
    peeked = [
        replace(row, parameters={"selection": "test"}) if row.name == "cofed" else row for row in found.rows
    ]
    told = notes(replace(found, rows=tuple(peeked)))
    assert "Not an honest result: in cofed when networks stopped, and which of their settings" in told[0]
    assert not any("honest" in note for note in notes(found))


def test_a_lead_within_the_spread_is_called_that(comparison):
    # Seed by seed +10, −5 and +4 points: mean 3, deviations 7, −8 and 1, so √(114 / 2) = 7.5.
    made = comparison(fedavg=even(0.7, 0.75, 0.76), fedprox=even(0.8, 0.7, 0.8))
    text = verdict(summarise(made))
    assert text.startswith(
        "fedprox has the highest accuracy: 76.7% ± 5.8 over 3 seeds, 3.0 points above fedavg"
    )
    assert "That is within the spread: seed by seed the difference is 3.0 ± 7.5 points" in text
    assert "do not tell the two apart" in text


def test_a_lead_on_every_seed_is_told_from_chance_though_the_seeds_differ_much(comparison):
    # Seeds differ by 30 points, the methods on each of them by 2, 3 and 4.
    made = comparison(fedavg=even(0.5, 0.65, 0.8), fedprox=even(0.52, 0.68, 0.84), local=[result()] * 3)
    text = verdict(summarise(made))
    assert "3.0 points above fedavg (65.0% ± 15.0). That is more than the spread" in text
    assert "seed by seed the difference is 3.0 ± 1.0 points" in text
    # Local is 60% on every seed, the lead over it −8, 8 and 24: no lead at all.
    assert "fedprox is not ahead of local by more than the spread." in notes(summarise(made))


def test_one_seed_is_not_a_comparison(comparison):
    text = verdict(summarise(comparison(fedavg=even(0.7), fedprox=even(0.8))))
    assert text == (
        "fedprox has the highest accuracy: 80.0% over 1 seed, 10.0 points above fedavg (70.0%). "
        "One seed cannot tell a lead from chance."
    )


def test_level_methods_are_level(comparison):
    text = verdict(summarise(comparison(fedavg=even(0.7, 0.8), fedprox=even(0.8, 0.7))))
    assert "75.0% ± 7.1 over 2 seeds, level with fedprox (75.0% ± 7.1). That is within the spread" in text


def test_less_than_local_training_is_called_that(comparison):
    found = summarise(
        comparison(fedavg=even(0.5, 0.5, local=(0.8, 0.8)), cofed=even(0.4, 0.4, local=(0.8, 0.8)))
    )
    assert (
        "Relative accuracy (federated ÷ local) of fedavg: 0.625 ± 0.000, less than local training alone."
        in notes(found)
    )
    found = summarise(comparison(fedavg=even(0.5, 0.5), local=[result(), result()]))
    assert verdict(found).startswith("local has the highest accuracy: 60.0%")
    assert notes(found) == ["local is local training: no method that exchanges anything is ahead of it."]


def test_the_first_by_relative_accuracy_is_named_if_it_is_another(comparison):
    # cofed: 0.7 / 0.5; fedavg: 0.75 / 0.8 and 0.75 / 0.4.
    made = comparison(fedavg=even(0.75, 0.75), cofed=even(0.7, 0.7, local=(0.5, 0.5)))
    found = notes(summarise(made))
    assert "Relative accuracy (federated ÷ local) of fedavg: 1.406 ± 0.000." in found
    assert not any("is first" in note for note in found)  # 1.406 > 1.4
    made = comparison(fedavg=even(0.72, 0.72), cofed=even(0.7, 0.7, local=(0.5, 0.5)))
    assert "By relative accuracy cofed is first: 1.400 ± 0.000." in notes(summarise(made))


def test_a_method_that_is_not_on_every_seed_is_not_the_best(comparison):
    made = comparison(fedavg=even(0.7, 0.72), fedprox=[*even(0.9), "step 'train': no quorum"])
    found = summarise(made)
    assert verdict(found).startswith("fedavg is the only method with an accuracy on every seed: 71.0% ± 1.4")
    assert "1 of 4 runs has no result: see Failures." in notes(found)
    assert "Without an accuracy on every seed, and therefore left out above: fedprox." in notes(found)
    assert found.rows[1].accuracy == Average(0.9, None)  # of the seed that it has


def test_nothing_to_compare(comparison):
    assert verdict(summarise(comparison(fedavg=["lost"], fedprox=["lost"]))).startswith("No run has finished")
    private = result((0.5, 0.5))
    private["scores"] = {"local": {}, "federated": {}}
    assert verdict(summarise(comparison(fedavg=[private]))).startswith("No silo shares its accuracy")
    found = summarise(comparison(fedavg=["lost", *even(0.5)], fedprox=[*even(0.5), "lost"]))
    assert verdict(found).startswith("No method has an accuracy on every seed")


def test_a_silo_that_fell_out_is_told(comparison):
    one = result((0.5, 0.5))
    del one["scores"]["federated"]["b"]
    found = summarise(comparison(fedavg=[one], fedprox=even(0.6)))
    (row, _) = found.rows
    assert (row.runs[0].local, row.runs[0].accuracy) == (0.8, 0.5)  # both of silo a
    assert "not all in fedavg, seed 0 (1 of 2)." in notes(found)[-1]


# ---------------------------------------------------------------------- the page


@pytest.fixture
def full(comparison):
    """Rounds, a global model, local training, a failure."""
    return comparison(
        compare={"fedavg": {"rounds": 3}, "fedprox": {"mu": 0.25, "rounds": 3}},
        first=4,
        fedavg=[
            result((0.5, 0.3), (0.6, 0.4), (0.8, 0.5), joint=(0.2, 0.4, 0.6)),
            result((0.5, 0.3), (0.6, 0.4), (0.6, 0.4), joint=(0.2, 0.4, 0.5)),
        ],
        fedprox=[result((0.5, 0.3), (0.6, 0.4), (0.9, 0.7)), "<script>alert(1)</script>"],
        local=[result(), result()],
    )


def test_the_page_is_whole_and_opens_offline(full, reader_of):
    path = write_comparison(full)
    assert path == full.folder / "comparison.html"
    page = path.read_text("utf-8")
    reader = reader_of(page)
    assert page.startswith("<!DOCTYPE html>")
    assert "script" not in reader.tags
    assert all(target.startswith("#") for target in reader.targets)
    assert {target[1:] for target in reader.targets} <= set(reader.ids)
    assert not re.search(r"url\((?!#)|https?://|@import", page)
    assert {"methods", "rounds", "joint", "seeds", "failures", "settings"} <= set(reader.ids)
    assert render(full) == page  # and says the same twice


def test_the_page_has_every_number(full, reader_of):
    text = reader_of(render(full)).cells
    assert "fedavg 60.0% ± 0.0 57.5% ± 10.6 1.000 ± 0.177 25.0% ± 35.4 55.0% ± 7.1 3 556 B" in text
    assert "fedavg 4 60.00% 65.00% 1.1250 1 of 2 60.00% 556 12.25" in text  # seed by seed
    assert "fedavg 5 60.00% 50.00% 0.8750 0 of 2 50.00% 556 12.25" in text
    assert "local 5 60.00% 60.00% – – – 556 12.25" in text
    assert "fedprox 1 of 2 seeds" in text
    assert text.count("<script>alert(1)</script>") == 2  # below the table and among the failures
    assert "mu – 0.25 –" in text  # the settings of each method
    assert "5 of 6 finished" in text


def test_one_seed_has_no_spread_and_one_round_no_curve(comparison, reader_of):
    page = render(comparison(cofed=even(0.7), local=[result()]))
    text = reader_of(page).cells
    assert "±" not in text
    assert "One seed: there is no spread to show." in text
    assert 'id="rounds"' not in page
    assert 'id="joint"' not in page
    assert "Global model" not in text


def test_the_table_of_a_terminal(full, comparison):
    def shown(made):
        screen = io.StringIO()
        Console(width=150, file=screen).print(comparison_table(summarise(made)))
        return screen.getvalue()

    fedavg, fedprox, failed, local = [line for line in shown(full).splitlines() if line.startswith("│")]
    cells = [cell.strip() for cell in fedavg.split("│")[1:-1]]
    known = ["fedavg", "57.5% ± 10.6", "1.000 ± 0.177", "55.0% ± 7.1", "556 B", "12.2 s", "2.0 ± 0.0"]
    assert cells == known
    assert "80.0%" in fedprox
    assert "seed 5 failed" in failed
    assert "60.0% ± 0.0" in local
    assert "joint" not in shown(comparison(cofed=even(0.7)))


def test_without_local_training_there_are_accuracies_only(comparison, reader_of):
    one, two = result((0.5, 0.3), (0.9, 0.6)), result((0.5, 0.3), (0.7, 0.6))
    for made in (one, two):
        del made["scores"]["local"]
    made = comparison(compare={"fedavg": {"rounds": 2}}, fedavg=[one, two], fedprox=[two, "broken"])
    reader = reader_of(render(made))
    assert "fedavg 70.0% ± 7.1 2 556 B" in reader.cells
    assert "fedavg 0 75.00% 556 12.25" in reader.cells  # seed by seed
    assert "No silo trained alone first, so there is no gain to report." in reader.cells
    assert "Relative" not in reader.cells
    assert "Local" not in reader.cells
    assert "rounds" in reader.ids
    screen = io.StringIO()
    Console(width=150, file=screen).print(comparison_table(summarise(made)))
    assert "relative" not in screen.getvalue()
    assert "70.0% ± 7.1" in screen.getvalue()


# ---------------------------------------------------------------------- labels and simulated time


def labelled(accuracies, **labels):
    return result((0.5, 0.5), accuracies, labelling={stage: scores(**one) for stage, one in labels.items()})


def test_labelling_is_a_column_where_there_is_some(comparison, reader_of):
    one = labelled((0.8, 0.6), local={"a": 0.5, "b": 0.5}, federated={"a": 0.9, "b": 0.7})
    two = labelled((0.8, 0.6), local={"a": 0.5, "b": 0.5}, federated={"a": 0.6, "b": 0.6})
    made = comparison(compare={"fedfomo": {"rounds": 2}}, fedfomo=[one, two], cofed=even(0.7, 0.7))
    fedfomo, cofed = summarise(made).rows
    # 0.8 and 0.6: mean 0.7, their distance / √2.
    assert (fedfomo.labelling.mean, fedfomo.labelling.std) == pytest.approx((0.7, 0.2 / math.sqrt(2)))
    assert cofed.labelling is None
    text = reader_of(render(made)).cells
    assert "70.0% ± 14.1 2 556 B" in text
    assert "Labelling accuracy" in text
    assert "Simulated" not in text
    screen = io.StringIO()
    Console(width=150, file=screen).print(comparison_table(summarise(made)))
    assert "70.0% ± 14.1" in screen.getvalue()
    assert "abelling" not in reader_of(render(comparison(cofed=even(0.7)))).cells


def with_clock(made):
    """The comparison with a clock in its recipe: 100 bytes a second, shared by two silos."""
    return replace(made, clock=Clock(up=Link(rate=100.0)))


def test_simulated_time_by_hand(comparison, reader_of):
    made = with_clock(comparison(cofed=even(0.7, 0.9), local=[result(), result()]))
    cofed, local = summarise(made).rows
    # Computing 0.2 + 0.4 + 0.5 s, and 2 · 50 bytes of votes.
    assert [run.simulated for run in cofed.runs] == pytest.approx([2.1, 2.1])
    assert [run.time_curve for run in cofed.runs] == [
        ((pytest.approx(2.1), 0.7),),
        ((pytest.approx(2.1), 0.9),),
    ]
    (mark,) = cofed.time_curve
    assert (mark.seconds, mark.accuracy.mean) == pytest.approx((2.1, 0.8))
    assert local.time_curve == ()
    reader = reader_of(render(made))
    assert "times" in reader.ids
    assert "2.1 s ± 0 ms" in reader.cells


# ---------------------------------------------------------------------- how soon


def rounds_of(joint, seconds):
    """A run that was judged after each round, with so many seconds of computing before it; two silos."""
    made = result(*[(0.5, 0.5)] * len(joint), joint=joint)
    steps = [("evaluate", 0.0), *[pair for took in seconds for pair in (("train", took), ("evaluate", 0.0))]]
    made["asks"] = [
        {
            "number": number,
            "step": step,
            "timed": step != "evaluate",
            "silos": ["a"],
            "seconds": took,
            "arrivals": {"a": {"seconds": took, "fields": {}}},
        }
        for number, (step, took) in enumerate(steps, start=1)
    ]
    return made


def test_how_soon_by_hand(comparison, reader_of):
    made = with_clock(
        comparison(
            compare={"fedavg": {"rounds": 3}, "fedprox": {"rounds": 3}},
            fedavg=[rounds_of((0.5, 0.82, 0.7), (1, 2, 4)), rounds_of((0.5, 0.6, 0.9), (1, 1, 1))],
            fedprox=[rounds_of((0.83, 0.84, 0.85), (5, 5, 5)), rounds_of((0.5, 0.81, 0.9), (1, 1, 1))],
            local=[result(), result()],
        )
    )
    goal = time_to_accuracy(summarise(made))
    # The best of the runs are 0.82, 0.9, 0.85 and 0.9: all reach 0.82, in steps of half a point.
    assert (goal.accuracy, goal.joint, goal.given) == (0.82, True, False)
    # fedavg in rounds 2 (after 1 + 2 s) and 3 (after 1 + 1 + 1 s), fedprox in rounds 1 (5 s) and 3 (3 s).
    assert goal.of("fedavg") == TimeToAccuracy(Average(2.5, pytest.approx(0.5**0.5)), Average(3.0, 0.0), 2)
    assert goal.of("fedprox") == TimeToAccuracy(
        Average(2.0, pytest.approx(2**0.5)), Average(4.0, pytest.approx(2**0.5)), 2
    )
    assert goal.of("local") == TimeToAccuracy(None, None, 0)
    assert goal.rounds == [1, 2, 3]
    assert goal.at("fedprox", 1).mean == pytest.approx(0.665)
    reader = reader_of(render(made))
    assert "How soon 82.0% is reached" in reader.cells
    assert "fedavg 2.5 ± 0.7 3.00 s ± 0.00 s 2 of 2" in reader.cells
    assert "1 50.0% ± 0.0 66.5% ± 23.3" in reader.cells  # every round in numbers
    assert "joint-times" in reader.ids


def test_how_soon_an_accuracy_is_reached_that_the_recipe_names(comparison, reader_of):
    made = comparison(
        compare={"fedavg": {"rounds": 2}},
        fedavg=[rounds_of((0.5, 0.8), (1, 1)), rounds_of((0.5, 0.6), (1, 1))],
    )
    made = replace(made, reach=0.7)
    goal = time_to_accuracy(summarise(made))
    assert (goal.accuracy, goal.given) == (0.7, True)
    assert goal.of("fedavg") == TimeToAccuracy(Average(2.0, None), None, 1)  # one of two seeds, and no clock
    text = reader_of(render(made)).cells
    assert "fedavg 2.0 1 of 2" in text
    # A run that is not judged by a global model is held to the mean over its silos.
    goal = time_to_accuracy(summarise(comparison(fedavg=[result((0.2, 0.4), (0.6, 0.8))])))
    assert (goal.accuracy, goal.joint, goal.of("fedavg").rounds) == (0.7, False, Average(2.0, None))
    assert time_to_accuracy(summarise(comparison(cofed=even(0.7)))) is None  # no rounds


def test_a_table_reads_the_accuracy_that_all_methods_have(comparison):
    # Only fedavg has a global model; it gets to 0.9 at once, its silos to 0.6 in the second round.
    made = comparison(
        compare={"fedavg": {"rounds": 2}, "dofed_spp": {"rounds": 2}},
        fedavg=[result((0.4, 0.4), (0.6, 0.6), joint=(0.9, 0.9))],
        dofed_spp=[result((0.6, 0.6), (0.7, 0.7))],
    )
    numbers = [{"text": name, "of": f"all.{name}.rounds_to"} for name in ("fedavg", "dofed_spp")]
    about = Reproduces.model_validate(
        {
            "paper": "DoFed-SPP",
            "what": "Fig. 3",
            "shows": "how soon",
            "methods": ["fedavg", "dofed_spp"],
            "minutes": {"laptop": 1},
            "number": numbers,
        }
    )
    assert measure({"all": made}, about) == {"all.fedavg.rounds_to": [2], "all.dofed_spp.rounds_to": [1]}


def test_a_ratio_of_means_over_silos_is_the_mean_of_their_ratios(comparison):
    """CoFED's Table 2 and Fig. 10: 0.9 ÷ 0.3 and 0.5 ÷ 1.0 have a mean of 1.75, which is not 1.4 ÷ 1.3."""
    made = comparison(
        fedavg=[result((0.3, 0.5), (0.9, 0.5))],
        fedprox=[result((0.3, 0.5), (0.3, 1.0))],
    )
    about = Reproduces.model_validate(
        {
            "paper": "CoFED",
            "what": "Table 2",
            "shows": "how far",
            "methods": ["fedavg", "fedprox"],
            "minutes": {"laptop": 1},
            "number": [{"text": "ratio", "of": "all.fedavg.accuracy", "over": "all.fedprox.accuracy"}],
        }
    )
    values = measure({"all": made}, about)
    assert number_values(about.number[0], values) == [pytest.approx((3 + 0.5) / 2)]
    old = {path: row for path, row in values.items() if "/" not in path}  # a record from before
    assert number_values(about.number[0], old) == [pytest.approx(1.4 / 1.3)]


def test_curves_of_a_reproduction_have_the_points_of_every_finished_seed(comparison):
    made = comparison(
        compare={"fedavg": {"rounds": 2}},
        fedavg=[result((0.5, 0.3), (0.7, 0.5)), result((0.4, 0.4), (0.6, 0.6), joint=(0.2, 0.9))],
    )
    about = Reproduces.model_validate(
        {
            "paper": "FML",
            "what": "Fig. 3",
            "shows": "how it goes",
            "methods": ["fedavg"],
            "minutes": {"laptop": 1},
            "case": {"all": {}, "later": {}},
            "curve": [
                {"text": "own", "of": {"FedAvg": "all.fedavg.accuracy", "more": "later.fedavg.accuracy"}},
                {"text": "global", "of": {"FedAvg": "all.fedavg.joint"}},
                {"text": "in time", "of": {"FedAvg": "all.fedavg.joint"}, "over": "seconds"},
            ],
        }
    )
    found = measure_curves({"all": made}, about)
    assert set(found) == {"all.fedavg.accuracy over rounds", "all.fedavg.joint over rounds"}  # no clock
    assert len(found["all.fedavg.accuracy over rounds"]) == 2
    none, joint = found["all.fedavg.joint over rounds"]  # a row for each seed
    assert none == []
    assert [rounds for rounds, _ in joint] == [1, 2]
    assert joint[-1][1] == pytest.approx(0.9)


def test_seeds_that_end_at_other_times_are_held_against_each_other_at_one_time():
    slow, fast = [(2.0, 0.5), (4.0, 0.75)], [(1.0, 0.25), (3.0, 1.0)]
    marks = mean_over_time([slow, fast])
    # At 2 s: 0.5 and 0.25; at 3 s: 0.5 and 1; at 4 s: 0.75 and still 1.
    assert [mark.seconds for mark in marks] == [2.0, 3.0, 4.0]
    assert [mark.accuracy.mean for mark in marks] == [0.375, 0.75, 0.875]
    assert mean_over_time([]) == ()


def test_a_run_that_stopped_early_ends_at_its_last_round(comparison):
    one = result((0.5, 0.3), (0.7, 0.5))
    one["scores"]["round 2"] = one["scores"]["federated"]
    one["scores"]["federated"] = one["scores"].pop("federated")  # the same models, judged as the result
    about = {"labellers": 1, "seconds": 0.0, "labels_moved": 0.0, "fresh_ratios": 2}
    about |= {"reconstruction_error": {}, "bytes_sent": 0}
    one["exchange"] = [{"round": number, "uploaded": ["a"], **about} for number in (1, 2)]
    made = comparison(compare={"dofed_spp": {"rounds": 9}}, dofed_spp=[one])
    (row,) = summarise(made).rows
    assert [mark.rounds for mark in row.curve] == [1, 2, 2]
    assert "continues at each silo" not in render(made)


@pytest.mark.parametrize("methods", [2, 12])
def test_names_at_the_ends_of_curves_do_not_touch(methods):
    heights = np.sort(np.random.default_rng(0).uniform(90, 100, methods))
    places = apart(heights, 15, 0, 200)
    assert (np.diff(places) >= 15 - 1e-9).all()
    assert places.min() >= 0
    assert places.max() <= 200
