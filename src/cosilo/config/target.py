"""A silo's target from files."""

from pathlib import Path

import numpy as np

from cosilo import data
from cosilo.config.settings import SiloSettings
from cosilo.config.source import Source, naming_key
from cosilo.data.instances import Instances, is_frame, take
from cosilo.errors import ConfigError
from cosilo.silo.target import Target


def make_target(one: SiloSettings, X: Instances, source: Source, where: str) -> Target | None:
    """The target that settings name, read like the silo's training data X: the same columns, or the text."""
    if one.target is None:
        return None
    columns = list(X.columns) if is_frame(X) else one.columns
    where = f"{where}.target"

    def read(key: str, path: Path, label: str | None, gaps: bool = False) -> data.Table:
        with naming_key(f"{where}.{key}"):
            return data.read(source.path(path), label, columns, one.text, gaps=gaps)

    path, apart, truth = one.target.path, one.target.unlabelled, one.target.truth
    found = read("path", path, one.label, gaps=apart is None)
    if found.y is None:
        raise ConfigError(f"{where}.path: {path} has no labels; wants them, at least of some points")
    if apart is not None:
        others = read("unlabelled" if truth is None else "truth", apart, truth)
        return Target(found.X, found.y, others.X, None if truth is None else others.y)
    known, open_ = np.flatnonzero(found.y != ""), np.flatnonzero(found.y == "")
    real = None
    if truth is not None:
        real = read("truth", path, truth, gaps=True).y
        assert real is not None
        real = real[open_]
        if (real == "").any():
            row = open_[np.flatnonzero(real == "")[0]] + 1
            raise ConfigError(
                f"{where}.truth: row {row} of {path} has neither a label nor a truth; "
                "fill the truth of all rows without a label, or leave it out"
            )
    return Target(take(found.X, known), found.y[known], take(found.X, open_), real)
