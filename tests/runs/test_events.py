"""The event log."""

import gc
import warnings

from cosilo.protocol.events import Event, Happening
from cosilo.runs.events import EventLog


def test_a_log_that_nobody_holds_is_closed_without_a_warning(tmp_path):
    events = EventLog(tmp_path / "events.jsonl")
    events(Event(Happening.START))
    events.itself = events  # as an error that holds a frame does: only the collector finds it
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        del events
        gc.collect()
    assert [str(one.message) for one in said if "events.jsonl" in str(one.message)] == []
    assert [event["event"] for event in EventLog(tmp_path / "events.jsonl").read()] == ["start"]
