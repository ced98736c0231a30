"""FedAvg with Flower's simulation: the Ray backend, two actors of one CPU, which read the data once each."""

import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from peer_scripts import workload


def main(path: Path) -> None:
    work, client, server = workload.load(path), ClientApp(), ServerApp()
    silos = len(work.y)
    marks: list[float] = []
    final: list[Any] = []

    @client.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        mine = workload.load(path)
        module = mine.module()
        module.load_state_dict(message.content["arrays"].to_torch_state_dict())
        mine.train(module, int(context.node_config["partition-id"]))
        metrics = MetricRecord({"num-examples": len(mine.y[0])})
        content = RecordDict({"arrays": ArrayRecord(module.state_dict()), "metrics": metrics})
        return Message(content=content, reply_to=message)

    def mark(round: int, arrays: ArrayRecord) -> None:
        marks.append(time.time())

    @server.main()  # type: ignore[untyped-decorator]
    def serve(grid: Grid, context: Context) -> None:
        strategy = FedAvg(
            fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=silos, min_available_nodes=silos
        )
        initial = ArrayRecord(work.module().state_dict())
        result = strategy.start(grid, initial, num_rounds=work.rounds, evaluate_fn=mark)
        final.append(result.arrays.to_torch_state_dict())

    backend = {
        # A cluster of its own, even where another one runs on this machine.
        "init_args": {"address": "local", "num_cpus": 2, "include_dashboard": False},
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    }
    run_simulation(server, client, num_supernodes=silos, backend_config=backend)
    module = work.module().eval()
    module.load_state_dict(final[0])
    work.tell(marks, module, version("flwr"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
