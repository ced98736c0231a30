"""The models in a record: a file that is not as it was written is named before anything is made of it."""

import pytest

from cosilo import Local, Run
from cosilo.errors import RunError


def test_a_model_with_a_flipped_bit_does_not_predict(tmp_path, federation, pool):
    run = federation(Local()).run(tmp_path / "run")
    opened, record = Run.open(run.folder), run.record("tree")
    before = opened.model("tree").predict(pool).tolist()
    (folder,) = record.glob("model-*")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    for path in files:
        kept = path.read_bytes()
        for place in (0, len(kept) // 3, len(kept) - 1):
            damaged = bytearray(kept)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            with pytest.raises(RunError, match=rf"{path.name}: is damaged \(its checksum differs\)"):
                opened.model("tree")
        path.write_bytes(kept)
    assert opened.model("tree").predict(pool).tolist() == before
    files[0].unlink()
    with pytest.raises(RunError, match=rf"{files[0].name}: is damaged"):
        opened.model("tree")
