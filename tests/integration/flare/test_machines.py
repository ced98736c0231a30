"""docs/deploy.md, carried out: four parties with an address each, in network namespaces of their own.

The silos' ports of the bridge are isolated: each reaches the coordinator, and no other silo. Needs root.
Run it with -s to see what every party sees.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from cosilo import Federation, Run
from cosilo.engines.flare.party_files import read_silo
from cosilo.methods import CoFED
from cosilo.runs.audit import outgoing

pytest.importorskip("nvflare")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("ip") is None,
        reason="needs root and ip to make network namespaces",
    ),
]

COSILO = str(Path(sys.executable).with_name("cosilo"))
ADDRESSES = {"coordinator": "10.77.0.1", "north": "10.77.0.2", "south": "10.77.0.3", "west": "10.77.0.4"}
#: By silo, its classes and its learner.
SILOS = {
    "north": (range(10), "tree.DecisionTreeClassifier"),
    "south": (range(2, 10), "svm.SVC"),
    "west": (range(8), "neighbors.KNeighborsClassifier"),
}
BRIDGE = "cosilo-br"
GUIDE = Path(__file__).parents[3] / "docs" / "deploy.md"
_BLOCKS = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
SILO, FEDERATION = (next(block for block in _BLOCKS if key in block) for key in ("label =", "members ="))


def sh(*command):
    subprocess.run([str(word) for word in command], check=True)


def space(name):
    return f"cosilo-{name}"


@pytest.fixture
def machines():
    """Network namespaces, joined by a bridge that this machine has no address on."""
    try:
        sh("ip", "link", "add", BRIDGE, "type", "bridge")
        sh("ip", "link", "set", BRIDGE, "up")
        for place, (name, address) in enumerate(ADDRESSES.items()):
            outer, inside = f"cosilo-v{place}", ("ip", "-n", space(name))
            sh("ip", "netns", "add", space(name))
            sh("ip", "link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space(name))
            sh("ip", "link", "set", outer, "master", BRIDGE, "up")
            if name != "coordinator":
                sh("ip", "link", "set", "dev", outer, "type", "bridge_slave", "isolated", "on")
            sh(*inside, "link", "set", "lo", "up")
            sh(*inside, "addr", "add", f"{address}/24", "dev", "eth0")
            sh(*inside, "link", "set", "eth0", "up")
        yield
    finally:
        for name in ADDRESSES:
            subprocess.run(["ip", "netns", "del", space(name)], check=False)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False)


class Party:
    """Somebody at a machine of their own: a folder, and commands that are typed there."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        folder.mkdir()
        self.staying = []

    def _command(self, *words):
        return ["ip", "netns", "exec", space(self.name), *map(str, words)]

    def run(self, *words):
        done = subprocess.run(
            self._command(*words), cwd=self.folder, capture_output=True, text=True, timeout=200, env=self._env
        )
        print(f"{self.name}$ {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done

    @property
    def _env(self):
        return os.environ | {"COLUMNS": "120"}

    def cosilo(self, *words):
        done = self.run(COSILO, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def stay(self, log, *words):
        path = self.folder / log
        with path.open("w") as file:
            command = self._command(COSILO, *words)
            process = subprocess.Popen(command, cwd=self.folder, stdout=file, stderr=file, env=self._env)
        self.staying.append((process, path, words))
        return path

    def leave(self):
        for process, path, words in self.staying:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            print(f"{self.name}$ cosilo {' '.join(map(str, words))}\n{path.read_text()}")

    def knock(self, name):
        """What becomes of a connection to a port of somebody else that is not open."""
        code = f"import socket; socket.create_connection(({ADDRESSES[name]!r}, 9), 5)"
        return self.run(sys.executable, "-c", code).stderr.splitlines()[-1]

    def listening(self):
        """Addresses that others could connect to."""
        lines = self.run("ss", "-Hltn").stdout.splitlines()
        return sorted(line.split()[3] for line in lines if not line.split()[3].startswith("127.0.0.1:"))


def write_silo(party, place):
    """Two hundred digits of its classes, the public ones, and its file."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]).assign(digit=[f"d{v}" for v in y])
    order, (task, learner) = np.random.default_rng(103).permutation(len(X)), SILOS[party.name]
    table.iloc[order[:500], :64].to_csv(party.folder / "public.csv", index=False)
    mine = order[500 + 200 * place : 700 + 200 * place]
    table.iloc[mine[np.isin(y[mine], task)]].to_csv(party.folder / f"{party.name}.csv", index=False)
    text = SILO.replace("north", party.name).replace("tree.DecisionTreeClassifier", learner)
    (party.folder / f"{party.name}.toml").write_text(text)


def test_four_organisations_on_four_machines(machines, tmp_path, until):
    coordinator, north, south, west = (Party(name, tmp_path / name) for name in ADDRESSES)
    everybody = (north, south, west)
    for place, silo in enumerate(everybody):
        write_silo(silo, place)
    (coordinator.folder / "federation.toml").write_text(FEDERATION)
    try:
        said = north.cosilo("check", "north.toml")
        assert said in GUIDE.read_text()  # what is agreed on in the guide is what silos have here
        assert "its authority: " in coordinator.cosilo("provision", "federation.toml")
        for silo in everybody:  # what travels is no secret
            name = silo.name
            silo.cosilo("request", f"{name}.toml")
            shutil.copy(silo.folder / f"{name}.request", coordinator.folder)
            coordinator.cosilo("admit", "federation.toml", f"{name}.request", "--yes")
            shutil.copy(coordinator.folder / f"{name}.admission", silo.folder)
            silo.cosilo("receive", f"{name}.admission", "--yes")
        assert not list(coordinator.folder.rglob("*north*.key"))

        log = coordinator.stay("log.txt", "coordinator", "start", "kits/coordinator")
        until(lambda: "listens at 10.77.0.1:8002" in log.read_text())
        for silo in everybody:
            log = silo.stay("log.txt", "join", "kit", f"{silo.name}.toml")
            until(lambda log=log: "connected to the coordinator at 10.77.0.1:8002" in log.read_text())

        # The coordinator has one port open, at its own address; silos have none, and do not reach each other.
        assert coordinator.listening() == ["10.77.0.1:8002"]
        assert not any(silo.listening() for silo in everybody)
        assert "refused" in north.knock("coordinator")
        assert "refused" not in north.knock("south")

        assert "silos that are there: north, south, west" in coordinator.cosilo("status", "kits/coordinator")
        coordinator.cosilo("submit", "federation.toml")
        (folder,) = (coordinator.folder / "kits/coordinator/server/runs").iterdir()
        run = Run(folder)
        assert run.status == "finished"
        assert not any(silo.listening() for silo in everybody)

        silos = [read_silo(silo.folder / f"{silo.name}.toml") for silo in everybody]
        local = Federation(silos, method=CoFED(alpha=0.4)).run(tmp_path / "local")
        assert run.result == local.result
        assert all(relative > 1 for relative in run.relative_accuracy().values())
        for silo in everybody:
            record = silo.folder / "kit" / "runs" / run.folder.name
            for line, same in zip(outgoing(record / "audit.jsonl"), local.audit(silo.name), strict=True):
                assert [line[key] for key in ("ask", "step", "fields")] == [
                    same[key] for key in ("ask", "step", "fields")
                ]
            silo.cosilo("predict", record, silo.name, "public.csv", "--out", "labels.csv")
            found = pd.read_csv(silo.folder / "labels.csv")["label"].to_list()
            assert found == list(local.silos[silo.name].predict(local.silos[silo.name].pool))
    finally:
        for party in (*everybody, coordinator):
            party.leave()
