"""What a silo lets a coordinator do: which methods, how much of them, and whether somebody is asked first."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from cosilo.errors import Refused
from cosilo.protocol.forms import shown

#: The most a parameter may be, or the least and the most, or the texts that it may be.
Range: TypeAlias = float | tuple[float, float] | list[str]
#: Parameters that say how long something goes on, unless the silo allows more of them.
_LONG = ("epochs", "rounds")
_MOST = 1000


class Allow(BaseModel):
    """The table `[allow]` of a silo's own file; all of it holds for every run.

    Parameters
    ----------
    methods : list of str, default None
        The methods that may be run here, as `cosilo methods` calls them; None: any that `shares` allows.
    parameters : dict, default {}
        By parameter of a method, the most that it may be, or [least, most], or a list of the texts
        that it may be; one that a method does not have is ignored. Without it, rounds and epochs of
        any kind are at most 1,000, and what a method calls risky (`Method.cautious`) stays below the
        risk: CoFED's `rounds` at 1, and its `accept` at "better".
    asks : int, default 10000
        How often a run may ask for something.
    seconds : float, default 86400
        The processor's seconds that a run may take here; checked before each step.
    bytes : int, default 1000000000
        How much may leave in a run; checked before each step.
    runs_per_day : int, default 50
        How many runs may begin within 24 hours.
    approve : {"ask", "never"}, default "never"
        ask: a run waits until `cosilo approve KIT RUN`, which shows what it would send, got a yes.
    agreement : float, default 0.1
        How far labels that come from others have to agree with the votes that left the silo before it
        trains on them: 0 is what votes independent of them would, 1 the most that the votes could. They
        are refused if they decidedly fall short. 0: not at all.
    exact_scores : bool, default False
        Whether accuracies leave as they are, with the number of instances they were taken on, which tells how
        much data there is. If not, they leave rounded to hundredths, and the number to its first digit.

    Examples
    --------
    >>> Allow(methods=["cofed"], parameters={"alpha": (0.2, 0.9), "rule": ["shares", "winner"]}).asks
    10000
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: list[str] | None = None
    parameters: dict[str, Range] = {}
    asks: Annotated[int, Field(ge=1)] = 10_000
    seconds: Annotated[float, Field(gt=0)] = 86_400.0
    bytes: Annotated[int, Field(ge=1)] = 10**9
    runs_per_day: Annotated[int, Field(ge=1)] = 50
    approve: Literal["ask", "never"] = "never"
    agreement: Annotated[float, Field(ge=0, lt=1)] = 0.1
    exact_scores: bool = False

    def check_method(
        self,
        where: str,
        method: str,
        parameters: Mapping[str, object],
        cautious: Mapping[str, float | list[str]],
    ) -> None:
        """Raise unless a method with these parameters may be run here."""
        if self.methods is not None and method not in self.methods:
            raise Refused(f"{where}: does not allow {method}; it allows {', '.join(self.methods) or 'none'}")
        for name, value in parameters.items():
            allowed = self.parameters.get(name, cautious.get(name))
            if isinstance(allowed, list):
                _check_texts(where, name, value, allowed, parameters)
            else:
                _check_numbers(where, name, value, allowed)


def _check_texts(
    where: str, name: str, value: object, allowed: list[str], parameters: Mapping[str, object]
) -> None:
    """Raise unless a parameter is one of these texts, or a list of some of them."""
    texts = value if isinstance(value, list | tuple) else [value]
    strange = [one for one in texts if one not in allowed]
    if not strange:
        return
    implied = ""
    if name != "rule" and parameters.get("rule") == "paper":
        implied = ' (which rule = "paper" implies)'
    more = ", ".join(_quoted(one) for one in [*allowed, strange[0]])
    raise Refused(
        f"{where}: does not allow {name} = {_quoted(strange[0])}{implied}; it allows "
        f"{' or '.join(map(_quoted, allowed)) or 'none'}: "
        f"its own file says more in [allow] parameters = {{ {name} = [{more}] }}"
    )


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else shown(value)


def _check_numbers(where: str, name: str, value: object, allowed: float | tuple[float, float] | None) -> None:
    """Raise unless all numbers in a parameter are in the range that is allowed; texts are not looked at."""
    if isinstance(allowed, tuple):
        least, most = allowed
    else:
        usual = _MOST if any(word in name for word in _LONG) else float("inf")
        least, most = float("-inf"), usual if allowed is None else allowed
    for number in _numbers(value):
        if not least <= number <= most:
            limits = f"at most {most:g}" if least == float("-inf") else f"{least:g} to {most:g}"
            raise Refused(
                f"{where}: does not allow {name} = {number:g}; it allows {limits}: "
                f"its own file says more in [allow] parameters = {{ {name} = … }}"
            )


def _numbers(value: object) -> list[float]:
    """The numbers in a parameter: it may be one, or a list or a table of some."""
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [float(value)]
    if isinstance(value, Mapping):
        return [number for one in value.values() for number in _numbers(one)]
    return [number for one in value for number in _numbers(one)] if isinstance(value, list | tuple) else []
