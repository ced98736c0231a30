"""FedAvg with pfl-research: two processes share each cohort, as its guide on fast simulations says.

Users' data are tensors in memory; nothing is evaluated but in the first round, where pfl always does. A
user's images are put in a new order each time it is asked, because pfl itself does not shuffle them.
"""

import os
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any


def main(path: Path) -> None:
    # pfl reads these when it is imported. The two processes meet at the first address.
    other = None
    if "PFL_WORKER_RANK" not in os.environ:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.environ["PFL_WORKER_ADDRESSES"] = f"127.0.0.1:{port},127.0.0.1:0"
        command = [sys.executable, "-m", "peer_scripts.pfl_research", str(path)]
        other = subprocess.Popen(command, env={**os.environ, "PFL_WORKER_RANK": "1"})
        os.environ["PFL_WORKER_RANK"] = "0"
    _simulate(path, first=other is not None)
    if other is not None and other.wait():
        raise SystemExit(f"the second process of pfl ended with {other.returncode}")


def _simulate(path: Path, first: bool) -> None:
    import numpy as np
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByDatapoints
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel
    from torch.nn.functional import cross_entropy

    from peer_scripts import workload

    class Trainable(torch.nn.Module):
        """What pfl asks of a module."""

        def __init__(self, network: torch.nn.Module) -> None:
            super().__init__()
            self.network = network

        def forward(self, x: Any) -> Any:
            return self.network(x)

        def loss(self, x: Any, y: Any, eval: bool = False) -> Any:
            return cross_entropy(self(x), y)

        def metrics(self, x: Any, y: Any, eval: bool = False) -> dict[str, Any]:
            with torch.no_grad():
                return {"accuracy": Weighted(int((self(x).argmax(1) == y).sum()), len(y))}

    class Clock(TrainingProcessCallback):  # type: ignore[misc]
        """When training began, and when each round ended."""

        def __init__(self) -> None:
            self.marks: list[float] = []

        def on_train_begin(self, *, model: Any) -> Any:
            self.marks.append(time.time())
            return Metrics()

        def after_central_iteration(self, aggregate_metrics: Any, model: Any, **_: Any) -> Any:
            self.marks.append(time.time())
            return False, Metrics()

    def user(silo: int) -> Any:
        order = torch.randperm(len(work.y[silo]))
        return Dataset([work.x[silo][order], work.y[silo][order]], user_id=str(silo))

    work = workload.load(path)
    np.random.seed(0)  # noqa: NPY002 - the two processes have to draw the same users, and pfl draws from here
    silos = len(work.y)
    users = FederatedDataset(user, get_user_sampler("minimize_reuse", list(range(silos))))
    module = Trainable(work.module())
    model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
    clock = Clock()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=work.rounds,
            evaluation_frequency=work.rounds + 1,
            train_cohort_size=silos,
            val_cohort_size=0,
        ),
        SimulatedBackend(users, users, postprocessors=[WeightByDatapoints()]),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=work.rate, local_batch_size=work.batch),
        callbacks=[clock],
        send_metrics_to_platform=False,
    )
    if first:
        work.tell(clock.marks, module.eval(), version("pfl"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
