"""Targets: how many labels are right, by hand and on the page."""

import pytest

from cosilo.protocol.stage import FEDERATED, LOCAL
from cosilo.report.facts import gather
from cosilo.report.phrases import labelling, verdict
from cosilo.report.run_page import render


def scores(values, instances):
    return {name: {"accuracy": value, "instances": instances} for name, value in values.items()}


@pytest.fixture
def with_targets(small):
    """The small run, with targets: labels of a get better, those of b worse, c's truth is not known."""
    small["wanted"] = {"a": ["eel"], "b": ["cat", "fox"], "c": ["fox"]}
    small["labelling"] = {
        "local": scores({"a": 0.5, "b": 0.7}, 20),
        "federated": scores({"a": 0.9, "b": 0.6}, 20),
    }
    return small


def test_labelling_is_a_mean_over_silos_with_every_score(make, with_targets):
    found = gather(make(with_targets)).targets
    assert found.means == {LOCAL: pytest.approx(0.6), FEDERATED: pytest.approx(0.75)}
    assert found.compared == 2
    assert found.score("c", FEDERATED) is None
    del with_targets["labelling"]["local"]["b"]
    found = gather(make(with_targets, name="less")).targets
    assert (found.means, found.compared) == ({LOCAL: 0.5, FEDERATED: 0.9}, 1)


def test_the_verdict_tells_about_labels(make, with_targets):
    text = verdict(gather(make(with_targets)))
    assert text.startswith("Not decided whether the federation helped: mean relative accuracy")
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
