"""Simulated time in layers, by hand: a network inside institutions, another one to the server."""

import pytest

from cosilo.errors import DataError
from cosilo.simulated_time.clock import Clock, Link
from cosilo.simulated_time.institution_time import layered, time_to


def ask(number, step, arrivals, **more):
    """A line of asks.jsonl: arrivals are {name: (seconds, bytes)}."""
    fields = {"kind": "weights", "form": "float32[1]"}
    replies = {
        name: {"seconds": seconds, "fields": {"weights": {**fields, "bytes": size}}}
        for name, (seconds, size) in arrivals.items()
    }
    line = {"number": number, "step": step, "timed": step == "train"}
    return {**line, "silos": sorted(arrivals), "arrivals": replies, **more}


OUTER = [
    ask(2, "alone", {"a": (50.0, 0), "b": (60.0, 0), "c": (70.0, 0)}),
    ask(5, "train", {"a": (30.0, 1000), "b": (40.0, 1000), "c": (5.0, 1000)}),
    ask(6, "judge", {"a": (9.0, 0), "b": (9.0, 0), "c": (9.0, 0)}),
]
INSIDE = {
    "a": [
        ask(2, "alone", {"x": (25.0, 0), "y": (25.0, 0)}, within=2),
        ask(5, "train", {"x": (10.0, 1000), "y": (8.0, 1000)}, within=5),
        ask(6, "train", {"x": (7.0, 1000), "y": (9.0, 1000)}, within=5),
    ],
    "b": [ask(5, "train", {"x": (1.0, 1000), "y": (2.0, 1000)}, within=5)],
}


def test_members_compute_at_once_and_institutions_too():
    clock = Clock(up=Link(rate=100.0), inside=Link(rate=500.0, shared=False))
    moments = layered(OUTER, INSIDE, clock, seed=0)
    assert [moment.step for moment in moments] == ["alone", "train", "judge"]
    # a: 10 s and 9 s of the slower client, twice 1000 / 500 s; b: 2 + 2 s; c, without members: 5 s.
    train = moments[1]
    assert (train.compute, train.upload) == (10 + 9 + 2 * 2, 3 * 1000 / 100)
    assert [moment.at for moment in moments] == [0.0, 53.0, 53.0]


def test_a_link_that_clients_share_and_a_faster_processor():
    clock = Clock(up=Link(rate=100.0), inside=Link(rate=500.0), speed=0.5)
    train = layered(OUTER, INSIDE, clock, seed=0)[1]
    assert train.compute == (10 + 9) / 2 + 2 * 2 * 2
    slow_silo = [ask(5, "train", {"a": (30.0, 1000), "c": (500.0, 1000)})]
    assert layered(slow_silo, INSIDE, clock, seed=0)[0].compute == 250.0


def test_without_a_link_inside_only_computing_counts():
    train = layered(OUTER, INSIDE, Clock(up=Link(rate=100.0)), seed=0)[1]
    assert train.compute == 19.0
    cycles = Clock(up=Link(rate=100.0), compute="cycles", cycles_per_second=1.0, cycles={"train": 4.0})
    assert layered(OUTER, INSIDE, cycles, seed=0)[1].compute == 8.0  # two local rounds at a


def test_what_goes_down_takes_time_at_both_layers_if_there_is_a_link_down():
    def told(log):
        return [{**line, "sent": dict.fromkeys(line["silos"], 1000)} for line in log]

    inner = {name: told(log) for name, log in INSIDE.items()}
    clock = Clock(up=Link(rate=100.0), down=Link(rate=200.0), inside=Link(rate=500.0, shared=False))
    train = layered(told(OUTER), inner, clock, seed=0)[1]
    # a: 19 s of computing, and 1000 / 500 s up and down in each of two local rounds; three messages at 200.
    assert (train.download, train.compute, train.upload) == (15.0, 19 + 2 * 2 * 2, 30.0)
    without = clock.model_copy(update={"inside": None})
    assert layered(told(OUTER), inner, without, seed=0)[1].compute == 19


def test_the_log_of_a_whole_run_is_no_log_of_members():
    with pytest.raises(DataError, match=r"members: ask 5 is not within one; wants run\.asks"):
        layered(OUTER[1:], {"a": OUTER[1:]}, Clock(up=Link(rate=1.0)), seed=0)


def test_time_to_a_target_is_the_first_time():
    curve = [(10.0, 0.70), (20.0, 0.85), (30.0, 0.80), (40.0, 0.90)]
    assert [time_to(target, curve) for target in (0.5, 0.85, 0.86, 0.95)] == [10.0, 20.0, 40.0, None]
