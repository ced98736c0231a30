"""The example notebooks, executed from the first cell to the last."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    book = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "leave outputs out of the repository"
    nbclient.NotebookClient(book, timeout=250, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        output["data"]["text/html"]
        for cell in book.cells
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert any("<table" in html for html in shown)
    assert any("report.html" in html or "comparison.html" in html or "patient" in html for html in shown)


def test_there_are_three():
    assert len(list(EXAMPLES.glob("*.ipynb"))) == 3
