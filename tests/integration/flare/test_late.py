"""A silo that joins when a run between organisations is over: the coordinator has kept the votes."""

import pytest

from cosilo import ConfigError, Run
from cosilo.engines.flare import runs
from cosilo.engines.flare.party_files import read_silo
from cosilo.federation.late import add_silo


def test_a_late_silo_gains_what_it_would_have_gained_on_one_machine(deployment, tmp_path, cosilo):
    deployment.write_cofed()
    run = deployment.submit(("tree", "svm"), "cofed", seed=3)
    before = {name: (deployment.record(run, name) / "audit.jsonl").read_text() for name in ("tree", "svm")}
    code, out, errors = cosilo("add", run.folder, "net")
    assert (code, "silo net joined; the others did nothing" in out) == (0, True), errors
    for name, log in before.items():
        assert (deployment.record(run, name) / "audit.jsonl").read_text() == log

    same = deployment.locally(tmp_path / "same", ("tree", "svm"), "cofed", seed=3)
    add_silo(same, read_silo(deployment.file("net")))
    mine, theirs = Run(run.folder).result, Run(same.folder).result
    assert mine["tasks"] == theirs["tasks"]
    assert mine["scores"] == theirs["scores"]
    assert mine["voting"][-1]["received"] == theirs["voting"][-1]["received"]
    assert "net" in Run(run.folder).about["silos"]
    with pytest.raises(ConfigError, match="has a silo 'net' already"):
        runs.add(run.folder, "net", print)
