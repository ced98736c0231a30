"""Silos cut out of one dataset."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.config.own_dataset import load_dataset, own_dataset
from cosilo.config.resolve import import_object, make_learner
from cosilo.config.settings import SimulationSettings
from cosilo.config.silos import origin, table_of, with_ledger
from cosilo.config.source import Source, naming_key
from cosilo.config.split_settings import OwnSplit, ValueSplit
from cosilo.coordination.institution import Institution
from cosilo.data.instances import Instances
from cosilo.errors import ConfigError, DataError
from cosilo.silo.silo import Silo
from cosilo.silo.target import Target
from cosilo.text import cause, guess


def simulate(
    settings: SimulationSettings, seed: int, source: Source
) -> tuple[Sequence[Silo | Institution], data.Table]:
    """The silos, or the institutions that they are dealt to, and what no silo got."""
    where = f"{source.name}: simulation"
    if settings.path is not None:
        with naming_key(f"{where}.path"):
            train, test = own_dataset(settings, settings.path, seed, source)
    else:
        assert settings.dataset is not None
        with naming_key(f"{where}.dataset"):
            train, test = (
                load_dataset(settings.dataset, split, settings, source) for split in ("train", "test")
            )
    fine = train.y
    if settings.labels is not None:
        with naming_key(f"{where}.labels"):
            train, test = train.relabel(settings.labels), test.relabel(settings.labels)
    used = np.arange(len(train))
    if settings.per_class is not None:
        with naming_key(f"{where}.per_class"):
            used = data.balanced(train.y, settings.per_class, seed=seed)
    with naming_key(f"{where}.split"):
        split = _split(settings, train.take(used), fine[used], seed, f"{where}.split.use")
    own = None if isinstance(split, data.TargetSplit) else split.names
    names = settings.names or own or [f"silo-{i + 1:0{len(str(len(split)))}d}" for i in range(len(split))]
    if len(names) != len(split):
        raise ConfigError(f"{where}.names: got {len(names)} names for {len(split)} silos")
    silos, taken = [], []
    judges = _Judges(settings, train, test, seed, where)
    for place, name in enumerate(names):
        part = used[split.parts[place]]
        task = split.tasks[place] if settings.tasks == "own" else tuple(range(len(train.classes)))
        taken.append(part)
        target, judged_on = None, task
        if isinstance(split, data.TargetSplit):
            labelled, unlabelled = used[split.labelled[place]], used[split.unlabelled[place]]
            taken += [labelled, unlabelled]
            target = Target(
                *_named(train, labelled), *_named(train, unlabelled), hidden=settings.hidden_targets
            )
            judged_on = split.targets[place]
        X, y = _named(train, part)
        judged, counts = judges.deal(name, part, judged_on)
        learner = settings.learners[place % len(settings.learners)]
        silos.append(
            Silo(
                name,
                X,
                y,
                make_learner(learner, X, f"{where}.learners.{place % len(settings.learners)}"),
                target=target,
                test=judged,
                task=[train.classes[code] for code in sorted({*task, *judged_on})],
                validation=settings.validation,
                shares=settings.shares,
                privacy=with_ledger(settings.privacy, source),
            )
        )
        silos[-1].origin = origin(learner, source, label=settings.label, text=settings.text)
        silos[-1].count_jointly(counts)
    left = np.setdiff1d(np.arange(len(train)), np.concatenate(taken))
    dealt = silos if settings.institutions is None else _dealt(silos, settings, where)
    return dealt, table_of(train.take(left))


def _dealt(silos: list[Silo], settings: SimulationSettings, where: str) -> list[Institution]:
    """The same number of silos to each institution, in order."""
    count = settings.institutions
    assert count is not None
    each, over = divmod(len(silos), count)
    if over or not each:
        raise ConfigError(
            f"{where}.institutions: got {count} for {len(silos)} silos; wants a number that divides them"
        )
    return [
        Institution(
            f"institution-{place + 1:0{len(str(count))}d}",
            silos[place * each : (place + 1) * each],
            shares=settings.shares,
        )
        for place in range(count)
    ]


def _named(dataset: data.Dataset, index: NDArray[np.int64]) -> tuple[Instances, NDArray[np.str_]]:
    """Some instances, and the names of their classes."""
    part = dataset.take(index)
    return part.X, np.array(dataset.classes)[part.y]


def _split(
    settings: SimulationSettings, train: data.Dataset, fine: NDArray[np.int64], seed: int, where: str
) -> data.Split | data.TargetSplit:
    choice = settings.split
    if isinstance(choice, OwnSplit):
        return _own_split(choice, train, seed, where)
    given = choice.model_dump(exclude={"use"})
    if isinstance(choice, ValueSplit):
        return data.by_value(_column(train, choice.column), train.y)
    if choice.use == "superclasses":
        return data.superclasses(fine, train.y, **given, seed=seed)
    if choice.use == "dirichlet":
        return data.dirichlet(train.y, **given, seed=seed)
    if choice.use == "shards":
        return data.shards(train.y, **given, seed=seed)
    if choice.use == "subset":
        return data.subset(train.y, **given, seed=seed)
    if choice.use == "normal":
        return data.normal(train.y, **given, seed=seed)
    return data.iid(train.y, **given, seed=seed)


def _own_split(choice: OwnSplit, train: data.Dataset, seed: int, where: str) -> data.Split | data.TargetSplit:
    """What a function of the user's says: a split, or the indices of each silo, perhaps by name."""
    function = import_object(choice.use, where)
    try:
        found = function(train, seed=seed, **choice.arguments())
    except (ConfigError, DataError):
        raise
    except Exception as error:
        raise ConfigError(f"{choice.use} raised {type(error).__name__}: {cause(error)}") from error
    if isinstance(found, data.Split | data.TargetSplit):
        return found
    if not isinstance(found, Mapping | list | tuple):
        raise ConfigError(
            f"{choice.use} returned {type(found).__name__}; wants a Split, or the indices of each silo"
        )
    return data.own_split(found, train.y, choice.use)


def _column(dataset: data.Dataset, name: str) -> NDArray[Any]:
    if name in dataset.groups:
        return np.array(dataset.group_names[name])[dataset.groups[name]]
    columns = list(getattr(dataset.X, "columns", []))
    if name not in columns:
        there = [*dataset.groups, *columns]
        raise ConfigError(f"column: {dataset.name} has no {name!r}{guess(name, there)}")
    return np.asarray(dataset.X[name])


class _Judges:
    """Deals test instances to silos: all of the classes that a silo is judged on, or `settings.test` of them.

    Silos that are judged on the same classes get different instances until all are dealt; then it goes on
    with all again. So many silos cover a test set without judging on all of it at each of them.
    """

    def __init__(
        self, settings: SimulationSettings, train: data.Dataset, test: data.Dataset, seed: int, where: str
    ) -> None:
        self._settings, self._train, self._test, self._where = settings, train, test, where
        self._rng = np.random.default_rng(seed)
        #: By classes: all test instances and their places, and the places of those that are not dealt yet.
        self._whole: dict[tuple[int, ...], tuple[tuple[Instances, NDArray[np.str_]], NDArray[np.int64]]] = {}
        self._left: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._counted = np.zeros(len(test), dtype=bool)

    def deal(
        self, name: str, part: NDArray[np.int64], task: tuple[int, ...]
    ) -> tuple[tuple[Instances, NDArray[np.str_]], NDArray[np.bool_]]:
        """Of a silo with these training instances, judged on these classes.

        Also which of them no silo before it has: in the joint test set each instance counts once.
        """
        examples, places = self._dealt(name, part, task)
        fresh = ~self._counted[places]
        self._counted[places] = True
        return examples, fresh

    def _dealt(
        self, name: str, part: NDArray[np.int64], task: tuple[int, ...]
    ) -> tuple[tuple[Instances, NDArray[np.str_]], NDArray[np.int64]]:
        if isinstance(self._settings.split, ValueSplit):  # it has test instances of its own
            self._whole.clear()
            self._left.clear()
        if self._settings.test is not None:
            some = self._some(name, part, task, self._settings.test)
            return _named(self._test, some), some
        if task not in self._whole:  # hundreds of silos with the same classes share one copy
            there = self._all(part, task)
            self._whole[task] = _named(self._test, there), there
        return self._whole[task]

    def _some(
        self, name: str, part: NDArray[np.int64], task: tuple[int, ...], wanted: int
    ) -> NDArray[np.int64]:
        left = self._left.get(task, np.array([], dtype=np.int64))
        if len(left) < wanted:
            there = self._all(part, task)
            if len(there) < wanted:
                raise ConfigError(
                    f"{self._where}.test: got {wanted}; there are {len(there)} test instances of the classes "
                    f"of silo {name!r}"
                )
            left = np.concatenate([left, self._rng.permutation(np.setdiff1d(there, left))])
        self._left[task] = left[wanted:]
        return np.sort(left[:wanted])

    def _all(self, part: NDArray[np.int64], task: tuple[int, ...]) -> NDArray[np.int64]:
        """Of the classes it is judged on; only its writer's if it is one writer's silo."""
        mine = np.isin(self._test.y, task)
        if isinstance(self._settings.split, ValueSplit):
            column = self._settings.split.column
            mine &= _column(self._test, column) == _column(self._train, column)[part[0]]
        return np.flatnonzero(mine)
