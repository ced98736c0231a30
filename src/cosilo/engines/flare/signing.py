"""Signatures of both parties under the seals of a run, made with the keys of their kits.

A silo signs the seal of every reply. The coordinator checks that, signs the same statement, and sends both
signatures back with its next request. So either can show later what the other has had.
"""

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from cosilo.engines.flare.certificates import digest
from cosilo.engines.flare.kit_manifest import check_kit
from cosilo.errors import RunError
from cosilo.protocol.seal import Seal

#: The longest certificate that is read, in characters.
_LONGEST = 20_000


class Signatory:
    """A party that signs: a key of a kit, and the certificate that goes with it."""

    def __init__(self, key: bytes, certificate: bytes) -> None:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self._key: Any = load_pem_private_key(key, password=None)
        self.certificate = certificate.decode()

    @classmethod
    def of(cls, kit: Path, party: str) -> "Signatory":
        """Return the signatory of a kit; `party` is "client" or "server", as its files are called."""
        startup = kit / "startup"
        check_kit(kit, f"startup/{party}.key", f"startup/{party}.crt")
        try:
            return cls((startup / f"{party}.key").read_bytes(), (startup / f"{party}.crt").read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise RunError(
                f"{startup}/{party}.key: cannot be used for signing ({type(error).__name__}); restore the "
                "kit from a copy, or make a new one"
            ) from None

    def sign(self, statement: bytes) -> str:
        """Return a signature."""
        from cryptography.hazmat.primitives import hashes

        return base64.b64encode(self._key.sign(statement, _padding(), hashes.SHA256())).decode()


def verify(certificate: str, statement: bytes, signature: str) -> bool:
    """Return whether a signature under a statement was made with the key of a certificate."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes

    try:
        key = _loaded(certificate).public_key()
        key.verify(base64.b64decode(signature, validate=True), statement, _padding(), hashes.SHA256())
    except (InvalidSignature, ValueError, TypeError, AttributeError):
        return False
    return True


def is_coordinator(certificate: str, authority: str) -> bool:
    """Return whether a certificate is the coordinator's: of this authority, for a server, and good today."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        found = _loaded(certificate)
        found.verify_directly_issued_by(_loaded(authority))
        uses = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    now = datetime.now(UTC)
    is_valid = found.not_valid_before_utc <= now <= found.not_valid_after_utc
    return bool(is_valid and ExtendedKeyUsageOID.SERVER_AUTH in uses)


class SealsOfSilo:
    """A silo's end: signs its seals, and checks those that come back."""

    def __init__(self, run: str, silo: str, own: Signatory, coordinator: str) -> None:
        self._run, self._silo, self._own, self._coordinator = run, silo, own, coordinator
        self.certificate = own.certificate

    def sign(self, seal: Seal, contract: str) -> Seal:
        """Return a seal with the silo's signature."""
        return replace(seal, silo=self._own.sign(seal.statement(self._run, contract, self._silo)))

    def problem(self, seal: Seal, contract: str) -> str | None:
        """Return what is wrong with a seal that came with a request; None: nothing."""
        statement = seal.statement(self._run, contract, self._silo)
        if not verify(self._own.certificate, statement, seal.silo):
            return "is not signed by this silo"
        if not verify(self._coordinator, statement, seal.coordinator):
            return "is not signed by the coordinator"
        return None


class SealsOfCoordinator:
    """The coordinator's end: checks the seals of silos, and signs them too.

    `admitted` returns the digest of the certificate that a silo may come with; None if it may not come.
    """

    def __init__(
        self, run: str, contract: str, own: Signatory, admitted: Callable[[str], str | None]
    ) -> None:
        self._run, self._contract, self._own, self._admitted = run, contract, own, admitted

    def accept(self, silo: str, seal: Seal, certificate: str) -> Seal | None:
        """Return a silo's seal with both signatures; None if it is not signed by this silo."""
        if len(certificate) > _LONGEST:
            return None
        try:
            is_admitted = digest(certificate.encode()) == self._admitted(silo)
        except (ValueError, TypeError):
            return None
        statement = seal.statement(self._run, self._contract, silo)
        if not (is_admitted and verify(certificate, statement, seal.silo)):
            return None
        return replace(seal, coordinator=self._own.sign(statement))


@lru_cache(maxsize=64)
def _loaded(certificate: str) -> Any:
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate.encode())


def _padding() -> Any:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
