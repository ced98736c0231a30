"""What is held out for a choice, and given back; what an update is compared with."""

import numpy as np
import pytest
from torch import nn

from cosilo import CoFED, Federation, Silo
from cosilo.learners import Network, Training
from cosilo.protocol.stage import FEDERATED, LOCAL, Measure
from cosilo.silo.lessons import Lessons

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3)).astype(np.float32)
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0, "a", "b")
PSEUDO = (RNG.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2)


class Watched(Network):
    """Remembers what every training saw: how many instances, how many held out, how many epochs."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.log = []

    def __deepcopy__(self, memo):  # copies write into the same log
        other = Watched(self.module, self.training, self.update)
        vars(other).update(
            {k: v for k, v in vars(self).items() if k != "module_"}, module_=copy_of(self.module_)
        )
        return other

    def train(self, X, y, *, training, validation=None, **options):
        held = 0 if validation is None else len(validation[1])
        self.log.append((len(y), held, training.epochs, training.lr))
        return super().train(X, y, training=training, validation=validation, **options)


def copy_of(module):
    import copy

    return copy.deepcopy(module)


def build(shape, classes):
    return nn.Linear(shape[0], classes)


def watched(**training) -> tuple[Silo, list]:
    network = Watched(build, Training(lr=0.05, batch=10, **training))
    silo = Silo("a", X, Y, network, test=(X, Y))
    silo.seed = 3
    return silo, silo.learner.log


def test_a_network_that_stops_early_is_trained_again_on_everything():
    silo, log = watched(epochs=12, patience=3)
    silo.fit(LOCAL)
    (rest, held, *_), (everything, none, epochs, _) = log
    assert (rest, held) == (48, 12)
    assert (everything, none) == (60, 0)
    assert epochs == silo.trial.trained_as_.epochs <= 12


def test_a_network_with_nothing_to_choose_is_trained_once():
    silo, log = watched(epochs=4)
    silo.fit(LOCAL)
    assert log == [(60, 0, 4, 0.05)]
    assert silo.trial is None


def test_an_update_is_chosen_by_a_trial_that_never_saw_the_validation_part():
    silo, log = watched(epochs=6, patience=2)
    silo.fit(LOCAL)
    before = silo.trial
    silo.fit(FEDERATED, lessons=Lessons(*PSEUDO), update=True, warm=True)
    assert silo.trial is before  # it went on, and not from the model that has seen everything
    assert [entry[:2] for entry in log[2:]] == [(48 + 32, 12 + 8), (60 + 40, 0)]


def test_the_control_has_as_many_passes_on_own_data():
    silo, log = watched(epochs=3)
    silo.fit(LOCAL)
    weights = silo.learner.weights()
    silo.fit(FEDERATED, lessons=Lessons(*PSEUDO), update=True, warm=True, control=True)
    assert log[1][0] == 100
    assert log[2][0] == 60
    assert Training(passes=300).on(60).epochs == 5  # three epochs of a hundred
    assert set(silo.scores[FEDERATED]) == {Measure.OWN, Measure.CONTROL}
    other, _ = watched(epochs=3)
    other.fit(LOCAL)
    assert all((other.learner.weights()[name] == weights[name]).all() for name in weights)
    other.fit(FEDERATED, lessons=Lessons(*PSEUDO), update=True, warm=True)
    for name, array in silo.learner.weights().items():  # the control leaves the model alone
        np.testing.assert_array_equal(array, other.learner.weights()[name])


def test_of_several_choices_the_one_with_the_smallest_held_out_loss_is_taken():
    network = Network(build, Training(lr=1e-6, epochs=5, batch=10), choices=[{"lr": 0.1}, {"lr": 1e-5}])
    silo = Silo("a", X, Y, network, test=(X, Y))
    silo.fit(LOCAL)
    assert silo.trial.trained_as_.lr == silo.learner.trained_as_.lr == 0.1
    held = silo.data.validation()[0]
    assert silo.trial.loss(*held) < 0.6


def test_an_update_takes_one_of_its_own_choices():
    update, choices = Training(lr=1e-7, epochs=4, batch=10), [{"lr": 0.1}, {"lr": 1e-6}]
    network = Network(build, Training(lr=1e-6, epochs=1, batch=10), update, update_choices=choices)
    silo = Silo("a", X, Y, network, test=(X, Y))
    silo.fit(LOCAL)
    assert silo.learner.trained_as_.lr == 1e-6
    silo.fit(FEDERATED, lessons=Lessons(*silo.data.train), update=True, warm=True)
    assert silo.trial.trained_as_.lr == silo.learner.trained_as_.lr == 0.1


def test_a_trial_survives_a_crash(tmp_path):
    def silos():
        for name in "ab":
            network = Network(build, Training(lr=0.05, batch=10, epochs=4, patience=2))
            yield Silo(name, X, Y, network, shares=["labels", "metrics"])

    whole = Federation(list(silos()), PSEUDO[0], CoFED(alpha=0.1)).run(tmp_path / "whole")
    federation = Federation(list(silos()), PSEUDO[0], CoFED(alpha=0.1))
    run = CoFED.update

    def killed(self, silo, **message):
        raise KeyboardInterrupt

    CoFED.update.__step__  # noqa: B018 - it is a step
    with pytest.MonkeyPatch.context() as patch:
        killed.__step__ = run.__step__
        patch.setattr(CoFED, "update", killed)
        with pytest.raises(KeyboardInterrupt):
            federation.run(tmp_path / "cut")
    again = Federation(list(silos()), PSEUDO[0], CoFED(alpha=0.1)).run(tmp_path / "cut")
    assert again.relative_accuracy() == whole.relative_accuracy()
    assert again.relative_control() == whole.relative_control()


def test_validation_accuracy_is_that_of_the_trial():
    silo, _ = watched(epochs=8)
    silo.fit(LOCAL, validate=True)
    held_X, held_y = silo.data.validation()[0]
    assert silo.validation_accuracy() == np.mean(silo.trial.predict(held_X) == held_y)
    assert len(silo.data.train[1]) == 60
