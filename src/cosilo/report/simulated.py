"""Simulated time: when which accuracy was reached over the links of a clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cosilo.protocol.stage import LOCAL, Stage
from cosilo.simulated_time.clock import Clock, Moment, judged


@dataclass(frozen=True)
class Simulated:
    """A run on its clock."""

    clock: Clock
    #: Seconds of the whole run, and what they are made of.
    total: float
    download: float
    compute: float
    upload: float
    #: By step, of those that take time: how often it was asked for, seconds of downloading, of computing, of
    #: uploading.
    steps: Mapping[str, tuple[int, float, float, float]]
    #: When each stage was judged, in seconds; empty if that is not known.
    at: Mapping[Stage, float]

    def curve(self, accuracies: Mapping[Stage, float]) -> tuple[tuple[float, float], ...]:
        """Seconds and accuracy after every stage; local training is no point of it, but what it is held to.

        >>> from cosilo.protocol.stage import FEDERATED
        >>> clock = Clock.model_validate({"up": {"rate": 1.0}})
        >>> found = Simulated(clock, 9.0, 0.0, 9.0, 0.0, {}, {LOCAL: 0.0, FEDERATED: 9.0})
        >>> found.curve({LOCAL: 0.5, FEDERATED: 0.75})
        ((9.0, 0.75),)
        """
        there = [stage for stage in accuracies if stage != LOCAL and stage in self.at]
        return tuple((self.at[stage], accuracies[stage]) for stage in there)


def simulated(clock: Clock, moments: Sequence[Moment], stages: Sequence[Stage]) -> Simulated:
    """Add up the moments of a run."""
    steps: dict[str, tuple[int, float, float, float]] = {}
    for moment in moments:
        if moment.timed:
            count, download, compute, upload = steps.get(moment.step, (0, 0.0, 0.0, 0.0))
            steps[moment.step] = (
                count + 1,
                download + moment.download,
                compute + moment.compute,
                upload + moment.upload,
            )
    return Simulated(
        clock=clock,
        total=moments[-1].at if moments else 0.0,
        download=sum(moment.download for moment in moments),
        compute=sum(moment.compute for moment in moments),
        upload=sum(moment.upload for moment in moments),
        steps=steps,
        at=judged(moments, stages),
    )
