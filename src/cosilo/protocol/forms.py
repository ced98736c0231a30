"""Forms: what a value that crosses a boundary has to look like, checked before it is kept or acted on.

Every kind of field has a form; a field that is more than its kind says (an accuracy, a list of classes) is
declared with its own: `Shared("metrics", "…", form=SHARE)`. What a coordinator sends has the form that the
type of the step's parameter stands for (`protocol.incoming`).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cosilo.text import plain

#: No array holds a number beyond this: sums and products of some of them are still finite in float32.
LARGEST = 1e12
#: Nothing that is counted is more.
MOST_COUNTED = 10**9
#: No array is longer, whatever it holds.
LONGEST_ARRAY = 10**9
#: Characters of a text, characters of a name, and names in a list.
LONGEST_TEXT, LONGEST_NAME, MOST_NAMES = 1000, 200, 10_000


@dataclass(frozen=True)
class Expected:
    """What the coordinator knows about a silo and checks its replies against."""

    classes: int
    pool: int


class Form(Protocol):
    """What a value has to look like."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """What is wrong with a value, in words that go after the field's name; None: nothing."""


@dataclass(frozen=True)
class Number:
    """One finite number.

    >>> Number(0, 1).problem(10**6)
    'got 1000000; wants a number from 0 to 1'
    """

    least: float = -LARGEST
    most: float = LARGEST

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants an int or a float in the range; of a long one only the beginning is told."""
        good = isinstance(value, int | float) and not isinstance(value, bool)
        if not good or value != value or math.inf in (value, -value):  # type: ignore[operator]
            return f"got {shown(value)}; wants one finite number"
        if not self.least <= value <= self.most:  # type: ignore[operator]
            return f"got {shown(value)}; wants a number from {self.least:g} to {self.most:g}"
        return None


@dataclass(frozen=True)
class Count:
    """A whole number, of at least 1 unless it may be less.

    >>> Count().problem(10**400)
    'got 100000000000000000…; wants a whole number of at least 1 and at most 1000000000'
    """

    most: int = MOST_COUNTED
    least: int = 1

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants an int in the range."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < self.least:  # type: ignore[operator]
            return f"got {shown(value)}; wants a whole number of at least {self.least}"
        if value > self.most:  # type: ignore[operator]
            return (
                f"got {shown(value)}; wants a whole number of at least {self.least} and at most {self.most}"
            )
        return None


@dataclass(frozen=True)
class Text:
    """A text that can be printed, on one line."""

    most: int = LONGEST_TEXT

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants a str."""
        if not isinstance(value, str):
            return f"got {shown(value)}; wants a text"
        if len(value) > self.most:
            return f"got {len(value)} characters; wants at most {self.most}"
        if plain(value) != value:
            return f"got {shown(value)}; wants no control characters"
        return None


@dataclass(frozen=True)
class Names:
    """A list of names, each once.

    >>> Names(least=2).problem(["cat", "cat"])
    "names 'cat' twice; wants each once"
    """

    least: int = 0
    most: int = MOST_NAMES

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants a list of different printable names."""
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            return f"got {shown(value)}; wants names"
        if not self.least <= len(value) <= self.most:
            return f"got {len(value)} names; wants {self.least} to {self.most}"
        seen = set()
        for name in value:
            if problem := Text(LONGEST_NAME).problem(name):
                return f"a name: {problem}"
            if name in seen:
                return f"names {shown(name)} twice; wants each once"
            seen.add(name)
        return None


class TextOrNames:
    """A text or a list of names: what a silo says about itself."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants either."""
        if isinstance(value, str):
            return Text().problem(value)
        return Names().problem(value)


class Labels:
    """One class of the silo's task for each pool instance, or −1."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants whole numbers, as many as the pool has instances, inside the task."""
        if not isinstance(value, np.ndarray) or value.dtype.kind != "i" or value.ndim != 1:
            got = f"{value.dtype}{value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            return f"got {got}; wants one whole number per pool instance"
        if expected is None:
            return None
        if len(value) != expected.pool:
            return f"got {len(value)} labels; the pool has {expected.pool} instances"
        if len(value) and (value.min() < -1 or value.max() >= expected.classes):
            at = int(np.flatnonzero((value < -1) | (value >= expected.classes))[0])
            return (
                f"label {value[at]} of instance {at} is outside the task; "
                f"wants 0 … {expected.classes - 1}, or -1 for an abstention"
            )
        return None


class Numbers:
    """One array of numbers, finite and not beyond `LARGEST`."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants an array."""
        if not isinstance(value, np.ndarray):
            return f"got {type(value).__name__}; wants an array"
        return _number_problem(value)


@dataclass(frozen=True)
class Array:
    """One array of some types of numbers, with a number of dimensions, a range, and a length.

    >>> Array(("uint8",), most=1).problem(np.array([0, 2], np.uint8))
    'holds 2; expected numbers from 0 to 1'
    """

    dtypes: tuple[str, ...]
    ndim: int = 1
    least: float = 0.0
    most: float = LARGEST
    #: The most that it may have along its first dimension.
    longest: int = LONGEST_ARRAY

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Say what another type, shape, length or number is, and what was expected."""
        wanted = f"{' or '.join(self.dtypes)}, {self.ndim}-dimensional"
        if not isinstance(value, np.ndarray):
            return f"got {shown(value)}; expected {wanted}"
        if value.dtype.name not in self.dtypes or value.ndim != self.ndim:
            return f"got {value.dtype}{list(value.shape)}; expected {wanted}"
        if len(value) > self.longest:
            return f"got {len(value)} rows; expected at most {self.longest}"
        if not value.size:
            return None
        for found in (value.min(), value.max()):  # NaN if there is one
            if not self.least <= found <= self.most:
                return f"holds {found:g}; expected numbers from {self.least:g} to {self.most:g}"
        return None


@dataclass(frozen=True)
class Blocks:
    """One long array in blocks of rows, each named by its first row in nine digits.

    >>> named_blocks([np.zeros((2, 3)), np.zeros((1, 3))]).keys()
    dict_keys(['000000000', '000000002'])
    """

    block: Array

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Say which block is not where it belongs, or not as it should be."""
        if not isinstance(value, Mapping) or not value:
            return f"got {type(value).__name__}; expected blocks of rows"
        start, width = 0, None
        for name, block in sorted(value.items()):
            if name != _block_name(start):
                return f"got block {shown(name)}; expected {_block_name(start)!r}"
            if problem := self.block.problem(block, expected):
                return f"block {name!r}: {problem}"
            if not len(block) or block.shape[1:] != (width or block.shape[1:]):
                return f"block {name!r}: got {list(block.shape)}; expected rows like those of the first"
            start, width = start + len(block), block.shape[1:]
        return None


def named_blocks(blocks: Iterable[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return blocks of rows by their names, as `Blocks` expects them."""
    named, start = {}, 0
    for block in blocks:
        named[_block_name(start)] = block
        start += len(block)
    return named


def _block_name(start: int) -> str:
    return f"{start:09d}"


class Parameters:
    """Named arrays of numbers, at least one: parameters of a model."""

    def problem(self, value: object, expected: Expected | None = None) -> str | None:
        """Wants a group of arrays."""
        if not isinstance(value, Mapping) or not value:
            return f"got {type(value).__name__}; wants named arrays"
        for name, array in value.items():
            if problem := Text(LONGEST_TEXT).problem(name):
                return f"the name of an array: {problem}"
            if problem := Numbers().problem(array):
                return f"{name} {problem}"
        return None


#: A share of something, such as an accuracy.
SHARE = Number(0, 1)
#: Yes (1) or no (0).
YES_OR_NO = Count(most=1, least=0)


def _number_problem(array: NDArray[Any]) -> str | None:
    if array.dtype.kind not in "biuf":
        return f"is an array of {array.dtype}; wants numbers"
    if array.dtype.kind == "b" or not array.size:
        return None
    low, high = array.min(), array.max()  # NaN if there is one
    if not (np.isfinite(low) and np.isfinite(high)):
        return "holds NaN or infinity"
    if not (low >= -LARGEST and high <= LARGEST):
        return f"holds {max(-float(low), float(high)):.3g}; wants numbers of at most {LARGEST:g} in size"
    return None


def shown(value: object, most: int = 60) -> str:
    """A value as an error quotes it: the beginning of a long one."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return f"{str(value // 10 ** max(0, value.bit_length() * 3 // 10 - 18))[:18]}…"
    text = repr(value) if isinstance(value, str | bool | int | float | None) else type(value).__name__
    return text if len(text) <= most else text[: most - 1] + "…"
