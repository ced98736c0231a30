"""A sum of curves."""

import numpy as np
import pandas as pd

from cosilo.learners.gam import GAM


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"x": rng.uniform(-3, 3, n), "y": rng.uniform(-3, 3, n), "job": rng.choice(["a", "b"], n)}
    )


def test_it_learns_curves_of_single_columns_and_not_of_two_together():
    X = frame()
    middle = (X["x"].abs() < 1.2).astype(int)  # a bump of x
    both = ((X["x"] > 0) == (X["y"] > 0)).astype(int)  # no sum of a curve of x and one of y
    assert GAM(C=100).fit(X, middle).score(X, middle) > 0.95
    assert GAM(C=100).fit(X, both).score(X, both) < 0.75


def test_words_count_and_new_ones_and_numbers_out_of_range_are_no_error():
    X = frame()
    y = (X["job"] == "a").astype(int)
    model = GAM().fit(X, y)
    assert model.score(X, y) == 1
    other = pd.DataFrame({"x": [99.0], "y": [-99.0], "job": ["never seen"]})
    assert len(model.predict(other)) == 1
