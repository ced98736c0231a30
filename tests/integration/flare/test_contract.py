"""A coordinator that turns a run into another one: what a silo was asked for first is what holds.

Every attack here is that of a coordinator, on processes of FLARE where it can be: by editing the
files that it keeps of a run, or by asking for what unmodified software would not ask for. Tests look
at what left the silo.
"""

import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from boundaries import asked, opened
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Privacy, Run, Silo
from cosilo.coordination.boundary import Boundary
from cosilo.errors import BadMessage, ConfigError, DataError, LearnerError, MembersError, RunError
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Ask, Failure
from cosilo.protocol.forms import named_blocks
from cosilo.protocol.message import Message
from cosilo.protocol.wire import decode, encode
from cosilo.runs import approval
from cosilo.runs.audit import _chained, outgoing
from cosilo.runs.durable_files import as_line, read_json, read_lines, write_json
from cosilo.runs.run import RunDirectory
from cosilo.runs.run_folders import runs_in

pytest.importorskip("nvflare")
from cosilo.engines.flare import processes
from cosilo.engines.flare.runs import resume
from cosilo.engines.flare.session import session

#: A silo that limits nothing beyond what limits are without a word from it.
DEFAULTS = "[allow]\n"
#: The pool instances of the digits, and the classes of silo `net`.
POOL_SIZE, CLASSES = 300, 4
#: How many silos have each class, as a forged update says.
TOTAL = 5


def forged_update(
    labels: Mapping[int, int], stage: str = "federated", pool_size: int = POOL_SIZE, classes: int = CLASSES
) -> Message:
    """An update message that makes a silo train on these labels: codes of its task, by pool instance.

    The only place here that knows what the message is made of.
    """
    counts = np.zeros((pool_size, classes), np.uint16)
    for place, label in labels.items():
        counts[place, label] = TOTAL
    return {
        "stage": stage,
        "counts": named_blocks([counts]),
        "other": np.zeros(pool_size, np.float32),
        "total": np.full(classes, TOTAL, np.uint16),
        "counted": np.ones(classes, np.uint8),
        "own": 0,
        "unit": 1.0,
    }


def names_other_contract(line: str, silo: str, run: str, field: str, was: object, now: object) -> bool:
    """Whether a line says that a silo knows this run by another contract, and what differs."""
    differs = rf"(.*[; .])?{field} was '?{was}'?, now '?{now}'?\b.*"
    pattern = rf"silo '{silo}': run '{re.escape(run)}' was begun under another contract \({differs}\); submit"
    return re.match(pattern, line) is not None


def sent(record: Path, *steps: str) -> Counter[str]:
    """How often a silo replied to steps, by its own audit log; a reply that left again is not counted."""
    found = [line for line in outgoing(record / "audit.jsonl") if not {"failure", "again"} & line.keys()]
    return Counter(line["step"] for line in found if line["step"] in steps)


def edit(run: Run, *, seed: int | None = None, **parameters: object) -> None:
    """Let a run go on as another one, in the files that its coordinator keeps."""
    known, about = read_json(run.folder / "federation.json"), read_json(run.folder / "run.json")
    for settings in (known["federation"], about):
        settings["method"] |= parameters
        if seed is not None:
            settings["seed"] = seed
    write_json(run.folder / "federation.json", known)
    about = {**about, "status": "stopped"}
    del about["contract"]  # else the coordinator itself would notice
    write_json(run.folder / "run.json", about)
    (run.folder / "result.json").unlink(missing_ok=True)


class Following:
    """Runs that are followed in a thread of their own, as somebody at the coordinator would."""

    def __init__(self, deployment, until, cosilo, pool):
        self.deployment, self.until, self.cosilo, self._pool = deployment, until, cosilo, pool
        self.before = {run.folder for run in runs_in(deployment.folder / "runs")}

    def submit(self, *case, **values) -> Future[Run]:
        return self._pool.submit(self.deployment.submit, *case, **values)

    def resume(self, folder: Path) -> Future[Run]:
        return self._pool.submit(resume, folder, lambda line: None)

    @property
    def run(self) -> RunDirectory | None:
        """The run that began since."""
        return next(
            (run for run in runs_in(self.deployment.folder / "runs") if run.folder not in self.before), None
        )

    def waiting(self, name: str) -> list[str]:
        """The runs that wait for the administrator of a silo."""
        return re.findall("waits: (.*)", self.cosilo("approve", self.deployment.kits[name])[1])

    def answer(self, name: str, how: str) -> None:
        """Answer for the administrator of a silo whatever waits there."""
        for run in self.waiting(name):
            assert self.cosilo("approve", self.deployment.kits[name], run, how)[0] == 0

    def stop_job(self, *names: str) -> None:
        """End the run's job, and wait until nobody is at work on it."""
        with session(self.deployment.coordinator) as flare:
            flare.stop(flare.jobs()[self.run.folder.name])
        kits = [self.deployment.kits[name] for name in names]
        self.until(lambda: all(len(processes.running(kit)) == 1 for kit in kits))


@pytest.fixture
def following(deployment, until, cosilo):
    for path in (*deployment.folder.glob("computed-*"), *deployment.folder.glob("hold-*")):
        path.unlink()
    with ThreadPoolExecutor(1) as pool:
        one = Following(deployment, until, cosilo, pool)
        yield one
        for path in deployment.folder.glob("hold-*"):
            path.unlink()
        for name in ("tree", "svm", "net"):
            one.answer(name, "--refuse")


# ---------------------------------------------------------------------- 1. a second job under a known name


def test_a_finished_run_that_goes_on_with_more_rounds_is_refused(following):
    """By unmodified software: its files are edited. One of the silos has approved one round."""
    deployment = following.deployment
    deployment.write_cofed({"tree": DEFAULTS, "svm": f'{DEFAULTS}approve = "ask"\n'})
    submitted = following.submit(("tree", "svm"), "cofed")
    following.until(lambda: following.waiting("svm"))
    following.answer("svm", "--yes")
    run = submitted.result()
    records = {name: deployment.record(run, name) for name in ("tree", "svm")}
    honest = {name: sent(record, "label", "update") for name, record in records.items()}
    assert honest == {name: {"label": 1, "update": 1} for name in records}

    edit(run, rounds=3)
    resumed = following.resume(run.folder)
    following.until(lambda: resumed.done() or following.waiting("svm"), 120)
    waited = following.waiting("svm")
    following.answer("svm", "--refuse")
    error = resumed.exception()
    assert {name: sent(record, "label", "update") for name, record in records.items()} == honest
    assert not waited
    lines = str(error).splitlines()
    for name in records:
        assert any(names_other_contract(line, name, run.folder.name, "rounds", 1, 3) for line in lines), lines
    assert RunDirectory(run.folder).status != "finished"


@dataclass
class Begun:
    """A run that silo `net` has begun: it has trained and voted."""

    deployment: Any
    name: str
    votes: NDArray[Any]
    copy: Path

    @property
    def record(self) -> Path:
        return self.deployment.folder / "silos" / "net" / self.name

    def next_job(self, settings: Any, *steps: tuple[str, Message], first: int = 4) -> list[Any]:
        """What another job under the same name is answered; the record is that of the first job before."""
        shutil.rmtree(self.record)
        shutil.copytree(self.copy, self.record)
        asks = [Ask(number, step, encode(body)) for number, (step, body) in enumerate(steps, start=first)]
        return self.deployment.forge(settings, self.name, asks).answers()


SHARES = 'shares = ["labels", "metrics", "weights", "size"]\n'
ONLY_COFED = '[allow]\nmethods = ["cofed"]\n'


@pytest.fixture(scope="module")
def begun(deployment, tmp_path_factory):
    """Silo `net` allows CoFED, as far as its defaults go."""
    write_net(deployment)
    steps: list[tuple[str, Message]] = [("hello", {}), ("train", {}), ("label", {})]
    asks = [Ask(number, step, encode(body)) for number, (step, body) in enumerate(steps, start=1)]
    name = "begun-1"
    hello, trained, voted = deployment.forge(deployment.federation(("net",), "cofed"), name, asks).answers()
    assert (hello["classes"], trained) == (["d1", "d3", "d5", "d6"], {})
    copy = tmp_path_factory.mktemp("begun") / name
    shutil.copytree(deployment.folder / "silos" / "net" / name, copy)
    return Begun(deployment, name, voted["votes"], copy)


def write_net(deployment) -> None:
    deployment.write_cofed({"net": SHARES + ONLY_COFED})


@pytest.mark.slow
def test_the_same_contract_goes_on_in_another_job(begun):
    """Without this, a silo that refuses everything would pass the tests below."""
    write_net(begun.deployment)
    settings = begun.deployment.federation(("net",), "cofed")
    (scores,) = begun.next_job(settings, ("evaluate", {"stage": "local"}))
    assert scores.keys() == {"accuracy", "instances"}


VOCABULARY: Message = {"vocabulary": ["d1", "d3", "d5", "d6"]}
#: The method and the settings of a second job, what it asks, and the field that differs with both values.
SECOND_JOBS = {
    "weights leave by another method": (
        ("fedavg", {}),
        [("begin", VOCABULARY), ("initial", {})],
        ("method", "cofed", "fedavg"),
    ),
    "more rounds": (("cofed", {"_rounds": 3}), [("label", {})], ("rounds", 1, 3)),
    "a parameter within the limits": (
        ("cofed", {"_alpha": 0.4}),
        [("evaluate", {"stage": "local"})],
        ("alpha", 0.3, 0.4),
    ),
    "another seed": (("cofed", {"seed": 6}), [("evaluate", {"stage": "local"})], ("seed", 0, 6)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", SECOND_JOBS)
def test_another_job_under_a_known_name_is_refused(begun, case):
    (use, values), steps, (field, was, now) = SECOND_JOBS[case]
    write_net(begun.deployment)
    settings = begun.deployment.federation(("net",), use, **values)
    *_, answer = begun.next_job(settings, *steps)
    assert isinstance(answer, str), f"this left: {sorted(answer)}"
    assert names_other_contract(answer, "net", begun.name, field, was, now), answer
    asked_for = [step for step, _ in steps]
    assert sent(begun.record, "hello", *asked_for) == sent(begun.copy, "hello", *asked_for)


@pytest.mark.slow
def test_a_run_beyond_the_limits_fails_at_once_and_nobody_is_asked(following):
    """It neither skips approval nor waits for one."""
    following.deployment.write_cofed({"tree": f'{DEFAULTS}approve = "ask"\n'})
    submitted = following.submit(("tree", "svm"), "cofed", _rounds=3, quorum=1.0)
    following.until(lambda: submitted.done() or following.waiting("tree"))
    assert not following.waiting("tree")
    line = (
        "silo 'tree': does not allow rounds = 3; it allows at most 1: "
        "its own file says more in [allow] parameters = { rounds = … }"
    )
    assert line in str(submitted.exception()).splitlines()
    assert sent(following.deployment.record(following.run, "tree"), "hello", "train", "label") == {}


# ---------------------------------------------------------------------- 2. one update for each contract


@pytest.mark.slow
def test_the_first_update_binds_whatever_was_wrong_with_it(begun):
    """Labels that contradict its votes are refused; those that go with them come too late then."""
    write_net(begun.deployment)
    contrary = {place: (int(vote) + 1) % CLASSES for place, vote in enumerate(begun.votes)}
    honest = {place: int(vote) for place, vote in enumerate(begun.votes)}
    settings = begun.deployment.federation(("net",), "cofed")
    updates = [("update", forged_update(labels)) for labels in (contrary, honest, contrary)]
    first, other, again = begun.next_job(settings, *updates)
    assert isinstance(first, str)
    assert isinstance(other, str), "labels were tried again until some were taken"
    assert isinstance(again, str)
    assert sent(begun.record, "update") == {}


X, Y = load_digits(return_X_y=True)
SOME = np.flatnonzero(np.isin(Y, [3, 8]))
RECORDS, POOL = SOME[:200], X[SOME[200:]]


class Parity(DecisionTreeClassifier):
    """A model that has learnt what no private voter can: on an odd sum of pixels it is the second class."""

    def predict(self, X):
        return self.classes_[X.sum(axis=1).astype(int) % 2]


class Clinic:
    """A silo that limits its coordinator, and one that asks whatever a test wants."""

    def __init__(self, folder: Path, learner: Any, privacy: Privacy | None = None):
        self.silo = Silo("clinic", X[RECORDS], Y[RECORDS], learner, pool=POOL, privacy=privacy)
        self.silo.allow = Allow()
        self.border = opened(self.silo, CoFED(), folder)

    def ask(self, number: int, step: str, message: Message | None = None) -> bytes | Failure:
        return asked(self.border, number, step, encode(message or {})).content

    def vote(self) -> NDArray[Any]:
        """Go as far as its votes."""
        for number, step in enumerate(("hello", "train", "label"), start=1):
            reply = self.ask(number, step)
        assert isinstance(reply, bytes), reply
        return np.asarray(decode(reply)["votes"])


def private_clinic(folder: Path, ledger: Path) -> Clinic:
    return Clinic(folder, Parity(random_state=0), Privacy(epsilon=1, ledger=ledger))


def update_of(labels: Mapping[int, int], stage: str = "federated") -> Message:
    return forged_update(labels, stage, pool_size=len(POOL), classes=2)


REQUESTS = 60


class Reader:
    """Reads the classes of a model by updates that differ in one label, and by nothing but what comes back.

    With two classes a set of labels is refused when fewer than 55 % of them are right; by one label more or
    less of a set of 20 that is at this border it shows whether that label is right.
    """

    def __init__(self, answer: Callable[[dict[int, int]], str], votes: NDArray[Any]):
        self._answer, self._votes = answer, votes
        self.said: list[str] = []
        self.read: dict[int, int] = {}

    def taken(self, labels: dict[int, int]) -> bool:
        self.said.append(self._answer(labels))
        return "do not go with" not in self.said[-1]

    def attack(self) -> None:
        labels = {place: int(self._votes[place]) for place in range(20)}
        if not self.taken(labels):
            labels = {place: 1 - label for place, label in labels.items()}
        sure = None
        for place in list(labels):
            flipped = {**labels, place: 1 - labels[place]}
            if not self.taken(flipped):
                sure = place  # its label was right, and no other right one may go
                break
            labels = flipped
        for place in range(20, len(self._votes)):
            if len(self.said) == REQUESTS or sure is None:
                return
            tried = {**{one: label for one, label in labels.items() if one != sure}, place: 0}
            self.read[place] = 0 if self.taken(tried) else 1


def answer_of(content: bytes | Failure) -> str:
    """What comes back, without numbers."""
    if isinstance(content, bytes):
        return "a reply"
    return f"{content.kind}: {re.sub(r'[0-9]+', 'N', content.text)}"


def test_refused_updates_say_nothing_of_the_model_that_does_not_vote(tmp_path):
    """60 requests that all fail, and whose failures differ by nothing but that model."""
    clinic = private_clinic(tmp_path / "run", tmp_path / "ledger")
    votes = clinic.vote()
    own = clinic.silo.learner.predict(POOL)
    numbers = iter(range(4, 1000))

    def answer(labels: dict[int, int]) -> str:
        return answer_of(clinic.ask(next(numbers), "update", update_of(labels, stage="nonsense")))

    reader = Reader(answer, votes)
    reader.attack()
    told = Counter(reader.said[1:])
    right = sum(own[place] == code for place, code in reader.read.items())
    voted = sum(own[place] == votes[place] for place in reader.read)
    figures = (
        f"{len(told)} different answers to {len(reader.said)} requests gave {right} of {len(reader.read)} "
        f"classes of the model that does not vote ({voted} by the votes that left): {dict(told)}"
    )
    assert len(told) == 1, figures


@pytest.mark.slow
def test_the_first_update_is_held_against_the_votes_that_left(tmp_path):
    """In runs of their own: labels that go with the votes are taken, whatever the other model thinks."""
    clinic = private_clinic(tmp_path / "runs" / "first", tmp_path / "ledger")
    votes = clinic.vote()
    same = clinic.silo.learner.predict(POOL) == votes
    clinic.border.close()
    answers: dict[str, list[str]] = {"with the votes": [], "against the votes": []}
    for places in (np.flatnonzero(same), np.flatnonzero(~same)):
        for how, found in answers.items():
            labels = {int(one): int(votes[one]) ^ (how == "against the votes") for one in places}
            assert len(labels) >= 20
            folder = tmp_path / "runs" / f"{how}-{places[0]}".replace(" ", "-")
            shutil.copytree(tmp_path / "runs" / "first", folder)
            again = private_clinic(folder, tmp_path / "ledger")
            found.append(answer_of(again.ask(4, "update", update_of(labels))))
            again.border.close()
    assert {how: len(set(found)) for how, found in answers.items()} == dict.fromkeys(answers, 1), answers
    assert answers["with the votes"][0] == "a reply"
    assert answers["against the votes"][0].startswith("refused: ")


ERRORS = [
    LearnerError("its learner"),
    DataError("3 records"),
    ConfigError("its file"),
    BadMessage("its notes"),
    MembersError("its wards"),
    ValueError("patient 4711"),
    MemoryError(),
    AssertionError("patient 4711"),
]


def test_whatever_fails_in_a_step_leaves_the_same_line(tmp_path, monkeypatch):
    """All but refusals could depend on private data; the silo's own log has the reasons."""
    clinic = Clinic(tmp_path / "run", DecisionTreeClassifier(random_state=0))
    message = update_of(dict(enumerate(clinic.vote().tolist())))
    answers = Counter[str]()
    for error in ERRORS:

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Silo, "fit", fail)
            answers[answer_of(clinic.ask(4, "update", message))] += 1
    assert len(answers) == 1, answers
    log = (tmp_path / "run" / "log.txt").read_text()
    assert [str(error) for error in ERRORS if str(error) not in log] == []
    # The same bytes count once, however often they fail; then they are answered, and answered again.
    assert [answer_of(clinic.ask(4, "update", message)) for _ in range(2)] == ["a reply"] * 2


def test_other_bytes_are_another_update(tmp_path):
    """Under the same number or another one; those of the first update are answered again."""
    clinic = Clinic(tmp_path / "run", DecisionTreeClassifier(random_state=0))
    labels = dict(enumerate(clinic.vote().tolist()))
    few = {place: labels[place] for place in list(labels)[:40]}
    assert answer_of(clinic.ask(4, "update", update_of(labels))) == "a reply"
    changed = "refused: silo 'clinic': request N came a second time with different content"
    too_often = (
        "refused: silo 'clinic': was asked for step 'update' N times; "
        "cofed with these parameters asks N times at most"
    )
    cases = [(4, "federated"), (4, "nonsense"), (5, "federated"), (5, "nonsense"), (5, "federated")]
    told = [answer_of(clinic.ask(number, "update", update_of(few, stage))) for number, stage in cases]
    assert told == [changed, changed, too_often, changed, too_often]
    assert answer_of(clinic.ask(4, "update", update_of(labels))) == "a reply"


# ---------------------------------------------------------------------- 5. a yes is for what was shown


def ask_for(folder: Path, words: list[str]) -> Thread:
    """A run waits for approval; the only place here that knows how."""
    subject = approval.Subject(contract=sha256("".join(words).encode()).hexdigest(), limits="the same")
    thread = Thread(target=approval.wait_for, args=(folder, subject, words), daemon=True)
    thread.start()
    return thread


def test_a_yes_is_for_the_run_that_was_shown(deployment, until, cosilo, monkeypatch):
    """While somebody reads what one run would do, another one takes its place."""
    kit, name = deployment.kits["tree"], "swapped-1"
    folder = deployment.folder / "silos" / "tree" / name
    folder.mkdir(parents=True)
    shown, other = ["It would send little"], ["It would send everything"]
    ask_for(folder, shown)
    until(lambda: (folder / "request.json").exists())
    waiting = []

    def read_slowly(*_: object, **__: object) -> bool:
        waiting.append(ask_for(folder, other))
        until(lambda: "everything" in (folder / "request.json").read_text())
        return True

    monkeypatch.setattr("typer.confirm", read_slowly)
    _, out, _ = cosilo("approve", kit, name)
    assert "little" in out
    assert "everything" not in out
    waiting[0].join(5)
    assert waiting[0].is_alive(), "a run that nobody was shown may run"
    assert f"waits: {name}" in cosilo("approve", kit)[1]
    assert cosilo("approve", kit, name, "--refuse")[0] == 0
    waiting[0].join(30)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_yes_to_one_job_lets_no_other_in(deployment, until, cosilo, monkeypatch):
    """The same on processes of FLARE: the second job has another parameter, and the same name."""
    deployment.write_cofed({"tree": f'{DEFAULTS}approve = "ask"\n'})
    name, kit = "swapped-2", deployment.kits["tree"]
    ask = [Ask(1, "hello", encode({}))]

    def waits() -> bool:
        return f"waits: {name}" in cosilo("approve", kit)[1]

    def job(alpha: float) -> Any:
        return deployment.forge(deployment.federation(("tree",), "cofed", _alpha=alpha), name, ask)

    first = job(0.4)
    until(waits)
    request = deployment.folder / "silos" / "tree" / name / "request.json"
    before, second = request.read_text(), []

    def read_slowly(*_: object, **__: object) -> bool:
        first.stop()
        second.append(job(0.9))
        until(lambda: request.read_text() != before or second[0].path.exists())
        return True

    monkeypatch.setattr("typer.confirm", read_slowly)
    _, out, _ = cosilo("approve", kit, name)
    assert "alpha = 0.4" in out
    until(lambda: second[0].path.exists() or waits())
    second[0].stop()
    assert sent(request.parent, "hello") == {}


# ---------------------------------------------------------------------- 6. a silo that is killed in hello


@pytest.mark.slow
def test_a_silo_that_is_killed_in_hello_stops_a_run_which_can_be_resumed(following, tmp_path, monkeypatch):
    deployment = following.deployment
    deployment.write_networks("tree", "svm", learner='"tricks.Net"')
    hold = deployment.folder / "hold-svm-1"
    hold.touch()
    case = (("tree", "svm"), "fedavg")
    submitted = following.submit(*case, _rounds=1, seed=4)
    following.until((deployment.folder / "computed-svm").exists)
    assert (deployment.folder / "computed-svm").read_text() == "1\n"
    kill(deployment.kits["svm"])
    hold.unlink()
    error = str(submitted.exception())
    run = following.run
    deployment.start("svm")
    assert "silo 'svm': not connected; rejoins when it reconnects" in error.splitlines()
    assert (run.status, error.splitlines()[-1]) == (
        "stopped",
        f"completed steps are kept: cosilo resume {run.folder}",
    )
    done = resume(run.folder, lambda line: None)
    assert done.status == "finished"
    assert done.result["failures"] == []
    monkeypatch.setattr(Boundary, "_compute", Boundary._compute)  # tricks change it in this process too
    same = deployment.locally(tmp_path / "undisturbed", *case, _rounds=1, seed=4)
    assert done.result == same.result
    assert weights(Run(done.folder)) == weights(same)


def kill(kit: Path) -> None:
    for number in processes.running(kit):
        os.kill(number, signal.SIGKILL)


def weights(run: Run) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in run.global_weights().items()}


# ---------------------------------------------------------------------- 7. an anchor of the audit log


def rewrite(path: Path, drop: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Leave lines of an audit log out, and chain the others as if there had been no more."""
    chain, text = "", ""
    before = read_lines(path)
    for entry in drop(before):
        entry = {key: value for key, value in entry.items() if key != "chain"}
        chain = _chained(chain, entry)
        text += as_line({**entry, "chain": chain})
    path.write_text(text)
    assert len(read_lines(path)) == len(before) - 4


def without_the_middle(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["ask"] not in (6, 7)]


def without_the_end(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return lines[:-4]


@pytest.mark.slow
def test_an_audit_log_that_is_not_the_one_its_coordinator_has_seen_ends_the_run(following, tmp_path):
    """Between two rounds: a log without four lines, one without its end, and an older copy of the record."""
    deployment, until = following.deployment, following.until
    deployment.write_networks("tree", "svm", learner='"tricks.Net"')
    holds = [deployment.folder / f"hold-tree-{ask}" for ask in (6, 9)]
    for hold in holds:
        hold.touch()
    submitted = following.submit(("tree", "svm"), "fedavg", _rounds=2, quorum=1.0)
    computed = deployment.folder / "computed-tree"
    until(lambda: computed.exists() and "6" in computed.read_text().split())
    record = deployment.record(following.run, "tree")
    shutil.copytree(record, tmp_path / "older")
    holds[0].unlink()
    until(lambda: "9" in computed.read_text().split())
    following.stop_job("tree", "svm")
    assert isinstance(submitted.exception(), RunError)
    holds[1].unlink()
    folder = following.run.folder
    kept = {folder: tmp_path / "run", record: tmp_path / "tree"}
    kept[deployment.record(following.run, "svm")] = tmp_path / "svm"
    for place, copy in kept.items():
        shutil.copytree(place, copy)

    def resumed(tamper: Callable[[], object]) -> tuple[str, str]:
        """How the run stands after it is resumed, and why."""
        for place, copy in kept.items():
            shutil.rmtree(place)
            shutil.copytree(copy, place)
        tamper()
        error = following.resume(folder).exception()
        kits = [deployment.kits[name] for name in ("tree", "svm")]
        until(lambda: all(len(processes.running(kit)) == 1 for kit in kits))
        return RunDirectory(folder).status, "" if error is None else str(error).splitlines()[1]

    def older_record() -> None:
        shutil.rmtree(record)
        shutil.copytree(tmp_path / "older", record)

    found = {
        "four lines": resumed(lambda: rewrite(record / "audit.jsonl", without_the_middle)),
        "the end": resumed(lambda: rewrite(record / "audit.jsonl", without_the_end)),
        "an older copy": resumed(older_record),
    }
    assert {what: status for what, (status, _) in found.items()} == dict.fromkeys(found, "stopped"), found
    for _, why in found.values():
        assert re.match("silo 'tree': .*(older copy was put back|rewritten)", why), found
    assert resumed(lambda: None) == ("finished", "")
