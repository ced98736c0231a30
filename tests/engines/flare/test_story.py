"""What somebody who follows a run is told, and when."""

from cosilo.engines.flare import story as module
from cosilo.engines.flare.story import Story


def test_who_keeps_a_run_waiting_is_said_once_and_only_after_a_while(monkeypatch):
    now, said = [100.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    story = Story(said.append)
    story({"event": "ask", "step": "hello", "silos": ["north", "south", "west"]})
    story({"event": "reply", "step": "hello", "silo": "south"})
    story({"event": "failure", "step": "hello", "silo": "west", "text": "silo 'west': is not connected"})
    story.wait()
    assert said == ["hello: asked 3 silos", "silo 'west': is not connected"]
    now[0] += 30
    story.wait()
    story.wait()
    told = "hello: still waiting for north; its `cosilo join` says if it is at work or waits for approval"
    assert said[2:] == [told]
    story({"event": "reply", "step": "hello", "silo": "north"})
    story({"event": "answered", "step": "hello", "seconds": 31.0})
    story({"event": "ask", "step": "train", "silos": ["north", "south"]})
    now[0] += 29
    story.wait()
    assert said[3:] == ["hello: done in 31.0 s", "train: asked 2 silos"]


def test_nobody_is_waited_for_when_all_have_answered():
    said = []
    story = Story(said.append, patience=0.0)
    story.wait()
    story({"event": "ask", "step": "hello", "silos": ["north"]})
    story({"event": "reply", "step": "hello", "silo": "north"})
    story.wait()
    assert said == ["hello: asked 1 silos"]
