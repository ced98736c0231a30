"""The table of docs/choosing.md: `python benchmarks/choosing.py`, some two minutes.

One federation, every method: eight silos with four to six kinds of clothes each (FashionMNIST, 10 images a
kind) and the same small network, 1,000 other images as the pool, three seeds. DoFed-SPP and Tempo are for
other federations, with targets and with institutions, and are not in it.

Every method is compared with the same training alone: 40 epochs of a silo's own images. Those with rounds
have as many of these in all their rounds. What some train on beside that is theirs: CoFED's update, FedMD's
public images, what FedBE distils, the tuning of personalised FedAvg.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from cosilo.comparison.compare import compare
from cosilo.config.build import Source
from cosilo.methods import METHODS
from cosilo.report.averages import average
from cosilo.report.formatting import size
from cosilo.report.summary import Row, summarise

ROUNDS, EPOCHS = 20, 2
ALONE = ROUNDS * EPOCHS
RECIPE = {"optimiser": "sgd", "lr": 0.05, "batch": 20, "epochs": ALONE, "schedule": "constant"}
VALUES = {
    "workers": 2,
    "method": {"use": "fedavg", "rounds": ROUNDS, "epochs": EPOCHS, "evaluate_every": ROUNDS},
    "compare": {
        "cofed": {"rounds": 1},
        "fedbe": {"samples": 5},
        "fedmd": {
            "subset": 1000,
            "private_epochs": ALONE - ROUNDS,
            "revisit_epochs": 1,
            "revisit_batch": 20,  # its default of 5 is for a smaller rate
        },
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


def check_denominators(rows: Sequence[Row]) -> None:
    """On one seed a silo has the same accuracy alone, whatever it is compared with."""
    for runs in zip(*(row.runs for row in rows), strict=True):
        assert len({run.seed for run in runs}) == 1
        assert all(run.baseline == runs[0].baseline for run in runs), [run.local for run in runs]


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
        control = average(run.control for run in row.runs)
        if control:
            print(f"{row.name}: as much training without the others {control.ratio}")
    check_denominators(rows)


if __name__ == "__main__":
    main()
