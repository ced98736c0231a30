"""What a run says of its votes before anybody trains on them."""

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cosilo import CoFED, Federation, Silo
from cosilo.methods.cofed.alarm import alarms, single_votes


def test_one_vote_decides_where_alpha_times_holders_is_below_one():
    assert single_votes(0.5, {"a": 2, "b": 3}) == []  # one of two is not more than a half
    assert single_votes(0.5, {"a": 1})[0].startswith("at α = 0.5 one vote decides in 1 of 1 classes (a)")
    assert single_votes(0.0, {"a": 9}) == ["at α = 0 one vote decides in 1 of 1 classes (a)"]


def test_nobody_is_named_where_all_disagree():
    assert len(alarms({"a": 0.1, "b": 0.2, "c": 0.05})) == 1
    assert "a" not in alarms({"b": 0.1, "c": 0.2})[0].split("κ")[0].split()
    assert alarms({"a": 0.8, "b": 0.3}) == []


def test_one_voter_has_nobody_to_disagree_with():
    assert alarms({"a": 0.0}) == ["only silo 'a' voted: there is nobody that it could learn from"]


def points(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.array([[0, 0], [4, 0], [0, 4]])[y] + rng.normal(size=(n, 2)), y


def test_a_pool_of_nonsense_is_said_to_be_one_and_harms_nobody(tmp_path, capsys):
    """Silos that know their classes, and a pool of points far from all of them."""
    learners = [GaussianNB(), DecisionTreeClassifier(), DecisionTreeClassifier(max_depth=2), GaussianNB()]
    silos = [Silo(f"s{i}", *points(60, i), one, test=points(200, 50 + i)) for i, one in enumerate(learners)]
    pool = np.random.default_rng(9).normal(0, 300, (200, 2))
    pool = np.random.default_rng(8).permutation(pool.ravel()).reshape(200, 2)
    run = Federation(silos, pool, CoFED()).run(tmp_path / "run")
    vote = run.result["voting"][0]
    assert set(vote["decisions"]) == {"s0", "s1", "s2", "s3"}
    assert all(one["doubtful"] for one in vote["decisions"].values())
    taken = [name for name, one in vote["decisions"].items() if one["taken"]]
    relative = run.relative_accuracy()
    assert all(relative[name] == 1 for name in relative if name not in taken)
    assert (run.folder / "report.html").exists() or run.report().exists()
    page = run.report().read_text()
    assert "own model" in page
    assert "wants proof" in page


def test_a_silo_whose_classes_are_in_another_order_is_named_and_read_that_way(tmp_path, capsys):
    names = np.array(["cat", "cow", "dog"])
    silos = []
    for place in range(4):
        X, y = points(60, place)
        order = names if place < 3 else names[[1, 0, 2]]
        silos.append(Silo(f"s{place}", X, order[y], GaussianNB(), test=0.3))
    run = Federation(silos, points(200, 9)[0], CoFED()).run(tmp_path / "run")
    line = (
        "silo 's3' seems to take its classes for each other, and is read that way: "
        "its cat is the others' cow, its cow is the others' cat; look at its labels"
    )
    vote = run.result["voting"][0]
    assert vote["alarms"][-1] == line
    assert line in capsys.readouterr().err.replace("\n", " ")
    assert vote["weights"] == [1, 1, 1, 1]
    assert vote["kappa"]["s3"] < 0.25
    # What it is taught about cats it holds to be wrong: its own data keeps it from that.
    assert vote["decisions"]["s3"]["taken"] is False
    equal = Federation(silos, points(200, 9)[0], CoFED(weights="equal")).run(tmp_path / "equal")
    assert not any("read that way" in one for one in equal.result["voting"][0]["alarms"])
