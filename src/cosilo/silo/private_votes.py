"""How a silo votes that promises something to its records: by a private voter, which its ledger keeps."""

from hashlib import sha256
from pathlib import Path

import numpy as np

from cosilo.data.instances import digests
from cosilo.errors import RunError
from cosilo.privacy.account_text import account_of, promise, read_account, without_guarantee, write_account
from cosilo.privacy.accounting import need_library
from cosilo.privacy.ledger import GUARANTEED, Hashes, Ledger
from cosilo.privacy.settings import Privacy
from cosilo.privacy.voter import Opinions, mechanism, opinions, schedule_for
from cosilo.silo.holdings import Holdings


class PrivateVotes:
    """The voter of a silo with a `privacy` setting, and its account.

    Records are those that the silo trains on. Which these are is decided for each record by itself, so that
    one record more or less changes nothing for the others.
    """

    def __init__(self, silo: Holdings) -> None:
        assert silo.privacy is not None
        self._silo = silo
        self._privacy: Privacy = silo.privacy
        self._where = f"silo {silo.name!r}"

    def opinions(self) -> Opinions:
        """Return what the voter thinks of the pool; classes are in the order of the task."""
        silo, ledger = self._silo, self._ledger()
        records, pool = self._records(ledger), silo.need_pool()
        X, y = silo.data.train
        how = mechanism(self._privacy)

        def train() -> Opinions:
            return opinions(how, X, y, len(silo.task), pool)

        most, run = self._privacy.most, str(silo.record)
        return ledger.opinions(self._key(records), records, how, most, self._where, run, train)

    def check(self) -> None:
        """Raise if voting would cost more than is left; nothing is trained."""
        need_library()
        ledger = self._known_ledger()
        if ledger is not None and self._silo.pool_fingerprint is not None:
            records = self._records(ledger)
            ledger.check(self._key(records), records, self._privacy.epsilon, self._privacy.most, self._where)

    def note(self, kinds: set[str]) -> None:
        """Note what left, and how the account stands."""
        ledger, record = self._ledger(), self._silo.record
        if record is None:
            return
        ledger.note(kinds, str(record))
        left, known = ledger.left(str(record)), read_account(record)
        voted, others = bool(left & GUARANTEED), sorted(left - GUARANTEED)
        if known is None or (known.voted, known.without) != (voted, others):
            spent = ledger.spent(self._records(ledger))
            write_account(record, account_of(self._privacy, spent, voted, others))

    def forecast(self, kinds: set[str]) -> list[str]:
        """What a run that shares these kinds would cost, one line each, before it is approved."""
        lines = []
        if GUARANTEED & kinds:
            lines.append(promise(self._privacy.epsilon, self._privacy.delta, self._privacy.voter))
            ledger = self._known_ledger()
            records = None if ledger is None else self._records(ledger)
            if ledger is not None and records is not None and ledger.has(self._key(records)):
                lines.append("that voter is there already: its votes cost nothing more")
            else:
                spent = 0.0 if ledger is None or records is None else ledger.spent(records).epsilon
                cost, most = self._privacy.epsilon, self._privacy.most
                lines.append(f"a new voter costs ε = {cost:g}; spent are {spent:g} of {most:g}")
        if others := sorted(kinds - GUARANTEED):
            lines.append(without_guarantee(others))
        return lines

    def _known_ledger(self) -> Ledger | None:
        """The ledger, unless it would be that of a run that has not begun."""
        folder = self._folder()
        return None if folder is None or not folder.exists() else Ledger(folder)

    def _folder(self) -> Path | None:
        if self._privacy.ledger is not None:
            return self._privacy.ledger
        return None if self._silo.record is None else self._silo.record / "privacy"

    def _ledger(self) -> Ledger:
        folder = self._folder()
        if folder is None:
            raise RunError(f"{self._where}: has no ledger for its privacy account; it votes in a run only")
        return Ledger(folder)

    def _records(self, ledger: Ledger) -> Hashes:
        return digests(*self._silo.data.train, ledger.hash_key())

    def _key(self, records: Hashes) -> str:
        """What makes a voter that voter: the records, the classes, the pool, and how it is trained."""
        silo, promised = self._silo, self._privacy
        schedule = schedule_for(promised.epsilon)
        how = [promised.voter, promised.epsilon, promised.delta, schedule]
        what = repr([how, silo.pool_fingerprint, silo.task.classes])
        return sha256(what.encode() + np.sort(records).tobytes()).hexdigest()[:16]
