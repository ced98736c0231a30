"""Keys and certificates of a federation: a key is made where it is used, and no private key is ever sent."""

import hashlib
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cosilo.engines.flare.kit_manifest import check_kit
from cosilo.errors import ConfigError

#: The organisation in every certificate; FLARE wants one.
ORG = "cosilo"
#: Days that a silo's certificate holds; then it asks for another one.
SILO_DAYS = 360
#: Days that the authority holds, and those certificates whose keys lie on the same machine as its own.
_AUTHORITY_DAYS = 3650
#: A clock at a silo may be behind.
_CLOCKS = timedelta(hours=1)
_KEY, _CERTIFICATE = "rootCA.key", "rootCA.pem"


def new_key() -> bytes:
    """A private key, as PEM."""
    from nvflare.lighter.utils import generate_keys, serialize_pri_key

    return bytes(serialize_pri_key(generate_keys()[0]))


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f"{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    part.replace(path)


def new_request(name: str, key: bytes) -> bytes:
    """A request for a certificate, signed by the key that it is for, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from nvflare.lighter.utils import x509_name

    request = x509.CertificateSigningRequestBuilder().subject_name(x509_name(name, ORG))
    return _pem(request.sign(_private(key), hashes.SHA256()))


def read_request(content: bytes, source: str) -> tuple[str, Any]:
    """Who asks, and the public key; raise unless whoever asks has the private one."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(content)
        (name,) = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        key = request.public_key()
    except ValueError:
        raise ConfigError(f"{source}: is not a request; wants a file that cosilo request made") from None
    if not request.is_signature_valid or not isinstance(key, RSAPublicKey) or key.key_size < 2048:
        raise ConfigError(f"{source}: is not signed by the key that it is for; ask for another request")
    return str(name.value), key


def check_key(key: bytes, source: str) -> None:
    """Raise unless this is a private key, as PEM."""
    try:
        _private(key)
    except Exception as error:  # whatever its bytes lead to
        raise ConfigError(
            f"{source}: is damaged, it is no private key ({type(error).__name__}); "
            "make another one with cosilo request"
        ) from None


def fingerprint(key: Any) -> str:
    """A public key in short, for people to compare: as PEM of a key pair, or as the key itself."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _private(key).public_key() if isinstance(key, bytes) else key
    found = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digits = hashlib.sha256(found).hexdigest()[:32]
    return " ".join(digits[place : place + 4] for place in range(0, 32, 4))


def digest(certificate: bytes) -> str:
    """The SHA-256 of a certificate; of a chain, the first one's."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    return x509.load_pem_x509_certificate(certificate).fingerprint(hashes.SHA256()).hex()


@dataclass(frozen=True)
class Authority:
    """What signs the certificates of one federation, in a folder at the coordinator."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, federation: str) -> "Authority":
        """A new one."""
        from nvflare.lighter.utils import Identity, generate_cert

        key = new_key()
        private, name = _private(key), Identity(federation)
        made = generate_cert(name, name, private, private.public_key(), valid_days=_AUTHORITY_DAYS, ca=True)
        write_secret(folder / _KEY, key)
        (folder / _CERTIFICATE).write_bytes(_pem(made))
        return cls(folder)

    @property
    def certificate(self) -> bytes:
        """Its own certificate, which everybody trusts."""
        return self._read(_CERTIFICATE)

    @property
    def fingerprint(self) -> str:
        """Its key in short."""
        return fingerprint(public_key(self.certificate))

    def for_silo(self, name: str, key: Any) -> bytes:
        """A certificate for the public key of a silo; it cannot be a server's or sign others."""
        return self._sign(name, key, SILO_DAYS, server=False)

    def for_server(self, host: str, key: bytes) -> bytes:
        """A certificate for the coordinator's process."""
        return self._sign(host, _private(key).public_key(), _AUTHORITY_DAYS, server=True, host=host)

    def for_admin(self, name: str, key: bytes) -> bytes:
        """A certificate for who asks for runs."""
        return self._sign(name, _private(key).public_key(), _AUTHORITY_DAYS, server=False, role="lead")

    def _sign(
        self,
        name: str,
        key: Any,
        days: int,
        *,
        server: bool,
        host: str | None = None,
        role: str | None = None,
    ) -> bytes:
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID
        from nvflare.lighter.utils import Identity, generate_cert

        authority = x509.load_pem_x509_certificate(self.certificate)
        now = datetime.now(UTC)
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])]
        made = generate_cert(
            Identity(name, ORG, role),
            Identity(_common_name(authority)),
            _private(self._read(_KEY)),
            key,
            server_default_host=host,
            not_valid_before=max(now - _CLOCKS, authority.not_valid_before_utc),
            not_valid_after=min(now + timedelta(days=days), authority.not_valid_after_utc),
            extra_extensions=[
                (x509.BasicConstraints(ca=False, path_length=None), True),
                (x509.ExtendedKeyUsage(uses), False),
            ],
        )
        return _pem(made)

    def _read(self, name: str) -> bytes:
        check_kit(self.folder)
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{self.folder / name}: cannot be read ({error.strerror}); "
                "wants the authority that cosilo provision made, which signs certificates"
            ) from None


def check_certificate(certificate: bytes, authority: bytes, name: str, key: bytes, source: str) -> datetime:
    """Raise unless a certificate is for this silo and this key, and signed by the authority; when it ends."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        found, signed_by = (x509.load_pem_x509_certificate(one) for one in (certificate, authority))
        found.verify_directly_issued_by(signed_by)
    except (ValueError, TypeError, InvalidSignature):
        raise ConfigError(
            f"{source}: its certificate is not signed by its authority; ask for another"
        ) from None
    if _common_name(found) != name:
        raise ConfigError(f"{source}: got a certificate for {_common_name(found)!r}; the kit is of {name!r}")
    if fingerprint(found.public_key()) != fingerprint(key):
        raise ConfigError(
            f"{source}: its certificate is for another key; wants the answer to the last request of this kit"
        )
    return found.not_valid_after_utc


def public_key(certificate: bytes) -> Any:
    """The public key that a certificate is for."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(certificate).public_key()


def _common_name(certificate: Any) -> str:
    from cryptography.x509.oid import NameOID

    return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _private(key: bytes) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    return load_pem_private_key(key, password=None)


def _pem(one: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(one.public_bytes(Encoding.PEM))
