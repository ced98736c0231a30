"""The two files of a federation between organisations: every mistake is one line."""

import pytest

from cosilo.engines.flare.party_files import as_federation, read_federation, read_settings
from cosilo.errors import ConfigError

GOOD = {"name": "clinics", "members": ["north", "south"], "method": {"use": "local"}}


def test_what_the_partners_agreed_on_is_what_the_coordinator_starts_from():
    pool = {"fingerprint": "4de1", "size": 50, "classes": ["a", "b"]}
    terms = as_federation({**GOOD, "seed": 3, "vocabulary": ["a", "b"], "pool": pool}, "f.toml").terms()
    assert (terms.silos, terms.seed, terms.vocabulary) == (["north", "south"], 3, ("a", "b"))
    assert (terms.pool, terms.pool_size, terms.pool_classes) == ("4de1", 50, ("a", "b"))
    assert as_federation(GOOD, "f.toml").terms().pool is None


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"members": []}, "f.toml: members: "),
        ({"members": ["north", "North"]}, "f.toml: members: north, North; wants each name once"),
        ({"members": ["server"]}, "f.toml: members.0: "),
        ({"method": {"use": "cofed"}}, "f.toml: pool: is missing; cofed needs its fingerprint and size"),
        ({"method": {"use": "my.Method"}}, "f.toml: method.use: got 'my.Method'"),
        ({"coordinator": {"port": 0}}, "f.toml: coordinator.port: "),
        ({"secrets": 1}, "f.toml: secrets: "),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(change, line):
    with pytest.raises(ConfigError) as error:
        as_federation({**GOOD, **change}, "f.toml")
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_the_files_are_told_apart_by_their_keys(tmp_path):
    path = tmp_path / "north.toml"
    path.write_text('name = "north"\npath = "north.csv"\nlabel = "kind"\n')
    assert read_settings(path).name == "north"
    with pytest.raises(ConfigError, match=r"north\.toml: "):
        read_federation(path)
