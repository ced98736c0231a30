"""Whoever stands behind a boundary: a silo, or an institution, which is a silo with members."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cosilo.errors import ConfigError, CosiloError
from cosilo.protocol.message import Message, Value, policy
from cosilo.protocol.task import Task

if TYPE_CHECKING:
    from cosilo.learners import Learner
    from cosilo.methods.base import Method, Step
    from cosilo.runs.silo_record import Record


#: What a silo may be called: it is the name of a folder, and of a site.
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class Participant(ABC):
    """What boundary, record and engine need of it: a name, a policy, a state that can be kept, steps."""

    #: The classes it tells apart.
    task: Task
    #: The black box; an institution has none.
    learner: "Learner | None" = None

    def __init__(self, name: str, shares: Iterable[str]) -> None:
        if not re.fullmatch(NAME, name):
            raise ConfigError(f"silo name {name!r}: wants letters, digits, '.', '_' and '-', 64 at most")
        self.name = name
        self._where = f"silo {name!r}"
        self.shares = policy(shares, self._where)
        #: Whether there is a model: the learner was trained here, or loaded.
        self.trained = False
        #: Accuracy and number of test instances by stage; the silo's own, shared only by `evaluate`.
        self.scores: dict[str, tuple[float, int]] = {}
        #: What a method keeps at the silo between steps; saved with the model.
        self.notes: dict[str, Value] = {}
        #: The seed of the step at hand.
        self.seed = 0
        #: Whether the model, the scores or the notes have to be saved.
        self.changed = False

    def forget(self) -> None:
        """As before any step."""
        self.trained, self.changed, self.notes, self.scores = False, False, {}, {}

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of training instances, for its owner."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of all data, for its own use."""

    def problems(self, method: "Method") -> list[str]:
        """What keeps it from taking part, one line each, for its owner; nothing is computed."""
        found = refusals(self, method.name, method.needs())
        try:
            self.prepare(method)
        except CosiloError as error:
            found.append(str(error))
        return found

    @abstractmethod
    def prepare(self, method: "Method") -> None:
        """Raise if the method cannot do with it."""

    @abstractmethod
    def open(self, method: "Method", seed: int, record: "Record") -> None:
        """Get ready for a run; `record` is its own, `self.seed` the seed of whatever is drawn here."""

    @abstractmethod
    def carry_out(self, method: "Method", step: "Step", message: Message, number: int) -> Message | None:
        """Do a step; `number` is that of the ask."""

    def close(self) -> None:  # noqa: B027 (most have nothing to let go of)
        """Let go of what `open` made."""

    def preload(self) -> None:
        """Import what steps will need; called once, before worker processes are forked."""
        if self.learner is not None:
            self.learner.preload()


def refusals(silo: Participant, method: str, needs: Mapping[str, str]) -> list[str]:
    """One line for each kind that is needed and that the silo's policy does not allow."""
    return [
        f"silo {silo.name!r}: does not share {kind!r}, which {method} needs ({reason}); "
        f"it shares {sorted(silo.shares)}: add {kind!r} there to allow it"
        for kind, reason in needs.items()
        if kind != "task" and kind not in silo.shares
    ]


def different_names(silos: Iterable[Participant], what: str, where: str = "") -> None:
    """Raise unless each has a name of its own; folders of some disks do not tell upper case from lower."""
    name, times = Counter(silo.name.lower() for silo in silos).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{where}{times} {what} are called {name!r}; give each a name of its own")


def quorum_in_range(quorum: float, where: str = "") -> None:
    """Raise unless a quorum is a share."""
    if not 0 <= quorum <= 1:
        raise ConfigError(f"{where}quorum = {quorum}; wants a fraction between 0 and 1")
