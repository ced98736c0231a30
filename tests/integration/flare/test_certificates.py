"""Who gets in: the parties that kits were made for, and nobody else."""

import shutil
import socket
import ssl
import sys
import time

import pytest

from cosilo.cli.main import main

pytest.importorskip("nvflare")
from cosilo.engines.flare import processes
from cosilo.engines.flare.admission import make_all
from cosilo.engines.flare.kit_manifest import drop_manifest
from cosilo.engines.flare.reach import address
from cosilo.engines.flare.session import session


@pytest.fixture
def foreign(deployment, tmp_path):
    """Kits of another federation with the same names and the same address."""
    return make_all(deployment.settings, tmp_path / "foreign")


def hung_up_on(kit, certificate):
    """Whether the coordinator ends a connection to it, made with a certificate or none, by itself."""
    context = ssl.create_default_context(cafile=str(kit / "startup" / "rootCA.pem"))
    context.check_hostname = False
    if certificate is not None:
        startup = certificate / "startup"
        context.load_cert_chain(startup / "client.crt", startup / "client.key")
    try:
        with socket.create_connection(address(kit), 5) as plain, context.wrap_socket(plain) as secure:
            assert secure.version() == "TLSv1.3"
            secure.settimeout(1.0)
            return secure.recv(1) == b""
    except ssl.SSLError:
        return True
    except TimeoutError:
        return False


def test_a_connection_needs_a_certificate_of_this_federation(deployment, foreign):
    kit = deployment.kits["tree"]
    assert not hung_up_on(kit, certificate=kit)
    assert hung_up_on(kit, certificate=None)
    assert hung_up_on(kit, certificate=foreign["tree"])


def test_whoever_joins_with_a_foreign_kit_is_told_so(deployment, foreign, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["cosilo", "join", str(foreign["tree"]), str(deployment.file("tree"))])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    host, port = address(foreign["tree"])
    assert f"error: {foreign['tree']}: cannot trust the coordinator at {host}:{port} (self-signed" in told
    assert "wants a kit that was made together with the coordinator's" in told
    assert processes.running(foreign["tree"]) == []


@pytest.mark.slow
def test_a_client_of_flare_with_a_foreign_certificate_does_not_get_in(deployment, foreign):
    """It trusts our coordinator, and has a silo's name; ours stays connected."""
    kit = foreign["tree"]
    shutil.copy(deployment.kits["tree"] / "startup" / "rootCA.pem", kit / "startup")
    drop_manifest(kit)  # which anyone can who changes files on purpose
    before = (deployment.folder / "server.log").read_text().count("tree")
    try:
        processes.start_site(kit, deployment.file("tree"), deployment.folder / "nowhere")
        time.sleep(15)
        said = (kit / processes.CONSOLE).read_text()
        assert "AuxRunner" in said  # it is past its own start
        assert "Successfully registered" not in said
        assert (deployment.folder / "server.log").read_text().count("tree") == before
        with session(deployment.coordinator) as flare:
            assert "tree" in flare.connected()
    finally:
        processes.stop(kit)
