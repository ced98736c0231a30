"""What the columns of a data frame hold: numbers, words or dates. What belongs together holds the same."""

from typing import TYPE_CHECKING, Any

from cosilo.data.instances import Instances, is_frame
from cosilo.text import listing

if TYPE_CHECKING:
    import pandas as pd

#: Days by themselves or with a time of day, in the orders that people write them in.
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([ T]\d{1,2}:\d{2}.*)?\s*$"


def kinds(X: Instances) -> dict[str, str]:
    """What each column holds; nothing for instances without columns.

    >>> import pandas as pd
    >>> kinds(pd.DataFrame({"age": [30, 40], "job": ["nurse", "cook"], "seen": ["2024-05-01", "2024-06-02"]}))
    {'age': 'numbers', 'job': 'words', 'seen': 'dates'}
    """
    return {str(name): _kind(X[name]) for name in X.columns} if is_frame(X) else {}


def difference(X: Instances, what: str, data: Instances) -> str | None:
    """How the columns of X differ from those of a silo's data, in words; None if they hold the same.

    >>> import pandas as pd
    >>> difference(pd.DataFrame({"age": [3]}), "its pool", pd.DataFrame({"age": [3], "job": ["cook"]}))
    "its pool has other columns than its data: only its data has 'job'; wants the same in both"
    """
    if not (is_frame(X) and is_frame(data)):
        return None
    theirs, mine = kinds(X), kinds(data)
    lacking = listing((repr(name) for name in mine if name not in theirs), 6)
    beyond = listing((repr(name) for name in theirs if name not in mine), 6)
    if lacking or beyond:
        only = [f"only its data has {lacking}"] if lacking else []
        only += [f"only {what} has {beyond}"] if beyond else []
        return f"{what} has other columns than its data: {', '.join(only)}; wants the same in both"
    others = [name for name in mine if name in theirs and len({theirs[name], mine[name], "nothing"}) > 2]
    if not others:
        return None
    first = others[0]
    also = f" (also {listing(map(repr, others[1:]), 3)})" if others[1:] else ""
    hint = ""
    for frame, whose in ((data, "the data"), (X, what)):
        if stray := strays(frame[first]):
            hint = f"; {stray} in {whose}"
    return (
        f"column {first!r} holds {theirs[first]} in {what} and {mine[first]} in its data{also}{hint}; "
        "bring both to the same type, or leave the column out"
    )


def strays(column: "pd.Series[Any]") -> str:
    """Of a column of words that is mostly numbers: how many are not, and where; else nothing.

    >>> import pandas as pd
    >>> strays(pd.Series(["1", "2", "x", "4"]))
    '1 of 4 values is no number, the first in row 3'
    """
    import pandas as pd

    if _kind(column) != "words":
        return ""
    numbers = (pd.to_numeric(column.astype(str), errors="coerce").notna() | column.isna()).to_numpy()
    if numbers.mean() < 0.5 or numbers.all():
        return ""
    count = int((~numbers).sum())
    verb, kind = ("is", "number") if count == 1 else ("are", "numbers")
    return f"{count} of {len(column)} values {verb} no {kind}, the first in row {int(numbers.argmin()) + 1}"


def notes(X: Instances) -> list[str]:
    """What an owner should look at before a run, a line for each column."""
    found: list[str] = []
    if not is_frame(X):
        return found
    for name in X.columns:
        if stray := strays(X[name]):
            found.append(f"column {name!r}: {stray}: all of it is taken for words")
        elif _could_name(X[name]) and len(X) > 20 and X[name].nunique() == len(X):
            found.append(
                f"column {name!r}: all {len(X)} values are different, as those of an identifier are; "
                f'if it is one, leave it out: columns = ["-{name}"]'
            )
    return found


def _could_name(column: "pd.Series[Any]") -> bool:
    """Whether identifiers are written like this: words, or whole numbers."""
    return _kind(column) == "words" or column.dtype.kind in "iu"


def _kind(column: "pd.Series[Any]") -> str:
    if len(column) and column.isna().all():
        return "nothing"
    if column.dtype.kind in "biufc":
        return "numbers"
    if column.dtype.kind in "mM":
        return "dates"
    if not len(column):
        return "nothing"
    head = column.dropna().iloc[:1000].astype(str)
    return "dates" if head.str.match(_DATE).all() else "words"
