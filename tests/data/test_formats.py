"""The file formats of datasets."""

import gzip

import numpy as np
import pytest

from cosilo.data.formats import pick_array, pick_column, read_columns, read_idx, read_npz
from cosilo.errors import DataError


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_by_hand(tmp_path, ending):
    raw = b"\0\0\x08\x02" + b"\0\0\0\x02\0\0\0\x03" + bytes([1, 2, 3, 4, 5, 255])
    path = tmp_path / f"images{ending}"
    path.write_bytes(gzip.compress(raw) if ending else raw)
    assert read_idx(path).tolist() == [[1, 2, 3], [4, 5, 255]]


def test_columns_of_parquet_by_any_of_their_names(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    parquet.write_table(arrow.table({"text": ["x", "y"], "label": [1, 0]}), path)
    label, text = read_columns(path, ("fine_label", "label"), ("text",))
    assert (label.tolist(), text.tolist()) == ([1, 0], ["x", "y"])
    assert pick_column(path, ("img", "image"), ["image", "img"]) == "img"
    with pytest.raises(DataError, match=r"t\.parquet: has the columns text, label; wants img or image"):
        read_columns(path, ("img", "image"))


def test_arrays_of_npz(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.arange(3), y=np.array(["a"]))
    arrays = read_npz(path)
    assert pick_array(path, arrays, "x").tolist() == [0, 1, 2]
    with pytest.raises(DataError, match=r"a\.npz: has the arrays x, y; wants 'z'"):
        pick_array(path, arrays, "z")


def test_python_objects_are_not_loaded(tmp_path):
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was loaded",)

    np.savez(tmp_path / "b.npz", x=np.array([Bomb()], dtype=object))
    with pytest.raises(DataError, match=r"array 'x' cannot be loaded .* not Python objects"):
        read_npz(tmp_path / "b.npz")
    np.save(tmp_path / "bare.npy", np.zeros(2))
    with pytest.raises(DataError, match="holds one bare array; wants an npz file"):
        read_npz(tmp_path / "bare.npy")
