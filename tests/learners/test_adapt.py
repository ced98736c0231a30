"""What a user passes becomes a learner."""

from sklearn.tree import DecisionTreeClassifier

from cosilo.learners import Estimator, Learner, as_learner


def test_as_learner_finds_the_adapter():
    import torch

    from cosilo.learners import Network

    tree = as_learner(DecisionTreeClassifier())
    assert isinstance(tree, Estimator)
    assert as_learner(tree) is tree
    net = as_learner(torch.nn.Linear(2, 2))
    assert isinstance(net, Network)
    assert isinstance(net, Learner)
    assert isinstance(tree, Learner)
