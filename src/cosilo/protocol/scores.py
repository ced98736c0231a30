"""Scores as the fields of a reply to `evaluate`."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from cosilo.protocol.forms import SHARE, Count
from cosilo.protocol.message import Fields, Message, Shared, Value
from cosilo.protocol.metrics import METRICS, as_json
from cosilo.protocol.stage import Measure, Score

_ABOUT = {
    Measure.OWN: ("share of its test instances that its model gets right", "how many test instances it has"),
    Measure.JOINT: (
        "share of its test instances that the global network gets right, among all classes",
        "how many test instances it has",
    ),
    Measure.CONTROL: (
        "share of its test instances that its model gets right after as much training on its own data alone",
        "how many test instances it has",
    ),
    Measure.OFFERED: (
        "share of its test instances that the model which the federation offered it gets right",
        "how many test instances it has",
    ),
    Measure.LABELLING: (
        "share of its unlabelled target points that have the right label",
        "how many unlabelled target points with a known class it has",
    ),
}


def scores_in(reply: Fields) -> dict[Measure, Score]:
    """The scores in a reply to `evaluate`."""
    found = {}
    for measure in Measure:
        accuracy, instances = score_fields(measure)
        if accuracy in reply:
            found[measure] = Score(reply.number(accuracy), reply.integer(instances))
    return found


def score_fields(measure: Measure) -> tuple[str, str]:
    """What the fields of a score are called in a reply to `evaluate`.

    >>> score_fields(Measure.JOINT)
    ('joint_accuracy', 'joint_instances')
    """
    prefix = "" if measure is Measure.OWN else f"{measure}_"
    return f"{prefix}accuracy", f"{prefix}instances"


def metrics_in(reply: Fields) -> dict[str, Any]:
    """The other metrics in a reply to `evaluate`, as result.json has them."""
    return {name: as_json(reply[name]) for name in METRICS if name in reply}


def scores_out(
    scores: Mapping[Measure, Score], shares: Collection[str] = ("metrics",), *, exact: bool = True
) -> Message:
    """A reply to `evaluate`: what a policy allows of the scores after a stage.

    If not exact, one that hardly tells how many instances there are: numbers are rounded, and tables of
    counts stay.

    >>> scores_out({Measure.OWN: Score(27 / 31, 31)}, exact=False)
    {'accuracy': 0.87, 'instances': 30}
    """
    reply: dict[str, Value] = {}
    for measure, score in scores.items() if "metrics" in shares else ():
        accuracy, instances = score_fields(measure)
        if exact:
            reply |= {accuracy: score.accuracy, instances: score.instances}
        else:
            first = 10 ** (len(str(score.instances)) - 1)
            reply |= {accuracy: round(score.accuracy, 2), instances: score.instances // first * first}
    own = scores[Measure.OWN].metrics if Measure.OWN in scores else {}
    for name, value in own.items():
        counts = name in ("confusion", "calibration")
        if METRICS[name].kind in shares and (exact or not counts):
            # What was kept as a list travels as the array that it was.
            dtype = np.int64 if name == "confusion" else np.float64
            sent = np.array(value, dtype=dtype) if isinstance(value, list) else value
            reply[name] = sent if exact else round(sent, 2) if isinstance(sent, float) else sent.round(2)
    return reply


def overall_score(scores: Iterable[Score]) -> Score:
    """The accuracy on all instances together, of as many as each silo says it has.

    >>> overall_score([Score(1.0, 1), Score(0.5, 3)])
    Score(accuracy=0.625, instances=4)
    """
    each = list(scores)
    instances = sum(score.instances for score in each)
    return Score(sum(score.accuracy * score.instances for score in each) / instances, instances)


def declared_fields() -> dict[str, Shared]:
    """The fields of `evaluate`: a silo sends those that it has."""
    found = {}
    for measure in Measure:
        (accuracy, instances), (right, counted) = score_fields(measure), _ABOUT[measure]
        found[accuracy] = Shared("metrics", right, optional=True, form=SHARE)
        found[instances] = Shared("metrics", counted, optional=True, form=Count())
    for name, metric in METRICS.items():
        found[name] = Shared(metric.kind, metric.about, optional=True, form=metric.form)
    return found
