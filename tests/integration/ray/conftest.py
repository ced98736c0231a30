"""One cluster of three nodes with one CPU each for all tests here, and one folder with a recipe's own code.

The nodes are on this machine, at a loopback address that is not 127.0.0.1: Ray would take that for the
machine's other address.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 (hosts wait for no other tests)

from cosilo import Federation
from cosilo.config import build
from cosilo.engines.ray.engine import RayEngine

NODE = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
AT = {"node_ip_address": "127.0.0.2"}

OWN = '''
"""A classifier that waits, or ends its process, when a file beside it says so."""
import os, signal, time
from pathlib import Path
from sklearn.naive_bayes import GaussianNB

HERE = Path(__file__).parent

class Bayes(GaussianNB):
    def __init__(self, who="", *, priors=None, var_smoothing=1e-9):
        self.who = who
        super().__init__(priors=priors, var_smoothing=var_smoothing)

    def fit(self, X, y, sample_weight=None):
        import ray
        if ray.is_initialized():
            node = ray.get_runtime_context().get_node_id()
            (HERE / f"worked-{self.who}-{node}").write_text(str(os.getpid()))
            while (HERE / f"hold-{self.who}").exists():
                time.sleep(0.05)
            if (HERE / f"die-{self.who}").exists():
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)
'''


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all of them in one process of `pytest -n`: they share the cluster."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("ray"))


@dataclass
class Bench:
    """The cluster, and a folder that its nodes read a recipe's code in."""

    cluster: Any
    folder: Path

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def values(self, **changes: Any) -> dict[str, Any]:
        """Six silos of digits."""
        learners = [{"use": "own.Bayes", "who": str(place)} for place in range(6)]
        split = {"use": "iid", "silos": 6, "size": 50}
        simulation = {"dataset": "digits", "split": split, "learners": learners}
        return {"seed": 3, "simulation": simulation, "pool": {"rest": True, "size": 100}, **changes}

    def federation(self, engine: Any = None, **changes: Any) -> Federation:
        source = build.Source("recipe.toml", self.folder)
        return build.federation(self.values(**changes), source, engine=engine or RayEngine(self.address))

    def nodes(self, who: str = "*") -> dict[str, str]:
        """The node that each learner, by its name, was last trained on."""
        found = sorted(self.folder.glob(f"worked-{who}-*"), key=lambda path: path.stat().st_mtime)
        return {path.name.split("-")[1]: path.name.split("-")[2] for path in found}

    def lose(self, node: Any) -> None:
        """Take a node away as a machine goes down: with its hosts, which Ray would let live a moment."""
        hosts = {int(path.read_text()) for path in self.folder.glob(f"worked-*-{node.node_id}")}
        self.cluster.remove_node(node, allow_graceful=False)
        for process in hosts:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def clear(self) -> None:
        for path in self.folder.glob("*-*"):
            path.unlink()


@pytest.fixture(scope="session")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("recipe")
    (folder / "own.py").write_text(OWN)
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, **AT})
    for _ in range(2):
        cluster.add_node(**NODE, **AT)
    yield Bench(cluster, folder)
    cluster.shutdown()


@pytest.fixture
def bench(three_nodes: Bench) -> Iterator[Bench]:
    three_nodes.clear()
    yield three_nodes
    three_nodes.clear()


@pytest.fixture
def add_node(bench: Bench) -> Callable[[], Any]:
    return lambda: bench.cluster.add_node(**NODE, **AT)
