"""An institution: a silo with members, which is itself their coordinator."""

from collections.abc import Iterable
from copy import copy
from pathlib import Path
from typing import Any

from cosilo.coordination.asking import SilosDoNotFit, TooFew
from cosilo.coordination.coordinator import Silos
from cosilo.errors import ConfigError, DataError, MembersError, RunError
from cosilo.protocol.carrier import Carrier
from cosilo.protocol.contract import Contract
from cosilo.protocol.message import Fields, Message
from cosilo.protocol.metrics import METRIC_KINDS
from cosilo.protocol.participant import Participant, Procedure, check_names_differ, check_quorum
from cosilo.protocol.scores import overall_score, scores_out
from cosilo.protocol.stage import Measure, Stage
from cosilo.protocol.step import EVALUATE, HELLO, Step
from cosilo.protocol.task import vocabulary
from cosilo.runs.durable_files import read_json, read_lines, write_json
from cosilo.runs.events import EventLog
from cosilo.runs.journal import Journal
from cosilo.runs.silo_record import SiloRecord
from cosilo.silo.silo import Silo
from cosilo.text import guess
from cosilo.version import __version__


class Institution(Participant):
    """A silo with members: it has no data and no learner, and does a step by asking them.

    What a member shows the institution is the member's policy; what the institution shows the coordinator is
    its own.

    Parameters
    ----------
    name : str
        What it is called everywhere: letters, digits, '.', '_' and '-'.
    members : iterable of Silo
        The silos whose coordinator it is.
    shares : iterable of str, default ("labels", "metrics")
        The policy: the kinds of fields that may leave it.
    quorum : float, default 0.5
        The fraction of the members asked that has to answer a step.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> wards = [Silo(name, np.eye(8), list("abababab"), DecisionTreeClassifier()) for name in ("one", "two")]
    >>> Institution("hospital", wards, shares=["metrics"])
    <Institution 'hospital': 2 members, 16 instances, task a, b>
    """

    def __init__(
        self,
        name: str,
        members: Iterable[Silo],
        *,
        shares: Iterable[str] = ("labels", "metrics"),
        quorum: float = 0.5,
    ) -> None:
        super().__init__(name, shares)
        #: The members as its owner knows them; a method sees `members`.
        self.silos = list(members)
        if not self.silos:
            raise ConfigError(f"{self._where}: an institution needs members; got none")
        for member in self.silos:
            if not isinstance(member, Silo):
                kind = type(member).__name__
                raise ConfigError(f"{self._where}: a member is of type {kind}; wants silos")
        check_names_differ(self.silos, "members", f"{self._where}: ")
        check_quorum(quorum, f"{self._where}: ")
        self.quorum = quorum
        self.task = vocabulary(silo.task for silo in self.silos)
        self._record: SiloRecord | None = None
        self._carrier: Carrier | None = None
        self._members: Silos | None = None
        self._met = False

    def __repr__(self) -> str:
        classes, count = ", ".join(self.task.classes), len(self.silos)
        return f"<Institution {self.name!r}: {count} members, {self.size} instances, task {classes}>"

    # ------------------------------------------------------------------ set-up

    def fresh(self) -> "Institution":
        """The same institution for another run."""
        other = copy(self)
        other.silos = [silo.fresh() for silo in self.silos]
        other._record = other._carrier = other._members = None
        other.forget()
        return other

    @property
    def counts(self) -> tuple[int, int]:
        """How many instances of its members a run trains on, and how many it tests by."""
        training, test = zip(*(silo.counts for silo in self.silos), strict=True)
        return sum(training), sum(test)

    @property
    def size(self) -> int:
        """The number of its members' training instances."""
        return sum(silo.size for silo in self.silos)

    def identity(self) -> dict[str, Any]:
        """Who its members are, and how many have to answer; what they are is in their own records."""
        return {
            "members": [silo.name for silo in self.silos],
            "quorum": self.quorum,
            "shares": sorted(self.shares),
        }

    def preload(self) -> None:
        """What the members' learners need."""
        for silo in self.silos:
            silo.preload()

    # ------------------------------------------------------------------ a run

    def lead(self, procedure: Procedure, contract: Contract, record: SiloRecord, carrier: Carrier) -> None:
        """Become the coordinator of the members, with a journal and their records in its own folder."""
        folder = record.folder
        self._record, self._met = record, False
        self._journal = Journal(folder / "journal")
        self._carrier, self._procedure = carrier, procedure
        self._events = EventLog(folder / "events.jsonl")
        self._members = Silos(
            [silo.name for silo in self.silos],
            procedure,
            carrier,
            self._journal,
            [self._events],
            seed=self.seed,
            quorum=self.quorum,
            within=self.name,
            contract=contract,
        )
        carrier.open(procedure, contract, folder / "members")

    def close(self) -> None:
        """Close the members."""
        if self._carrier is not None:
            self._carrier.close()
            self._events.close()
        self._carrier = self._members = None

    @property
    def members(self) -> Silos:
        """The members, as a method sees them: something to ask."""
        if self._members is None:
            raise ConfigError(f"{self._where}: its members can be asked in a run only")
        return self._members

    def perform(self, step: Step, message: Message, number: int) -> Message:
        """Do a step by asking the members; which of them failed is for the owner only, and does not leave."""
        try:
            self._start(number)
            if step.name == HELLO:
                return self._hello()
            if step.name == EVALUATE:
                return self._evaluate(Stage.parse(Fields(message).text("stage")))
            return step.relay(self, message)
        except SilosDoNotFit as error:
            raise MembersError(f"{self._where}: not all of its members can take part") from error
        except TooFew as error:
            text = f"too few of its members could do step {step.name!r}"
            raise MembersError(f"{self._where}: {text}") from error
        finally:
            self._tell_owner(number, step.name)

    def _start(self, number: int) -> None:
        """Be where the members' asks of this step begin.

        Replies that members gave to this step, before a crash, are in the journal and will not be asked for
        again. Those to other steps are dropped, whether these were completed or given up: a member is never
        asked twice by one number. `step.json` has the coordinator's ask and the last of ours before it.
        """
        assert self._record is not None
        self._procedure.admit(self)
        self._journal.about = {"within": number}
        if not self._met:
            self.members.meet()
            self._met = True
        path = self._record.folder / "step.json"
        ask, after = (0, 0) if number == 1 and not path.exists() else _read_step(path)
        if ask != number:
            after = max(after, self._journal.last_number)
            write_json(path, {"ask": number, "after": after})
        self.members.go_on_from(after)

    def _tell_owner(self, number: int, step: str) -> None:
        """Put the members' failures into the institution's own log."""
        failures = self.members.findings["failures"]
        for failure in failures:
            assert self._record is not None
            self._record.log(f"ask {number} ({step}): {failure['text']}")
        failures.clear()

    def _hello(self) -> Message:
        """Introduce the institution: the classes of all members, and nothing about who has which."""
        # What members measure beside accuracies is of different tasks, and is not merged.
        offers = self.shares - METRIC_KINDS.keys()
        if not self.members.offering("metrics"):
            offers -= {"metrics"}
        classes = list(self.members.vocabulary.classes)
        return {"classes": classes, "pool": "", "offers": sorted(offers), "version": __version__}

    def _evaluate(self, stage: Stage) -> Message:
        """The accuracy on the test data of all members that share theirs."""
        each = self.members.collect_scores(stage).values()
        found = {
            measure: overall_score(scores[measure] for scores in each if measure in scores)
            for measure in Measure
            if any(measure in scores for scores in each)
        }
        if not found:
            raise DataError(f"{self._where}: no member has a score after {str(stage)!r}")
        return scores_out(found, exact=self.exact_scores)

    # ------------------------------------------------------------------ for its owner

    def keep_record(self, record: SiloRecord) -> None:
        """Remember where the record of a finished run is."""
        self._record = record

    def member(self, name: str) -> Silo:
        """A member with its trained model, from its record."""
        there = {silo.name: silo for silo in self.silos}
        if name not in there:
            raise ConfigError(f"{self._where}: there is no member {name!r}{guess(name, list(there))}")
        silo = there[name]
        if self._record is not None:
            SiloRecord(self._record.folder / "members" / name).restore(silo)
        return silo

    def failures(self) -> list[dict[str, Any]]:
        """Which members failed in which of its asks, and why; `within` is the ask of the coordinator."""
        if self._record is None:
            return []
        return [
            {"within": ask["within"], "ask": ask["number"], "step": ask["step"], "silo": name, **failure}
            for ask in read_lines(self._record.folder / "asks.jsonl")
            for name, failure in ask["failures"].items()
        ]


def _read_step(path: Path) -> tuple[int, int]:
    """Read the coordinator's ask that is being done, and the last ask of the institution before it.

    Earlier versions wrote both in a list, without a checksum.
    """
    known = read_json(path)
    numbers = [known.get("ask"), known.get("after")] if isinstance(known, dict) else known
    if not (isinstance(numbers, list) and len(numbers) == 2 and all(type(n) is int for n in numbers)):
        raise RunError(f"{path}: is damaged; restore it or start a new run")
    return numbers[0], numbers[1]
