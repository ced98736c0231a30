"""More rounds of CoFED: what does each add? Co-training saturates, as the paper says (§ 4.2)."""

import statistics
import tempfile
from pathlib import Path

from cosilo.config import build, recipe_file
from cosilo.recipes import RECIPES

RECIPE = RECIPES / "demo.toml"
ROUNDS, SEEDS = 5, 5


def main() -> None:
    stages = [f"round {number}" for number in range(1, ROUNDS)] + ["federated"]
    means: dict[str, list[float]] = {stage: [] for stage in stages}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(SEEDS):
            values = recipe_file.read(RECIPE, [f"seed={seed}", f"method.rounds={ROUNDS}"])
            run = build.federation(values, build.Source("demo.toml", Path(folder))).run(
                Path(folder) / str(seed)
            )
            local = run.scores("local")
            for stage in stages:
                accuracy = run.scores(stage)
                means[stage].append(statistics.mean(accuracy[name] / local[name] for name in local))
    for number, stage in enumerate(stages, start=1):
        mean, spread = statistics.mean(means[stage]), statistics.stdev(means[stage])
        print(f"after round {number}: mean relative accuracy {mean:.3f} ± {spread:.3f} over {SEEDS} seeds")
    for number, stage in enumerate(stages, start=1):
        print(f"figure demo_relative_after_round_{number} {statistics.mean(means[stage]):.3f}")


if __name__ == "__main__":
    main()
