"""Several models in one field of a message."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from cosilo.aggregation.averaging import Weights
from cosilo.errors import BadMessage


def pack(models: Mapping[str, Weights]) -> dict[str, NDArray[Any]]:
    """The arrays of all models in one group, each under the name of its model.

    >>> import numpy as np
    >>> list(pack({"north": {"w": np.zeros(1)}, "south": {"w": np.ones(1)}}))
    ['north/w', 'south/w']
    """
    return {f"{model}/{name}": array for model, weights in models.items() for name, array in weights.items()}


def unpack(group: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, NDArray[Any]]]:
    """What `pack` put together.

    >>> import numpy as np
    >>> unpack({"north/w": np.zeros(1)})
    {'north': {'w': array([0.])}}
    """
    models: dict[str, dict[str, NDArray[Any]]] = {}
    for name, array in group.items():
        model, slash, inner = name.partition("/")
        if not slash:
            raise BadMessage(f"{name!r} belongs to no model")
        models.setdefault(model, {})[inner] = array
    return models
