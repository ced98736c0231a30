"""Instances as short rows of numbers, on a scale that the pool gives: private data has no say in it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosilo.data.instances import Instances, blocks, is_bytes, is_frame, take

#: Rows of numbers, one for each instance, of length 1.
Features = Callable[[Instances], NDArray[np.float64]]

#: A standardised number is cut here: public instances say what is usual.
_MOST = 5.0
#: Of the most instances of the pool the features are made.
_ENOUGH = 20_000
_AT_ONCE = 20_000


def features(pool: Instances, most: int) -> Features:
    """The pool's principal components, up to that number; every instance becomes a row of length 1.

    Bytes are divided by 255. Other numbers are standardised by the pool's mean and deviation, columns of
    words become one column for each word of the pool, and texts become the pool's words, weighed by how
    rare they are there. All records are then of one length, so that clipping treats them alike.
    """
    some = take(pool, np.linspace(0, len(pool) - 1, min(len(pool), _ENOUGH)).astype(int))
    numbers = _numbers(some)
    known = numbers(some)
    mean = np.asarray(known.mean(axis=0)).reshape(1, -1)
    width = max(1, min(most, known.shape[1] - 1, known.shape[0] - 1))
    # Texts are sparse, and would not be with their mean taken off: it is taken off afterwards.
    axes = _axes(known - mean if isinstance(known, np.ndarray) else known, width)
    offset = mean @ axes.T

    def made(X: Instances) -> NDArray[np.float64]:
        found = np.empty((len(X), len(axes)))
        for part in blocks(len(X), _AT_ONCE):
            rows = np.asarray(numbers(take(X, part)) @ axes.T) - offset
            found[part] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return found

    return made


def _axes(known: Any, width: int) -> NDArray[np.float64]:
    """The directions in which the pool varies most, the same ones every time."""
    from sklearn.decomposition import TruncatedSVD

    with np.errstate(invalid="ignore"):  # one instance does not vary
        found: NDArray[np.float64] = TruncatedSVD(width, random_state=0).fit(known).components_
    return found


def _numbers(pool: Instances) -> Callable[[Instances], Any]:
    """Instances as numbers: an array, or a sparse matrix for texts."""
    if is_frame(pool):
        return _columns(pool)
    if pool.dtype.kind == "O":
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(sublinear_tf=True, min_df=2 if len(pool) > 100 else 1, max_features=20_000)
        return words.fit(pool).transform  # type: ignore[no-any-return]
    if is_bytes(pool):
        return lambda X: np.asarray(X, np.float64).reshape(len(X), -1) / 255
    return _standardised(pool)


def _standardised(pool: Instances) -> Callable[[Instances], NDArray[np.float64]]:
    flat = np.asarray(pool, np.float64).reshape(len(pool), -1)
    mean, deviation = flat.mean(axis=0), flat.std(axis=0)
    scale = np.where(deviation > 0, deviation, np.inf)  # what never varies in public says nothing

    def made(X: Instances) -> NDArray[np.float64]:
        rows = np.asarray(X, np.float64).reshape(len(X), -1)
        found: NDArray[np.float64] = np.clip((rows - mean) / scale, -_MOST, _MOST)
        return found

    return made


def _columns(pool: Any) -> Callable[[Instances], NDArray[np.float64]]:
    """Numbers standardised, then one column for each word that a column has in the pool."""
    from sklearn.preprocessing import OneHotEncoder

    numeric = [name for name in pool.columns if pool[name].dtype.kind in "iufb"]
    words = [name for name in pool.columns if name not in numeric]
    scaled = _standardised(pool[numeric])
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(pool[words].astype(str))

    def made(X: Instances) -> NDArray[np.float64]:
        frame: Any = X
        coded = encoder.transform(frame[words].astype(str)) if words else np.empty((len(frame), 0))
        return np.hstack([scaled(frame[numeric]), coded])

    return made
