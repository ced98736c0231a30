"""A progress bar for each ask of a run, as an observer."""

import sys
from contextlib import ExitStack

from cosilo.progress import Advance, bar
from cosilo.protocol.events import Event, Happening


class ProgressBar:
    """Warnings; and on a terminal how many silos have answered, where that takes more than two seconds."""

    def __init__(self) -> None:
        self._shown = ExitStack()
        self._advance: Advance | None = None

    def __call__(self, event: Event) -> None:
        """Begin with an ask, advance with each answer, end with the last."""
        if event.what is Happening.ASK:
            silos = event.facts["silos"]
            total = len(silos) if isinstance(silos, list) else None
            self._advance = self._shown.enter_context(bar(str(event.facts["step"]), total))
        elif event.what in (Happening.REPLY, Happening.FAILURE) and self._advance is not None:
            self._advance()
        elif event.what is Happening.WARNING:
            print(f"warning: {event.facts['text']}", file=sys.stderr)
        elif event.what in (Happening.ANSWERED, Happening.STOP):
            self._shown.close()
            self._advance = None
