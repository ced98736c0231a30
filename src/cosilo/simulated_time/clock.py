"""Simulated time: what a run would have taken over given links, from the log of its asks.

Wall-clock time is that of the machine that simulates. Here an ask takes as long as its slowest silo measured
(or a number of cycles), and what left the silos travels over a link with a rate: eqs. 7 to 9 and 23 to 25 of
DoFed-SPP. Nothing here depends on a method, and a run does not depend on its clock.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from cosilo.errors import ConfigError, DataError
from cosilo.parameters import Parameters

if TYPE_CHECKING:  # a recipe may have a clock, and reporting a mistake in a recipe should not load numpy
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
S = TypeVar("S")


def capacity(bandwidth: float, gain: float, power: float, noise: float) -> float:
    """Shannon's r = b · log2(1 + g·p / (N0·b)) in bits per second (eq. 8 of DoFed-SPP); Hz, W, W per Hz.

    >>> capacity(bandwidth=1e6, gain=1e-3, power=0.003, noise=1e-12)  # a signal of 3 times the noise: 2 bits
    2000000.0
    """
    return bandwidth * math.log1p(gain * power / (noise * bandwidth)) / math.log(2)


class Link(Parameters):
    """What carries messages: a wireless channel (eq. 8), or a rate.

    Parameters
    ----------
    bandwidth : float, default None
        b of the channel, in Hz.
    gain : float, default None
        g of the channel.
    power : float, default None
        p: what is sent with, in W.
    noise : float, default None
        N0: W per Hz.
    rate : float or pair of float, default None
        Instead of a channel: bytes per second; two numbers: drawn between them for every message.
    latency : float, default 0.0
        Seconds that are added once an ask; what is empty takes no time.
    shared : bool, default True
        Whether the messages of an ask wait for each other (Σ m/r; eq. 24: K messages of m bytes take K·m/r),
        or each silo has such a link and the slowest counts (eq. 9).

    Examples
    --------
    >>> import numpy as np
    >>> Link(rate=(2e6, 10e6)).rates(np.random.default_rng(0), 2).round()
    array([7095693., 4158294.])
    """

    bandwidth: Positive | None = None
    gain: Positive | None = None
    power: Positive | None = None
    noise: Positive | None = None
    rate: Positive | tuple[Positive, Positive] | None = None
    latency: NotNegative = 0.0
    shared: bool = True

    @model_validator(mode="after")
    def _one_kind(self) -> "Link":
        channel = [self.bandwidth, self.gain, self.power, self.noise]
        given = sum(value is not None for value in channel)
        if (self.rate is None and given < 4) or (self.rate is not None and given):
            raise ValueError("rate, or all of bandwidth, gain, power and noise")
        if isinstance(self.rate, tuple) and self.rate[0] > self.rate[1]:
            raise ValueError("rate = [low, high], the lower one first")
        return self

    def _range(self) -> tuple[float, float]:
        if isinstance(self.rate, tuple):
            return self.rate
        if self.rate is not None:
            return self.rate, self.rate
        channel = (self.bandwidth, self.gain, self.power, self.noise)
        fixed = capacity(*(value for value in channel if value is not None)) / 8  # all four: validated
        return fixed, fixed

    def rates(self, rng: "np.random.Generator", count: int) -> "Floats":
        """Bytes per second for this many messages."""
        return rng.uniform(*self._range(), count)

    def expected(self, size: float) -> float:
        """Seconds that a message of `size` bytes takes on average, without latency: t_upload of eq. 24.

        For a rate r drawn between l and h the mean of 1/r is ln(h/l) / (h − l).

        >>> Link(rate=1000.0).expected(500), round(Link(rate=(1.0, math.e)).expected(math.e - 1), 12)
        (0.5, 1.0)
        """
        low, high = self._range()
        # Where both are nearly equal the quotient loses its digits, and 1 / l is as good.
        slowness = math.log(high / low) / (high - low) if high > low * (1 + 1e-9) else 1 / low
        return size * slowness

    def seconds(self, sizes: "Sequence[float] | Floats", rng: "np.random.Generator") -> float:
        """Until all messages of one ask, each of this many bytes, are across (eq. 24 if shared, else eq. 9).

        >>> import numpy as np
        >>> Link(rate=10.0, latency=0.5).seconds([20.0, 30.0], np.random.default_rng(0))
        5.5
        """
        import numpy as np

        array = np.asarray(sizes, dtype=np.float64)
        each = array / self.rates(rng, len(array))
        if not array.any():
            return 0.0
        return self.latency + float(each.sum() if self.shared else each.max())


class Clock(Parameters):
    """How long things take: links up and down, and computing.

    Parameters
    ----------
    up : Link
        What silos send over.
    down : Link, default None
        What the coordinator sends over; None: that takes no time, as in the paper.
    inside : Link, default None
        What institutions and their members send over: what goes up, and if there is a `down` what goes down
        too; None: that takes no time.
    compute : {"measured", "cycles"}, default "measured"
        What computing takes: what the silos measured, or a number of cycles, the same at every silo
        (eq. 7: I·C·D / f).
    speed : float, default 1.0
        Simulated seconds per measured second.
    cycles_per_second : float, default None
        f of the processors, with cycles.
    cycles : dict of float, default None
        Cycles by step, one for every step that takes time.
    budget : float, default None
        Seconds that a run may take: a round begins only if there is time for one like the last; None: as many
        as it takes.

    Examples
    --------
    >>> Clock(up=Link(rate=1e6), compute="cycles", cycles_per_second=1e9, cycles={"train": 5e9}).compute
    'cycles'
    """

    up: Link
    down: Link | None = None
    inside: Link | None = None
    compute: Literal["measured", "cycles"] = "measured"
    speed: Positive = 1.0
    cycles_per_second: Positive | None = None
    cycles: dict[str, NotNegative] | None = None
    budget: Positive | None = None

    @model_validator(mode="after")
    def _one_way_to_compute(self) -> "Clock":
        given = [self.cycles_per_second is not None, self.cycles is not None]
        if self.compute == "cycles" and (not all(given) or "speed" in self.model_fields_set):
            raise ValueError('cycles_per_second and cycles, and no speed, with compute = "cycles"')
        if self.compute == "measured" and any(given):
            raise ValueError('cycles_per_second and cycles with compute = "cycles" only')
        return self

    def computing(self, step: str, measured: float) -> float:
        """Simulated seconds of a step that took the slowest silo this many measured ones.

        >>> Clock(up=Link(rate=1.0), speed=0.5).computing("train", 3.0)
        1.5
        """
        if self.compute == "measured":
            return measured * self.speed
        assert self.cycles is not None
        assert self.cycles_per_second is not None
        if step not in self.cycles:
            raise ConfigError(
                f"cycles: there is no step {step!r}; wants one number for every step that takes time"
            )
        return self.cycles[step] / self.cycles_per_second


@dataclass(frozen=True)
class Moment:
    """One ask in simulated time: its three phases in seconds, and when it was completed."""

    number: int
    step: str
    download: float
    compute: float
    upload: float
    at: float
    #: Whether the step counts on the clock.
    timed: bool = True


def timeline(
    asks: Iterable[Mapping[str, Any]],
    clock: Clock,
    seed: int,
    *,
    start: float = 0.0,
) -> list[Moment]:
    """When each ask of a run (the lines of its asks.jsonl) was completed, in simulated seconds.

    Asks follow each other, and so do the phases of one (eq. 25): all messages are down, then the slowest
    silo has computed, then all replies are up, every field of them. Steps that are not `timed`, because they
    are about the experiment and not about the method, take no time, but have their moment: that of an
    `evaluate` tells when an accuracy was reached. A silo that failed takes no time, because how long the
    coordinator waits for it is a setting of the run; neither does the computation of a reply that was found
    after a crash, because its time is not known.

    Rates are drawn from the seed, the number of the ask and the place of the silo in it, in whatever order
    replies came: an ask costs the same whatever came before it. So the asks of one run may be divided
    between clocks, and their seconds added.

    >>> reply = {"seconds": 2.0, "fields": {"weights": {"kind": "weights", "form": "…", "bytes": 1000}}}
    >>> ask = {"number": 3, "step": "train", "timed": True, "silos": ["a", "b"]}
    >>> ask["arrivals"] = {"b": reply, "a": reply}
    >>> timeline([ask], Clock(up=Link(rate=500.0)), seed=0)  # the two share the link: 2 · 1000 / 500 s
    [Moment(number=3, step='train', download=0.0, compute=2.0, upload=4.0, at=6.0, timed=True)]
    """
    if seed < 0:
        raise ConfigError(f"seed is {seed}; wants a whole number of at least 0")
    moments: list[Moment] = []
    at = start
    for line, ask in enumerate(asks, start=1):
        try:
            number, step = ask["number"], ask["step"]
            phases = (0.0, 0.0, 0.0) if not ask["timed"] else _phases(ask, clock, seed)
        except (KeyError, TypeError, AttributeError):
            raise DataError(f"asks: line {line} is damaged; wants the lines of a run's asks.jsonl") from None
        at += sum(phases)
        moments.append(Moment(number, step, *phases, at, ask["timed"]))
    return moments


def _phases(ask: Mapping[str, Any], clock: Clock, seed: int) -> tuple[float, float, float]:
    """Seconds of download, computation and upload; silos in the order they were asked."""
    import numpy as np

    number, arrivals = ask["number"], ask["arrivals"]
    download = compute = 0.0
    if clock.down is not None:
        if "sent" not in ask:
            raise ConfigError(
                f"clock.down: ask {number} does not say what was sent, the run is an older one; leave it out"
            )
        sizes = [float(ask["sent"].get(name, 0)) for name in ask["silos"]]
        download = clock.down.seconds(sizes, np.random.default_rng([seed, number, 1]))
    if arrivals:
        compute = clock.computing(ask["step"], max(reply["seconds"] for reply in arrivals.values()))
    sizes = [float(_left(arrivals[name])) if name in arrivals else 0.0 for name in ask["silos"]]
    return download, compute, clock.up.seconds(sizes, np.random.default_rng([seed, number, 0]))


def _left(reply: Mapping[str, Any]) -> int:
    return sum(field["bytes"] for field in reply["fields"].values())


def judged(moments: Iterable[Moment], stages: Sequence[S]) -> dict[S, float]:
    """When each stage of a run was judged, in simulated seconds: a point of its time-to-accuracy curve.

    Each ask for `evaluate` is one stage; if there are more or fewer of them, the times are not known.

    >>> asked = ["evaluate", "train", "evaluate"]
    >>> moments = [Moment(n, step, 0.0, 0.0, 0.0, at=5.0 * n) for n, step in enumerate(asked)]
    >>> judged(moments, ["local", "federated"])
    {'local': 0.0, 'federated': 10.0}
    """
    ends = [moment.at for moment in moments if moment.step == "evaluate"]
    return dict(zip(stages, ends, strict=True)) if len(ends) == len(stages) else {}
