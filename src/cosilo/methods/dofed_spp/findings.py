"""What is found out beside scores, for the report: what travelled in each round, and who helped whom."""

from pydantic import BaseModel, Field

from cosilo.protocol.findings import Findings, Matrix


class Exchange(BaseModel):
    """What travelled in a round, and what came of it."""

    round: int
    #: Whose models; those of the first round were uploaded before it, with all others.
    uploaded: list[str]
    #: How many models each silo labelled with.
    labellers: int
    #: The budget's seconds that were used up by the end of the round.
    seconds: float
    #: The share of all labels that changed; None if nobody got a model that helps.
    labels_moved: float | None
    #: How many silos found models that help, by new ratios; the others keep their last ones.
    fresh_ratios: int
    #: What the models that a silo was sent took.
    bytes_sent: int
    #: What PCA lost of each model, relative to its size.
    reconstruction_error: dict[str, float]


class Exchanges(Findings):
    """What DoFed-SPP's part of the report reads."""

    exchange: list[Exchange] = Field(default_factory=list)
    #: The similarity ratios after the last round.
    similarity: Matrix | None = None
    #: Seconds that there were for all rounds.
    budget: float | None = None

    @property
    def rounds_done(self) -> int | None:
        """Fewer than there may be if labels no longer change, or if the budget is used up."""
        return self.exchange[-1].round if self.exchange else None
