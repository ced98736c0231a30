"""What a recipe may say about the table or figure that it reproduces: its `[reproduces]`."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cosilo.methods import METHODS

#: Minutes on a laptop, a night on two cores, the paper's protocol to the letter.
Size = Literal["laptop", "night", "paper"]
SIZES: tuple[Size, ...] = ("laptop", "night", "paper")
#: What can be read from a run.
Measure = Literal[
    "accuracy",
    "local",
    "relative",
    "share",
    "control",
    "taught",
    "joint",
    "labelling",
    "elected",
    "own_votes",
    "bytes",
    "rounds_to",
    "seconds_to",
]
#: The method that each paper is about.
_OWN = {"CoFED": "cofed", "FML": "fml", "DoFed-SPP": "dofed_spp", "Tempo": "tempo"}
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
    #: The number is `of` divided by this, seed by seed; of means over silos it is the mean of silos' ratios.
    over: str | None = None
    paper: float | None = None
    #: Whether lower is better.
    less: bool = False
    #: For figures: the line it is on, and its place on the x-axis, which may differ in other sizes.
    line: str | None = None
    x: float | None = None
    night_x: float | None = None
    paper_x: float | None = None
    #: Whether the verdict on all counts it: not where a case is there to explain the paper's number.
    counts: bool = True
    #: Why it is not reached, by size.
    why: dict[Size, str] = {}

    @property
    def key(self) -> str:
        """The name of its values."""
        return self.of if self.over is None else f"{self.of} / {self.over}"

    def x_in(self, size: Size) -> float | None:
        """Its place on the x-axis in a size."""
        other = {"laptop": None, "night": self.night_x, "paper": self.paper_x}[size]
        return self.x if other is None else other


class Claim(_Strict):
    """Something the paper says: everything in `more` is above everything in `than`, or level with it."""

    text: str
    more: list[str]
    #: Paths, or a number that has to be reached.
    than: list[str] | float
    #: By at least this much; below 0: it may be this much less.
    by: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    #: Instead: no further from it than this, above or below.
    within: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    #: Whether it is cosilo that says so, and not the paper.
    ours: bool = False
    #: Why it does not hold, or is not decided, by size.
    why: dict[Size, str] = {}
    #: Why it holds, by size.
    why_it_holds: dict[Size, str] = {}

    @model_validator(mode="after")
    def _above_or_level(self) -> "Claim":
        if self.within is not None and self.by:
            raise ValueError(f"either by or within for the claim {self.text!r}")
        return self

    @property
    def paths(self) -> list[str]:
        """All that it speaks of."""
        return [*self.more, *(self.than if isinstance(self.than, list) else [])]


class Curve(_Strict):
    """A panel of a figure: how an accuracy changes over the rounds, or in simulated time, by line."""

    text: str
    #: The path of each line, by what the line is called; `accuracy` and `joint` have curves.
    of: Annotated[dict[str, str], Field(min_length=1)]
    over: Literal["rounds", "seconds"] = "rounds"

    def key(self, path: str) -> str:
        """The name of a line's points."""
        return f"{path} over {self.over}"


class Reproduces(_Strict):
    """What a recipe reproduces.

    The recipe itself is in laptop size. The other sizes say what they have otherwise: a number, a network,
    the learners, whatever the paper's protocol asks for.
    """

    paper: Literal["CoFED", "FML", "DoFed-SPP", "Tempo"]
    what: str
    shows: str
    methods: Annotated[list[str], Field(min_length=1)]
    #: The sizes that there are, and about how long each takes on two cores: three seeds at laptop
    #: size, one at the others.
    minutes: dict[Size, float]
    #: Dotted keys of the recipe, with their values in other sizes.
    night_size: dict[str, Any] = {}
    paper_size: dict[str, Any] = {}
    #: Cases that are run separately, each with its own changes to the recipe.
    case: dict[str, dict[str, Any]] = {"all": {}}
    #: Further changes of a case in other sizes.
    night_case: dict[str, dict[str, Any]] = {}
    paper_case: dict[str, dict[str, Any]] = {}
    #: By size, the cases that it has, if these are not all.
    cases: dict[Size, Annotated[list[str], Field(min_length=1)]] = {}
    number: list[Number] = []
    claim: list[Claim] = []
    #: Panels with curves, beside the figure of the numbers.
    curve: list[Curve] = []
    #: The label of the figure's x-axis, if numbers are on lines.
    axis: str | None = None
    #: What laptop size leaves out, and whatever else a reader has to know.
    note: str = ""
    #: Why numbers are not reached and claims do not hold, unless these say so themselves.
    why: dict[Size, str] = {}

    @model_validator(mode="after")
    def _paths_exist(self) -> "Reproduces":
        curves = [path for curve in self.curve for path in curve.of.values()]
        for path in [*self.paths, *curves]:
            value = ValuePath.parse(path)
            if value.case not in self.case:
                raise ValueError(f"cases {', '.join(self.case)} in {path!r}")
            if value.method not in self.methods:
                raise ValueError(f"methods {', '.join(self.methods)} in {path!r}")
        for path in curves:
            value = ValuePath.parse(path)
            if value.measure not in ("accuracy", "joint") or value.whom is not None:
                raise ValueError(f"case.method.accuracy or case.method.joint for a curve; got {path!r}")
        named = {"night_case": list(self.night_case), "paper_case": list(self.paper_case)}
        named |= {f"cases.{size}": cases for size, cases in self.cases.items()}
        for where, cases in named.items():
            for case in cases:
                if case not in self.case:
                    raise ValueError(f"cases {', '.join(self.case)} in {where}; got {case!r}")
        return self

    @model_validator(mode="after")
    def _sizes_are_timed(self) -> "Reproduces":
        said = {"night": self.night_size or self.night_case, "paper": self.paper_size or self.paper_case}
        for size in [*(size for size, changes in said.items() if changes), *self.cases]:
            if size not in self.minutes:
                raise ValueError(f"minutes.{size}, since it says what that size is")
        return self

    @property
    def sizes(self) -> list[Size]:
        """The sizes that there are, the smallest first."""
        return [size for size in SIZES if size in self.minutes]

    def cases_in(self, size: Size) -> list[str]:
        """The cases that a size has."""
        return self.cases.get(size, list(self.case))

    def methods_in(self, case: str) -> list[str]:
        """The methods that a number, a claim or a curve asks of a case: nothing is kept of others."""
        curves = [path for curve in self.curve for path in curve.of.values()]
        asked = [ValuePath.parse(path) for path in [*self.paths, *curves]]
        named = {value.method for value in asked if value.case == case}
        return [method for method in self.methods if method in named] or self.methods

    def changes(self, case: str, size: Size) -> list[dict[str, Any]]:
        """What a case in a size changes of the recipe, to be applied in this order."""
        by_size: dict[Size, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
            "laptop": ({}, {}),
            "night": (self.night_size, self.night_case),
            "paper": (self.paper_size, self.paper_case),
        }
        whole, of_cases = by_size[size]
        return [whole, self.case[case], of_cases.get(case, {})]

    def is_own(self, number: Number) -> bool:
        """Whether a number is one of the paper's own method, or is relative to one; else it is a rival's."""
        paths = [ValuePath.parse(path) for path in (number.of, number.over) if path is not None]
        return any(self._is_own(path) for path in paths)

    def _is_own(self, path: ValuePath) -> bool:
        own = _OWN[self.paper]
        rivals = [name for name in METHODS if name != own]
        # A set of parameters has a name of its own, such as alpha_03; fedadp_4 is FedAdp.
        rival = not path.method.startswith(own) and path.method.startswith(tuple(rivals))
        return not rival and path.measure not in ("local", "control")

    @property
    def paths(self) -> list[str]:
        """All paths that are named, each once."""
        numbers = [path for number in self.number for path in (number.of, number.over) if path is not None]
        return list(dict.fromkeys([*numbers, *(path for claim in self.claim for path in claim.paths)]))
