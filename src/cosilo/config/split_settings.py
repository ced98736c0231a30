"""What a recipe may say about how a simulation cuts its silos out of one dataset."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Tag


class _Split(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SuperclassSplit(_Split):
    """CoFED's split: some superclasses each, from all subclasses (IID) or a few (`subclasses = [1, 2]`)."""

    use: Literal["superclasses"]
    silos: int
    classes: tuple[int, int] = (6, 8)
    per_class: int = 50
    subclasses: tuple[int, int] | None = None


class DirichletSplit(_Split):
    """Shares of every class drawn from a Dirichlet distribution; with `size`, each silo draws its own mix."""

    use: Literal["dirichlet"]
    silos: int
    concentration: float
    min_size: int = 10
    size: int | None = None


class ShardSplit(_Split):
    """Sorted by label, cut into shards, `per_silo` of them each."""

    use: Literal["shards"]
    silos: int
    per_silo: int


class IidSplit(_Split):
    """The same distribution for all, `size` instances each."""

    use: Literal["iid"]
    silos: int
    size: int | None = None


class ValueSplit(_Split):
    """One silo per value of a group of the dataset (a writer) or a column."""

    use: Literal["by_value"]
    column: str


class SubsetSplit(_Split):
    """DoFed-SPP's: classes cut into clusters; a silo trains on one of these and wants another."""

    use: Literal["subset"]
    silos: int
    clusters: int
    per_class: int = 500
    labelled: int = 10
    unlabelled: int = 190
    overlap: bool = False


class NormalSplit(_Split):
    """DoFed-SPP's: random classes to train on, and random ones that are wanted."""

    use: Literal["normal"]
    silos: int
    classes: tuple[int, int] = (2, 10)
    per_class: int = 500
    labelled: int = 10
    unlabelled: int = 190
    overlap: bool = False


class OwnSplit(BaseModel):
    """A function of one's own by import path: it gets the dataset, a seed and the other keys."""

    model_config = ConfigDict(frozen=True, extra="allow")

    use: str

    def arguments(self) -> dict[str, Any]:
        """The keys that are the function's own."""
        return dict(self.model_extra or {})


_KNOWN = SuperclassSplit | DirichletSplit | ShardSplit | IidSplit | ValueSplit | SubsetSplit | NormalSplit
#: What a split may be called.
SPLITS = frozenset(use for kind in get_args(_KNOWN) for use in get_args(kind.model_fields["use"].annotation))


def _which(value: Any) -> str | None:
    """Which of the splits settings mean: one by its name, or by import path one's own."""
    use = value.get("use") if isinstance(value, dict) else getattr(value, "use", None)
    return "own" if isinstance(use, str) and "." in use else use


SplitSettings = Annotated[
    Annotated[SuperclassSplit, Tag("superclasses")]
    | Annotated[DirichletSplit, Tag("dirichlet")]
    | Annotated[ShardSplit, Tag("shards")]
    | Annotated[IidSplit, Tag("iid")]
    | Annotated[ValueSplit, Tag("by_value")]
    | Annotated[SubsetSplit, Tag("subset")]
    | Annotated[NormalSplit, Tag("normal")]
    | Annotated[OwnSplit, Tag("own")],
    Discriminator(
        _which,
        custom_error_type="split",
        custom_error_message=f"{', '.join(sorted(SPLITS))}, or an import path",
    ),
]
