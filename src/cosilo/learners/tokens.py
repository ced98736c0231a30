"""Texts as rows of token ids: by hashing, by a vocabulary, or by a tokeniser of one's own."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import LearnerError
from cosilo.learners.base import black_box
from cosilo.learners.zoo import hash_tokens

#: The size of a hashed vocabulary; words, or words with their ids; a function from texts to rows of ids.
Tokens: TypeAlias = int | Sequence[str] | Mapping[str, int] | Callable[[list[str]], Any]

#: Rows of different lengths are cut or filled with 0 to this many ids.
LENGTH = 100
#: Network inputs are whole numbers of 32 bits until a module gets them.
_LARGEST = 2**31 - 1


def token_ids(texts: Iterable[str], tokens: Tokens, name: str) -> NDArray[np.int32]:
    """Rows of ids for a network; 0 is no token. `name` is that of the network, for errors.

    Of a list of words, the first has the id 1; words that a vocabulary does not have are left out. Rows that
    a tokeniser returns in one length stay so, others are cut or filled to `LENGTH`.

    >>> token_ids(["A cat!", "the dog"], ["cat", "dog"], "net")[:, :2]
    array([[1, 0],
           [2, 0]], dtype=int32)
    """
    if isinstance(tokens, int):
        return hash_tokens(texts, tokens)
    if callable(tokens):
        with black_box(name, "tokens"):
            rows = tokens(list(texts))
        return _as_ids(rows, name)
    ids = tokens if isinstance(tokens, Mapping) else {word: place for place, word in enumerate(tokens, 1)}
    found = [re.findall(r"[^\W_]+", text.lower()) for text in texts]
    return _as_ids([[ids[word] for word in words if word in ids] for words in found], name, ragged=True)


def _as_ids(rows: Any, name: str, ragged: bool = False) -> NDArray[np.int32]:
    if not ragged and not isinstance(rows, list | tuple):
        rows = np.asarray(rows)  # also a tensor
    uneven = isinstance(rows, list | tuple) and len({len(row) for row in rows}) != 1
    if ragged or uneven or not len(rows):
        table = np.zeros((len(rows), LENGTH), dtype=np.int64)
        for place, row in enumerate(rows):
            table[place, : min(len(row), LENGTH)] = row[:LENGTH]
        rows = table
    array = np.asarray(rows)
    if array.ndim != 2 or array.dtype.kind not in "iu" or (array.size and array.min() < 0):
        raise LearnerError(
            f"{name}: its tokeniser returned {array.dtype} of shape {array.shape}; wants one row of ids for "
            "each text, none below 0"
        )
    if array.size and array.max() > _LARGEST:
        raise LearnerError(f"{name}: its tokeniser returned ids above {_LARGEST}")
    return array.astype(np.int32)
