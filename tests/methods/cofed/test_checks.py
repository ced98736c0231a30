"""What is refused before anything is computed."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from cosilo import Silo
from cosilo.errors import ConfigError, LearnerError
from cosilo.methods.cofed.checks import check_learner, check_tasks
from cosilo.protocol.task import Task


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            (0.3, "auto", "auto"),
            "silo 'a': LinearSVC has no predict_proba, so it cannot abstain; set margin = 0",
        ),
        ((0.0, "local", "auto"), "silo 'a': LinearSVC cannot go on training; set update_from = 'auto' or"),
    ],
)
def test_what_a_learner_cannot_do_is_one_line(asked, line):
    silo = Silo("a", np.eye(4), np.array([0, 1, 0, 1]), LinearSVC())
    check_learner(silo, 0.0, "auto", "equal")
    with pytest.raises(LearnerError) as error:
        check_learner(silo, *asked)
    assert str(error.value).startswith(line)


def test_tasks_that_are_chained_are_enough():
    chain = {name: Task(tuple(name)) for name in ("ab", "bc", "cd")}
    check_tasks(chain)
    with pytest.raises(ConfigError, match=r"silo 'xy': its task \{x, y\} shares no class"):
        check_tasks({**chain, "xy": Task(("x", "y"))})
    with pytest.raises(ConfigError, match="silo 'ab': is alone"):
        check_tasks({"ab": chain["ab"]})
