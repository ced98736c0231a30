"""Institutions: who their members are, how many epochs they train, how far they are from the global model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pace:
    """By institution, a value for each of the rounds; None where it took no part."""

    rounds: tuple[int, ...]
    epochs: Mapping[str, tuple[float | None, ...]]
    #: ω: how far the institution's weights are from the global ones.
    differences: Mapping[str, tuple[float | None, ...]]


def pace(result: Mapping[str, Any]) -> Pace | None:
    """Read `pace`, one entry for each round; None if the method tunes no epochs."""
    found = result.get("pace")
    if not found:
        return None
    return Pace(
        tuple(int(one["round"]) for one in found),
        _by_name([one["epochs"] for one in found]),
        _by_name([one.get("differences", {}) for one in found]),
    )


def _by_name(rounds: list[Mapping[str, Any]]) -> dict[str, tuple[float | None, ...]]:
    names = dict.fromkeys(name for one in rounds for name in one)
    return {
        name: tuple(None if one.get(name) is None else float(one[name]) for one in rounds) for name in names
    }


def members(about: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The members of every silo that has some, from run.json."""
    found = about.get("members") or {}
    return {str(name): tuple(map(str, inside)) for name, inside in found.items() if inside}
