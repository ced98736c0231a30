"""Signatures under seals: what counts is signed by the right party, about this exchange of this run."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest

from cosilo import Local
from cosilo.engines.flare.kit_settings import KitSettings, write_kit_settings
from cosilo.errors import RunError
from cosilo.protocol.carrier import Ask, Failure, FailureKind
from cosilo.protocol.contract import Contract
from cosilo.protocol.seal import Seal
from cosilo.protocol.wire import encode
from cosilo.runs.durable_files import read_lines

pytest.importorskip("nvflare")
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from nvflare.lighter.utils import Identity, generate_cert

from cosilo.engines.flare import site as module
from cosilo.engines.flare.carrier import FlareCarrier
from cosilo.engines.flare.certificates import (
    Authority,
    _pem,
    _private,
    digest,
    new_key,
    new_request,
    public_key,
    read_request,
    write_secret,
)
from cosilo.engines.flare.signing import SealsOfCoordinator, SealsOfSilo, Signatory, is_coordinator, verify
from cosilo.engines.flare.site import Site

CONTRACT = Contract.of(Local())
NOTHING = encode({})
RUN = "a-run"


class Federation:
    """An authority, and parties with keys and certificates that it signed."""

    def __init__(self, folder):
        self.authority = Authority.make(folder, "trial")
        self.keys = {name: new_key() for name in ("server", "north", "south", "admin")}
        self.certificates = {name: self.for_silo(name, self.keys[name]) for name in ("north", "south")}
        self.certificates["server"] = self.authority.for_server("127.0.0.1", self.keys["server"]).decode()
        self.certificates["admin"] = self.authority.for_admin("admin", self.keys["admin"]).decode()

    def for_silo(self, name, key):
        return self.authority.for_silo(name, read_request(new_request(name, key), "r")[1]).decode()

    def signatory(self, name):
        return Signatory(self.keys[name], self.certificates[name].encode())

    def silo(self, name="north", run=RUN):
        """The silo's end; it knows the coordinator by its certificate."""
        return SealsOfSilo(run, name, self.signatory(name), self.certificates["server"])

    def coordinator(self, run=RUN, contract=CONTRACT.hash, admitted=None):
        """The coordinator's end; `admitted` are certificates by silo."""
        known = self.certificates if admitted is None else admitted
        digests = {name: digest(one.encode()) for name, one in known.items()}
        return SealsOfCoordinator(run, contract, self.signatory("server"), digests.get)


@pytest.fixture(scope="module")
def parties(tmp_path_factory):
    return Federation(tmp_path_factory.mktemp("authority"))


SEAL = Seal(4, "ab" * 32, "cd" * 32, 7, "ef" * 32)


def changed(text, place=5):
    """The same with another character that such a text may have there."""
    other = "1" if text[place] == "0" else "0"
    return text[:place] + other + text[place + 1 :]


# ---------------------------------------------------------------------- what is signed


def test_both_sign_a_seal_and_know_each_others_signature(parties):
    north, coordinator = parties.silo(), parties.coordinator()
    signed = north.sign(SEAL, CONTRACT.hash)
    both = coordinator.accept("north", signed, north.certificate)
    assert replace(both, silo="", coordinator="") == SEAL
    assert both.silo == signed.silo != ""
    assert north.problem(both, CONTRACT.hash) is None
    statement = SEAL.statement(RUN, CONTRACT.hash, "north")
    assert verify(parties.certificates["server"], statement, both.coordinator)
    assert not verify(parties.certificates["server"], statement, both.silo)


@pytest.mark.parametrize("field", ["number", "request", "reply", "failed", "length", "head"])
def test_every_field_of_a_seal_is_signed(parties, field):
    north, coordinator = parties.silo(), parties.coordinator()
    signed = coordinator.accept("north", north.sign(SEAL, CONTRACT.hash), north.certificate)
    value = getattr(signed, field)
    other = changed(value) if isinstance(value, str) else value + 1
    forged = replace(signed, **{field: other})
    assert north.problem(forged, CONTRACT.hash) == "is not signed by this silo"
    assert coordinator.accept("north", forged, north.certificate) is None


def test_a_signature_of_anybody_else_does_not_count(parties):
    north, coordinator = parties.silo(), parties.coordinator()
    signed = coordinator.accept("north", north.sign(SEAL, CONTRACT.hash), north.certificate)
    statement = SEAL.statement(RUN, CONTRACT.hash, "north")
    for name in ("north", "south", "admin"):
        forged = replace(signed, coordinator=parties.signatory(name).sign(statement))
        assert north.problem(forged, CONTRACT.hash) == "is not signed by the coordinator"
    for name in ("server", "south", "admin"):
        forged = replace(signed, silo=parties.signatory(name).sign(statement))
        assert north.problem(forged, CONTRACT.hash) == "is not signed by this silo"
        # With its own certificate it is not the silo that was admitted under that name.
        for certificate in (parties.certificates[name], north.certificate):
            assert coordinator.accept("north", forged, certificate) is None


@pytest.mark.parametrize("signature", ["", "no base64!", "AAAA", "é", "A" * 344])
def test_a_signature_that_is_none_does_not_count(parties, signature):
    north, coordinator = parties.silo(), parties.coordinator()
    signed = coordinator.accept("north", north.sign(SEAL, CONTRACT.hash), north.certificate)
    assert north.problem(replace(signed, silo=signature), CONTRACT.hash) == "is not signed by this silo"
    forged = replace(signed, coordinator=signature)
    assert north.problem(forged, CONTRACT.hash) == "is not signed by the coordinator"
    assert coordinator.accept("north", replace(signed, silo=signature), north.certificate) is None


# ---------------------------------------------------------------------- replayed signatures


def test_signatures_of_another_run_contract_number_or_silo_do_not_count(parties):
    """All of them are genuine, of the same keys."""
    north, other = parties.silo(), "0" * 64
    for run, contract in (("b-run", CONTRACT.hash), (RUN, other)):
        signed = parties.silo(run=run).sign(SEAL, contract)
        both = parties.coordinator(run, contract).accept("north", signed, north.certificate)
        assert both is not None
        assert parties.coordinator().accept("north", both, north.certificate) is None
        assert north.problem(both, CONTRACT.hash) == "is not signed by this silo"
        # Nor does the coordinator's under a statement that the silo did sign.
        mixed = replace(north.sign(SEAL, CONTRACT.hash), coordinator=both.coordinator)
        assert north.problem(mixed, CONTRACT.hash) == "is not signed by the coordinator"
    south = parties.silo("south")
    both = parties.coordinator().accept("south", south.sign(SEAL, CONTRACT.hash), south.certificate)
    assert both is not None
    assert north.problem(both, CONTRACT.hash) == "is not signed by this silo"
    for certificate in (south.certificate, north.certificate):
        assert parties.coordinator().accept("north", both, certificate) is None
    earlier = replace(north.sign(replace(SEAL, number=3), CONTRACT.hash), number=4)
    assert parties.coordinator().accept("north", earlier, north.certificate) is None


# ---------------------------------------------------------------------- who is the coordinator


def test_a_certificate_is_the_coordinators_if_its_authority_made_it_for_a_server(parties, tmp_path):
    authority = parties.authority.certificate.decode()
    assert is_coordinator(parties.certificates["server"], authority)
    for name in ("north", "admin"):
        assert not is_coordinator(parties.certificates[name], authority)
    assert not is_coordinator(authority, authority)
    for text in ("", "text", parties.certificates["server"][:300], "é"):
        assert not is_coordinator(text, authority)
    other = Authority.make(tmp_path, "trial")
    foreign = other.for_server("127.0.0.1", parties.keys["server"]).decode()
    assert not is_coordinator(foreign, authority)
    assert is_coordinator(foreign, other.certificate.decode())


@pytest.mark.parametrize(("begins", "ends", "good"), [(-20, -1, False), (1, 20, False), (-1, 1, True)])
def test_a_coordinators_certificate_has_to_be_good_today(parties, begins, ends, good):
    key, now = parties.keys["server"], datetime.now(UTC)
    made = generate_cert(
        Identity("127.0.0.1", "cosilo"),
        Identity("trial"),
        _private(parties.authority._read("rootCA.key")),
        public_key(parties.certificates["server"].encode()),
        not_valid_before=now + timedelta(days=begins),
        not_valid_after=now + timedelta(days=ends),
        extra_extensions=[(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)],
    )
    certificate = _pem(made).decode()
    statement = SEAL.statement(RUN, CONTRACT.hash, "north")
    assert verify(certificate, statement, Signatory(key, certificate.encode()).sign(statement))
    assert is_coordinator(certificate, parties.authority.certificate.decode()) is good


@pytest.mark.parametrize("content", [None, b"", b"text", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_key_that_cannot_sign_is_named(parties, tmp_path, content):
    (tmp_path / "startup").mkdir()
    (tmp_path / "startup" / "client.crt").write_text(parties.certificates["north"])
    if content is not None:
        (tmp_path / "startup" / "client.key").write_bytes(content)
    with pytest.raises(RunError, match=r"startup/client\.key: cannot be used for signing"):
        Signatory.of(tmp_path, "client")


# ---------------------------------------------------------------------- replies on their way


class Proxy:
    """A silo as FLARE shows it to the coordinator: signs honestly, and then something may happen."""

    def __init__(self, seals, change=lambda said: said, **facts):
        self._seals, self._change, self._facts = seals, change, facts

    def __call__(self, timeout):
        return self

    def answer(self, number, step, body, contract, last=None):
        request, reply = (sha256(one).hexdigest() for one in (body, b"votes"))
        seal = replace(Seal(number, request, reply, 5, "ab"), **self._facts)
        seal = self._seals.sign(seal, contract)
        said = {"reply": b"votes", "seconds": 0.5, "seal": seal.values()}
        return self._change({**said, "certificate": self._seals.certificate})


def replied(parties, admitted=None, **silos):
    """What a coordinator makes of the answers to one request."""
    carrier = FlareCarrier(silos, seals=parties.coordinator(admitted=admitted))
    answers = carrier.call(list(silos), lambda name: Ask(4, "label", b"please", CONTRACT.hash), None)
    return {answer.silo: answer for answer in answers}


def rejected(what):
    text = f"silo 'north': sent {what} where a reply is expected"
    return Failure(FailureKind.UNREADABLE, text)


UNSIGNED = rejected("a reply whose seal it did not sign")
NOT_ABOUT_IT = rejected("a reply with a seal that is not about it")


def sealed_again(said, reply):
    """Another reply, and the seal that goes with it, but for the signature."""
    return {**said, "reply": reply, "seal": {**said["seal"], "reply": sha256(reply).hexdigest()}}


CHANGES = {
    "another reply": (lambda said: {**said, "reply": b"other"}, NOT_ABOUT_IT),
    "another reply and its digest": (lambda said: sealed_again(said, b"other"), UNSIGNED),
    "another head": (lambda said: {**said, "seal": {**said["seal"], "head": "cd"}}, UNSIGNED),
    "another signature": (
        lambda said: {**said, "seal": {**said["seal"], "silo": changed(said["seal"]["silo"])}},
        UNSIGNED,
    ),
    "no signature": (
        lambda said: {**said, "seal": {key: one for key, one in said["seal"].items() if key != "silo"}},
        UNSIGNED,
    ),
    "no seal": (lambda said: {key: one for key, one in said.items() if key != "seal"}, NOT_ABOUT_IT),
    "no certificate": (
        lambda said: {key: one for key, one in said.items() if key != "certificate"},
        UNSIGNED,
    ),
    "a long certificate": (lambda said: {**said, "certificate": said["certificate"] * 50}, UNSIGNED),
    "no text for a certificate": (lambda said: {**said, "certificate": 7}, UNSIGNED),
    "a failure instead": (
        lambda said: {"failure": ["error", "no"], "seal": said["seal"], "certificate": said["certificate"]},
        NOT_ABOUT_IT,
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_reply_that_was_changed_after_it_was_signed_is_rejected_and_its_silo_named(parties, case):
    change, expected = CHANGES[case]
    found = replied(parties, north=Proxy(parties.silo(), change), south=Proxy(parties.silo("south")))
    assert found["north"].content == expected
    assert found["north"].seal is None
    assert found["south"].content == b"votes"
    assert parties.silo("south").problem(found["south"].seal, CONTRACT.hash) is None


@pytest.mark.parametrize(
    "facts",
    [{"number": 3}, {"request": sha256(b"other").hexdigest()}, {"failed": 1}],
    ids=lambda facts: next(iter(facts)),
)
def test_a_signed_seal_of_another_exchange_is_rejected(parties, facts):
    assert replied(parties, north=Proxy(parties.silo(), **facts))["north"].content == NOT_ABOUT_IT


def test_a_signed_reply_of_another_run_or_silo_is_rejected(parties):
    assert replied(parties, north=Proxy(parties.silo(run="b-run")))["north"].content == UNSIGNED
    assert replied(parties, north=Proxy(parties.silo("south")))["north"].content == UNSIGNED


def test_a_silo_whose_certificate_was_replaced_is_rejected(parties):
    """The key that it was admitted with before is no longer good; another silo stays."""
    replaced = {**parties.certificates, "north": parties.for_silo("north", new_key())}
    silos = {name: Proxy(parties.silo(name)) for name in ("north", "south")}
    found = replied(parties, admitted=replaced, **silos)
    assert found["north"].content == UNSIGNED
    assert found["south"].content == b"votes"
    removed = {"south": parties.certificates["south"]}
    assert replied(parties, admitted=removed, north=silos["north"])["north"].content == UNSIGNED


# ---------------------------------------------------------------------- requests on their way


@pytest.fixture
def site(parties, tmp_path, monkeypatch):
    """Silo `north` with its kit in a job of the coordinator."""
    monkeypatch.setattr(module, "_asked_by_coordinator", lambda: True)
    return open_site(parties, tmp_path)


def open_site(parties, folder, certificate=None):
    kit = folder / "kit"
    if not kit.exists():
        (kit / "local").mkdir(parents=True)
        (kit / "startup").mkdir()
        write_secret(kit / "startup" / "client.key", parties.keys["north"])
        (kit / "startup" / "client.crt").write_text(parties.certificates["north"])
        (kit / "startup" / "rootCA.pem").write_bytes(parties.authority.certificate)
        data = "\n".join(f"{n % 7},{n % 5},{'ab'[n % 2]}" for n in range(40))
        (folder / "north.csv").write_text(f"x,y,kind\n{data}\n")
        (folder / "north.toml").write_text(
            'name = "north"\npath = "north.csv"\nlabel = "kind"\nshares = ["metrics"]\n'
            'learner = { use = "sklearn.tree.DecisionTreeClassifier" }\n'
        )
        settings = KitSettings(runs=str(folder / "runs"), silo=str(folder / "north.toml"))
        write_kit_settings(kit, settings)
    site = Site(RUN, CONTRACT.values(), certificate or parties.certificates["server"])
    site._steps.submit(site._open, "north", kit).result()
    return site


def asked(site, number, step, last=None):
    """The answer, when it is there."""
    site.answer(number, step, NOTHING, CONTRACT.hash, last)
    site._answers[number].result(30)
    return site.wait(number)


def accepted(parties, said):
    """The seal that a coordinator has of an answer."""
    seal = parties.coordinator().accept("north", Seal.read(said["seal"]), said["certificate"])
    assert seal is not None
    return seal


def changed_seals(seal):
    """A seal as it may come, with what the silo says to it."""
    values = seal.values()
    for field in ("silo", "head", "length", "reply"):
        value = values[field]
        other = value + 1 if isinstance(value, int) else changed(value)
        yield {**values, field: other}, "is not signed by this silo"
    forged = {**values, "coordinator": changed(values["coordinator"])}
    yield forged, "is not signed by the coordinator"
    yield (
        {key: one for key, one in values.items() if key != "coordinator"},
        "is not signed by the coordinator",
    )
    for anything in ({**values, "more": 1}, {**values, "length": -1}, {**values, "head": 7}, [], "seal"):
        yield anything, "is not one"


def test_a_request_whose_seal_was_changed_on_its_way_is_refused_and_nothing_is_computed(
    parties, site, tmp_path, monkeypatch
):
    computed = []
    compute = site._boundary._compute
    monkeypatch.setattr(site._boundary, "_compute", lambda ask: computed.append(ask.number) or compute(ask))
    seal = accepted(parties, asked(site, 1, "hello"))
    told = []
    for last, why in changed_seals(seal):
        said = asked(site, 2, "train", last)
        told.append(f"silo 'north': the seal that came with request 2 {why}")
        assert said == {"failure": ["refused", told[-1]]}
    assert computed == [1]
    lines = read_lines(tmp_path / "runs" / RUN / "audit.jsonl")
    assert [line["failure"] for line in lines if "failure" in line] == told
    assert len([line for line in lines if line["way"] == "in"]) == 1 + len(told)
    # What was refused does not stand in the way of the request as it was sent.
    said = asked(site, 2, "train", seal.values())
    assert accepted(parties, said).number == 2
    assert computed == [1, 2]


def test_a_failure_is_signed_too(parties, site):
    seal = accepted(parties, asked(site, 1, "hello"))
    said = asked(site, 2, "steal", seal.values())
    assert said["failure"] == ["refused", "silo 'north': local has no step 'steal'"]
    failed = accepted(parties, said)
    line = sha256(said["failure"][1].encode()).hexdigest()
    assert (failed.number, failed.failed, failed.reply) == (2, 1, line)
    assert "reply" in asked(site, 3, "train", failed.values())


def test_an_older_copy_of_a_record_is_noticed_by_what_the_coordinator_signed(parties, site, tmp_path):
    """The copy is of after request 1 was answered; a request that was refused came since."""
    record = tmp_path / "runs" / RUN
    seal = accepted(parties, asked(site, 1, "hello"))
    shutil.copytree(record, tmp_path / "older")
    last = accepted(parties, asked(site, 2, "steal", seal.values()))
    site.close()
    shutil.rmtree(record)
    shutil.copytree(tmp_path / "older", record)
    again = open_site(parties, tmp_path)
    said = asked(again, 3, "train", last.values())
    kind, text = said.pop("failure")
    assert kind == "refused"
    assert "an older copy was put back, or it was rewritten" in text
    assert said == {}  # without a seal, which would make the coordinator forget
    assert "reply" in asked(again, 3, "train", seal.values())


@pytest.mark.parametrize("name", ["north", "admin", "other"])
def test_a_job_without_the_coordinators_certificate_is_refused(parties, tmp_path, monkeypatch, name):
    monkeypatch.setattr(module, "_asked_by_coordinator", lambda: True)
    certificate = parties.certificates.get(name)
    if certificate is None:
        other = Authority.make(tmp_path / "other", "trial")
        certificate = other.for_server("127.0.0.1", parties.keys["server"]).decode()
    site = open_site(parties, tmp_path, certificate)
    told = "silo 'north': the job's certificate is not that of the federation's coordinator"
    assert asked(site, 1, "hello") == {"failure": ["refused", told]}
    assert not (tmp_path / "runs" / RUN / "coordinator.crt").exists()
