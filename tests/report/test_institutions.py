"""The global network, and institutions of any number."""

import json
import math

import numpy as np
import pytest

from cosilo import Run
from cosilo.protocol.stage import FEDERATED, Stage
from cosilo.report.facts import gather
from cosilo.report.run_page import render


def at_once(run: Run, **about) -> Run:
    """The run with more in its run.json."""
    path = run.folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | about))
    return Run(run.folder)


def test_the_global_network_has_its_curve(make, large, reader_of):
    result = large(3, 4, rounds=3)
    result["joint"] = {
        stage: {"accuracy": value, "instances": 300}
        for stage, value in (("round 1", 0.25), ("round 2", 0.5), ("federated", 0.625))
    }
    facts = gather(make(result))
    assert list(facts.results.joint.items())[1:] == [(Stage.after_round(2), 0.5), (FEDERATED, 0.625)]
    text = reader_of(render(facts)).cells
    assert "global 62.5%" in text
    assert "the orange line the global network" in text


@pytest.mark.parametrize("institutions", [3, 30, 60])
def test_institutions_of_any_number(make, large, institutions, reader_of):
    result = large(institutions, 5, rounds=2)
    names = list(result["tasks"])
    rng = np.random.default_rng(0)
    result["pace"] = [
        {
            "round": number,
            "epochs": {name: int(rng.integers(3, 13)) for name in names},
            "differences": {name: math.exp(rng.normal()) / number for name in names},
        }
        for number in range(1, 21)
    ]
    members = {name: [f"{name}-{n}" for n in range(1, 15 * (place + 1))] for place, name in enumerate(names)}
    reader = reader_of(render(gather(at_once(make(result), members=members))))
    assert {"tree", "epochs", "differences"} <= set(reader.ids)
    assert "silo-002 29 silo-002-1, silo-002-2" in reader.cells
    assert "server" in reader.cells
