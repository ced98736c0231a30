"""Coming into a federation and out of it: keys stay, the others are not touched."""

import json
import stat

import pytest
from typer.testing import CliRunner

from cosilo.cli.main import app
from cosilo.errors import ConfigError

pytest.importorskip("nvflare")
from cosilo.engines.flare.admission import (
    admit,
    admitted,
    ask_for,
    check_admitted,
    make_all,
    provision,
    read_admission,
    receive,
    remove,
    who_asks,
)
from cosilo.engines.flare.party_files import as_federation
from cosilo.engines.flare.processes import site_name

VALUES = {"name": "trial", "members": ["north", "south_2"], "method": {"use": "fedavg"}}


def federation(**values):
    return as_federation({**VALUES, **values}, "federation.toml")


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    return make_all(federation(), tmp_path_factory.mktemp("federation") / "kits")


@pytest.fixture(scope="module")
def coordinator(kits):
    return kits["server"].parent


def contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_silo_is_added_and_removed_and_nothing_changes_for_the_others(kits, coordinator, tmp_path):
    wider = federation(members=["north", "south_2", "west"])
    before = contents(kits["north"]) | contents(coordinator)
    request, key = ask_for(tmp_path / "kit", "west")
    assert who_asks(request, "west.request", wider) == ("west", key)
    admission = admit(wider, coordinator, request, "west.request")
    receive(tmp_path / "kit", admission, "west.admission")
    assert site_name(tmp_path / "kit") == "west"
    check_admitted(wider, kits["server"])
    after = contents(kits["north"]) | contents(coordinator)
    list_ = str(kits["server"] / "local" / "admitted.json")
    assert {path for path in before if before[path] != after[path]} == {list_}
    remove(coordinator, "west")
    assert contents(kits["north"]) | contents(coordinator) == before
    with pytest.raises(ConfigError, match="members: 'west' is not admitted; let it ask"):
        check_admitted(wider, kits["server"])
    with pytest.raises(ConfigError, match=r"silo 'west' is not admitted; admitted are: north, south_2"):
        remove(coordinator, "west")


def test_no_private_key_travels(coordinator, tmp_path):
    request, _ = ask_for(tmp_path / "kit", "north")
    admission = admit(federation(), coordinator, request, "north.request")
    assert b"PRIVATE" not in request
    assert "PRIVATE" not in admission.model_dump_json()
    (key,) = (tmp_path / "kit").rglob("*.key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_a_renewed_kit_has_a_new_key_and_only_its_certificate_is_let_in(kits, coordinator):
    kit = kits["south_2"]
    old = admitted(kits["server"])
    key, certificate = ((kit / "startup" / f"client.{one}").read_bytes() for one in ("key", "crt"))
    request, _ = ask_for(kit, "south_2")
    assert (kit / "startup" / "client.key").read_bytes() == key  # what runs goes on until the answer is there
    receive(kit, admit(federation(), coordinator, request, "r"), "a")
    assert (kit / "startup" / "client.key").read_bytes() != key
    assert (kit / "startup" / "client.crt").read_bytes() != certificate
    new = admitted(kits["server"])
    assert {name for name in new if new[name] != old[name]} == {"south_2"}


def test_an_admission_is_for_the_key_that_asked(coordinator, tmp_path):
    first, _ = ask_for(tmp_path / "kit", "north")
    answer = admit(federation(), coordinator, first, "r")
    ask_for(tmp_path / "kit", "north")  # asked again: the first request is void
    with pytest.raises(ConfigError, match="its certificate is for another key; wants the answer to the last"):
        receive(tmp_path / "kit", answer, "a.json")
    with pytest.raises(ConfigError, match="nowhere: waits for no answer; ask first: cosilo request"):
        receive(tmp_path / "nowhere", answer, "a.json")


def test_an_admission_that_another_authority_signed_is_refused(coordinator, tmp_path):
    other = provision(federation(), tmp_path / "kits")
    request, _ = ask_for(tmp_path / "kit", "north")
    ours, theirs = (admit(federation(), kit, request, "r") for kit in (coordinator, other))
    mixed = ours.model_copy(update={"certificate": theirs.certificate})
    with pytest.raises(ConfigError, match="its certificate is not signed by its authority"):
        receive(tmp_path / "kit", mixed, "a.json")
    assert ours.fingerprint != theirs.fingerprint


def test_only_members_are_admitted_and_only_with_their_own_request(coordinator, tmp_path):
    request, _ = ask_for(tmp_path / "kit", "south2")
    with pytest.raises(ConfigError) as error:
        admit(federation(), coordinator, request, "south2.request")
    assert str(error.value) == (
        "south2.request: is from 'south2' (did you mean 'south_2'?), which is not among the members "
        "(north, south_2); add it to the federation's file first, if it is to take part"
    )
    with pytest.raises(ConfigError, match="x: is not a request; wants a file that cosilo request made"):
        admit(federation(), coordinator, b"nothing", "x")
    good, _ = ask_for(tmp_path / "kit", "north")
    lines = good.splitlines()
    lines[-3] = lines[-3][::-1]
    with pytest.raises(ConfigError, match=r"x: is not (signed by the key|a request)"):
        admit(federation(), coordinator, b"\n".join(lines), "x")


def test_a_mistake_in_an_admission_is_one_line(coordinator, tmp_path):
    request, _ = ask_for(tmp_path / "kit", "north")
    values = admit(federation(), coordinator, request, "r").model_dump()
    path = tmp_path / "a.json"
    path.write_text(json.dumps(values | {"port": 0}))
    with pytest.raises(ConfigError, match=r"a.json: port: got 0; wants at least 1$"):
        read_admission(path)
    path.write_text("{")
    with pytest.raises(ConfigError, match="is not an admission; wants the file that cosilo admit made"):
        read_admission(path)

    with pytest.raises(ConfigError, match="nowhere: no such file; wants an admission that cosilo admit made"):
        read_admission(tmp_path / "nowhere")


def test_who_says_no_reads_that_nothing_was_changed(coordinator, tmp_path):
    request, _ = ask_for(tmp_path / "kit", "north")
    (tmp_path / "north.request").write_bytes(request)
    (tmp_path / "federation.toml").write_text(
        'name = "trial"\nmembers = ["north"]\nmethod = { use = "local" }\n'
    )
    typed = ["admit", str(tmp_path / "federation.toml"), str(tmp_path / "north.request")]
    with pytest.raises(ConfigError, match="silo north is not admitted, and nothing was changed; ask it for"):
        CliRunner().invoke(app, typed, input="n\n", catch_exceptions=False)
    assert not (tmp_path / "north.admission").exists()
    path = tmp_path / "a.json"
    path.write_text(json.dumps(admit(federation(), coordinator, request, "r").model_dump()))
    with pytest.raises(ConfigError, match=r"a.json: is not taken, and nothing was changed; ask the coord"):
        CliRunner().invoke(app, ["receive", str(path)], input="n\n", catch_exceptions=False)


def test_kits_are_not_written_over(kits):
    with pytest.raises(ConfigError, match="kits: is not empty; choose another folder"):
        provision(federation(), kits["north"].parent)


def test_a_federation_fits_its_kits(kits):
    check_admitted(federation(), kits["server"])
    check_admitted(federation(members=["north"], seed=3), kits["server"])  # some of them, another run


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {"members": ["north", "south2"]},
            "members: 'south2' is not admitted (did you mean 'south_2'?); let",
        ),
        ({"name": "other"}, "name: got other; the kit is made for trial; fix that, or make a new one"),
        (
            {"coordinator": {"port": 9}},
            "coordinator: got 127.0.0.1:9; the kit is made for 127.0.0.1:8002; fix",
        ),
    ],
)
def test_another_federation_does_not(kits, values, problem):
    with pytest.raises(ConfigError) as error:
        check_admitted(federation(**values), kits["server"])
    assert str(error.value).startswith(problem)


def test_a_kit_of_before_is_named(tmp_path):
    with pytest.raises(ConfigError, match="has no list of silos that are admitted; it was made by a version"):
        admitted(tmp_path)
