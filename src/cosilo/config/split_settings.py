"""What a recipe may say about how a simulation cuts its silos out of one dataset."""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict


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


SplitSettings = (
    SuperclassSplit | DirichletSplit | ShardSplit | IidSplit | ValueSplit | SubsetSplit | NormalSplit
)
#: What a split may be called.
SPLITS = frozenset(
    use for kind in get_args(SplitSettings) for use in get_args(kind.model_fields["use"].annotation)
)
