"""Silos with data of their own, and pools."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo import data
from cosilo.config.own_dataset import load_dataset
from cosilo.config.resolve import make_learner
from cosilo.config.settings import LearnerSettings, PoolSettings, Settings, SiloSettings
from cosilo.config.source import Source, naming_key
from cosilo.config.target import make_target
from cosilo.coordination.institution import Institution
from cosilo.data.instances import Instances, as_instances, fingerprint, is_frame, take
from cosilo.errors import ConfigError, CosiloError, DataError
from cosilo.privacy.settings import Privacy
from cosilo.silo.silo import Silo

if TYPE_CHECKING:
    import pandas as pd


def make_silos(settings: Settings, source: Source) -> list[Silo | Institution]:
    """The silos of `[[silo]]` tables, or one line for each thing that is wrong with them."""
    problems: list[str] = []
    found = [
        _made(one, settings.seed, source, f"{source.name}: silo.{one.name}", problems)
        for one in settings.silo
    ]
    if problems:
        raise DataError("\n".join(problems))
    return [silo for silo in found if silo is not None]


def make_silo(one: SiloSettings, source: Source) -> Silo | Institution:
    """The silo that its own file describes."""
    problems: list[str] = []
    if one.privacy is not None and one.privacy.ledger is None:
        # One for all federations that the silo joins: they ask the same records.
        beside = one.privacy.model_copy(update={"ledger": Path("privacy")})
        one = one.model_copy(update={"privacy": beside})
    found = _made(one, 0, source, source.name, problems)
    if found is None:
        raise DataError("\n".join(problems))
    return found


def _made(
    one: SiloSettings, seed: int, source: Source, where: str, problems: list[str]
) -> Silo | Institution | None:
    """A silo with or without members; None if there are problems with it."""
    members = []
    for member in one.member:
        with _noted(problems, source, member.name, f"silo {one.name!r}: "):
            members.append(_silo(member, seed, source, f"{where}.member.{member.name}"))
    with _noted(problems, source, one.name):
        found: Silo | Institution | None = None
        if not one.member:
            found = _silo(one, seed, source, where)
        elif len(members) == len(one.member):
            quorum = 0.5 if one.quorum is None else one.quorum
            found = Institution(one.name, members, shares=one.shares, quorum=quorum)
        if found is not None:
            found.allow = one.allow
        return found
    return None


@contextmanager
def _noted(problems: list[str], source: Source, name: str, inside: str = "") -> Iterator[None]:
    """Add an error of a silo to the problems; the line names the silo and its institution."""
    try:
        yield
    except CosiloError as error:
        text = str(error)
        if not text.startswith(f"{source.name}:"):
            known = text.startswith(f"silo {name!r}")
            text = f"{inside}{text}" if known else f"{source.name}: {inside}silo {name!r}: {text}"
        problems.append(text)


def _silo(one: SiloSettings, seed: int, source: Source, where: str) -> Silo:
    test: Any = "auto" if "test" not in one.model_fields_set else None if one.test is False else one.test
    if one.path is not None:
        X, y = _examples(one, source.path(one.path), where)
    else:
        assert one.dataset is not None
        with naming_key(f"{where}.dataset"):
            train, held = (load_dataset(one.dataset, split, one, source) for split in ("train", "test"))
        if one.per_class is not None:
            with naming_key(f"{where}.per_class"):
                train = train.take(data.balanced(train.y, one.per_class, seed=seed))
        names = np.array(train.classes)
        X, y = train.X, names[train.y]
        test = None if test is None else (held.X, names[held.y])
    if one.test_path is not None:
        test = _examples(one, source.path(one.test_path), where)
    if one.learner is None:
        raise ConfigError(f"{where}.learner: is missing; give the silo or [defaults] a learner")
    pool = None
    if one.pool is not None:
        pool = make_pool(one.pool, seed, None, source, f"silo {one.name!r}, pool")
    silo = Silo(
        one.name,
        X,
        y,
        make_learner(one.learner, X, f"{where}.learner"),
        target=make_target(one, X, source, where),
        test=test,
        task=one.task,
        validation=one.validation,
        shares=one.shares,
        pool=None if pool is None else pool.X,
        pool_labels=None if pool is None else pool.y,
        privacy=with_ledger(one.privacy, source),
    )
    target = {}
    if one.target is not None:
        apart = one.target.unlabelled
        target = {"unlabelled": str(apart or one.target.path), "gaps": None if apart else "yes"}
    silo.origin = origin(one.learner, source, label=one.label, text=one.text, **target)
    return silo


def origin(learner: LearnerSettings, source: Source, **files: str | None) -> dict[str, Any]:
    """What a silo's record says about where its learner came from, and how its files are read."""
    known = {key: value for key, value in files.items() if value is not None}
    settings = learner.model_dump(mode="json", exclude_unset=True)
    return {"file": source.name, "folder": str(source.folder.resolve()), "learner": settings, **known}


def with_ledger(privacy: Privacy | None, source: Source) -> Privacy | None:
    """The same with the path of its ledger, if it has one, as a path of this process."""
    if privacy is None or privacy.ledger is None:
        return privacy
    return privacy.model_copy(update={"ledger": source.path(privacy.ledger)})


def _examples(one: SiloSettings, path: Path, where: str) -> tuple[Instances, NDArray[Any]]:
    table = data.read(path, label=one.label, columns=one.columns, text=one.text)
    if table.y is None:
        raise ConfigError(f"{where}.label: is missing; say which column of {path} holds the labels")
    return table.X, table.y


def make_pool(
    settings: PoolSettings, seed: int, rest: data.Table | None, source: Source, where: str
) -> data.Table:
    """The public instances that settings name; `rest` is what a simulation left over."""
    if settings.path is not None:
        path = source.path(settings.path)
        with naming_key(f"{source.name}: {where}.path"):
            found = data.read(path, label=settings.label, columns=settings.columns, text=settings.text)
        if settings.labelled and found.y is None:
            raise ConfigError(
                f"{source.name}: {where}.label: is missing, and labelled = true wants it; "
                f"say which column of {path} holds the labels"
            )
    elif settings.dataset is not None:
        with naming_key(f"{source.name}: {where}.dataset"):
            found = table_of(load_dataset(settings.dataset, settings.split, settings, source))
    elif rest is not None:
        found = rest
    else:
        raise ConfigError(f"{source.name}: {where}.rest: only a [simulation] leaves instances over")
    X, y = found.X, found.y if settings.labelled else None
    if settings.independent:
        if not is_frame(X):
            raise ConfigError(f"{source.name}: {where}.independent: wants a pool of columns")
        X = independent(X, settings.size or len(X), seed)
    elif settings.size is not None:
        if settings.size > len(X):
            raise ConfigError(
                f"{source.name}: {where}.size: got {settings.size}; there are {len(X)} instances"
            )
        chosen = np.random.default_rng(seed).choice(len(X), settings.size, replace=False)
        X, y = take(X, np.sort(chosen)), None if y is None else y[np.sort(chosen)]
    known = settings.fingerprint and fingerprint(as_instances(X, f"{source.name}: {where}"), y)
    if known != settings.fingerprint:
        raise ConfigError(
            f"{source.name}: {where}.fingerprint: got {settings.fingerprint!r}; these instances have "
            f"{known!r}: another pool, another order, other columns, or other labels"
        )
    return data.Table(X, y)


def independent(frame: "pd.DataFrame", size: int, seed: int) -> "pd.DataFrame":
    """Rows that belong to nobody: every column is drawn separately, with replacement.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    >>> len(independent(frame, 100, seed=0).drop_duplicates())
    4
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: frame[name].to_numpy()[rng.integers(len(frame), size=size)] for name in frame})


def table_of(dataset: data.Dataset) -> data.Table:
    """The instances of a named dataset with the names of their classes."""
    return data.Table(dataset.X, np.array(dataset.classes, dtype=object)[dataset.y])
