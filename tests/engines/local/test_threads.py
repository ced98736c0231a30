"""One thread for a step, whatever the machine has, and all of them back afterwards."""

import os

import pytest
from threadpoolctl import threadpool_info

from cosilo.engines.local.threads import OneThread


def threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info()}


def test_threads_are_taken_and_given_back(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = threads(), torch.get_num_threads()
    cap = OneThread()
    try:
        assert threads() == {1}
        assert torch.get_num_threads() == 1
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    finally:
        cap.release()
    assert (threads(), torch.get_num_threads()) == before
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ
