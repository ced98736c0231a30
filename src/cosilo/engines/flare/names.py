"""What the parties of a federation may be called: names stand in certificates, folders and addresses."""

import re
from typing import Annotated

from pydantic import AfterValidator, TypeAdapter, ValidationError

from cosilo.errors import ConfigError

#: The coordinator's kit and its parts: the server, who asks it for runs, and what signs certificates.
COORDINATOR, SERVER, ADMIN, AUTHORITY = "coordinator", "server", "admin", "authority"

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"


def _like(pattern: str, wants: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(wants)
        return text

    return AfterValidator(check)


def _free(name: str) -> str:
    if name.lower() in (COORDINATOR, SERVER, ADMIN, AUTHORITY):
        raise ValueError("another name; a part of the coordinator has this one")
    return name


_FIRST = "the first a letter or digit"
_WHY = "FLARE's certificates and folders have no others"
SiloName = Annotated[
    str,
    _like(
        r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", f"at most 64 letters a to z, digits, '_' and '-', {_FIRST}: {_WHY}"
    ),
    AfterValidator(_free),
]
FederationName = Annotated[
    str, _like(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", f"at most 40 letters a to z, digits and '-', {_FIRST}")
]
Host = Annotated[
    str,
    _like(
        rf"(?!0\.0\.0\.0$)(?=.{{1,64}}$)({_LABEL}\.)*{_LABEL}",
        "a host name or an IPv4 address at which silos reach this machine",
    ),
]


def check_silo_name(name: str, where: str) -> str:
    """The name, if a silo on FLARE can have it; the error begins with where it was found."""
    try:
        return TypeAdapter(SiloName).validate_python(name)
    except ValidationError as error:
        raise ConfigError(f"{where}: name: got {name!r}; wants {error.errors()[0]['ctx']['error']}") from None
