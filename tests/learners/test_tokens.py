"""Own torch text models: a tokeniser, a vocabulary, and modules that take whole numbers."""

import numpy as np
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from cosilo import CoFED, Federation, Silo
from cosilo.cli.main import app
from cosilo.data import load
from cosilo.errors import LearnerError
from cosilo.learners import Network, Training
from cosilo.learners.tokens import LENGTH, token_ids

TEXTS = ["the cat sat", "a dog ran and ran", "the dog and the cat"] * 10
Y = np.array([0, 1, 0] * 10)
WORDS = ["cat", "dog", "sat", "ran", "the", "a", "and"]


class Reader(nn.Module):
    """Takes int64 ids, as nn.Embedding wants them."""

    def __init__(self, input_shape, n_classes, size=8):
        super().__init__()
        self.embedding = nn.Embedding(size, 6, padding_idx=0)
        self.out = nn.Linear(6, n_classes)

    def forward(self, x):
        assert x.dtype == torch.long
        return self.out(self.embedding(x).sum(1))


def letters(texts):
    """A tokeniser of somebody who likes letters: as many ids as a text has letters."""
    return [[1 + ord(letter) % 7 for letter in text if letter.isalpha()] for text in texts]


def test_words_and_mappings():
    ids = token_ids(["The cat; sat!", "", "unknown words"], WORDS, "net")
    assert ids.shape == (3, LENGTH)
    assert ids[0, :4].tolist() == [5, 1, 3, 0]
    assert not ids[1:].any()
    assert token_ids(["cat cat"], {"cat": 40}, "net")[0, :3].tolist() == [40, 40, 0]


def test_a_tokeniser_of_ones_own():
    assert token_ids(["ab", "abc"], letters, "net").shape == (2, LENGTH)
    assert token_ids(["x" * 300], lambda texts: [[1] * 300, [2]][:1], "net").shape == (1, 300)
    square = token_ids(["a", "b"], lambda texts: torch.tensor([[1, 2], [3, 4]]), "net")
    assert square.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([[0.5], [0.5]]), "returned float64 of shape"),
        (np.array([1, 2]), r"returned int64 of shape \(2,\)"),
        ([[-1], [2]], "wants one row of ids for each text, none below 0"),
        ([[2**40], [2]], "ids above"),
    ],
)
def test_what_is_no_row_of_ids_is_named(rows, words):
    with pytest.raises(LearnerError, match=words):
        token_ids(["a", "b"], lambda texts: rows, "net")


def test_an_error_inside_a_tokeniser_says_its_kind_only():
    def broken(texts):
        raise ValueError(f"cannot read {texts[0]}")

    with pytest.raises(LearnerError, match=r"^net\.tokens raised ValueError$"):
        token_ids(["secret"], broken, "net")


@pytest.mark.parametrize("tokens", [WORDS, dict(zip(WORDS, range(1, 8), strict=True)), letters, 8])
def test_networks_read_texts_and_come_back(tokens, tmp_path):
    texts = np.array(TEXTS, dtype=object)
    net = Network(Reader, Training(lr=0.1, epochs=20), tokens=tokens)
    net.fit(texts, Y, n_classes=2, seed=1)
    assert (net.predict(texts) == Y).mean() > 0.9
    net.save(tmp_path)
    other = Network(Reader, tokens=tokens)
    other.load(tmp_path)
    assert np.array_equal(other.predict_proba(texts), net.predict_proba(texts))
    with pytest.raises(LearnerError, match="wants texts"):
        net.predict(np.zeros((2, 3)))


MINE = """
import torch
from torch import nn

def tokenise(texts):
    return [[1 + hash(letter) % 1 + ord(letter) % 60 for letter in text[:40]] for text in texts]

class Letters(nn.Module):
    def __init__(self, input_shape, n_classes, dim=8):
        super().__init__()
        self.embedding = nn.Embedding(62, dim, padding_idx=0)
        self.out = nn.Linear(dim, n_classes)

    def forward(self, x):
        return self.out(self.embedding(x).mean(1))
"""
RECIPE = """
[pool]
path = "pool.csv"
text = "text"

[defaults]
label = "label"
text = "text"
learner = { use = "own_reader.Letters", dim = 4, tokens = "own_reader.tokenise", training = { epochs = 2 } }

[[silo]]
name = "a"
path = "a.csv"

[[silo]]
name = "b"
path = "b.csv"
"""


def test_a_recipe_names_module_and_tokeniser(tmp_path, real_data):
    import pandas as pd

    found = load("dbpedia", "test")
    frame = pd.DataFrame({"text": found.X[::350], "label": np.array(found.classes)[found.y[::350]]})
    for place, name in enumerate(["a", "b", "pool"]):
        part = frame.iloc[place::3]
        (part if name != "pool" else part[["text"]]).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "own_reader.py").write_text(MINE)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    ran = CliRunner().invoke(app, ["run", str(tmp_path / "recipe.toml"), "--dir", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    wrong = ["check", str(tmp_path / "recipe.toml"), "--set", "defaults.learner.tokens=own_reader.tokenize"]
    said = str(CliRunner().invoke(app, wrong).exception)
    assert "has no 'tokenize' (did you mean 'tokenise'?)" in said


def test_a_federation_of_text_networks(tmp_path):
    texts = [f"{text} {place}" for place, text in enumerate(TEXTS)]
    net = Network(Reader, Training(epochs=2), tokens=WORDS)
    silos = [Silo(name, texts, Y, net, test=0.5) for name in "ab"]
    run = Federation(silos, TEXTS, CoFED()).run(tmp_path)
    assert run.to_frame()["federated_accuracy"].notna().all()
