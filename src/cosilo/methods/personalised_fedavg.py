"""Personalised FedAvg: a global model over the union of all classes, then fine-tuned by each silo.

As CoFED (§ 5.8) compares with it: FedAvg trains one model over the vocabulary; each silo then goes on
training it on its own data, and is judged on its own classes.

In every round that is judged a silo is judged by a fine-tuned model, as in the paper's curve (Fig. 10); the
next round goes on from the global one. Only the fine-tuning after the last round is on the clock: the others
are for the curve.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from cosilo.aggregation.averaging import Weights
from cosilo.methods.effort import Effort
from cosilo.methods.fedavg import FedAvg
from cosilo.protocol.participant import Participant
from cosilo.protocol.stage import Stage
from cosilo.protocol.step import step
from cosilo.silo.silo import Silo


class PersonalisedFedAvg(FedAvg):
    """FedAvg, then some epochs of each silo's own training.

    Parameters
    ----------
    tuning_epochs : int, default 5
        Epochs on the silo's own data after the last round, and before it is judged in another.

    Examples
    --------
    >>> sorted(PersonalisedFedAvg(rounds=10).steps())
    ['alone', 'begin', 'evaluate', 'hello', 'initial', 'judge', 'train', 'tune', 'wants']
    """

    name: ClassVar[str] = "personalised_fedavg"
    last_judge: ClassVar[str] = "tune"

    tuning_epochs: Annotated[int, Field(ge=1)] = 5

    def effort(self, participants: Sequence[Participant], pool: int = 0) -> Effort:
        """Fine-tuning comes on top."""
        federated = super().effort(participants, pool)
        return replace(federated, epochs=(federated.epochs or 0) + self.tuning_epochs)

    @step()
    def tune(self, silo: Silo, weights: Weights, stage: str) -> None:
        """Go on from the global weights on the silo's own data; the result stays here."""
        silo.network.set_weights(weights)
        silo.take_joint_score(Stage.parse(stage))
        silo.network.train(epochs=self.tuning_epochs)
        silo.take_score(Stage.parse(stage))

    @step(timed=False)
    def judge(self, silo: Silo, weights: Weights, stage: str) -> None:
        """The same in a round that is not the last."""
        self.tune(silo, weights, stage)
