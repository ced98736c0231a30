"""A run between organisations is the same, bit for bit, as one on the local engine."""

import json
import re
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from cosilo import Run
from cosilo.coordination.agreement import contract_in
from cosilo.runs.durable_files import read_lines
from cosilo.runs.journal import replies_in
from cosilo.runs.silo_state import read_state

NETWORK = '{ use = "mlp", hidden = [8], training = { optimiser = "sgd", lr = 0.05, batch = 16 } }'


def content(path: Path) -> object:
    """A file's bytes. A skops file names its parts by addresses in memory: these are counted instead."""
    if path.name.startswith("state-"):  # checksums of all files, of skops files too
        state = read_state(path)
        return replace(state, files={name for name in state.files if not name.endswith(".skops")})
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as parts:
        arrays = [np.load(BytesIO(parts.read(name))) for name in parts.namelist() if name.endswith(".npy")]
        schema = parts.read("schema.json").decode()
    seen: dict[str, str] = {}
    schema = re.sub(r"\d{12,}", lambda found: seen.setdefault(found[0], f"#{len(seen)}"), schema)
    # Between the fields of a tree's nodes there is room that nobody wrote to.
    whole = [{name: array[name] for name in array.dtype.names or ()} or {"": array} for array in arrays]
    return schema, [{name: (part.shape, part.tobytes()) for name, part in one.items()} for one in whole]


def files(folder: Path, *without: str) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): content(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in without
    }


def journalled(run: Run) -> dict[str, object]:
    """The mark, and all replies in the journal."""
    journal = run.folder / "journal"
    marks: dict[str, object] = {path.name: path.read_bytes() for path in journal.glob("mark.*")}
    return marks | {folder.name: replies_in(folder) for folder in journal.glob("*-*")}


def audited(record: Path) -> list[dict]:
    """What left a silo, without when."""
    lines = [json.loads(line) for line in (record / "audit.jsonl").read_text().splitlines()]
    times = {"at", "seconds", "digest", "chain", "checksum"}
    return [
        {key: value for key, value in line.items() if key not in times}
        for line in lines
        if line.get("way") == "out"
    ]


def assert_same(deployment, run: Run, local: Run) -> None:
    """The same models, notes, scores and audit logs at the silos; the same replies and results here."""
    for name in run.about["silos"]:
        without = (
            ".lock",
            "events.jsonl",
            "asks.jsonl",
            "done.json",
            "audit.jsonl",
            "state.old",
            "reply.old",
            "small",  # of an institution's journal: it has seals; `journalled` compares what is in it
            "coordinator.crt",  # nobody has keys on one machine
            "contract.json",  # compared below, but for salted digests
        )
        ours = files(deployment.record(run, name), *without)
        theirs = files(local.folder / "silos" / name, *without)
        assert audited(deployment.record(run, name)) == audited(local.folder / "silos" / name)
        assert any("model" in path for path in ours), f"{name} has no model"
        contracts = (contract_in(deployment.record(run, name)), contract_in(local.folder / "silos" / name))
        assert len({(one.method, one.seed, one.pool, str(one.parameters)) for one in contracts}) == 1
        assert ours.keys() == theirs.keys()
        assert [path for path in ours if ours[path] != theirs[path]] == []
    replies = journalled(run)
    assert replies
    assert replies == journalled(local)
    assert run.result == local.result


def test_cofed_with_a_tree_an_svm_and_a_network(deployment, tmp_path):
    deployment.write_cofed()
    case = (("tree", "svm", "net"), "cofed")
    run = deployment.submit(*case, _alpha=0.4, seed=5)
    local = deployment.locally(tmp_path / "local", *case, _alpha=0.4, seed=5)
    assert_same(deployment, run, local)
    # The comparison can fail: by one bit of one array of a model.
    *_, weights = sorted(local.folder.glob("silos/net/model-*/model.safetensors"))
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(AssertionError, match=r"model\.safetensors"):
        assert_same(deployment, run, local)


INSTITUTION = """
shares = ["weights", "size", "metrics"]
[[member]]
name = "ward-1"
path = "three.csv"
{common}
[[member]]
name = "ward-2"
path = "four.csv"
test = 0.5
{common}
"""


def test_fedavg_among_silos_and_an_institution_with_members(deployment, tmp_path):
    """Three layers: the institution is one party outside, and the coordinator of its wards inside."""
    deployment.write_networks("tree")
    common = f'label = "digit"\nshares = ["weights", "size", "metrics"]\nlearner = {NETWORK}\n'
    deployment.write("net", INSTITUTION.format(common=common))
    case = (("tree", "net"), "fedavg")
    settings = {"_rounds": 2, "_local_rounds": 2, "seed": 3}
    run = deployment.submit(*case, **settings)
    assert_same(deployment, run, deployment.locally(tmp_path / "local", *case, **settings))
    members = deployment.record(run, "net") / "members"
    assert sorted(path.name for path in members.iterdir()) == ["ward-1", "ward-2"]
    asked = [ask["step"] for ask in read_lines(members.parent / "asks.jsonl")]
    assert asked.count("train") == 4  # two rounds of two


def test_fml(deployment, tmp_path):
    deployment.write_networks("tree", "net")
    case = (("tree", "net"), "fml")
    run = deployment.submit(*case, _rounds=2, seed=7)
    assert_same(deployment, run, deployment.locally(tmp_path / "local", *case, _rounds=2, seed=7))
