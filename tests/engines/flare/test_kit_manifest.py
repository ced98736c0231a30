"""A kit knows what its files were when it was made: damage is named before anything starts."""

import shutil
from pathlib import Path

import pytest

from cosilo.errors import ConfigError

pytest.importorskip("nvflare")
from cosilo.engines.flare.admission import admit, ask_for, check_admitted, make_all, receive
from cosilo.engines.flare.certificates import Authority
from cosilo.engines.flare.kit_manifest import adopt_kit, check_kit
from cosilo.engines.flare.kits import confine_server, confine_site
from cosilo.engines.flare.party_files import FederationSettings, as_federation
from cosilo.engines.flare.processes import server_kit, site_name
from cosilo.engines.flare.reach import address
from cosilo.engines.flare.session import session

VALUES = {"name": "trial", "members": ["north", "south"], "method": {"use": "fedavg"}}


@pytest.fixture(scope="module")
def settings() -> FederationSettings:
    return as_federation(VALUES, "federation.toml")


@pytest.fixture(scope="module")
def made(settings, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("federation") / "kits"
    make_all(settings, out)
    return out


@pytest.fixture
def kits(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "kits")
    return tmp_path / "kits"


def open_session(kit: Path) -> None:
    with session(kit):
        pytest.fail("nobody listens there")


#: What reads each part of the kits, by the part.
READERS = {
    "north": lambda kit, settings: site_name(kit),
    "coordinator/server": lambda kit, settings: server_kit(kit),
    "coordinator/admin": lambda kit, settings: open_session(kit),
    "coordinator/authority": lambda kit, settings: Authority(kit).fingerprint,
}
#: Written at every start, or with a checksum of its own.
FREE = {"resources.json", "authorization.json", "admitted.json"}


@pytest.mark.parametrize("part", READERS)
def test_every_file_is_verified_before_it_is_used(kits, settings, part):
    kit = kits / part
    files = [path for path in sorted(kit.rglob("*")) if path.is_file() and path.name not in FREE]
    assert len(files) >= 3
    for path in files:
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ConfigError, match=rf"{path}: is damaged \(its checksum differs\); "):
            READERS[part](kit, settings)
        if path.name != "manifest.json":
            path.unlink()
            with pytest.raises(ConfigError, match=rf"{path}: is missing; |: is not a "):
                check_kit(kit)
        path.write_bytes(content)
    check_kit(kit)


def test_every_use_of_the_servers_part_verifies_it(kits, settings):
    server = kits / "coordinator/server"
    path = server / "local/federation.json"
    path.write_text(path.read_text().replace("127.0.0.1", "127.0.0.3"))
    with pytest.raises(ConfigError, match=r"federation\.json: is damaged"):
        check_admitted(settings, server)
    path = kits / "north/startup/fed_client.json"
    path.write_text(path.read_text().replace("8002", "8003"))
    with pytest.raises(ConfigError, match=r"fed_client\.json: is damaged"):
        address(kits / "north")


def test_what_every_start_writes_again_is_no_damage(kits):
    confine_site(kits / "north")
    confine_server(kits / "coordinator/server")
    for name in ("resources.json", "authorization.json"):
        (kits / "north/local" / name).write_text("{}")
    assert site_name(kits / "north") == "north"


def test_a_renewed_certificate_is_no_damage(kits, settings):
    kit = kits / "north"
    request, _ = ask_for(kit, "north")
    assert site_name(kit) == "north"  # what runs goes on until the answer is there
    admission = admit(settings, kits / "coordinator", request, "north.request")
    receive(kit, admission, "north.admission")
    check_kit(kit)
    key = kit / "startup/client.key"
    key.write_bytes(key.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"client\.key: is damaged"):
        site_name(kit)
    request, _ = ask_for(kit, "north")
    receive(kit, admit(settings, kits / "coordinator", request, "north.request"), "north.admission")
    assert site_name(kit) == "north"


def test_a_key_that_was_damaged_while_its_request_was_away_is_named(kits, settings):
    request, _ = ask_for(kits / "north", "north")
    admission = admit(settings, kits / "coordinator", request, "north.request")
    key = kits / "north/startup/new.key"
    content = bytearray(key.read_bytes())
    content[400] ^= 2
    key.write_bytes(content)
    with pytest.raises(ConfigError, match=r"new\.key: is damaged, it is no private key"):
        receive(kits / "north", admission, "north.admission")


def test_a_kit_of_an_earlier_version_gets_a_list(kits):
    kit = kits / "north"
    (kit / "manifest.json").unlink()
    assert site_name(kit) == "north"
    adopt_kit(kit)
    path = kit / "startup/rootCA.pem"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ConfigError, match=rf"rootCA\.pem: is damaged .* delete {kit / 'manifest.json'}"):
        site_name(kit)
    adopt_kit(kit)  # never over a list that is there
    with pytest.raises(ConfigError):
        site_name(kit)
