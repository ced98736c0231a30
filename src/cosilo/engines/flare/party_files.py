"""The two files of a federation between organisations: the coordinator's, and each silo's own."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from cosilo.config.explain import explain
from cosilo.config.recipe_file import read
from cosilo.config.resolve import known_method
from cosilo.config.settings import MethodSettings, Share, SiloSettings, Strict
from cosilo.config.silos import make_silo
from cosilo.config.source import Source, allow_imports_beside
from cosilo.coordination.agreement import Limits
from cosilo.coordination.institution import Institution
from cosilo.coordination.run_loop import Terms
from cosilo.engines.flare.names import FederationName, Host, SiloName
from cosilo.errors import ConfigError
from cosilo.protocol.allow import Allow
from cosilo.protocol.message import policy
from cosilo.silo.silo import Silo
from cosilo.text import listing

Port = Annotated[int, Field(ge=1, le=65535)]


class CoordinatorSettings(Strict):
    """Where silos reach the coordinator; it listens at that address only."""

    host: Host = "127.0.0.1"
    port: Port = 8002


class AgreedPool(Strict):
    """The pool that every silo has: what `cosilo check` says of it."""

    fingerprint: str
    size: Annotated[int, Field(ge=1)]
    classes: tuple[str, ...] = ()  # of a labelled pool


class FederationSettings(Strict):
    """The coordinator's file: what the partners agreed on, and nothing about their data."""

    name: FederationName
    members: Annotated[list[SiloName], Field(min_length=1)]
    vocabulary: list[str] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    quorum: Share = 0.5
    timeout: Annotated[float, Field(gt=0)] | None = None
    method: MethodSettings = MethodSettings()
    pool: AgreedPool | None = None
    coordinator: CoordinatorSettings = CoordinatorSettings()

    def terms(self) -> Terms:
        """What the coordinator starts from."""
        return Terms(
            silos=self.members,
            seed=self.seed,
            quorum=self.quorum,
            timeout=self.timeout,
            pool=None if self.pool is None else self.pool.fingerprint,
            pool_size=0 if self.pool is None else self.pool.size,
            pool_classes=() if self.pool is None else self.pool.classes,
            vocabulary=None if self.vocabulary is None else tuple(self.vocabulary),
        )


def read_federation(path: Path) -> FederationSettings:
    """The coordinator's file, or one line for each mistake in it."""
    return as_federation(read(path), str(path))


def as_federation(values: dict[str, Any], source: str) -> FederationSettings:
    """The same from its values."""
    if values.keys() & {"silo", "simulation"} and "members" not in values:
        raise ConfigError(
            f"{source}: is a recipe, which runs on one machine (cosilo run); between organisations there is "
            "a file with name, members and coordinator, and one for each silo: docs/deploy.md"
        )
    try:
        found = FederationSettings.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, source, FederationSettings)) from None
    if len({name.lower() for name in found.members}) < len(found.members):
        raise ConfigError(f"{source}: members: {listing(found.members)}; wants each name once")
    method = known_method(found.method, source)
    if method.needs_pool and found.pool is None:
        raise ConfigError(f"{source}: pool: is missing; {method.name} needs its fingerprint and size")
    return found


def read_settings(path: Path) -> SiloSettings:
    """A silo's own file, or one line for each mistake in it."""
    try:
        return SiloSettings.model_validate(read(path))
    except ValidationError as error:
        raise ConfigError(explain(error, str(path), SiloSettings)) from None


def read_silo(path: Path) -> Silo | Institution:
    """The silo that its own file describes, with its data."""
    source = Source(str(path), path.parent)
    settings = read_settings(path)
    allow_imports_beside(source)
    silo = make_silo(settings, source)
    if silo.allow is None:  # somebody else coordinates: there are limits whether its file names them or not
        silo.allow = Allow()
    return silo


def read_limits(path: Path) -> Limits:
    """Read what a silo's own file allows now; its data is not read."""
    settings = read_settings(path)
    return Limits(policy(settings.shares, f"silo {settings.name!r}"), settings.allow or Allow())
