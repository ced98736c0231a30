"""Keep the table of `tests/test_layout.py`: which files test the modules that have none of their own name."""

import re
from pathlib import Path

from references import Tree

FILE = Path("tests/test_layout.py")
START, END = "TESTS_OF = {\n", "}\n"


def read() -> dict[str, list[str]]:
    """Return the table: module -> files of tests."""
    text = FILE.read_text()
    inside = text.partition(START)[2].partition("\n" + END)[0]
    found = {}
    for line in re.findall(r'^    "([^"]+)": \[(.*?)\],$', inside, re.M | re.S):
        found[line[0]] = re.findall(r'"([^"]+)"', line[1])
    return found


def named(folder: Path) -> dict[str, str]:
    """Return the test files of a folder by the modules they are named after."""
    found = {}
    for path in sorted(folder.glob("test_*.py")):
        stem = path.stem.removeprefix("test_")
        found |= {name: path.relative_to("tests").as_posix() for name in (stem, *stem.split("_and_"))}
    return found


def write(before: Tree, modules: dict[str, str]) -> None:
    """Write the table for the modules that there are now."""
    after, table, new = Tree(before.root), read(), {}
    olds: dict[str, list[str]] = {}
    for old in before.paths:
        olds.setdefault(modules.get(old, old), []).append(old)
    for name in sorted(after.paths):
        if after.is_package(name):
            continue
        path = Path(*name.split("."))
        if path.name in named(Path("tests") / path.parent):
            continue
        tests: list[str] = []
        for old in olds.get(name, ()):
            where = Path(*old.split("."))
            own = named(Path("tests") / where.parent).get(where.name)
            tests += [own] if own else table.get(f"{where.as_posix()}.py", [])
        if tests:
            new[f"{path.as_posix()}.py"] = sorted(set(tests))
    text = FILE.read_text()
    head, _, rest = text.partition(START)
    tail = rest if rest.startswith("}") else rest.partition("\n" + END)[2]
    tail = tail.removeprefix("}\n")
    lines = [
        f'    "{name}": [{", ".join(repr(one).replace(chr(39), chr(34)) for one in tests)}],\n'
        for name, tests in new.items()
    ]
    FILE.write_text(f"{head}{START}{''.join(lines)}{END}{tail}")
    from merge import tidy

    tidy([FILE])
