"""From settings to a federation: reads the data, imports the learners, makes the silos."""

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from cosilo import data
from cosilo.errors import ConfigError, CosiloError, DataError, LearnerError
from cosilo.federation import Federation
from cosilo.instances import Instances, as_instances, fingerprint, take
from cosilo.learners.encoding import encoded
from cosilo.methods import METHODS
from cosilo.methods.base import Method
from cosilo.settings import (
    LearnerSettings,
    MethodSettings,
    PoolSettings,
    Settings,
    SiloSettings,
    SimulationSettings,
    ValueSplit,
    explain,
    validate,
)
from cosilo.silo import Silo
from cosilo.wording import guess, listing


@dataclass(frozen=True)
class Source:
    """Where settings came from: a name for errors, and the folder that their relative paths start in."""

    name: str
    folder: Path

    def path(self, path: Path) -> Path:
        """A path of the settings as a path of this process."""
        return path if path.is_absolute() else self.folder / path


def federation(values: Mapping[str, Any], source: Source) -> Federation:
    """The federation that the values of a recipe describe."""
    settings = validate(values, source.name)
    if str(source.folder) not in sys.path:
        sys.path.append(str(source.folder))  # a learner or method of one's own may lie beside the recipe
    method = find_method(settings.method, source.name)
    rest: Instances | None = None
    if settings.simulation is not None:
        silos, rest = _simulate(settings.simulation, settings.seed, source)
    else:
        silos = _silos(settings, source)
    pool = None if settings.pool is None else _pool(settings.pool, settings.seed, rest, source, "pool")
    return Federation(
        silos,
        pool,
        method,
        seed=settings.seed,
        quorum=settings.quorum,
        timeout=settings.timeout,
        workers=settings.workers,
        recipe={"source": source.name, "folder": str(source.folder.resolve()), "values": values},
    )


@contextmanager
def _named(key: str) -> Iterator[None]:
    """Put the file and the key in front of what is wrong with the data that it names."""
    try:
        yield
    except (ConfigError, DataError) as error:
        raise ConfigError(f"{key}: {error}") from error


# ---------------------------------------------------------------------- methods and learners


def find_method(settings: MethodSettings, source: str = "method") -> Method:
    """A method by name, or one's own by import path, with its parameters checked."""
    kind: Any = METHODS.get(settings.use)
    if kind is None and "." not in settings.use:
        raise ConfigError(
            f"{source}: method.use: there is no method {settings.use!r}{guess(settings.use, list(METHODS))}; "
            f"there are {listing(METHODS)}"
        )
    if kind is None:
        kind = imported(settings.use, f"{source}: method.use")
    if not (isinstance(kind, type) and issubclass(kind, Method)):
        raise ConfigError(
            f"{source}: method.use: {settings.use} is not a method (a subclass of cosilo.Method)"
        )
    try:
        return kind(**settings.parameters())
    except ValidationError as error:
        raise ConfigError(explain(error, source, kind, "method")) from None


def imported(path: str, where: str) -> Any:
    """What an import path such as `sklearn.svm.SVC` names."""
    module_name, _, attribute = path.rpartition(".")
    if not module_name:
        raise ConfigError(f"{where}: got {path!r}; wants an import path, such as sklearn.svm.SVC")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{where}: cannot import {module_name!r} ({error}); is it installed?") from None
    if not hasattr(module, attribute):
        there = [name for name in dir(module) if not name.startswith("_")]
        raise ConfigError(f"{where}: {module_name!r} has no {attribute!r}{guess(attribute, there)}")
    return getattr(module, attribute)


def make_learner(settings: LearnerSettings, X: Instances, where: str) -> Any:
    """The learner that settings describe, ready to read instances like X."""
    if "." not in settings.use:  # a network of the zoo
        from cosilo.learners import zoo

        try:
            return _network(zoo.find(settings.use), settings, where)
        except LearnerError as error:
            raise ConfigError(f"{where}.use: {error}, or an import path such as sklearn.svm.SVC") from None
    thing = imported(settings.use, f"{where}.use")
    if settings.recipe is not None or _is_module(thing):
        return _network(thing, settings, where)
    try:
        return encoded(thing(**settings.arguments()), X)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {settings.use} does not take these settings: {error}") from None


def _is_module(thing: Any) -> bool:
    return inspect.isclass(thing) and any(
        f"{kind.__module__}.{kind.__qualname__}" == "torch.nn.modules.module.Module" for kind in thing.__mro__
    )


def _network(build: Any, settings: LearnerSettings, where: str) -> Any:
    from cosilo.learners.network import Network
    from cosilo.learners.recipe import Recipe

    recipes = {}
    for key in ("recipe", "update"):
        given = getattr(settings, key)
        try:
            recipes[key] = None if given is None else Recipe(**given)
        except ValidationError as error:
            raise ConfigError(explain(error, where, Recipe, key)) from None
    arguments = settings.arguments()
    try:
        inspect.signature(build).bind(input_shape=(1,), n_classes=2, **arguments)
    except TypeError as error:
        raise ConfigError(f"{where}: {settings.use} does not take these settings: {error}") from None

    def module(input_shape: tuple[int, ...], n_classes: int) -> Any:
        return build(input_shape=input_shape, n_classes=n_classes, **arguments)

    module.__name__ = getattr(build, "__name__", "module")
    return Network(module, recipes["recipe"] or Recipe(), recipes["update"])


# ---------------------------------------------------------------------- silos with data of their own


def _silos(settings: Settings, source: Source) -> list[Silo]:
    silos, problems = [], []
    for place, one in enumerate(settings.silo):
        try:
            silos.append(_silo(one, settings, source, f"{source.name}: silo.{place}"))
        except CosiloError as error:
            text = str(error)
            known = text.startswith((f"{source.name}:", f"silo {one.name!r}"))
            problems.append(text if known else f"{source.name}: silo {one.name!r}: {text}")
    if problems:
        raise DataError("\n".join(problems))
    return silos


def _silo(one: SiloSettings, settings: Settings, source: Source, where: str) -> Silo:
    X, y = _examples(one, source.path(one.path), where)
    test: Any = None if one.test is False else one.test
    if one.test_path is not None:
        test = _examples(one, source.path(one.test_path), where)
    if one.learner is None:
        raise ConfigError(f"{where}.learner: is missing; give the silo or [defaults] a learner")
    pool = (
        None if one.pool is None else _pool(one.pool, settings.seed, None, source, f"silo {one.name!r}, pool")
    )
    return Silo(
        one.name,
        X,
        y,
        make_learner(one.learner, X, f"{where}.learner"),
        test=test,
        task=one.task,
        validation=one.validation,
        shares=one.shares,
        pool=pool,
    )


def _examples(one: SiloSettings, path: Path, where: str) -> tuple[Instances, NDArray[Any]]:
    table = data.read(path, label=one.label, columns=one.columns, text=one.text)
    if table.y is None:
        raise ConfigError(f"{where}.label: is missing; say which column of {path} holds the labels")
    return table.X, table.y


def _pool(settings: PoolSettings, seed: int, rest: Instances | None, source: Source, where: str) -> Instances:
    if settings.path is not None:
        path = source.path(settings.path)
        with _named(f"{source.name}: {where}.path"):
            X = data.read(path, label=settings.label, columns=settings.columns, text=settings.text).X
    elif settings.dataset is not None:
        with _named(f"{source.name}: {where}.dataset"):
            X = data.load(settings.dataset, settings.split).X
    elif rest is not None:
        X = rest
    else:
        raise ConfigError(f"{source.name}: {where}.rest: only a [simulation] leaves instances over")
    if settings.size is not None:
        if settings.size > len(X):
            raise ConfigError(
                f"{source.name}: {where}.size: got {settings.size}; there are {len(X)} instances"
            )
        chosen = np.random.default_rng(seed).choice(len(X), settings.size, replace=False)
        X = take(X, np.sort(chosen))
    found = settings.fingerprint and fingerprint(as_instances(X, f"{source.name}: {where}"))
    if found != settings.fingerprint:
        raise ConfigError(
            f"{source.name}: {where}.fingerprint: got {settings.fingerprint!r}; these instances have "
            f"{found!r}: another pool, another order, or other columns"
        )
    return X


# ---------------------------------------------------------------------- silos cut out of one dataset


def _simulate(settings: SimulationSettings, seed: int, source: Source) -> tuple[list[Silo], Instances]:
    where = f"{source.name}: simulation"
    with _named(f"{where}.dataset"):
        train, test = (data.load(settings.dataset, split) for split in ("train", "test"))
    fine = train.y
    if settings.labels is not None:
        with _named(f"{where}.labels"):
            train, test = train.relabel(settings.labels), test.relabel(settings.labels)
    with _named(f"{where}.split"):
        split = _split(settings, train, fine, seed)
    names = (
        settings.names or split.names or [f"silo-{i + 1:0{len(str(len(split)))}d}" for i in range(len(split))]
    )
    if len(names) != len(split):
        raise ConfigError(f"{where}.names: got {len(names)} names for {len(split)} silos")
    silos = []
    for place, (name, part, task) in enumerate(zip(names, split.parts, split.tasks, strict=True)):
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
    left = np.setdiff1d(np.arange(len(train)), np.concatenate(split.parts))
    return silos, take(train.X, left)


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
