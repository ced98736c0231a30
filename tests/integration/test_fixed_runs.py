"""Small fixed runs of every method: what comes out of them is compared with what came out before.

A change that is not meant to change results leaves everything as it is: on a processor like the one that the
hashes were taken on, bit for bit; on any other, as far as rounding goes. One that is: look at what changed,
take it anew with `python tests/integration/test_fixed_runs.py`, and say why in the commit. On another
processor, take it anew before the change, in a commit of its own.
"""

import hashlib
import importlib.metadata
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")

from cosilo import Institution, Run  # noqa: E402
from cosilo.config import build  # noqa: E402
from cosilo.engines.ray.engine import RayEngine  # noqa: E402
from cosilo.runs.journal import replies_in  # noqa: E402

HASHES = Path(__file__).with_name("fixed_runs.json")
#: What a log says about time, and not about the result.
TIMES = {"seconds", "at", "digest", "chain", "checksum", "seal"}

SGD = {"optimiser": "sgd", "lr": 0.1, "batch": 20, "epochs": 2}
MLP = {"use": "mlp", "hidden": [12], "training": SGD}
CALM = {**MLP, "training": {**SGD, "lr": 0.02}}  # where a rate of 0.1 makes points out of rounding
PLAIN = {**MLP, "training": {**SGD, "momentum": 0.0}}  # the path on which weights are changed where they lie
ADAM = {**MLP, "training": {"lr": 0.01, "batch": 16, "epochs": 3, "schedule": "cosine", "patience": 2}}
STEPS = {
    "use": "mlp",
    "hidden": [10, 8],
    "training": {**SGD, "schedule": "step", "decay": 0.5, "balanced": True},
}
ESTIMATORS = [
    {"use": "sklearn.tree.DecisionTreeClassifier", "max_depth": 5},
    {"use": "sklearn.naive_bayes.GaussianNB"},
    {"use": "sklearn.linear_model.LogisticRegression", "max_iter": 200},
    {"use": "sklearn.neighbors.KNeighborsClassifier", "n_neighbors": 3},
]
ALL = ["labels", "logits", "weights", "similarity", "metrics", "size"]


def digits(split: dict[str, Any], learners: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"dataset": "digits", "split": split, "learners": learners, "shares": ALL, **more}


OVERLAP = {"use": "superclasses", "silos": 4, "classes": [3, 5], "per_class": 12}
SUBSET = {"use": "subset", "silos": 4, "clusters": 4, "per_class": 20, "labelled": 4, "unlabelled": 12}
SHARDS = {"use": "shards", "silos": 4, "per_silo": 3}
POOL = {"rest": True, "size": 120}
TINY = {"public_epochs": 2, "public_patience": 1, "private_epochs": 2, "private_patience": 1, "subset": 60}

RUNS: dict[str, dict[str, Any]] = {
    "cofed": {
        "method": {"use": "cofed"},
        "pool": POOL,
        "simulation": digits(OVERLAP, [*ESTIMATORS[:3], MLP]),
    },
    "cofed-paper": {
        "method": {"use": "cofed", "rule": "paper"},
        "pool": POOL,
        "simulation": digits(OVERLAP, [*ESTIMATORS[:3], MLP]),
    },
    "cofed-workers": {
        "method": {"use": "cofed"},
        "pool": POOL,
        "simulation": digits(OVERLAP, [*ESTIMATORS[:3], MLP]),
        "workers": 2,
    },
    "cofed-weighted": {
        "method": {"use": "cofed", "weights": "accuracy", "margin": 0.1, "rounds": 2, "alpha": 0.4},
        "pool": POOL,
        "simulation": digits(OVERLAP, [ADAM, STEPS, ESTIMATORS[2], ESTIMATORS[0]]),
    },
    "cofed-text": {"method": {"use": "cofed", "alpha": 0.5}, "pool": {"path": "pool.csv", "text": "note"}},
    "local": {"method": {"use": "local"}, "simulation": digits(OVERLAP, [*ESTIMATORS, ADAM])},
    "fedavg": {
        "method": {"use": "fedavg", "rounds": 3, "epochs": 2, "fraction": 0.7, "decay": 0.9},
        "simulation": digits(SHARDS, [CALM]),
    },
    "fedavg-workers": {
        "method": {"use": "fedavg", "rounds": 3, "epochs": 2, "fraction": 0.7, "decay": 0.9},
        "simulation": digits(SHARDS, [CALM]),
        "workers": 2,
    },
    "fedavg-images": {"method": {"use": "fedavg", "rounds": 2, "evaluate_every": 2}},
    "fedavg-institutions": {
        "method": {"use": "fedavg", "rounds": 2, "local_rounds": 2},
        "simulation": digits(SHARDS, [PLAIN], institutions=2),
    },
    "fedavg-target": {
        "method": {"use": "fedavg", "rounds": 2},
        "simulation": digits(SUBSET, [MLP]),
    },
    "fedprox": {
        "method": {"use": "fedprox", "rounds": 2, "mu": 0.1, "local": False},
        "simulation": digits(OVERLAP, [STEPS]),
    },
    "fednova": {
        "method": {"use": "fednova", "rounds": 3, "epochs": 2, "decay": 0.5, "decay_after": [2]},
        "simulation": digits({"use": "dirichlet", "silos": 4, "concentration": 0.5}, [MLP, PLAIN]),
    },
    "scaffold": {
        "method": {"use": "scaffold", "rounds": 3, "fraction": 0.7, "server_lr": 0.8},
        "simulation": digits(OVERLAP, [MLP, PLAIN]),
        "workers": 2,
    },
    "personalised_fedavg": {
        "method": {"use": "personalised_fedavg", "rounds": 2, "tuning_epochs": 1},
        "simulation": digits(OVERLAP, [ADAM]),
    },
    "fml": {
        "method": {"use": "fml", "rounds": 3, "alpha": [0.9, 0.5], "temperature": 2.0, "meme": "mlp"},
        "simulation": digits(SHARDS, [CALM, ADAM]),
        "workers": 2,
    },
    "fml-body": {
        "method": {"use": "fml", "rounds": 2, "share": "body"},
        "simulation": digits(OVERLAP, [MLP]),
    },
    "fedmd": {
        "method": {"use": "fedmd", "rounds": 2, **TINY},
        "pool": {**POOL, "labelled": True},
        "simulation": digits(OVERLAP, [MLP, ADAM]),
    },
    "fedbe": {
        "method": {"use": "fedbe", "rounds": 2, "samples": 3, "distil_epochs": 2, "distil_batch": 30}
        | {"average_from": 3, "average_every": 2},
        "pool": POOL,
        "simulation": digits({"use": "iid", "silos": 3, "size": 60}, [MLP]),
    },
    "fedfomo": {
        "method": {"use": "fedfomo", "rounds": 3, "epochs": 1, "models": 2},
        "simulation": digits(OVERLAP, [MLP]),
        "workers": 2,
    },
    "fedfomo-target": {
        "method": {"use": "fedfomo", "rounds": 2, "epochs": 1},
        "simulation": digits(SUBSET, [MLP]),
    },
    "fedadp": {
        "method": {"use": "fedadp", "rounds": 3, "local_rounds": 2},
        "simulation": digits(SHARDS, [PLAIN], institutions=2),
        "workers": 2,
    },
    "tempo": {
        "method": {"use": "tempo", "rounds": 3, "first_epochs": 2, "local_rounds": 2},
        "simulation": digits({"use": "dirichlet", "silos": 6, "concentration": 0.5}, [MLP], institutions=3),
    },
    "dofed_spp": {
        "method": {"use": "dofed_spp", "rounds": 3, "warm_up": 2, "target_epochs": 2, "stop_below": 0.0}
        | {"uploads": 3, "labellers": 2, "g2": 4.0},
        "simulation": digits(SUBSET, [MLP]),
    },
    "dofed_spp-budget": {
        "method": {"use": "dofed_spp", "rounds": 2, "warm_up": 2, "components": 2}
        | {"budget": {"total": 10, "uplink": {"rate": 4000}, "labelling": 0.1}},
        "simulation": digits(SUBSET, [MLP]),
        "workers": 2,
    },
}


def prepare(name: str, folder: Path) -> dict[str, Any]:
    """The values of a recipe; silos with files of their own find these in the folder."""
    values = {"seed": 5, **RUNS[name]}
    if name == "cofed-text":
        learner = {"use": "text", "training": {"lr": 0.05, "epochs": 3, "batch": 8}}
        values["silo"] = [
            {"name": f"desk-{i}", "path": _notes(folder / f"{i}.csv", i), "text": "note", "label": "topic"}
            | {"learner": learner}
            for i in range(3)
        ]
        _notes(folder / "pool.csv", 9)
    if name == "fedavg-images":
        X, y = load_digits(return_X_y=True)
        X = np.kron(X.reshape(-1, 8, 8), np.ones((2, 2))).astype(np.uint8) * 15
        learner = {"use": "lenet5", "training": {**SGD, "lr": 0.01}}
        values["silo"] = []
        for i in range(2):
            np.savez(folder / f"{i}.npz", X=X[i * 60 : (i + 1) * 60], y=y[i * 60 : (i + 1) * 60])
            one = {"name": f"desk-{i}", "path": f"{i}.npz", "shares": ALL, "learner": learner}
            values["silo"].append(one)
    return values


def _notes(path: Path, seed: int) -> str:
    """Short texts whose words tell their topic, more or less."""
    rng = np.random.default_rng(seed)
    words = {"bill": ["pay", "sum", "due", "cash"], "trip": ["road", "sea", "map", "rest"]}
    lines = ["note,topic"]
    for place in range(40):
        topic = ("bill", "trip")[place % 2]
        other = ("trip", "bill")[place % 2]
        drawn = [*rng.choice(words[topic], 3), *rng.choice(words[other], 2)]
        lines.append(f"{' '.join(drawn)},{topic}")
    path.write_text("\n".join(lines) + "\n")
    return path.name


def outcome(name: str, folder: Path, engine: Any = "local", workers: int | None = None) -> dict[str, Any]:
    """What came out of a run: hashes part by part, and numbers that hardly depend on rounding."""
    source = build.Source("fixed.toml", folder)
    values = prepare(name, folder)
    if workers is not None:
        values["workers"] = workers
    federation = build.federation(values, source, engine=engine)
    run = federation.run(folder / "run")
    silos = dict(run.silos)
    for one in run.institutions.values():
        assert isinstance(one, Institution)
        silos |= {f"{one.name}/{silo.name}": one.member(silo.name) for silo in one.silos}
    result = run.result
    numbers = {name: [_size(silo), *_accuracies(result, name)] for name, silo in silos.items()}
    return {
        "numbers": numbers,
        "models": _hash({name: _model(silo) for name, silo in silos.items()}),
        "scores": _hash({part: result.get(part) for part in ("scores", "labelling", "joint")}),
        "findings": _hash({key: value for key, value in result.items() if key != "scores"}),
        "audit": _hash(_logs(run.folder, "audit.jsonl")),
        "asks": _hash(_logs(run.folder, "asks.jsonl")),
        "journal": _hash(_replies(run)),
    }


def _model(silo: Any) -> str:
    """The weights of a network; of anything else, what it says about the training data."""
    if not silo.trained:
        return "none"
    if silo.learner.has_weights:
        return _hash({name: array.tobytes().hex() for name, array in silo.learner.weights().items()})
    return _hash(silo.learner.predict_proba(silo.data.train[0]).tolist())


def _size(silo: Any) -> float:
    """The norm of a network's weights; of anything else, that of its probabilities on the training data."""
    if not silo.trained:
        return 0.0
    if not silo.learner.has_weights:
        return float(f"{np.linalg.norm(silo.learner.predict_proba(silo.data.train[0])):.6g}")
    weights = [array.ravel().astype(float) for array in silo.learner.weights().values()]
    return float(f"{np.linalg.norm(np.concatenate(weights)):.6g}")


def _accuracies(result: dict[str, Any], name: str) -> list[float]:
    """At every stage that the silo was judged at."""
    return [round(by[name]["accuracy"], 6) for by in result["scores"].values() if name in by]


def _logs(folder: Path, name: str) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): [_timeless(json.loads(line)) for line in path.open()]
        for path in sorted(folder.rglob(name))
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):  # in whatever order workers answered
        return {key: _timeless(value[key]) for key in sorted(value) if key not in TIMES}
    return [_timeless(inner) for inner in value] if isinstance(value, list) else value


def _replies(run: Run) -> dict[str, str]:
    """Every reply in the journals as it came, and the arrays of the marks."""
    found = {}
    for journal in sorted(run.folder.rglob("journal")):
        mark = journal / "mark.safetensors"
        if mark.exists():  # its header also has the findings, which are compared apart
            arrays = load(mark.read_bytes().partition(b"\n")[2])  # the first line is its checksum
            found[mark] = repr(sorted((k, v.tobytes()) for k, v in arrays.items())).encode()
        found |= {
            folder / f"{silo}.safetensors": reply
            for folder in journal.glob("*-*")
            for silo, reply in replies_in(folder).items()
        }
    return {
        str(path.relative_to(run.folder)): hashlib.sha256(content).hexdigest()
        for path, content in sorted(found.items())
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def processor() -> str:
    """What decides the last bits of sums: the instructions that there are, and the libraries."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").split("\n\n")[0].splitlines() if info.exists() else []
    wanted = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU part", "cache size")
    about = [line for line in lines if line.partition(":")[0].strip() in wanted] or [platform.platform()]
    names = ("numpy", "scipy", "scikit-learn", "torch")
    return _hash([about, [importlib.metadata.version(name) for name in names]])


def compare(found: dict[str, Any], name: str) -> None:
    """With what came out before: to the last bit where sums have the same ones."""
    known = json.loads(HASHES.read_text())
    was = known["runs"][name]
    if known["processor"] == processor():
        assert found == was
    assert sorted(found["numbers"]) == sorted(was["numbers"])
    for silo, numbers in was["numbers"].items():
        assert found["numbers"][silo] == pytest.approx(numbers, rel=0.01, abs=0.03), silo


@pytest.mark.parametrize("name", RUNS)
def test_what_comes_out_is_what_came_out_before(name, tmp_path):
    compare(outcome(name, tmp_path), name)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2, "flare"])
@pytest.mark.parametrize("name", RUNS)
def test_it_is_the_same_for_any_number_of_workers_and_on_flare(name, workers, tmp_path):
    if workers == "flare":
        pytest.importorskip("nvflare")
        compare(outcome(name, tmp_path, engine="flare"), name)
    else:
        compare(outcome(name, tmp_path, workers=workers), name)


@pytest.fixture(scope="module")
def three_nodes():
    """A Ray cluster at a loopback address that Ray does not replace, as it does 127.0.0.1."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    node |= {"node_ip_address": "127.0.0.2"}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    for _ in range(2):
        cluster.add_node(**node)
    yield cluster.address
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_it_is_the_same_on_a_cluster(name, three_nodes, tmp_path):
    compare(outcome(name, tmp_path, engine=RayEngine(three_nodes)), name)


def main() -> None:
    """Take everything anew; say what changed."""
    old = json.loads(HASHES.read_text())["runs"] if HASHES.exists() else {}
    found = {}
    for name in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = outcome(name, Path(folder))
        changed = [part for part, value in found[name].items() if old.get(name, {}).get(part) != value]
        print(f"{name}: {', '.join(changed) or 'as before'}", flush=True)
    HASHES.write_text(json.dumps({"processor": processor(), "runs": found}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
