"""CoFED and its elections."""

from cosilo.methods.cofed.cofed import CoFED, Vote, Votes

__all__ = ["CoFED", "Vote", "Votes"]
