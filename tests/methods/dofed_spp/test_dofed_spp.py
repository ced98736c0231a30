"""DoFed-SPP: who helps whom, labels by hand, the budget, downsized models, crashes, bad input."""

import os
import signal
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from cosilo import DoFedSPP, FedAvg, Federation, FedFomo, Local, Silo, Target
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError, DataError, RunError
from cosilo.runs.durable_files import read_lines

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training, zoo  # noqa: E402
from cosilo.methods.dofed_spp.reciprocal import Reciprocal  # noqa: E402
from cosilo.methods.packing import pack  # noqa: E402
from cosilo.silo.parts import Part  # noqa: E402

SHARES = ["weights", "similarity", "metrics", "size"]
X, Y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
GOOD = Training(optimiser="sgd", momentum=0.9, lr=0.05, batch=16, schedule="constant")


def small(shape, k):
    return zoo.mlp(shape, k, hidden=[24])


#: What each silo trains on and wants; the first two want what the last two train on, and the other way round.
PLANS = [((0, 1), (2, 3)), ((0, 1), (2, 3)), ((2, 3), (0, 1)), ((2, 3), (0, 1))]


def silos(plans=PLANS, shares=SHARES, learner=Network, labelled=4):
    found = []
    for place, (own, wanted) in enumerate(plans):
        rng = np.random.default_rng(place)
        pick = {c: rng.permutation(np.flatnonzero(c == Y)) for c in range(10)}
        mine = np.concatenate([pick[c][:40] for c in own])
        some = np.concatenate([pick[c][40 : 40 + labelled] for c in wanted])
        rest = np.concatenate([pick[c][60:90] for c in wanted])
        test = np.concatenate([pick[c][100:140] for c in wanted])
        target = Target(X[some], Y[some], unlabelled=X[rest], truth=Y[rest])
        found.append(
            Silo(
                f"silo-{place}",
                X[mine],
                Y[mine],
                learner(small, GOOD),
                target=target,
                test=(X[test], Y[test]),
                shares=shares,
            )
        )
    return found


METHOD = DoFedSPP(rounds=3, warm_up=8, target_epochs=8, stop_below=0.0)


def test_silos_need_not_train_alone_first(tmp_path):
    method = METHOD.model_copy(update={"local": False})
    run = Federation(silos(), method=method).run(tmp_path / "run")
    assert [ask["step"] for ask in run.asks()][:3] == ["hello", "wants", "begin"]
    assert list(run.result["scores"]) == ["round 1", "round 2", "round 3", "federated"]
    assert min(run.scores("federated").values()) > 0.8


def test_silos_are_helped_by_those_that_train_on_what_they_want(tmp_path):
    run = Federation(silos(), method=METHOD).run(tmp_path / "run")
    similarity = np.array(run.result["similarity"]["values"])
    assert similarity.sum(axis=1) == pytest.approx(1, abs=1e-3)
    assert similarity[:2, 2:].sum(axis=1) == pytest.approx(1, abs=1e-3)  # rows learn from columns
    assert similarity[2:, :2].sum(axis=1) == pytest.approx(1, abs=1e-3)
    labelling = [score["accuracy"] for score in run.result["labelling"]["federated"].values()]
    assert np.mean(labelling) > 0.9
    assert np.mean(list(run.scores("federated").values())) > 0.9
    frame = run.silos["silo-0"].target_labels()
    assert len(frame) == 60
    assert set(frame["label"]) <= {2, 3}
    assert set(frame["speakers"]) == {"silo-2,silo-3"} or set(frame["speakers"]) == {"silo-3,silo-2"}
    assert ((frame["confidence"] > 0) & (frame["confidence"] <= 1)).all()


def test_it_leads_the_others_at_both_objectives(tmp_path):
    found = {}
    for method in (METHOD, FedAvg(rounds=4, epochs=2), FedFomo(rounds=4, epochs=2), Local()):
        run = Federation(silos(), method=method).run(tmp_path / method.name)
        stage = "local" if method.name == "local" else "federated"
        labelling = np.mean([score["accuracy"] for score in run.result["labelling"][stage].values()])
        found[method.name] = np.mean(list(run.scores(stage).values())), labelling
    assert all(found["dofed_spp"][1] >= other[1] for other in found.values())


def test_labels_by_hand():
    """Two models of one weight matrix each; eq. 20 on three points, worked out with the softmax itself."""
    silo = silos()[0]
    silo.network.widen(["0", "1", "2", "3"])
    start = silo.network.weights()
    rng = np.random.default_rng(5)
    models = {
        name: {key: (array + rng.normal(size=array.shape)).astype(np.float32) for key, array in start.items()}
        for name in ("silo-2", "silo-3")
    }
    weights = {"silo-2": 0.3, "silo-3": 0.6}
    moved = Reciprocal(silo).label(models, weights)
    assert moved == 1.0
    total = 0
    for name, weight in weights.items():
        network = silo.network.another(None)
        network.set_weights(models[name])
        total = total + weight * network.probabilities(silo.data.target.unlabelled)
    expected = np.array([2, 3])[total[:, [2, 3]].argmax(axis=1)]  # among its target classes only
    assert silo.target_labels()["label"].tolist() == expected.tolist()
    assert silo.target_labels()["confidence"].to_numpy() == pytest.approx(
        total[:, [2, 3]].max(axis=1) / 0.9, abs=1e-6
    )
    assert Reciprocal(silo).label(models, weights) == 0.0  # nothing changed


def test_its_own_model_is_no_nearer_than_the_nearest_other():
    silo = silos()[1]
    names = [f"silo-{place}" for place in range(4)]
    # γ·G₂ = 0.05 · 4 = 0.2, so that gains are 0.05 · (1 − 1) + 0.2 = 0.2 for each model that was looked at.
    silo.notes["losses"] = np.array([1.0, 1.0, 1.0, np.nan])
    silo.notes["distances"] = np.array([8.0, 0.01, 4.0, np.nan])
    # Divided by 8, 4 instead of 0.01, and 4: 0.025, 0.05, 0.05.
    found = Reciprocal(silo).ratios(1.0, names, g1=0.0, g2=4.0)
    assert found == pytest.approx([0.2, 0.4, 0.4, 0.0])
    # Alone there is no other: its own model gets all.
    silo.notes["distances"] = np.array([np.nan, 0.0, np.nan, np.nan])
    silo.notes["losses"] = np.array([np.nan, 1.0, np.nan, np.nan])
    assert Reciprocal(silo).ratios(1.0, names, g1=0.0, g2=4.0).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_without_a_given_bound_it_is_measured():
    silo = silos()[1]
    names = [f"silo-{place}" for place in range(4)]
    silo.notes["losses"] = np.array([0.5, 0.7, 4.0, np.nan])
    silo.notes["distances"] = np.array([1.0, 1.0, 1.0, np.nan])
    silo.notes["untrained loss"] = 1.5
    # The target model fits its few points: no loss is below its own.
    assert Reciprocal(silo).ratios(0.1, names, g1=0.0, g2=0.0) is None
    # G₂ = 1.5 + (0.5 − 0.1) = 1.9: gains are 0.1 − 0.5 + 1.9 = 1.5, then 1.3, and below 0.
    found = Reciprocal(silo).ratios(0.1, names, g1=0.0, g2=None)
    assert found == pytest.approx([1.5 / 2.8, 1.3 / 2.8, 0.0, 0.0])
    assert silo.notes.array("ratios").tolist() == found.tolist()
    # A target model that diverged: G₂ is 0, not less; gains are 5.5, 5.3 and 2.
    assert Reciprocal(silo).ratios(6.0, names, g1=0.0, g2=None)[2] == pytest.approx(2 / 12.8)
    # Otherwise what the target model loses does not matter.
    assert Reciprocal(silo).ratios(1.2, names, g1=0.0, g2=None) == pytest.approx(found)
    # Where everything diverged no model helps, and nobody stumbles over it.
    silo.notes["losses"] = np.array([np.inf, np.inf, np.inf, np.nan])
    assert Reciprocal(silo).ratios(0.1, names, g1=0.0, g2=None) is None


def test_ratios_do_not_freeze(tmp_path):
    """With G₂ = 0 they do: the loss of the target model goes to 0, and fewer and fewer are below that."""
    method = DoFedSPP(rounds=15, warm_up=8, target_epochs=20, stop_below=0.0)
    run = Federation(silos(), method=method).run(tmp_path / "measured")
    assert [one["fresh_ratios"] for one in run.result["exchange"]] == [4] * 15
    frozen = Federation(silos(), method=method.model_copy(update={"g2": 0.0})).run(tmp_path / "zero")
    assert frozen.result["exchange"][-1]["fresh_ratios"] < 4


def begun(place=0):
    """A silo after phase 0, beside the models of all."""
    everyone, names = silos(), [f"silo-{place}" for place in range(4)]
    models = {}
    for silo in everyone:
        METHOD.begin(silo, vocabulary=["0", "1", "2", "3"])
        models[silo.name] = METHOD.warm(silo, weights=everyone[0].network.weights())["weights"]
    METHOD.look(everyone[place], models=pack(models), silos=names)
    METHOD.compare(everyone[place], silos=names)
    return everyone[place], models, names


def test_ratios_are_of_the_target_model_of_the_round_before(monkeypatch):
    """Line 32 of Algorithm 2: in round t, the loss of θ_tar,t−1; nothing was trained before round 1."""
    silo, models, names = begun()
    used, began = [], []

    def ratios(self, own_loss, *others):
        used.append(own_loss)

    monkeypatch.setattr(Reciprocal, "ratios", ratios)
    for number in (1, 2, 3):
        began.append(silo.network.loss(Part.TARGET))
        METHOD.learn(silo, silos=names, labellers=2, stage=f"round {number}", models=pack(models))
    assert used == [began[0], began[0], began[1]]
    assert began[0] > 2 * began[1]


def test_distances_are_from_the_reciprocal_model_of_the_round_before():
    """θ_rec,0 before the first round and in it, then θ_rec,1, which a silo uploaded for the first round."""
    silo, models, names = begun()
    flat = {name: np.concatenate([a.ravel() for a in model.values()]) for name, model in models.items()}
    start = silo.network.weights()  # the target model has the same, and has not been trained
    before = [np.concatenate([start[key].ravel() for key in models["silo-0"]])] * 2 + [flat["silo-0"]]
    for number in (0, 1, 2):
        if number > 0:
            METHOD.learn(silo, silos=names, labellers=2, stage=f"round {number}", models=pack(models))
        apart = [np.linalg.norm(flat[name].astype(np.float64) - before[number]) for name in names]
        assert silo.notes.array("distances") == pytest.approx(apart, rel=1e-6)


def test_models_that_do_not_label_are_looked_at_again():
    """Phase 4-1: all that were broadcast; a model that did not help may have become one that does."""
    silo, models, names = begun()
    silo.notes["ratios"] = np.array([0.0, 0.0, 0.6, 0.4])  # B = 1 of them labels
    silo.notes["losses"] = np.array([9.0, 9.0, 9.0, 9.0])
    METHOD.learn(silo, silos=names, labellers=1, stage="round 1", models=pack(models))
    assert set(silo.target_labels()["speakers"]) == {"silo-2"}
    for name, loss in zip(names, silo.notes.array("losses"), strict=True):
        network = silo.network.another()
        network.set_weights(models[name])
        assert loss == network.loss(Part.TARGET)


def test_the_best_of_the_models_that_travel_label():
    silo, names = silos()[0], list("abcd")
    silo.notes["ratios"] = np.array([0.0, 0.2, 0.5, 0.3])
    assert Reciprocal(silo).best(["a", "b", "d"], names, 2) == {"d": 0.3, "b": 0.2}
    assert Reciprocal(silo).best(["a"], names, 3) == {}  # a model that does not help has nothing to say


def test_k_and_b_without_a_budget(tmp_path):
    method = METHOD.model_copy(update={"uploads": 2, "labellers": 1, "rounds": 2})
    run = Federation(silos(), method=method).run(tmp_path / "run")
    for one in run.result["exchange"]:
        assert len(one["uploaded"]) == 2
        assert one["labellers"] == 1
    uploads = [ask for ask in run.asks() if ask["step"] == "upload"]
    assert [len(ask["silos"]) for ask in uploads] == [2]  # before the first round everyone's were


def size_of_a_model():
    return sum(p.numel() * 4 for p in small((64,), 4).parameters())


def test_a_budget_decides_and_is_kept(tmp_path):
    # An upload takes a second. Four before the first round, none in it; 5.5 s are left then for two rounds.
    rate = float(size_of_a_model())
    budget = {"total": 9.5, "uplink": {"rate": rate}}
    method = DoFedSPP(rounds=3, warm_up=5, stop_below=0.0, budget=budget)
    run = Federation(silos(), method=method).run(tmp_path / "run")
    exchange = run.result["exchange"]
    assert [one["seconds"] for one in exchange] == [4.0, 6.0, 9.0]
    assert [len(one["uploaded"]) for one in exchange][1:] == [2, 3]
    assert run.result["budget"] == 9.5
    uploads = [ask for ask in run.asks() if ask["step"] == "upload"]
    assert [len(ask["silos"]) for ask in uploads] == [2, 3]


def test_a_run_ends_when_its_budget_is_used_up(tmp_path):
    rate = float(size_of_a_model())
    uplink = {"rate": rate, "latency": 0.5, "shared": False}  # 1.5 s, whoever uploads
    budget = {"total": 8.0, "uplink": uplink, "warm_up": 2.0, "training": 1.0}
    method = DoFedSPP(rounds=3, warm_up=5, stop_below=0.0, budget=budget)
    run = Federation(silos(), method=method).run(tmp_path / "run")
    # 2 + 1.5 before the first round, 1 in it, 2.5 in the second; a third would end at 9.5.
    assert [one["seconds"] for one in run.result["exchange"]] == [4.5, 7.0]
    assert list(run.result["scores"])[-1] == "federated"


def test_a_budget_that_is_used_up_before_the_first_round(tmp_path):
    budget = {"total": 4.5, "uplink": {"rate": float(size_of_a_model())}}
    words = "got 4.5 s; the warm-up and 4 uploads before the first round take 4 s; wants at least 5 s"
    with pytest.raises(ConfigError, match=words):
        Federation(silos(), method=DoFedSPP(rounds=1, budget=budget)).run(tmp_path / "run")


def test_a_budget_for_nothing_says_what_would_do(tmp_path):
    budget = {"total": 3.0, "uplink": {"rate": float(size_of_a_model())}, "training": 5.0}
    federation = Federation(silos(), method=DoFedSPP(rounds=3, budget=budget))
    (line,) = federation.check()  # once, not for each silo
    assert line.startswith(
        "method.budget.total: got 3 s; the budget is 1 s a round; wants at least 6 s, 18 s"
    )
    with pytest.raises(RunError, match=r"wants at least 6 s, 18 s for 3 rounds.*most is training"):
        federation.run(tmp_path / "run")


def test_it_stops_when_labels_do_not_change_any_more(tmp_path):
    method = METHOD.model_copy(update={"rounds": 8, "stop_below": 0.2})
    run = Federation(silos(), method=method).run(tmp_path / "run")
    moved = [one["labels_moved"] for one in run.result["exchange"]]
    assert moved[0] == 1.0
    assert all(share >= 0.2 for share in moved[:-1])
    assert len(moved) < 8
    assert moved[-1] < 0.2
    assert list(run.result["scores"])[-1] == "federated"


def test_silos_without_a_model_that_helps_do_not_end_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(Reciprocal, "best", lambda self, models, silos, count: {})
    method = METHOD.model_copy(update={"rounds": 3, "stop_below": 0.5})
    run = Federation(silos(), method=method).run(tmp_path / "run")
    assert [one["labels_moved"] for one in run.result["exchange"]] == [None] * 3
    with pytest.raises(DataError, match="silo 'silo-0': has no labeller"):
        run.silos["silo-0"].label(X[:3])


def test_the_models_that_labelled_label_new_points(tmp_path):
    method = METHOD.model_copy(update={"components": 2, "rounds": 2})
    run = Federation(silos(), method=method).run(tmp_path / "run")
    for silo in run.silos.values():
        again = silo.label(silo.data.target.unlabelled)  # as if they were new
        assert again.equals(silo.target_labels())
    wanted = np.flatnonzero(np.isin(Y, [2, 3]))[-60:]
    assert np.mean(run.silos["silo-0"].label(X[wanted])["label"] == Y[wanted]) > 0.9


def test_where_those_that_labelled_did_not_travel_at_last_others_that_help_are_kept():
    silo, models, names = begun()
    silo.notes["speakers"], silo.notes["speaker ratios"] = ["silo-3"], np.array([1.0])
    silo.notes["ratios"] = np.array([0.0, 0.0, 0.25, 0.75])
    METHOD.learn(silo, silos=names, labellers=2, stage="round 1", models=pack({"silo-1": models["silo-1"]}))
    silo.notes["ratios"] = np.array([0.0, 0.0, 0.25, 0.75])
    fewer = {name: models[name] for name in ("silo-1", "silo-2")}
    METHOD.finish(silo, silos=names, models=pack(fewer))
    assert set(silo.label(X[:3])["speakers"]) == {"silo-2"}


class Stopping(DoFedSPP):
    """Dies when it is over, the first time."""

    def finish(self, silo, **message):
        if os.environ.pop("DIE", None):
            os.kill(os.getpid(), signal.SIGKILL)
        super().finish(silo, **message)


Stopping.finish.__step__ = DoFedSPP.finish.__step__


def test_a_run_that_was_over_stays_over_when_it_is_resumed(tmp_path, killed):
    def federation():
        return Federation(silos(), method=Stopping(rounds=8, warm_up=8, target_epochs=8, stop_below=0.2))

    whole = federation().run(tmp_path / "whole")

    def dying():
        os.environ["DIE"] = "1"
        federation().run(tmp_path / "killed")

    killed(dying)
    assert federation().run(tmp_path / "killed").result == whole.result


def test_downsized_models_still_predict_and_their_error_is_told(tmp_path):
    method = METHOD.model_copy(update={"components": 1, "rounds": 1})
    run = Federation(silos(), method=method).run(tmp_path / "one")
    errors = run.result["exchange"][0]["reconstruction_error"]
    assert all(0 < error < 1 for error in errors.values())
    full = METHOD.model_copy(update={"components": 3, "rounds": 1})
    whole = Federation(silos(), method=full).run(tmp_path / "three")
    assert whole.result["exchange"][0]["reconstruction_error"] == {}
    plain = Federation(silos(), method=METHOD.model_copy(update={"rounds": 1})).run(tmp_path / "plain")
    assert whole.scores("federated") == plain.scores("federated")
    # A mean and a direction instead of four models, and a number for each of these.
    sizes = [one.result["exchange"][0]["bytes_sent"] for one in (run, plain)]
    assert sizes[0] == pytest.approx(sizes[1] / 2, rel=0.02)
    for one in (run, plain):
        asks = {ask["step"]: set(ask["sent"].values()) for ask in one.asks()}
        assert max(asks["look"]) == pytest.approx(one.result["exchange"][0]["bytes_sent"], rel=0.02)
    # A silo's own log says the same, by whole messages.
    logs = [read_lines(one.audit_path("silo-0")) for one in (run, plain)]
    came = [
        next(line["bytes"] for line in log if (line["way"], line["step"]) == ("in", "learn")) for log in logs
    ]
    assert came[0] < 0.65 * came[1]


class Seen(DoFedSPP):
    """Keeps the models that were uploaded before the first round, as rows."""

    rows: ClassVar[dict] = {}

    def warm(self, silo, weights):
        reply = super().warm(silo, weights)
        self.rows[silo.name] = np.concatenate([array.ravel() for array in reply["weights"].values()])
        return reply


Seen.warm.__step__ = DoFedSPP.warm.__step__


def test_before_the_first_round_one_pca_is_over_all_models(tmp_path, monkeypatch):
    """Also where fewer go into a message that is not downsized, and where fewer travel in the round."""
    monkeypatch.setattr("cosilo.methods.dofed_spp.dofed_spp._AT_ONCE", 2)
    method = Seen(rounds=1, warm_up=3, uploads=3, components=1)
    run = Federation(silos(), method=method).run(tmp_path / "run")
    assert [ask["step"] for ask in run.asks()].count("look") == 1
    models = np.stack([Seen.rows[f"silo-{place}"] for place in range(4)]).astype(np.float64)
    pca = PCA(1, svd_solver="full").fit(models)
    lost = np.linalg.norm(pca.inverse_transform(pca.transform(models)) - models, axis=1)
    told = run.result["exchange"][0]["reconstruction_error"]
    assert len(told) == 3
    for name, error in told.items():
        place = int(name[-1])
        assert error == pytest.approx(lost[place] / np.linalg.norm(models[place]), abs=1e-5)


def test_ratios_before_the_first_round_are_taken_of_all_models_at_once(tmp_path, monkeypatch):
    """In blocks, a silo whom nobody helps would have given all to the best model of the first block."""
    monkeypatch.setattr("cosilo.methods.dofed_spp.dofed_spp._AT_ONCE", 1)
    method = METHOD.model_copy(update={"rounds": 1, "g2": 0.0, "uploads": 1})
    run = Federation(silos(), method=method).run(tmp_path / "one")
    monkeypatch.undo()
    all_at_once = Federation(silos(), method=method).run(tmp_path / "all")
    asked = [ask["step"] for ask in run.asks()]
    assert (asked.count("look"), asked.count("compare")) == (4, 1)
    assert run.result["exchange"][0]["uploaded"] == all_at_once.result["exchange"][0]["uploaded"]


def test_without_help_the_smallest_loss_gets_all():
    silo = silos()[0]
    silo.notes["losses"] = np.array([9.0, 8.0, np.nan, 7.0])
    assert Reciprocal(silo).least_loss().tolist() == [0, 0, 0, 1]


class Doomed(Network):
    left: ClassVar = [99]  # no part of what it does: a list is not described

    def train(self, *args, **options):
        self.left[0] -= 1
        if self.left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().train(*args, **options)


def test_killed_it_ends_with_the_same_models_and_labels(tmp_path, killed):
    def federation(workers=0):
        method = METHOD.model_copy(update={"rounds": 2, "warm_up": 2})
        return Federation(silos(learner=Doomed), method=method, seed=2, engine=LocalEngine(workers))

    def doomed(nth, folder):
        Doomed.left[0] = nth
        federation().run(folder)

    whole = federation().run(tmp_path / "whole")
    for nth in (3, 6, 9, 12):
        folder = tmp_path / f"killed-{nth}"
        killed(partial(doomed, nth, folder))
        run = federation(workers=2).run(folder)
        assert run.result == whole.result
        for name, silo in whole.silos.items():
            mine, other = silo.learner.weights(), run.silos[name].learner.weights()
            assert all(np.array_equal(mine[key], other[key]) for key in mine)
            assert silo.target_labels().equals(run.silos[name].target_labels())
            assert silo.label(X[:20]).equals(run.silos[name].label(X[:20]))


# ---------------------------------------------------------------------- bad input


def test_a_silo_without_a_target():
    plain = Silo("plain", X[:60], Y[:60] % 4, Network(small, GOOD), shares=SHARES)
    problems = Federation([*silos(), plain], method=METHOD).check()
    assert any("silo 'plain': has no target, which dofed_spp needs" in line for line in problems)


def test_a_target_class_that_nobody_else_trains_on(tmp_path):
    federation = Federation(silos([*PLANS, ((0, 1), (2, 7))]), method=METHOD)
    assert any(
        "silo 'silo-4': no other silo trains on 7; leave it out" in line for line in federation.check()
    )
    with pytest.raises(RunError, match="no other silo trains on 7"):
        federation.run(tmp_path / "run")


@pytest.mark.parametrize(
    "bad",
    [
        {"uploads": 2, "labellers": 3},
        {"uploads": 0},
        {"uploads": 3, "budget": {"total": 5, "uplink": {"rate": 1.0}}},
        {"budget": {"total": 5}},
        {"budget": {"total": -1, "uplink": {"rate": 1.0}}},
    ],
)
def test_numbers_that_do_not_go_together(bad):
    with pytest.raises(ConfigError):
        DoFedSPP(**bad)


def test_more_uploads_than_silos(tmp_path):
    federation = Federation(silos(), method=DoFedSPP(uploads=9))
    assert federation.check() == ["method.uploads: got 9; there are 4 silos"]


class Broken(DoFedSPP):
    """The model of one silo becomes NaN when it is handed over."""

    def warm(self, silo, weights):
        reply = super().warm(silo, weights)
        if silo.name == "silo-3":
            return {"weights": {name: array * np.nan for name, array in reply["weights"].items()}}
        return reply


Broken.warm.__step__ = DoFedSPP.warm.__step__


def test_a_model_that_is_not_finite_is_rejected_by_name(tmp_path):
    method = Broken(rounds=1, warm_up=3)
    run = Federation(silos(), method=method).run(tmp_path / "run")
    assert {failure["silo"] for failure in run.result["failures"]} == {"silo-3"}
    assert any("NaN" in failure["text"] for failure in run.result["failures"])
    assert len(run.scores("federated")) == 3
