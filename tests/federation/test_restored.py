"""The silos of a finished run, with what they have learnt."""

import numpy as np
import pytest

from cosilo import CoFED, Federation, LocalEngine, RunError
from cosilo.runs.silo_state import last_state


def test_a_silo_is_read_from_its_record_when_it_is_asked_for(silos, pool, tmp_path):
    run = Federation(silos(), pool, CoFED(), engine=LocalEngine(workers=1)).run(tmp_path / "run")
    names = list(run.silos)
    assert len(run.silos) == len(names) == 3
    for state in (run.folder / "silos" / names[0]).glob("state-*"):  # nobody has looked at it yet
        state.unlink()
    assert not run.silos[names[0]].trained
    other = run.silos[names[1]]
    assert other.trained
    assert run.silos[names[1]] is other
    expected = run.model(names[1]).predict(pool[:9])
    assert np.array_equal(other.predict(pool[:9]), expected)
    assert "nobody" not in run.silos


def test_a_damaged_model_is_named_when_it_is_asked_for(silos, pool, tmp_path):
    run = Federation(silos(), pool, CoFED()).run(tmp_path / "run")
    name = next(iter(run.silos))
    record = run.folder / "silos" / name
    (record / last_state(record).models["model"] / "model.skops").write_bytes(b"something else")
    with pytest.raises(RunError, match=r"model\.skops: is damaged"):
        run.silos[name]
