"""Which columns of a table are features."""

from collections.abc import Sequence


def features(there: Sequence[str], label: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns to learn from: those named, or all but the label, less those named with a minus.

    Names that are not there are among them, for whoever reads the table to complain of.

    >>> features(["id", "age", "job", "ill"], "ill", ["-id"])
    ['age', 'job']
    """
    others = [name for name in there if name != label]
    if columns is None:
        return others
    left_out = [name[1:] for name in columns if name.startswith("-") and name not in there]
    named = [name for name in columns if name in there or not name.startswith("-")]
    kept = [name for name in named or others if name not in left_out]
    return [*kept, *(name for name in left_out if name not in there)]
