"""Data: named datasets, a silo's own files, splits between silos. Each name is imported when it is used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosilo.data.dataset import Dataset
    from cosilo.data.datasets import DATASETS, load
    from cosilo.data.own_files import Table, from_huggingface, read
    from cosilo.data.splits import Split, balanced, by_value, dirichlet, iid, own_split, shards, superclasses
    from cosilo.data.targets import TargetSplit, normal, subset

__all__ = [
    "DATASETS",
    "Dataset",
    "Split",
    "Table",
    "TargetSplit",
    "balanced",
    "by_value",
    "dirichlet",
    "from_huggingface",
    "iid",
    "load",
    "normal",
    "own_split",
    "read",
    "shards",
    "subset",
    "superclasses",
]

if not TYPE_CHECKING:
    from cosilo.lazy import names_from

    __getattr__ = names_from(
        __name__,
        {
            **dict.fromkeys(__all__, "splits"),
            **dict.fromkeys(["DATASETS", "load"], "datasets"),
            **dict.fromkeys(["Table", "from_huggingface", "read"], "own_files"),
            **dict.fromkeys(["TargetSplit", "normal", "subset"], "targets"),
            "Dataset": "dataset",
        },
    )
