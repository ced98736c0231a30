"""What a silo is after a step, as one file."""

import pytest

from cosilo.errors import RunError
from cosilo.protocol.stage import LOCAL, Measure, Score
from cosilo.protocol.wire import encode
from cosilo.runs.silo_state import SiloState, last_state, read_state

SCORES = {"local": {"own": {"accuracy": 0.5, "instances": 4}}}


def state(number: int = 3, **more) -> SiloState:
    return SiloState(number, "asked", "digest", False, SCORES, {"model": "model-00001"}, **more)


def test_it_is_read_back_as_it_was_written(tmp_path):
    whole = state(notes=encode({"seen": 2}), content=b"a reply\nof two lines")
    whole.write(tmp_path)
    found = read_state(tmp_path / "state-00003")
    assert found == whole == last_state(tmp_path)
    assert dict(found.noted()) == {"seen": 2}
    assert found.all_scores() == {LOCAL: {Measure.OWN: Score(0.5, 4)}}
    assert found.trained
    assert (found.without_content().notes, found.without_content().content) == (b"", b"")


def test_the_last_one_counts_and_what_a_crash_left_does_not(tmp_path):
    assert last_state(tmp_path) is None
    for number in (9, 10, 100_000):
        state(number).write(tmp_path)
        (tmp_path / f"state-{number + 1:05d}.part").write_bytes(b"{")
        assert last_state(tmp_path).number == number


def test_one_that_is_replaced_while_it_is_read_is_looked_for_again(tmp_path, monkeypatch):
    state(3).write(tmp_path)
    state(4).write(tmp_path)
    real = read_state

    def meanwhile(path):
        if path.name == "state-00004":
            state(5).write(tmp_path)
            path.unlink()
        return real(path)

    monkeypatch.setattr("cosilo.runs.silo_state.read_state", meanwhile)
    assert last_state(tmp_path).number == 5


@pytest.mark.parametrize("place", [0, 20, -1])
def test_a_flipped_bit_is_noticed(tmp_path, place):
    state(notes=encode({"seen": 2}), content=b"reply").write(tmp_path)
    path = tmp_path / "state-00003"
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)
    with pytest.raises(RunError, match="state-00003: is damaged"):
        last_state(tmp_path)
