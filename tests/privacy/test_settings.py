import pytest

from cosilo import Privacy
from cosilo.errors import ConfigError


@pytest.mark.parametrize(
    ("values", "wants"),
    [
        ({"epsilon": 0}, "at least 0.01"),
        ({"epsilon": 8, "delta": 0.5}, "less than 0.1"),
        ({"epsilon": 8, "budget": 4}, "budget of at least epsilon = 8, which is one voter"),
        ({"epsilon": 8, "voter": "tree"}, "'softmax' or 'mlp'"),
        ({"epsilom": 8}, "epsilom"),
    ],
)
def test_what_no_promise_is_made_of_is_refused(values, wants):
    with pytest.raises(ConfigError, match=wants):
        Privacy(**values)


def test_a_budget_is_one_voter_unless_it_is_said():
    assert Privacy(epsilon=2).most == 2
    assert Privacy(epsilon=2, budget=5).most == 5
