"""What methods find out beside scores (votes, models that travel, pace): by hand, and on the page."""

import re

import numpy as np
import pytest
from pydantic import Field

from cosilo.errors import RunError
from cosilo.methods.cofed import Vote, Votes
from cosilo.methods.dofed_spp.findings import Exchanges
from cosilo.protocol.findings import Findings
from cosilo.report.facts import gather
from cosilo.report.parts import Card, ReportPart, SiloColumn, show
from cosilo.report.parts.pace import draw_series
from cosilo.report.parts.votes import mean_agreement
from cosilo.report.phrases import verdict
from cosilo.report.run_page import render


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
            "fresh_ratios": 3 - number,
            "bytes_sent": 1500,
            "reconstruction_error": errors,
        }
        for number, (uploaded, moved, seconds, errors) in enumerate(rounds, start=1)
    ]
    return small


# ---------------------------------------------------------------------- votes


def test_votes_by_hand(make):
    facts = gather(make())
    (found,) = facts.findings
    assert isinstance(found, Votes)
    part = show(found, facts.results)
    assert mean_agreement(found.voting[0]) == pytest.approx(0.625)  # of 0.75 and 0.5; a and b share no class
    assert part.columns == [SiloColumn("Pseudo-labels received", {"a": "30", "b": "25", "c": "31"})]
    assert part.cards["elected"].table.rows == [
        ["cat", "2", "12"],
        ["dog", "3", "20"],
        ["eel", "2", "7"],
        ["fox", "1", "0"],
    ]


def test_votes_of_several_rounds_and_silos_that_abstain(make, small):
    small["scores"] = {"local": small["scores"]["local"], "round 1": small["scores"]["federated"]} | {
        "federated": small["scores"]["federated"]
    }
    vote = small["voting"][0]
    first = {**vote, "stage": "round 1", "received": {"a": 10, "b": 21}, "elected": {"cat": 1, "dog": 2}}
    small["voting"] = [first, {**vote, "abstained": {"a": 0.25}}]
    facts = gather(make(small))
    part = show(facts.findings[0], facts.results)
    titles = [column.title for column in part.columns]
    assert titles == ["Pseudo-labels received (last round)", "Abstained on"]
    assert part.columns[1].values == {"a": "25.0%"}
    assert part.cards["rounds"].table.rows == [
        ["local", "56.7%", "", "", ""],
        ["round 1", "57.3%", "3", "16", "0.625"],
        ["round 2", "57.3%", "39", "29", "0.625"],
    ]


def test_the_control_and_how_much_was_self_training_are_told(make, small):
    """As much training without labels makes 5 % more of local accuracy at a, and 10 % less at c."""
    local = {name: score["accuracy"] for name, score in small["scores"]["local"].items()}
    small["control"] = {
        "federated": {
            name: {"accuracy": local[name] * times, "instances": 100}
            for name, times in [("a", 1.05), ("c", 0.9)]
        }
    }
    small["voting"][0]["own_votes"] = {"a": 0.69, "b": 0.73}
    facts = gather(make(small))
    titles = {column.title: column.values for column in show(facts.findings[0], facts.results).columns}
    assert titles["Of these its own vote"] == {"a": "69.0%", "b": "73.0%"}
    assert titles["Relative without labels"] == {"a": "1.050", "c": "0.900"}
    gained = [small["scores"]["federated"][name]["accuracy"] / local[name] for name in "ac"]
    taught = (gained[0] - 1.05 + gained[1] - 0.9) / 2
    sentence = (
        "As much training on their own data alone comes to 0.975 of local accuracy: "
        f"what others taught is worth {taught:+.3f} (2 silos)."
    ).replace("-", "−")
    assert sentence in verdict(facts)
    assert sentence in render(facts)


def test_agreement_with_nobody_to_compare():
    alone = Vote(stage="federated", voters=["a"], weights=[1], elected={}, abstained={}, agreement=[[1.0]])
    assert mean_agreement(alone) is None


# ---------------------------------------------------------------------- the exchange


def test_the_exchange_by_hand(make, with_exchange):
    facts = gather(make(with_exchange))
    found = next(found for found in facts.findings if isinstance(found, Exchanges))
    assert found.rounds_done == facts.rounds == facts.traffic.rounds == 3
    cards = show(found, facts.results).cards
    assert list(cards) == ["similarity", "travels", "budget", "exchange"]
    assert cards["exchange"].table.rows == [
        ["1", "2", "2", "100.0%", "2", "1.5 kB", ("0.25", "at most 0.375"), ("2.5 s", "31.2%")],
        ["2", "1", "2", "25.0%", "1", "1.5 kB", "–", ("5.0 s", "62.5%")],
        ["3", "0", "2", "0.0%", "0", "1.5 kB", "–", ("7.0 s", "87.5%")],
    ]


def test_the_page_has_the_exchange(make, with_exchange, reader_of):
    reader = reader_of(render(gather(make(with_exchange))))
    assert {"similarity", "travels", "budget"} <= set(reader.ids)
    assert "1 2 2 100.0% 2 1.5 kB 0.25 at most 0.375 2.5 s 31.2%" in reader.cells
    assert "2 1 2 25.0% 1 1.5 kB – 5.0 s 62.5%" in reader.cells
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
    assert "added up over the rounds" in reader_of(render(gather(make(small)))).cells
    small["affinity"]["values"] = [[0, 0], [0, 0]]
    assert 'id="similarity"' not in render(gather(make(small, name="zero")))
    small["affinity"]["values"] = [[0, 1]]
    with pytest.raises(RunError, match=r"damaged \(affinity: wants one row and one column for each silo\)"):
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
        | {"reconstruction_error": {}, "fresh_ratios": silos, "bytes_sent": 9}
        for n in range(1, 31)
    ]
    page = render(gather(make(result)))
    assert {"similarity", "travels"} <= set(reader_of(page).ids)
    assert len(page.encode()) < 600_000


# ---------------------------------------------------------------------- pace


def test_pace_by_hand(make, small, reader_of):
    small["pace"] = [
        {"round": 1, "epochs": {"a": 3, "b": 12}, "differences": {"a": 0.5, "b": 0.0}},
        {"round": 2, "epochs": {"a": 6, "c": 4}, "differences": {"a": 0.25, "c": 10.0}},
    ]
    page = render(gather(make(small)))
    assert {"epochs", "differences"} <= set(reader_of(page).ids)
    assert "epochs in the round of 3 institutions over 2 rounds" in page
    assert "weight difference ω of 2 institutions over 2 rounds" in page  # 0 has no place on a log axis


def test_a_pace_without_differences(make, small, reader_of):
    small["pace"] = [{"round": 1, "epochs": {"a": 3}, "differences": {"a": 0.0}}]
    reader = reader_of(render(gather(make(small))))
    assert "epochs" in reader.ids
    assert "differences" not in reader.ids


@pytest.mark.parametrize("pair", [(0.9, 0.15), (0.51, 0.5), (10.0, 0.05)])
def test_the_axis_of_differences_has_numbers(pair):
    """Also where there is no power of ten among them."""
    svg = draw_series("differences", [1, 2], {"a": pair}, "ω", log=True)
    written = {float(text) for text in re.findall(r">([0-9.]+)<", svg)} - {1.0, 2.0}  # without the rounds
    assert len([value for value in written if pair[1] <= value <= pair[0]]) >= 2


# ---------------------------------------------------------------------- any findings


class Weather(Findings):
    sunny: list[str] = Field(default_factory=list)


def test_a_new_kind_of_findings_needs_one_registration(make, small, reader_of):
    small["sunny"] = ["a"]
    assert "Sunny" not in reader_of(render(gather(make(small)))).text

    def show_weather(found: Weather, results) -> ReportPart:
        card = Card("Sunny silos", f"These are {len(found.sunny)} of {len(results.silos)}.")
        return ReportPart({"weather": card}, [SiloColumn("Sunny", dict.fromkeys(found.sunny, "yes"))])

    show.register(Weather, show_weather)
    reader = reader_of(render(gather(make(small))))
    assert "weather" in reader.ids
    assert "Sunny silos These are 1 of 3." in reader.cells
    assert "▼ 0.900 30 yes" in reader.cells


def test_a_method_without_findings_has_a_page(make, small, reader_of):
    del small["voting"]
    facts = gather(make(small, method={"use": "new"}))
    assert facts.findings == ()
    assert {"silos", "relative", "overlap", "left", "time"} <= set(reader_of(render(facts)).ids)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("voting", [{"stage": "federated"}], r"voting\.0\.voters: Field required"),
        ("exchange", 3, "exchange: Input should be a valid list"),
        ("pace", [{"round": 1, "epochs": {"a": "many"}, "differences": {}}], r"pace\.0\.epochs\.a: Input"),
    ],
)
def test_damaged_findings_are_one_line(make, small, key, value, what):
    small[key] = value
    with pytest.raises(RunError, match=rf"result\.json: is damaged \({what}") as caught:
        gather(make(small))
    assert len(str(caught.value).splitlines()) == 1
