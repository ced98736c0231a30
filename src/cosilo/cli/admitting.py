"""The commands by which silos come into a federation between organisations, and out of it."""

from pathlib import Path
from typing import Annotated

import typer

from cosilo.cli.organisations import CoordinatorKit, FederationFile
from cosilo.cli.printing import say
from cosilo.errors import ConfigError

SiloKit = Annotated[Path | None, typer.Option("--kit", help="Default: kit beside the file.")]


def provision(
    file: FederationFile,
    folder: Annotated[Path | None, typer.Option("--out", help="Default: kits beside the file.")] = None,
) -> None:
    """Make the coordinator's kit: its keys, and the authority that signs the certificates of silos."""
    from cosilo.engines import flare
    from cosilo.engines.flare import admission
    from cosilo.engines.flare.certificates import Authority
    from cosilo.engines.flare.names import AUTHORITY
    from cosilo.engines.flare.party_files import read_federation

    flare.need_flare()
    settings = read_federation(file)
    kit = admission.provision(settings, file.parent / "kits" if folder is None else folder)
    where = settings.coordinator
    say(f"kit of the coordinator at {where.host}:{where.port}: {kit}")
    say(f"its authority: {Authority(kit / AUTHORITY).fingerprint}")
    say("Its keys stay here. Start it with cosilo coordinator start KIT; silos ask with cosilo request.")


def request(
    file: Annotated[Path, typer.Argument(metavar="SILO.toml", help="The silo's own file.")],
    kit: SiloKit = None,
) -> None:
    """At a silo: make a key, which stays, and a request to send to the coordinator; also to renew."""
    from cosilo.engines import flare
    from cosilo.engines.flare import admission
    from cosilo.engines.flare.names import check_silo_name
    from cosilo.engines.flare.party_files import read_settings

    flare.need_flare()
    name = check_silo_name(read_settings(file).name, str(file))
    kit = file.parent / "kit" if kit is None else kit
    asked, key = admission.ask_for(kit, name)
    path = file.parent / f"{name}.request"
    path.write_bytes(asked)
    say(f"request of silo {name}: {path}")
    say(f"its key: {key}")
    say("Send the request to the coordinator, and read the key to them by another way.")
    say(f"The private key stays in {kit}, with what comes back: cosilo receive {name}.admission --kit {kit}")


def admit(
    file: FederationFile,
    path: Annotated[Path, typer.Argument(metavar="REQUEST", help="A silo's request.")],
    kit: CoordinatorKit = None,
    yes: Annotated[bool, typer.Option("--yes", help="The key was compared; do not ask here.")] = False,
) -> None:
    """At the coordinator: let a silo in, or renew its certificate; others are not touched."""
    from cosilo.engines import flare
    from cosilo.engines.flare import admission
    from cosilo.engines.flare.names import COORDINATOR
    from cosilo.engines.flare.party_files import read_federation
    from cosilo.runs.durable_files import write_json

    flare.need_flare()
    settings = read_federation(file)
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; wants a request that cosilo request made")
    asked = path.read_bytes()
    name, key = admission.who_asks(asked, str(path), settings)
    say(f"silo {name} asks, with the key: {key}")
    if not (yes or typer.confirm(f"Is that the key that {name} read to you?")):
        raise ConfigError(f"silo {name} is not admitted, and nothing was changed; ask it for another request")
    found = admission.admit(settings, kit or file.parent / "kits" / COORDINATOR, asked, str(path))
    out = path.with_name(f"{name}.admission")
    write_json(out, found.model_dump())
    say(f"admission of silo {name}: {out}")
    say(f"the authority: {found.fingerprint}")
    say(f"Send the admission to {name}; it has no secret in it. Read the authority to them by another way.")


def receive(
    path: Annotated[Path, typer.Argument(metavar="ADMISSION", help="What the coordinator sent back.")],
    kit: SiloKit = None,
    yes: Annotated[bool, typer.Option("--yes", help="The authority was compared; do not ask here.")] = False,
) -> None:
    """At a silo: make its kit of its own key and the coordinator's answer."""
    from cosilo.engines import flare
    from cosilo.engines.flare import admission

    flare.need_flare()
    kit = path.parent / "kit" if kit is None else kit
    found = admission.read_admission(path)
    say(f"federation {found.federation}, coordinator at {found.host}:{found.port}")
    say(f"the authority: {found.fingerprint}")
    if not (yes or typer.confirm("Is that the authority that the coordinator read to you?")):
        raise ConfigError(f"{path}: is not taken, and nothing was changed; ask the coordinator for another")
    ends = admission.receive(kit, found, str(path))
    say(f"kit of silo {found.silo}: {kit}; its certificate is good until {ends}")
    say(f"Start it with cosilo join {kit} SILO.toml; if it runs already, stop it first.")


def remove(
    file: FederationFile,
    silo: Annotated[str, typer.Argument(metavar="SILO", help="The silo's name.")],
    kit: CoordinatorKit = None,
) -> None:
    """At the coordinator: let a silo in no longer; others are not touched."""
    from cosilo.engines import flare
    from cosilo.engines.flare import admission
    from cosilo.engines.flare.names import COORDINATOR
    from cosilo.engines.flare.party_files import read_federation

    flare.need_flare()
    settings = read_federation(file)
    admission.remove(kit or file.parent / "kits" / COORDINATOR, silo)
    say(f"silo {silo} is no longer admitted; its certificate is refused from now on")
    if silo in settings.members:
        say(f"Take it off members in {file} too: runs would wait for it.")
