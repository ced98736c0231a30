"""The labels of a silo's unlabelled target points, and what it trains on and wants."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cosilo.errors import DataError
from cosilo.learners.base import Codes
from cosilo.protocol.message import Fields
from cosilo.protocol.stage import Score
from cosilo.silo.holdings import Holdings
from cosilo.silo.predicting import predict_surely

if TYPE_CHECKING:
    import pandas as pd

#: The silo's notes about its labels: codes and confidence, and who spoke if a method gave them.
_LABELS, _SPEAKERS = "target labels", "target speakers"


def aims(silo: Holdings) -> tuple[list[str], list[str]]:
    """The classes that a silo trains on, and those that it wants: none if it has no target."""
    if silo.data.target is None:
        return list(silo.task.classes), []
    return silo.task.decode(np.unique(silo.data.own[1])).tolist(), list(silo.wanted.classes)


class TargetLabels:
    """The labels of a silo's unlabelled target points. They are kept in its notes, and never leave it."""

    def __init__(self, silo: Holdings) -> None:
        self._silo = silo

    def keep(self, codes: Codes, confidence: NDArray[np.floating[Any]], speakers: list[str] | None) -> None:
        """Take over labels that a method has found; from now on the silo's own model gives none."""
        silo = self._silo
        points = len(silo.data.need_target().unlabelled)
        if codes.shape != (points,) or confidence.shape != (points,):
            raise DataError(
                f"silo {silo.name!r}: got labels of shape {codes.shape} with confidence of shape "
                f"{confidence.shape}; wants one each for its {points} unlabelled target points"
            )
        if points and not (codes.min() >= 0 and codes.max() < len(silo.task)):
            raise DataError(f"silo {silo.name!r}: got labels for its target that are outside its task")
        self._write(codes, confidence)
        silo.notes[_SPEAKERS] = list(speakers or [])

    def take(self) -> Score | None:
        """Label with the present model, unless a method gave labels; their accuracy and number, if known."""
        silo, target = self._silo, self._silo.data.target
        if target is None or len(target.unlabelled) == 0:
            return None
        if _SPEAKERS not in silo.notes:
            self._write(*predict_surely(silo, target.unlabelled, silo.among))
        if target.truth is None:
            return None
        codes = self._read()["codes"]
        return Score(float(np.mean(codes == target.truth)), len(codes))

    def frame(self) -> "pd.DataFrame":
        """Label, confidence and whose models spoke, in the order of the unlabelled points."""
        self._silo.data.need_target()
        return target_frame(self._silo.name, self._silo.notes, self._silo.as_given)

    def _write(self, codes: Codes, confidence: NDArray[np.floating[Any]]) -> None:
        self._silo.notes[_LABELS] = {
            "codes": np.asarray(codes, np.int64),
            "confidence": np.asarray(confidence, np.float64),
        }

    def _read(self) -> dict[str, NDArray[Any]]:
        return self._silo.notes.group(_LABELS)


def target_frame(silo: str, notes: Fields, as_given: Callable[[Codes], NDArray[Any]]) -> "pd.DataFrame":
    """The labels that a silo's notes have; `as_given` makes labels of codes."""
    import pandas as pd

    if _LABELS not in notes:
        raise DataError(f"silo {silo!r}: has no labels for its target yet; run a method first")
    found = notes.group(_LABELS)
    speakers = notes.names(_SPEAKERS) if _SPEAKERS in notes else []
    return pd.DataFrame(
        {
            "label": as_given(found["codes"]),
            "confidence": found["confidence"],
            "speakers": ",".join(speakers),
        }
    )
