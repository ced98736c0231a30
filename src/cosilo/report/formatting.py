"""Numbers, names and settings as people read them."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from cosilo.text import listing


def plural(number: int, word: str) -> str:
    """A number with its noun.

    >>> plural(1, "failure"), plural(0, "failure"), plural(1200, "class")
    ('1 failure', '0 failures', '1,200 classes')
    """
    ending = "" if number == 1 else "es" if word.endswith("s") else "s"
    return f"{number:,} {word}{ending}"


def short(name: str, most: int) -> str:
    """A name that fits: one line, printable, cut with an ellipsis; wide characters count twice.

    >>> short("a rather long name", 9), short("cat", 9)
    ('a rather…', 'cat')
    """
    clean = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    kept, room = "", float(most)
    for character in clean:
        room -= 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if room < 0:
            return kept[:-1].rstrip() + "…"
        kept += character
    return kept


def few(names: Sequence[str], room: int = 26) -> str:
    """The first names that fit on a line, and how many more there are.

    >>> few(["ant", "bee", "cat"]), few(["ant", "bee", "cat"], room=8)
    ('ant, bee, cat', 'ant, bee and 1 more')
    """
    names = [short(name, room) for name in names]
    fitting = 1
    while fitting < len(names) and len(", ".join(names[: fitting + 1])) <= room:
        fitting += 1
    return listing(names, fitting)


def percent(value: float) -> str:
    """An accuracy or a share."""
    return f"{100 * value:.1f}%"


def ratio(value: float) -> str:
    """A relative accuracy."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """A relative accuracy that reads as gain or loss without colour.

    >>> signed(1.0371), signed(0.965), signed(1.0)
    ('▲ 1.037', '▼ 0.965', '= 1.000')
    """
    return f"{'▲' if value > 1 else '▼' if value < 1 else '='} {ratio(value)}"


def size(number: float) -> str:
    """Bytes for people.

    >>> size(168), size(12_460), size(3_700_000)
    ('168 B', '12.5 kB', '3.7 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "B" or number >= 99.95 else f"{number:.1f} {unit}"


def dotted(values: Mapping[str, object], before: str = "") -> Iterable[tuple[str, object]]:
    """Nested settings as dotted keys, the way `--set` takes them.

    >>> list(dotted({"seed": 1, "method": {"use": "cofed", "alpha": 0.3}}))
    [('seed', 1), ('method.use', 'cofed'), ('method.alpha', 0.3)]
    """
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from dotted(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def seconds(value: float) -> str:
    """A duration for people.

    >>> seconds(0.0042), seconds(3.53), seconds(75), seconds(7300)
    ('4 ms', '3.5 s', '1 min 15 s', '2 h 2 min')
    """
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    if value < 3599.5:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} h {minutes} min"
