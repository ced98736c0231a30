"""Parts of one-line errors: short lists, guesses at a misspelt name, causes in one line, harmless text."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

#: Control characters, halves of characters and line breaks; and what turns the direction of writing.
_ACTING = ("Cc", "Cs", "Zl", "Zp")
_TURNING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    r"""The text with everything escaped that does something to a terminal, a page or a file, instead of
    standing there.

    >>> plain("Zürich [/] 東京"), plain("\x1b[2J"), plain("\ud800")
    ('Zürich [/] 東京', '\\x1b[2J', '\\ud800')
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(ascii(one)[1:-1] if _acts(one) else one for one in text)


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _ACTING or character in _TURNING


def cell(text: str) -> str:
    """The text as a cell of a CSV file that no spreadsheet takes for a formula.

    >>> cell("=1+1"), cell("-1"), cell("cat")
    ("'=1+1", '-1', 'cat')
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r")):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


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


def near_file(path: Path) -> str:
    """The same for a file that is not there: a hint at one beside it with nearly that name."""
    beside = [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else []
    return guess(path.name, beside)


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
