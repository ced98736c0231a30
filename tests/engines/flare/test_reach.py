"""Whether the coordinator can be reached, in words; here it is a socket with the certificate of its kit."""

import shutil
import socket
import ssl
from contextlib import contextmanager, suppress
from threading import Event, Thread

import pytest

from cosilo.errors import ConfigError

pytest.importorskip("nvflare")
from cosilo.engines.flare.admission import make_all
from cosilo.engines.flare.party_files import as_federation
from cosilo.engines.flare.reach import address, check_can_listen, connection_problem, is_open


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def federations(tmp_path_factory):
    """Two federations with the same names at the same address."""
    values = {"name": "trial", "members": ["north"], "method": {"use": "fedavg"}}
    settings = as_federation({**values, "coordinator": {"port": free_port()}}, "federation")
    folder = tmp_path_factory.mktemp("federations")
    return [make_all(settings, folder / name) for name in ("ours", "theirs")]


@contextmanager
def coordinator(kits):
    """Listens as FLARE's server does: certificates on both sides; who has none of ours is hung up on."""
    startup = kits["server"] / "startup"
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(startup / "rootCA.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(startup / "server.crt", startup / "server.key")

    def serve():
        while not over.is_set():
            with suppress(TimeoutError):
                plain, _ = listener.accept()
                Thread(target=greet, args=(plain,), daemon=True).start()

    def greet(plain):
        with suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as secure:
            secure.recv(1)

    with socket.create_server(address(kits["server"])) as listener:
        listener.settimeout(0.05)
        over, server = Event(), Thread(target=serve)
        server.start()
        try:
            yield
        finally:
            over.set()
            server.join()


def test_all_is_well(federations):
    ours, _ = federations
    with coordinator(ours):
        assert connection_problem(ours["north"]) is None
        assert is_open(*address(ours["north"]))


def test_a_coordinator_that_is_not_started_may_come(federations):
    kit = federations[0]["north"]
    host, port = address(kit)
    assert (
        connection_problem(kit) == f"the coordinator at {host}:{port} cannot be reached (Connection refused)"
    )
    assert not is_open(host, port)


def test_a_coordinator_of_another_federation_is_not_trusted(federations):
    ours, theirs = federations
    with coordinator(theirs), pytest.raises(ConfigError) as error:
        connection_problem(ours["north"])
    assert "cannot trust the coordinator at 127.0.0.1:" in str(error.value)
    assert str(error.value).endswith("wants a kit that was made together with the coordinator's")


def test_a_coordinator_does_not_accept_a_certificate_of_another_federation(federations, tmp_path):
    """The root certificate of a federation is no secret; what counts is who signed one's own."""
    ours, theirs = federations
    mixed = shutil.copytree(theirs["north"], tmp_path / "mixed")
    shutil.copy(ours["north"] / "startup" / "rootCA.pem", mixed / "startup")
    with coordinator(ours), pytest.raises(ConfigError, match="does not accept its certificate"):
        connection_problem(mixed)


@pytest.mark.parametrize("gone", ["client.crt", "client.key", "rootCA.pem"])
def test_a_kit_without_its_certificate_is_named(federations, tmp_path, gone):
    kit = shutil.copytree(federations[0]["north"], tmp_path / "kit")
    (kit / "startup" / gone).unlink()
    with pytest.raises(ConfigError, match=r"kit/startup: its certificate cannot be read \(No such file"):
        connection_problem(kit)


def test_where_a_coordinator_can_listen(federations):
    kit = federations[0]["server"]
    check_can_listen(kit)
    with socket.create_server(address(kit)), pytest.raises(ConfigError, match="Address already in use"):
        check_can_listen(kit)


def test_a_coordinator_listens_at_an_address_of_its_machine_only(tmp_path):
    values = {"name": "trial", "members": ["north"], "method": {"use": "fedavg"}}
    settings = as_federation({**values, "coordinator": {"host": "192.0.2.77"}}, "federation")
    kits = make_all(settings, tmp_path / "kits")
    with pytest.raises(ConfigError) as error:
        check_can_listen(kits["server"])
    assert "cannot listen at 192.0.2.77:8002 (Cannot assign requested address)" in str(error.value)
