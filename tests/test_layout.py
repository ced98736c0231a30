"""Tests stand where the code stands: whoever knows a module knows where its tests are."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "cosilo"

#: All that may lie at the top; everything else has a room.
TOP = {
    "__init__.py",
    "errors.py",
    "lazy.py",
    "mapped.py",
    "parameters.py",
    "progress.py",
    "py.typed",
    "text.py",
    "version.py",
}
#: Rooms of small parts that only mean something together: one file tests the room, besides others.
ROOMS = {
    "aggregation/voting": "aggregation/test_voting.py",
    "cli": "cli/test_cli.py",
    "export": "export/test_export.py",
    "learners/saving": "learners/saving/test_model_file.py",
    "engines/local": "engines/local/test_local.py",
    "methods/dofed_spp": "methods/dofed_spp/test_dofed_spp.py",
    "report": "report/test_report.py",
    "report/parts": "report/test_parts.py",
    "reproduce": "reproduce/test_reproduce.py",
    "silo": "silo/test_silo.py",
    # What runs inside FLARE's processes is tested with these processes.
    "engines/flare": "integration/flare/test_same.py",
    # What runs on the nodes of a cluster is tested on one.
    "engines/ray": "integration/ray/test_same.py",
}
#: Modules without behaviour of their own: what is tested is whoever makes and reads their values.
PLAIN = {
    "runs/comparison.py": "comparison/test_compare.py",
    "config/target_labels.py": "integration/test_targets.py",
    "data/new_files.py": "config/test_models.py",
    "federation/late.py": "config/test_going_on.py",
    "learners/untrained.py": "config/test_models.py",
    "runs/kept_models.py": "config/test_models.py",
}

MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def named(folder: Path) -> set[str]:
    """The modules that the test files of a folder are named after; `test_a_and_b.py` is after two."""
    stems = [path.stem.removeprefix("test_") for path in folder.glob("test_*.py")]
    return {name for stem in stems for name in (stem, *stem.split("_and_"))}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_tests_where_it_is_looked_for(module):
    elsewhere = ROOMS.get(str(module.parent)) or PLAIN.get(str(module))
    assert module.stem in named(TESTS / module.parent) or (elsewhere and (TESTS / elsewhere).exists()), (
        f"src/cosilo/{module} has no test; write tests/{module.parent / f'test_{module.name}'}"
    )


def test_at_the_top_lies_only_what_every_room_stands_on():
    found = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert found == TOP


def test_rooms_and_exceptions_exist():
    assert [room for room in ROOMS if not (PACKAGE / room).is_dir()] == []
    assert [module for module in PLAIN if not (PACKAGE / module).exists()] == []


def test_folders_of_tests_are_folders_of_the_package():
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    strange = [
        str(one) for one in folders if one.parts[:1] != ("integration",) and not (PACKAGE / one).is_dir()
    ]
    assert strange == []
