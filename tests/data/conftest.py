"""Every test gets empty data and cache folders of its own; `real` opens the real ones."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

REAL = os.environ.get("COSILO_DATA")


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COSILO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests on real data, so that CIFAR is decoded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def real(data_folder: Path, session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Opens the real folder of a dataset, or skips the test."""

    def open_folder(name: str) -> Path:
        if not REAL:
            pytest.skip("COSILO_DATA is not set")
        if not (Path(REAL) / name).is_dir():
            pytest.skip(f"{REAL} has no folder {name}")
        monkeypatch.setenv("COSILO_DATA", REAL)
        monkeypatch.setenv("XDG_CACHE_HOME", str(session_cache))
        return Path(REAL) / name

    return open_folder


@pytest.fixture
def png() -> Callable[..., bytes]:
    """Encodes an array as PNG (or what `kind` says)."""
    image = pytest.importorskip("PIL.Image")

    def encode(pixels: np.ndarray, kind: str = "PNG") -> bytes:
        buffer = io.BytesIO()
        image.fromarray(pixels).save(buffer, kind)
        return buffer.getvalue()

    return encode


@pytest.fixture
def image_parquet(png: Callable[..., bytes]) -> Callable[..., None]:
    """Writes a Parquet file in the shape of the Hugging Face hub."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def write(path: Path, column: str, images: list[np.ndarray], **labels: list[int]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
        cells = [{"bytes": png(image), "path": None} for image in images]
        parquet.write_table(arrow.table({column: arrow.array(cells, kind), **labels}), path)

    return write
