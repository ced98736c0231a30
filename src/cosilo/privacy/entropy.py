"""Chance from the operating system: whoever knows a run's seed could take noise that is made of it off."""

import os

import numpy as np
from numpy.typing import NDArray


def uniform(size: int) -> NDArray[np.float64]:
    """Numbers in (0, 1), each of 52 random bits, none of them 0 or 1."""
    bits = np.frombuffer(os.urandom(8 * size), np.uint64) >> np.uint64(12)
    return (bits.astype(np.float64) + 0.5) * 2.0**-52


def normal(*shape: int) -> NDArray[np.float64]:
    """Normal numbers of mean 0 and variance 1."""
    from scipy.special import ndtri

    found: NDArray[np.float64] = ndtri(uniform(int(np.prod(shape)))).reshape(shape)
    return found
