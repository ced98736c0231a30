"""Local: every silo by itself."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

from cosilo import Federation, Local


def test_nothing_leaves_but_scores_and_the_model_is_the_learners_own(tmp_path, silos):
    run = Federation(silos(), method=Local()).run(tmp_path / "run")
    assert [ask["step"] for ask in run.asks()] == ["hello", "train", "evaluate"]
    assert run.audit("bayes")[1]["fields"] == {}
    bayes = run.silos["bayes"]
    X, y = bayes.data.train
    alone = GaussianNB().fit(X, y)
    test, truth = bayes.data.test
    assert run.scores("local")["bayes"] == np.mean(alone.predict(test) == truth)
    assert run.scores("federated") == {}
    assert Local().needs() == {}
