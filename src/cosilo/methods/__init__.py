"""The methods, by name. A method is imported when it is used: a misspelt name is told without any."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cosilo.lazy import names_from

if TYPE_CHECKING:
    from cosilo.methods.base import Method
    from cosilo.methods.cofed import CoFED
    from cosilo.methods.dofed_spp.dofed_spp import DoFedSPP
    from cosilo.methods.fedadp import FedAdp
    from cosilo.methods.fedavg import FedAvg
    from cosilo.methods.fedbe import FedBE
    from cosilo.methods.fedfomo import FedFomo
    from cosilo.methods.fedmd import FedMD
    from cosilo.methods.fednova import FedNova
    from cosilo.methods.fedprox import FedProx
    from cosilo.methods.fml import FML
    from cosilo.methods.local import Local
    from cosilo.methods.personalised_fedavg import PersonalisedFedAvg
    from cosilo.methods.scaffold import SCAFFOLD
    from cosilo.methods.tempo import Tempo
    from cosilo.protocol.step import step

__all__ = [
    "FML",
    "METHODS",
    "SCAFFOLD",
    "CoFED",
    "DoFedSPP",
    "FedAdp",
    "FedAvg",
    "FedBE",
    "FedFomo",
    "FedMD",
    "FedNova",
    "FedProx",
    "Local",
    "Method",
    "PersonalisedFedAvg",
    "Tempo",
    "step",
]

#: The file of each method, which has the name that recipes know the method by.
_FILES = {
    "CoFED": "cofed",
    "DoFedSPP": "dofed_spp.dofed_spp",
    "FML": "fml",
    "FedAdp": "fedadp",
    "FedAvg": "fedavg",
    "FedBE": "fedbe",
    "FedFomo": "fedfomo",
    "FedMD": "fedmd",
    "FedNova": "fednova",
    "FedProx": "fedprox",
    "Local": "local",
    "PersonalisedFedAvg": "personalised_fedavg",
    "SCAFFOLD": "scaffold",
    "Tempo": "tempo",
}
_look_up = names_from(__name__, {**_FILES, "Method": "base", "step": "base"})

if not TYPE_CHECKING:
    __getattr__ = _look_up


class _Methods(Mapping[str, "type[Method]"]):
    """All methods by name; looking one up imports it, looking at the names imports none."""

    def __init__(self) -> None:
        self._classes = {path.rpartition(".")[2]: name for name, path in _FILES.items()}

    def __getitem__(self, name: str) -> "type[Method]":
        from cosilo.methods.base import Method

        kind = _look_up(self._classes[name])
        assert isinstance(kind, type)
        assert issubclass(kind, Method)
        return kind

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


METHODS = _Methods()
