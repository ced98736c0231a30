"""Data: named datasets, a silo's own files, and splits between silos."""

from cosilo.data.dataset import Dataset
from cosilo.data.datasets import DATASETS, load
from cosilo.data.own_files import Table, read
from cosilo.data.splits import Split, balanced, by_value, dirichlet, iid, shards, superclasses
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
    "iid",
    "load",
    "normal",
    "read",
    "shards",
    "subset",
    "superclasses",
]
