"""What a method is: parameters, a `coordinate` function, and the steps it asks silos to do."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from cosilo.coordination.coordinator import Silos
from cosilo.coordination.institution import Institution
from cosilo.errors import ConfigError, CosiloError, DataError, LearnerError
from cosilo.methods.descriptions import with_inherited_parameters
from cosilo.methods.effort import Effort
from cosilo.parameters import Parameters
from cosilo.protocol.forms import Names, Text
from cosilo.protocol.message import Fields, Message, Shared
from cosilo.protocol.metrics import METRIC_KINDS
from cosilo.protocol.participant import Participant, refusals
from cosilo.protocol.scores import declared_fields, scores_out
from cosilo.protocol.stage import FEDERATED, Stage
from cosilo.protocol.step import EVALUATE, HELLO, WANTS, Declaration, Step, first, step
from cosilo.protocol.task import Task
from cosilo.silo.silo import Silo
from cosilo.silo.target_labels import aims
from cosilo.version import __version__


class Method(Parameters):
    """A federated method: its fields are its parameters, frozen and checked.

    A subclass sets `name` and writes `coordinate` and its steps; CONTRIBUTING.md has all about that.

    Examples
    --------
    >>> from cosilo import LOCAL
    >>> class Alone(Method):
    ...     name: ClassVar[str] = "alone"
    ...
    ...     def coordinate(self, silos: Silos) -> None:
    ...         silos.evaluate(LOCAL, to=silos.ask("train"))
    ...
    ...     @step()
    ...     def train(self, silo: Silo) -> None:
    ...         silo.fit(LOCAL)
    >>> sorted(Alone().steps())
    ['evaluate', 'hello', 'train', 'wants']
    """

    #: What the method is called in recipes and reports.
    name: ClassVar[str]
    #: Whether the silos have to hold a pool.
    needs_pool: ClassVar[bool] = False
    #: Whether that pool has to come with labels.
    needs_pool_labels: ClassVar[bool] = False
    #: Whether the silos' learners have to be networks, whose weights can be shared.
    needs_network: ClassVar[bool] = False

    #: By parameter, the most that a silo allows, or the texts, unless its own file says more: beyond it, more
    #: can be learnt about its data.
    cautious: ClassVar[Mapping[str, float | list[str]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **options: object) -> None:
        if cls.__doc__ and cls.__base__:
            cls.__doc__ = with_inherited_parameters(cls.__doc__, cls.__base__.__doc__ or "")

    @abstractmethod
    def coordinate(self, silos: Silos) -> None:
        """What the coordinator does: ask silos for steps, compute on the replies, ask again."""

    def steps(self) -> dict[str, Step]:
        """The steps this method can ask for, by name."""
        found = {}
        for name in dir(type(self)):
            function = getattr(type(self), name, None)
            declared = getattr(function, "__step__", None)
            if isinstance(declared, Declaration):
                found[name] = Step(name, declared, getattr(self, name), partial(self.relay, name))
        return found

    def needs(self) -> dict[str, str]:
        """The kinds a silo has to share to take part, each with the step and field that needs it."""
        return {
            field.kind: f"step {step.name!r}, field {name!r}"
            for step in self.steps().values()
            if not step.declared.voluntary and self.uses(step.name)
            for name, field in step.fields.items()
            if field.kind != "task"
        }

    def uses(self, step: str) -> bool:
        """Whether this method, with these parameters, asks for that step at all."""
        return True

    def most_asks(self, step: str) -> int:
        """How often it may ask a silo for a step in a run: once a round, where it has rounds, or once.

        Scores are asked for before the first round and after the last one too.
        """
        rounds = int(getattr(self, "rounds", 1))
        return {HELLO: 1, WANTS: 1, EVALUATE: rounds + 3}.get(step, rounds)

    def parameters(self) -> dict[str, object]:
        """Its parameters, by name."""
        return self.model_dump(mode="json")

    def told_silos(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Of the parameters that are set, what silos have to know; the others are the coordinator's alone."""
        return dict(parameters)

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """What it does, as far as compared methods should be equal in it; nothing is known here.

        `pool` is how many instances the pool has.
        """
        return Effort()

    def admit(self, participant: Participant) -> None:
        """Raise if it cannot take part, whatever it shares."""
        if isinstance(participant, Silo):
            self.prepare(participant)
        elif isinstance(participant, Institution):
            self._prepare_institution(participant)

    def prepare(self, silo: Silo) -> None:
        """Run at each silo before anything is computed: raise if it cannot take part."""
        if self.needs_network and not silo.learner.has_weights:
            lack = "has no weights to share" if "weights" in self.needs() else "is no torch network"
            raise LearnerError(
                f"silo {silo.name!r}: {silo.learner.name} {lack}, which {self.name} needs; "
                "`cosilo methods` shows which methods take any learner"
            )
        if self.needs_pool_labels and silo.pool is not None and silo.pool_labels is None:
            raise DataError(
                f"silo {silo.name!r}: its pool has no labels, which {self.name} needs; "
                "set labelled = true for it, in Python pool_labels=…"
            )

    def _prepare_institution(self, institution: Institution) -> None:
        for one in self.unmerged():
            raise ConfigError(
                f"silo {institution.name!r}: is an institution with members, and {self.name} does not say "
                f"how their {one} become one; `cosilo methods` shows which methods take institutions"
            )

    def unmerged(self) -> list[str]:
        """The fields that keep institutions out: nothing says how those of their members become one.

        Those of voluntary steps, which a method can do without, come last.
        """
        return [
            f"{name!r} (step {step.name!r})"
            for step in sorted(self.steps().values(), key=lambda step: step.declared.voluntary)
            if step.name not in (HELLO, WANTS, EVALUATE) and self.uses(step.name)
            for name, field in step.fields.items()
            if field.merge is None
        ]

    def problems(self, participant: Participant) -> list[str]:
        """What keeps it from taking part, one line each, for its owner; nothing is computed."""
        found = refusals(participant, self.name, self.needs())
        try:
            self.admit(participant)
        except CosiloError as error:
            if isinstance(participant, Institution):
                return [str(error)]  # no other policy would help
            found.append(str(error))
        if isinstance(participant, Institution):
            where = f"silo {participant.name!r}"
            found += [f"{where}: {line}" for member in participant.silos for line in self.problems(member)]
        return found

    def relay(self, step: str, institution: Institution, message: Message) -> Message:
        """What an institution does when it is asked for a step: ask its members, and merge what they reply.

        `hello` and `evaluate` are answered by the institution itself.
        """
        members, fields = institution.members, self.steps()[step].fields
        if fields and all(field.merge is first for field in fields.values()):
            one = members.names[0]  # nobody else need do it
            return members.ask(step, message, to=[one], quorum=1.0)[one]
        replies = members.ask(step, message)
        return {
            name: field.merge([reply[name] for reply in replies.values()])
            for name, field in fields.items()
            if field.merge is not None
        }

    def check(self, tasks: Mapping[str, Task]) -> None:
        """Run at the coordinator before anything is computed: raise if these tasks do not fit together."""

    def check_targets(
        self, training: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]
    ) -> None:
        """The same with what each silo trains on, and what it wants: none if it has no target.

        `cosilo.silo.target.untaught` names the target classes that no other silo trains on.
        """

    # ------------------------------------------------------------------ when a run is over

    def welcome(self, silos: Silos, name: str, said: Callable[[str], Mapping[str, Fields]]) -> None:
        """Let one more silo gain from a run that is over, while nobody else does anything.

        `said(step)` is what each of the others last replied to a step.
        """
        raise ConfigError(f"{self.name}: nobody can join when a run is over; cofed keeps votes for that")

    def train_on(self, silo: Silo) -> None:
        """Train on at a silo that has more data, with what it got from the others."""
        if silo.network.is_wide:
            silo.network.train()
            silo.take_score(FEDERATED)
        else:
            silo.fit(FEDERATED, update=True, warm=silo.learner.warm_starts_by_default)

    # ------------------------------------------------------------------ the contract's own steps

    @step(
        timed=False,
        needs_model=False,
        classes=Shared("task", "names of the silo's classes", form=Names(least=2)),
        pool=Shared("task", "fingerprint of its pool", form=Text()),
        offers=Shared("task", "what it is willing to share", form=Names()),
        version=Shared("task", "its version of cosilo", form=Text(), optional=True),
    )
    def hello(self, silo: Silo) -> Message:
        """Say who is here: the task, the pool's fingerprint, what the silo can and will share."""
        self.prepare(silo)
        offers = silo.shares if silo.has_test else silo.shares - {"metrics", *METRIC_KINDS}
        if silo.has_target:
            known = silo.knows_truth and "metrics" in silo.shares
            offers = offers | {"target", *(["labelling"] if known else [])}
        return {
            "classes": list(silo.task.classes),
            "pool": silo.pool_fingerprint or "",
            "offers": sorted(offers),
            "version": __version__,
        }

    @step(
        timed=False,
        needs_model=False,
        training=Shared("task", "names of the classes that it has training data of", form=Names()),
        wanted=Shared("task", "names of the classes of its target", form=Names()),
    )
    def wants(self, silo: Silo) -> Message:
        """Asked after `hello` of silos with a target: which classes they train on, and which they want."""
        training, wanted = aims(silo)
        return {"training": training, "wanted": wanted}

    @step(timed=False, needs_model=False, voluntary=True, after=None, longest=None, **declared_fields())
    def evaluate(self, silo: Silo, stage: str) -> Message:
        """Share the silo's scores after a stage; they were taken, privately, when it trained."""
        scores = silo.scores.get(Stage.parse(stage))
        if not scores:
            raise DataError(f"silo {silo.name!r}: took no score after {stage!r}")
        return scores_out(scores, silo.shares, exact=silo.exact_scores)
