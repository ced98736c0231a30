"""The reproductions that come with cosilo, and the recipe of each case in a size."""

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cosilo.comparison.compare import plan_for
from cosilo.comparison.plan import Plan
from cosilo.config import recipe_file, settings
from cosilo.config.build import Source
from cosilo.config.reproduces import Reproduces, Size, ValuePath
from cosilo.errors import ConfigError
from cosilo.recipes import RECIPES
from cosilo.reproduce.record import ReproductionRecord
from cosilo.text import guess, listing

#: Keys of a recipe that change how fast a result comes, and not the result.
_NO_MATTER = ("workers", "timeout", "runs")


@dataclass(frozen=True)
class Reproduction:
    """A recipe that says what it reproduces."""

    name: str
    about: Reproduces
    values: dict[str, Any]
    folder: Path = RECIPES

    def case(self, case: str, size: Size) -> dict[str, Any]:
        """The recipe of one case."""
        values = copy.deepcopy({key: value for key, value in self.values.items() if key != "reproduces"})
        for table in self.about.changes(case, size):
            for key, value in table.items():
                recipe_file.put(values, key, copy.deepcopy(value), f"{self.name}: reproduces: {key}")
        return values

    def only(self, cases: Sequence[str], size: Size) -> "Reproduction":
        """The same with some of the cases of a size."""
        there = self.about.cases_in(size)
        for case in cases:
            if case not in there:
                raise ConfigError(
                    f"{self.name}: no case {case!r} in {size} size{guess(case, there)}; "
                    f"there are {listing(there)}"
                )
        return replace(self, about=self.about.model_copy(update={"cases": {size: list(cases)}}))

    def digest(self, case: str, size: Size) -> str:
        """What tells the recipe of one case from what it was before or will be."""
        return digest(self.case(case, size))

    def changed_since(self, record: ReproductionRecord) -> list[str]:
        """The cases of a record whose recipe is another one now."""
        there = [path for path, values in record.values.items() if any(one is not None for one in values)]
        run = dict.fromkeys(ValuePath.parse(path.partition(" / ")[0]).case for path in there)
        now = {case: self.digest(case, record.size) for case in run if case in self.about.case}
        return [case for case in run if case not in now or record.recipes.get(case) != now[case]]

    def plans(self, size: Size, seeds: int | Sequence[int], folder: Path) -> dict[str, Plan]:
        """By case: what is compared, with what is in its folder already; `seeds`: how many, or which."""
        if size not in self.about.sizes:
            raise ConfigError(f"{self.name}: has no {size} size; it has {listing(self.about.sizes)}")
        source = Source(f"{self.name}.toml", self.folder)
        return {
            case: plan_for(self.case(case, size), source, self.about.methods_in(case), seeds, folder / case)
            for case in self.about.cases_in(size)
        }


def digest(values: Mapping[str, Any]) -> str:
    """A short name of a recipe's values, another one for everything that a result depends on.

    >>> digest({"seed": 1, "workers": 2}) == digest({"workers": 4, "seed": 1})
    True
    """
    matter = {key: value for key, value in values.items() if key not in _NO_MATTER}
    return hashlib.sha256(json.dumps(matter, sort_keys=True).encode()).hexdigest()[:12]


def reproductions() -> dict[str, Reproduction]:
    """All that come with cosilo, by name, those of a paper together."""
    found = [one for path in sorted(RECIPES.glob("*.toml")) if (one := read(path)) is not None]
    papers = ["CoFED", "FML", "DoFed-SPP", "Tempo"]
    found.sort(key=lambda one: papers.index(one.about.paper))  # within a paper, as files are sorted
    return {one.name: one for one in found}


def read(path: Path) -> Reproduction | None:
    """What a recipe reproduces, if it says so."""
    values = recipe_file.read(path)
    about = settings.validate(values, path.name).reproduces
    return None if about is None else Reproduction(path.stem, about, values, path.parent)


def find(name: str) -> Reproduction:
    """One by its name, or from a recipe file of one's own.

    >>> find("cofed_cifra")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    cosilo.errors.ConfigError: no reproduction 'cofed_cifra' (did you mean 'cofed_cifar'?); there are ...
    """
    if name.endswith(".toml"):
        own = read(Path(name))
        if own is None:
            raise ConfigError(f"{name}: has no [reproduces]; `cosilo run` and `cosilo compare` run it")
        return own
    there = reproductions()
    if name not in there:
        raise ConfigError(
            f"no reproduction {name!r}{guess(name, list(there))}; there are {listing(there, 30)}"
        )
    return there[name]
