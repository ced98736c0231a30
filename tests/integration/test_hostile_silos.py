"""One silo sends what it should not; the others, and the run, go on. Each of these once stopped a run."""

import json
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, FedAvg, Federation, Run, Silo
from cosilo.engines.local.in_process import InProcess
from cosilo.errors import CosiloError
from cosilo.protocol.carrier import Answer
from cosilo.protocol.wire import decode, encode

pytest.importorskip("torch")
from cosilo.learners import Network, Training
from cosilo.learners.zoo import mlp

BAD = "bayes"
X, Y = load_digits(return_X_y=True)
POOL = X[1000:1300]


def part(classes: list[int], start: int) -> tuple[np.ndarray, np.ndarray]:
    index = np.flatnonzero(np.isin(Y, classes) & (np.arange(len(Y)) >= start))[:60]
    return X[index], Y[index]


def silos_with(**options) -> list[Silo]:
    return [
        Silo("tree", *part([0, 1, 2], 0), DecisionTreeClassifier(), **options),
        Silo(BAD, *part([1, 2, 3], 300), GaussianNB(), **options),
        Silo("other", *part([0, 2, 3], 600), GaussianNB(), **options),
    ]


@pytest.fixture
def lies(monkeypatch):
    """Let one silo say something else: `lies(step, change)`; change gets its true reply."""
    told = {}
    call = InProcess.call

    def changed(self, silos, asks, timeout):
        for answer in call(self, silos, asks, timeout):
            step = asks(answer.silo).step
            if answer.silo == BAD and step in told and isinstance(answer.content, bytes):
                answer = Answer(BAD, told[step](answer.content), answer.seconds)
            yield answer

    monkeypatch.setattr(InProcess, "call", changed)
    return lambda step, change: told.update({step: change})


def raw(scalars: str, arrays=None) -> bytes:
    return save(arrays or {}, metadata={"scalars": scalars})


def with_scalars(text: str):
    """The true reply's arrays with other scalars."""

    def change(content: bytes) -> bytes:
        arrays = {k: v for k, v in decode(content).items() if isinstance(v, np.ndarray)}
        return raw(text, arrays)

    return change


def network(hidden: int) -> Network:
    return Network(partial(mlp, hidden=[hidden]), Training(epochs=1, batch=16, lr=0.05))


def networks() -> list[Silo]:
    return [
        Silo(name, *part([0, 1, 2], start), network(8), shares=["weights", "size", "metrics"])
        for name, start in (("first", 0), (BAD, 300), ("third", 600))
    ]


NESTED = "[" * 100_000 + "]" * 100_000
HELLO = {
    "nested": raw(NESTED),
    "classes a text": encode({"classes": "abc", "pool": "", "offers": []}),
    "no classes": encode({"classes": [], "pool": "", "offers": []}),
    "a class twice": encode({"classes": ["a", "a"], "pool": "", "offers": []}),
    "half a character": raw('{"classes": ["a", "\\ud800"], "pool": "", "offers": []}'),
    "escape": raw('{"classes": ["a", "\\u001b[2J"], "pool": "", "offers": []}'),
    "a long name": encode({"classes": ["a", "b" * 10_000], "pool": "", "offers": []}),
    "many names": encode({"classes": [str(n) for n in range(40_000)], "pool": "", "offers": []}),
    "a dictionary": raw('{"classes": {"a": 1}, "pool": "", "offers": []}'),
    "many arrays": save({f"a{n}": np.zeros(0, np.int8) for n in range(30_000)}, metadata={"scalars": "{}"}),
}


@pytest.mark.parametrize("lie", HELLO, ids=lambda lie: lie.replace(" ", "-"))
def test_who_introduces_itself_with_nonsense_is_named_and_the_run_can_go_on_when_it_does_not(
    lie, lies, tmp_path
):
    lies("hello", lambda _: HELLO[lie])
    with pytest.raises(CosiloError, match=f"^silo '{BAD}': its reply was rejected: "):
        Federation(silos_with(), POOL, CoFED()).run(tmp_path / "run")
    lies("hello", lambda content: content)
    assert Federation(silos_with(), POOL, CoFED()).run(tmp_path / "run").status == "finished"


REPLIES = {
    "size 10^400": ("size", with_scalars(f'{{"size": 1{"0" * 400}}}'), CoFED(weights="size")),
    "size 10^18": ("size", with_scalars(f'{{"size": 1{"0" * 18}}}'), CoFED(weights="size")),
    "credibility -1": ("credibility", with_scalars('{"accuracy": -1}'), CoFED(weights="accuracy")),
    "credibility 10^6": ("credibility", with_scalars('{"accuracy": 1000000}'), CoFED(weights="accuracy")),
    "accuracy 10^30": ("evaluate", with_scalars(f'{{"accuracy": 1{"0" * 30}, "instances": 5}}'), CoFED()),
    "accuracy NaN": ("evaluate", with_scalars('{"accuracy": NaN, "instances": 5}'), CoFED()),
    "instances -3": ("evaluate", with_scalars('{"accuracy": 0.5, "instances": -3}'), CoFED()),
    "accuracy without instances": ("evaluate", with_scalars('{"accuracy": 0.5}'), CoFED()),
    "half a decision": ("decision", with_scalars('{"taken": 0.5, "doubtful": 0}'), CoFED()),
    "less than nothing lost": (
        "decision",
        with_scalars('{"taken": 1, "doubtful": 0, "instances": 9, "gained": 2, "lost": -1}'),
        CoFED(),
    ),
    "nested votes": ("label", lambda _: raw(NESTED), CoFED()),
    "no votes": ("label", lambda _: encode({"votes": np.zeros(0, np.int8)}), CoFED()),
}


@pytest.mark.parametrize("lie", REPLIES, ids=lambda lie: lie.replace(" ", "-"))
def test_a_bad_reply_is_rejected_by_name_and_never_kept(lie, lies, tmp_path):
    step, change, method = REPLIES[lie]
    lies(step, change)
    silos = silos_with(shares=["labels", "metrics", "size"])
    run = Federation(silos, POOL, method).run(tmp_path / "run")
    rejected = [one for one in run.result["failures"] if one["step"] == step]
    assert {one["silo"] for one in rejected} == {BAD}
    assert {one["kind"] for one in rejected} == {"rejected"}
    assert all(one["text"].startswith(f"silo '{BAD}': its reply was rejected: ") for one in rejected)
    assert set(run.relative_accuracy()) >= {"tree", "other"}
    assert Run(run.folder).status == "finished"


def test_a_decision_that_lacks_something_stops_nobody(lies, tmp_path):
    lies("decision", with_scalars('{"taken": 1, "gained": 3}'))
    run = Federation(silos_with(), POOL, CoFED()).run(tmp_path / "run")
    assert not run.result["failures"]
    told = run.result["voting"][0]["decisions"][BAD]
    assert told == {"taken": True, "instances": None, "gained": 3, "lost": None, "doubtful": False}
    assert "nothing against it" in run.report().read_text("utf-8")


WEIGHTS = {
    "none": lambda _: encode({}),
    "one array": lambda _: encode({"weights": np.zeros(3)}),
    "complex": lambda _: save(
        {"weights/a": np.zeros(3, np.complex64)}, metadata={"scalars": json.dumps({"size": 3})}
    ),
    "3e38": lambda content: encode(
        {
            **decode(content),
            "weights": {k: np.full_like(v, 3e38) for k, v in decode(content)["weights"].items()},
        }
    ),
    "another network": lambda content: encode({**decode(content), "weights": {"a": np.zeros(3)}}),
}


@pytest.mark.parametrize("step", ["initial", "train"])
@pytest.mark.parametrize("lie", WEIGHTS, ids=lambda lie: lie.replace(" ", "-"))
def test_weights_come_from_somebody_else_if_one_sends_nonsense(lie, step, lies, tmp_path):
    silos = networks()
    if step == "initial":
        silos = [silos[1], silos[0], silos[2]]
    lies(step, WEIGHTS[lie])
    run = Federation(silos, method=FedAvg(rounds=2, local=False)).run(tmp_path / "run")
    assert run.status == "finished"
    assert {one["silo"] for one in run.result["failures"] if one["step"] == step} == {BAD}


def test_a_silo_with_another_network_is_not_asked_for_the_weights_to_start_from(tmp_path):
    silos = networks()
    silos[0] = Silo("first", *part([0, 1, 2], 0), network(9), shares=["weights", "size", "metrics"])
    run = Federation(silos, method=FedAvg(rounds=1, local=False), quorum=0.5).run(tmp_path / "run")
    assert {one["silo"] for one in run.result["failures"]} == {"first"}


def test_a_size_that_nobody_has_does_not_rule_the_mean(lies, tmp_path):
    # 10⁹ is the most that can be said; it counts for ten times the median.
    def boast(content: bytes) -> bytes:
        reply = decode(content)
        zero = {name: np.zeros_like(array) for name, array in reply["weights"].items()}
        return encode({**reply, "weights": zero, "size": 10**9})

    lies("train", boast)
    run = Federation(networks(), method=FedAvg(rounds=1, local=False)).run(tmp_path / "run")
    largest = max(float(np.abs(array).max()) for array in run.global_weights().values())
    assert largest > 1e-2  # by 10⁹ against 45 it would be 10⁻⁸


# ---------------------------------------------------------------------- whatever it sends

scalars = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.just(10**400),
        st.just(-1),
        st.just("\ud800\x1b[/]"),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner)),
    max_leaves=6,
)
FIELDS = ["classes", "pool", "offers", "votes", "accuracy", "instances", "size", "x"]
dtypes = st.sampled_from([np.int8, np.int64, np.float32, np.float64, np.complex64, np.bool_, np.uint16])


@st.composite
def replies(draw) -> bytes:
    """Something that is nearly a reply."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=64))
    values = draw(st.dictionaries(st.sampled_from(FIELDS), scalars, max_size=4))
    names = st.sampled_from(["votes", "votes/a", "weights/a", "size", "x"])
    arrays = {
        name: np.full(draw(st.lists(st.integers(0, 3), max_size=2)) or [300], draw(st.integers(0, 3)), dtype)
        for name, dtype in draw(st.dictionaries(names, dtypes, max_size=2)).items()
    }
    return raw(json.dumps(values), arrays)


@settings(max_examples=60)
@given(step=st.sampled_from(["hello", "train", "label", "update", "evaluate", "size"]), content=replies())
def test_whatever_a_silo_sends_the_run_ends_in_order(step, content, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "run"
    silos = silos_with(shares=["labels", "metrics", "size"])
    call = InProcess.call

    def changed(self, asked, asks, timeout):
        for answer in call(self, asked, asks, timeout):
            lies = answer.silo == BAD and asks(BAD).step == step
            yield Answer(BAD, content) if lies else answer

    InProcess.call, stopped = changed, ""
    try:
        Federation(silos, POOL, CoFED(weights="size")).run(folder)
    except CosiloError as error:
        stopped = str(error)
    finally:
        InProcess.call = call
    if stopped:  # only when they meet, and only who sent it is named
        assert step == "hello"
        assert stopped.startswith(f"silo '{BAD}': ")
        assert "silo 'tree'" not in stopped
