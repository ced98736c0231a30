"""Many fitted trees of scikit-learn as a few arrays: a forest of 8,000 is written in seconds."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import LearnerError
from cosilo.learners.kinds import kinds
from cosilo.learners.saving.form import Form
from cosilo.learners.saving.sameness import same

_TREE = "sklearn.tree._classes.BaseDecisionTree"


def are_trees(thing: Any) -> bool:
    """Whether it is a list or an array of fitted trees that differ in what they learnt and their seeds."""
    if isinstance(thing, np.ndarray):
        thing = thing.ravel().tolist() if thing.dtype == object else []
    if type(thing) is not list or not thing or _TREE not in kinds(type(thing[0])):
        return False
    first = thing[0]
    if any(type(tree) is not type(first) or "tree_" not in vars(tree) for tree in thing):
        return False
    alike = all(vars(tree).keys() == vars(first).keys() and _shape(tree) == _shape(first) for tree in thing)
    return alike and all(
        name == "tree_" or _seeds(thing, name) is not None or _common(thing, name) for name in vars(first)
    )


def _shape(tree: Any) -> tuple[Any, ...]:
    inner = tree.tree_
    return inner.n_features, inner.n_classes.tolist(), inner.n_outputs


def _common(trees: list[Any], name: str) -> bool:
    first = vars(trees[0])[name]
    return all(vars(tree)[name] is first or same(first, vars(tree)[name]) for tree in trees)


def _seeds(trees: list[Any], name: str) -> NDArray[np.int64] | None:
    values = [vars(tree)[name] for tree in trees]
    return np.array(values) if name == "random_state" and {type(v) for v in values} == {int} else None


def write(thing: Any, path: Path) -> list[Any]:
    """Write nodes, values and seeds; what all trees have in common is returned."""
    shape = list(thing.shape) if isinstance(thing, np.ndarray) else None
    trees = thing.ravel().tolist() if isinstance(thing, np.ndarray) else thing
    states = [tree.tree_.__getstate__() for tree in trees]
    arrays: dict[str, NDArray[Any]] = {
        "nodes": np.concatenate([state["nodes"] for state in states]),
        "values": np.concatenate([state["values"] for state in states]),
        "counts": np.array([state["node_count"] for state in states]),
        "depths": np.array([state["max_depth"] for state in states]),
    }
    seeds = _seeds(trees, "random_state")
    if seeds is not None:
        arrays["seeds"] = seeds
    np.savez(path, allow_pickle=False, **arrays)
    common = {name: value for name, value in vars(trees[0]).items() if name != "tree_"}
    return [type(trees[0]), shape, common, list(_shape(trees[0]))]


def read(path: Path, about: Any, template: Any) -> Any:
    """The trees that `write` wrote."""
    from sklearn.tree._tree import Tree

    kind, shape, common, (n_features, n_classes, n_outputs) = about
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    nodes, values, counts = arrays["nodes"], arrays["values"], arrays["counts"]
    _check(nodes, counts, n_features, path)
    ends = np.cumsum(counts)
    trees = []
    for place, (end, count, depth) in enumerate(zip(ends, counts, arrays["depths"], strict=True)):
        inner = Tree(n_features, np.array(n_classes, dtype=np.intp), n_outputs)
        own = slice(end - count, end)
        state = {"nodes": nodes[own], "values": values[own], "node_count": int(count)}
        inner.__setstate__({**state, "max_depth": int(depth)})
        tree = kind.__new__(kind)
        vars(tree).update(common, tree_=inner)
        if "seeds" in arrays:
            tree.random_state = int(arrays["seeds"][place])
        trees.append(tree)
    if shape is None:
        return trees
    made = np.empty(len(trees), dtype=object)
    made[:] = trees
    return made.reshape(shape)


def _check(nodes: NDArray[Any], counts: NDArray[Any], n_features: int, path: Path) -> None:
    """Raise if a damaged file would make a tree read beyond its own nodes or an instance's features."""
    most = np.repeat(counts, counts)
    leaf = nodes["left_child"] == -1
    inner = ~leaf & (nodes["left_child"] >= 0) & (nodes["right_child"] >= 0)
    inside = (nodes["left_child"] < most) & (nodes["right_child"] < most)
    features = (nodes["feature"] >= 0) & (nodes["feature"] < n_features)
    if counts.sum() != len(nodes) or not (leaf | (inner & inside & features)).all():
        raise LearnerError(f"{path} is damaged: a tree in it points outside; restore it or start a new run")


# ---------------------------------------------------------------------- of histogram boosting

_PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
_ARRAYS = ("nodes", "binned_left_cat_bitsets", "raw_left_cat_bitsets")


def are_predictors(thing: Any) -> bool:
    """Whether it is the list of histogram boosting: a list for each iteration, a tree for each class."""
    if type(thing) is not list or not thing or any(type(row) is not list for row in thing):
        return False
    every = [tree for row in thing for tree in row]
    return bool(every) and all(
        _PREDICTOR in kinds(type(tree)) and vars(tree).keys() == {*_ARRAYS} for tree in every
    )


def write_predictors(thing: Any, path: Path) -> list[Any]:
    """Write the arrays of all trees; returns their class, and how many each iteration has."""
    every = [tree for row in thing for tree in row]
    arrays: dict[str, NDArray[Any]] = {}
    for name in _ARRAYS:
        each = [vars(tree)[name] for tree in every]
        arrays |= {name: np.concatenate(each), f"{name} counts": np.array([len(one) for one in each])}
    np.savez(path, allow_pickle=False, **arrays)
    return [type(every[0]), [len(row) for row in thing]]


def read_predictors(path: Path, about: Any, template: Any) -> Any:
    """The trees that `write_predictors` wrote."""
    kind, lengths = about
    with np.load(path, allow_pickle=False) as file:
        parts = [np.split(file[name], np.cumsum(file[f"{name} counts"])[:-1]) for name in _ARRAYS]
    every = iter([kind(*(one.copy() for one in arrays)) for arrays in zip(*parts, strict=True)])
    return [[next(every) for _ in range(length)] for length in lengths]


FORMS: dict[str, Form] = {
    "trees": Form(are_trees, ".npz", write, read),
    "predictors": Form(are_predictors, ".npz", write_predictors, read_predictors),
}
