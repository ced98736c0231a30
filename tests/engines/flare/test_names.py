"""Names that stand in certificates, folders and addresses."""

import pytest
from pydantic import TypeAdapter, ValidationError

from cosilo.engines.flare.names import FederationName, Host, SiloName


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (
            SiloName,
            ["a", "north-1", "N_2", "x" * 64],
            ["", "-a", "a.b", "a b", "x" * 65, "Server", "admin", "Münster", "北京"],
        ),
        (FederationName, ["clinics", "a-1", "x" * 40], ["", "a_b", "-a", "x" * 41, "a\n"]),
        (
            Host,
            ["127.0.0.1", "localhost", "cosilo.example.org", "a-b"],
            ["", "0.0.0.0", "a b", "-a.org", "a..b", "x" * 65, "a/b"],
        ),
    ],
    ids=["silo", "federation", "host"],
)
def test_what_they_may_be(kind, good, bad):
    check = TypeAdapter(kind).validate_python
    assert [check(name) for name in good] == good
    for name in bad:
        with pytest.raises(ValidationError):
            check(name)
