"""Whether a silo takes what it is offered."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from cosilo import CoFED, Federation, Silo
from cosilo.learners import Network, Training
from cosilo.protocol.allow import Allow
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure
from cosilo.report.silo_page import write_silo_page
from cosilo.runs.durable_files import read_lines
from cosilo.runs.silo_runs import read_silo_run
from cosilo.runs.silo_state import last_state
from cosilo.silo.guard import Decision, decide, noted
from cosilo.silo.lessons import Lessons


def test_the_paired_test_by_hand():
    y = np.array([0, 1, 0, 1, 0])
    before, after = np.array([0, 1, 1, 0, 0]), np.array([0, 0, 0, 1, 0])
    assert decide(before, after, y) == Decision(5, gained=2, lost=1)
    assert decide(y[:0], y[:0], y[:0]) == Decision(0, 0, 0)
    assert Decision(9, 0, 0).accepted
    assert Decision(9, 0, 1).accepted  # one instance proves nothing: −1 ≥ −√1
    assert not Decision(9, 0, 2).accepted
    assert Decision(99, 6, 9).accepted
    assert not Decision(99, 6, 11).accepted
    # On a doubtful pool it has to prove a gain: 9 − 2 > 1.645 √11, 8 − 2 > 1.645 √10, 7 − 2 > 1.645 √9.
    assert Decision(99, 9, 2, doubtful=True).accepted
    assert Decision(99, 7, 2, doubtful=True).accepted
    assert not Decision(99, 6, 2, doubtful=True).accepted
    assert not Decision(99, 0, 0, doubtful=True).accepted


def test_a_pool_is_doubtful_if_silos_agree_less_than_their_data_promises():
    y = np.arange(100) % 4
    good, poor = np.where(np.arange(100) < 10, (y + 1) % 4, y), np.where(np.arange(100) < 50, (y + 1) % 4, y)
    # κ with its own labels is 0.867 and 0.333; two thirds of that are 0.578 and 0.222.
    assert [decide(good, good, y, k).doubtful for k in (0.57, 0.58)] == [True, False]
    assert [decide(poor, poor, y, k).doubtful for k in (0.24, 0.26)] == [True, False]


def points(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (np.array([[0, 0], [3, 0], [0, 3]])[y] + rng.normal(size=(n, 2))).astype(np.float32), y


def make(kind):
    if kind != "other":
        patience = 3 if kind == "network that stops early" else None
        training = Training(lr=0.05, epochs=20, batch=10, patience=patience)
        return Network(lambda shape, k: nn.Linear(shape[0], k), training)
    return KNeighborsClassifier(3)


KINDS = ("network", "network that stops early", "other")


@pytest.mark.parametrize("kind", KINDS)
def test_lies_are_refused_and_the_silo_keeps_what_it_had(kind):
    # Twelve held-out instances do not see every lie: one of five draws of the points passes.
    own = points(60, 20 if kind == "network that stops early" else 0)
    silo = Silo("a", *own, make(kind), test=points(300, 1))
    silo.fit(LOCAL, validate=kind != "other")
    had = silo.learner
    X, y = points(400, 2)
    lies = Lessons(X, (y + 1) % 3)
    said = silo.learner.predict(X)
    silo.fit(FEDERATED, lessons=lies, check=lies, update=True, warm=kind != "other")
    scores = silo.scores[FEDERATED]
    assert scores[Measure.OWN] == silo.scores[LOCAL][Measure.OWN]
    assert scores[Measure.OFFERED].accuracy < scores[Measure.OWN].accuracy - 0.2
    assert (silo.learner.predict(X) == said).all()
    assert (silo.spare.predict(X) != said).any()
    assert had is silo.spare  # what was trained on lies; the copy from before is in use
    instances, gained, lost, doubtful = silo.notes.array("guard")
    assert not doubtful
    assert silo.decision == Decision(instances, gained, lost)
    assert instances == (60 if kind == "other" else 12)
    assert lost > gained


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_taken(kind):
    silo = Silo("a", *points(30, 3), make(kind), test=points(300, 1))
    silo.fit(LOCAL, validate=kind != "other")
    truth = Lessons(*points(400, 2))
    silo.fit(FEDERATED, lessons=truth, check=truth, update=True, warm=kind != "other")
    scores = silo.scores[FEDERATED]
    assert scores[Measure.OWN] == scores[Measure.OFFERED]
    assert silo.spare is not None


def test_folds_hold_every_instance_once_and_lone_ones_never():
    X, y = np.arange(26.0).reshape(13, 2), np.array(list("aaaaaabbbbbbc"))
    silo = Silo("a", X, y, KNeighborsClassifier(1), test=None)
    seen = []
    for (held, codes), (kept, rest) in silo.data.folds(5):
        assert set(rest) == {0, 1, 2}
        assert len(held) + len(kept) == 13
        assert 2 not in codes
        seen += held[:, 0].tolist()
    assert sorted(seen) == X[:12, 0].tolist()


@pytest.mark.parametrize("rule", ["paper", "winner", "shares"])
def test_a_federation_of_liars_harms_nobody(rule, tmp_path):
    """All but one call everything by the next class: the honest one is outvoted, and not harmed."""

    def silos():
        for i in range(5):
            X, y = points(45, 10 + i)
            yield Silo(f"s{i}", X, y if i == 0 else (y + 1) % 3, make("other"), test=points(200, 99))

    pool = points(300, 50)[0]
    method = CoFED(rule=rule, accept="better")
    run = Federation(list(silos()), pool, method).run(tmp_path / "guarded")
    assert not run.result["failures"]
    assert run.relative_accuracy()["s0"] == 1
    assert run.result["offered"]["federated"]["s0"]["accuracy"] < 0.5
    bare = Federation(list(silos()), pool, CoFED(rule=rule, accept="always")).run(tmp_path / "bare")
    assert bare.relative_accuracy()["s0"] < 0.6


@pytest.mark.parametrize("exact", [False, True])
def test_counts_of_own_instances_stay_unless_the_silo_shares_exact_scores(exact, tmp_path):
    silos = [Silo(f"s{i}", *points(45, i), make("other"), test=points(100, 9)) for i in range(3)]
    silos[0].allow = Allow(exact_scores=exact, agreement=0)
    run = Federation(silos, points(200, 50)[0], CoFED(accept="better")).run(tmp_path / "run")
    record = run.folder / "silos" / "s0"
    asked = [one for one in read_lines(record / "audit.jsonl") if one["step"] == "decision"]
    left = {field for one in asked for field in one.get("fields", {})}
    counts = {"instances", "gained", "lost"}
    assert left == {"taken", "doubtful"} | (counts if exact else set())
    told = run.result["voting"][0]["decisions"]
    assert {name for name in counts if told["s0"][name] is not None} == (counts if exact else set())
    assert told["s1"]["instances"] == 45  # who set no limits
    assert ("nothing against it" in run.report().read_text("utf-8")) != exact
    # Its own page has all of it in any case.
    found = noted(last_state(record).noted())
    own = write_silo_page(read_silo_run(record)).read_text("utf-8")
    assert f"Of 45 instances that neither model had learnt from, {found.gained} are right only" in own


def test_both_models_survive_a_resume(tmp_path):
    silos = [Silo(f"s{i}", *points(45, i), make("network"), test=points(100, 9)) for i in range(3)]
    run = Federation(silos, points(200, 50)[0], CoFED(accept="better")).run(tmp_path / "run")
    X = points(50, 77)[0]
    again = Federation(
        [Silo(f"s{i}", *points(45, i), make("network"), test=points(100, 9)) for i in range(3)],
        points(200, 50)[0],
        CoFED(accept="better"),
    ).run(tmp_path / "run")
    for name, silo in run.silos.items():
        other = again.silos[name]
        assert (silo.learner.predict(X) == other.learner.predict(X)).all()
        assert (silo.spare.predict(X) == other.spare.predict(X)).all()
        assert (silo.trial.predict(X) == other.trial.predict(X)).all()
