"""What a silo promises its records: how much anybody may learn of one of them from its votes."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from cosilo.parameters import Parameters


class Privacy(Parameters):
    """Let a silo vote by a voter that is trained with differential privacy, and keep account of it.

    Whatever is computed from the votes, and however often they are looked at: whether a record is in the
    training data or not changes the probability of any outcome by a factor of e^ε at most, but for a
    probability of δ. The silo's own model is trained without noise, and does not leave it.

    Parameters
    ----------
    epsilon : float
        What one voter costs: the smaller, the more private, and the less accurate.
    delta : float, default 1e-5
        The probability with which ε may not hold; it has to be far below one over the number of records.
    budget : float, default None
        The most that all voters together may cost any record, in all runs; None: `epsilon`, which is one
        voter. Votes of a voter that there is already cost nothing.
    voter : {"softmax", "mlp"}, default "softmax"
        What votes: a softmax regression, or a network with one hidden layer, for silos with many thousand
        records. Both learn from features that are made of the pool alone. The silo's learner may be anything.
    ledger : Path, default None
        The folder of the account. None: beside the file of a silo that joins others, `privacy/`; where all
        silos are on one machine, the run's own directory, so that each run has an account of its own.

    Examples
    --------
    >>> Privacy(epsilon=8).most
    8.0
    """

    epsilon: Annotated[float, Field(ge=0.01, le=100)]
    delta: Annotated[float, Field(ge=1e-12, lt=0.1)] = 1e-5
    budget: Annotated[float | None, Field(gt=0)] = None
    voter: Literal["softmax", "mlp"] = "softmax"
    ledger: Path | None = None

    @model_validator(mode="after")
    def _one_voter_at_least(self) -> "Privacy":
        if self.budget is not None and self.budget < self.epsilon:
            raise ValueError(f"budget of at least epsilon = {self.epsilon:g}, which is one voter")
        return self

    @property
    def most(self) -> float:
        """What all voters together may cost a record."""
        return self.epsilon if self.budget is None else self.budget
