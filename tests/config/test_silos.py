"""Silos and pools out of files and datasets, as a recipe says."""

import pytest

from cosilo import data
from cosilo.engines.flare.party_files import read_silo
from cosilo.errors import ConfigError, CosiloError


def test_the_agreed_fingerprint_passes(folder, make):
    agreed = make(folder).pool_fingerprint
    assert make(folder, overrides=[f"pool.fingerprint={agreed}"]).pool_fingerprint == agreed


@pytest.fixture
def labelled(folder):
    rows = [f"{age},cook,{'yes' if age > 40 else 'no'}" for age in range(30, 60)]
    (folder / "pool.csv").write_text("age,job,sick\n" + "\n".join(rows) + "\n")
    return folder


def test_a_column_of_the_pool_is_left_out_or_its_labels(labelled, make):
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


def test_labels_come_along_with_a_part_of_the_pool(labelled, make):
    overrides = ["pool.label=sick", "pool.labelled=true", "pool.size=12"]
    federation = make(labelled, overrides=overrides)
    expected = ["yes" if age > 40 else "no" for age in federation.pool["age"]]
    assert federation.pool_labels.tolist() == expected
    assert len(set(expected)) == 2


def test_a_labelled_pool_wants_to_know_the_column(labelled, make):
    with pytest.raises(ConfigError) as error:
        make(labelled, overrides=["pool.labelled=true"])
    assert str(error.value) == (
        "recipe.toml: pool.label: is missing, and labelled = true wants it; "
        f"say which column of {labelled / 'pool.csv'} holds the labels"
    )


def test_a_silo_may_bring_a_labelled_pool(labelled, make):
    own = "{path='pool.csv', label='sick', labelled=true}"
    federation = make(labelled, overrides=["pool.label=sick", "pool.labelled=true", f"silo.0.pool={own}"])
    assert federation.check() == []
    (line,) = make(labelled, overrides=["pool.label=sick", f"silo.0.pool={own}"]).check()
    assert line.startswith("silo 'north': its pool has fingerprint ")


def test_silos_that_are_datasets_of_their_own_and_smaller_simulations(folder, make):
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
        ('path = "a.csv"\ndataset = "digits"', "recipe.toml: silo.a: wants one of path and dataset"),
        ('path = "a.csv"\nper_class = 3', "recipe.toml: silo.a: wants per_class with a dataset only"),
        ('dataset = "digit"', "recipe.toml: silo.a.dataset: "),
        (
            'dataset = "digits"\nper_class = 5000',
            "recipe.toml: silo.a.per_class: per_class = 5000; class",
        ),
    ],
)
def test_a_silo_with_a_source_too_many(folder, silo, line, make):
    text = f'[[silo]]\nname = "a"\n{silo}\nlearner = {{ use = "sklearn.tree.DecisionTreeClassifier" }}'
    with pytest.raises(CosiloError) as error:
        make(folder, text)
    assert str(error.value).startswith(line)


def test_columns_of_a_pool_may_be_drawn_independently(labelled, make):
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
def test_a_row_of_parts_has_no_label(labelled, overrides, line, make):
    with pytest.raises(ConfigError) as error:
        make(labelled, overrides=overrides)
    assert str(error.value) == line


def test_a_privacy_table_with_the_ledger_beside_the_recipe(folder, make):
    federation = make(
        folder, overrides=["silo.north.privacy={ epsilon = 8, delta = 1e-5, ledger = 'account' }"]
    )
    north, south = federation.silos
    assert north.privacy.epsilon == 8
    assert north.privacy.ledger == folder / "account"
    assert south.privacy is None
    everywhere = make(folder, overrides=["defaults.privacy.epsilon=2"])
    assert [silo.privacy.most for silo in everywhere.silos] == [2, 2]


@pytest.mark.parametrize(
    ("privacy", "line"),
    [
        ("{ epsilon = -1 }", r"silo.north.privacy.epsilon: got -1; wants at least 0.01"),
        ("{ delta = 1e-5 }", r"silo.north.privacy.epsilon: is missing"),
        ("{ epsilom = 8 }", r"silo.north.privacy.epsilom: there is no such key \(did you mean 'epsilon'\?\)"),
        (
            "{ epsilon = 8, voter = 'tree' }",
            r"silo.north.privacy.voter: got 'tree'; wants 'softmax' or 'mlp'",
        ),
        ("{ epsilon = 8, budget = 4 }", r"silo.north.privacy: wants budget of at least epsilon = 8"),
        ("8", r"silo.north.privacy: got 8; wants"),
    ],
)
def test_a_mistake_in_it_is_one_line(folder, make, privacy, line):
    with pytest.raises(ConfigError, match=line):
        make(folder, overrides=[f"silo.north.privacy={privacy}"])


def test_a_silo_that_joins_others_has_one_account_beside_its_file(folder):
    path = folder / "north.toml"
    path.write_text(
        'name = "north"\npath = "north.csv"\nlabel = "sick"\nprivacy = { epsilon = 8 }\n'
        'learner = { use = "sklearn.naive_bayes.GaussianNB" }\n'
    )
    assert read_silo(path).privacy.ledger == folder / "privacy"
