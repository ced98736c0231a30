"""Raw columns and raw text in front of estimators that take numbers only."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline

from cosilo.learners.encoding import with_encoder

FRAME = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["cook", "nurse", "cook", "nurse"]})


def test_numbers_are_standardised_and_words_become_columns():
    columns = with_encoder(GaussianNB(), FRAME).fit(FRAME, [0, 1, 0, 1])[0]
    found = columns.transform(FRAME)
    np.testing.assert_allclose(found[:, 0], (FRAME["age"] - 35) / np.sqrt(125))
    assert found[:, 1:].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    stranger = columns.transform(pd.DataFrame({"age": [35], "job": ["judge"]}))
    assert stranger.tolist() == [[0, 0, 0]]


def test_texts_become_counts_of_words():
    texts = np.array(["red apple", "fast car"], dtype=object)
    model = with_encoder(LogisticRegression(), texts).fit(texts, [0, 1])
    assert model.predict(np.array(["the red one", "car"], dtype=object)).tolist() == [0, 1]


def test_what_reads_it_already_is_left_alone():
    class Foreign:
        pass

    for thing, X in [(Foreign(), FRAME), (make_pipeline(GaussianNB()), FRAME), (GaussianNB(), np.eye(2))]:
        assert with_encoder(thing, X) is thing
    assert isinstance(with_encoder(GaussianNB(), FRAME), Pipeline)
