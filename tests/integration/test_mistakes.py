"""Mistakes as people make them, typed and read: each gets a line that says what was given and what to do.

A command ends with exit code 2, one line on stderr for each problem and no traceback; Python raises one of
cosilo's own errors, with a text of as many lines.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import cosilo as api
from cosilo import (
    Clock,
    CoFED,
    CosiloError,
    FedAvg,
    Federation,
    Institution,
    Link,
    LocalEngine,
    Network,
    Privacy,
    Run,
    Silo,
    Target,
    Training,
)
from cosilo.config import build, recipe_file

pytest.importorskip("nvflare")
from cosilo.engines.flare import admission
from cosilo.engines.flare.party_files import read_federation

RECIPE = """
[method]
use = "cofed"
alpha = 0.3

[pool]
path = "pool.csv"

[defaults]
label = "sick"
learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = 3 }

[[silo]]
name = "north"
path = "north.csv"

[[silo]]
name = "south"
path = "south.csv"
"""

SIMULATION = """
[simulation]
dataset = "digits"
split = { use = "iid", silos = 3 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]

[pool]
rest = true
"""

FEDERATION = """
name = "clinics"
members = ["north", "south"]

[coordinator]
host = "127.0.0.1"
port = 8102

[method]
use = "cofed"

[pool]
fingerprint = "0123456789abcdef"
size = 60
"""

PARTY = """
name = "north"
path = "north.csv"
label = "sick"
learner = { use = "sklearn.tree.DecisionTreeClassifier" }
pool = { path = "pool.csv" }
"""


def people(seed: int, rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, pulse = rng.integers(20, 80, rows), rng.integers(50, 120, rows)
    return pd.DataFrame({"age": age, "pulse": pulse, "sick": np.where(age + pulse > 135, "yes", "no")})


def table(seed: int = 0, **columns: object) -> str:
    """A CSV file like those of the silos, with some columns changed."""
    return str(people(seed).assign(**columns).to_csv(index=False))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder as a user has it: a recipe, its files, a finished run, kits."""
    folder = tmp_path_factory.mktemp("clinics")
    people(0).to_csv(folder / "north.csv", index=False)
    people(1).to_csv(folder / "south.csv", index=False)
    people(2).drop(columns="sick").to_csv(folder / "pool.csv", index=False)
    people(3, 5).drop(columns="sick").to_csv(folder / "new.csv", index=False)
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "simulation.toml").write_text(SIMULATION)
    (folder / "federation.toml").write_text(FEDERATION)
    (folder / "north.toml").write_text(PARTY)
    (folder / "afile").write_text("something else")
    (folder / "notes").mkdir()
    (folder / "notes" / "todo.txt").write_text("call the south")
    values = recipe_file.read(folder / "recipe.toml")
    build.federation(values, build.Source("recipe.toml", folder)).run(folder / "done")
    admission.make_all(read_federation(folder / "federation.toml"), folder / "kits")
    return folder


@pytest.fixture
def folder(finished, tmp_path, monkeypatch) -> Path:
    here = tmp_path / "clinics"
    shutil.copytree(finished, here, symlinks=True)
    monkeypatch.chdir(here)
    return here


class Typed(NamedTuple):
    """A command, what its error has to say, and the files that are changed before it is typed."""

    command: str
    says: Sequence[str] = ()
    files: Mapping[str, str | bytes] = MappingProxyType({})


def on_recipe(old: str, new: str) -> dict[str, str | bytes]:
    assert old in RECIPE
    return {"recipe.toml": RECIPE.replace(old, new)}


COMMANDS = [
    # the command itself
    Typed("rnu recipe.toml", ("No such command 'rnu' (did you mean 'run'?)", "see cosilo --help")),
    Typed("run", ("Missing argument 'FILE.toml'", "see cosilo run --help")),
    Typed(
        "run recipe.toml --sed 1",
        ("No such option: --sed (Possible options: --dir, --set)", "see cosilo run --help"),
    ),
    Typed(
        "run recipe.toml extra.toml",
        ("Got unexpected extra argument(s) (extra.toml)", "see cosilo run --help"),
    ),
    Typed(
        "run recipe.toml --engine spark",
        ("Invalid value for '--engine': 'spark' is not one of 'local', 'flare'", "see cosilo run --help"),
    ),
    *(
        Typed(
            command,
            (
                f"{where}: got 'Münster'; wants at most 64 letters a to z, digits, '_' and '-'",
                "FLARE's certificates and folders have no others",
            ),
            files,
        )
        for command, where, files in (
            (
                "run recipe.toml --engine flare --dir new",
                "silo 'Münster': name",
                on_recipe('name = "north"', 'name = "Münster"'),
            ),
            (
                "request north.toml",
                "north.toml: name",
                {"north.toml": PARTY.replace('name = "north"', 'name = "Münster"')},
            ),
            (
                "provision federation.toml",
                "federation.toml: members.0",
                {"federation.toml": FEDERATION.replace('"north"', '"Münster"')},
            ),
        )
    ),
    Typed(
        "run recipe.toml --track comet",
        (
            "Invalid value for '--track': 'comet' is not one of 'mlflow', 'tensorboard', 'wandb'",
            "see cosilo run --help",
        ),
    ),
    Typed("demo --seed one", ("Invalid value for '--seed': got 'one'", "see cosilo demo --help")),
    Typed("demo --seed -1", ("demo.toml: seed: got -1", "wants at least 0")),
    Typed(
        "coordinator strat kits/coordinator",
        ("No such command 'strat' (did you mean 'start'?)", "see cosilo coordinator --help"),
    ),
    # the recipe file
    Typed("run recpie.toml", ("recpie.toml: no such file (did you mean 'recipe.toml'?)",)),
    Typed("run notes", ("notes: is a folder", "wants a recipe file (TOML)")),
    Typed(
        "run north.csv", ("north.csv: is not TOML: Expected '=' after a key in a key/value pair (at line 1,",)
    ),
    Typed(
        "run north.toml",
        (
            "north.toml: is the file of a silo, not a recipe",
            "`cosilo join KIT north.toml` takes part with it",
        ),
    ),
    Typed(
        "run recipe.toml",
        ("recipe.toml: is not TOML: Illegal character '\\n' (at line 7, column 17)",),
        files={"recipe.toml": RECIPE.replace('"pool.csv"', '"pool.csv')},
    ),
    Typed(
        "run recipe.toml",
        ("recipe.toml: is not TOML: Cannot declare ('pool',) twice (at line 21, column 6)",),
        files={"recipe.toml": RECIPE + '\n[pool]\npath = "other.csv"\n'},
    ),
    Typed(
        "run recipe.toml",
        ("recipe.toml: is not in UTF-8 (byte 10)", "save it in UTF-8"),
        files={"recipe.toml": "name = 'Z\xfcrich'\n".encode("latin-1")},
    ),
    Typed(
        "run recipe.toml",
        ("recipe.toml: wants either [[silo]] tables or one [simulation]",),
        files={"recipe.toml": ""},
    ),
    Typed(
        "run recipe.toml",
        ("recipe.toml: wants either [[silo]] tables or one [simulation]",),
        files={"recipe.toml": RECIPE + SIMULATION.replace("[pool]\nrest = true", "")},
    ),
    # keys and values
    Typed(
        "check recipe.toml --set method.alpha",
        ("--set method.alpha: wants key=value, such as method.alpha=0.5",),
    ),
    Typed(
        "check recipe.toml --set method.alhpa=0.5",
        (
            "recipe.toml: method.alhpa: there is no such key (did you mean 'alpha'?)",
            "wants one of accept, alpha, class_weights, control, margin, own_weight, rounds,",
        ),
    ),
    Typed(
        "check recipe.toml --set method.alpha=two", ("recipe.toml: method.alpha: got 'two'", "wants a number")
    ),
    Typed(
        "check recipe.toml --set method.alpha=-1", ("recipe.toml: method.alpha: got -1", "wants at least 0")
    ),
    Typed(
        "check recipe.toml --set method.use=cofde",
        (
            "recipe.toml: method.use: there is no method 'cofde' (did you mean 'cofed'?)",
            "there are cofed, dofed_spp, fml, fedadp, fedavg, fedbe, fedfomo, fedmd, fednova,",
        ),
    ),
    Typed(
        "check recipe.toml --set sede=1",
        (
            "recipe.toml: sede: there is no such key (did you mean 'seed'?)",
            "wants one of clock, compare, defaults, method, pool, quorum, reach, reproduces,",
        ),
    ),
    Typed("check recipe.toml --set seed=-1", ("recipe.toml: seed: got -1", "wants at least 0")),
    Typed(
        "check recipe.toml --set workers=many", ("recipe.toml: workers: got 'many'", "wants a whole number")
    ),
    Typed("check recipe.toml --set quorum=2", ("recipe.toml: quorum: got 2", "wants at most 1")),
    Typed("check recipe.toml --set timeout=0", ("recipe.toml: timeout: got 0", "wants more than 0")),
    Typed(
        "check recipe.toml --set silo.nroth.label=ill",
        ("--set silo.nroth.label=ill: there is no 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    Typed(
        "check recipe.toml --set defaults.label=sik",
        (
            "recipe.toml: silo 'north': north.csv: no column 'sik' (did you mean 'sick'?)",
            "it has 'age', 'pulse', 'sick'",
        ),
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo.north.label: is missing", "say which column of north.csv holds the labels"),
        files=on_recipe('label = "sick"', ""),
    ),
    Typed(
        "check recipe.toml --set defaults.lable=sick",
        (
            "recipe.toml: defaults.lable: there is no such key (did you mean 'label'?)",
            "wants one of columns, label, learner, privacy, shares, task, test, text, validation",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.test=1.5",
        ("recipe.toml: defaults.test: got 1.5", "wants less than 1 or False"),
    ),
    Typed(
        "check recipe.toml --set defaults.validation=-0.1",
        ("recipe.toml: defaults.validation: got -0.1", "wants more than 0"),
    ),
    Typed(
        "check recipe.toml --set defaults.shares=labels",
        ("recipe.toml: defaults.shares: got 'labels'", "wants a list: [ … ]"),
    ),
    Typed(
        """check recipe.toml --set defaults.shares=["label"]""",
        ("silo 'north': shares 'label'", "wants some of labels, logits, weights, similarity, metrics, size,"),
    ),
    Typed(
        """check recipe.toml --set defaults.shares=["metrics"]""",
        (
            "silo 'north': does not share 'labels', which cofed needs (step 'label', field",
            "it shares ['metrics']: add 'labels' there to allow it",
        ),
    ),
    Typed(
        """check recipe.toml --set defaults.columns=["age","puls"]""",
        (
            "recipe.toml: silo 'north': north.csv: no column 'puls' (did you mean 'pulse'?)",
            "it has 'age', 'pulse', 'sick'",
        ),
    ),
    Typed(
        """check recipe.toml --set defaults.task=["yes","maybe"]""",
        (
            "silo 'north', data: label 'no' is outside the task {yes, maybe} (28 such instances)",
            "drop them or add the class to the task",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.privacy.epsilon=-1",
        ("recipe.toml: defaults.privacy.epsilon: got -1", "wants at least 0.01"),
    ),
    Typed(
        "check recipe.toml --set clock.up.rate=0",
        ("recipe.toml: clock.up.rate: got 0", "wants more than 0 or a pair of numbers"),
    ),
    Typed(
        "check recipe.toml --set clock.up.speed=1",
        (
            "recipe.toml: clock.up.speed: there is no such key",
            "wants one of bandwidth, gain, latency, noise, power, rate, shared",
        ),
    ),
    # silos
    Typed(
        "check recipe.toml",
        ("2 silos are called 'north'", "give each its own name"),
        files=on_recipe('name = "south"', 'name = "north"'),
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo 'south/west': silo name 'south/west': wants letters (of any",),
        files=on_recipe('name = "south"', 'name = "south/west"'),
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo '': silo name '': wants letters (of any script), digits, '.', '_'",),
        files=on_recipe('name = "south"', 'name = ""'),
    ),
    Typed(
        "check recipe.toml", ("recipe.toml: silo.1.name: is missing",), files=on_recipe('name = "south"', "")
    ),
    Typed(
        "check recipe.toml",
        ("silo 'north': is alone", "CoFED wants two silos or more"),
        files={"recipe.toml": RECIPE.rpartition("[[silo]]")[0]},
    ),
    # data
    Typed(
        "check recipe.toml --set silo.north.path=nroth.csv",
        ("recipe.toml: silo 'north': nroth.csv: no such file or folder (did you mean",),
    ),
    Typed(
        "check recipe.toml --set silo.north.path=notes",
        (
            "recipe.toml: silo 'north': notes: is a folder, which has a class in each of its",
            "leave out label",
        ),
    ),
    Typed(
        "check recipe.toml --set silo.north.path=afile",
        (
            "recipe.toml: silo 'north': afile: unsupported file type",
            "wants .csv, .parquet, .npz, .npy or a folder of images",
        ),
    ),
    Typed("check recipe.toml", ("recipe.toml: silo 'north': north.csv: is empty",), files={"north.csv": ""}),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo 'north': north.csv: has columns but no rows",),
        files={"north.csv": "age,pulse,sick\n"},
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo 'north': north.csv: cannot be read as csv in UTF-8 (Error",),
        files={"north.csv": "age,pulse,sick\n40,60,yes\n41,61,no,no\n"},
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo 'north': north.csv: cannot be read as csv in UTF-8 ('utf-8' codec",),
        files={"north.csv": "age,pulse,sick\n40,60,gr\xfcn\n".encode("latin-1")},
    ),
    Typed(
        "check recipe.toml",
        ("silo 'north': all 60 instances are of class 'yes'", "a classifier needs at least two classes"),
        files={"north.csv": table(sick="yes")},
    ),
    Typed(
        "check recipe.toml",
        (
            "recipe.toml: silo 'north': north.csv, column 'sick': 2 of 60 labels are missing,",
            "fill them or drop those rows",
        ),
        files={"north.csv": table(sick=[*["yes", "no"] * 29, None, None])},
    ),
    Typed(
        "check recipe.toml",
        (
            "silo 'north': column 'pulse' holds numbers in its pool and words in its data",
            "bring both to the same type, or leave the column out",
        ),
        files={"north.csv": table(pulse="high")},
    ),
    Typed(
        "check recipe.toml",
        ("silo 'north': its pool has other columns than its data: only its pool has 'sick'; wants the same",),
        files={"north.csv": table(pulse=[None, *[70] * 59]), "pool.csv": table()},
    ),
    Typed(
        "check recipe.toml",
        (
            "silo 'north': its task {no, yes} shares no class with any other silo's {ja, nein}",
            "CoFED can teach it nothing: leave it out or rename its classes",
        ),
        files={"south.csv": table(1, sick=["ja", "nein"] * 30)},
    ),
    Typed(
        "check recipe.toml",
        ("only its data has 'age', 'pulse', only its pool has 'height', 'weight'; wants the same in both",),
        files={"pool.csv": "height,weight\n180,80\n170,70\n"},
    ),
    Typed(
        "check recipe.toml",
        ("silo 'north': its pool has other columns than its data: only its data has 'pulse'",),
        files={"pool.csv": "age\n50\n60\n"},
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: pool.path: pool.csv: has columns but no rows",),
        files={"pool.csv": "age,pulse\n"},
    ),
    Typed(
        "check recipe.toml --set pool.path=poool.csv",
        ("recipe.toml: pool.path: poool.csv: no such file or folder (did you mean 'pool.csv'?)",),
    ),
    Typed(
        "check recipe.toml --set pool.fingerprint=0123456789abcdef",
        (
            "recipe.toml: pool.fingerprint: got '0123456789abcdef'",
            "these instances have '97d356dc8f1b7b02': another pool, another order, other",
        ),
    ),
    Typed(
        "check recipe.toml",
        ("cofed needs a pool", "give one: [pool] in a recipe, pool=… in Python"),
        files=on_recipe('[pool]\npath = "pool.csv"', ""),
    ),
    # learners
    Typed(
        "check recipe.toml --set defaults.learner.use=sklearn.tree.DecisionTreeClasifier",
        ("recipe.toml: silo.north.learner.use: 'sklearn.tree' has no 'DecisionTreeClasifier'",),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.use=sklern.tree.DecisionTreeClassifier",
        (
            "recipe.toml: silo.north.learner.use: cannot import 'sklern.tree' (No module named",
            "is it installed?",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.use=DecisionTreeClassifier",
        (
            "recipe.toml: silo.north.learner.use: there is no network 'DecisionTreeClassifier'",
            "there are mlp, lenet5, cnn1, cnn2, cnn, cofed_cnn, resnet18, text, or an import",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.use=sklearn.tree",
        (
            "recipe.toml: silo.north.learner.use: sklearn.tree is a module",
            "wants a class in it, as sklearn.svm.SVC is",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.use=sklearn.tree.DecisionTreeRegressor",
        (
            "silo 'north', learner: DecisionTreeRegressor is a regressor",
            "wants a classifier, which predicts classes",
        ),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.max_dept=3",
        ("recipe.toml: silo.north.learner: sklearn.tree.DecisionTreeClassifier does not take",),
    ),
    Typed(
        "check recipe.toml --set defaults.learner.max_depth=deep",
        ("silo 'north': DecisionTreeClassifier.fit raised InvalidParameterError (The",),
    ),
    Typed(
        "check recipe.toml --set defaults.learner=tree",
        ("recipe.toml: defaults.learner: got 'tree'", "wants a table { … }"),
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: defaults.learner.use: is missing",),
        files=on_recipe('use = "sklearn.tree.DecisionTreeClassifier", ', ""),
    ),
    Typed(
        "check recipe.toml",
        ("recipe.toml: silo.north.learner: is missing", "give the silo or [defaults] a learner"),
        files=on_recipe('learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = 3 }', ""),
    ),
    Typed(
        "check recipe.toml --set method.use=fedavg",
        (
            "recipe.toml: method.alpha: there is no such key",
            "wants one of average, decay, decay_after, epochs, evaluate_every, fraction, local,",
        ),
    ),
    # simulations
    Typed(
        "check simulation.toml --set simulation.dataset=digts",
        (
            "simulation.toml: simulation.dataset: no dataset 'digts' (did you mean 'digits'?)",
            "there are digits, mnist, fashion_mnist, tinted_fashion, cifar10, cifar100, adult,",
        ),
    ),
    Typed(
        "check simulation.toml --set simulation.split.use=idd",
        (
            "simulation.toml: simulation.split: got 'idd'",
            "wants by_value, dirichlet, iid, normal, shards, subset, superclasses, or an import",
        ),
    ),
    Typed(
        "check simulation.toml --set simulation.split.silos=0",
        ("simulation.toml: simulation.split: silos: got 0", "wants a whole number of at least 1"),
    ),
    Typed(
        "check simulation.toml --set simulation.split.silos=5000",
        ("simulation.toml: simulation.split: 5000 silos want 5000 instances", "the data has 1297"),
    ),
    Typed(
        "check simulation.toml --set simulation.learners=[]",
        ("simulation.toml: simulation.learners: wants at least 1 of them",),
    ),
    Typed(
        """check simulation.toml --set simulation.names=["a","b"]""",
        ("simulation.toml: simulation.names: got 2 names for 3 silos",),
    ),
    # folders of runs
    Typed(
        "run recipe.toml --dir afile",
        ("afile: is a file", "wants a folder for the run, a new one or that of an earlier run"),
    ),
    Typed("run recipe.toml --dir afile/run", ("afile/run: cannot be written (Not a directory)",)),
    Typed("run recipe.toml --dir notes", ("notes: is not empty and not a run", "choose another directory")),
    Typed(
        "run recipe.toml --dir /proc/run",
        ("/proc/run: cannot be written (No such file or directory)",),
    ),
    Typed(
        "run recipe.toml --dir done --set seed=5",
        (
            "done: was begun with seed = 0, now it is 5",
            "choose another folder, such as done-2, or delete this one",
        ),
    ),
    Typed(
        "run recipe.toml --dir done --set method.alpha=0.6",
        (
            "done: was begun with method.alpha = 0.3, now it is 0.6",
            "choose another folder, such as done-2, or delete this one",
        ),
    ),
    Typed(
        "run recipe.toml --dir done --set defaults.learner.max_depth=2",
        (
            "done: silo 'north': is not what it was when the run began:",
            "put it back, or choose another folder, such as done-2, or delete this one",
        ),
    ),
    Typed(
        "run recipe.toml --dir done",
        (
            "done: silo 'south': is not what it was when the run began: training data",
            "put it back, or choose another folder, such as done-2, or delete this one",
        ),
        files={"south.csv": table(7)},
    ),
    Typed(
        "resume nowhere", ("nowhere: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")
    ),
    Typed("resume notes", ("notes: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")),
    Typed("resume afile", ("afile: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")),
    Typed(
        "report nowhere", ("nowhere: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")
    ),
    Typed(
        "report recipe.toml",
        ("recipe.toml: is not a run directory (it has no run.json)", "`cosilo runs` lists runs"),
    ),
    Typed(
        "watch nowhere", ("nowhere: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")
    ),
    Typed("runs nowhere", ("nowhere: no such folder",)),
    Typed("runs north.csv", ("north.csv: is a file; wants a folder with runs in it, or a kit",)),
    Typed("votes notes", ("notes: is not a run directory (it has no run.json)", "`cosilo runs` lists runs")),
    # what comes after a run
    Typed(
        "predict done north new.csv --out ./new.csv",
        ("--out new.csv: is the file with the instances; wants another for the labels",),
    ),
    Typed("predict done north new.csv", ("Missing option '--out'", "see cosilo predict --help")),
    Typed(
        "predict done nroth new.csv --out labels.csv",
        ("done: there is no silo 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    Typed(
        "predict done north nwe.csv --out labels.csv",
        ("nwe.csv: no such file or folder (did you mean 'new.csv'?)",),
    ),
    Typed(
        "predict done north new.csv --out labels.xlsx",
        ("--out labels.xlsx: got the ending '.xlsx'", "wants .csv or .parquet"),
    ),
    Typed(
        "predict done north new.csv --out nowhere/labels.csv",
        ("nowhere/labels.csv: cannot be written (Cannot save file into a non-existent",),
    ),
    Typed(
        "predict done north new.csv --out labels.csv",
        ("new.csv: no column 'pulse'", "is it separated by commas?"),
        files={"new.csv": "age\n50\n"},
    ),
    Typed(
        "predict done north new.csv --out labels.csv",
        (
            "silo 'north', new instances: column 'pulse' holds words in the new instances and",
            "bring both to the same type, or leave the column out",
        ),
        files={"new.csv": "age,pulse\n50,high\n"},
    ),
    Typed(
        "predict done north new.csv --out labels.csv --model best",
        (
            "Invalid value for '--model': 'best' is not one of 'local', 'federated', 'continued'",
            "see cosilo predict --help",
        ),
    ),
    Typed(
        "predict notes north new.csv --out labels.csv",
        ("notes: is neither the directory of a run nor a silo's record of one",),
    ),
    Typed("export done north --to notes", ("notes: is not empty", "choose another folder")),
    Typed("export done north --to afile", ("afile: is a file", "choose another folder")),
    Typed(
        "export done nroth --to model",
        ("done: there is no silo 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    Typed(
        "use done north --model continued",
        ("done/silos/north: was never continued", "cosilo continue RUN SILO --data FILE does it"),
    ),
    Typed(
        "use done nroth --model local",
        ("done: there is no silo 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    Typed("labels done north", ("silo 'north': has no target", "a run labels the points of a target only")),
    Typed(
        "continue done north --data nwe.csv", ("nwe.csv: no such file or folder (did you mean 'new.csv'?)",)
    ),
    Typed("continue done north --data new.csv", ("new.csv: no column 'sick'", "it has 'age', 'pulse'")),
    Typed("add done north.toml", ("done: has a silo 'north' already", "give the new one another name")),
    Typed("add done west.toml", ("west.toml: no such file (did you mean 'north.toml'?)",)),
    Typed(
        "add notes north.toml",
        ("notes: is not a run directory (it has no run.json)", "`cosilo runs` lists runs"),
    ),
    Typed(
        "audit done nroth", ("done: got no silo 'nroth' (did you mean 'north'?)", "wants one of north, south")
    ),
    Typed("audit notes", ("notes: is neither a run directory nor a silo's kit", "`cosilo runs` lists runs")),
    # comparisons and papers
    Typed(
        "compare recipe.toml --methods cofed,locla",
        (
            "methods: there is no method 'locla' (did you mean 'local'?)",
            "there are cofed, dofed_spp, fml, fedadp, fedavg, fedbe, fedfomo, fedmd, fednova,",
        ),
    ),
    Typed("compare recipe.toml", ("Missing option '--methods'", "see cosilo compare --help")),
    Typed(
        "compare recipe.toml --methods cofed,local --seeds 0",
        ("Invalid value for '--seeds': got '0'", "see cosilo compare --help"),
    ),
    Typed(
        "compare recipe.toml --methods cofed,local --dir afile",
        ("afile: is a file", "wants a folder for the comparison"),
    ),
    Typed(
        "compare recipe.toml --methods cofed,local --dir done",
        ("done: is not empty and not a comparison", "choose another directory"),
    ),
    Typed(
        "compare recipe.toml --methods cofed --set compare.cofed.alhpa=0.5",
        (
            "recipe.toml: compare.cofed.alhpa: there is no such key (did you mean 'alpha'?)",
            "wants one of accept, alpha, class_weights, control, margin, own_weight, rounds,",
        ),
    ),
    Typed(
        "reproduce cofed_ciffar",
        (
            "no reproduction 'cofed_ciffar' (did you mean 'cofed_cifar'?)",
            "there are cofed_adult, cofed_alpha, cofed_cifar, cofed_fedavg, cofed_fedmd,",
        ),
    ),
    Typed(
        "reproduce cofed_cifar --size huge",
        (
            "Invalid value for '--size': 'huge' is not one of 'laptop', 'night', 'paper'",
            "see cosilo reproduce --help",
        ),
    ),
    # between organisations
    Typed(
        "check federation.toml",
        ("federation.toml: members: is missing",),
        files={"federation.toml": FEDERATION.replace("members", "membres")},
    ),
    Typed(
        "check federation.toml",
        ("federation.toml: members: north, north", "wants each name once"),
        files={"federation.toml": FEDERATION.replace('"south"', '"north"')},
    ),
    Typed(
        "check federation.toml",
        ("federation.toml: coordinator.port: got 99999", "wants at most 65535"),
        files={"federation.toml": FEDERATION.replace("8102", "99999")},
    ),
    Typed("provision federation.toml", ("kits: is not empty", "choose another folder, or use the kit in it")),
    Typed(
        "provision recipe.toml",
        (
            "recipe.toml: is a recipe, which runs on one machine (cosilo run)",
            "between organisations there is a file with name, members and coordinator, and one",
        ),
    ),
    Typed(
        "join kits/nroth north.toml", ("kits/nroth: is not a silo's kit (it has no startup/fed_client.json)",)
    ),
    Typed(
        "join kits/south north.toml",
        ("north.toml: name: got 'north'", "wants 'south', which kits/south is made for"),
    ),
    Typed(
        "join kits/coordinator north.toml",
        ("kits/coordinator: is not a silo's kit (it has no startup/fed_client.json)",),
    ),
    Typed("join kits/north nroth.toml", ("nroth.toml: no such file (did you mean 'north.toml'?)",)),
    Typed(
        "join kits/north north.toml",
        (
            "north.toml: lable: there is no such key (did you mean 'label'?)",
            "wants one of allow, columns, dataset, label, learner, member, name, path,",
        ),
        files={"north.toml": PARTY.replace("label", "lable")},
    ),
    Typed(
        "coordinator start kits/north",
        ("kits/north: is not a coordinator's kit (it has no startup/fed_server.json)",),
    ),
    Typed(
        "coordinator start nowhere",
        ("nowhere: is not a coordinator's kit (it has no startup/fed_server.json)",),
    ),
    Typed(
        "submit federation.toml --kit nowhere",
        ("nowhere: is not a coordinator's kit (it has no startup/fed_server.json)",),
    ),
    Typed("status nowhere", ("nowhere: is not a coordinator's kit (it has no startup/fed_admin.json)",)),
    Typed("stop notes", ("notes: has no kit in it",)),
    Typed("up federation.toml", ("south.toml: no such file", "wants the file of silo 'south' there")),
    Typed(
        "up federation.toml",
        ("north.toml: name: got 'nord'; wants 'north', which the file is called",),
        files={"north.toml": PARTY.replace('name = "north"', 'name = "nord"')},
    ),
    Typed(
        "approve kits/north run-1",
        (
            "kits/north: was never started on this machine",
            "start it: cosilo coordinator start KIT, at a silo cosilo join KIT SILO.toml",
        ),
    ),
    Typed(
        "approve nowhere",
        (
            "nowhere: was never started on this machine",
            "start it: cosilo coordinator start KIT, at a silo cosilo join KIT SILO.toml",
        ),
    ),
]

X, Y = people(0)[["age", "pulse"]].to_numpy(), people(0)["sick"].to_numpy()


def silo(name: str = "north", **options: Any) -> Silo:
    return Silo(name, X, Y, DecisionTreeClassifier(), **options)


def two() -> list[Silo]:
    return [silo("north"), silo("south")]


PYTHON: list[tuple[str, Callable[[], Any], Sequence[str]]] = [
    ("CoFED(alpha=2)", lambda: CoFED(alpha=2), ("CoFED.alpha: got 2", "wants at most 1")),
    (
        "CoFED(alhpa=0.5)",
        lambda: CoFED(alhpa=0.5),
        (
            "CoFED.alhpa: there is no such parameter (did you mean 'alpha'?)",
            "wants accept, alpha, class_weights, control, margin, own_weight, rounds, rule,",
        ),
    ),
    (
        "CoFED(rule='papr')",
        lambda: CoFED(rule="papr"),
        ("CoFED.rule: got 'papr'", "wants 'shares', 'winner' or 'paper'"),
    ),
    ("FedAvg(rounds=0)", lambda: FedAvg(rounds=0), ("FedAvg.rounds: got 0", "wants at least 1")),
    ("Training(epochs=0)", lambda: Training(epochs=0), ("Training.epochs: got 0", "wants at least 1")),
    (
        "Training(optimizer='adam')",
        lambda: Training(optimizer="adam"),
        (
            "Training.optimizer: there is no such parameter (did you mean 'optimiser'?)",
            "wants augment, balanced, batch, decay, device, epochs, lr, momentum, optimiser,",
        ),
    ),
    ("Training(lr='fast')", lambda: Training(lr="fast"), ("Training.lr: got 'fast'", "wants a number")),
    (
        "Training().but(epochs=0)",
        lambda: Training().but(epochs=0),
        ("Training.epochs: got 0", "wants at least 1"),
    ),
    ("Clock()", lambda: Clock(), ("Clock.up: is missing",)),
    ("Clock(up=3)", lambda: Clock(up=3), ("Clock.up: got 3", "wants a Link")),
    (
        "Clock(speed=0)",
        lambda: Clock(up=Link(rate=1.0), speed=0),
        ("Clock.speed: got 0", "wants more than 0"),
    ),
    ("Link()", lambda: Link(), ("Link: wants rate, or all of bandwidth, gain, power and noise",)),
    ("Link(rate=-1)", lambda: Link(rate=-1), ("Link.rate: got -1", "wants more than 0 or a pair of numbers")),
    (
        "Link(bandwith=3)",
        lambda: Link(bandwith=3),
        (
            "Link.bandwith: there is no such parameter (did you mean 'bandwidth'?)",
            "wants bandwidth, gain, latency, noise, power, rate, shared",
        ),
    ),
    ("Privacy(epsilon=-1)", lambda: Privacy(epsilon=-1), ("Privacy.epsilon: got -1", "wants at least 0.01")),
    ("Privacy()", lambda: Privacy(), ("Privacy.epsilon: is missing",)),
    ("LocalEngine(workers=-1)", lambda: LocalEngine(workers=-1), ("workers = -1", "wants 0 or more")),
    (
        "Silo: lengths",
        lambda: Silo("north", X, Y[:-3], GaussianNB()),
        ("silo 'north', data: 60 instances but 57 labels", "wants one each"),
    ),
    (
        "Silo: no data",
        lambda: Silo("north", X[:0], Y[:0], GaussianNB()),
        ("silo 'north': data is empty", "wants at least two instances of two classes"),
    ),
    (
        "Silo: one class",
        lambda: Silo("north", X, ["yes"] * len(X), GaussianNB()),
        ("silo 'north': all 60 instances are of class 'yes'", "a classifier needs at least two classes"),
    ),
    (
        "Silo: missing label",
        lambda: Silo("north", X, [None, *Y[1:]], GaussianNB()),
        (
            "silo 'north', data: 1 of 60 labels are missing, the first in row 1",
            "fill them or drop those rows",
        ),
    ),
    (
        "Silo: no learner",
        lambda: Silo("north", X, Y, None),
        ("silo 'north', learner: NoneType has no fit and no predict", "wants fit(X, y), predict(X)"),
    ),
    (
        "Silo: a class as learner",
        lambda: Silo("north", X, Y, GaussianNB),
        ("silo 'north', learner: got the class GaussianNB", "wants an object: GaussianNB(…)"),
    ),
    (
        "Silo: a regressor",
        lambda: Silo("north", X, Y, LinearRegression()),
        (
            "silo 'north', learner: LinearRegression is a regressor",
            "wants a classifier, which predicts classes",
        ),
    ),
    ("Silo: test=2", lambda: silo(test=2), ("silo 'north': test = 2", "wants a fraction between 0 and 1")),
    (
        "Silo: test with other columns",
        lambda: silo(test=(X[:, :1], Y)),
        ("silo 'north': test data is numbers of shape (1,)", "wants the same in both"),
    ),
    (
        "Silo: test with another class",
        lambda: silo(test=(X[:2], ["yes", "maybe"])),
        (
            "silo 'north', test data: label 'maybe' is outside the task {no, yes} (1 such",
            "drop them or add the class to the task",
        ),
    ),
    (
        "Silo: shares",
        lambda: silo(shares=["label"]),
        ("silo 'north': shares 'label'", "wants some of labels, logits, weights, similarity, metrics, size,"),
    ),
    (
        "Silo: name",
        lambda: silo("north/west"),
        ("silo name 'north/west': wants letters (of any script), digits, '.', '_' and '-',",),
    ),
    (
        "Silo: name of another type",
        lambda: silo(7),
        ("silo name 7: wants letters (of any script), digits, '.', '_' and '-', the first a",),
    ),
    (
        "Silo: missing values",
        lambda: Silo("north", np.where(X > 70, np.nan, X), Y, GaussianNB()),
        (
            "silo 'north': column 0, column 1 have missing values, which GaussianNB does not take",
            "put an imputer in front of it (a pipeline with SimpleImputer), use a learner that",
        ),
    ),
    (
        "Silo: epsilon for privacy",
        lambda: silo(privacy=8),
        ("silo 'north': privacy: got 8", "wants Privacy(epsilon=…)"),
    ),
    (
        "Silo: target",
        lambda: silo(target=Target(X[:3], ["yes", "no"], X)),
        ("silo 'north', target: 3 instances but 2 labels", "wants one each"),
    ),
    ("Federation: nobody", lambda: Federation([], X), ("a federation needs silos", "got none")),
    (
        "Federation: twice the same name",
        lambda: Federation([silo(), silo()], X),
        ("2 silos are called 'north'", "give each its own name"),
    ),
    (
        "Federation: no silos in it",
        lambda: Federation([X, Y], X),
        ("silos: got ndarray", "wants an object such as Silo(…)"),
    ),
    (
        "Federation: a name as method",
        lambda: Federation(two(), X, "cofde"),
        ("method: got 'cofde'", "wants an object such as CoFED(…)"),
    ),
    (
        "Federation: a class as method",
        lambda: Federation(two(), X, CoFED),
        ("method: got the class CoFED", "wants an object such as CoFED(…)"),
    ),
    (
        "Federation: a pool with other columns",
        lambda: Federation(two(), X[:, :1]),
        ("silo 'north': its pool is numbers of shape (1,)", "wants the same in both"),
    ),
    (
        "Federation: an empty pool",
        lambda: Federation(two(), X[:0]),
        ("the federation's pool: is empty", "wants instances (a split may leave none over)"),
    ),
    (
        "Federation: no pool",
        lambda: Federation(two()).run("run"),
        ("cofed needs a pool", "give one: [pool] in a recipe, pool=… in Python"),
    ),
    (
        "Federation: engine",
        lambda: Federation(two(), X, engine="spark"),
        ("engine 'spark': there is no such engine", "wants local, flare"),
    ),
    (
        "Federation: seed",
        lambda: Federation(two(), X, seed=-1),
        ("seed = -1", "wants a whole number of at least 0"),
    ),
    (
        "Federation: quorum",
        lambda: Federation(two(), X, quorum=3),
        ("quorum = 3", "wants a fraction between 0 and 1"),
    ),
    (
        "Federation: trees by FedAvg",
        lambda: Federation(two(), X, FedAvg()).run("run"),
        (
            "silo 'north': does not share 'weights', which fedavg needs (step 'train', field",
            "it shares ['labels', 'metrics']: add 'weights' there to allow it",
        ),
    ),
    (
        "Federation.run: a file",
        lambda: Federation(two(), X).run("afile"),
        ("afile: is a file", "wants a folder for the run, a new one or that of an earlier run"),
    ),
    (
        "Federation.run: another folder",
        lambda: Federation(two(), X).run("notes"),
        ("notes: is not empty and not a run", "choose another directory"),
    ),
    (
        "Federation.run: another run",
        lambda: Federation(two(), X).run("done"),
        (
            "done: was begun with pool = '97d356dc8f1b7b02', now it is '60858d15e3810a66'",
            "choose another folder, such as done-2, or delete this one",
        ),
    ),
    (
        "Institution: nobody",
        lambda: Institution("hospital", []),
        ("silo 'hospital': an institution needs members", "got none"),
    ),
    (
        "Network: an estimator",
        lambda: Network(GaussianNB()),
        ("got GaussianNB", "wants an nn.Module or (shape, classes) -> one"),
    ),
    (
        "Run: nowhere",
        lambda: Run("nowhere"),
        ("nowhere: is not a run directory (it has no run.json)", "`cosilo runs` lists runs"),
    ),
    (
        "Run.open: nowhere",
        lambda: Run.open("nowhere"),
        ("nowhere: is not a run directory (it has no run.json)", "`cosilo runs` lists runs"),
    ),
    (
        "Run.open(…).model: name",
        lambda: Run.open("done").model("nroth"),
        ("done: there is no silo 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    (
        "Run.open(…).model: which",
        lambda: Run.open("done").model("north", "best"),
        ("model 'best': there is no such model", "wants local, federated, continued"),
    ),
    (
        "Run.open(…).model(…).predict",
        lambda: Run.open("done").model("north").predict(X[:, :1]),
        (
            "silo 'north', new instances: are numbers of shape (1,)",
            "the model was trained on columns age, pulse",
        ),
    ),
    (
        "Run.open(…).scores",
        lambda: Run.open("done").scores("lcoal"),
        ("stage 'lcoal' (did you mean 'local'?)", "wants local, federated"),
    ),
    (
        "Run.open(…).audit",
        lambda: Run.open("done").audit("nroth"),
        ("done: there is no silo 'nroth' (did you mean 'north'?)", "wants north, south"),
    ),
    (
        "Run.open(…).use",
        lambda: Run.open("done").use("north", "best"),
        ("model 'best': there is no such model", "wants local, federated, continued"),
    ),
    (
        "Run.open(…).export",
        lambda: Run.open("done").export("north", "notes"),
        ("notes: is not empty", "choose another folder"),
    ),
    (
        "compare: method",
        lambda: api.compare("recipe.toml", ["cofed", "locla"]),
        (
            "methods: there is no method 'locla' (did you mean 'local'?)",
            "there are cofed, dofed_spp, fml, fedadp, fedavg, fedbe, fedfomo, fedmd, fednova,",
        ),
    ),
    (
        "compare: file",
        lambda: api.compare("recpie.toml", ["cofed"]),
        ("recpie.toml: no such file (did you mean 'recipe.toml'?)",),
    ),
]


def helpful(text: str, says: Sequence[str]) -> None:
    """One line for each problem, with what was given and what is wanted in it."""
    assert text.strip()
    assert "Traceback" not in text
    assert "pydantic" not in text
    assert len(text.strip().splitlines()) <= 2  # one for each silo, or each key
    for part in says:
        assert part in text, text


@pytest.mark.parametrize("mistake", COMMANDS, ids=lambda one: one.command)
def test_a_command(mistake, folder, cosilo):
    for name, text in mistake.files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    code, _, errors = cosilo(*mistake.command.split())
    assert code == 2
    helpful(errors, mistake.says)


@pytest.mark.parametrize(("name", "mistake", "says"), PYTHON, ids=[one[0] for one in PYTHON])
def test_in_python(name, mistake, says, folder):
    with pytest.raises(CosiloError) as error:
        mistake()
    helpful(str(error.value), says)


def test_there_are_many():
    assert len(COMMANDS) + len(PYTHON) >= 200
