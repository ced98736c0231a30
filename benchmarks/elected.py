"""What elected labels teach, against more training without them: `python benchmarks/elected.py`.

Ten silos of `recipes/cofed_cifar.toml`, IID, with one architecture. Update training is more training: a
network that stopped short of what it can learn alone gains from it, whatever was elected. So CoFED is
compared with a twin that does all the same but leaves the elected labels out; after local training to its
end, as in the recipe, and after one that stops short: a larger rate that stays.
"""

import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cosilo import CoFED, Federation
from cosilo.config import build, settings
from cosilo.engines.local.engine import LocalEngine
from cosilo.methods import step
from cosilo.protocol.stage import Stage
from cosilo.recipes import RECIPES

if TYPE_CHECKING:
    from cosilo.silo.silo import Silo

RECIPE = RECIPES / "cofed_cifar.toml"
SCALE = ["simulation.split.silos=10", "simulation.learners.0.filters=[24, 32, 56]", "pool.size=1000"]
SHORT = [
    f"simulation.learners.0.training.{change}" for change in ('schedule="constant"', "lr=3e-3", "patience=5")
]
CASES = {"short": SHORT, "whole": []}
SEEDS = 2


class MoreTraining(CoFED):
    """CoFED whose silos train on, and never see what was elected."""

    @step()
    def update(self, silo: "Silo", index: Any, label: Any, stage: str) -> None:
        """Train on D_i once more."""
        silo.fit(Stage.parse(stage), update=True, warm=True, classes=self.class_weights)


def relative(method: CoFED, changes: list[str], seed: int, folder: Path) -> float:
    values = settings.read(RECIPE, [*SCALE, *changes, f"seed={seed}"])
    silos, pool = build.make_members(
        settings.validate(values, RECIPE.name), build.Source("cofed_cifar.toml", folder)
    )
    assert pool is not None
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run = Federation(silos, pool.X, method, seed=seed, engine=LocalEngine(2)).run(Path(place) / "run")
        before, after = run.scores("local"), run.scores("federated")
    return statistics.mean(after[name] / before[name] for name in before)


def main() -> None:
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for case, changes in CASES.items():
            for name, method in (("cofed", CoFED()), ("more_training", MoreTraining())):
                found = [relative(method, changes, seed, Path(folder)) for seed in range(SEEDS)]
                print(f"{case}, {name}: relative accuracy {', '.join(f'{value:.3f}' for value in found)}")
                figures[f"{name}_{case}"] = statistics.mean(found)
    for name, value in figures.items():
        print(f"figure {name} {value:.3f}")


if __name__ == "__main__":
    main()
