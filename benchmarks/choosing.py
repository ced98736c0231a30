"""The table of docs/choosing.md: `python benchmarks/choosing.py`, under five minutes.

One federation, every method: eight silos with four to six kinds of clothes each (FashionMNIST, 10 images a
kind) and the same small network, 1,000 other images as the pool, three seeds. DoFed-SPP and Tempo are for
other federations, with targets and with institutions, and are not in it.
"""

import tempfile
from pathlib import Path

from cosilo.comparison.compare import compare
from cosilo.config.build import Source
from cosilo.methods import METHODS
from cosilo.report.formatting import size
from cosilo.report.summary import Row, summarise

ROUNDS = 20
RECIPE = {"optimiser": "sgd", "lr": 0.05, "batch": 20, "epochs": 20, "schedule": "constant"}
VALUES = {
    "workers": 2,
    "method": {"use": "fedavg", "rounds": ROUNDS, "epochs": 2, "evaluate_every": ROUNDS},
    "compare": {
        "cofed": {"rounds": 1, "alpha": 0.5},
        "fedbe": {"samples": 5},
        "fedmd": {"subset": 1000, "revisit_batch": 20},  # its default of 5 is for a smaller rate
    },
    "simulation": {
        "dataset": "fashion_mnist",
        "split": {"use": "superclasses", "silos": 8, "classes": [4, 6], "per_class": 10},
        "learners": [{"use": "mlp", "hidden": [64], "training": RECIPE}],
        "shares": ["labels", "weights", "size", "logits", "similarity", "metrics"],
    },
    "pool": {"rest": True, "size": 1000, "labelled": True},
}
NOT_HERE = ("dofed_spp", "tempo")


def line(row: Row) -> str:
    assert row.accuracy is not None
    needs = ", ".join(sorted(need for need in METHODS[row.name]().needs() if need != "metrics")) or "nothing"
    rounds = 0 if row.alone else row.rounds
    sent = size(row.left.mean) if row.left else "–"
    gain = row.relative.ratio if row.relative else "1"
    return f"| `{row.name}` | {needs} | {rounds} | {sent} | {row.accuracy.percent} | {gain} |"


def main() -> None:
    names = [name for name in METHODS if name not in NOT_HERE]
    with tempfile.TemporaryDirectory() as folder:
        found = compare(VALUES, Source("choosing", Path(folder)), names, 3, Path(folder) / "runs", tell=print)
        rows = summarise(found).rows
    print("| method | a silo shares | rounds | bytes that leave a silo | accuracy | relative accuracy |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(line(row))
    for row in rows:
        if row.relative:
            print(f"figure choosing_{row.name}_relative {row.relative.mean:.3f}")


if __name__ == "__main__":
    main()
