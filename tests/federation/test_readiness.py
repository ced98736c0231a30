"""What would keep a federation from starting is found before it does, one line each."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Local, Silo
from cosilo.errors import ConfigError
from cosilo.federation import readiness
from cosilo.simulated_time.clock import Clock, Link


def test_every_problem_is_a_line_and_nothing_is_written(silos, pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stingy = [*silos()[:2], silos(shares=["metrics"])[2]]
    stingy[0].use_pool(pool[:-1])
    lines = Federation(stingy, pool, CoFED()).check()
    assert len(lines) == 2
    assert lines[0].startswith("silo 'nearest': does not share 'labels', which cofed needs")
    assert lines[1].startswith("silo 'tree': its pool has fingerprint ")
    assert list(tmp_path.iterdir()) == []


def test_a_pool_with_fewer_instances_than_classes(silos, pool):
    (line,) = Federation(silos(), pool[:3]).check(learners=False)
    assert line.startswith("the pool has 3 instances for 4 classes")


class Broken(DecisionTreeClassifier):
    def predict(self, X, check_input=True):
        raise RuntimeError("no")


def test_learners_that_are_the_same_are_tried_out_once(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), ["a", "b"] * 10
    learners = {"one": GaussianNB(), "two": GaussianNB(), "three": Broken()}
    members = [Silo(name, X, y, learner) for name, learner in learners.items()]
    tried = []
    real = readiness.smoke_test
    monkeypatch.setattr(readiness, "smoke_test", lambda silo: tried.append(silo.name) or real(silo))
    (line,) = Federation(members, method=Local()).check()
    assert "silo 'three'" in line
    assert tried == ["one", "three"]


def test_a_clock_has_to_know_all_steps_that_take_time(silos, pool):
    clock = Clock(up=Link(rate=1.0), compute="cycles", cycles_per_second=1, cycles={"train": 1})
    with pytest.raises(ConfigError) as error:
        Federation(silos(), pool, CoFED(), clock=clock)
    line = "clock.cycles: has no label, update; wants one number for every step of cofed that takes time"
    assert str(error.value).startswith(line)
