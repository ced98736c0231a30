"""How silos introduce themselves: classes, pool, version, what they may share, and what they want."""

from collections.abc import Mapping

from cosilo.data.labels import in_order
from cosilo.protocol.forms import Expected
from cosilo.protocol.message import Fields
from cosilo.protocol.task import Task, vocabulary

#: What stands before the number of a class that a silo does not have.
_OTHERS = "class of others "


class Introductions:
    """What silos said about themselves when they were met, by name."""

    def __init__(self) -> None:
        #: The task of each silo.
        self.tasks: dict[str, Task] = {}
        #: The kinds of fields that it can and may share.
        self.offers: dict[str, frozenset[str]] = {}
        self._vocabulary: Task | None = None

    def add(self, replies: Mapping[str, Fields], pool: str | None, needs_pool: bool) -> list[str]:
        """Remember how silos introduce themselves; a line for each with another pool."""
        problems = []
        self._vocabulary = None
        for name, reply in replies.items():
            theirs, classes = reply.text("pool"), reply.names("classes")
            if needs_pool and theirs != pool:
                problems.append(other_pool(name, theirs, pool))
            self.tasks[name] = Task(tuple(classes))
            self.offers[name] = frozenset(reply.names("offers"))
        return problems

    def expected(self, pool_size: int) -> dict[str, Expected]:
        """What later replies are held against."""
        return {
            name: Expected(classes=len(task.classes), pool=pool_size) for name, task in self.tasks.items()
        }

    @property
    def vocabulary(self) -> Task:
        """The union of all tasks."""
        if self._vocabulary is None:  # methods ask once for every silo
            self._vocabulary = vocabulary(self.tasks.values())
        return self._vocabulary

    def vocabulary_for(self, name: str, *public: str) -> list[str]:
        """The vocabulary as one silo may know it: its own classes and public ones by name."""
        known = {*self.tasks[name].classes, *public}
        classes = in_order([*self.vocabulary.classes, *public])
        return [one if one in known else f"{_OTHERS}{place}" for place, one in enumerate(classes)]


def other_pool(silo: str, theirs: str | None, pool: str | None) -> str:
    """The error line for a silo whose pool is not the federation's."""
    return (
        f"silo {silo!r}: its pool has fingerprint {theirs or 'none'}, the federation's {pool}; "
        "every silo needs the same pool, in the same order, and the same labels if it has any"
    )
