"""Start-up kits: what is in them, what they allow, and which federation they fit."""

import json
import stat

import pytest

from cosilo.errors import ConfigError

pytest.importorskip("nvflare")
from cosilo.engines.flare.admission import make_all
from cosilo.engines.flare.kits import CLASSES
from cosilo.engines.flare.party_files import as_federation
from cosilo.engines.flare.processes import kits_in, server_kit, site_name
from cosilo.engines.flare.session import admin_kit

VALUES = {"name": "trial", "members": ["north", "south_2"], "method": {"use": "fedavg"}}


def federation(**values):
    return as_federation({**VALUES, **values}, "federation.toml")


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    return make_all(federation(), tmp_path_factory.mktemp("federation") / "kits")


def test_every_party_has_a_kit_with_a_key_that_only_its_owner_can_read(kits):
    assert sorted(kits) == ["admin", "north", "server", "south_2"]
    for kit in kits.values():
        keys = list(kit.rglob("*.key"))
        assert len(keys) == 1
        assert stat.S_IMODE(keys[0].stat().st_mode) == 0o600
        assert not [path for path in kit.rglob("*") if path.stat().st_mode & 0o077 and path.suffix == ".key"]
    (authority,) = kits["north"].parent.rglob("rootCA.key")  # the coordinator can admit more later
    assert authority.parent == kits["server"].parent / "authority"
    assert stat.S_IMODE(authority.stat().st_mode) == 0o600


def test_a_kit_has_nothing_in_it_that_could_be_started_past_cosilo(kits):
    out = kits["north"].parent
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".default", ".crt", ".key", ".pem"}
    assert not [path for path in files if path.stat().st_mode & 0o111]


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


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"members": ["Server"]}, "members.0: got 'Server'; wants another name; a part of the coordinator"),
        ({"members": ["authority"]}, "members.0: got 'authority'; wants another name; a part of the coordin"),
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
    assert sorted(make_all(settings, tmp_path / "kits")) == ["admin", "server", "s" * 64]
