"""What a method is: parameters, a `coordinate` function, and the steps it asks silos to do."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict

from cosilo.errors import ConfigError, DataError, LearnerError
from cosilo.protocol.message import KINDS, Message
from cosilo.protocol.task import Task
from cosilo.silo.target import aims
from cosilo.text import listing

if TYPE_CHECKING:
    from cosilo.coordination.coordinator import Silos
    from cosilo.coordination.institution import Institution
    from cosilo.silo.silo import Silo


@dataclass(frozen=True)
class Step:
    """One thing a silo can be asked to do, and the kind of every field that leaves it for that."""

    name: str
    shares: Mapping[str, str]
    run: Callable[..., Message | None]


F = TypeVar("F", bound=Callable[..., Any])


def step(**shares: str) -> Callable[[F], F]:
    """Make a method's function a step; each keyword names a field of the reply and its kind.

    A step gets the silo and the fields of the coordinator's message as keywords, and returns the reply's
    fields: exactly those it declares.
    """
    for field, kind in shares.items():
        if kind not in KINDS:
            raise ConfigError(f"field {field!r} is declared as {kind!r}; wants one of {', '.join(KINDS)}")

    def mark(function: F) -> F:
        function.__shares__ = shares  # type: ignore[attr-defined]
        return function

    return mark


class Method(BaseModel):
    """A federated method: its fields are its parameters, frozen and checked.

    A subclass sets `name` and writes `coordinate` and its steps; see `cosilo.methods.local` for the smallest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: What the method is called in recipes and reports.
    name: ClassVar[str]
    #: Whether the silos have to hold a pool.
    needs_pool: ClassVar[bool] = False
    #: Whether that pool has to come with labels.
    needs_pool_labels: ClassVar[bool] = False
    #: Whether the silos' learners have to be networks, whose weights can be shared.
    needs_network: ClassVar[bool] = False
    #: Whether silos with members can take part (see `relay`).
    knows_institutions: ClassVar[bool] = False

    @abstractmethod
    def coordinate(self, silos: "Silos") -> None:
        """What the coordinator does: ask silos for steps, compute on the replies, ask again."""

    @classmethod
    def steps(cls) -> dict[str, Step]:
        """The steps this method can ask for, by name."""
        found = {}
        for name in dir(cls):
            function = getattr(cls, name, None)
            if callable(function) and hasattr(function, "__shares__"):
                found[name] = Step(name, function.__shares__, function)
        return found

    def needs(self) -> dict[str, str]:
        """The kinds a silo has to share to take part, each with the step and field that needs it.

        `evaluate` is not among them: a silo may keep its scores to itself.
        """
        return {
            kind: f"step {step.name!r}, field {field!r}"
            for step in self.steps().values()
            if step.name not in ("hello", "wants", "evaluate") and self.uses(step.name)
            for field, kind in step.shares.items()
        }

    def uses(self, step: str) -> bool:
        """Whether this method, with these parameters, asks for that step at all."""
        return True

    def prepare(self, silo: "Silo") -> None:
        """Run at the silo before anything is computed: raise if it cannot take part."""
        if self.needs_network and not silo.learner.has_weights:
            from cosilo.methods import METHODS

            others = [name for name, method in METHODS.items() if not method.needs_network]
            lack = "has no weights to share" if "weights" in self.needs() else "is no torch network"
            raise LearnerError(
                f"silo {silo.name!r}: {silo.learner.name} {lack}, which {self.name} needs; "
                f"it can join {listing(others)}"
            )
        if self.needs_pool_labels and silo.pool is not None and silo.pool_labels is None:
            raise DataError(
                f"silo {silo.name!r}: its pool has no labels, which {self.name} needs; "
                "set labelled = true for it, in Python pool_labels=…"
            )

    def relay(self, institution: "Institution", step: str, message: Message) -> Message:
        """What an institution does when it is asked for a step: here, one without a reply is for all members.

        `hello` and `evaluate` are answered by the institution itself.
        """
        if self.steps()[step].shares:
            raise ConfigError(f"{self.name} does not say what an institution replies to step {step!r}")
        institution.members.ask(step, message)
        return {}

    def check(self, tasks: Mapping[str, Task]) -> None:
        """Run at the coordinator before anything is computed: raise if these tasks do not go together."""

    def check_targets(
        self, training: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
    ) -> None:
        """The same with what each silo trains on, and what it wants: none if it has no target.

        `cosilo.silo.target.untaught` names the target classes that no other silo trains on.
        """

    @step(classes="task", pool="task", offers="task")
    def hello(self, silo: "Silo") -> Message:
        """Say who is here: the task, the pool's fingerprint, what the silo can and will share."""
        self.prepare(silo)
        offers = silo.shares if silo.data.has_test else silo.shares - {"metrics"}
        if silo.data.target is not None:
            known = silo.data.target.truth is not None and "metrics" in silo.shares
            offers = offers | {"target", *(["labelling"] if known else [])}
        return {
            "classes": list(silo.task.classes),
            "pool": silo.pool_fingerprint or "",
            "offers": sorted(offers),
        }

    @step(training="task", wanted="task")
    def wants(self, silo: "Silo") -> Message:
        """Asked after `hello` of silos with a target: which classes they train on, and which they want."""
        training, wanted = aims(silo)
        return {"training": training, "wanted": wanted}

    @step(accuracy="metrics", instances="metrics")
    def evaluate(self, silo: "Silo", stage: str) -> Message:
        """Share the silo's score after `stage`; the score itself was taken, privately, when it trained."""
        if stage not in silo.scores:
            raise DataError(f"silo {silo.name!r}: took no score after {stage!r}")
        accuracy, instances = silo.scores[stage]
        return {"accuracy": accuracy, "instances": instances}
