"""Deep mutual learning: two networks on the same batches, each also towards what the other says.

Y. Zhang et al., "Deep Mutual Learning" (2018), as FML (eq. 5) uses it.
"""

from cosilo.learners.losses import cross_entropy, divergence
from cosilo.learners.tensors import Labelled
from cosilo.learners.trainee import Trainee
from cosilo.learners.training import Training
from cosilo.learners.training_loop import batches, finite

import torch  # isort: skip


def learn_together(
    local: Trainee,
    meme: Trainee,
    data: Labelled,
    training: Training,
    *,
    alpha: float,
    beta: float,
    temperature: float,
    seed: int,
) -> None:
    """Train both in place by one training; eq. 5 of FML:

    L_local = α·CE + (1 − α)·KL(p_meme ‖ p_local),  L_meme = β·CE + (1 − β)·KL(p_local ‖ p_meme).

    Both outputs are taken before either network moves, and neither loss reaches into the other network.
    """
    order = torch.Generator().manual_seed(seed % 2**63)
    for epoch in range(training.epochs):
        local.module.train()
        meme.module.train()
        rate = training.rate(epoch)
        total = torch.zeros((), device=data.x.device)
        for x, y, weight in batches(data, training.batch, order):
            mine, theirs = local.outputs(x), meme.outputs(x)
            for trainee, own, peer, share in ((local, mine, theirs, alpha), (meme, theirs, mine, beta)):
                from_peer = divergence(own, peer, temperature)
                gradient = share * cross_entropy(own, y, weight) + (1 - share) * from_peer
                trainee.step(gradient, rate)
                total += gradient.sum()
        finite(total, "loss", epoch, training, local.name)
