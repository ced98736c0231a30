"""A coordinator asks for more than a method needs; a silo that limits it says no, and why."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from boundaries import asked, opened
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, FedAvg, Network, Silo, Training
from cosilo.coordination.agreement import Limits, in_words
from cosilo.engines.local.in_process import open_boundary
from cosilo.errors import (
    BadMessage,
    ConfigError,
    CosiloError,
    DataError,
    LearnerError,
    MembersError,
    RunError,
)
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Ask, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.wire import decode, encode
from cosilo.runs import approval, audit
from cosilo.runs.durable_files import as_line, read_json, read_lines, write_json

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (40, 3)), RNG.normal(3, 1, (40, 3))])
Y = np.repeat(["a", "b"], 40)
POOL = np.concatenate([RNG.normal(0, 1, (50, 3)), RNG.normal(3, 1, (50, 3))])
#: Five silos that agree on all instances: half of the pool is of each class.
COUNTS = np.repeat(np.array([[5, 0], [0, 5]], np.uint16), 50, axis=0)
GOOD = {
    "counts": {"000000000": COUNTS},
    "other": np.zeros(100, np.float32),
    "total": np.full(2, 5, np.uint16),
    "counted": np.ones(2, np.uint8),
    "own": 1,
    "unit": 1.0,
}


@pytest.fixture
def tmp_path(tmp_path):
    """A folder that no other test's is beside: a silo counts the runs there."""
    path = tmp_path / "run"
    path.mkdir()
    return path


ALLOW = Allow()


class Asked:
    """A silo, and a coordinator that asks whatever a test wants."""

    def __init__(self, folder, method, allow=ALLOW, **options):
        silo = Silo("clinic", X, Y, options.pop("learner", GaussianNB()), pool=POOL, **options)
        silo.allow = allow
        self.folder, self.number = folder, 0
        self.border = opened(silo, method, folder)

    def ask(self, step, **message) -> str | dict:
        """The reply, or why there is none."""
        self.number += 1
        content = asked(self.border, self.number, step, encode(message)).content
        return content.text if isinstance(content, Failure) else decode(content)


def test_what_the_method_asks_for_is_answered(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    assert clinic.ask("hello")["classes"] == ["a", "b"]
    assert clinic.ask("train") == {}
    assert len(clinic.ask("label")["votes"]) == 100
    assert clinic.ask("update", **GOOD, stage="federated") == {}
    assert clinic.ask("evaluate", stage="federated")["instances"] == 20


def test_no_step_is_done_more_often_than_the_method_could_ask(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello"), clinic.ask("train")
    answers = [clinic.ask("label") for _ in range(200)]
    assert [isinstance(answer, dict) for answer in answers] == [True] + [False] * 199
    assert answers[1] == (
        "silo 'clinic': was asked for step 'label' 2 times; cofed with these parameters asks 1 times at most"
    )


def test_after_an_update_there_is_no_vote_unless_the_silo_allowed_rounds(tmp_path):
    def leak(clinic):
        clinic.ask("hello"), clinic.ask("train"), clinic.ask("label")
        clinic.ask("update", **GOOD, stage="round 1")
        return clinic.ask("label")

    assert "asks 1 times at most" in leak(Asked(tmp_path / "one", CoFED()))
    two = Asked(tmp_path / "two", CoFED(rounds=2))
    assert two.ask("hello") == (
        "silo 'clinic': does not allow rounds = 2; it allows at most 1: its own file says more in [allow] "
        "parameters = { rounds = … }"
    )
    allowed = Asked(tmp_path / "three", CoFED(rounds=2), Allow(parameters={"rounds": 2}))
    assert "votes" in leak(allowed)


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        (["label"], "step 'label' came before 'hello'"),
        (["hello", "label"], "step 'label' came before 'train'"),
        (["hello", "train", "credibility"], "cofed has no step 'credibility'"),
        (["hello", "train", "update"], "step 'update' came before 'label'"),
        (["hello", "hello"], "was asked for step 'hello' 2 times"),
        (["hello", "\x1b[2J"], r"cofed has no step '\x1b[2J'"),
    ],
)
def test_steps_come_in_an_order_that_the_method_could_have(tmp_path, steps, refused):
    clinic = Asked(tmp_path, CoFED())
    *_, last = [clinic.ask(step) for step in steps]
    assert refused in last


@pytest.mark.parametrize(
    ("allow", "method", "refused"),
    [
        ({"methods": ["fedavg"]}, CoFED(), "does not allow cofed; it allows fedavg"),
        ({}, FedAvg(epochs=10**9), "does not allow epochs = 1e+09; it allows at most 1000"),
        ({}, FedAvg(rounds=10**6), "does not allow rounds = 1e+06"),
        (
            {"parameters": {"alpha": [0.2, 0.9]}},
            CoFED(alpha=0.1),
            "does not allow alpha = 0.1; it allows 0.2",
        ),
    ],
)
def test_a_method_beyond_what_is_allowed_is_refused_before_anything_is_computed(
    tmp_path, allow, method, refused
):
    clinic = Asked(tmp_path, method, Allow(**allow), shares=["labels", "weights", "size"])
    assert refused in clinic.ask("hello")


def test_asks_and_bytes_are_used_up(tmp_path):
    clinic = Asked(tmp_path / "asks", CoFED(), Allow(asks=3))
    assert [isinstance(clinic.ask(step), dict) for step in ("hello", "train", "label")] == [True] * 3
    assert "its [allow] asks = 3 are used up" in clinic.ask("evaluate", stage="local")
    clinic = Asked(tmp_path / "bytes", CoFED(), Allow(bytes=100))
    clinic.ask("hello")
    assert "its [allow] bytes = 100 are used up" in clinic.ask("train")


def test_runs_of_a_day_are_used_up(tmp_path):
    once = Allow(runs_per_day=1)
    assert isinstance(Asked(tmp_path / "one", CoFED(), once).ask("hello"), dict)
    assert "runs_per_day = 1 are used up" in Asked(tmp_path / "two", CoFED(), once).ask("hello")


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ({"other": "all"}, "its 'other': got 'all'; expected float32, 1-dimensional"),
        ({"stage": 3}, "its 'stage': got 3; wants a text"),
        ({"stage": "round"}, "stage 'round': wants 'local', 'round N' or 'federated'"),
        ({"extra": 1}, "got 'extra'; the step takes stage, counts, total, counted, own, unit, other"),
        ({"other": np.array([np.nan] * 100, np.float32)}, "its 'other': holds nan; expected numbers from 0"),
        (
            {"counts": {"000000000": COUNTS[:, ::-1].copy()}},
            "labels it was sent do not go with its own votes",
        ),
    ],
)
def test_what_comes_with_a_step_has_its_type_and_makes_sense(tmp_path, message, wrong):
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello"), clinic.ask("train"), clinic.ask("label")
    assert wrong in clinic.ask("update", **{**GOOD, "stage": "federated", **message})


def test_a_stage_that_is_none_is_refused_whatever_the_tallies_are(tmp_path):
    """The order of refusals must not answer questions about the votes."""
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello"), clinic.ask("train"), clinic.ask("label")
    wrong = {**GOOD, "counts": {"000000000": COUNTS[:, ::-1].copy()}}
    told = []
    for name, message in (("one", GOOD), ("two", wrong)):
        shutil.copytree(tmp_path, tmp_path.with_name(name) / "run")
        other = again(tmp_path.with_name(name) / "run", CoFED())
        told.append(other.ask("update", **message, stage="round"))
    assert told[0] == told[1]
    assert "its 'stage'" in told[0]


@pytest.mark.parametrize(
    ("counts", "wrong"),
    [(COUNTS, None), (COUNTS[:, ::-1].copy(), "labels it was sent do not go with its own votes")],
)
def test_soft_targets_have_to_go_with_the_votes_of_a_network_too(tmp_path, counts, wrong):
    learner = Network(lambda shape, classes: torch.nn.Linear(shape[0], classes), Training(lr=0.1, epochs=20))
    allow = Allow(parameters={"accept": ["always"]})
    clinic = Asked(tmp_path, CoFED(accept="always", control=False), allow, learner=learner)
    clinic.ask("hello"), clinic.ask("train"), clinic.ask("label")
    told = clinic.ask("update", **{**GOOD, "counts": {"000000000": counts}}, stage="federated")
    assert isinstance(told, dict) if wrong is None else wrong in told


def test_a_silo_that_abstained_everywhere_has_nothing_to_compare_and_refuses_nothing(tmp_path):
    """Whether it keeps what it is offered is then up to its own data alone."""
    clinic = Asked(tmp_path, CoFED(margin=0.5), learner=DummyClassifier(strategy="prior"))
    clinic.ask("hello"), clinic.ask("train")
    assert (clinic.ask("label")["votes"] == -1).all()
    assert clinic.ask("update", **GOOD, stage="federated") == {}


def test_scores_hardly_tell_how_much_data_there_is(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello"), clinic.ask("train")
    said = clinic.ask("evaluate", stage="local")
    assert said["instances"] == 20  # of 20
    assert said["accuracy"] == round(said["accuracy"], 2)


def test_what_came_and_what_was_refused_is_in_the_audit_log(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello"), clinic.ask("label")
    lines = read_lines(tmp_path / "audit.jsonl")
    assert [(line["way"], line["ask"], line["step"]) for line in lines] == [
        ("in", 1, "hello"),
        ("out", 1, "hello"),
        ("in", 2, "label"),
        ("out", 2, "label"),
    ]
    assert "came before" in lines[-1]["failure"]
    assert all(line["at"] > 1e9 for line in lines)
    assert len(lines[0]["digest"]) == 64
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_an_administrator_reads_what_a_run_would_send_to_whom_and_how_often():
    silo = Silo("clinic", X, Y, GaussianNB(), pool=POOL)
    words = "\n".join(in_words(CoFED(), silo, Allow(), "10.0.0.1:8002", Contract.of(CoFED(), 7)))
    assert "The coordinator (10.0.0.1:8002) asks for a run of cofed (alpha = 0.3" in words
    assert "once, step 'label': votes (labels): its vote on each pool instance" in words
    assert "at most 4 times, step 'evaluate': accuracy (metrics)" in words
    assert "credibility" not in words
    assert "update (once)" in words
    # What its policy and its limits keep is not announced.
    assert "confusion" not in words
    assert "once, step 'decision': taken (metrics)" in words
    assert "gained" not in words
    assert "Scores leave rounded" in words
    exact = "\n".join(
        in_words(CoFED(), silo, Allow(exact_scores=True), "10.0.0.1:8002", Contract.of(CoFED()))
    )
    assert "once, step 'decision': gained (metrics)" in exact
    assert "rounded" not in exact


class Chatty(GaussianNB):
    """Says in its error what it was trained on."""

    def fit(self, X, y):
        raise ValueError(f"{len(X)} instances of {sorted(set(y))}")


@pytest.mark.parametrize(
    "error",
    [
        ConfigError("its 60 instances of class 'a'"),
        DataError("class 'b' has 3 instances"),
        BadMessage("label 3 of instance 17"),
        MembersError("2 of 3 members"),
        LearnerError("Tree.fit with 60 instances"),
        ValueError("60 instances"),
        RecursionError("60"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_whatever_fails_leaves_as_the_same_line(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Silo, "fit", fail)
    for allow in (Allow(), None):
        folder = tmp_path / str(allow is None)
        clinic = Asked(folder, CoFED(), allow)
        clinic.ask("hello")
        found = asked(clinic.border, 2, "train").content
        if allow is not None:
            told = Failure(FailureKind.ERROR, "silo 'clinic': step 'train' failed; its own log says why")
            assert found == told
        elif isinstance(error, CosiloError):  # its owner is the one who reads
            assert str(error) in found.text
        assert str(error) in (folder / "log.txt").read_text()
        lines = read_lines(folder / "audit.jsonl")
        assert [line["failure"] for line in lines if "failure" in line] == [found.text]


def test_no_size_and_no_class_leaves_with_what_a_learner_says(tmp_path):
    silo = Silo("clinic", X, Y, Chatty(), pool=POOL)
    silo.allow = Allow()
    border = opened(silo, CoFED(), tmp_path)
    asked(border, 1, "hello")
    failed = asked(border, 2, "train").content
    assert failed.text == "silo 'clinic': step 'train' failed; its own log says why"
    assert "60 instances" in (tmp_path / "log.txt").read_text()


# ---------------------------------------------------------------------- the contract


def again(folder, method, seed=0, allow=ALLOW):
    """The silo in another job under the same run name, with the contract of this method and seed."""
    clinic = Asked.__new__(Asked)
    silo = Silo("clinic", X, Y, GaussianNB(), pool=POOL)
    silo.allow = allow
    clinic.number, clinic.border = 10, opened(silo, method, folder, seed)
    return clinic


@pytest.mark.parametrize(
    ("method", "seed", "changed"),
    [
        (CoFED(rounds=3), 0, "parameters.rounds was 1, now 3"),
        (CoFED(accept="always"), 0, "parameters.accept was 'better', now 'always'"),
        (CoFED(), 7, "seed was 0, now 7"),
    ],
)
def test_another_contract_under_the_same_name_is_refused_at_every_step(tmp_path, method, seed, changed):
    free = Allow(parameters={"rounds": 10})
    clinic = Asked(tmp_path, CoFED(), free)
    for step in ("hello", "train", "label"):
        assert isinstance(clinic.ask(step), dict)
    other = again(tmp_path, method, seed, free)
    told = (
        f"silo 'clinic': run 'run' was begun under another contract ({changed}); "
        "submit a new run under another name"
    )
    for step in ("hello", "train", "label", "evaluate", "update"):
        assert other.ask(step) == told
    # The contract of the record still holds.
    first = again(tmp_path, CoFED(), allow=free)
    first.number = 30
    assert "asks 1 times at most" in first.ask("label")


def test_a_request_has_to_come_under_the_contract(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    for number, contract in enumerate(("", "0" * 64, Contract.of(CoFED(alpha=0.4)).hash), start=1):
        failure = clinic.border.answer(Ask(number, "hello", encode({}), contract)).content
        assert failure.kind is FailureKind.REFUSED
        assert "came with another contract" in failure.text


def test_a_record_without_a_contract_is_refused_between_organisations_and_taken_over_at_home(tmp_path):
    clinic = Asked(tmp_path, CoFED(), None)
    clinic.ask("hello")
    (tmp_path / "contract.json").unlink()
    assert "has no contract, since an earlier version" in again(tmp_path, CoFED()).ask("train")
    assert not (tmp_path / "contract.json").exists()
    assert again(tmp_path, CoFED(), allow=None).ask("train") == {}
    assert "without a contract: took over" in (tmp_path / "log.txt").read_text()


def test_a_contract_is_written_before_anything_else(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    known = read_json(tmp_path / "contract.json")
    assert known["hash"] == clinic.border.agreement.contract.hash == Contract.read(known["contract"]).hash
    assert not (tmp_path / "audit.jsonl").exists()


def test_what_was_refused_stays_refused_when_limits_are_loosened(tmp_path):
    clinic = Asked(tmp_path, CoFED(rounds=2))
    refused = clinic.ask("hello")
    assert "does not allow rounds = 2" in refused
    free = Allow(parameters={"rounds": 10})
    assert again(tmp_path, CoFED(rounds=2), allow=free).ask("hello") == refused


def test_limits_are_read_before_each_step(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    limits = Limits(frozenset({"labels", "metrics"}), Allow())
    clinic.border.agreement._read_limits = lambda: limits
    assert isinstance(clinic.ask("hello"), dict)
    assert isinstance(clinic.ask("train"), dict)
    limits = Limits(frozenset({"metrics"}), Allow())
    assert "does not share 'labels'" in clinic.ask("label")


def test_no_step_is_done_without_an_approval_of_this_contract_under_these_limits(tmp_path):
    ask, folder = Allow(approve="ask"), tmp_path
    clinic = Asked(folder, CoFED(), ask)
    agreement = clinic.border.agreement
    assert "is not approved under the limits" in clinic.ask("hello")
    write_json(folder / "request.json", {**vars(agreement.subject()), "words": [], "account": []})
    with pytest.raises(RunError, match="another contract or other limits wait"):
        approval.answer(folder, approval.Subject("0" * 64, agreement.subject().limits), approved=True)
    assert "is not approved" in clinic.ask("hello")
    approval.answer(folder, agreement.subject(), approved=True)
    clinic.number = 20
    assert "asked for step 'hello' 3 times" in clinic.ask("hello")  # what was refused counts
    clinic = Asked(folder.with_name("other"), CoFED(), ask)
    folder, agreement = folder.with_name("other"), clinic.border.agreement
    write_json(folder / "request.json", {**vars(agreement.subject()), "words": [], "account": []})
    approval.answer(folder, agreement.subject(), approved=True)
    assert isinstance(clinic.ask("hello"), dict)
    tighter = Limits(frozenset({"labels"}), ask)
    agreement._read_limits = lambda: tighter
    assert "is not approved under the limits" in clinic.ask("train")


def test_a_failed_request_counts_and_its_number_takes_no_other_bytes(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    for step in ("hello", "train", "label"):
        clinic.ask(step)
    bad, other = encode({"stage": "nonsense"}), encode({"stage": "federated"})
    first = asked(clinic.border, 4, "update", bad).content
    assert first.kind is FailureKind.REFUSED
    assert asked(clinic.border, 4, "update", bad).content == first  # the same bytes: the same answer
    second = asked(clinic.border, 4, "update", other).content
    assert "request 4 came a second time with different content" in second.text
    third = asked(clinic.border, 5, "update", other).content
    assert "was asked for step 'update' 2 times" in third.text


def test_a_log_that_is_not_what_the_coordinator_has_seen_is_refused(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    asked(clinic.border, 1, "hello")
    seal = asked(clinic.border, 2, "train").seal
    assert (seal.number, seal.length) == (2, 3)
    path = tmp_path / "audit.jsonl"
    lines = read_lines(path)
    rewritten, head = [], ""
    for line in (lines[0], lines[1], {**lines[2], "bytes": 1}, lines[3]):
        entry = {key: value for key, value in line.items() if key != "chain"}
        head = audit._chained(head, entry)
        rewritten.append(as_line({**entry, "chain": head}))
    path.write_text("".join(rewritten))
    other = again(tmp_path, CoFED())
    failure = asked(other.border, 3, "label", last=seal).content
    assert failure.kind is FailureKind.REFUSED
    assert "its audit log is not the one that the coordinator has seen (at line 3)" in failure.text


def test_an_older_copy_of_a_record_is_noticed_even_if_only_a_refusal_came_since(tmp_path):
    """Else a silo that is put back would have forgotten an update that was tried out on it."""
    clinic = Asked(tmp_path, CoFED())
    for step in ("hello", "train", "label"):
        clinic.ask(step)
    older = tmp_path.with_name("older")
    shutil.copytree(tmp_path, older)
    refused = asked(clinic.border, 4, "update", encode({**GOOD, "stage": "nonsense"}))
    assert refused.content.kind is FailureKind.REFUSED
    assert (refused.seal.number, refused.seal.failed) == (4, 1)
    shutil.rmtree(tmp_path)
    older.rename(tmp_path)
    good = encode({**GOOD, "stage": "federated"})
    failed = asked(again(tmp_path, CoFED()).border, 5, "update", good, last=refused.seal)
    assert failed.content.kind is FailureKind.REFUSED
    assert "an older copy was put back, or it was rewritten" in failed.content.text
    assert failed.seal is None
    assert not any(path.name.endswith("00005") for path in tmp_path.iterdir())


def test_the_first_request_is_answered_again_after_others_were_too_many(tmp_path):
    clinic = Asked(tmp_path, CoFED())
    clinic.ask("hello")
    first = asked(clinic.border, 2, "train").content
    assert "was asked for step 'train' 2 times" in asked(clinic.border, 3, "train").content.text
    assert asked(clinic.border, 2, "train").content == first
    assert "was asked for step 'train' 2 times" in asked(clinic.border, 3, "train").content.text


def test_a_contract_of_another_method_is_told_in_a_line_that_ends(tmp_path):
    Asked(tmp_path, CoFED())
    told = again(tmp_path, FedAvg()).ask("hello")
    assert told.startswith(
        "silo 'clinic': run 'run' was begun under another contract (method was 'cofed', now 'fedavg'; "
    )
    assert told.endswith(" more); submit a new run under another name")
    assert len(told) < 1000


def test_a_protocol_of_another_version_is_refused_and_another_release_is_not(tmp_path):
    silo = Silo("clinic", X, Y, GaussianNB(), pool=POOL)
    silo.allow = ALLOW
    contract = replace(Contract.of(CoFED()), protocol=99)
    border = open_boundary(silo, CoFED(), contract, tmp_path)
    told = asked(border, 1, "hello").content.text
    assert told.startswith("silo 'clinic': speaks version 1 of the protocol, the coordinator version 99")
