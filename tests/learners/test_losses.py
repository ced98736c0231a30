"""Every gradient against torch's own, which differentiates the loss as it is written in the papers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from torch.nn import functional  # noqa: E402

from cosilo.learners import losses  # noqa: E402
from cosilo.methods.fedmd import mean_absolute_error  # noqa: E402
from cosilo.methods.fml import divergence  # noqa: E402


@st.composite
def batches(draw):
    n, k = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    seed = draw(st.integers(0, 10_000))
    rng = torch.Generator().manual_seed(seed)
    outputs = 3 * torch.randn(n, k, generator=rng, dtype=torch.float64)
    return outputs, torch.randint(k, (n,), generator=rng), torch.rand(n, generator=rng).double(), rng


def slope(loss, outputs):
    leaf = outputs.clone().requires_grad_()
    return torch.autograd.grad(loss(leaf), leaf)[0]


def same(ours, theirs):
    return torch.allclose(ours, theirs, atol=1e-12, rtol=0)


@given(batches())
def test_cross_entropy(batch):
    z, y, w, _ = batch
    assert same(losses.cross_entropy(z, y), slope(lambda o: functional.cross_entropy(o, y), z))
    weighted = slope(lambda o: (functional.cross_entropy(o, y, reduction="none") * w).mean(), z)
    assert same(losses.cross_entropy(z, y, w), weighted)


@given(batches(), st.sampled_from([0.5, 1.0, 4.0]))
def test_divergence_is_averaged_over_the_batch_and_the_peer_is_held_still(batch, temperature):
    z, _, _, rng = batch
    peer = torch.randn(z.shape, generator=rng, dtype=torch.float64)

    def kl(o):
        own, theirs = (o / temperature).log_softmax(1), (peer / temperature).softmax(1)
        return functional.kl_div(own, theirs, reduction="batchmean")

    assert same(divergence(z, peer, temperature), slope(kl, z))
    # The trap: an average over the classes as well would be smaller by their number.
    by_mean = slope(
        lambda o: functional.kl_div(o.log_softmax(1), peer.softmax(1), reduction="none").mean(), z
    )
    assert same(divergence(z, peer), by_mean * z.shape[1])


@given(batches())
def test_mean_absolute_error(batch):
    z, _, _, rng = batch
    target = torch.randn(z.shape, generator=rng, dtype=torch.float64)
    assert same(mean_absolute_error(z, target), slope(lambda o: functional.l1_loss(o, target), z))


def test_two_classes_on_paper():
    # Outputs (ln 3, 0): p = (¾, ¼). The code is 1, the peer has p = (½, ½).
    z, peer = torch.tensor([[np.log(3.0), 0.0]]), torch.zeros(1, 2, dtype=torch.float64)
    assert losses.cross_entropy(z, torch.tensor([1])).tolist()[0] == pytest.approx([0.75, -0.75])
    assert divergence(z, peer).tolist()[0] == pytest.approx([0.25, -0.25])
