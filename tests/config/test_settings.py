"""Every mistake in a recipe is one line that names the file, the key, what it got and what it wants."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import data
from cosilo.config import build, settings
from cosilo.errors import ConfigError, CosiloError

GOOD = """
seed = 3
[method]
use = "cofed"
alpha = 0.4
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
learner = { use = "sklearn.naive_bayes.GaussianNB" }
test = 0.5
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("north", "south"):
        rows = [
            f"{rng.integers(20, 90)},{rng.choice(['cook', 'nurse'])},{'yes' if i % 3 else 'no'}"
            for i in range(40)
        ]
        (tmp_path / f"{name}.csv").write_text("age,job,sick\n" + "\n".join(rows) + "\n")
    (tmp_path / "pool.csv").write_text("age,job\n" + "\n".join(f"{age},cook" for age in range(30, 60)) + "\n")
    return tmp_path


def make(folder, text=GOOD, overrides=()):
    path = folder / "recipe.toml"
    path.write_text(text)
    return build.federation(settings.read(path, overrides), build.Source("recipe.toml", folder))


def test_a_recipe_becomes_a_federation(folder):
    federation = make(folder)
    assert [silo.name for silo in federation.silos] == ["north", "south"]
    assert federation.method.alpha == 0.4
    assert federation.seed == 3
    encoder, tree = federation.silos[0].learner.model  # columns of words are encoded in front of the tree
    assert tree.max_depth == 3
    assert encoder.transformers[1][2] == ["job"]
    assert federation.check() == []
    run = federation.run(folder / "run")
    assert sorted(run.relative_accuracy()) == ["north", "south"]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("method.alpha=1.5", "recipe.toml: method.alpha: got 1.5; wants less than or equal to 1"),
        ("method.alfa=1", "recipe.toml: method.alfa: there is no such key (did you mean 'alpha'?)"),
        ("method.use=cofd", "recipe.toml: method.use: there is no method 'cofd' (did you mean 'cofed'?)"),
        ("method.use=os.path.join", "recipe.toml: method.use: os.path.join is not a method"),
        ("seed=minus", "recipe.toml: seed: got 'minus'; wants a valid integer"),
        ("sede=1", "recipe.toml: sede: there is no such key (did you mean 'seed'?)"),
        ("silo.north.labl=x", "recipe.toml: silo.0.labl: there is no such key (did you mean 'label'?)"),
        ("silo.east.label=x", "--set silo.east.label=x: there is no 'east'"),
        ("silo.0.test=7", "recipe.toml: silo.0.test: got 7; wants less than 1 or False"),
        ("silo.0.path=nrth.csv", "nrth.csv"),
        ("silo.0.label=age2", "age2"),
        (
            "silo.0.learner.use=sklearn.tree.DecisionTree",
            "recipe.toml: silo.0.learner.use: 'sklearn.tree' has no",
        ),
        ("silo.0.learner.use=nowhere.Thing", "recipe.toml: silo.0.learner.use: cannot import 'nowhere'"),
        ("silo.0.learner.use=Tree", "recipe.toml: silo.0.learner.use: there is no network 'Tree'"),
        (
            "defaults.learner.deep=3",
            "recipe.toml: silo.0.learner: sklearn.tree.DecisionTreeClassifier does not take",
        ),
        ('silo.0.shares=["label"]', "silo 'north': shares 'label'; wants some of labels"),
        ('silo.0.task=["yes","maybe"]', "silo 'north', data: label 'no' is outside the task"),
        ("pool.rest=true", "recipe.toml: pool: wants one of path, dataset or rest = true"),
        ("pool.path=nothing.csv", "nothing.csv"),
        ("pool.size=1000", "recipe.toml: pool.size: got 1000; there are 30 instances"),
        ("pool.fingerprint=beef", "recipe.toml: pool.fingerprint: got 'beef'; these instances have '"),
        ("nonsense", "--set nonsense: wants key=value"),
        ("seed.inner=1", "--set seed.inner=1: 'seed' is 3 and has nothing inside"),
        ("quorum=3", "recipe.toml: quorum: got 3; wants less than or equal to 1"),
    ],
)
def test_a_mistake_is_one_line(folder, override, line):
    with pytest.raises(CosiloError) as error:
        make(folder, overrides=[override])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_several_mistakes_are_several_lines(folder):
    with pytest.raises(ConfigError) as error:
        make(folder, overrides=["seed=-1", "workers=no", "silo.0.test=2"])
    lines = str(error.value).splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("recipe.toml: ") for line in lines)


def test_every_silo_with_a_problem_is_named(folder):
    with pytest.raises(CosiloError) as error:
        make(folder, overrides=["silo.0.path=x.csv", "silo.1.label=nothing"])
    assert ["'north'" in line or "'south'" in line for line in str(error.value).splitlines()] == [True, True]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("seed = ", "is not TOML"),
        ("", "either [[silo]] tables or one [simulation]"),
        ("[[silo]]\nname = 'a'", "recipe.toml: silo.0: wants one of path and dataset"),
        ("silo = 3", "recipe.toml: silo: got 3; wants a valid list"),
        ("[simulation]\ndataset = 'digits'", "recipe.toml: simulation.split: is missing"),
    ],
)
def test_an_incomplete_recipe(folder, text, line):
    with pytest.raises(ConfigError) as error:
        make(folder, text)
    assert line in str(error.value)


def test_a_learner_may_lie_beside_the_recipe(folder):
    (folder / "beside_the_recipe.py").write_text(
        "import numpy as np\n"
        "class First:\n"
        "    def fit(self, X, y): pass\n"
        "    def predict(self, X): return np.zeros(len(X), int)\n"
    )
    overrides = [
        "silo.0.learner={use='beside_the_recipe.First'}",
        "silo.1.learner={use='beside_the_recipe.First'}",
    ]
    assert sorted(make(folder, overrides=overrides).run(folder / "run").relative_accuracy()) == [
        "north",
        "south",
    ]


def test_the_agreed_fingerprint_passes(folder):
    agreed = make(folder).pool_fingerprint
    assert make(folder, overrides=[f"pool.fingerprint={agreed}"]).pool_fingerprint == agreed


def test_no_such_file(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        settings.read(tmp_path / "no.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        settings.read(tmp_path)


SIMULATION = """
[method]
use = "local"
[simulation]
dataset = "digits"
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }, { use = "sklearn.tree.DecisionTreeClassifier" }]
"""


@pytest.mark.parametrize(
    "split",
    [
        '{ use = "superclasses", silos = 4, classes = [3, 4], per_class = 10 }',
        '{ use = "dirichlet", silos = 4, concentration = 1.0 }',
        '{ use = "shards", silos = 4, per_silo = 2 }',
        '{ use = "iid", silos = 4, size = 50 }',
    ],
)
def test_simulations_are_cut_from_a_dataset_without_overlap(folder, split):
    federation = make(folder, SIMULATION + f"split = {split}")
    assert len(federation.silos) == 4
    assert [silo.learner.name for silo in federation.silos] == ["GaussianNB", "DecisionTreeClassifier"] * 2
    for silo in federation.silos:
        X, y = silo.data.test
        assert len(X) == len(y) > 0
        assert set(np.unique(y)) <= set(range(len(silo.task)))


def _rows(silo) -> list[bytes]:
    return [row.tobytes() for row in np.asarray(silo.data.test[0], dtype=np.float64)]


def test_a_test_set_is_dealt_to_silos_with_the_same_classes(folder):
    """Digits has 500 test instances."""
    common = f"""{SIMULATION}tasks = "all"
split = {{ use = "dirichlet", silos = 5, concentration = 0.1, size = 20 }}
"""
    whole = _rows(make(folder, common).silos[0])
    assert len(set(whole)) == 500

    dealt = [_rows(silo) for silo in make(folder, common + "test = 100").silos]
    assert sorted(row for rows in dealt for row in rows) == sorted(whole)  # each once
    assert dealt != [whole[place : place + 100] for place in range(0, 500, 100)]
    assert dealt == [_rows(silo) for silo in make(folder, common + "test = 100").silos]
    assert dealt != [_rows(silo) for silo in make(folder, "seed = 1\n" + common + "test = 100").silos]

    # 200 + 200 + 100, and then from the start; nobody has one twice.
    dealt = [_rows(silo) for silo in make(folder, common + "test = 200").silos]
    assert [len(set(rows)) for rows in dealt] == [200] * 5
    assert len({row for rows in dealt[:3] for row in rows}) == 500
    assert len({row for rows in dealt[:2] for row in rows}) == 400


def test_silos_with_other_classes_are_dealt_their_own(folder):
    silos = make(folder, SIMULATION + 'split = { use = "shards", silos = 5, per_silo = 2 }\ntest = 30').silos
    assert [len(silo.data.test[1]) for silo in silos] == [30] * 5
    for silo in silos:
        assert set(silo.data.test[1].tolist()) == set(range(len(silo.task)))  # 30 of about 100, of all


def test_silos_may_tell_all_classes_apart(folder):
    split = 'split = { use = "shards", silos = 5, per_silo = 2 }\n'
    own, whole = (make(folder, f'{SIMULATION}{split}tasks = "{tasks}"').silos for tasks in ("own", "all"))
    assert max(len(silo.task) for silo in own) < 10
    assert [silo.task.classes for silo in whole] == [tuple("0123456789")] * 5
    assert [len(silo.data.test[1]) for silo in whole] == [500] * 5


def test_a_misspelt_split(folder):
    with pytest.raises(ConfigError, match=r"recipe\.toml: simulation\.split: .*superclasses"):
        make(folder, SIMULATION + 'split = { use = "superclass", silos = 4 }')
    with pytest.raises(
        ConfigError, match=r"simulation\.split\.silo: there is no such key \(did you mean 'silos'"
    ):
        make(folder, SIMULATION + 'split = { use = "iid", silo = 4, silos = 3 }')


@pytest.mark.parametrize(
    ("override", "line"),
    [
        (
            "simulation.dataset=digit",
            "recipe.toml: simulation.dataset: no dataset 'digit' (did you mean 'digits'?)",
        ),
        ("simulation.labels=coarse", "recipe.toml: simulation.labels: dataset 'digits': no group 'coarse'"),
        ("simulation.split.silos=5000", "recipe.toml: simulation.split: "),
        ("simulation.names=['a']", "recipe.toml: simulation.names: got 1 names for 4 silos"),
        ("simulation.test=0", "recipe.toml: simulation.test: got 0; wants greater than or equal to 1"),
        (
            "simulation.test=501",
            "recipe.toml: simulation.test: got 501; there are 500 test instances of the classes of silo "
            "'silo-1'",
        ),
        ("simulation.tasks=some", "recipe.toml: simulation.tasks: got 'some'; wants 'own' or 'all'"),
        (
            "simulation.split={use='by_value',column='x'}",
            "recipe.toml: simulation.split: column: digits has no 'x'",
        ),
    ],
)
def test_a_mistake_in_a_simulation_is_one_line(folder, override, line):
    with pytest.raises(ConfigError) as error:
        make(folder, SIMULATION + 'split = { use = "iid", silos = 4 }', [override])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_the_rest_is_what_no_silo_got(folder):
    text = (
        SIMULATION.replace("local", "cofed")
        + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\nrest = true\n'
    )
    federation = make(folder, text)
    assert len(federation.pool) == 1297 - 200
    got = {row.tobytes() for silo in federation.silos for row in silo.data.all[0]}
    # A few digits of the dataset are equal to the pixel, so the sets may touch, but no more than that.
    assert len([row for row in federation.pool if row.tobytes() in got]) <= 2


# ---------------------------------------------------------------------- a pool with labels


@pytest.fixture
def labelled(folder):
    rows = [f"{age},cook,{'yes' if age > 40 else 'no'}" for age in range(30, 60)]
    (folder / "pool.csv").write_text("age,job,sick\n" + "\n".join(rows) + "\n")
    return folder


def test_a_column_of_the_pool_is_left_out_or_its_labels(labelled):
    without = make(labelled, overrides=["pool.label=sick"])
    assert without.pool_labels is None
    with_labels = make(labelled, overrides=["pool.label=sick", "pool.labelled=true"])
    assert with_labels.pool_labels.tolist() == ["no"] * 11 + ["yes"] * 19
    assert list(with_labels.pool.columns) == ["age", "job"]
    assert with_labels.pool_fingerprint != without.pool_fingerprint
    agreed = ["pool.label=sick", "pool.labelled=true", f"pool.fingerprint={with_labels.pool_fingerprint}"]
    assert make(labelled, overrides=agreed).pool_fingerprint == with_labels.pool_fingerprint
    with pytest.raises(ConfigError, match=r"pool\.fingerprint: got .* or other labels"):
        make(labelled, overrides=["pool.label=sick", agreed[2]])


def test_labels_come_along_with_a_part_of_the_pool(labelled):
    overrides = ["pool.label=sick", "pool.labelled=true", "pool.size=12"]
    federation = make(labelled, overrides=overrides)
    expected = ["yes" if age > 40 else "no" for age in federation.pool["age"]]
    assert federation.pool_labels.tolist() == expected
    assert len(set(expected)) == 2


def test_a_labelled_pool_wants_to_know_the_column(labelled):
    with pytest.raises(ConfigError) as error:
        make(labelled, overrides=["pool.labelled=true"])
    assert str(error.value) == (
        "recipe.toml: pool.label: is missing, and labelled = true wants it; "
        f"say which column of {labelled / 'pool.csv'} holds the labels"
    )


def test_a_silo_may_bring_a_labelled_pool(labelled):
    own = "{path='pool.csv', label='sick', labelled=true}"
    federation = make(labelled, overrides=["pool.label=sick", "pool.labelled=true", f"silo.0.pool={own}"])
    assert federation.check() == []
    (line,) = make(labelled, overrides=["pool.label=sick", f"silo.0.pool={own}"]).check()
    assert line.startswith("silo 'north': its pool has fingerprint ")


def test_labels_of_a_dataset_and_of_what_a_simulation_left_over(folder):
    text = SIMULATION.replace("local", "cofed") + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\n'
    X, y = load_digits(return_X_y=True)
    known = {row.tobytes(): str(label) for row, label in zip(X, y, strict=True)}
    for pool in ("rest = true\nsize = 100\n", 'dataset = "digits"\nsplit = "test"\n'):
        federation = make(folder, f"{text}{pool}labelled = true\n")
        assert len(federation.pool) >= 100
        assert [known[row.tobytes()] for row in federation.pool] == federation.pool_labels.tolist()
        assert make(folder, text + pool).pool_labels is None


def test_silos_that_are_datasets_of_their_own_and_smaller_simulations(folder):
    """The digits by name: a balanced part to train on, their own test split to be judged on."""
    silos = make(
        folder,
        """
        [method]
        use = "local"
        [[silo]]
        name = "a"
        dataset = "digits"
        per_class = 12
        learner = { use = "sklearn.tree.DecisionTreeClassifier" }
        """,
    ).silos
    assert silos[0].size == 120
    whole = data.load("digits", "test")
    assert len(silos[0].data.test[1]) == len(whole)
    simulated = make(
        folder,
        """
        [method]
        use = "local"
        [simulation]
        dataset = "digits"
        per_class = 20
        split = { use = "shards", silos = 5, per_silo = 2 }
        learners = [{ use = "sklearn.tree.DecisionTreeClassifier" }]
        """,
    ).silos
    assert [silo.size for silo in simulated] == [40] * 5
    assert sorted(name for silo in simulated for name in silo.task.classes) == list("0123456789")


@pytest.mark.parametrize(
    ("silo", "line"),
    [
        ('path = "a.csv"\ndataset = "digits"', "recipe.toml: silo.0: wants one of path and dataset"),
        ('path = "a.csv"\nper_class = 3', "recipe.toml: silo.0: wants per_class with a dataset only"),
        ('dataset = "digit"', "recipe.toml: silo.0.dataset: "),
        ('dataset = "digits"\nper_class = 5000', "recipe.toml: silo.0.per_class: per_class = 5000; class"),
    ],
)
def test_a_silo_with_a_source_too_many(folder, silo, line):
    text = f'[[silo]]\nname = "a"\n{silo}\nlearner = {{ use = "sklearn.tree.DecisionTreeClassifier" }}'
    with pytest.raises(CosiloError) as error:
        make(folder, text)
    assert str(error.value).startswith(line)


# ---------------------------------------------------------------------- targets

AIMING = """
[method]
use = "local"
[[silo]]
name = "north"
path = "train.csv"
label = "animal"
learner = { use = "sklearn.naive_bayes.GaussianNB" }
"""


@pytest.fixture
def animals(tmp_path):
    """Cats and dogs to train on; a target of wolves and lynxes, as two files and as one."""

    def write(name, rows, head="size,weight,animal,real"):
        (tmp_path / name).write_text("\n".join([head, *rows]) + "\n")

    write("train.csv", [f"{i},{i % 5},{'cat' if i % 2 else 'dog'}" for i in range(20)], "size,weight,animal")
    known = [f"{50 + i},{i},{'wolf' if i % 2 else 'lynx'},x" for i in range(6)]
    write("target.csv", known)
    others = [f"{60 + i},{i},,{'wolf' if i % 2 else 'lynx'}" for i in range(8)]
    write("unlabelled.csv", others)
    write("one.csv", [row for pair in zip(known, others[:6], strict=True) for row in pair])
    write("judged.csv", ["50,1,lynx", "51,2,wolf"], "size,weight,animal")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "points"),
    [
        ('{ path = "target.csv", unlabelled = "unlabelled.csv", truth = "real" }', 8),
        ('{ path = "one.csv", truth = "real" }', 6),
    ],
)
def test_a_target_from_two_files_or_one(animals, target, points):
    text = AIMING + f'target = {target}\ntest_path = "judged.csv"'
    (silo,) = make(animals, text).silos
    assert silo.task.classes == ("cat", "dog", "lynx", "wolf")
    assert silo.wanted.classes == ("lynx", "wolf")
    X, y = silo.data.target.labelled
    assert X["size"].tolist() == [50, 51, 52, 53, 54, 55]
    assert silo.task.decode(y).tolist() == ["lynx", "wolf"] * 3
    assert silo.data.target.unlabelled["size"].tolist() == list(range(60, 60 + points))
    assert silo.task.decode(silo.data.target.truth).tolist() == (["lynx", "wolf"] * 4)[:points]
    assert len(silo.data.test[1]) == 2
    (silo,) = make(animals, text.replace(', truth = "real"', "")).silos
    assert silo.data.target.truth is None
    assert len(silo.data.target.unlabelled) == points


def test_without_test_data_a_silo_with_a_target_is_not_judged(animals):
    text = AIMING + 'target = { path = "one.csv" }'
    (silo,) = make(animals, text).silos
    assert not silo.data.has_test
    (silo,) = make(animals, text, ["silo.0.test=false"]).silos
    assert not silo.data.has_test


def test_targets_of_text_and_arrays(tmp_path):
    (tmp_path / "train.csv").write_text("text,kind\nred apple,fruit\ngreen pear,fruit\nfast car,vehicle\n")
    (tmp_path / "target.csv").write_text("text,kind\nold oak,tree\nwild rose,flower\ntall pine,\n")
    text = """
        [[silo]]
        name = "a"
        path = "train.csv"
        text = "text"
        label = "kind"
        learner = { use = "sklearn.naive_bayes.MultinomialNB" }
        target = { path = "target.csv" }
        """
    (silo,) = make(tmp_path, '[method]\nuse = "local"\n' + text).silos
    assert silo.data.target.unlabelled.tolist() == ["tall pine"]
    x, y = np.eye(6), np.array(["a", "b"] * 3)
    np.savez(tmp_path / "train.npz", x=x, y=y)
    np.savez(tmp_path / "target.npz", x=x, y=np.array(["c", "d", "", "", "c", "d"]), real=np.array(["c"] * 6))
    text = """
        [[silo]]
        name = "a"
        path = "train.npz"
        learner = { use = "sklearn.naive_bayes.GaussianNB" }
        target = { path = "target.npz", truth = "real" }
        """
    (silo,) = make(tmp_path, '[method]\nuse = "local"\n' + text).silos
    assert np.array_equal(silo.data.target.unlabelled, x[2:4])
    assert silo.task.decode(silo.data.target.truth).tolist() == ["c", "c"]


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ('{ pth = "one.csv" }', "recipe.toml: silo.0.target.path: is missing"),
        ('{ path = "none.csv" }', "recipe.toml: silo.0.target.path: "),
        (
            '{ path = "target.csv", unlabeled = "unlabelled.csv" }',
            "recipe.toml: silo.0.target.unlabeled: there is no such key (did you mean 'unlabelled'?)",
        ),
        ('{ path = "target.csv", unlabelled = "none.csv" }', "recipe.toml: silo.0.target.unlabelled: "),
        (
            '{ path = "target.csv", unlabelled = "unlabelled.csv", truth = "reel" }',
            "recipe.toml: silo.0.target.truth: ",
        ),
        ('{ path = "unlabelled.csv" }', "silo 'north': no labelled target point; label some"),
        (
            '{ path = "unlabelled.csv", unlabelled = "unlabelled.csv" }',
            "recipe.toml: silo.0.target.path: ",  # 8 of 8 labels are missing
        ),
        (
            '{ path = "one.csv", truth = "animal" }',
            "recipe.toml: silo.0.target.truth: row 2 of one.csv has neither a label nor a truth",
        ),
        ('{ path = "target.csv" }\ntest = 0.3', "silo 'north': test = 0.3, but it has a target"),
        (
            '{ path = "target.csv" }\ntest_path = "train.csv"',
            "silo 'north', test data: label 'dog' is outside the target classes {lynx, wolf}",
        ),
    ],
)
def test_a_mistake_in_a_target_is_one_line(animals, target, line):
    with pytest.raises(CosiloError) as error:
        make(animals, AIMING + f"target = {target}")
    lines = str(error.value).splitlines()
    assert lines[0].startswith(line)
    assert len(lines) == 1 + ("pth" in target)


def test_a_dataset_by_name_has_no_target_file(animals):
    text = AIMING.replace('path = "train.csv"\nlabel = "animal"', 'dataset = "digits"')
    with pytest.raises(ConfigError, match=r"recipe\.toml: silo\.0: wants target with a path only"):
        make(animals, text + 'target = { path = "target.csv" }')


@pytest.mark.parametrize(
    "split",
    [
        '{ use = "subset", silos = 4, clusters = 4, per_class = 30, labelled = 5, unlabelled = 20 }',
        '{ use = "normal", silos = 4, classes = [2, 4], per_class = 30, labelled = 5, unlabelled = 20 }',
    ],
)
def test_simulated_targets(folder, split):
    federation = make(folder, f"{SIMULATION}split = {split}\n[pool]\nrest = true\n")
    X, y = load_digits(return_X_y=True)
    known = {row.tobytes(): str(label) for row, label in zip(X, y, strict=True)}
    taken = set()
    for silo in federation.silos:
        target = silo.data.target
        assert set(silo.task.decode(silo.data.test[1])) == set(silo.wanted.classes)
        assert len(silo.data.own[1]) == 30 * len(np.unique(silo.data.own[1]))
        assert len(target.labelled[1]) == 5 * len(silo.wanted)
        assert len(target.truth) == 20 * len(silo.wanted)
        for part, codes in (silo.data.own, target.labelled, (target.unlabelled, target.truth)):
            assert [known[row.tobytes()] for row in part] == silo.task.decode(codes).tolist()
            taken |= {row.tobytes() for row in part}
    assert len([row for row in federation.pool if row.tobytes() in taken]) <= 2
    again = make(folder, f"{SIMULATION}split = {split}").silos
    assert [s.data.fingerprint() for s in again] == [s.data.fingerprint() for s in federation.silos]
    hidden = make(folder, f"{SIMULATION}hidden_targets = true\nsplit = {split}").silos
    assert all(len(s.data.train[1]) == len(s.data.own[1]) and s.among == s.task for s in hidden)


@pytest.mark.parametrize(
    ("split", "line"),
    [
        ('{ use = "subset", silos = 4 }', "recipe.toml: simulation.split.clusters: is missing"),
        (
            '{ use = "subset", silos = 4, clusters = 3 }',
            "recipe.toml: simulation.split: class 0 has 122 instances, a silo wants 500; lower per_class",
        ),
        (
            '{ use = "normal", silos = 4, clas = [2, 3] }',
            "recipe.toml: simulation.split.clas: there is no such key (did you mean 'classes'?)",
        ),
        (
            '{ use = "normal", silos = 4 }\ntasks = "all"',
            'recipe.toml: simulation: wants tasks = "own" with the split normal, which sets what is wanted',
        ),
        (
            '{ use = "iid", silos = 4 }\nhidden_targets = true',
            "recipe.toml: simulation: wants a split with targets, subset or normal, to hide them; got iid",
        ),
    ],
)
def test_a_mistake_in_a_split_with_targets_is_one_line(folder, split, line):
    with pytest.raises(ConfigError) as error:
        make(folder, f"{SIMULATION}split = {split}")
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_columns_of_a_pool_may_be_drawn_independently(labelled):
    rows = "\n".join(f"{age},{'cook' if age > 44 else 'nurse'}" for age in range(30, 60))
    (labelled / "pool.csv").write_text(f"age,job\n{rows}\n")
    drawn = make(labelled, overrides=["pool.independent=true", "pool.size=400"]).pool
    assert len(drawn) == 400
    assert set(drawn["age"]) <= set(range(30, 60))
    young = drawn[drawn["age"] <= 44]  # in the file no young one is a cook
    assert 0.35 < (young["job"] == "cook").mean() < 0.65
    again = make(labelled, overrides=["pool.independent=true", "pool.size=400"]).pool
    assert again.equals(drawn)
    assert not make(labelled, overrides=["seed=9", "pool.independent=true", "pool.size=400"]).pool.equals(
        drawn
    )


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (
            ["pool.independent=true", "pool.labelled=true", "pool.label=sick"],
            "recipe.toml: pool: wants labelled = false with independent = true: a row of parts has no label",
        ),
    ],
)
def test_a_row_of_parts_has_no_label(labelled, overrides, line):
    with pytest.raises(ConfigError) as error:
        make(labelled, overrides=overrides)
    assert str(error.value) == line


def test_images_have_no_columns_to_draw(folder):
    text = SIMULATION.replace("local", "cofed") + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\n'
    with pytest.raises(ConfigError, match=r"pool\.independent: wants a pool of columns"):
        make(folder, text + "rest = true\nindependent = true\n")
