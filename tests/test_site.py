"""The site of the documents: built without a warning, complete, and in need of nothing from elsewhere."""

import doctest
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cosilo
import cosilo.data

pytest.importorskip("sphinx")
pytest.importorskip("furo")
pytest.importorskip("myst_parser")

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if "_build" not in path.relative_to(DOCS).parts
)


@pytest.fixture(scope="module")
def pages():
    """The module that fills in what only the site has."""
    spec = importlib.util.spec_from_file_location("pages", DOCS / "site" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", folder / "trees", DOCS, folder / "html"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_in_the_index(page):
    listed = re.findall(r"^- \[.*?\]\((.+?\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"), re.M)
    assert listed.count(page) == (page != "index.md"), f"docs/{page} needs one line in docs/index.md"


def test_every_page_and_every_public_name_is_on_the_site(site, pages):
    assert [page for page in PAGES if not (site / page).with_suffix(".html").exists()] == []
    for name, (page, _) in pages.places().items():
        assert f'id="{name}"' in (site / "reference" / f"{page}.html").read_text(encoding="utf-8")
    assert set(pages.places()) == {f"cosilo.{name}" for name in cosilo.__all__} | {
        f"cosilo.data.{name}" for name in cosilo.data.__all__
    }


def test_every_command_is_on_the_site_with_its_options(site):
    text = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    shown = re.sub(r"<[^>]+>", "", text)
    assert "cosilo run FILE.toml [OPTIONS]" in shown
    assert "cosilo coordinator start KIT" in shown
    assert "--set KEY=VALUE" in shown


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"([^\"]*)\"", text)
        assert [target for target in loaded if re.match(r"(https?:)?//", target)] == [], page.name
    for style in site.rglob("*.css"):
        assert (
            re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import", style.read_text(encoding="utf-8")) == []
        )


def test_parts_of_the_site(pages):
    assert doctest.testmod(pages).failed == 0
    with pytest.raises(ValueError, match="no such part"):
        pages.filled("page", "<!-- site: weather -->", DOCS)
    assert "](data.md)" in pages.outside(DOCS.parent / "README.md")


def test_a_name_of_a_new_room_has_a_place(pages, monkeypatch):
    monkeypatch.setattr(pages, "SECTIONS", {"cosilo.silo": ("python", "Silos")})
    places = pages.places.__wrapped__()
    assert places["cosilo.Silo"] == ("python", "Silos")
    assert places["cosilo.Clock"] == ("python", "Simulated time")
