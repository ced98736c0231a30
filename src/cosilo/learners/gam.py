"""A generalised additive model from scikit-learn's parts: a smooth curve for each number, summed."""

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer


def GAM(n_knots: int = 5, C: float = 1.0, max_iter: int = 2000) -> Pipeline:
    """A classifier of data frames: cubic splines of every number and a constant for every word, added up.

    The curves are smoothed by a penalty on their coefficients (`C`, as in logistic regression).

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": range(20, 80, 3), "job": ["nurse", "cook"] * 10})
    >>> middle = frame["age"].between(35, 60).astype(int)  # no straight line tells these apart
    >>> float(GAM(C=100).fit(frame, middle).score(frame, middle))
    1.0
    """
    splines = SplineTransformer(n_knots=n_knots, extrapolation="constant")
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", splines, make_column_selector(dtype_include="number")),
            ("words", words, make_column_selector(dtype_exclude="number")),
        ]
    )
    return Pipeline([("columns", columns), ("sum", LogisticRegression(C=C, max_iter=max_iter))])
