"""Seals on processes of FLARE: what was changed after it was signed does not count."""

import pytest

from cosilo.protocol.carrier import Ask
from cosilo.protocol.wire import encode
from cosilo.runs.durable_files import read_lines

pytest.importorskip("nvflare")

WHERE = "silo 'svm': sent a reply"
LIES = {
    3: f"{WHERE} whose seal it did not sign where a reply is expected",  # it came without a certificate
    4: f"{WHERE} with a seal that is not about it where a reply is expected",
    5: f"{WHERE} whose seal it did not sign where a reply is expected",
}


def test_replies_that_were_changed_after_they_were_signed_are_rejected_and_the_run_goes_on(deployment):
    deployment.write_cofed(svm='{ use = "tricks.resigner" }')
    run = deployment.submit(("tree", "svm", "net"), "cofed", quorum=0.5)
    assert run.status == "finished"
    failures = {one["ask"]: (one["silo"], one["kind"], one["text"]) for one in run.result["failures"]}
    assert failures == {ask: ("svm", "unreadable", text) for ask, text in LIES.items()}
    assert sorted(run.scores("federated")) == ["net", "tree"]
    assert [vote["voters"] for vote in run.result["voting"]] == [["tree", "net"]]


CHANGED = ["coordinator", "silo", "head", "request"]


@pytest.mark.slow
def test_a_request_whose_seal_was_changed_on_its_way_is_refused_and_nothing_is_computed(deployment):
    """The coordinator signs with its own key; what is changed then could be changed by nobody else."""
    deployment.write_cofed()
    name = "changed-seals"
    train = Ask(2, "train", encode({}))
    asks = [Ask(1, "hello", encode({})), *([train] * len(CHANGED)), train]
    settings = deployment.federation(("tree",), "cofed")
    hello, *refused, trained = deployment.forge(settings, name, asks, [None, *CHANGED, ""]).answers()
    assert hello["classes"] == ["d0", "d1", "d2", "d3"]
    told = "silo 'tree': the seal that came with request 2 is not signed by"
    assert refused == [f"{told} the coordinator", *([f"{told} this silo"] * 3)]
    assert trained == {}
    record = deployment.folder / "silos" / "tree" / name
    lines = [line for line in read_lines(record / "audit.jsonl") if line["way"] == "out"]
    assert [line.get("failure") for line in lines] == [None, *refused, None]
    assert lines[-1]["seconds"] > 0
