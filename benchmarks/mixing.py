"""What averaging models does to FedFomo: `python benchmarks/mixing.py`.

FedFomo runs as in `recipes/dofed_cifar10_subset.toml` at night size, on development seed 0. Whenever a silo
has mixed, the loss of its model on its labelled target points is set beside those of the models of others
that went into it. A mixture of one is that model, several are averaged, and where none helps a silo stays
with what it has. In the end silos are told apart by what they mixed last. Three minutes on two cores; needs
COSILO_DATA.
"""

import json
import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

from cosilo import Federation, FedFomo, LocalEngine, Message, Shared, Silo, step
from cosilo.aggregation.averaging import Weights
from cosilo.config.build import Source, make_members
from cosilo.config.settings import validate
from cosilo.methods.effort import plain_silos
from cosilo.methods.packing import unpack
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find
from cosilo.silo.parts import Part

RECIPE = "dofed_cifar10_subset"


class Watched(FedFomo):
    """FedFomo that writes down what each mixture loses, and what the models lose that are in it."""

    notes: ClassVar[Path] = Path()

    @step(weights=Shared("similarity", "how much each model that it was sent helped on its own data"))
    def mix(self, silo: Silo, origins: list[str], models: Weights | None = None) -> Message:
        """As always; losses go to a file of the silo's own."""
        reply = super().mix(silo, origins, models)
        given, trial = unpack(models or {}), silo.network.another()
        losses = []
        for name, weight in zip(origins, np.asarray(reply["weights"]), strict=True):
            if weight > 0:
                trial.set_weights(given[name])
                losses.append(trial.loss(Part.TARGET))
        with (self.notes / silo.name).open("a") as file:
            file.write(json.dumps({"mixed": silo.network.loss(Part.TARGET), "of": losses}) + "\n")
        return reply


def main() -> None:
    recipe: dict[str, Any] = {**find(RECIPE).case("told", "night"), "seed": 0}
    silos, _ = make_members(validate(recipe, RECIPE), Source(f"{RECIPE}.toml", RECIPES))
    with tempfile.TemporaryDirectory() as folder:
        Watched.notes = Path(folder, "notes")
        Watched.notes.mkdir()
        method = Watched(**{**recipe["compare"]["fedfomo"], "local": False})
        federation = Federation(plain_silos(silos), method=method, seed=0, engine=LocalEngine(workers=2))
        accuracy = federation.run(Path(folder, "run"), observers=[]).scores("federated")
        mixes = {
            file.name: [json.loads(line) for line in file.read_text().splitlines()]
            for file in Watched.notes.iterdir()
        }
    every = [mix for of_silo in mixes.values() for mix in of_silo]
    last = {name: [len(mix["of"]) for mix in of_silo if mix["of"]][-1:] for name, of_silo in mixes.items()}
    print(f"figure mixing_accuracy {fmean(accuracy.values()):.3f}")
    for name, wanted in {"none": range(1), "one": range(1, 2), "several": range(2, 99)}.items():
        found = [mix for mix in every if len(mix["of"]) in wanted]
        print(f"figure mixing_{name}_times {len(found)}")
        if name != "none":
            print(f"figure mixing_{name}_best_loss {fmean(min(mix['of']) for mix in found):.3f}")
            print(f"figure mixing_{name}_mixed_loss {fmean(mix['mixed'] for mix in found):.3f}")
            ends = [accuracy[silo] for silo, sizes in last.items() if sizes and sizes[0] in wanted]
            print(f"figure mixing_{name}_silos {len(ends)}")
            print(f"figure mixing_{name}_accuracy {fmean(ends):.3f}")


if __name__ == "__main__":
    main()
