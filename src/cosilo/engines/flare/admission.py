"""How a silo comes into a federation, and out of it.

The silo makes a key and a request (`ask_for`); the coordinator signs (`admit`) and sends the admission back,
which has no secret in it; the silo makes its kit of both (`receive`). Nothing that travels can be run, and
nobody else's kit changes. Who is admitted is a list at the coordinator, by certificate: what is not on it is
refused, whoever signed it.
"""

from pathlib import Path

from pydantic import ValidationError

from cosilo.config.explain import explain
from cosilo.config.settings import Strict
from cosilo.engines.flare.certificates import (
    Authority,
    check_certificate,
    check_key,
    digest,
    fingerprint,
    new_key,
    new_request,
    public_key,
    read_request,
    write_secret,
)
from cosilo.engines.flare.kit_manifest import adopt_kit, drop_manifest, write_manifest
from cosilo.engines.flare.kits import check_made_for, make_coordinator_kit, make_silo_kit, user_of
from cosilo.engines.flare.names import ADMIN, AUTHORITY, COORDINATOR, SERVER, FederationName, Host, SiloName
from cosilo.engines.flare.party_files import FederationSettings, Port
from cosilo.errors import ConfigError, RunError
from cosilo.runs.durable_files import read_json, write_json
from cosilo.text import guess, listing

#: In the server's kit: the digest of every certificate that may come in, by name of the silo or the user.
_ADMITTED = Path("local", "admitted.json")
#: In a silo's kit: the key of a request that has not been answered yet.
_NEW_KEY = Path("startup", "new.key")


class Admission(Strict):
    """What a coordinator gives back for a request: where it is, and certificates."""

    federation: FederationName
    silo: SiloName
    host: Host
    port: Port
    authority: str
    certificate: str

    @property
    def fingerprint(self) -> str:
        """The coordinator's authority in short."""
        return fingerprint(public_key(self.authority.encode()))


def ask_for(kit: Path, silo: str) -> tuple[bytes, str]:
    """Make a new key for a silo's kit; returns the request for a certificate, and the key in short.

    A kit that has a key keeps it until the answer is received.
    """
    key = new_key()
    kit.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_secret(kit / _NEW_KEY, key)
    return new_request(silo, key), fingerprint(key)


def waits(kit: Path) -> bool:
    """Whether a kit has a request that was not answered yet."""
    return (kit / _NEW_KEY).exists()


def who_asks(request: bytes, source: str, settings: FederationSettings) -> tuple[str, str]:
    """The silo that a request is from, which has to be a member, and its key in short."""
    name, key = read_request(request, source)
    if name not in settings.members:
        raise ConfigError(
            f"{source}: is from {name!r}{guess(name, settings.members)}, which is not among the members "
            f"({listing(settings.members)}); add it to the federation's file first, if it is to take part"
        )
    return name, fingerprint(key)


def admit(settings: FederationSettings, kit: Path, request: bytes, source: str) -> Admission:
    """Sign a request and put the silo on the list; whatever it had before is no longer good."""
    server = kit / SERVER
    check_made_for(settings, server)
    who_asks(request, source, settings)
    name, key = read_request(request, source)
    authority = Authority(kit / AUTHORITY)
    adopt_kit(kit / AUTHORITY)
    certificate = authority.for_silo(name, key)
    write_json(server / _ADMITTED, {**admitted(server), name: digest(certificate)})
    where = settings.coordinator
    return Admission(
        federation=settings.name,
        silo=name,
        host=where.host,
        port=where.port,
        authority=authority.certificate.decode(),
        certificate=certificate.decode(),
    )


def admitted(server: Path) -> dict[str, str]:
    """Who may come in, by name, with the digests of their certificates: silos, and who asks for runs."""
    path = server / _ADMITTED
    if not path.exists():
        raise ConfigError(
            f"{server}: has no list of silos that are admitted; it was made by a version of cosilo that "
            "sent keys: make a new one with cosilo provision"
        )
    try:
        return {str(name): str(one) for name, one in read_json(path).items()}
    except RunError:
        raise ConfigError(
            f"{path}: is damaged (its checksum differs); restore it from a copy of the kit"
        ) from None


def remove(kit: Path, silo: str) -> None:
    """Take a silo off the list: its certificate is refused from now on."""
    there = admitted(kit / SERVER)
    silos = sorted(name for name in there if "@" not in name)
    if silo not in silos:
        raise ConfigError(
            f"silo {silo!r} is not admitted{guess(silo, silos)}; admitted are: {listing(silos) or 'none'}"
        )
    write_json(kit / SERVER / _ADMITTED, {name: one for name, one in there.items() if name != silo})


def check_admitted(settings: FederationSettings, server: Path) -> None:
    """Raise if a federation is not the one that the coordinator's kit is of, or a silo is not admitted."""
    check_made_for(settings, server)
    there = admitted(server)
    for name in settings.members:
        if name not in there:
            raise ConfigError(
                f"members: {name!r} is not admitted{guess(name, list(there))}; "
                f"let it ask (cosilo request), then cosilo admit, or take it off members"
            )


def read_admission(path: Path) -> Admission:
    """What a coordinator gave back."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; wants an admission that cosilo admit made")
    try:
        return Admission.model_validate(read_json(path))
    except ValidationError as error:
        raise ConfigError(explain(error, str(path), Admission)) from None
    except RunError:
        raise ConfigError(f"{path}: is not an admission; wants the file that cosilo admit made") from None


def receive(kit: Path, admission: Admission, source: str) -> str:
    """Make a silo's kit of its key and what the coordinator gave back; returns until when it is good."""
    if not waits(kit):
        raise ConfigError(f"{kit}: waits for no answer; ask first: cosilo request SILO.toml --kit {kit}")
    key, certificate = (kit / _NEW_KEY).read_bytes(), admission.certificate.encode()
    authority = admission.authority.encode()
    check_key(key, str(kit / _NEW_KEY))
    ends = check_certificate(certificate, authority, admission.silo, key, source)
    drop_manifest(kit)
    make_silo_kit(kit, admission.federation, admission.silo, admission.host, admission.port)
    startup = kit / "startup"
    (startup / "rootCA.pem").write_bytes(authority)
    (startup / "client.crt").write_bytes(certificate)
    (kit / _NEW_KEY).replace(startup / "client.key")
    write_manifest(kit)
    return f"{ends:%Y-%m-%d}"


def provision(settings: FederationSettings, out: Path) -> Path:
    """Make the coordinator's kit in a new folder: its authority, its server and who asks for runs."""
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out}: is not empty; choose another folder, or use the kit in it")
    kit = out / COORDINATOR
    make_coordinator_kit(settings, kit)
    user = (kit / ADMIN / "startup" / "client.crt").read_bytes()
    write_json(kit / SERVER / _ADMITTED, {user_of(settings.name): digest(user)})
    return kit


def make_all(settings: FederationSettings, out: Path) -> dict[str, Path]:
    """Make the kits of all parties on this machine, as each would make its own; where they are, by name."""
    kit = provision(settings, out)
    for name in settings.members:
        request, _ = ask_for(out / name, name)
        receive(out / name, admit(settings, kit, request, name), name)
    return {name: out / name for name in settings.members} | {SERVER: kit / SERVER, ADMIN: kit / ADMIN}
