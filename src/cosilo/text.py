"""Parts of one-line errors: short lists, guesses at a misspelt name, causes in one line."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any


def listing(items: Iterable[object], most: int = 12) -> str:
    """The items with commas between them, cut after `most`.

    >>> listing("abcd", most=2)
    'a, b and 2 more'
    """
    words = [str(item) for item in items]
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[:most])} and {len(words) - most} more"


def guess(word: str, options: Sequence[str]) -> str:
    """A hint to add to an error about an unknown name, or nothing if no option is near.

    >>> guess("incme", ["age", "income"])
    " (did you mean 'income'?)"
    """
    lower = {option.lower(): option for option in options}
    near = get_close_matches(word.lower(), list(lower), n=1)
    return f" (did you mean {lower[near[0]]!r}?)" if near else ""


def cause(error: BaseException) -> str:
    """The first line of another library's error, cut to what fits in ours.

    >>> cause(ValueError("bad header. More.\\nA second line"))
    'bad header. More.'
    """
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else type(error).__name__
    return text if len(text) <= 160 else text[:159] + "…"


def differences(before: Any, now: Any, at: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted keys with two values that are not the same; where `use` differs, nothing else has to be said.

    >>> list(differences({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}))
    [('a.c', 2, 3)]
    """
    if isinstance(before, dict) and isinstance(now, dict):
        other = before.get("use") != now.get("use")
        for key in ["use"] if other else dict.fromkeys([*before, *now]):
            yield from differences(before.get(key), now.get(key), f"{at}.{key}" if at else str(key))
    elif before != now:
        yield at, before, now
