"""Federations over real data: text, images of another script as the pool, columns of words, networks."""

import numpy as np
import pytest

from cosilo import CoFED, Federation, Silo, data
from cosilo.config import build, recipe_file
from cosilo.engines.local.engine import LocalEngine

torch = pytest.importorskip("torch")
from cosilo.learners import Network, Training  # noqa: E402


class Small(torch.nn.Sequential):
    """A small convolutional network."""

    def __init__(self, input_shape, n_classes, filters=8):
        super().__init__(
            torch.nn.Conv2d(input_shape[0], filters, 3, stride=2),
            torch.nn.BatchNorm2d(filters),
            torch.nn.ReLU(),
            torch.nn.Flatten(),
            torch.nn.LazyLinear(n_classes),
        )


def federation(folder, text, *overrides):
    path = folder / "recipe.toml"
    path.write_text(text)
    return build.federation(recipe_file.read(path, overrides), build.Source(str(path), folder))


@pytest.mark.usefixtures("real_data")
def test_text_of_dbpedia_with_different_readers(tmp_path):
    recipe = """
    [method]
    use = "cofed"
    alpha = 0.5
    [simulation]
    dataset = "dbpedia"
    split = { use = "superclasses", silos = 4, classes = [5, 7], per_class = 10 }
    learners = [{ use = "sklearn.naive_bayes.MultinomialNB" }, { use = "sklearn.svm.LinearSVC" }]
    [pool]
    rest = true
    size = 1000
    """
    run = federation(tmp_path, recipe).run(tmp_path / "run")
    local, federated = run.scores("local"), run.scores("federated")
    assert len(federated) == 4
    assert min(local.values()) > 0.5
    assert np.mean(list(federated.values())) > np.mean(list(local.values()))


@pytest.mark.usefixtures("real_data")
def test_adult_with_a_tree_an_svm_a_line_and_a_network(tmp_path):
    recipe = """
    [method]
    use = "cofed"
    alpha = 0.5
    [simulation]
    dataset = "adult"
    split = { use = "iid", silos = 8, size = 200 }
    learners = [
        { use = "sklearn.tree.DecisionTreeClassifier" },
        { use = "sklearn.svm.SVC" },
        { use = "sklearn.linear_model.LogisticRegression", max_iter = 500 },
        { use = "sklearn.neural_network.MLPClassifier", max_iter = 100 },
    ]
    [pool]
    rest = true
    size = 2000
    """
    run = federation(tmp_path, recipe).run(tmp_path / "run")
    relative = run.relative_accuracy()
    assert len(relative) == 8
    assert 1.0 < np.mean(list(relative.values())) < 1.3


@pytest.mark.usefixtures("real_data")
def test_writers_learn_from_each_other_over_an_unrelated_script(tmp_path):
    digits, judged = data.load("femnist_digits"), data.load("femnist_digits", "test")
    pool = data.load("kannada_mnist").X[:2000]
    writers = data.by_value(digits.groups["client"], digits.y)
    training = Training(epochs=8, lr=0.005)
    silos = []
    for name, part in zip(writers.names[:4], writers.parts[:4], strict=True):
        mine = judged.groups["client"] == digits.groups["client"][part[0]]
        test = (judged.X[mine], judged.y[mine])
        silos.append(
            Silo(f"writer-{name}", digits.X[part], digits.y[part], Network(Small, training), test=test)
        )
    results = []
    for workers in (0, 2):
        run = Federation(silos, pool, CoFED(alpha=0.3), engine=LocalEngine(workers)).run(
            tmp_path / str(workers)
        )
        results.append((run.scores("local"), run.scores("federated"), run.result["voting"]))
    assert results[0] == results[1]  # networks too are the same, bit for bit, with any number of workers
    assert min(results[0][0].values()) > 0.5
