"""The silos of a run with what they have learnt, read from their records when somebody asks for them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cosilo.runs.silo_record import SiloRecord
from cosilo.silo.silo import Silo


class RestoredSilos(Mapping[str, Silo]):
    """Silos by name; of thousands of models hardly anybody looks at more than a few.

    Parameters
    ----------
    silos
        The silos, as they were before the run or are after it.
    folder
        Where their records are.
    """

    def __init__(self, silos: Sequence[Silo], folder: Path) -> None:
        self._silos = {silo.name: silo for silo in silos}
        self._folder = folder
        self._restored: set[str] = set()

    def __getitem__(self, name: str) -> Silo:
        silo = self._silos[name]
        if name not in self._restored:
            SiloRecord(self._folder / name).restore(silo)
            self._restored.add(name)
        return silo

    def __iter__(self) -> Iterator[str]:
        return iter(self._silos)

    def __len__(self) -> int:
        return len(self._silos)
