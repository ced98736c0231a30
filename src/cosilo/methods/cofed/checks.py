"""What has to fit before CoFED computes anything."""

from collections import Counter
from collections.abc import Mapping

from cosilo.errors import ConfigError, LearnerError
from cosilo.protocol.task import Task
from cosilo.silo.silo import Silo
from cosilo.text import listing


def check_learner(silo: Silo, margin: float, update_from: str, class_weights: str) -> None:
    """Raise if a silo's learner cannot do what the parameters ask of it."""
    learner, where = silo.learner, f"silo {silo.name!r}: {silo.learner.name}"
    if margin > 0 and not learner.has_probabilities and silo.privacy is None:
        raise LearnerError(f"{where} has no predict_proba, so it cannot abstain; set margin = 0")
    if update_from == "local" and not learner.can_warm_start:
        raise LearnerError(f"{where} cannot go on training; set update_from = 'auto' or 'scratch'")
    if class_weights in ("equal", "own") and not learner.can_weigh:
        raise LearnerError(f"{where} takes no sample weights; set class_weights = 'auto' or 'none'")


def check_tasks(tasks: Mapping[str, Task]) -> None:
    """Raise unless every task shares a class with another one (eq. 2).

    >>> check_tasks({"a": Task(("cat", "dog")), "b": Task(("cow", "ox"))})
    Traceback (most recent call last):
        ...
    cosilo.errors.ConfigError: silo 'a': its task {cat, dog} shares no class with any other silo's \
{cow, ox}; CoFED can teach it nothing: leave it out or rename its classes
    """
    if len(tasks) == 1:
        raise ConfigError(f"silo {next(iter(tasks))!r}: is alone; CoFED wants two silos or more")
    holders = Counter(one for task in tasks.values() for one in task.classes)
    for name, task in tasks.items():
        if not any(holders[one] > 1 for one in task.classes):
            mine, theirs = listing(task.classes), listing(sorted(holders.keys() - set(task.classes)))
            raise ConfigError(
                f"silo {name!r}: its task {{{mine}}} shares no class with any other silo's {{{theirs}}}; "
                "CoFED can teach it nothing: leave it out or rename its classes"
            )
