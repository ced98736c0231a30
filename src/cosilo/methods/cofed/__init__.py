"""CoFED and its elections."""

from cosilo.methods.cofed.cofed import CoFED
from cosilo.methods.cofed.findings import OwnDecision, Vote, Votes

__all__ = ["CoFED", "OwnDecision", "Vote", "Votes"]
