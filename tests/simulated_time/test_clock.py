import json
import math
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cosilo.errors import ConfigError, DataError
from cosilo.methods import CoFED
from cosilo.simulated_time.clock import Clock, Link, Moment, capacity, timeline

# 1 MHz, a signal of three times the noise (g·p = 3e-6 W, N0·b = 1e-12 · 1e6 W): 1e6 · log2(4) = 2e6 bit/s.
CHANNEL = {"bandwidth": 1e6, "gain": 1e-3, "power": 3e-3, "noise": 1e-12}


#: Steps that these logs say take no simulated time.
FREE = {"hello", "evaluate"}


def ask(number, step, arrivals, silos=None, failures=()):
    """A line of asks.jsonl: arrivals are {name: (seconds, bytes of each field …)}."""
    return {
        "number": number,
        "step": step,
        "timed": step not in FREE,
        "silos": silos or sorted([*arrivals, *failures]),
        "seconds": 99.0,
        "arrivals": {
            name: {
                "seconds": seconds,
                "fields": {
                    f"f{place}": {"kind": "weights", "form": "float32[1]", "bytes": size}
                    for place, size in enumerate(sizes)
                },
            }
            for name, (seconds, *sizes) in arrivals.items()
        },
        "failures": {name: {"kind": "timeout", "text": "late"} for name in failures},
    }


def seconds(moment):
    return moment.download + moment.compute + moment.upload


@st.composite
def logs(draw):
    names = ["a", "b", "c", "d"]
    found = []
    for number in range(1, draw(st.integers(1, 5)) + 1):
        there = draw(st.lists(st.sampled_from(names), unique=True))
        reply = st.tuples(st.floats(0, 9), st.integers(0, 10**7))
        step = draw(st.sampled_from(["hello", "train", "label", "evaluate"]))
        found.append(ask(number, step, {name: draw(reply) for name in there}, silos=names))
    return found


def test_a_channel_by_hand():
    assert capacity(**CHANNEL) == pytest.approx(2e6)
    # A signal as strong as the noise carries one bit per Hz; a weak one nearly g·p / (N0·ln 2).
    assert capacity(bandwidth=5e6, gain=1.0, power=5e-6, noise=1e-12) == pytest.approx(5e6)
    assert capacity(bandwidth=1.0, gain=1e-9, power=1e-9, noise=1.0) == pytest.approx(1e-18 / math.log(2))


def test_uploads_by_hand():
    # A model of 1 MB is 8e6 bits: 4 s over the channel; three that share it take 3·m/r = 12 s (eq. 24).
    rng = np.random.default_rng(0)
    shared, own = Link(**CHANNEL), Link(**CHANNEL, shared=False)
    assert shared.seconds([1e6], rng) == pytest.approx(4)
    assert shared.seconds([1e6] * 3, rng) == pytest.approx(12)
    assert shared.expected(1e6) == pytest.approx(4)
    # With links of their own the slowest counts (eq. 9).
    assert own.seconds([1e6, 2e6, 0], rng) == pytest.approx(8)
    assert Link(rate=1e6, latency=0.5).seconds([1e6, 2e6, 0], rng) == 3.5
    assert Link(rate=1e6, latency=0.5, shared=False).seconds([1e6, 2e6, 0], rng) == 2.5
    # What is empty takes no time, not even latency.
    assert Link(rate=1e6, latency=0.5).seconds([0, 0], rng) == 0
    assert Link(rate=1e6, latency=0.5).seconds([], rng) == 0


def test_drawn_rates():
    link = Link(rate=(2e6, 10e6))
    rates = link.rates(np.random.default_rng(0), 20_000)
    assert rates.min() >= 2e6
    assert rates.max() <= 10e6
    assert rates.mean() == pytest.approx(6e6, rel=0.01)
    # The mean of 1/r over 2 … 10 MB/s is ln(5) / 8 s per MB: 0.201, and not 1/6.
    assert link.expected(1e6) == pytest.approx(math.log(5) / 8)
    assert (1e6 / rates).mean() == pytest.approx(link.expected(1e6), rel=0.01)
    # The rates of one ask by hand: each message at its own rate.
    drawn = link.rates(np.random.default_rng(5), 2)
    expected = 1e6 / drawn[0] + 4e6 / drawn[1]
    assert link.seconds([1e6, 4e6], np.random.default_rng(5)) == pytest.approx(expected)


@given(st.floats(1e-3, 1e9), st.floats(0, 1), st.floats(1, 1e9))
def test_an_expected_upload_lies_between_the_fastest_and_the_slowest(low, spread, size):
    high = low * (1 + spread)
    found = Link(rate=(low, high)).expected(size)
    assert size / high * (1 - 1e-6) <= found <= size / low * (1 + 1e-6)


def test_a_timeline_by_hand():
    asks = [
        ask(1, "hello", {"a": (9.0, 500), "b": (9.0, 500)}),
        ask(2, "train", {"b": (3.0, 1000, 500), "a": (2.0, 500)}),  # 3 s, then 2000 bytes at 1000 B/s
        ask(3, "evaluate", {"a": (9.0, 500)}),
        ask(4, "begin", {"a": (0.5,), "b": (0.25,)}),  # nothing left: only the computation
        ask(5, "train", {"b": (1.0, 4000)}, failures=["a"]),  # a failed: 1 s, then 4 s
    ]
    clock = Clock(up=Link(rate=1000.0))
    found = timeline(asks, clock, seed=0)
    assert [moment.number for moment in found] == [1, 2, 3, 4, 5]
    assert [(moment.compute, moment.upload) for moment in found] == [(0, 0), (3, 2), (0, 0), (0.5, 0), (1, 4)]
    assert [moment.at for moment in found] == [0, 5, 5, 5.5, 10.5]
    assert [moment.timed for moment in found] == [False, True, False, True, True]
    # What takes no time is the log's to say, whatever the step is called: 9 s, then 1000 bytes.
    assert timeline([{**line, "timed": True} for line in asks], clock, seed=0)[0].at == 10
    assert timeline([{**line, "timed": False} for line in asks], clock, seed=0)[-1].at == 0
    # A slower machine takes longer, its link does not.
    assert timeline(asks, Clock(up=Link(rate=1000.0), speed=2.0), seed=0)[-1].at == 15
    assert timeline(asks, clock, seed=0, start=100.0)[-1].at == 110.5
    own = Clock(up=Link(rate=1000.0, shared=False))
    assert timeline(asks, own, seed=0)[1] == Moment(2, "train", 0.0, 3.0, 1.5, 4.5)


def test_cycles_by_hand():
    # Eq. 7: I·C·D / f = 5 · 2e6 · 1000 / 2e9 = 5 s, whatever was measured.
    clock = Clock(
        up=Link(**CHANNEL), compute="cycles", cycles_per_second=2e9, cycles={"train": 5 * 2e6 * 1000}
    )
    # Eqs. 23 to 25: 5 s, and two models of 1 MB over the channel in 2 · 4 s.
    (found,) = timeline([ask(1, "train", {"a": (77.0, 10**6), "b": (0.0, 10**6)})], clock, seed=0)
    assert (found.compute, found.at) == (5, pytest.approx(13))
    with pytest.raises(
        ConfigError, match="cycles: there is no step 'label'; wants one number for every step"
    ):
        timeline([ask(1, "label", {"a": (1.0, 5)})], clock, seed=0)
    assert timeline([ask(1, "label", {}, ["a"])], clock, seed=0)[0].at == 0  # nobody answered


def test_downloads():
    clock = Clock(up=Link(rate=1000.0), down=Link(rate=2000.0, shared=False, latency=0.5))
    asks = [ask(1, "train", {"a": (1.0, 1000), "b": (1.0, 0)}), ask(2, "train", {"a": (1.0, 0)})]
    found = timeline(
        [{**asks[0], "sent": {"a": 2000, "b": 4000}}, {**asks[1], "sent": {"a": 0}}], clock, seed=0
    )
    assert found[0] == Moment(1, "train", 2.5, 1.0, 1.0, 4.5)
    assert found[1] == Moment(2, "train", 0.0, 1.0, 0.0, 5.5)
    with pytest.raises(ConfigError, match=r"clock\.down: ask 1 does not say what was sent"):
        timeline(asks, clock, seed=0)


DRAWN = Clock(up=Link(rate=(2e6, 10e6)))


@given(logs(), st.integers(0, 2**40))
def test_a_timeline_is_the_same_by_seed_and_whatever_order_replies_came_in(log, seed):
    found = timeline(log, DRAWN, seed)
    turned = [{**line, "arrivals": dict(reversed(line["arrivals"].items()))} for line in log]
    assert timeline(turned, DRAWN, seed) == found
    assert timeline(iter(json.loads(json.dumps(log))), DRAWN, seed) == found
    moments = [0.0, *(moment.at for moment in found)]
    assert moments == sorted(moments)
    for line, moment in zip(log, found, strict=True):
        sizes = [reply["fields"]["f0"]["bytes"] for reply in line["arrivals"].values()]
        fastest, slowest = (0, 0) if line["step"] in FREE else (sum(sizes) / 10e6, sum(sizes) / 2e6)
        assert fastest - 1e-9 <= moment.upload <= slowest + 1e-9


@given(logs())
def test_the_asks_of_a_run_may_be_divided_between_clocks(log):
    # A wide and a local network, each with its own asks: the same seconds as all asks on one clock.
    parts = [[line for line in log if (line["step"] == "train") == local] for local in (True, False)]
    halves = sorted(
        (moment for part in parts for moment in timeline(part, DRAWN, 3)), key=lambda moment: moment.number
    )
    whole = timeline(log, DRAWN, 3)
    assert [seconds(moment) for moment in halves] == [seconds(moment) for moment in whole]
    np.testing.assert_allclose(list(accumulate(map(seconds, halves))), [moment.at for moment in whole])


def test_another_seed_draws_other_rates():
    log = [ask(number, "train", {"a": (1.0, 10**6)}) for number in range(1, 4)]
    ones, others = timeline(log, DRAWN, 0), timeline(log, DRAWN, 1)
    assert len({moment.upload for moment in [*ones, *others]}) == 6


def test_a_failure_leaves_the_rates_of_others_alone():
    both = ask(1, "train", {"a": (1.0, 10**6), "b": (1.0, 10**6)})
    one = ask(1, "train", {"b": (1.0, 10**6)}, failures=["a"])
    other = ask(1, "train", {"a": (1.0, 10**6)}, failures=["b"])
    (whole,), (first,), (second,) = (timeline([line], DRAWN, 0) for line in (both, one, other))
    assert whole.upload == pytest.approx(first.upload + second.upload)


def test_the_log_of_a_real_run(federation, tmp_path):
    run = federation(CoFED()).run(tmp_path / "run")
    found = timeline(run.asks(), Clock(up=Link(rate=100.0), speed=1e-9), seed=0)
    steps = {moment.step: moment for moment in found}
    assert steps["hello"].at == steps["evaluate"].upload == 0
    # Three silos label 300 instances in a byte each.
    assert steps["label"].upload == pytest.approx(9)
    assert found[-1].at == pytest.approx(sum(moment.upload for moment in found))


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ({}, "rate, or all of bandwidth, gain, power and noise"),
        ({"bandwidth": 1e6, "gain": 1.0, "power": 1.0}, "rate, or all of"),
        ({**CHANNEL, "rate": 1e6}, "rate, or all of"),
        ({"rate": [3.0, 2.0]}, r"rate = \[low, high\]"),
        ({"rate": 0.0}, "more than 0"),
        ({"rate": math.inf}, "finite"),
        ({"rate": 1.0, "latency": -1.0}, "at least 0"),
        ({"rate": 1.0, "speed": 1.0}, "there is no such parameter"),
    ],
)
def test_bad_links(link, words):
    with pytest.raises(ConfigError, match=words):
        Link(**link)


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        ({"compute": "cycles"}, "cycles_per_second and cycles, and no speed"),
        ({"compute": "cycles", "cycles_per_second": 1.0}, "cycles_per_second and cycles, and no speed"),
        ({"compute": "cycles", "cycles_per_second": 1.0, "cycles": {}, "speed": 1.0}, "and no speed"),
        ({"cycles": {"train": 1.0}}, 'with compute = "cycles" only'),
        ({"compute": "guessed"}, "'measured' or 'cycles'"),
        ({"speed": 0.0}, "more than 0"),
    ],
)
def test_bad_clocks(clock, words):
    with pytest.raises(ConfigError, match=words):
        Clock(up=Link(rate=1.0), **clock)


def test_a_clock_from_a_recipes_values():
    clock = Clock.model_validate({"up": {"rate": [2e6, 10e6], "shared": False}, "speed": 3})
    assert clock.up == Link(rate=(2e6, 10e6), shared=False)
    with pytest.raises(ValidationError, match="frozen"):
        clock.speed = 2.0


@pytest.mark.parametrize("key", ["number", "step", "timed", "silos", "arrivals"])
def test_damaged_lines_are_named(key):
    good = ask(1, "train", {"a": (1.0, 5)})
    bad = {name: value for name, value in ask(2, "train", {"a": (1.0, 5)}).items() if name != key}
    with pytest.raises(DataError, match=r"asks: line 2 is damaged; wants the lines of a run's asks\.jsonl"):
        timeline([good, bad], DRAWN, 0)


def test_bad_seeds():
    with pytest.raises(ConfigError, match="seed is -1; wants a whole number of at least 0"):
        timeline([], DRAWN, -1)
    assert timeline([], DRAWN, 0) == []
