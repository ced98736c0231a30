"""What voters that have seen all subclasses are worth: `python benchmarks/iid_voters.py [night [weak]]`.

The authors of CoFED let the networks of their IID federation vote in the non-IID one (docs/results.md, beside
1.356). Here the same non-IID silos of `recipes/cofed_cifar.toml` learn from what they elect themselves, and
from what IID silos with the same tasks elect. Development seed 0; `night` has the recipe's night size on
seed 201, and takes 40 minutes on two cores; with `weak` silos have one subclass and all networks train
shortly, as the authors' seem to, which takes ten.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from cosilo import CoFED, Federation, Message, Run, Shared, Silo, step
from cosilo.config import build
from cosilo.config.reproduces import Size
from cosilo.config.settings import validate
from cosilo.engines.local.engine import LocalEngine
from cosilo.recipes import RECIPES
from cosilo.reproduce.library import find


class OthersVote(CoFED):
    """CoFED in which every silo hands in the votes of another one that has its task."""

    given: ClassVar[dict[str, NDArray[Any]]] = {}

    @step(votes=Shared("labels", "the votes of a silo with other images of its classes"))
    def label(self, silo: Silo) -> Message:
        """What the other one said."""
        return {"votes": self.given[silo.name]}


def main() -> None:
    size: Size = "night" if "night" in sys.argv else "laptop"
    cases = ("weak_locals_iid", "weak_one_subclass") if "weak" in sys.argv else ("iid", "non_iid")
    voters, learners = cases
    members, settings = {}, {}
    for case in cases:
        values = find("cofed_cifar").case(case, size)
        settings[case] = validate(values, "cofed_cifar")
        members[case] = build.make_members(settings[case], build.Source("cofed_cifar.toml", RECIPES))
    tasks = [{one.name: one.task.classes for one in silos} for silos, _ in members.values()]
    assert tasks[0] == tasks[1], "silos of both cases have the same tasks"
    given: dict[str, Any] = {**settings[learners].method.parameters(), "control": False}

    def run(case: str, method: CoFED, folder: str) -> Run:
        silos, pool = members[case]
        assert pool is not None
        federation = Federation(
            [silo.fresh() for silo in silos if isinstance(silo, Silo)],
            pool.X,
            method,
            seed=settings[case].seed,
            engine=LocalEngine(2),
        )
        return federation.run(Path(folder) / f"{case}-{type(method).__name__}")

    with tempfile.TemporaryDirectory() as folder:
        iid = run(voters, CoFED(**{**given, "updates": 1}), folder)  # its votes are what is wanted
        OthersVote.given |= {name: reply.array("votes") for name, reply in iid.last_replies("label").items()}
        for name, method in {"own_voters": CoFED(**given), "iid_voters": OthersVote(**given)}.items():
            found = run(learners, method, folder).relative_accuracy()
            error = statistics.stdev(found.values()) / len(found) ** 0.5
            print(f"{name}: relative accuracy {statistics.mean(found.values()):.3f} ± {error:.3f} over silos")
            print(f"figure {name} {statistics.mean(found.values()):.3f}")


if __name__ == "__main__":
    main()
