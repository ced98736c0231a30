"""What a comparison compares: methods, seeds, and the parameters that each method gets from one recipe."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cosilo.config import build
from cosilo.config.build import Source
from cosilo.config.explain import explain
from cosilo.config.settings import Settings, validate
from cosilo.coordination.run_loop import Engine
from cosilo.errors import ConfigError, RunError
from cosilo.federation.federation import Federation
from cosilo.methods import METHODS
from cosilo.methods.base import Method
from cosilo.runs.comparison import Comparison, FailedRun, MethodAndSeed
from cosilo.runs.durable_files import read_json, write_json
from cosilo.runs.run import RunDirectory
from cosilo.text import differences, guess, listing

#: Keys that may differ when a comparison continues: methods are compared by their parameters,
#: the others change how fast a result comes, or is said to come, and not the result.
_FREE = {"method", "compare", "reach", "reproduces", "workers", "timeout", "runs", "clock"}


@dataclass(frozen=True)
class Plan:
    """Methods × seeds of one recipe.

    >>> simulation = {"dataset": "digits", "split": {"use": "iid", "silos": 2}, "learners": [{"use": "mlp"}]}
    >>> method = {"use": "fedavg", "rounds": 5}
    >>> values = {"simulation": simulation, "method": method, "compare": {"fedprox": {"mu": 0.1}}}
    >>> plan = make_plan(values, Source("example", Path()), ["fedavg", "fedprox"], seeds=2)
    >>> plan.cells
    [('fedavg', 0), ('fedprox', 0), ('fedavg', 1), ('fedprox', 1)]
    >>> plan.recipe(("fedprox", 1))["method"]
    {'use': 'fedprox', 'rounds': 5, 'mu': 0.1}
    """

    source: Source
    values: Mapping[str, Any]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    #: A line for each thing that the methods are not equal in; known when a comparison has been checked.
    unequal: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> Settings:
        """The recipe, typed."""
        return validate(self.values, self.source.name)

    @property
    def cells(self) -> list[MethodAndSeed]:
        """All runs in their order: every method on the first seed, then on the second."""
        return [(method, seed) for seed in self.seeds for method in self.methods]

    def recipe(self, cell: MethodAndSeed) -> dict[str, Any]:
        """The values of one run, which could stand in a recipe of their own."""
        name, seed = cell
        rest = {
            key: value for key, value in self.values.items() if key not in ("compare", "reach", "reproduces")
        }
        return {**rest, "seed": seed, "method": {"use": self.use(name), **self._given(name)}}

    def federation(
        self, cell: MethodAndSeed, members: build.Members, engine: Engine | str = "local"
    ) -> Federation:
        """The federation of one run; its silos and its pool are those of every method on that seed."""
        return build.federation(self.recipe(cell), self.source, members, engine)

    def members(self, seed: int) -> build.Members:
        """The silos and the pool on a seed."""
        return build.make_members(self.settings.model_copy(update={"seed": seed}), self.source)

    def comparison(
        self,
        folder: Path,
        runs: Mapping[MethodAndSeed, RunDirectory],
        failures: Mapping[MethodAndSeed, FailedRun],
    ) -> Comparison:
        """What was compared, with what came of it."""
        methods = {name: {"use": self.use(name)} if self.use(name) != name else {} for name in self.methods}
        for name, method in self.make_methods().items():
            methods[name] |= method.model_dump(mode="json")
        return Comparison(
            folder,
            self.source.name,
            self.values,
            methods,
            self.seeds,
            self.settings.clock,
            self.settings.reach,
            self.unequal,
            runs,
            failures,
        )

    # ------------------------------------------------------------------ methods and parameters

    def use(self, name: str) -> str:
        """What method a name means: that method, or what `[compare.NAME]` says."""
        return str(self.settings.compare.get(name, {}).get("use", name))

    def make_methods(self) -> dict[str, Method]:
        """The methods with their parameters, or one line for each mistake in them."""
        made, problems = {}, self._strangers()
        for name, kind in self._kinds.items():
            try:
                made[name] = kind(**self._given(name))
            except ConfigError as error:
                if not isinstance(error.__cause__, ValidationError):
                    raise
                problems += self._explain(error.__cause__, name)
        if problems:
            raise ConfigError("\n".join(dict.fromkeys(problems)))
        return {name: made[name] for name in self.methods}

    @cached_property
    def _kinds(self) -> dict[str, type[Method]]:
        """The kinds of the methods that are compared, and of those that the recipe has a table for."""
        build.allow_imports_beside(self.source)
        kinds, problems = {}, []
        own = [name for name, table in self.settings.compare.items() if "use" in table]
        for name in dict.fromkeys([*self.methods, *self.settings.compare]):
            where = "methods" if name in self.methods else f"{self.source.name}: compare"
            if name in own:
                where = f"{self.source.name}: compare.{name}.use"
                problems += self._misnamed(name, where)
            try:
                kinds[name] = build.find_kind(self.use(name), where)
            except ConfigError as error:
                beside = f", and in the recipe {listing(own)}" if own and name not in own else ""
                problems.append(f"{error}{beside}")
        if problems:
            raise ConfigError("\n".join(problems))
        return kinds

    def _given(self, name: str) -> dict[str, Any]:
        """What the recipe says about a method: what it has of `[method]`, then its `[compare.METHOD]`."""
        shared = self.settings.method.parameters() if name in self.methods else {}
        fields = self._kinds[name].model_fields
        carried = {key: value for key, value in shared.items() if key in fields}
        own = self.settings.compare.get(name, {})
        return {**carried, **{key: value for key, value in own.items() if key != "use"}}

    def carried(self) -> list[str]:
        """A line for each parameter of `[method]` that another method also has, and means in its own way."""
        owner = build.find_kind(self.settings.method.use, f"{self.source.name}: method.use")
        lines = []
        for name in self.methods:
            kind = self._kinds[name]
            for key, value in self.settings.method.parameters().items():
                own = key in kind.model_fields and key not in self.settings.compare.get(name, {})
                if own and key in owner.model_fields and _home(kind, key) is not _home(owner, key):
                    lines.append(
                        f"{name} gets {key} = {value!r} of [method], which is for {owner.name}; "
                        f"[compare.{name}] says otherwise"
                    )
        return lines

    def _misnamed(self, name: str, where: str) -> list[str]:
        """What is wrong with the name of a `[compare.NAME]` with `use`: it becomes the name of a folder."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
            return [f"{where}: wants a table whose name has letters, digits, '_' and '-' only; got {name!r}"]
        if name in METHODS and self.use(name) != name:
            return [f"{where}: got {self.use(name)!r}; {name} is a method itself, choose another name"]
        return []

    def _strangers(self) -> list[str]:
        """One line for each parameter of `[method]` that no compared method has."""
        known = sorted({key for name in self.methods for key in self._kinds[name].model_fields})
        problems = []
        for key in self.settings.method.parameters():
            if key in known:
                continue
            owners = [name for name, kind in METHODS.items() if key in kind.model_fields]
            if owners:
                hint = f"; it is a parameter of {listing(owners)}: move it to [compare.{owners[0]}]"
            else:
                hint = f"{guess(key, known)}; wants one of {listing(known, 20) or 'none'}"
            what = f"none of the compared methods ({listing(self.methods)}) has it"
            problems.append(f"{self.source.name}: method.{key}: {what}{hint}")
        return problems

    def _explain(self, error: ValidationError, name: str) -> list[str]:
        """The lines of an error, each with the table that its key stands in."""
        own, shared = self.settings.compare.get(name, {}), self.settings.method.parameters()
        start = f"{self.source.name}: compare.{name}."
        lines = []
        for line in explain(error, self.source.name, self._kinds[name], f"compare.{name}").splitlines():
            key = line.removeprefix(start).partition(":")[0].partition(".")[0]
            carried = line.startswith(start) and key in shared and key not in own
            lines.append(line.replace(start, f"{self.source.name}: method.", 1) if carried else line)
        return lines


def _home(kind: type[Method], key: str) -> type:
    """The class that says what a parameter means: the first of its line to have it."""
    return [cls for cls in kind.__mro__ if key in inspect.get_annotations(cls)][-1]


def make_plan(
    values: Mapping[str, Any], source: Source, methods: Sequence[str], seeds: int | Sequence[int]
) -> Plan:
    """The plan for some methods; names and parameters are right.

    `seeds`: how many, from the recipe's own on, or which.
    """
    if not methods or not all(methods):
        raise ConfigError(f"methods: got {','.join(methods)!r}; wants some of {listing(METHODS)}")
    if isinstance(seeds, int):
        if seeds < 1:
            raise ConfigError(f"seeds: got {seeds}; wants at least 1")
        first = validate(values, source.name).seed
        seeds = range(first, first + seeds)
    plan = Plan(source, values, tuple(dict.fromkeys(methods)), tuple(sorted(set(seeds))))
    plan.make_methods()
    return plan


# ---------------------------------------------------------------------- on disk


def write_plan(folder: Path, plan: Plan) -> None:
    """Keep a plan in the folder of its comparison."""
    found = {
        "source": plan.source.name,
        "folder": str(plan.source.folder.resolve()),
        "values": plan.values,
        "methods": list(plan.methods),
        "seeds": list(plan.seeds),
        "unequal": list(plan.unequal),
    }
    write_json(folder / "comparison.json", found)


def has_plan(folder: Path) -> bool:
    """Whether a folder holds a comparison."""
    return (folder / "comparison.json").exists()


def read_plan(folder: Path) -> Plan:
    """The plan of a comparison on disk."""
    path = folder / "comparison.json"
    found = read_json(path)
    try:
        source = Source(found["source"], Path(found["folder"]))
        unequal = tuple(found.get("unequal", ()))
        return Plan(source, dict(found["values"]), tuple(found["methods"]), tuple(found["seeds"]), unequal)
    except (KeyError, TypeError, ValueError):
        raise RunError(f"{path}: is damaged; restore it or start a new comparison") from None


def merge_plans(folder: Path, old: Plan, new: Plan) -> Plan:
    """Both plans in one; recipe and parameters have to be the same as before."""
    for name in old.methods:
        if name not in METHODS and name not in new.settings.compare:
            raise RunError(
                f"{folder}: is a comparison with {name!r}, and {new.source.name} has no [compare.{name}] any "
                "more; choose another directory or delete this one"
            )
    methods = tuple(dict.fromkeys([*old.methods, *new.methods]))
    both = replace(new, methods=methods, seeds=tuple(sorted({*old.seeds, *new.seeds})))
    now = both.make_methods()
    pairs: list[tuple[Any, Any]] = [(_fixed(old), _fixed(new))]
    for name, method in old.make_methods().items():
        was, becomes = ({"use": one.name, **one.model_dump()} for one in (method, now[name]))
        pairs.append(({name: was}, {name: becomes}))
    for was, becomes in pairs:
        for key, before, after in differences(was, becomes):
            raise RunError(
                f"{folder}: is a comparison with {key} = {before!r}, now it is {after!r}; "
                "choose another directory or delete this one"
            )
    return both


def _fixed(plan: Plan) -> dict[str, Any]:
    return plan.settings.model_dump(mode="json", exclude=_FREE)
