"""Steps: what a silo can be asked to do, and everything that is known about a step before it is asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from cosilo.protocol.message import Message, Shared, Value

#: The contract's own steps, which every method has.
HELLO, WANTS, EVALUATE = "hello", "wants", "evaluate"


#: The most bytes that a request for a step may have at a silo.
Longest: TypeAlias = Callable[[Any], int]


@dataclass(frozen=True)
class Declaration:
    """What `@step` says about a function."""

    fields: Mapping[str, Shared] = field(default_factory=dict)
    timed: bool = True
    needs_model: bool = True
    voluntary: bool = False
    after: str | None = None
    longest: Longest | None = None


@dataclass(frozen=True)
class Step:
    """One thing a silo can be asked to do, bound to the method that asks for it."""

    name: str
    declared: Declaration
    #: Called at a silo, with the silo and the fields of the coordinator's message as keywords.
    run: Callable[..., Message | None]
    #: Called at an institution, with the institution and the message.
    relay: Callable[..., Message]

    @property
    def fields(self) -> Mapping[str, Shared]:
        """The fields of its reply."""
        return self.declared.fields


F = TypeVar("F", bound=Callable[..., Message | None])


def step(
    *,
    timed: bool = True,
    needs_model: bool = True,
    voluntary: bool = False,
    after: str | None = None,
    longest: Longest | None = None,
    **fields: str | Shared,
) -> Callable[[F], F]:
    """Make a method's function a step.

    A step gets the silo, and the fields of the coordinator's message as keywords; it returns the reply's
    fields: exactly those declared.

    Parameters
    ----------
    timed : bool, default True
        Whether the step counts on the simulated clock. Training alone, for comparison, does not.
    needs_model : bool, default True
        Whether the silo's model has to be loaded for it.
    voluntary : bool, default False
        Whether a silo that does not share what the step sends can take part all the same.
    after : str, default None
        A step that has to be done before this one: silos of other owners refuse any other order.
    longest : callable, default None
        The most bytes that a request for it may have, `longest(silo)`, which the silo checks before it reads
        any of them; None: any number for a step that takes arrays, and 4 MiB for one that does not.
    **fields : Shared or str
        One for each field of the reply: its `Shared`, or just its kind.

    Examples
    --------
    >>> @step(size="size")
    ... def count(method, silo):
    ...     return {"size": silo.size}
    """
    declared = {name: Shared(one) if isinstance(one, str) else one for name, one in fields.items()}

    def mark(function: F) -> F:
        function.__step__ = Declaration(declared, timed, needs_model, voluntary, after, longest)  # type: ignore[attr-defined]
        return function

    return mark


def first(values: Sequence[Value]) -> Value:
    """Merge a value that is the same at all members: take that of the first."""
    return values[0]
