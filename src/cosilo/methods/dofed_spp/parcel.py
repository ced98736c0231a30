"""How models are sent to silos: as they are, or downsized together (section 4.5 of DoFed-SPP)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.aggregation.downsizing import counters, downsize, restore
from cosilo.methods.packing import pack, unpack
from cosilo.protocol.message import Message

# No silo is called so: names have no spaces.
_MEAN, _DIRECTION = "the mean", "direction "


def wrap(
    names: Sequence[str], read: Callable[[str], Weights], components: int | None, over: Sequence[str] = ()
) -> tuple[Message, dict[str, float]]:
    """A message with these models, and what PCA lost of each.

    The PCA is over the models `over`, if these are more. Where it would save nothing, models are sent as they
    are.
    """
    over = list(over) or list(names)
    small = None
    if components is not None and components < len(names) - 1:
        small = downsize(over, read, components)
    if small is None:
        return {"models": pack({name: read(name) for name in names})}, {}
    parts: dict[str, Weights] = {_MEAN: small.mean}
    parts |= {f"{_DIRECTION}{place}": direction for place, direction in enumerate(small.directions)}
    parts |= {name: counters(read(name)) for name in names}
    rows = [over.index(name) for name in names]
    message: Message = {
        "models": pack(parts),
        "coefficients": small.coefficients[rows],
        "downsized": list(names),
    }
    return message, dict(zip(names, small.errors[rows].tolist(), strict=True))


class Models(Mapping[str, Weights]):
    """The models of a message, each restored when it is read: one of them is in memory at a time."""

    def __init__(
        self,
        models: Weights,
        coefficients: NDArray[Any] | None = None,
        downsized: Sequence[str] | None = None,
    ) -> None:
        self._parts = unpack(models)
        self._rows = None if coefficients is None else dict(zip(downsized or (), coefficients, strict=True))

    def __getitem__(self, name: str) -> Weights:
        if self._rows is None:
            return self._parts[name]
        row, parts = self._rows[name], self._parts
        directions = [parts[f"{_DIRECTION}{place}"] for place in range(len(row))]
        return restore(parts[_MEAN], directions, row) | parts.get(name, {})

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts if self._rows is None else self._rows)

    def __len__(self) -> int:
        return len(self._parts if self._rows is None else self._rows)
