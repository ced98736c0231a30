"""The progress bar of a run: one for each ask, one tick for each answer."""

from contextlib import contextmanager

import pytest

from cosilo.federation import progress_bar
from cosilo.protocol.events import Event, Happening


@pytest.fixture
def shown(monkeypatch):
    lines = []

    @contextmanager
    def bar(text, total):
        lines.append([text, total, 0])

        def advance(by=1):
            lines[-1][2] += by

        yield advance
        lines[-1].append("closed")

    monkeypatch.setattr(progress_bar, "bar", bar)
    return lines


def test_it_counts_replies_and_failures_and_ends_with_the_ask(shown):
    watch = progress_bar.ProgressBar()
    watch(Event(Happening.START))
    watch(Event(Happening.ASK, {"step": "train", "silos": ["a", "b", "c"]}))
    watch(Event(Happening.REPLY, {"silo": "a"}))
    watch(Event(Happening.FAILURE, {"silo": "b"}))
    assert shown == [["train", 3, 2]]
    watch(Event(Happening.ANSWERED))
    watch(Event(Happening.REPLY, {"silo": "c"}))  # nothing is shown any more
    watch(Event(Happening.ASK, {"step": "label", "silos": ["a"]}))
    watch(Event(Happening.STOP, {"text": "the disk is full"}))
    assert shown == [["train", 3, 2, "closed"], ["label", 1, 0, "closed"]]
