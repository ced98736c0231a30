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


@pytest.fixture
def networks(monkeypatch):
    """Silos with networks, two of them in bf16, on a processor that has it or emulates it."""
    network = pytest.importorskip("cosilo.learners.network")
    from cosilo import Training
    from cosilo.learners import zoo

    def made(emulated):
        monkeypatch.setattr(network, "emulates_bf16", lambda device: emulated)
        X, y = np.random.default_rng(0).normal(size=(20, 3)), ["a", "b"] * 10
        trainings = {"one": "bf16", "two": "single", "three": "bf16"}
        return [
            Silo(name, X, y, network.Network(zoo.mlp, Training(epochs=1, precision=precision, device="cpu")))
            for name, precision in trainings.items()
        ]

    return made


def test_bf16_on_a_processor_that_has_to_emulate_it_is_said_before_a_run(networks, tmp_path, capfd):
    federation = Federation(networks(True), method=Local())
    (line,) = federation.notes()
    assert line.startswith(
        "2 silos, 'one' first: precision = \"bf16\": the processor here has no instructions"
    )
    federation.run(tmp_path / "run")
    assert capfd.readouterr().err.count(f"warning: {line}\n") == 1
    federation.run(tmp_path / "run")  # of a finished run there is nothing to say
    assert "bf16" not in capfd.readouterr().err


def test_bf16_where_there_are_instructions_for_it_is_no_matter(networks):
    assert Federation(networks(False), method=Local()).notes() == []


@pytest.mark.parametrize(
    ("here", "emulated"),
    [
        ({"architecture": "x86_64", "avx512_bf16": False, "amx_bf16": False}, True),
        ({"architecture": "x86_64", "avx512_bf16": True, "amx_bf16": False}, False),
        ({"architecture": "x86_64", "avx512_bf16": False, "amx_bf16": True}, False),
        ({"architecture": "aarch64"}, False),
        ({}, False),
    ],
)
def test_what_a_processor_says_of_bf16(here, emulated, monkeypatch):
    torch = pytest.importorskip("torch")
    from cosilo.learners.devices import emulates_bf16

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: here, raising=False)
    assert emulates_bf16(torch.device("cpu")) is emulated
    assert not emulates_bf16(torch.device("cuda"))
