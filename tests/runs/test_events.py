"""The event log."""

import gc
import warnings

import pytest

from cosilo.protocol.events import Event, Happening
from cosilo.runs.events import EventLog


def test_a_log_is_closed_when_its_run_ends(tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with EventLog(tmp_path / "events.jsonl") as events:
            events(Event(Happening.START))
        with pytest.raises(ValueError, match="closed"):
            events(Event(Happening.START))
        del events
        gc.collect()
    assert [str(one.message) for one in said] == []
    with EventLog(tmp_path / "events.jsonl") as events:
        assert [event["event"] for event in events.read()] == ["start"]
