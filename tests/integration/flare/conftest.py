"""One federation for all tests here: a coordinator and three silos in processes, with certificates.

A silo reads its file anew for every run, so a test writes the files that it needs. The coordinator is one
that allows everything: whatever is refused is refused by the silos.
"""

import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from cosilo import Federation, Run
from cosilo.config.resolve import find_method, known_method
from cosilo.config.settings import MethodSettings
from cosilo.protocol.carrier import Ask
from cosilo.protocol.wire import decode

pytest.importorskip("nvflare")
pytest.importorskip("torch")

from cosilo.engines.flare import admission, kits, processes, runs
from cosilo.engines.flare.job import export_job
from cosilo.engines.flare.party_files import FederationSettings, as_federation, read_silo
from cosilo.engines.flare.session import session, until_reachable

NAMES = ("tree", "svm", "net")
TASKS = {"tree": [0, 1, 2, 3], "svm": [2, 3, 4, 5], "net": [1, 3, 5, 6]}
LEARNERS = {
    "tree": '{ use = "sklearn.tree.DecisionTreeClassifier" }',
    "svm": '{ use = "sklearn.svm.SVC" }',
    "net": '{ use = "mlp", training = { epochs = 3, lr = 0.01 } }',
}

#: That of all forged jobs: with another one each job would have another contract.
SALT = "salt"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all of them in one process of `pytest -n`: they share the federation, and its silos' files."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("flare"))


def find_free_port() -> int:
    """A port below those that connections get: a silo that tries to reach its coordinator might take that."""
    for port in range(20_000 + os.getpid() % 10_000, 32_000):
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def write_digits(folder: Path) -> None:
    """Private data by silo, digits of all classes in two halves, and a pool; as CSV files."""
    X, y = load_digits(return_X_y=True)
    table = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)]).assign(digit=[f"d{v}" for v in y])
    order = np.random.default_rng(0).permutation(len(X))
    table[table.columns[:64]].iloc[order[:300]].to_csv(folder / "pool.csv", index=False)
    for place, (name, task) in enumerate(TASKS.items()):
        mine = order[300 + 300 * place : 600 + 300 * place]
        table.iloc[mine[np.isin(y[mine], task)]].to_csv(folder / f"{name}.csv", index=False)
    for place, name in enumerate(("one", "two", "three", "four")):
        mine = order[1200 + 100 * place : 1300 + 100 * place]
        table.iloc[mine].to_csv(folder / f"{name}.csv", index=False)


@dataclass
class Deployment:
    """The running federation, and what its owners would do with it."""

    folder: Path
    settings: FederationSettings
    kits: dict[str, Path] = field(default_factory=dict)
    #: The fingerprint of the pool.
    pool: str | None = None
    #: What `submit` and `resume` said, line by line.
    told: list[str] = field(default_factory=list)

    @property
    def coordinator(self) -> Path:
        return self.folder / "kits" / "coordinator"

    def start_server(self) -> None:
        with (self.folder / "server.log").open("a") as log:
            processes.start_server(self.kits["server"], self.folder / "runs", log)

    def start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("a") as log:
            processes.start_site(self.kits[name], self.file(name), self.folder / "silos" / name, log)

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def write(self, name: str, text: str) -> None:
        """The file of a silo; `name`, `label` and `test` are the same everywhere."""
        allow = "[allow]\nexact_scores = true\nagreement = 0\n"
        allow += 'parameters = { rounds = 100, accept = ["better", "always"] }\n'
        self.file(name).write_text(f'name = "{name}"\n{text}\n{allow if "[allow]" not in text else ""}')

    def write_cofed(self, limits: Mapping[str, str] | None = None, **learners: str) -> None:
        """Three silos with three kinds of models and different tasks, which share labels and scores.

        `limits` are further lines of a silo's file, by name, such as its table `[allow]`.
        """
        for name in NAMES:
            more = (limits or {}).get(name, "")
            self.write(
                name,
                f'path = "{name}.csv"\nlabel = "digit"\npool = {{ path = "pool.csv" }}\n'
                f"learner = {learners.get(name, LEARNERS[name])}\n{more}",
            )

    def write_networks(self, *names: str, learner: str = '"mlp", hidden = [8]') -> None:
        """Silos with the same network, which share weights."""
        training = 'training = { optimiser = "sgd", lr = 0.05, batch = 16 }'
        for name, data in zip(names, ("one", "two", "three"), strict=False):
            self.write(
                name,
                f'path = "{data}.csv"\nlabel = "digit"\nlearner = {{ use = {learner}, {training} }}\n'
                'shares = ["weights", "size", "metrics"]\n',
            )

    def federation(self, members: tuple[str, ...], use: str, **values: Any) -> FederationSettings:
        """The coordinator's file for a run; keys of the method have a dot in front here."""
        method = {"use": use} | {key[1:]: values.pop(key) for key in list(values) if key.startswith("_")}
        if use == "cofed":
            values.setdefault("pool", {"fingerprint": self.pool, "size": 300})
        values |= {"name": self.settings.name, "members": list(members), "method": method}
        values["coordinator"] = self.settings.coordinator.model_dump()
        return as_federation(values, "federation")

    def submit(self, members: tuple[str, ...], use: str, **values: Any) -> Run:
        self.told = []
        return runs.submit(self.federation(members, use, **values), self.coordinator, self.told.append)

    @property
    def certificate(self) -> str:
        """The coordinator's, which goes with every job."""
        return (self.kits["server"] / "startup" / "server.crt").read_text()

    def forge(
        self, settings: FederationSettings, run: str, asks: list[Ask], seals: Sequence[str | None] = ()
    ) -> "ForgedJob":
        """Submit a job of a coordinator that asks the first of the members what a test wants.

        `seals` says for each request whether the seal of the last answer goes with it: None, not; a field,
        with that field changed; an empty text, as it is.
        """
        place = Path(tempfile.mkdtemp(dir=self.folder))
        about = [
            {"number": ask.number, "step": ask.step, "body": ask.body.hex(), "seal": seal}
            for ask, seal in zip(asks, seals or [None] * len(asks), strict=True)
        ]
        (place / "asks.json").write_text(json.dumps(about))
        job = export_job(settings, run, place, SALT, self.certificate)
        (job / "app_server" / "custom").mkdir()
        shutil.copy(Path(__file__).with_name("forger.py"), job / "app_server" / "custom")
        config = job / "app_server" / "config" / "config_fed_server.json"
        values = json.loads(config.read_text())
        (coordination,) = [one for one in values["components"] if one["id"] == "coordination"]
        coordination["path"] = "forger.Forger"
        contract = settings.terms().contract(known_method(settings.method, "federation"), SALT).hash
        about_job = {"run": run, "silo": settings.members[0], "folder": str(place), "contract": contract}
        coordination["args"] = about_job
        config.write_text(json.dumps(values))
        with session(self.coordinator) as flare:
            number = str(flare._flare.submit_job(str(job)))
        kits = [self.kits[name] for name in settings.members]
        return ForgedJob(number, place / "answers.json", self.coordinator, kits)

    def locally(self, folder: Path, members: tuple[str, ...], use: str, **values: Any) -> Run:
        """The same silos and the same method in this process."""
        settings = self.federation(members, use, **values)
        silos = [read_silo(self.file(name)) for name in members]
        method = find_method(MethodSettings(use=use, **settings.method.parameters()))
        return Federation(silos, method=method, seed=settings.seed).run(folder)

    def record(self, run: Run, name: str) -> Path:
        """What a silo keeps of a run, where the silo is."""
        return self.folder / "silos" / name / run.folder.name


@dataclass
class ForgedJob:
    """A job of a coordinator that asks what it likes."""

    number: str
    #: Where its answers are when all of them are there.
    path: Path
    coordinator: Path
    kits: list[Path]

    def answers(self) -> list[str | dict[str, Any]]:
        """Wait for them and for the end of the job: what each reply says, or the line that came instead."""
        wait_until(self.path.exists)
        found = json.loads(self.path.read_text())
        self.stop()
        return [read_answer(one) for one in found]

    def stop(self) -> None:
        """End the job, and wait until no silo is at work on it."""
        with session(self.coordinator) as flare:
            flare.stop(self.number)
            wait_until(lambda: flare.status(self.number).startswith("FINISHED"))
        wait_until(lambda: all(len(processes.running(kit)) == 1 for kit in self.kits))


def read_answer(answer: dict[str, str]) -> str | dict[str, Any]:
    """What a reply says, or the line of a failure."""
    return decode(bytes.fromhex(answer["reply"])) if "reply" in answer else answer["failure"]


def wait_until(true: Callable[[], object], patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.fixture
def free_port() -> int:
    return find_free_port()


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


def trusting(kit: Path) -> None:
    """A coordinator that lets everybody do everything."""
    kits.confine_server(kit)
    path = kit / "local" / "authorization.json"
    rights = json.loads(path.read_text())
    for role in rights["permissions"].values():
        role.update(dict.fromkeys(role, "any"))
    path.write_text(json.dumps(rights))
    path = kit / "local" / "resources.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"class_allow_list": ["*"]}))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flare")
    write_digits(folder)
    return folder


@pytest.fixture(scope="session")
def deployment(data: Path) -> Iterator[Deployment]:
    folder = data
    values = {"name": "digits", "members": list(NAMES), "method": {"use": "fedavg"}}
    settings = as_federation({**values, "coordinator": {"port": find_free_port()}}, "federation")
    one = Deployment(folder, settings)
    one.kits = admission.make_all(settings, folder / "kits")
    one.write_cofed()
    one.pool = read_silo(one.file("tree")).pool_fingerprint
    shutil.copy(Path(__file__).with_name("tricks.py"), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "confine_server", trusting)
        try:
            one.start_server()
            for name in NAMES:
                one.start(name)
            until_reachable(one.coordinator)
            yield one
        finally:
            for kit in one.kits.values():
                processes.stop(kit)
