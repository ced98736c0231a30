import numpy as np
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, DoFedSPP, FedAvg, FedBE, FedFomo, FedMD, Institution, Local, Silo, Target, Tempo
from cosilo.learners import Network, Training, zoo
from cosilo.methods.effort import Effort, epochs_of, plain_silos

SHARES = ["weights", "size", "metrics", "similarity"]


def silo(name, epochs=3, update=None):
    learner = Network(zoo.mlp, Training(epochs=epochs), update=update and Training(epochs=update))
    return Silo(name, np.eye(40), list("ab") * 20, learner, shares=SHARES, validation=0.3)


SILOS = [silo(name) for name in "abcde"]


def test_epochs_in_the_mean_or_not_known():
    assert epochs_of(SILOS) == 3
    assert epochs_of([*SILOS, silo("f", 3 + 2 * (len(plain_silos(SILOS)) + 1))]) == 5
    assert epochs_of([*SILOS, Silo("g", np.eye(8), list("abababab"), GaussianNB())]) is None
    assert epochs_of([silo("a", 3, 7), silo("b", 3, 7)], "update") == 7


def test_members_are_the_silos_that_train():
    hospital = Institution("hospital", SILOS[:2], shares=SHARES)
    assert [one.name for one in plain_silos([hospital, SILOS[3]])] == ["a", "b", "d"]
    # Four rounds inside each of two, of six epochs.
    found = Tempo(rounds=2, local_rounds=4, first_epochs=6).effort([hospital])
    assert (found.uploads, found.epochs) == (1, 48)


def test_efforts_by_hand():
    assert FedAvg(rounds=10, epochs=2, fraction=0.4).effort(SILOS) == Effort(2, 10 * 2 * 2 / 5, 1, 0.0)
    assert FedFomo(rounds=10, epochs=2).effort(SILOS) == Effort(5, 20, 1, 0.3)
    assert DoFedSPP(warm_up=4, rounds=3, uploads=2).effort(SILOS) == Effort(2, 7, 1, 0.0)
    assert DoFedSPP(warm_up=4, rounds=3).effort(SILOS).uploads == 5
    assert Local().effort(SILOS).epochs == 3
    # 40 private instances; 3 epochs of a pool of 80, and 2 rounds with 20 of them.
    fedmd = FedMD(rounds=2, subset=20, public_epochs=3, private_epochs=5, revisit_epochs=4)
    assert fedmd.effort(SILOS, pool=80).epochs == 5 + 2 * 4 + 3 * 80 / 40 + 2 * 20 / 40
    assert CoFED(rounds=2).effort([silo("a", 3, 7), silo("b", 3, 7)]).epochs == 17
    # In each of 10 rounds one of five silos with 40 instances each trains 20 epochs on a pool of 80.
    fedbe = FedBE(rounds=10, epochs=2, distil_epochs=20).effort(SILOS, pool=80)
    assert fedbe.epochs == 10 * 2 + 10 * 20 * 80 / 40 / 5


def test_what_is_elected_counts_as_all_of_the_pool_unless_passes_are_set():
    # 3 epochs of 40 instances, then twice 7 of 40 + 60; or 400 instances in an update, whatever was elected.
    assert CoFED(rounds=2).effort([silo("a", 3, 7)], pool=60).epochs == 3 + 2 * 7 * (40 + 60) / 40
    limited = silo("a", 3)
    limited.learner.update = Training(passes=400)
    assert CoFED(rounds=2).effort([limited], pool=60).epochs == 3 + 2 * 400 / 40


def aiming(hidden):
    """A silo with 36 instances of its own; its target has 4 labelled points and 16 others."""
    target = Target(np.eye(40)[:4], list("cdcd"), unlabelled=np.eye(40)[:16], hidden=hidden)
    return Silo("a", np.eye(40)[:36], list("ab") * 18, Network(zoo.mlp), shares=SHARES, target=target)


def test_a_target_model_is_trained_too():
    found = DoFedSPP(warm_up=4, rounds=3, target_epochs=5).effort([aiming(hidden=False)])
    assert found.epochs == 4 + 3 * (1 + 5 * 20 / 40)


def test_who_does_not_train_on_labelled_target_points():
    for method, seen in {
        DoFedSPP: 0.0,
        FedAvg: 0.0,
        FedMD: 0.0,
        Local: 0.0,
        CoFED: 0.0,
        FedFomo: 0.1,
    }.items():
        assert method().effort([aiming(hidden=False)]).held_out == seen
        assert method().effort([aiming(hidden=True)]).held_out == (0.0 if method is DoFedSPP else 0.1)
