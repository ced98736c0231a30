"""What a recipe file may say, typed; a mistake gets one line that names file, key and what is wanted."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from cosilo.config.explain import explain
from cosilo.config.reproduces import Reproduces
from cosilo.config.split_settings import SplitSettings
from cosilo.errors import ConfigError
from cosilo.parameters import Parameters
from cosilo.privacy.settings import Privacy
from cosilo.protocol.allow import Allow
from cosilo.simulated_time.clock import Clock

P = TypeVar("P", bound=Parameters)


class Strict(BaseModel):
    """Settings in which every key is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NeedsSettings(Strict):
    """What a silo asks of the node that it is placed on, where there are several: with Ray."""

    cpus: Annotated[float, Field(gt=0)] = 1.0
    gpus: Annotated[float, Field(ge=0)] = 0.0
    memory: Annotated[float, Field(gt=0)] | None = None  # in GiB


class LearnerSettings(BaseModel):
    """`use` is an import path; `training` to `tokens` are for a torch module; others are its own."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str
    training: dict[str, Any] | None = None
    update: dict[str, Any] | None = None
    choices: list[dict[str, Any]] = []
    update_choices: list[dict[str, Any]] = []
    # Of texts: the size of a hashed vocabulary, words, or the import path of a tokeniser or vocabulary.
    tokens: int | list[str] | str | None = None
    needs: NeedsSettings | None = None

    def arguments(self) -> dict[str, Any]:
        """The keys that are the learner's own."""
        return dict(self.model_extra or {})


class MethodSettings(BaseModel):
    """`use` is a method's name or the import path of your own; other keys are its parameters."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str = "cofed"

    def parameters(self) -> dict[str, Any]:
        """The keys that are the method's own."""
        return dict(self.model_extra or {})


class PoolSettings(Strict):
    """The public pool: a file, a named dataset, or what a simulation left over."""

    path: Path | None = None
    columns: list[str] | None = None
    text: str | None = None
    label: str | None = None  # a column to leave out, unless the pool is labelled
    dataset: str | None = None
    split: Literal["train", "test"] = "train"
    rest: bool = False
    labelled: bool = False  # take the labels along, for methods that learn from them
    independent: bool = False  # draw each column separately: rows that belong to nobody
    fingerprint: str | None = None  # what the partners agreed on
    size: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "PoolSettings":
        if sum([self.path is not None, self.dataset is not None, self.rest]) != 1:
            raise ValueError("one of path, dataset or rest = true")
        if self.independent and self.labelled:
            raise ValueError("labelled = false with independent = true: a row of parts has no label")
        return self


Shares = list[str]
Share = Annotated[float, Field(ge=0, le=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]


class SiloDefaults(Strict):
    """What holds for every silo that does not say otherwise."""

    label: str | None = None
    columns: list[str] | None = None
    text: str | None = None
    test: Fraction | Literal[False] = 0.25
    validation: Fraction = 0.2
    shares: Shares = ["labels", "metrics"]
    task: list[str] | None = None
    privacy: Privacy | None = None
    learner: LearnerSettings | None = None


class TargetSettings(Strict):
    """A target: points with labels in `path`; those without are in `unlabelled`, or there with no label."""

    path: Path
    unlabelled: Path | None = None
    truth: str | None = None  # a column with the classes of the unlabelled points, to judge their labels by


class SiloSettings(SiloDefaults):
    """One silo with data of its own: a file, or a named dataset and its test split; or with members."""

    name: str
    member: list["SiloSettings"] = []
    quorum: Share | None = None
    path: Path | None = None
    test_path: Path | None = None
    dataset: str | None = None
    per_class: Annotated[int, Field(ge=1)] | None = None  # use only this many training instances per class
    target: TargetSettings | None = None
    pool: PoolSettings | None = None
    allow: Allow | None = None  # what its coordinator may do; between organisations there are defaults

    @model_validator(mode="after")
    def _one_source(self) -> "SiloSettings":
        if self.member:
            beside = sorted(self.model_fields_set - {"name", "member", "quorum", "shares", "allow"})
            if beside:
                raise ValueError(f"no {beside[0]} beside member tables: members have data and learners")
            if any(member.member for member in self.member):
                raise ValueError("members without members of their own")
            return self
        if (self.path is None) == (self.dataset is None):
            raise ValueError("one of path and dataset, or member tables")
        if self.quorum is not None:
            raise ValueError("quorum with member tables only")
        if self.per_class is not None and self.dataset is None:
            raise ValueError("per_class with a dataset only")
        if self.target is not None and self.path is None:
            raise ValueError("target with a path only")
        return self


class SimulationSettings(Strict):
    """Silos cut out of one dataset; learners are dealt in turn; the test split judges each on its classes.

    The dataset is one by name, or a file or folder of one's own: of that a quarter is the test split, unless
    `test_path` is.
    """

    dataset: str | None = None
    path: Path | None = None
    test_path: Path | None = None
    label: str | None = None
    columns: list[str] | None = None
    text: str | None = None
    labels: str | None = None
    split: SplitSettings
    learners: Annotated[list[LearnerSettings], Field(min_length=1)]
    tasks: Literal["own", "all"] = "own"  # the classes that a silo got instances of, or all of the dataset
    per_class: Annotated[int, Field(ge=1)] | None = None  # use only this many training instances per class
    test: Annotated[int, Field(ge=1)] | None = None  # test instances per silo, different ones if possible
    names: list[str] | None = None
    institutions: Annotated[int, Field(ge=1)] | None = None  # the silos are dealt to this many, in order
    hidden_targets: bool = False  # hide what silos want from methods that are not made for targets
    validation: Fraction = 0.2
    shares: Shares = ["labels", "metrics"]
    privacy: Privacy | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "SimulationSettings":
        if (self.path is None) == (self.dataset is None):
            raise ValueError("one of path and dataset")
        if self.test_path is not None and self.path is None:
            raise ValueError("test_path with a path only")
        if self.labels is not None and self.path is not None:
            raise ValueError("labels with a dataset only; label names the column of a file")
        return self

    @model_validator(mode="after")
    def _targets_have_tasks(self) -> "SimulationSettings":
        if self.tasks == "all" and self.split.use in ("subset", "normal"):
            raise ValueError(f'tasks = "own" with the split {self.split.use}, which sets what is wanted')
        if self.hidden_targets and self.split.use not in ("subset", "normal"):
            raise ValueError(f"a split with targets, subset or normal, to hide them; got {self.split.use}")
        return self


class Settings(Strict):
    """A whole recipe."""

    seed: Annotated[int, Field(ge=0)] = 0
    workers: Annotated[int, Field(ge=0)] = 0
    quorum: Share = 0.5
    timeout: Annotated[float, Field(gt=0)] | None = None
    runs: Path = Path("runs")
    method: MethodSettings = MethodSettings()
    pool: PoolSettings | None = None
    defaults: SiloDefaults = SiloDefaults()
    silo: list[SiloSettings] = []
    simulation: SimulationSettings | None = None
    clock: Clock | None = None  # what a run would have taken over given links
    # For `cosilo compare`: parameters of one method, by its name, or by a name of their own with `use`; and
    # the accuracy for which the report gives the first round and the simulated time that reach it.
    compare: dict[str, dict[str, Any]] = {}
    reach: Annotated[float, Field(gt=0, le=1)] | None = None
    reproduces: Reproduces | None = None  # for `cosilo reproduce`: the paper's numbers, cases and sizes

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        """Silos inherit what `[defaults]` says, before anything is checked."""
        if not isinstance(values, dict):
            return values
        silos, defaults = values.get("silo", []), values.get("defaults", {})
        if not isinstance(silos, list) or not isinstance(defaults, dict):
            return values
        return {**values, "silo": [_inherited(silo, defaults) for silo in silos]}

    @model_validator(mode="after")
    def _silos_from_somewhere(self) -> "Settings":
        if bool(self.silo) == (self.simulation is not None):
            raise ValueError("either [[silo]] tables or one [simulation]")
        return self


def _inherited(silo: Any, defaults: dict[str, Any]) -> Any:
    """A silo with what `[defaults]` says; of an institution, its members."""
    if not isinstance(silo, dict):
        return silo
    members = silo.get("member")
    if not isinstance(members, list):
        return {**defaults, **silo}
    shares = {key: value for key, value in defaults.items() if key == "shares"}
    return {**shares, **silo, "member": [_inherited(member, defaults) for member in members]}


def validate(values: Mapping[str, Any], source: str) -> Settings:
    """Typed settings, or one line for each mistake."""
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, source, Settings, names=_names(values))) from None


def _names(values: Mapping[str, Any]) -> list[str]:
    """What silos are called, as far as it is known."""
    silos = values.get("silo")
    if not isinstance(silos, list):
        return []
    found = [silo.get("name") if isinstance(silo, dict) else None for silo in silos]
    return [name if isinstance(name, str) and name else str(place) for place, name in enumerate(found)]
