"""A federation is checked when it is made, and says how it was run."""

import numpy as np
import pytest

from cosilo import CoFED, Federation, FedMD, Local
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"quorum": 2.0}, "quorum = 2.0; wants a fraction between 0 and 1"),
        ({"timeout": 0.0}, "timeout = 0.0; wants a positive number of seconds"),
        ({"pool": None}, "cofed needs a pool; give one: [pool]"),
        ({"pool": None, "pool_labels": ["a"]}, "the federation got pool_labels but no pool; wants both"),
        ({"method": FedMD()}, "fedmd needs a pool with labels; set labelled = true in [pool]"),
    ],
)
def test_settings_are_checked_when_it_is_made(silos, pool, options, line):
    with pytest.raises(ConfigError) as error:
        Federation(silos(), **{"pool": pool, "method": CoFED(), **options})
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_nobody_and_nothing(silos):
    with pytest.raises(ConfigError, match="a federation needs silos; got none"):
        Federation([], method=Local())
    with pytest.raises(DataError, match="the federation's pool: is empty"):
        Federation(silos(), pool=np.empty((0, 64)))


def test_it_leaves_the_silos_of_its_maker_untrained(tmp_path, silos):
    mine = silos()
    run = Federation(mine, method=Local()).run(tmp_path / "run")
    assert not any(silo.trained for silo in mine)
    assert all(silo.trained for silo in run.silos.values())


def test_the_directory_says_how_it_was_run(tmp_path, silos):
    federation = Federation(silos(), method=Local(), seed=4, quorum=0.7, engine=LocalEngine(workers=2))
    about = federation.run(tmp_path / "run").about
    assert {key: about[key] for key in ("seed", "quorum", "workers", "status")} == {
        "seed": 4,
        "quorum": 0.7,
        "workers": 2,
        "status": "finished",
    }
    assert about["method"] == {"use": "local"}
