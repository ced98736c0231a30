"""What a recipe may say about the table or figure that it reproduces: its `[reproduces]`."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Size = Literal["laptop", "paper"]
SIZES: tuple[Size, ...] = ("laptop", "paper")
#: What can be read from a run.
Measure = Literal[
    "accuracy",
    "local",
    "relative",
    "share",
    "joint",
    "labelling",
    "elected",
    "rounds_to",
    "seconds_to",
]
_PATH = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([a-z_]+)(?:@([A-Za-z0-9_-]+))?")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ValuePath(_Strict):
    """Which value is meant: a case, one of its methods, a measure of its runs, and perhaps some of the silos.

    >>> ValuePath.parse("iid.cofed.relative@GAM")
    ValuePath(case='iid', method='cofed', measure='relative', whom='GAM')
    """

    case: str
    method: str
    measure: Measure
    whom: str | None = None

    @classmethod
    def parse(cls, path: str) -> "ValuePath":
        """From the text of a recipe: case.method.measure or case.method.measure@silos."""
        found = _PATH.fullmatch(path)
        if found is None:
            raise ValueError(f"case.method.measure, perhaps followed by @silo or @learner; got {path!r}")
        case, method, measure, whom = found.groups()
        if measure not in get_args(Measure):
            raise ValueError(f"a measure in {path!r}: {', '.join(get_args(Measure))}")
        return cls.model_validate({"case": case, "method": method, "measure": measure, "whom": whom})


class Number(_Strict):
    """A number of the table: which of our values it is, and the paper's if its text gives one."""

    text: str
    of: str
    #: The number is `of` divided by this, seed by seed.
    over: str | None = None
    paper: float | None = None
    #: Whether lower is better.
    less: bool = False
    #: For figures: the line it is on, and its place on the x-axis, which may differ at the paper's size.
    line: str | None = None
    x: float | None = None
    paper_x: float | None = None
    #: Why it is not reached, by size.
    why: dict[Size, str] = {}

    @property
    def key(self) -> str:
        """The name of its values."""
        return self.of if self.over is None else f"{self.of} / {self.over}"


class Claim(_Strict):
    """Something the paper says: on every seed, the smallest of `more` is above the largest of `than`."""

    text: str
    more: list[str]
    #: Paths, or a number that has to be reached.
    than: list[str] | float
    why: dict[Size, str] = {}


class Reproduces(_Strict):
    """What a recipe reproduces. The recipe itself is in laptop size."""

    paper: Literal["CoFED", "FML", "DoFed-SPP", "Tempo"]
    what: str
    shows: str
    methods: Annotated[list[str], Field(min_length=1)]
    #: About how long it takes on two cores.
    minutes: dict[Size, float]
    #: Dotted keys of the recipe, with their values in the paper's size.
    paper_size: dict[str, Any] = {}
    #: Cases that are run separately, each with its own changes to the recipe.
    case: dict[str, dict[str, Any]] = {"all": {}}
    #: Further changes of a case in the paper's size.
    paper_case: dict[str, dict[str, Any]] = {}
    number: list[Number] = []
    claim: list[Claim] = []
    #: The label of the figure's x-axis, if numbers are on lines.
    axis: str | None = None
    #: What laptop size leaves out, and whatever else a reader has to know.
    note: str = ""
    #: Why numbers are not reached and claims do not hold, unless these say so themselves.
    why: dict[Size, str] = {}

    @model_validator(mode="after")
    def _paths_exist(self) -> "Reproduces":
        for path in self.paths:
            value = ValuePath.parse(path)
            if value.case not in self.case:
                raise ValueError(f"cases {', '.join(self.case)} in {path!r}")
            if value.method not in self.methods:
                raise ValueError(f"methods {', '.join(self.methods)} in {path!r}")
        for case in self.paper_case:
            if case not in self.case:
                raise ValueError(f"cases {', '.join(self.case)} in paper_case; got {case!r}")
        return self

    @property
    def paths(self) -> list[str]:
        """All paths that are named, each once."""
        numbers = [path for number in self.number for path in (number.of, number.over) if path is not None]
        claims = [path for claim in self.claim for side in (claim.more, claim.than) for path in _listed(side)]
        return list(dict.fromkeys([*numbers, *claims]))


def _listed(side: list[str] | float) -> list[str]:
    return side if isinstance(side, list) else []
