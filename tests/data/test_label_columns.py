import numpy as np
import pytest

from cosilo.data.label_columns import as_names, complete
from cosilo.errors import DataError


def test_numbers_bytes_and_gaps_become_names():
    assert as_names(np.array([3.0, 4.5]), "y").tolist() == ["3", "4.5"]
    assert as_names(np.array([b" a ", b"b"], dtype=object), "y").tolist() == ["a", "b"]
    assert as_names(np.array(["a", None], dtype=object), "y", gaps=True).tolist() == ["a", ""]
    with pytest.raises(DataError, match="y: 1 of 2 labels are missing, the first in row 2"):
        as_names(np.array(["a", None], dtype=object), "y")
    with pytest.raises(DataError, match="texts are missing"):
        complete(np.array([None], dtype=object), "x", "texts")
