"""Silos that promise something to their records: whole runs, over seeds, crashes and pools."""

import subprocess
import sys
import textwrap
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, ConfigError, CosiloError, Federation, Local, Privacy, Silo
from cosilo.cli.trust import audit
from cosilo.coordination.agreement import kinds_sent
from cosilo.errors import Refused
from cosilo.privacy.account_text import account_lines
from cosilo.privacy.voter import Opinions
from cosilo.protocol.allow import Allow
from cosilo.protocol.stage import LOCAL
from cosilo.protocol.wire import decode, encode
from cosilo.report.facts import gather
from cosilo.report.run_page import render
from cosilo.runs import approval
from cosilo.runs.durable_files import write_json
from cosilo.runs.journal import replies_in
from cosilo.runs.run import RunDirectory
from cosilo.silo.data import PrivateData
from cosilo.silo.private_votes import PrivateVotes


class Never(DecisionTreeClassifier):
    def fit(self, *args, **kwargs):
        raise AssertionError("was trained")


X, Y = load_digits(return_X_y=True)
POOL = X[600:800]


def silos(privacy, tree=None):
    """One that promises something, and one that does not."""
    return [
        Silo("tree", X[:300], Y[:300], tree or DecisionTreeClassifier(random_state=0), privacy=privacy),
        Silo("bayes", X[300:600], Y[300:600], GaussianNB()),
    ]


def votes_of(folder, name):
    """What the coordinator got."""
    (ask,) = (folder / "journal").glob("*-label")
    return decode(replies_in(ask)[name])["votes"]


@pytest.fixture(scope="module")
def promised(tmp_path_factory):
    """Two runs with different seeds, and one ledger."""
    folder = tmp_path_factory.mktemp("promised")
    privacy = Privacy(epsilon=8, ledger=folder / "ledger")
    for seed in (0, 1):
        Federation(silos(privacy), POOL, seed=seed).run(folder / f"run-{seed}")
    return folder, privacy


def test_one_voter_answers_in_all_runs(promised):
    folder, _ = promised
    first, second = (votes_of(folder / f"run-{seed}", "tree") for seed in (0, 1))
    np.testing.assert_array_equal(first, second)
    text = (folder / "ledger" / "ledger.jsonl").read_text()
    assert text.count('"what": "voter"') == 1


def test_its_votes_are_the_voters_and_its_model_is_its_own(promised):
    folder, privacy = promised
    run = Federation(silos(privacy), POOL, seed=0).run(folder / "run-0")  # finished: it is only opened
    tree = run.silos["tree"]
    assert isinstance(tree.model, DecisionTreeClassifier)
    assert np.mean(votes_of(folder / "run-0", "tree") == Y[600:800]) > 0.6
    assert np.mean(tree.predict(POOL) == votes_of(folder / "run-0", "tree")) < 1


def test_the_account_is_in_the_run(promised):
    folder, _ = promised
    _, spent, without = account_lines(folder / "run-1" / "silos" / "tree")
    assert spent.startswith("its records have spent ε = 8 of 8, δ = 1e-05, over all runs")
    assert without.startswith("without any guarantee: metrics")
    assert not (folder / "run-1" / "silos" / "bayes" / "privacy.json").exists()


def test_a_run_that_would_overspend_is_refused_before_anything_is_computed(promised, tmp_path):
    _, privacy = promised
    federation = Federation(silos(privacy, Never()), POOL[:150])  # another pool wants another voter
    wants = (
        r"silo 'tree': its votes would cost ε = 8, and its records have spent 8 of their privacy budget of 8"
    )
    assert any("would cost" in line for line in federation.check())
    with pytest.raises(CosiloError, match=wants):
        federation.run(tmp_path / "run")
    assert not list((tmp_path / "run" / "silos" / "tree").glob("state-*"))


def test_before_a_run_its_owner_is_told_what_it_costs(promised):
    _, privacy = promised
    silo = silos(privacy)[0]
    assert silo.privacy_lines({"labels", "metrics"})[1:] == [
        "a new voter costs ε = 8; spent are 8 of 8",
        "without any guarantee: metrics (scores of its own model on its own data)",
    ]
    silo.use_pool(POOL)
    assert silo.privacy_lines({"labels"})[1] == "that voter is there already: its votes cost nothing more"
    assert silos(None)[0].privacy_lines({"labels"}) == [
        "without any guarantee: labels (what its own model votes for)"
    ]


def test_a_run_that_costs_nothing_passes_the_check_of_its_recipe(promised):
    assert Federation(silos(promised[1]), POOL, seed=2).check() == []


def test_the_report_has_the_account(promised):
    page = render(gather(RunDirectory(promised[0] / "run-1")))
    assert "1 silo of 2 voted by a voter that was trained with differential privacy" in page
    assert ">all runs</td><td>metrics, task</td>" in page


def test_the_audit_of_a_run_has_the_account(promised, capsys):
    audit(promised[0] / "run-1", "tree")
    audit(promised[0] / "run-1", "bayes")
    said = " ".join(capsys.readouterr().out.split())
    assert "privacy: its records have spent ε = 8 of 8, δ = 1e-05, over all runs" in said
    assert "privacy: without any guarantee: labels (what its own model votes for), metrics" in said


def test_whoever_approves_a_run_reads_the_account_and_is_asked_once(promised, tmp_path):
    silo = silos(promised[1])[0]
    kinds = kinds_sent(CoFED(), silo)
    assert kinds == {"labels", "metrics", "task"}
    subject = approval.Subject("a" * 64, "b" * 64)
    asked = {"words": ["A run."], "account": silo.privacy_lines(kinds)}
    write_json(tmp_path / "request.json", {**vars(subject), **asked})
    assert approval.request(tmp_path).words[:3] == ("A run.", *silo.privacy_lines(kinds)[:2])
    approval.answer(tmp_path, subject, approved=True)
    approval.wait_for(tmp_path, subject, ["A run."], ["that voter is there already: it costs nothing more"])


def test_chance_does_not_come_from_the_seed(promised, tmp_path):
    """Who knows the run's seed learns nothing of the noise: the same run elsewhere has another voter."""
    Federation(silos(Privacy(epsilon=8)), POOL, seed=0).run(tmp_path / "run")
    assert (votes_of(tmp_path / "run", "tree") != votes_of(promised[0] / "run-0", "tree")).any()
    assert account_lines(tmp_path / "run" / "silos" / "tree")[1].count("in this run alone") == 1


def test_a_method_without_votes_costs_nothing(tmp_path):
    ledger = tmp_path / "ledger"
    Federation(silos(Privacy(epsilon=8, ledger=ledger)), method=Local()).run(tmp_path / "run")
    assert account_lines(tmp_path / "run" / "silos" / "tree")[0] == "it did not vote"
    assert '"what": "voter"' not in (ledger / "ledger.jsonl").read_text()


def test_a_run_goes_on_with_the_promise_that_it_began_with(promised):
    folder, privacy = promised
    other = Federation(silos(privacy.model_copy(update={"epsilon": 4.0})), POOL)
    with pytest.raises(
        CosiloError, match=r"is not what it was when the run began: privacy.epsilon \(was 8.0, now 4"
    ):
        other.run(folder / "run-0")


def test_a_voter_abstains_for_a_learner_that_cannot(promised):
    from sklearn.svm import LinearSVC

    problems = Federation(silos(Privacy(epsilon=8), LinearSVC()), POOL, CoFED(margin=0.2)).check()
    assert problems == []


def test_one_record_more_holds_out_no_other_record():
    """A guarantee for one record would mean little if that record moved others in or out of training."""

    def trained_on(n):
        data = PrivateData("silo 'a'", _task(), X[:n], Y[:n].astype(str), 0.25, 0.2, one_by_one=True)
        data.split(seed=n)
        return {row.tobytes() for row in data.train[0]}

    before, after = trained_on(300), trained_on(301)
    assert len(before ^ after) <= 1
    assert 0.65 * 300 < len(before) < 0.85 * 300


def _task():
    from cosilo import Task

    return Task(tuple("0123456789"))


def test_a_delta_that_would_allow_to_show_a_record_is_refused():
    with pytest.raises(
        ConfigError, match=r"silo 'a': privacy.delta = 0.01 would allow it to show one of its 226 records"
    ):
        Silo("a", X[:300], Y[:300], GaussianNB(), privacy=Privacy(epsilon=8, delta=0.01))


def test_a_silo_that_is_killed_while_it_votes_votes_the_same_and_pays_once(tmp_path):
    """Killed after the voter was kept and before the reply is: what the resumed run sends is that voter's."""
    script = textwrap.dedent(f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_private_votes import *
        from cosilo.runs.silo_record import SiloRecord

        def die(self, number, step, *rest, kept=SiloRecord.complete):
            if step == "label" and sys.argv[1] == "die":
                os.kill(os.getpid(), signal.SIGKILL)
            return kept(self, number, step, *rest)

        SiloRecord.complete = die
        federation = Federation(silos(Privacy(epsilon=8, ledger={str(tmp_path / "ledger")!r})), POOL)
        federation.run({str(tmp_path / "run")!r})
    """)
    died = subprocess.run([sys.executable, "-c", script, "die"], check=False)
    assert died.returncode == -9
    (kept,) = (tmp_path / "ledger").glob("*.safetensors")
    before = kept.read_bytes()
    subprocess.run([sys.executable, "-c", script, "live"], check=True)
    assert kept.read_bytes() == before
    said = decode(before)["chances"].argmax(axis=1)
    np.testing.assert_array_equal(votes_of(tmp_path / "run", "tree"), said)
    assert (tmp_path / "ledger" / "ledger.jsonl").read_text().count('"what": "voter"') == 1


def test_a_refusal_tells_nothing_that_the_private_votes_do_not(monkeypatch):
    """Two models that say different things, and the same private votes: every refusal is the same."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.ones(10), len(POOL))
    monkeypatch.setattr(PrivateVotes, "opinions", lambda self: Opinions(chances, 500.0))
    pair = []
    for learner in (GaussianNB(), DummyClassifier(strategy="constant", constant=3)):
        silo = Silo("a", X[:300], Y[:300], learner, pool=POOL, privacy=Privacy(epsilon=1))
        silo.allow = Allow()
        silo.fit(LOCAL)
        silo.label_pool()
        pair.append(silo)
    assert (pair[0].learner.predict(POOL) != pair[1].learner.predict(POOL)).mean() > 0.5
    votes, told = pair[0].sent_votes, []
    for right in np.linspace(0, 0.4, 60):
        index = np.sort(rng.choice(len(POOL), 100, replace=False))
        wrong = (votes[index] + rng.integers(1, 10, 100)) % 10
        label = np.where(rng.random(100) < right, votes[index], wrong)
        told.append([refuses(silo, silo.pool_lessons(index, label)) for silo in pair])
    assert all(one == other for one, other in told)
    assert {one for one, _ in told} == {True, False}


@pytest.mark.parametrize(
    ("epsilon", "count", "compared"), [(1, 399.0, False), (1, 400.0, True), (8, 49.0, False), (8, 51.0, True)]
)
def test_votes_that_are_mostly_noise_refuse_nothing(monkeypatch, epsilon, count, compared):
    """Which these are follows from ε and the noisy number of records, which the account pays for."""
    chances = np.random.default_rng(0).dirichlet(np.ones(10), len(POOL))
    monkeypatch.setattr(PrivateVotes, "opinions", lambda self: Opinions(chances, count))
    silo = Silo("a", X[:300], Y[:300], GaussianNB(), pool=POOL, privacy=Privacy(epsilon=epsilon))
    silo.allow = Allow()
    index = np.arange(len(POOL))
    assert not refuses(silo, silo.pool_lessons(index, np.zeros(len(POOL), int)))  # it has not voted
    votes = silo.label_pool()
    assert refuses(silo, silo.pool_lessons(index, (votes + 1) % 10)) is compared
    assert not refuses(silo, silo.pool_lessons(index, votes))


def test_a_ledger_of_an_earlier_version_has_votes_that_refuse_nothing(tmp_path):
    """It kept no number of records; its votes are what they were."""
    privacy = Privacy(epsilon=8, ledger=tmp_path / "ledger")
    silo = Silo("a", X[:300], Y[:300], GaussianNB(), pool=POOL, privacy=privacy)
    silo.allow, silo.record = Allow(), tmp_path / "run"
    index, votes = np.arange(len(POOL)), silo.label_pool()
    assert refuses(silo, silo.pool_lessons(index, (votes + 1) % 10))
    (path,) = (tmp_path / "ledger").glob("*.safetensors")
    kept = encode({"chances": decode(path.read_bytes())["chances"]})
    lines = (tmp_path / "ledger" / "ledger.jsonl").read_text()
    was, now = (sha256(content).hexdigest() for content in (path.read_bytes(), kept))
    path.write_bytes(kept)
    (tmp_path / "ledger" / "ledger.jsonl").write_text(lines.replace(was, now))
    np.testing.assert_array_equal(silo.label_pool(), votes)
    assert not refuses(silo, silo.pool_lessons(index, (votes + 1) % 10))


def refuses(silo, lessons):
    try:
        silo.hold_against_votes(lessons)
    except Refused:
        return True
    return False
