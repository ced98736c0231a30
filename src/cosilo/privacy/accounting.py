"""How much noise a promise takes, by Google's `dp-accounting`; nothing here depends on private data."""

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from cosilo.errors import ConfigError, with_extra

#: How finely privacy losses are counted; they are rounded up.
_GRAIN = 1e-3


@dataclass(frozen=True)
class Schedule:
    """What a training does with private data, known to everybody.

    It is the same for every silo: a schedule that depended on the number of records would tell about them.

    Attributes
    ----------
    sampling
        The probability with which a record is in a step: each by itself (Poisson).
    steps
        How many steps there are.
    count_noise
        The standard deviation of the noise on the number of records, which is counted once.
    """

    sampling: float = 0.25
    steps: int = 100
    count_noise: float = 10.0


@lru_cache
def noise_multiplier(epsilon: float, delta: float, schedule: Schedule) -> float:
    """The least noise that keeps a promise: its standard deviation, as a multiple of the clipping norm.

    >>> round(noise_multiplier(8.0, 1e-5, Schedule()), 2)
    1.71
    """
    calibration = _import("mechanism_calibration")
    low, high = 0.1, 1.0
    while epsilon_of(high, delta, schedule) > epsilon:
        low, high = high, 2 * high
    found = calibration.calibrate_dp_mechanism(
        _accountant,
        lambda noise: _event(noise, schedule),
        epsilon,
        delta,
        calibration.ExplicitBracketInterval(low, high),
        tol=1e-3,
    )
    noise = float(found)
    while epsilon_of(noise, delta, schedule) > epsilon:  # by no more than the tolerance
        noise += 1e-3
    return noise


def epsilon_of(noise: float, delta: float, schedule: Schedule) -> float:
    """What a training with this much noise costs a record that is in it, or not.

    >>> epsilon_of(1.72, 1e-5, Schedule()) <= 8
    True
    """
    return float(_accountant().compose(_event(noise, schedule)).get_epsilon(delta))


def _event(noise: float, schedule: Schedule) -> Any:
    """The count, then the steps."""
    event = _import("dp_event")
    count = event.GaussianDpEvent(schedule.count_noise)
    step = event.PoissonSampledDpEvent(schedule.sampling, event.GaussianDpEvent(noise))
    return event.ComposedDpEvent([count, event.SelfComposedDpEvent(step, schedule.steps)])


def _accountant() -> Any:
    """Neighbours have a record more or less."""
    return _import("pld.pld_privacy_accountant").PLDAccountant(value_discretization_interval=_GRAIN)


def need_library() -> None:
    """Raise if `dp-accounting` is not installed; does not import it, which takes a second."""
    if find_spec("dp_accounting") is None:
        raise ConfigError(f"privacy needs dp-accounting, which is not installed: {with_extra('privacy')}")


def _import(module: str) -> Any:
    need_library()
    return import_module(f"dp_accounting.{module}")
