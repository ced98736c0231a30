"""The choice of a device, and turns on one that several processes share. There is no GPU in these tests."""

import multiprocessing
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cosilo.errors import LearnerError  # noqa: E402
from cosilo.learners import Network, Training, devices, zoo  # noqa: E402


def test_the_choice_of_a_device():
    assert devices.device_of("cpu") == torch.device("cpu")
    assert devices.device_of("auto").type in ("cpu", "cuda", "mps")
    missing = next(d for d in ("cuda", "mps") if not getattr(torch, d).is_available())
    with pytest.raises(LearnerError, match=f'device="{missing}" is not available here; set device="auto"'):
        devices.device_of(missing)


def test_a_copy_to_where_it_is_costs_nothing():
    tensor = torch.zeros(3)
    assert devices.carried(tensor, torch.device("cpu")) is tensor


def test_a_module_goes_to_another_device_whole_and_stays_where_it_is():
    module = torch.nn.BatchNorm1d(3)
    assert devices.moved(module, torch.device("cpu")) is module
    there = devices.moved(module, torch.device("meta"))
    assert {tensor.device.type for tensor in there.state_dict().values()} == {"meta"}


def _hold(started, times, seconds):
    with devices.turn_on(torch.device("cuda")):
        began = time.monotonic()
        started.set()
        time.sleep(seconds)
        ended = time.monotonic()
    times.put((began, ended))


def test_processes_take_turns_on_a_gpu_and_a_killed_one_gives_its_turn_back():
    context = multiprocessing.get_context("fork")
    times, started, unused = context.Queue(), context.Event(), context.Event()
    first = context.Process(target=_hold, args=(started, times, 0.3))
    first.start()
    assert started.wait(60)
    second = context.Process(target=_hold, args=(unused, times, 0))
    second.start()
    first.join()
    second.join()
    # The queue may hand them over in any order.
    (began, ended), (next_began, _) = sorted(times.get(timeout=60) for _ in range(2))
    assert began < ended <= next_began

    started.clear()
    lost = context.Process(target=_hold, args=(started, times, 600))
    lost.start()
    assert started.wait(60)
    lost.kill()
    lost.join()
    with devices.turn_on(torch.device("cuda")):
        pass


def test_training_and_predicting_happen_in_a_turn(monkeypatch):
    turns = []
    real = devices.turn_on

    def counted(device):
        turns.append(device.type)
        return real(device)

    monkeypatch.setattr("cosilo.learners.network.turn_on", counted)
    network = Network(zoo.mlp, Training(epochs=1, device="cpu"))
    X, y = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    network.fit(X, y, n_classes=2, seed=0)
    network.predict(X)
    assert turns == ["cpu", "cpu"]
