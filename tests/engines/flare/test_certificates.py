"""Certificates: what each may be used for, checked by OpenSSL and by hand."""

import shutil
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("nvflare")
from cryptography import x509

from cosilo.engines.flare.certificates import Authority, fingerprint, new_key, new_request, read_request


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.make(tmp_path_factory.mktemp("authority"), "trial")


def test_a_request_names_the_silo_and_proves_that_it_has_the_key():
    key = new_key()
    name, public = read_request(new_request("north", key), "r")
    assert (name, fingerprint(public)) == ("north", fingerprint(key))
    assert fingerprint(key) != fingerprint(new_key())
    assert len(fingerprint(key).split()) == 8


def test_a_silos_certificate_can_neither_serve_nor_sign(authority):
    _, public = read_request(new_request("north", new_key()), "r")
    found = x509.load_pem_x509_certificate(authority.for_silo("north", public))
    uses = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use.dotted_string for use in uses] == ["1.3.6.1.5.5.7.3.2"]  # client authentication
    assert found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert timedelta(days=359) < found.not_valid_after_utc - datetime.now(UTC) < timedelta(days=361)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize(("purpose", "good"), [("sslclient", True), ("sslserver", False)])
def test_openssl_agrees(authority, tmp_path, purpose, good):
    _, public = read_request(new_request("north", new_key()), "r")
    (tmp_path / "silo.crt").write_bytes(authority.for_silo("north", public))
    command = ["openssl", "verify", "-purpose", purpose, "-CAfile", authority.folder / "rootCA.pem"]
    done = subprocess.run([*command, tmp_path / "silo.crt"], capture_output=True, text=True)
    assert (done.returncode == 0) is good, done.stderr
