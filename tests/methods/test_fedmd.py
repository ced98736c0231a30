"""FedMD, by hand on one-parameter models and end to end on digits with different architectures."""

import os
import signal
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, FedMD, Run, Silo
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import DataError, LearnerError, RunError
from cosilo.protocol.message import Fields

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402
from cosilo.learners.zoo import cnn, mlp  # noqa: E402
from cosilo.methods.fedmd import _mean  # noqa: E402

SHARED = ["logits", "metrics"]
#: One epoch of everything in one batch, nothing held out.
ONCE = FedMD(
    rounds=1,
    public_epochs=1,
    public_lr=0.01,
    public_patience=None,
    private_epochs=1,
    private_batch=100,
    private_patience=None,
    revisit_epochs=1,
    revisit_batch=100,
)


class OneWeight(torch.nn.Module):
    """Two classes with the logits 0 and w·x."""

    def __init__(self, input_shape=(1,), n_classes=2):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, x):
        return torch.cat([torch.zeros_like(x), self.w * x], dim=1)


A = ([1.0, 2.0, -1.0, 3.0], [1, 0, 0, 1])
B = ([-2.0, 1.0, 0.5, -1.5], [1, 0, 0, 1])
PUBLIC = ([0.5, -1.0, 2.0, 1.5], [1, 1, 0, 1])


def one(name, X, y, **options):
    training = Training(optimiser="sgd", momentum=0, lr=0.1, batch=100, epochs=1, schedule="constant")
    return Silo(
        name, np.array(X)[:, None], y, Network(OneWeight, training), test=None, shares=SHARED, **options
    )


def pair(method, **options):
    X, y = PUBLIC
    return Federation([one("a", *A), one("b", *B)], np.array(X)[:, None], method, pool_labels=y, **options)


def gradient(w, X, y):
    """Of the mean cross-entropy: mean of (sigmoid(w·x) − y)·x."""
    X, y = np.array(X), np.array(y)
    return float(np.mean((1 / (1 + np.exp(-w * X)) - y) * X))


def transferred(data):
    """After one step of Adam on the pool, which is as long as its learning rate, and one of SGD."""
    w = 0.5 - 0.01 * np.sign(gradient(0.5, *PUBLIC))
    return w - 0.1 * gradient(w, *data)


def weight(silo):
    return float(silo.learner.weights()["w"][0])


def test_one_round_by_hand(tmp_path):
    before = [transferred(data) for data in (A, B)]
    consensus = np.mean(before)  # the mean of w·x over silos is the mean weight times x
    assert abs(before[0] - before[1]) > 0.05
    run = pair(ONCE).run(tmp_path / "run")
    for name, data, w in (("a", A, before[0]), ("b", B, before[1])):
        # MAE over 4 instances and 2 outputs, of which the first is always right: the gradient is the sign of
        # the error times x, over 8, however large the error is. That of MSE would be far smaller.
        w -= 0.1 * np.sign(w - consensus) * np.abs(PUBLIC[0]).sum() / 8
        w -= 0.1 * gradient(w, *data)
        assert weight(run.silos[name]) == pytest.approx(w, abs=1e-6)


def test_scores_are_the_outputs_before_softmax():
    silo = pair(ONCE).silos[0]
    ONCE.pretrain(silo, classes=["0", "1"])
    logits = ONCE.score(silo, draw=3)["logits"]
    assert logits.dtype == np.float32
    w = transferred(A)
    assert logits == pytest.approx(np.array([[0.0, w * x] for x in PUBLIC[0]]), abs=1e-6)
    assert not silo.learner.module_.training


def test_the_consensus_is_the_plain_mean_of_those_who_answered():
    replies = {name: Fields({"logits": np.float32([[1, place]])}) for place, name in enumerate("abc")}
    assert _mean(replies).tolist() == [[1, 1]]
    assert _mean(replies).dtype == np.float32
    del replies["a"]
    assert _mean(replies).tolist() == [[1, 1.5]]


def test_a_silo_at_the_consensus_digests_nothing():
    silo = pair(ONCE).silos[0]
    ONCE.pretrain(silo, classes=["0", "1"])
    silo.changed = False
    before = weight(silo)
    ONCE.digest(silo, 3, ONCE.score(silo, 3)["logits"])
    assert weight(silo) == before
    assert silo.changed  # saved with the step


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_network_that_went_astray_does_not_digest(broken):
    silo = pair(ONCE).silos[0]
    ONCE.pretrain(silo, classes=["0", "1"])
    silo.network.set_weights({"w": np.float32([broken])})
    with pytest.raises(LearnerError, match="OneWeight: loss became NaN in epoch 1"):
        ONCE.digest(silo, 3, np.zeros((4, 2), np.float32))


def test_all_silos_draw_the_same_part_and_another_one_each_round():
    method = ONCE.model_copy(update={"subset": 2})
    silos = pair(method).silos
    first, second = (method._part(silo, 5) for silo in silos)
    assert first.tolist() == second.tolist()
    assert len({tuple(method._part(silos[0], draw)[:, 0]) for draw in range(20)}) > 1


def test_local_training_gets_the_private_epochs_of_all_rounds():
    silo, w = one("a", *A), 0.5
    FedMD(rounds=2, private_epochs=3, revisit_epochs=4).alone(silo)
    for _ in range(3 + 2 * 4):
        w -= 0.1 * gradient(w, *A)
    assert weight(silo) == pytest.approx(w, abs=1e-6)


def test_the_silo_does_not_trust_the_coordinator():
    silo = pair(ONCE).silos[0]
    ONCE.pretrain(silo, classes=["0", "1"])
    for shape in ((4, 3), (3, 2), (4,)):
        with pytest.raises(DataError, match=r"silo 'a': got targets of shape .*; wants \(4, 2\)"):
            ONCE.digest(silo, 3, np.zeros(shape, np.float32))
    with pytest.raises(DataError, match="silo 'a': got targets that are not finite"):
        ONCE.digest(silo, 3, np.full((4, 2), np.nan, np.float32))
    silo.use_pool(silo.pool, labels=[0, 1, 2, 2])
    with pytest.raises(DataError, match="silo 'a', pool: label '2' is outside the task"):
        ONCE.pretrain(silo, classes=["0", "1"])


def test_early_stopping_never_sees_test_data_and_holds_validation_out(monkeypatch):
    """Training sees the pool without its tenth, then the silo's data without its validation part."""
    seen = []
    train_network = Network.train

    def spy(self, X, y, *, validation=None, training=None, **options):
        seen.append(
            (X[:, 0].tolist(), None if validation is None else validation[0][:, 0].tolist(), training)
        )
        return train_network(self, X, y, validation=validation, training=training, **options)

    monkeypatch.setattr(Network, "train", spy)
    X, y = np.arange(40.0)[:, None] / 40, [0, 1] * 20
    silo = Silo("a", X, y, Network(OneWeight), test=0.25, pool=X + 5, pool_labels=y)
    silo.data.split(seed=1)
    method = FedMD(private_epochs=2, public_epochs=2)
    method.pretrain(silo, classes=["0", "1"])
    method.revisit(silo)
    (public, public_held, public_recipe), (private, private_held, private_recipe), (revisited, _, last) = seen
    assert (len(public), len(public_held)) == (36, 4)
    assert sorted(public + public_held) == pytest.approx((X + 5)[:, 0].tolist())
    train, test = (set(part[0][:, 0].tolist()) for part in (silo.data.train, silo.data.test))
    assert set(private) | set(private_held) == set(revisited) == train
    assert not set(private) & set(private_held)
    assert not train & test
    assert (public_recipe.optimiser, public_recipe.lr, public_recipe.batch) == ("adam", 1e-3, 128)
    assert (public_recipe.patience, private_recipe.patience, last.patience) == (3, 10, None)
    assert (private_recipe.batch, last.batch, last.epochs) == (32, 5, 4)


# ---------------------------------------------------------------------- three architectures

DIGITS_X, DIGITS_Y = load_digits(return_X_y=True)
IMAGES = (DIGITS_X.reshape(-1, 8, 8) / 16).astype(np.float32)
RECIPE = Training(epochs=4, lr=0.01, batch=20)


class Own(torch.nn.Module):
    """A module that cosilo does not know, with batch norm."""

    def __init__(self, input_shape, n_classes):
        super().__init__()
        self.one = torch.nn.Linear(64, 24)
        self.norm = torch.nn.BatchNorm1d(24)
        self.two = torch.nn.Linear(24, n_classes)

    def forward(self, x):
        return self.two(torch.tanh(self.norm(self.one(x.flatten(1)))))


def dense(input_shape, n_classes):
    return mlp(input_shape, n_classes, hidden=[32])


def small_cnn(input_shape, n_classes):
    return cnn(input_shape, n_classes, hidden=32)


def part(classes, start, n):
    index = np.flatnonzero(np.isin(DIGITS_Y, classes))
    index = index[index >= start][:n]
    return IMAGES[index], DIGITS_Y[index]


def silos(builders=(dense, small_cnn, Own), networks=(Network,) * 3, n=40):
    tasks = {"dense": ([0, 1, 2], 0), "cnn": ([1, 2, 3], 300), "own": ([0, 2, 3], 600)}
    return [
        Silo(name, *part(*task, n), network(builder, RECIPE), shares=SHARED, test=part(task[0], 1200, 150))
        for (name, task), builder, network in zip(tasks.items(), builders, networks, strict=True)
    ]


#: Public digits: two that silos have, and three that nobody has.
POOL = part([2, 3, 5, 6, 7], 900, 150)
QUICK = FedMD(
    rounds=3,
    subset=60,
    public_epochs=3,
    private_epochs=3,
    revisit_epochs=2,
    revisit_batch=10,
    evaluate_every=2,  # so that one round changes models without a score
)


def digits(method=QUICK, members=None, **options):
    pool, labels = POOL
    return Federation(members or silos(), pool, method, pool_labels=labels, **options)


def same(first: Run, second: Run) -> bool:
    pairs = [(first.silos[n].learner.weights(), second.silos[n].learner.weights()) for n in first.silos]
    equal = all((a[key] == b[key]).all() for a, b in pairs for key in a)
    return equal and first.result == second.result


def test_three_architectures_with_public_classes_that_nobody_has(tmp_path):
    method = FedMD(rounds=5, subset=100, private_epochs=10, evaluate_every=2)
    run = digits(method).run(tmp_path / "run")
    # Outputs for 0, 1, 2, 3 of the silos and 2, 3, 5, 6, 7 of the pool.
    assert {silo.learner.n_classes_ for silo in run.silos.values()} == {7}
    assert set(run.silos["cnn"].predict(IMAGES[:50])) <= {1, 2, 3}
    assert sorted(run.result["scores"]) == ["federated", "local", "round 0", "round 2", "round 4"]
    assert run.result["failures"] == []
    means = {stage: np.mean(list(run.scores(stage).values())) for stage in run.result["scores"]}
    assert means["federated"] > 0.9
    assert means["federated"] > means["local"] - 0.02
    steps = [ask["step"] for ask in run.asks() if ask["step"] not in ("judge", "evaluate")]
    assert steps == ["hello", "alone", "pretrain", *["score", "digest", "revisit"] * 5]
    left = {field for entry in run.audit("own") for field in entry["fields"]}
    assert left == {"classes", "pool", "offers", "version", "logits", "accuracy", "instances"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return digits().run(tmp_path_factory.mktemp("whole") / "run")


def test_the_same_with_workers(tmp_path, undisturbed):
    assert same(digits(engine=LocalEngine(2)).run(tmp_path / "run"), undisturbed)


@pytest.fixture(scope="module")
def operations(tmp_path_factory):
    """How many file operations a run has."""
    folder = tmp_path_factory.mktemp("count")
    assert run_until(folder / "run", None) == 0
    return int((folder / "run.count").read_text())


def run_until(folder, limit, members=None):
    """As the crash tests do it: a child that dies at one of its file operations."""
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event, arguments):
            nonlocal count
            if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir"):
                count += str(arguments[0]).startswith(str(folder))
                if count == limit:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            digits(members=members).run(folder)
            folder.with_name("run.count").write_text(str(count))
        finally:
            os._exit(0)  # a failed child must not go on with the other tests
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("at", [0.1, 0.2, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97])
def test_a_killed_run_goes_on_from_its_last_mark(tmp_path, undisturbed, operations, at):
    assert run_until(tmp_path / "run", int(operations * at)) == signal.SIGKILL
    assert same(digits().run(tmp_path / "run"), undisturbed)


def test_a_run_does_not_grow_with_its_rounds(tmp_path):
    sizes = {}
    for rounds in (2, 8):
        folder = tmp_path / str(rounds)
        digits(QUICK.model_copy(update={"rounds": rounds, "evaluate_every": 100})).run(folder)
        logs = {"events.jsonl", "asks.jsonl", "audit.jsonl"}
        sizes[rounds] = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file() and p.name not in logs)
    assert sizes[8] < 1.02 * sizes[2]


class Wide(Network):
    """Answers with one output too many."""

    def logits(self, X):
        answer = super().logits(X)
        return np.concatenate([answer, answer[:, :1]], axis=1)


class Sick(Network):
    """Answers with NaN."""

    def logits(self, X):
        return super().logits(X) * np.nan


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (Wide, "silo 'own': its reply was rejected: field 'logits' is float32[60, 8]; wants float32[60, 7]"),
        (Sick, "silo 'own': field 'logits': holds NaN or infinity"),
    ],
)
def test_a_bad_reply_does_not_stop_the_round(tmp_path, network, text):
    run = digits(members=silos(networks=(Network, Network, network))).run(tmp_path / "run")
    assert [failure["text"] for failure in run.result["failures"]] == [text] * QUICK.rounds
    assert sorted(run.scores("federated")) == ["cnn", "dense", "own"]  # it still learns from the others


class Stubborn(Network):
    """Trains alone, and never goes on from there."""

    alone = False

    def fit(self, X, y, **options):
        self.alone = True
        super().fit(X, y, **options)
        self.alone = False

    def train(self, X, y, **options):
        if not self.alone:
            raise LearnerError("Stubborn: no")
        return super().train(X, y, **options)


def test_a_silo_without_pretraining_is_left_out(tmp_path):
    run = digits(members=silos(networks=(Network, Stubborn, Network))).run(tmp_path / "run")
    assert sorted(run.scores("local")) == ["cnn", "dense", "own"]
    assert sorted(run.scores("federated")) == ["dense", "own"]
    assert {tuple(ask["silos"]) for ask in run.asks() if ask["step"] == "score"} == {("dense", "own")}
    (failure,) = run.result["failures"]
    assert (failure["step"], failure["silo"]) == ("pretrain", "cnn")


def test_who_is_left_out_stays_out_when_the_run_goes_on(tmp_path, operations):
    members = silos(networks=(Network, Stubborn, Network))
    assert run_until(tmp_path / "run", int(0.7 * operations), members) == signal.SIGKILL
    assert (tmp_path / "run/journal/mark.safetensors").exists()
    run = digits(members=members).run(tmp_path / "run")
    assert {tuple(ask["silos"]) for ask in run.asks() if ask["step"] == "score"} == {("dense", "own")}


def test_after_fedmd_a_silo_may_join_cofed_as_itself(tmp_path):
    members = [
        Silo(silo.name, *part([0, 1, 2], 0, 40), Network(Own, RECIPE), shares=[*SHARED, "labels"])
        for silo in silos()
    ]
    digits(members=members).run(tmp_path / "fedmd")
    run = digits(CoFED(alpha=0.4), members).run(tmp_path / "cofed")  # a labelled pool is a pool
    assert run.silos["own"].learner.n_classes_ == 3


# ---------------------------------------------------------------------- who cannot take part


def test_a_decision_tree_is_told_what_it_can_join(tmp_path):
    tree = Silo("tree", *part([0, 1], 0, 40), DecisionTreeClassifier(), shares=SHARED)
    federation = digits(members=[*silos(), tree])
    (line,) = federation.check()
    assert line == (
        "silo 'tree': DecisionTreeClassifier is no torch network, which fedmd needs; "
        "`cosilo methods` shows which methods take any learner"
    )
    with pytest.raises(RunError, match="`cosilo methods` shows which methods take any learner"):
        federation.run(tmp_path / "run")


def test_wrong_labels_at_one_silo_are_found_by_the_fingerprint(tmp_path):
    pool, labels = POOL
    members = silos()
    odd = Silo("odd", *part([0, 1], 0, 40), Network(Own), shares=SHARED, pool=pool, pool_labels=labels[::-1])
    federation = digits(members=[*members, odd])
    (line,) = federation.check()
    assert line.startswith(f"silo 'odd': its pool has fingerprint {odd.pool_fingerprint}")
    with pytest.raises(RunError, match="silo 'odd': its pool has fingerprint"):
        federation.run(tmp_path / "run")


def test_a_silo_whose_own_pool_has_no_labels_is_told(tmp_path):
    bare = Silo("bare", *part([0, 1], 0, 40), Network(Own), shares=SHARED, pool=POOL[0])
    with pytest.raises(RunError) as error:
        digits(members=[*silos(), bare]).run(tmp_path / "run")
    assert str(error.value) == (
        "silo 'bare': its pool has no labels, which fedmd needs; "
        "set labelled = true for it, in Python pool_labels=…"
    )


def test_bytes_and_other_numbers_are_found_before_training():
    pool, labels = POOL
    federation = Federation(silos(), (pool * 255).astype(np.uint8), QUICK, pool_labels=labels)
    problems = federation.check(learners=False)
    assert len(problems) == 3
    assert problems[0].startswith("silo 'dense': its pool is bytes, its data other numbers; ")


def test_data_too_small_to_validate_with_is_found_before_training():
    (first, _) = pair(ONCE.model_copy(update={"private_patience": 3})).check()
    assert first.startswith("silo 'a': 4 training instances are too few to hold out 20% for validation")
    assert pair(ONCE).check() == []


def test_a_silo_that_does_not_share_logits_refuses(tmp_path):
    mute = Silo("mute", *part([0, 1], 0, 40), Network(Own), shares=["metrics"])
    with pytest.raises(RunError, match=r"does not share 'logits', which fedmd needs \(step 'score'"):
        digits(members=[*silos(), mute]).run(tmp_path / "run")


# ---------------------------------------------------------------------- as a command

TOML = """
[method]
use = "fedmd"
[pool]
path = "pool.npz"
[[silo]]
name = "north"
path = "north.npz"
shares = ["logits", "metrics"]
learner = { use = "mlp", hidden = [16] }
"""


@pytest.fixture
def command(tmp_path, monkeypatch, cosilo):
    np.savez(tmp_path / "north.npz", x=part([0, 1], 0, 40)[0], y=part([0, 1], 0, 40)[1])
    np.savez(tmp_path / "pool.npz", x=POOL[0], y=POOL[1])
    (tmp_path / "training.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    return cosilo


def test_check_says_what_to_set_and_whether_the_pool_is_labelled(command):
    code, _, errors = command("check", "training.toml")
    assert code == 2
    assert errors.strip() == (
        "error: fedmd needs a pool with labels; set labelled = true in [pool], in Python pool_labels=…"
    )
    code, output, _ = command("check", "training.toml", "--set", "pool.labelled=true")
    assert code == 0
    assert "pool 150 instances, labelled, fingerprint" in output
    code, output, _ = command("check", "training.toml", "--set", "method.use=local")
    assert "pool 150 instances, not labelled, fingerprint" in output
    assert "logits (step 'score', field 'logits')" in command("methods")[1]


def test_a_recipe_runs_and_makes_a_report(command, tmp_path):
    given = ["pool.labelled=true", "method.rounds=2", "method.private_epochs=2", "method.public_epochs=2"]
    sets = [word for one in given for word in ("--set", one)]
    code, output, _ = command("run", "training.toml", "--dir", "run", *sets)
    assert code == 0
    assert "fedmd" in output
    assert list(Run(tmp_path / "run").result["scores"]) == ["local", "round 0", "round 1", "federated"]
    page = (tmp_path / "run/report.html").read_text()
    assert "scores for each instance drawn from the pool, by class" in page
