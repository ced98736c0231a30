"""What is behind a boundary: a silo, or an institution, which is a silo with members."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from cosilo.errors import ConfigError
from cosilo.learners.base import Learner
from cosilo.protocol.allow import Allow
from cosilo.protocol.message import Message, State, Value, policy
from cosilo.protocol.stage import Measure, Score, Stage
from cosilo.protocol.step import Step
from cosilo.protocol.task import Task

#: What a silo may be called: it is the name of a folder, and of a site.
NAME = r"^[^\W_][\w.-]{0,63}$"
#: With what journals add to it, a name of this many bytes is a file name everywhere.
_MOST_BYTES = 200


class Procedure(Protocol):
    """What both ends of an ask know of a method: its name, its steps, and what it needs."""

    name: ClassVar[str]
    needs_pool: ClassVar[bool]
    cautious: ClassVar[Mapping[str, float | list[str]]]

    def steps(self) -> Mapping[str, Step]:
        """The steps it can ask for, by name."""

    def needs(self) -> Mapping[str, str]:
        """The kinds that a silo has to share to take part, each with the step and field that needs it."""

    def uses(self, step: str) -> bool:
        """Whether it asks for that step at all, with its parameters."""

    def most_asks(self, step: str) -> int:
        """How often it may ask a silo for that step in a run."""

    def parameters(self) -> Mapping[str, object]:
        """Its parameters, by name."""

    def told_silos(self, parameters: Mapping[str, object]) -> Mapping[str, object]:
        """Return the parameters that silos have to know; the others are the coordinator's alone."""

    def admit(self, participant: "Participant") -> None:
        """Raise if it cannot take part, whatever it shares; nothing is computed."""

    def check(self, tasks: Mapping[str, Task]) -> None:
        """Raise if these tasks do not fit together."""

    def check_targets(
        self, training: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
    ) -> None:
        """Raise if what silos train on and what they want do not fit together."""


class Scores(Mapping[Stage, Mapping[Measure, Score]]):
    """The scores of a participant's models, by stage; private, and shared only by `evaluate`."""

    def __init__(self, values: Mapping[Stage, Mapping[Measure, Score]] | None = None) -> None:
        self._values = {stage: dict(scores) for stage, scores in (values or {}).items()}

    def __getitem__(self, stage: Stage) -> Mapping[Measure, Score]:
        return self._values[stage]

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def take(self, stage: Stage, measure: Measure, score: Score) -> None:
        """Keep a score."""
        self._values.setdefault(stage, {})[measure] = score


class Participant(ABC):
    """What boundary, record and engine need of it: a name, a policy, a state that can be saved, steps."""

    #: The classes it tells apart.
    task: Task
    #: The black box; an institution has none.
    learner: Learner | None = None
    #: The same, trained without the validation part of the data: what choices are made by.
    trial: Learner | None = None
    #: What its coordinator may do; None: whatever the method says, as where all silos have one owner.
    allow: Allow | None = None
    #: The other of two models: what was offered and refused, or what there was before an offer was taken.
    spare: Learner | None = None

    def __init__(self, name: str, shares: Iterable[str]) -> None:
        if isinstance(name, str):
            name = unicodedata.normalize("NFC", name)  # one form, however it was typed
        if not (isinstance(name, str) and re.fullmatch(NAME, name) and len(name.encode()) <= _MOST_BYTES):
            raise ConfigError(
                f"silo name {name!r}: wants letters (of any script), digits, '.', '_' and '-', the first "
                "a letter or digit, 64 at most, and no space"
            )
        self.name = name
        self._where = f"silo {name!r}"
        self.shares = policy(shares, self._where)
        #: The seed of the current step.
        self.seed = 0
        #: The processor's seconds of the current step that judging took: they are on no clock.
        self.judging = 0.0
        self.forget()

    def forget(self) -> None:
        """Return to the state before the first step."""
        #: Whether there is a model: the learner was trained here, or loaded.
        self.trained = False
        self.trial = self.spare = None
        #: What is kept between steps; these and the scores are saved with every step.
        self.notes = State()
        self.scores = Scores()
        #: Whether what it has learnt has to be saved with the step.
        self.changed = False
        #: Whether its model is now the one of local training, which is kept for good.
        self.trained_alone = False

    @property
    def exact_scores(self) -> bool:
        """Whether what is found on its own data may leave with all digits and counts."""
        return self.allow is None or self.allow.exact_scores

    def recall(
        self, trained: bool, notes: Mapping[str, Value], scores: Mapping[Stage, Mapping[Measure, Score]]
    ) -> None:
        """Return to the state after a step that was saved."""
        self.trained = trained
        self.notes = State(notes)
        self.scores = Scores(scores)
        self.changed = False

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of training instances, for its owner."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """All that its part of a result depends on, in hashes and settings, for its own use."""

    @abstractmethod
    def perform(self, step: Step, message: Message, number: int) -> Message | None:
        """Do a step; `number` is that of the ask."""

    def left(self, kinds: set[str]) -> None:  # noqa: B027 (most promise nothing)
        """Account for what left, of these kinds."""

    def privacy_lines(self, kinds: set[str]) -> list[str]:
        """What fields of these kinds would tell about its records, one line each, before they leave."""
        return []

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Close what a run opened."""

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


def check_names_differ(silos: Iterable[Participant], what: str, where: str = "") -> None:
    """Raise if two have the same name, case ignored: some file systems do not tell upper case from lower."""
    name, times = Counter(silo.name.casefold() for silo in silos).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{where}{times} {what} are called {name!r}; give each its own name")


def check_quorum(quorum: float, where: str = "") -> None:
    """Raise unless the quorum is a fraction."""
    if not 0 <= quorum <= 1:
        raise ConfigError(f"{where}quorum = {quorum}; wants a fraction between 0 and 1")
