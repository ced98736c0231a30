"""Where the silos are: which host owns which, and where a host finds a place."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from cosilo.coordination.institution import Institution
from cosilo.engines.ray.host import Host
from cosilo.errors import RunError
from cosilo.protocol.participant import Participant
from cosilo.silo.silo import Silo
from cosilo.text import listing

#: Seconds after which what no node of the cluster has is done without; a node that has it may be on its way.
PATIENCE = 30.0
#: Seconds that a host waits for a place where others are now.
_QUEUE = 600.0
#: Seconds that a run's first hosts have to start; those that take longer join the others when they are there.
_START = 10.0
#: What a host of silos that ask for nothing gets.
_ONE = {"cpus": 1.0}


@dataclass(eq=False)
class RemoteHost:
    """This side of a host: its actor, the silos it owns, and whether it knows these."""

    actor: Any
    silos: list[str] = field(default_factory=list)
    told: bool = True
    #: Ready when the host has a place.
    placed: Any = None

    def give(self, name: str) -> None:
        """Let it own another silo."""
        self.silos.append(name)
        self.told = False

    def tell(self) -> Any:
        """Say which silos it owns; what comes back is ready when it has made them."""
        self.told = True
        return self.actor.own.remote(list(self.silos))


class Hosts:
    """The hosts of a run.

    A silo whose learner asks for something (`needs`) has a host of its own, on a node that has that free. The
    others share hosts of one CPU each: as many as the recipe has `workers`, or the cluster has CPUs, and at
    most one for each silo. More are started when nodes are added; what a lost host owned goes to the others.
    """

    def __init__(self, run: Path, silos: Sequence[Participant], workers: int) -> None:
        data = os.environ.get("COSILO_DATA")
        self._arguments = (str(run.resolve()), str(Path(data).resolve()) if data else None)
        self._workers = workers
        self._needs = {silo.name: needs_of(silo) for silo in silos}
        self._sharing = [name for name, needs in self._needs.items() if not needs]
        self._at: dict[str, RemoteHost] = {}
        #: Those that share: at work, and still without a place.
        self._shared: list[RemoteHost] = []
        self._coming: list[RemoteHost] = []

    def at(self, name: str) -> RemoteHost:
        """The host of a silo that has one."""
        return self._at[name]

    def settle(self) -> dict[str, str]:
        """Find a host for every silo that has none; returns why not, by silo, where there is no place."""
        homeless = [name for name in self._needs if name not in self._at]
        alone = {name: self._start(self._needs[name]) for name in homeless if self._needs[name]}
        why = {}
        for name, host in alone.items():
            if _placed([host], _patience(self._needs[name]))[0]:
                self._give(host, name)
            else:
                ray.kill(host.actor)
                why[name] = f"silo {name!r}: {_no_place(self._needs[name])}"
        homeless = [name for name in homeless if name not in alone]
        if homeless and not self._shared:
            self._ask_for_more()
            self._take_in(_START)
            if not self._shared:
                self._take_in(_patience(_ONE), at_least=1)
        for name in homeless:
            if self._shared:
                self._give(min(self._shared, key=lambda host: len(host.silos)), name)
            else:
                why[name] = f"silo {name!r}: {_no_place(_ONE)}"
        return why

    def grow(self) -> None:
        """Use what the cluster has now: hosts that have found a place since take some of the silos over."""
        self._ask_for_more()
        for host in self._take_in(0):
            while True:
                fullest = max(self._shared, key=lambda one: len(one.silos))
                if len(fullest.silos) <= len(host.silos) + 1:
                    break
                fullest.told = False
                self._give(host, fullest.silos.pop())

    def lose(self, host: RemoteHost) -> None:
        """Give a host up, whatever it is doing: everything that its silos completed is in their records."""
        ray.kill(host.actor)
        if host in self._shared:
            self._shared.remove(host)
        for name in host.silos:
            del self._at[name]

    def close(self) -> None:
        """End all hosts."""
        for host in {*self._at.values(), *self._shared, *self._coming}:
            ray.kill(host.actor)
        self._at, self._shared, self._coming = {}, [], []

    # ------------------------------------------------------------------ places

    def _give(self, host: RemoteHost, name: str) -> None:
        host.give(name)
        self._at[name] = host

    def _start(self, needs: dict[str, float]) -> RemoteHost:
        asked = _resources(needs)
        options = {"num_cpus": asked["CPU"], "num_gpus": asked["GPU"], "memory": asked["memory"]}
        actor = ray.remote(Host).options(scheduling_strategy="SPREAD", **options).remote(*self._arguments)
        host = RemoteHost(actor)
        host.placed = actor.placed.remote()
        return host

    def _ask_for_more(self) -> None:
        taken = sum(self._needs[name].get("cpus", 1.0) for name in self._at if self._needs[name])
        wanted = self._workers or int(ray.cluster_resources().get("CPU", 0.0) - taken)
        for _ in range(len(self._shared) + len(self._coming), min(max(wanted, 1), len(self._sharing))):
            self._coming.append(self._start(_ONE))

    def _take_in(self, patience: float, at_least: int | None = None) -> list[RemoteHost]:
        """Those that have found a place since; those that lost theirs at once are forgotten."""
        there, dead = _placed(self._coming, patience, at_least)
        self._coming = [host for host in self._coming if host not in [*there, *dead]]
        self._shared += there
        return there


def needs_of(silo: Participant) -> dict[str, float]:
    """What a silo's learner asks for; an institution needs the most that one of its members does."""
    if isinstance(silo, Institution):
        each = [needs_of(member) for member in silo.silos]
        return {key: max(one.get(key, 0.0) for one in each) for key in {key for one in each for key in one}}
    origin = silo.origin if isinstance(silo, Silo) else None
    return dict((origin or {}).get("learner", {}).get("needs", {}))


def _placed(
    hosts: Sequence[RemoteHost], patience: float, at_least: int | None = None
) -> tuple[list[RemoteHost], list[RemoteHost]]:
    """Those of some hosts that have a place, or have one after a while; and those that died there at once."""
    if not hosts:
        return [], []
    refs = {host.placed: host for host in hosts}
    ready, _ = ray.wait(list(refs), num_returns=at_least or len(refs), timeout=patience)
    there, dead = [], []
    for ref in ready:
        try:
            ray.get(ref)
            there.append(refs[ref])
        except RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            if isinstance(error, RayTaskError) or "creation task" in lines[0]:
                text = f"a node of the cluster cannot host silos: {lines[-1]}; wants the same cosilo there"
                raise RunError(text) from None
            dead.append(refs[ref])  # with its node
    return there, dead


def _resources(needs: dict[str, float]) -> dict[str, float]:
    """What a silo needs, as Ray counts it."""
    memory = int(needs.get("memory", 0.0) * 2**30)
    return {"CPU": needs.get("cpus", 1.0), "GPU": needs.get("gpus", 0.0), "memory": memory}


def _nodes() -> list[dict[str, float]]:
    """What each node has, free or not."""
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _patience(needs: dict[str, float]) -> float:
    """How long to wait for a place: others may go, but what no node has will hardly come."""
    asked = _resources(needs).items()
    possible = any(all(has.get(what, 0.0) >= much for what, much in asked) for has in _nodes())
    return _QUEUE if possible else PATIENCE


def _no_place(needs: dict[str, float]) -> str:
    """That no node has what a silo needs, and what nodes have."""
    units = {"cpus": "CPU", "gpus": "GPU", "memory": "GiB of memory"}
    wants = listing([f"{needs[key]:g} {unit}" for key, unit in units.items() if needs.get(key)])
    nodes = [
        f"{has.get('CPU', 0):g} CPU, {has.get('GPU', 0):g} GPU, {has.get('memory', 0) / 2**30:.1f} GiB"
        for has in _nodes()
    ]
    return f"wants {wants}, and no node of the cluster has that free; the nodes have {'; '.join(nodes)}"
