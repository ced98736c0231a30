"""The account in plain words: for reports, for the audit of a run, and before a run is approved."""

from pathlib import Path
from typing import NamedTuple

from cosilo.privacy.ledger import Spent
from cosilo.privacy.settings import Privacy
from cosilo.runs.durable_files import read_json, write_json
from cosilo.text import listing

#: What a silo's record of a run says of its account.
FILE = "privacy.json"

_VOTERS = {"softmax": "a softmax regression", "mlp": "a network with one hidden layer"}
#: What can be said of kinds of fields, beside their name.
_ABOUT = {
    "task": "names of classes",
    "metrics": "scores of its own model on its own data",
    "size": "the number of its records",
    "weights": "what its network learnt",
    "logits": "what its model is unsure of",
    "labels": "what its own model votes for",
    "similarity": "how much other models help it",
}


class Account(NamedTuple):
    """A silo's account as a run left it."""

    epsilon: float
    delta: float
    budget: float
    #: By the record that was used most.
    spent: float
    spent_delta: float
    voter: str
    #: Whether a voter was asked in this run.
    voted: bool
    #: The kinds of fields that left in this run without any guarantee.
    without: list[str]
    #: Where the ledger is; None: in the run itself, so that another run does not know of this one.
    ledger: str | None

    @property
    def left(self) -> float:
        """What may still be spent."""
        return max(0.0, self.budget - self.spent)


def account_of(privacy: Privacy, spent: Spent, voted: bool, without: list[str]) -> Account:
    """The account of a silo with these settings."""
    return Account(
        privacy.epsilon,
        privacy.delta,
        privacy.most,
        *spent,
        privacy.voter,
        voted,
        without,
        None if privacy.ledger is None else str(privacy.ledger.resolve()),
    )


def write_account(folder: Path, account: Account) -> None:
    """Keep it with the silo's record of a run."""
    write_json(folder / FILE, account._asdict())


def read_account(folder: Path) -> Account | None:
    """The account in a silo's record of a run; None if the silo promises nothing."""
    path = folder / FILE
    return Account(**read_json(path)) if path.exists() else None


def account_lines(folder: Path) -> list[str]:
    """What a silo's record of a run says of its account, one line each; none if it promises nothing.

    `cosilo audit` shows them.
    """
    account = read_account(folder)
    if account is None:
        return []
    lines = [promise(account.epsilon, account.delta, account.voter) if account.voted else "it did not vote"]
    over = "in this run alone" if account.ledger is None else f"over all runs ({account.ledger})"
    lines.append(
        f"its records have spent ε = {account.spent:g} of {account.budget:g}, δ = {account.spent_delta:g}, "
        f"{over}: {f'{account.left:g}' if account.left else 'nothing'} is left; "
        "votes of the same voter cost nothing"
    )
    if account.without:
        lines.append(without_guarantee(account.without))
    return lines


def promise(epsilon: float, delta: float, voter: str) -> str:
    """What a private voter means."""
    return (
        f"its votes come from {_VOTERS[voter]} trained with differential privacy: "
        f"ε = {epsilon:g}, δ = {delta:g} for each record"
    )


def without_guarantee(kinds: list[str]) -> str:
    """What has left, or will leave, beside votes.

    >>> without_guarantee(["size", "task"])
    'without any guarantee: size (the number of its records), task (names of classes)'
    """
    said = [f"{kind} ({_ABOUT[kind]})" if kind in _ABOUT else kind for kind in kinds]
    return f"without any guarantee: {listing(said)}"
