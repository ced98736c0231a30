import io
import sys
import time

from cosilo import progress


class Screen(io.StringIO):
    terminal = True

    def isatty(self) -> bool:
        return self.terminal


def shown(monkeypatch, seconds, terminal=True) -> str:
    screen = Screen()
    screen.terminal = terminal
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE", 0.1)
    monkeypatch.setenv("TERM", "xterm")
    with progress.bar("training", 3) as advance:
        advance()
        time.sleep(seconds)
        advance(2)
    return screen.getvalue()


def test_a_bar_appears_while_somebody_waits(monkeypatch):
    assert "training" in shown(monkeypatch, 0.6)


def test_short_work_and_files_get_no_bar(monkeypatch):
    assert shown(monkeypatch, 0.0) == ""
    assert shown(monkeypatch, 0.6, terminal=False) == ""
