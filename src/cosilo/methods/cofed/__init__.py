"""CoFED and its elections."""

from cosilo.methods.cofed.cofed import CoFED
from cosilo.methods.cofed.findings import Vote, Votes

__all__ = ["CoFED", "Vote", "Votes"]
