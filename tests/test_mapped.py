"""Arrays in memory and on disk are the same but for where they are."""

import gc
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cosilo import mapped
from cosilo.data.instances import fingerprint, join, take
from cosilo.data.own_files import read
from cosilo.methods.cofed.elections import Ballots
from cosilo.protocol.message import Fields
from cosilo.protocol.task import Task, vocabulary


def _files() -> int:
    """How many files without a name this process has mapped."""
    maps = Path(f"/proc/{os.getpid()}/maps")
    if not maps.exists():
        pytest.skip("only Linux tells what a process has mapped")
    return sum("(deleted)" in line for line in maps.read_text().splitlines())


def test_a_large_array_is_on_disk_and_goes_with_its_last_holder() -> None:
    before = _files()
    small, large = mapped.empty(10, np.int8), mapped.empty((3, 4), np.float32, large=True)
    large[:] = 1
    assert _files() == before + 1
    part = large[1]
    del large, small
    assert part.sum() == 4
    del part
    gc.collect()
    assert _files() == before
    assert mapped.empty((0, 4), np.float32, large=True).shape == (0, 4)


def test_rows_of_a_large_array_are_taken_and_joined_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.arange(60_000, dtype=np.float32).reshape(20_000, 3)
    index = np.random.default_rng(0).permutation(20_000)[:17_000]
    wanted = X[index], np.concatenate([X[:5].astype(np.float64), X[index]])
    monkeypatch.setattr(mapped, "LARGE", 1000)
    before = _files()
    found = take(X, index)
    together = join(X[:5].astype(np.float64), found)
    assert _files() == before + 2
    assert np.array_equal(found, wanted[0])
    assert np.array_equal(together, wanted[1])
    assert together.dtype == wanted[1].dtype
    assert take(np.array(["a", "b"], dtype=object), np.array([1])).tolist() == ["b"]


def test_a_parquet_table_is_the_same_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "small": rng.normal(size=500).astype(np.float32),
            "holes": np.where(rng.random(500) < 0.1, np.nan, rng.normal(size=500)),
            "count": rng.integers(0, 9, 500),
            "some": pd.array([None, *range(499)], dtype="Int64"),
            "word": rng.choice(["a", "b"], 500),
            "flag": rng.random(500) < 0.5,
            "kind": pd.Categorical(rng.choice(["c", "d"], 500)),
        }
    )
    path = tmp_path / "pool.parquet"
    frame.to_parquet(path, row_group_size=70)
    whole = read(path).X
    monkeypatch.setattr(mapped, "LARGE", 1000)
    before = _files()
    found = read(path).X
    assert _files() == before + 3  # small, holes, count
    pd.testing.assert_frame_equal(found, whole)
    assert fingerprint(found) == fingerprint(whole)
    chosen = read(path, columns=["count", "word"]).X
    pd.testing.assert_frame_equal(chosen, whole[["count", "word"]])


def test_a_folder_of_images_is_the_same_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (20, 8, 8), dtype=np.uint8)
    for place, one in enumerate(pixels):
        image.fromarray(one).save(tmp_path / f"{place:02d}.png")
    monkeypatch.setattr(mapped, "LARGE", 1000)
    before = _files()
    found = read(tmp_path).X
    assert _files() == before + 1
    assert np.array_equal(found, pixels)


def test_votes_are_the_same_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = {"one": Task(("a", "c")), "two": Task(("b", "c"))}
    replies = {
        "one": Fields({"votes": np.array([0, 1, -1], np.int8)}),
        "two": Fields({"votes": np.array([0, 1, 1], np.int8)}),
    }
    monkeypatch.setattr(mapped, "LARGE", 1)
    ballots = Ballots.of(replies, tasks, vocabulary(tasks.values()), tasks)
    assert [row.tolist() for row in ballots.votes] == [[0, 2, -1], [1, 2, 2]]
