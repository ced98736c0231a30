"""Silos cut out of one dataset."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.build.named import make_learner
from cosilo.build.silos import table_of
from cosilo.build.source import Source, named
from cosilo.errors import ConfigError
from cosilo.settings import SimulationSettings, ValueSplit
from cosilo.silo import Silo
from cosilo.wording import guess


def simulate(settings: SimulationSettings, seed: int, source: Source) -> tuple[list[Silo], data.Table]:
    """The silos, and what no silo got."""
    where = f"{source.name}: simulation"
    with named(f"{where}.dataset"):
        train, test = (data.load(settings.dataset, split) for split in ("train", "test"))
    fine = train.y
    if settings.labels is not None:
        with named(f"{where}.labels"):
            train, test = train.relabel(settings.labels), test.relabel(settings.labels)
    used = np.arange(len(train))
    if settings.per_class is not None:
        with named(f"{where}.per_class"):
            used = data.balanced(train.y, settings.per_class, seed=seed)
    with named(f"{where}.split"):
        split = _split(settings, train.take(used), fine[used], seed)
    names = (
        settings.names or split.names or [f"silo-{i + 1:0{len(str(len(split)))}d}" for i in range(len(split))]
    )
    if len(names) != len(split):
        raise ConfigError(f"{where}.names: got {len(names)} names for {len(split)} silos")
    silos = []
    parts = [used[part] for part in split.parts]
    for place, (name, part, task) in enumerate(zip(names, parts, split.tasks, strict=True)):
        examples = train.take(part)
        learner = settings.learners[place % len(settings.learners)]
        judged = test.take(_test_part(settings, train, test, part, task))
        silos.append(
            Silo(
                name,
                examples.X,
                np.array(train.classes)[examples.y],
                make_learner(learner, examples.X, f"{where}.learners.{place % len(settings.learners)}"),
                test=(judged.X, np.array(train.classes)[judged.y]),
                task=[train.classes[code] for code in task],
                validation=settings.validation,
                shares=settings.shares,
            )
        )
    left = np.setdiff1d(np.arange(len(train)), np.concatenate(parts))
    return silos, table_of(train.take(left))


def _split(
    settings: SimulationSettings, train: data.Dataset, fine: NDArray[np.int64], seed: int
) -> data.Split:
    choice = settings.split
    given = choice.model_dump(exclude={"use"})
    if isinstance(choice, ValueSplit):
        return data.by_value(_column(train, choice.column), train.y)
    if choice.use == "superclasses":
        return data.superclasses(fine, train.y, **given, seed=seed)
    if choice.use == "dirichlet":
        return data.dirichlet(train.y, **given, seed=seed)
    if choice.use == "shards":
        return data.shards(train.y, **given, seed=seed)
    return data.iid(train.y, **given, seed=seed)


def _column(dataset: data.Dataset, name: str) -> NDArray[Any]:
    if name in dataset.groups:
        return np.array(dataset.group_names[name])[dataset.groups[name]]
    columns = list(getattr(dataset.X, "columns", []))
    if name not in columns:
        there = [*dataset.groups, *columns]
        raise ConfigError(f"column: {dataset.name} has no {name!r}{guess(name, there)}")
    return np.asarray(dataset.X[name])


def _test_part(
    settings: SimulationSettings,
    train: data.Dataset,
    test: data.Dataset,
    part: NDArray[np.int64],
    task: tuple[int, ...],
) -> NDArray[np.int64]:
    """The test instances of the silo's classes; those of its own writer if it is one writer's silo."""
    mine = np.isin(test.y, task)
    if isinstance(settings.split, ValueSplit):
        column = settings.split.column
        mine &= _column(test, column) == _column(train, column)[part[0]]
    return np.flatnonzero(mine)
