"""Where private data is touched: in the files that docs/architecture.md names, and nowhere else."""

import re
from pathlib import Path

import cosilo

ROOT = Path(cosilo.__file__).parent
TOUCHED = re.compile(
    r"\.data\.(train|test|own|all|target|validation|held_out|part|need_target|split|has_test)\b"
    r"(?!\.py| import)"
    r"|\bPrivateData\b|\bself\.(own|train|test|all)\b"
)


def test_the_files_that_touch_private_data_are_those_that_the_architecture_names():
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    sentence = re.search(r"Private data is touched in ([^.]*(?:\.py[^.]*)*)\.\s", text)
    named = set(re.findall(r"`(silo/\w+\.py)`", sentence[1]))
    found = set()
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        lines = path.read_text(encoding="utf-8").splitlines()
        code = [line for line in lines if "import" not in line]
        if any(TOUCHED.search(line) for line in code) and (place.startswith("silo/") or _of_a_silo(code)):
            found.add(place)
    assert found == named


def _of_a_silo(lines: list[str]) -> bool:
    return any(re.search(r"silo\w*\.data\.", line) for line in lines)
