"""Start-up kits: what is in them, what they allow, and which federation they fit."""

import json
import stat

import pytest

from cosilo.errors import ConfigError

pytest.importorskip("nvflare")
from cosilo.engines.flare.kits import CLASSES, check_matches_kit, provision
from cosilo.engines.flare.party_files import as_federation
from cosilo.engines.flare.processes import kits_in, server_kit, site_name
from cosilo.engines.flare.session import admin_kit

VALUES = {"name": "trial", "members": ["north", "south_2"], "method": {"use": "fedavg"}}


def federation(**values):
    return as_federation({**VALUES, **values}, "federation.toml")


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    return provision(federation(), tmp_path_factory.mktemp("federation") / "kits")


def test_every_party_has_a_kit_with_a_key_that_only_its_owner_can_read(kits):
    assert sorted(kits) == ["admin", "north", "server", "south_2"]
    for kit in kits.values():
        keys = list(kit.rglob("*.key"))
        assert len(keys) == 1
        assert stat.S_IMODE(keys[0].stat().st_mode) == 0o600
    assert not list(kits["north"].parent.rglob("*rootCA.key"))  # nobody can make more certificates later


def test_kits_are_found_by_their_folder(kits):
    out = kits["north"].parent
    assert site_name(kits["north"]) == "north"
    assert server_kit(out) == server_kit(out / "coordinator") == kits["server"]
    assert admin_kit(out / "coordinator") == admin_kit(kits["server"]) == kits["admin"]
    assert kits_in(out) == sorted([kits["server"], kits["north"], kits["south_2"]])
    with pytest.raises(ConfigError, match=r"north: is not a coordinator's kit \(it has no"):
        server_kit(kits["north"])
    with pytest.raises(ConfigError, match=r"server: is not a silo's kit \(it has no"):
        site_name(kits["server"])


@pytest.mark.parametrize("name", ["north", "server"])
def test_a_kit_allows_a_job_of_cosilo_and_nothing_else(kits, name):
    resources = json.loads((kits[name] / "local" / "resources.json").read_text())
    assert resources["class_allow_list"] == CLASSES
    assert resources["class_list_enforcement_mode"] == "enforce"
    assert resources["allow_log_streaming"] is False
    assert not [one for one in resources["components"] if "log" in one["id"]]
    roles = json.loads((kits[name] / "local" / "authorization.json").read_text())["permissions"]
    for rights in roles.values():
        assert {rights[key] for key in ("byoc", "shell_commands", "download_job")} == {"none"}
    del roles["lead"]
    assert {right for rights in roles.values() for right in rights.values()} == {"none"}


def test_kits_are_not_written_over(kits):
    with pytest.raises(ConfigError, match="kits: is not empty; choose another folder"):
        provision(federation(), kits["north"].parent)


def test_a_federation_fits_its_kits(kits):
    check_matches_kit(federation(), kits["server"])
    check_matches_kit(federation(members=["north"], seed=3), kits["server"])  # some of them, another run


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"members": ["north", "south2"]}, "members: 'south2' has no kit (did you mean 'south_2'?)"),
        ({"name": "other"}, "name: got other; the kits are made for trial"),
        ({"coordinator": {"port": 9}}, "coordinator: got 127.0.0.1:9; the kits are made for 127.0.0.1:8002"),
    ],
)
def test_another_federation_does_not(kits, values, problem):
    with pytest.raises(ConfigError) as error:
        check_matches_kit(federation(**values), kits["server"])
    assert str(error.value) == f"{problem}; fix that, or make new kits for everybody with cosilo provision"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"members": ["Server"]}, "members.0: got 'Server'; wants another name; a part of the coordinator"),
        ({"members": ["a.b"]}, "members.0: got 'a.b'; wants at most 64 letters a to z, digits, '_' and '-'"),
        ({"members": ["a", "A"]}, "members: a, A; wants each name once"),
        ({"members": []}, "members: "),
        (
            {"name": "my_federation"},
            "name: got 'my_federation'; wants at most 40 letters a to z",
        ),
        ({"coordinator": {"host": "0.0.0.0"}}, "coordinator.host: got '0.0.0.0'; wants a host name or"),
        ({"coordinator": {"host": "::1"}}, "coordinator.host: got '::1'; wants a host name or an IPv4"),
        ({"coordinator": {"port": 0}}, "coordinator.port: got 0; wants at least 1"),
        ({"method": {"use": "fedavgg"}}, "method.use: got 'fedavgg' (did you mean 'fedavg'?); wants "),
        ({"method": {"use": "os.system"}}, "method.use: got 'os.system'; wants "),
        ({"method": {"use": "cofed"}}, "pool: is missing; cofed needs its fingerprint and size"),
    ],
)
def test_a_mistake_in_the_coordinators_file_is_one_line(values, problem):
    with pytest.raises(ConfigError) as error:
        federation(**values)
    assert str(error.value).startswith(f"federation.toml: {problem}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("host", ["localhost", "10.0.0.1", "coordinator.example.org"])
def test_the_longest_names_that_are_allowed_can_be_provisioned(tmp_path, host):
    settings = federation(name="n" * 40, members=["s" * 64], coordinator={"host": host})
    assert sorted(provision(settings, tmp_path / "kits")) == ["admin", "server", "s" * 64]
