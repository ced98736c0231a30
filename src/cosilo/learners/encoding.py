"""Raw columns and raw text for estimators that take numbers only."""

from typing import Any

from cosilo.data.instances import Instances, is_frame


def with_encoder(estimator: Any, X: Instances) -> Any:
    """Put in front of an estimator what it needs to read instances like X.

    Data frames: numbers are standardised, everything else is one-hot encoded (a value never seen before is
    none of them). Text: TF-IDF. Arrays are left as they are, and so are pipelines and objects that are not
    scikit-learn's: they see what is there.

    >>> import pandas as pd
    >>> from sklearn.naive_bayes import GaussianNB
    >>> frame = pd.DataFrame({"age": [30, 40], "job": ["nurse", "cook"]})
    >>> with_encoder(GaussianNB(), frame).fit(frame, [0, 1]).predict(frame).tolist()
    [0, 1]
    """
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline, make_pipeline

    if isinstance(estimator, Pipeline) or not isinstance(estimator, BaseEstimator):
        return estimator
    if is_frame(X):
        from pandas.api.types import is_numeric_dtype
        from sklearn.compose import ColumnTransformer
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        numbers = [c for c in X.columns if is_numeric_dtype(X[c])]
        words = [c for c in X.columns if c not in numbers]
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
