"""Labels for new instances, from a silo's own file and record."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch")
pytest.importorskip("nvflare")

from cosilo.config import build
from cosilo.engines.flare.predicting import predictions

LEARNER = {"use": "mlp", "hidden": [8], "training": {"optimiser": "sgd", "lr": 0.2, "batch": 8}}
CENTRES = {"ash": (0, 0), "elm": (4, 0), "fir": (0, 4), "oak": (4, 4)}


def points(classes, count, seed, path):
    rng = np.random.default_rng(seed)
    rows = [(*(np.array(CENTRES[c]) + rng.normal(0, 0.4, 2)), c) for c in classes for _ in range(count)]
    pd.DataFrame(rows, columns=["x", "y", "tree"]).to_csv(path, index=False)


def test_by_the_own_model_or_by_those_that_labelled(tmp_path):
    silos = []
    for place, (own, wanted) in enumerate(
        [(("ash", "elm"), ("fir", "oak")), (("fir", "oak"), ("ash", "elm"))]
    ):
        name = f"park-{place}"
        points(own, 20, place, tmp_path / f"{name}.csv")
        points(wanted, 3, 10 + place, tmp_path / f"{name}-labelled.csv")
        points(wanted, 10, 20 + place, tmp_path / f"{name}-open.csv")
        target = {"path": f"{name}-labelled.csv", "unlabelled": f"{name}-open.csv", "truth": "tree"}
        about = {"name": name, "path": f"{name}.csv", "label": "tree", "target": target, "learner": LEARNER}
        silos.append(about | {"shares": ["weights", "similarity", "metrics"]})
        (tmp_path / f"{name}.toml").write_text(
            f'name = "{name}"\npath = "{name}.csv"\nlabel = "tree"\n'
            f'shares = ["weights", "similarity", "metrics"]\n'
            f'target = {{ path = "{name}-labelled.csv", unlabelled = "{name}-open.csv", truth = "tree" }}\n'
            '[learner]\nuse = "mlp"\nhidden = [8]\ntraining = { optimiser = "sgd", lr = 0.2, batch = 8 }\n'
        )
    method = {"use": "dofed_spp", "rounds": 2, "warm_up": 10, "stop_below": 0.0}
    values = {"seed": 1, "method": method, "silo": silos}
    run = build.federation(values, build.Source("trees.toml", tmp_path)).run(tmp_path / "run")
    points(("fir", "oak"), 15, 30, tmp_path / "new.csv")
    files = tmp_path / "park-0.toml", run.folder / "silos" / "park-0", tmp_path / "new.csv"
    truth = pd.read_csv(files[2])["tree"]
    own, others = predictions(*files), predictions(*files, labeller=True)
    assert list(own) == ["label"]
    assert list(others) == ["label", "confidence", "speakers"]
    assert set(others["speakers"]) == {"park-1"}
    assert np.mean(others["label"] == truth) > 0.9
