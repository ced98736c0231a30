"""Tasks: the classes of one silo, by name. The vocabulary is the union of all tasks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.labels import in_order
from cosilo.errors import DataError
from cosilo.text import listing


@dataclass(frozen=True)
class Task:
    """The classes a silo tells apart, by name and in a fixed order; a code is a place in that order.

    Parameters
    ----------
    classes : tuple of str
        Their names, two or more, each once.

    Examples
    --------
    >>> task = Task(("cat", "dog"))
    >>> task.encode(np.array(["dog", "cat", "dog"]), "silo 'a'")
    array([1, 0, 1])
    >>> task.decode(np.array([0, 1])).tolist()
    ['cat', 'dog']
    """

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.classes)) < len(self.classes):
            twice = Counter(self.classes).most_common(1)[0][0]
            raise DataError(f"a task names class {twice!r} twice; name each class once")
        if len(self.classes) < 2:
            raise DataError(f"a task of {list(self.classes)}: a classifier needs at least two classes")

    def __len__(self) -> int:
        return len(self.classes)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: code for code, name in enumerate(self.classes)}

    def encode(self, names: NDArray[Any], where: str) -> NDArray[np.int64]:
        """Codes of class names; `where` says in the error whose labels these are."""
        distinct, inverse = np.unique(names, return_inverse=True)
        strangers = [str(name) for name in distinct if str(name) not in self._places]
        if strangers:
            count = int(np.isin(names, strangers).sum())
            raise DataError(
                f"{where}: label {strangers[0]!r} is outside the task {{{listing(self.classes)}}} "
                f"({count} such instances); drop them or add the class to the task"
            )
        codes = np.array([self._places[str(name)] for name in distinct], dtype=np.int64)
        return codes[inverse] if len(names) else np.empty(0, np.int64)

    def decode(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.str_]:
        """Class names of codes."""
        names: NDArray[np.str_] = np.array(self.classes)[codes]
        return names

    def codes_in(self, vocabulary: "Task") -> list[int]:
        """Where each class of this task stands in the vocabulary."""
        return [vocabulary._places[name] for name in self.classes]


def vocabulary(tasks: Iterable[Task]) -> Task:
    """The union of all tasks (eq. 15 of CoFED)."""
    return Task(in_order(name for task in tasks for name in task.classes))
