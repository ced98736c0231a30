"""Engines by name."""

import pytest

from cosilo import Federation, Local
from cosilo.engines.local.engine import LocalEngine
from cosilo.errors import ConfigError
from cosilo.federation.engines import ENGINES, engine_named


@pytest.mark.parametrize("name", ENGINES)
def test_every_name_is_that_of_an_engine(name):
    engine = engine_named(name)
    assert all(callable(getattr(engine, part)) for part in ("ready", "about", "execute"))


def test_a_wrong_name_is_one_line(silos):
    with pytest.raises(ConfigError) as error:
        Federation(silos(), method=Local(), engine="flair")
    assert str(error.value) == (
        "engine 'flair': there is no such engine (did you mean 'flare'?); wants local, flare, ray"
    )


def test_an_engine_of_ones_own_making_is_taken_as_it_is(silos):
    engine = LocalEngine(workers=2)
    assert Federation(silos(), method=Local(), engine=engine).engine is engine
    with pytest.raises(ConfigError, match="workers = -1; wants 0 or more"):
        LocalEngine(workers=-1)
