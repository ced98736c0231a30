"""Every number of a small run, checked by hand."""

import math
from typing import Any

import pytest

from cosilo.errors import RunError
from cosilo.protocol.stage import FEDERATED, LOCAL, Score
from cosilo.report.facts import gather
from cosilo.report.results import histogram, standard_error
from cosilo.report.timing import timing


def test_gains_and_losses(make):
    spread = gather(make()).results.spread
    assert spread is not None
    assert (spread.gained, spread.same, spread.lost) == (1, 1, 1)
    # 0.72 / 0.8 = 0.9, 0.5 / 0.4 = 1.25, 0.5 / 0.5 = 1
    assert spread.mean == pytest.approx((0.9 + 1.25 + 1) / 3)
    assert spread.median == 1
    assert (spread.low, spread.high) == (pytest.approx(0.9), 1.25)


def test_mean_accuracy_is_over_silos_with_every_score(make, small):
    results = gather(make(small)).results
    assert results.means == {LOCAL: pytest.approx(1.7 / 3), FEDERATED: pytest.approx(1.72 / 3)}
    del small["scores"]["federated"]["a"]
    results = gather(make(small)).results
    assert results.compared == 2
    assert results.means == {LOCAL: pytest.approx(0.45), FEDERATED: pytest.approx(0.5)}


def test_same_numbers_as_the_run(make):
    run = make()
    results = gather(run).results
    assert {silo.name: silo.relative for silo in results.silos} == run.relative_accuracy()


def test_local_accuracy_of_zero_has_no_ratio(make, small):
    small["scores"]["local"]["a"]["accuracy"] = 0.0
    results = gather(make(small)).results
    assert results.silos[0].relative is None
    assert not results.silos[0].private
    assert results.spread is not None
    assert results.spread.silos == 2


def test_standard_error_and_what_is_clear(make, small):
    assert standard_error(Score(0.8, 100)) == pytest.approx((82 / 104 * 22 / 104 / 104) ** 0.5)
    assert standard_error(Score(1.0, 20)) == pytest.approx((22 / 24 * 2 / 24 / 24) ** 0.5)  # and not 0
    silos = gather(make(small)).results.silos
    # b: 0.1 against about 2·√(0.4·0.6/100 + 0.5·0.5/100) = 0.14
    assert [silo.clear for silo in silos] == [False, False, False]
    for stage in ("local", "federated"):
        small["scores"][stage]["b"]["instances"] = 400  # about 2·√(0.24/400 + 0.25/400) = 0.07
    silos = gather(make(small)).results.silos
    assert [silo.clear for silo in silos] == [False, True, False]


def test_histogram_of_the_small_run(make):
    found = gather(make()).results.histogram
    assert found is not None
    # 0.9 to 1.25 in bars of 0.05: the first width of 0.01, 0.02, 0.05 … that needs at most 16
    assert found.edges == (0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3)
    assert found.counts == (1, 0, 1, 0, 0, 0, 0, 1)


@pytest.mark.parametrize("value", [1.05, 1.1, 1.15, 1.2, 1.7, 0.95, 0.85])
def test_a_value_on_an_edge_is_in_the_bar_to_its_right(value):
    found = histogram([value, 0.5, 2.0 - 1e-6])
    assert found is not None
    bar = next(i for i, edge in enumerate(found.edges) if edge > value + 1e-9) - 1
    assert found.counts[bar] >= 1
    assert sum(found.counts) == 3


def test_histogram_of_nothing_of_one_and_of_extremes():
    assert histogram([]) is None
    assert histogram([1.0]) == histogram([1.0])
    single = histogram([1.0])
    assert single is not None
    assert single.counts == (1,)
    wide = histogram([0.01, 95.0])
    assert wide is not None
    assert len(wide.counts) <= 16
    assert 1.0 in wide.edges


def test_overlap_counts_shared_classes(make):
    assert gather(make()).results.vocabulary == ("cat", "dog", "eel", "fox")
    assert gather(make()).results.overlap == ((2, 1, 2), (1, 3, 2), (2, 2, 3))


def test_failures_are_in_the_order_of_the_silos(make, small):
    def line(silo: str, step: str) -> dict[str, str]:
        return {"silo": silo, "step": step, "kind": "error", "text": f"silo '{silo}': no"}

    small["failures"] = [line("c", "label"), line("a", "label"), line("b", "update"), line("a", "update")]
    results = gather(make(small)).results
    assert [(one.step, one.silo) for one in results.failures] == [
        ("label", "a"),
        ("label", "c"),
        ("update", "a"),
        ("update", "b"),
    ]
    assert len(results.silos[0].failures) == 2


# ---------------------------------------------------------------------- what left


def test_bytes_of_a_silo(make):
    traffic = gather(make(models={"a": 40_000})).traffic
    a = traffic.silos[0]
    # 150 + 48 + 80 + 150 + 48 + 80; of these in fields 49 + 7 + 50 + 7
    assert (a.messages, a.total, a.frames) == (6, 556, 556 - 113)
    assert traffic.total == 3 * 556
    assert [(field.step, field.name) for field in traffic.fields] == [
        ("hello", "classes"),
        ("hello", "pool"),
        ("hello", "offers"),
        ("evaluate", "accuracy"),
        ("evaluate", "instances"),
        ("label", "votes"),
    ]
    accuracy = traffic.fields[3]
    assert (accuracy.silos, accuracy.messages, accuracy.bytes) == (3, 6, 24)
    assert a.model == 40_000
    assert traffic.silos[1].model is None
    assert [sent.silo for sent in traffic.weighed] == ["a"]


def test_a_repeat_is_counted_once_and_told(make, log):
    plain = gather(make(name="plain")).traffic
    again = gather(make(name="again", logs={"a": [*log, {**log[3], "again": True}]})).traffic
    assert again.total == plain.total
    assert again.fields == plain.fields
    assert (again.silos[0].repeats.messages, again.silos[0].repeats.bytes) == (1, 150)
    assert plain.silos[0].repeats.messages == 0


def test_a_repeat_may_have_its_fields_in_another_order(make, log):
    hello = {**log[0], "fields": dict(reversed(log[0]["fields"].items())), "again": True}
    a = gather(make(logs={"a": [*log, hello]})).traffic.silos[0]
    assert list(hello["fields"]) != list(log[0]["fields"])
    assert (a.messages, a.total, a.repeats.messages) == (6, 556, 1)


def test_a_first_answer_after_a_failure_is_no_repeat(make, log):
    failed = {"ask": 4, "step": "label", "fields": {}, "failure": "silo 'a': label raised ValueError"}
    entries = [*log[:3], failed, {**log[3], "again": True}, *log[4:]]
    a = gather(make(logs={"a": entries})).traffic.silos[0]
    assert (a.messages, a.total, a.repeats.messages) == (6, 556, 0)
    assert a.lines == (("label", "silo 'a': label raised ValueError"),)


def test_a_second_answer_with_other_content_counts(make, log):
    other: dict[str, Any] = {**log[0], "bytes": 160, "again": True}
    a = gather(make(logs={"a": [log[0], other, *log[1:]]})).traffic.silos[0]
    assert (a.messages, a.total, a.repeats.messages) == (7, 716, 0)


def test_a_log_that_is_elsewhere_is_what_was_received(make):
    traffic = gather(make(logs={"b": []})).traffic
    b = traffic.silos[1]
    assert not b.own_log
    assert (b.messages, b.total, b.frames) == (6, 113, None)  # as in runs of older versions
    assert traffic.fields == gather(make(name="other")).traffic.fields


def test_messages_are_counted_whole_where_only_the_coordinator_saw_them(make, small):
    for ask in small["asks"]:
        ask["received"] = dict.fromkeys(ask["arrivals"], 90)
    b = gather(make(small, logs={"b": []})).traffic.silos[1]
    assert (b.messages, b.total, b.frames) == (6, 540, 540 - 113)


def test_log_and_journal_are_held_against_each_other(make, small, log):
    del small["asks"][3]["arrivals"]["a"]  # left, and came too late
    run = make(small, logs={"b": log[:5]})  # the last reply of b arrived and is not in its log
    a, b, c = gather(run).traffic.silos
    assert (a.not_accepted, a.not_logged) == (1, 0)
    assert (b.not_accepted, b.not_logged) == (0, 1)
    assert (c.not_accepted, c.not_logged) == (0, 0)


# ---------------------------------------------------------------------- time


def test_clock(make):
    clock = gather(make()).timing
    assert [ask.step for ask in clock.asks] == ["hello", "train", "evaluate", "label", "update", "evaluate"]
    assert [ask.seconds for ask in clock.asks] == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    assert [ask.start for ask in clock.asks] == [0.25, 1.0, 2.25, 4.0, 6.25, 9.0]
    assert clock.asking == 10.5
    assert clock.wall == 12.25
    assert clock.by_step()["evaluate"] == (2, 4.5)
    assert (clock.resumed, clock.still) == (0, 0.0)


def test_time_in_which_a_run_lay_still_is_not_work():
    events = [
        {"at": 0.0, "event": "start"},
        {"at": 1.0, "event": "ask", "ask": 1},
        {"at": 2.0, "event": "reply", "ask": 1},
        {"at": 100.0, "event": "resume"},
        {"at": 101.0, "event": "ask", "ask": 1},
        {"at": 103.0, "event": "answered", "ask": 1},
        {"at": 104.0, "event": "finish"},
    ]
    ask = {"number": 1, "step": "train", "seconds": 2.0, "arrivals": {"a": {"seconds": 1.5, "fields": {}}}}
    clock = timing(events, [ask])
    assert (clock.wall, clock.resumed, clock.still) == (6.0, 1, 98.0)
    assert clock.asks[0].start == 3.0
    assert (clock.asks[0].slowest, clock.asks[0].slowest_seconds) == ("a", 1.5)


def test_without_an_event_log_asks_follow_each_other():
    asks = [{"number": n, "step": "x", "seconds": 1.0, "arrivals": {}} for n in (1, 2)]
    clock = timing([], asks)
    assert [ask.start for ask in clock.asks] == [0.0, 1.0]
    assert (clock.wall, clock.asks[0].slowest) == (2.0, None)


# ---------------------------------------------------------------------- the whole


def test_results_of_the_same_run_elsewhere_are_equal(make, log):
    here = gather(make(name="here"))
    there = gather(make(name="there", logs={"a": [*log, {**log[3], "again": True}]}))
    assert here.results == there.results
    assert here.traffic != there.traffic


def test_repeating_the_run(make):
    assert gather(make()).about.command is None
    recipe = {"source": "hospitals.toml", "folder": "/", "values": {"seed": 7}}
    assert gather(make(name="file", recipe=recipe)).about.command == "cosilo run hospitals.toml"


@pytest.mark.parametrize("status", ["running", "stopped", "refused"])
def test_an_unfinished_run_is_one_line(make, status):
    with pytest.raises(RunError) as caught:
        gather(make(status=status))
    assert len(str(caught.value).splitlines()) == 1
    assert status in str(caught.value)


def test_a_damaged_result_is_one_line(make, small):
    del small["scores"]["local"]["a"]["instances"]
    with pytest.raises(RunError, match="not those of a finished run") as caught:
        gather(make(small))
    assert len(str(caught.value).splitlines()) == 1


def test_no_test_instances_is_no_crash():
    assert math.isnan(standard_error(Score(0.0, 0)))
