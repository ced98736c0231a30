"""Fuzz what stands at the border: decode, the check of replies and of asks, and whole runs with one bad silo.

Real messages are damaged (bits, cuts, other scalars, other arrays) and handed to the code that reads what
strangers sent. Anything but a good message or an error that says so is an escape. Runs for `seconds` (default
240) and prints how much was tried.

    python benchmarks/fuzz.py [seconds] [seed]
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from cosilo import CoFED, Federation, Silo
from cosilo.engines.local.in_process import InProcess, open_boundary
from cosilo.errors import BadMessage, CosiloError
from cosilo.protocol.allow import Allow
from cosilo.protocol.carrier import Answer, Ask
from cosilo.protocol.contract import Contract
from cosilo.protocol.forms import Expected
from cosilo.protocol.message import check
from cosilo.protocol.wire import decode, encode

METHOD = CoFED(weights="size")
STEPS = METHOD.steps()
SCALARS: list[Any] = [
    None, True, -1, 0, 1, 2**63, 10**30, 10**400, 0.5, float("nan"), float("inf"), 1e300, "", "a", "\ud800",
    "\x1b[2J", "[/]", "=1+1", "a" * 5000, [], ["a"], ["a", "a"], ["a", "b"], ["\ud800", "b"], [1], [[]], {},
    {"a": 1}, ["x"] * 20_000, "local", "round 1", "nan",
]  # fmt: skip
NAMES = [
    "classes",
    "pool",
    "offers",
    "version",
    "votes",
    "size",
    "accuracy",
    "instances",
    "taken",
    "doubtful",
    "gained",
    "stage",
    "counts",
    "total",
    "counted",
    "other",
    "own",
    "unit",
    "x",
]
#: Steps of a run in which a silo may lie.
TOLD = ["hello", "train", "size", "label", "update", "evaluate", "decision"]
TYPES = [np.int8, np.int64, np.uint8, np.float16, np.float32, np.float64, np.complex64, np.bool_]


def message(rng: np.random.Generator) -> bytes:
    """Something that is a message, or nearly one."""

    def pick(options: list[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    scalars = {pick(NAMES): pick(SCALARS) for _ in range(rng.integers(4))}
    arrays = {}
    for _ in range(rng.integers(3)):
        shape = pick([(), (0,), (1,), (60,), (60, 3), (2, 2, 2)])
        values = rng.integers(-3, 5, shape) * pick([1, 1, 1, 10**9, 3e38])
        with np.errstate(all="ignore"):
            arrays[pick([*NAMES, "weights/a", "votes/a", "counts/000000000"])] = np.asarray(values).astype(
                pick(TYPES)
            )
    text = "[" * 50_000 if rng.random() < 0.01 else json.dumps(scalars)
    content = bytearray(save(arrays, metadata={"scalars": text}))
    how = rng.random()
    if how < 0.25:
        for _ in range(rng.integers(1, 4)):
            content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    elif how < 0.35:
        del content[rng.integers(len(content)) :]
    elif how < 0.4:
        content += bytes(rng.integers(0, 256, rng.integers(1, 20), dtype=np.uint8))
    return bytes(content)


def silos() -> list[Silo]:
    X, y = load_digits(return_X_y=True)
    parts = [
        np.flatnonzero(np.isin(y, task))[60 * n : 60 * n + 60] for n, task in enumerate([(0, 1), (0, 1)])
    ]
    shares = ["labels", "metrics", "size"]
    return [
        Silo(name, X[part], y[part], GaussianNB(), shares=shares, pool=X[1000:1060])
        for name, part in zip(("bad", "good"), parts, strict=True)
    ]


def messages(rng: np.random.Generator, seconds: float) -> tuple[int, int]:
    """Decode, and check as a reply to some step."""
    tried = escaped = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        content, step = message(rng), list(STEPS.values())[rng.integers(len(STEPS))]
        tried += 1
        try:
            check(decode(content), step.fields, Expected(classes=2, pool=60))
        except BadMessage as error:
            str(error).encode()  # it will be written down
        except Exception as error:
            escaped += 1
            print("escape", type(error).__name__, error, content[:200])
    return tried, escaped


def asks(rng: np.random.Generator, seconds: float) -> tuple[int, int]:
    """What a coordinator may send to a silo."""
    tried = escaped = 0
    with tempfile.TemporaryDirectory() as folder:
        silo = silos()[0]
        silo.allow = Allow(asks=10**9)
        border = open_boundary(silo, METHOD, Contract.of(METHOD), Path(folder) / "record")
        number = 1
        for step in ("hello", "train"):
            border.answer(Ask(number, step, encode({}), border.agreement.contract.hash))
            number += 1
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            tried += 1
            number += int(rng.integers(2))
            step = ["label", "update", "learn", "evaluate", "size", "hello", "x\x1b"][rng.integers(7)]
            try:
                border.answer(Ask(number, step, message(rng), border.agreement.contract.hash))
            except Exception as error:
                escaped += 1
                print("escape", step, type(error).__name__, error)
    return tried, escaped


def runs(rng: np.random.Generator, seconds: float) -> tuple[int, int]:
    """Whole runs in which one silo of two sends something else in one step."""
    tried = escaped = 0
    end, call = time.monotonic() + seconds, InProcess.call
    while time.monotonic() < end:
        lie, at = message(rng), TOLD[rng.integers(len(TOLD))]

        def changed(
            self: Any, silos: Any, asks: Any, timeout: float | None, lie: bytes = lie, at: str = at
        ) -> Iterator[Answer]:
            for answer in call(self, silos, asks, timeout):
                lies = answer.silo == "bad" and asks("bad").step == at
                yield Answer("bad", lie) if lies else answer

        InProcess.call = changed  # type: ignore[method-assign]
        tried += 1
        try:
            with tempfile.TemporaryDirectory() as folder, suppress(CosiloError):
                Federation(silos(), silos()[0].pool, METHOD).run(Path(folder) / "run")
        except Exception as error:
            escaped += 1
            print("escape", at, type(error).__name__, error)
        finally:
            InProcess.call = call  # type: ignore[method-assign]
    return tried, escaped


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 240.0
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    for name, fuzz in (("messages", messages), ("asks", asks), ("runs", runs)):
        tried, escaped = fuzz(rng, seconds / 3)
        print(f"figure {name}_tried {tried}\nfigure {name}_escaped {escaped}", flush=True)


if __name__ == "__main__":
    main()
