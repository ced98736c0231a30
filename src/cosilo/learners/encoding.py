"""Raw columns and raw text for estimators that take numbers only."""

from typing import Any

from cosilo.data.columns import kinds as column_kinds
from cosilo.data.instances import Instances, is_frame
from cosilo.errors import DataError
from cosilo.learners.kinds import kinds


def with_encoder(estimator: Any, X: Instances) -> Any:
    """Put in front of an estimator what it needs to read instances like X.

    Data frames: numbers are standardised, everything else is one-hot encoded (a value never seen before is
    none of them). Text: TF-IDF. Arrays are left as they are, and so are pipelines, objects that are not
    scikit-learn's, and CatBoost with `cat_features`: they see what is there.

    >>> import pandas as pd
    >>> from sklearn.naive_bayes import GaussianNB
    >>> frame = pd.DataFrame({"age": [30, 40], "job": ["nurse", "cook"]})
    >>> with_encoder(GaussianNB(), frame).fit(frame, [0, 1]).predict(frame).tolist()
    [0, 1]
    """
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline, make_pipeline

    takes_numbers = isinstance(estimator, BaseEstimator) or "catboost.core.CatBoost" in kinds(type(estimator))
    if isinstance(estimator, Pipeline) or not takes_numbers or _knows_words(estimator):
        return estimator
    if is_frame(X):
        from pandas.api.types import is_numeric_dtype
        from sklearn.compose import ColumnTransformer
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = [c for c in X.columns if is_numeric_dtype(X[c])]
        words = [c for c in X.columns if c not in numbers]
        dates = [c for c in words if column_kinds(X[[c]])[str(c)] == "dates"]
        if dates:
            raise DataError(
                f"column {dates[0]!r} holds dates, and one-hot encoded every day would be a word of its own; "
                "make numbers of them (days since …, month), or leave the column out: columns = […]"
            )
        columns = ColumnTransformer(
            [
                ("numbers", StandardScaler(), numbers),
                ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
            ]
        )
        return make_pipeline(columns, estimator)
    if X.dtype.kind == "O":
        from sklearn.feature_extraction.text import TfidfVectorizer

        return make_pipeline(TfidfVectorizer(), estimator)
    return estimator


def _knows_words(estimator: Any) -> bool:
    """Whether its own settings say which columns are words, as CatBoost's can."""
    return estimator.get_params().get("cat_features") is not None
