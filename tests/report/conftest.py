"""Run directories made by hand: exact numbers in, so that a report can be checked against them."""

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cosilo import Run
from cosilo.report.facts import gather
from cosilo.report.run_page import render
from cosilo.runs.silo_state import SiloState

Maker = Callable[..., Run]


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def described(kind: str, form: str, size: int, about: str = "what it means") -> dict[str, Any]:
    return {"kind": kind, "form": form, "bytes": size, "about": about}


HELLO = {
    "classes": described("task", "list", 10),
    "pool": described("task", "str", 18),
    "offers": described("task", "list", 21),
}
SCORE = {"accuracy": described("metrics", "float", 4), "instances": described("metrics", "int", 3)}
VOTES = {"votes": described("labels", "int8[50]", 50, "a class for each <pool> instance")}

#: Step, fields, bytes of the whole message.
ASKS: list[tuple[str, dict[str, Any], int]] = [
    ("hello", HELLO, 150),
    ("train", {}, 48),
    ("evaluate", SCORE, 80),
    ("label", VOTES, 150),
    ("update", {}, 48),
    ("evaluate", SCORE, 80),
]


def audit_log() -> list[dict[str, Any]]:
    """All a silo sends in one round: 6 messages, 556 bytes, 113 of them in fields."""
    return [
        {"ask": number, "step": step, "fields": fields, "bytes": size}
        for number, (step, fields, size) in enumerate(ASKS, start=1)
    ]


def asks_for(names: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "number": number,
            "step": step,
            "timed": step not in ("hello", "evaluate"),
            "silos": names,
            "seconds": 0.5 * number,
            "arrivals": {name: {"seconds": 0.1 * number, "fields": fields} for name in names},
        }
        for number, (step, fields, _) in enumerate(ASKS, start=1)
    ]


def events_for(asks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A start, every ask with 0.25 s of the coordinator's own work before it, a finish."""
    now = 1000.0
    events: list[dict[str, Any]] = [{"at": now, "event": "start"}]
    for ask in asks:
        now += 0.25
        events.append({"at": now, "event": "ask", "ask": ask["number"], "step": ask["step"]})
        now += ask["seconds"]
        events.append({"at": now, "event": "answered", "ask": ask["number"], "step": ask["step"]})
    events.append({"at": now + 0.25, "event": "finish"})
    return events


def scores(values: dict[str, float], instances: int = 100) -> dict[str, Any]:
    return {name: {"accuracy": value, "instances": instances} for name, value in values.items()}


#: Three silos: b gains, a loses, c stays; relative 0.9 / 1.25 / 1.
SMALL: dict[str, Any] = {
    "tasks": {"a": ["cat", "dog"], "b": ["dog", "eel", "fox"], "c": ["cat", "dog", "eel"]},
    "scores": {
        "local": scores({"a": 0.8, "b": 0.4, "c": 0.5}),
        "federated": scores({"a": 0.72, "b": 0.5, "c": 0.5}),
    },
    "failures": [],
    "voting": [
        {
            "stage": "federated",
            "voters": ["a", "b", "c"],
            "weights": [1.0, 1.0, 1.0],
            "elected": {"cat": 12, "dog": 20, "eel": 7, "fox": 0},
            "received": {"a": 30, "b": 25, "c": 31},
            "abstained": {"a": 0.0, "b": 0.0, "c": 0.0},
            "agreement": [[1.0, None, 0.75], [None, 1.0, 0.5], [0.75, 0.5, 1.0]],
        }
    ],
}


@pytest.fixture
def log() -> list[dict[str, Any]]:
    """A fresh audit log of a silo with nothing odd in it."""
    return audit_log()


@pytest.fixture
def small() -> dict[str, Any]:
    """A fresh copy of the small result, with its asks."""
    result: dict[str, Any] = json.loads(json.dumps(SMALL))
    result["asks"] = asks_for(["a", "b", "c"])
    return result


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """A run directory; without arguments a finished one of three silos with nothing odd in it."""

    def make_run(
        result: dict[str, Any] | None = None,
        *,
        name: str = "2026-01-02-cofed-1",
        method: dict[str, Any] | None = None,
        status: str = "finished",
        logs: dict[str, list[dict[str, Any]]] | None = None,
        recipe: dict[str, Any] | None = None,
        models: dict[str, int] | None = None,
        seed: int = 7,
    ) -> Run:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        result = dict(result if result is not None else SMALL)
        names = list(result["tasks"])
        asks = result.pop("asks", asks_for(names))
        about = {
            "cosilo": "0.1.0",
            "method": method or {"use": "cofed", "alpha": 0.3, "rounds": 1},
            "seed": seed,
            "silos": names,
            "pool": "4de1a6a860ad5da3",
            "pool_size": 50,
            "created": "2026-01-02T03:04:05+00:00",
            "status": status,
        }
        (folder / "run.json").write_text(json.dumps(about))
        (folder / "result.json").write_text(json.dumps(result))
        if recipe:
            (folder / "recipe.json").write_text(json.dumps(recipe))
        write_lines(folder / "asks.jsonl", asks)
        write_lines(folder / "events.jsonl", events_for(asks))
        for silo in names:
            log = (logs or {}).get(silo, audit_log())
            if log:
                write_lines(folder / "silos" / silo / "audit.jsonl", log)
        for silo, size in (models or {}).items():
            record = folder / "silos" / silo
            (record / "model-00005").mkdir(parents=True)
            (record / "model-00005" / "model.bin").write_bytes(bytes(size))
            SiloState(5, "", "", False, models={"model": "model-00005"}).write(record)
        return Run(folder)

    return make_run


@pytest.fixture
def large() -> Callable[..., dict[str, Any]]:
    """Makes results of any size."""
    return large_result


def large_result(silos: int, classes: int, rounds: int = 1, seed: int = 0) -> dict[str, Any]:
    """The result of a large run, with numbers from a generator."""
    rng = np.random.default_rng(seed)
    vocabulary = [f"class number {number}" for number in range(classes)]
    names = [f"silo-{number:03d}" for number in range(1, silos + 1)]
    some = max(2, classes // 3)
    tasks = {name: [vocabulary[c] for c in sorted(rng.permutation(classes)[:some])] for name in names}
    stages = ["local", *[f"round {number}" for number in range(1, rounds)], "federated"]
    accuracy = rng.uniform(0.4, 0.7, silos)
    found = {}
    for stage in stages:
        found[stage] = scores(dict(zip(names, np.round(accuracy, 4).tolist(), strict=True)), 4000)
        accuracy = np.clip(accuracy + rng.normal(0.06, 0.05, silos), 0.01, 1)
    voting = []
    for stage in stages[1:]:
        matrix = np.round(rng.uniform(0.3, 1, (silos, silos)), 6)
        agreement: list[list[float | None]] = ((matrix + matrix.T) / 2).tolist()
        for place in range(silos):
            agreement[place][place] = 1.0
            agreement[place][(place * 7 + 3) % silos] = None
        voting.append(
            {
                "stage": stage,
                "voters": names,
                "weights": [1.0] * silos,
                "elected": dict(zip(vocabulary, rng.integers(0, 9000, classes).tolist(), strict=True)),
                "received": dict(zip(names, rng.integers(9000, 30000, silos).tolist(), strict=True)),
                "abstained": dict(zip(names, rng.uniform(0, 0.4, silos).tolist(), strict=True)),
                "agreement": agreement,
            }
        )
    return {"tasks": tasks, "scores": found, "failures": [], "voting": voting}


# ---------------------------------------------------------------------- reading pages

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Reader(HTMLParser):
    """Checks that tags are balanced and ids unique; keeps what a person would read."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value)
            if key in ("href", "src", "xlink:href", "action", "data", "poster", "srcset"):
                self.targets.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    @property
    def cells(self) -> str:
        """The same with a space between elements, as between the cells of a table."""
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def reader_of() -> type[Reader]:
    """Reads a page."""
    return Reader


@pytest.fixture
def read() -> Callable[[Run], Reader]:
    """Reads the page of a run."""
    return lambda run: Reader(render(gather(run)))
