"""The methods, by name."""

from cosilo.methods.base import Method, step
from cosilo.methods.cofed import CoFED
from cosilo.methods.local import Local

METHODS: dict[str, type[Method]] = {method.name: method for method in (CoFED, Local)}

__all__ = ["METHODS", "CoFED", "Local", "Method", "step"]
