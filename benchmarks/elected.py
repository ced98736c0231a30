"""What elected labels teach, against more training without them: `python benchmarks/elected.py`.

Ten silos of `recipes/cofed_cifar.toml`, IID, with one architecture. Update training is more training: a
network that stopped short of what it can learn alone gains from it, whatever was elected. So CoFED is
compared with its control, which has as many passes over the silo's own data; after local training to its
end, as in the recipe, and after one that stops short: a larger rate that stays.
"""

import statistics
import tempfile
from pathlib import Path

from cosilo import CoFED, Federation
from cosilo.config import build, recipe_file, settings
from cosilo.engines.local.engine import LocalEngine
from cosilo.recipes import RECIPES

RECIPE = RECIPES / "cofed_cifar.toml"
SCALE = ["simulation.split.silos=10", "simulation.learners.0.filters=[24, 32, 56]", "pool.size=1000"]
SHORT = [
    f"simulation.learners.0.training.{change}" for change in ('schedule="constant"', "lr=3e-3", "patience=5")
]
CASES = {"short": SHORT, "whole": []}
SEEDS = 2


def relative(changes: list[str], seed: int, folder: Path) -> tuple[float, float]:
    """The mean over silos of accuracy ÷ local accuracy: with elected labels, and of the control."""
    values = recipe_file.read(RECIPE, [*SCALE, *changes, f"seed={seed}"])
    silos, pool = build.make_members(
        settings.validate(values, RECIPE.name), build.Source("cofed_cifar.toml", folder)
    )
    assert pool is not None
    with tempfile.TemporaryDirectory(dir=folder) as place:
        run = Federation(silos, pool.X, CoFED(), seed=seed, engine=LocalEngine(2)).run(Path(place) / "run")
        found = run.relative_accuracy(), run.relative_control()
    return statistics.mean(found[0].values()), statistics.mean(found[1].values())


def main() -> None:
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for case, changes in CASES.items():
            found = [relative(changes, seed, Path(folder)) for seed in range(SEEDS)]
            for name, values in zip(("cofed", "more_training"), zip(*found, strict=True), strict=True):
                print(f"{case}, {name}: relative accuracy {', '.join(f'{value:.3f}' for value in values)}")
                figures[f"{name}_{case}"] = statistics.mean(values)
    for name, value in figures.items():
        print(f"figure {name} {value:.3f}")


if __name__ == "__main__":
    main()
