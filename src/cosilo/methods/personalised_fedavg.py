"""Personalised FedAvg: a global model over the union of all classes, then fine-tuned by each silo.

As CoFED (§ 5.8) compares with it: FedAvg trains one model over the vocabulary; each silo then goes on
training it on its own data, and is judged on its own classes.

Deviations from the paper: fine-tuning happens once, after the last round (the paper's curve, which fine-tunes
in every round, costs as much as the federation itself).
"""

from typing import Annotated, ClassVar

from pydantic import Field

from cosilo.aggregation.averaging import Weights
from cosilo.coordination.coordinator import Silos
from cosilo.methods.fedavg import FedAvg
from cosilo.protocol.stage import FEDERATED, Stage
from cosilo.protocol.step import step
from cosilo.silo.silo import Silo


class PersonalisedFedAvg(FedAvg):
    """FedAvg, then some epochs of each silo's own training.

    Parameters
    ----------
    tuning_epochs : int, default 5
        Epochs on the silo's own data after the last round.

    Examples
    --------
    >>> str(PersonalisedFedAvg(rounds=10).last_stage)
    'round 10'
    """

    name: ClassVar[str] = "personalised_fedavg"

    tuning_epochs: Annotated[int, Field(ge=1)] = 5

    @property
    def last_stage(self) -> Stage:
        """The global model is not the end."""
        return Stage.after_round(self.rounds)

    def finish(self, silos: Silos, weights: Weights) -> None:
        """Fine-tune at every silo."""
        tuned = silos.ask("tune", {"weights": weights})
        silos.evaluate(FEDERATED, to=tuned)

    @step()
    def tune(self, silo: Silo, weights: Weights) -> None:
        """Go on from the global weights on the silo's own data; the result stays here."""
        silo.network.set_weights(weights)
        silo.network.train(epochs=self.tuning_epochs)
        silo.take_score(FEDERATED)
