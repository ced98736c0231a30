"""Observers see every event of a run, in order, and as the run's own log has it."""

from cosilo import CoFED, Federation
from cosilo.protocol.events import Event, Happening


def test_observers_see_all_that_is_logged_in_order(tmp_path, silos, pool):
    one: list[Event] = []
    other: list[Event] = []
    run = Federation(silos(), pool, CoFED(rule="paper")).run(
        tmp_path / "run", observers=[one.append, other.append]
    )
    assert one == other
    logged = [{key: value for key, value in line.items() if key != "at"} for line in run.events()]
    assert [{"event": event.what, **event.facts} for event in one] == logged
    kinds = [event.what for event in one if event.what is not Happening.WARNING]
    assert (kinds[0], kinds[-1]) == (Happening.START, Happening.FINISH)
    # Each ask is told, then its three replies, then that all have answered.
    assert kinds[1:-1] == [Happening.ASK, *[Happening.REPLY] * 3, Happening.ANSWERED] * 6
    assert [event.facts["step"] for event in one if event.what is Happening.ASK] == [
        "hello",
        "train",
        "evaluate",
        "label",
        "update",
        "evaluate",
    ]


def test_a_run_that_is_only_opened_tells_nothing(tmp_path, silos, pool):
    Federation(silos(), pool).run(tmp_path / "run")
    told: list[Event] = []
    Federation(silos(), pool).run(tmp_path / "run", observers=[told.append])
    assert told == []
