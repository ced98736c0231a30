"""Whether the coordinator can be reached, in words for the person who started a kit: FLARE just retries."""

import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

from cosilo.engines.flare.kit_manifest import check_kit
from cosilo.errors import ConfigError
from cosilo.runs.durable_files import read_json

_PATIENCE = 5.0
#: How long a coordinator may take to say that it does not accept a certificate.
_OBJECTION = 1.0
_WANTS = "wants a kit that was made together with the coordinator's"


def address(kit: Path) -> tuple[str, int]:
    """Where the coordinator of a kit listens: host and port."""
    for name in ("fed_client.json", "fed_server.json"):
        path = kit / "startup" / name
        if path.exists():
            check_kit(kit, f"startup/{name}")
            about: dict[str, Any] = read_json(path)
            host, _, port = about["servers"][0]["service"]["target"].rpartition(":")
            return host, int(port)
    raise ConfigError(
        f"{kit}: is not a kit (it has no startup/fed_client.json and no startup/fed_server.json)"
    )


def check_can_listen(kit: Path) -> None:
    """Raise if the coordinator of a kit cannot listen here."""
    host, port = address(kit)
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as FLARE does
            trial.bind((host, port))
    except OSError as error:
        raise ConfigError(
            f"{kit}: cannot listen at {host}:{port} ({_reason(error)}); "
            "wants an address of this machine and a port that is free"
        ) from None


def is_open(host: str, port: int) -> bool:
    """Whether a process listens at this address."""
    try:
        with socket.create_connection((host, port), _PATIENCE):
            return True
    except OSError:
        return False


def connection_problem(kit: Path) -> str | None:
    """Why a silo cannot reach its coordinator now; a certificate that can never work is a ConfigError."""
    host, port = address(kit)
    where, startup = f"the coordinator at {host}:{port}", kit / "startup"
    try:
        context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
        context.check_hostname = False  # FLARE checks who it is; here it matters who signed
        context.load_cert_chain(startup / "client.crt", startup / "client.key")
    except OSError as error:  # also what ssl raises
        raise ConfigError(
            f"{startup}: its certificate cannot be read ({_reason(error)}); "
            "wants rootCA.pem, client.crt and client.key as they came from the coordinator"
        ) from None
    try:
        with socket.create_connection((host, port), _PATIENCE) as plain, context.wrap_socket(plain) as secure:
            secure.settimeout(_OBJECTION)
            with suppress(TimeoutError):  # it waits for us to begin: all is well
                if secure.recv(1) == b"":
                    raise ssl.SSLError(1, "it hung up")
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(f"{kit}: cannot trust {where} ({error.verify_message}); {_WANTS}") from None
    except ssl.SSLError as error:
        text = f"{kit}: {where} does not accept its certificate ({_reason(error)})"
        raise ConfigError(f"{text}; {_WANTS}") from None
    except OSError as error:
        return f"{where} cannot be reached ({_reason(error)})"
    return None


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or error.strerror or "TLS failed").replace("_", " ").lower()
    return error.strerror or str(error) or type(error).__name__
