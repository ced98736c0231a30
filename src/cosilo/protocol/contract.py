"""The contract of a run: what a silo is told before it does anything, and what no later job may change.

A silo writes the contract into its record at first contact. The hash of the contract travels with every
request and is compared at every step; a run with another contract is another run and needs another name
(`cosilo.coordination.agreement`).
"""

import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import sha256
from typing import Any

from cosilo.errors import BadMessage
from cosilo.protocol.participant import Procedure
from cosilo.text import differences
from cosilo.version import PROTOCOL


@dataclass(frozen=True)
class Contract:
    """An agreement of a coordinator with a silo.

    Attributes
    ----------
    method
        The name of the method.
    parameters
        All its parameters, as far as silos are told (`Method.told_silos`).
    seed
        The seed of the run.
    pool
        The fingerprint of the pool; empty for a method that uses none.
    members
        The number of silos that were invited.
    names
        A salted digest of their names: it commits the coordinator to them and tells nothing about them.
    vocabulary
        The classes that tasks may consist of; None: any.
    protocol
        The version of the messages.
    settings
        A salted digest of all settings of the coordinator, also of those that silos are not told.
    """

    method: str
    parameters: Mapping[str, Any]
    seed: int
    pool: str = ""
    members: int = 1
    names: str = ""
    vocabulary: tuple[str, ...] | None = None
    protocol: int = PROTOCOL
    settings: str = ""

    @classmethod
    def of(
        cls,
        procedure: Procedure,
        seed: int = 0,
        *,
        silos: Iterable[str] = ("",),
        pool: str | None = None,
        vocabulary: Iterable[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        salt: str = "",
    ) -> "Contract":
        """Make the contract of a run of this method; `salt` is kept by the coordinator."""
        names = sorted(silos)
        told = procedure.told_silos(procedure.parameters())
        return cls(
            method=procedure.name,
            parameters=json.loads(_canonical(told)),
            seed=int(seed),
            pool=(pool or "") if procedure.needs_pool else "",
            members=len(names),
            names=_salted(salt, names),
            vocabulary=None if vocabulary is None else tuple(vocabulary),
            settings=_salted(salt, settings or {}),
        )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> "Contract":
        """Make a contract of what `values` returned; raise BadMessage for anything else."""
        known = {field.name for field in fields(cls)}
        if not isinstance(values, Mapping) or set(values) != known:
            raise BadMessage(f"got a contract with {sorted(values)}; expected {sorted(known)}")
        vocabulary = values["vocabulary"]
        listed = None if vocabulary is None else tuple(vocabulary)
        found = cls(**{**values, "vocabulary": listed})
        whole = (found.seed, found.members, found.protocol)
        texts = (found.method, found.pool, found.names, found.settings, *(listed or ()))
        if not (
            all(type(number) is int and number >= 0 for number in whole)
            and all(isinstance(text, str) for text in texts)
            and isinstance(found.parameters, Mapping)
        ):
            raise BadMessage("got a contract whose values are of the wrong type")
        return found

    def values(self) -> dict[str, Any]:
        """Return the contract as JSON has it."""
        vocabulary = None if self.vocabulary is None else list(self.vocabulary)
        return {**asdict(self), "parameters": dict(self.parameters), "vocabulary": vocabulary}

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the contract."""
        return sha256(_canonical(self.values()).encode()).hexdigest()

    def changes(self, other: "Contract") -> list[str]:
        """Return what differs from another contract, in words.

        >>> one = Contract("cofed", {"rounds": 1}, 0)
        >>> one.changes(Contract("cofed", {"rounds": 3}, 7))
        ['parameters.rounds was 1, now 3', 'seed was 0, now 7']
        """
        found = differences(self.values(), other.values())
        return [f"{key} was {was!r}, now {now!r}" for key, was, now in found]

    def in_words(self) -> str:
        """Return the contract in one line, for administrators."""
        parameters = ", ".join(f"{name} = {value}" for name, value in self.parameters.items())
        parts = [f"{self.method} ({parameters})", f"seed {self.seed}", f"{self.members} members"]
        if self.pool:
            parts.append(f"pool {self.pool}")
        if self.vocabulary is not None:
            parts.append(f"classes {', '.join(self.vocabulary)}")
        return f"contract {self.hash[:16]}: {', '.join(parts)}, protocol {self.protocol}"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _salted(salt: str, value: Any) -> str:
    return hmac.new(salt.encode(), _canonical(value).encode(), sha256).hexdigest()
