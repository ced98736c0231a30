#!/usr/bin/env python3
"""Check the plan of chapters against a source tree: python tools/chapters/check_plan.py [src/cosilo].

Prints modules that the plan misses or names twice, the import cycles that the new modules and the new rooms
would have beyond those of today (imports inside functions and under TYPE_CHECKING count too), and the heavy
libraries that somebody who imports a module of today would newly wait for.
"""

import ast
import collections
import sys
from pathlib import Path

from plan import PLAN

#: Libraries that take long to import, or may be absent.
HEAVY = {
    *("sklearn", "pandas", "matplotlib", "scipy", "torch", "nvflare", "ray", "pyarrow", "skops", "numpy"),
    *("pydantic", "rich", "typer", "jinja2", "safetensors", "threadpoolctl", "cryptography", "markupsafe"),
}
Graph = dict[str, set[str]]


def main(root: Path) -> None:
    """Print what is wrong with the plan."""
    trees = {name_of(path, root): ast.parse(path.read_text()) for path in root.rglob("*.py")}
    old = {name for name, tree in trees.items() if not is_package(name, root)}
    planned = collections.Counter(name for names in PLAN.values() for name in names)
    print("not in the plan, stay: ", sorted(old - set(planned)) or "none")
    print("no longer there:       ", sorted(set(planned) - old) or "none")
    print("twice:                 ", sorted(n for n, count in planned.items() if count > 1) or "none")
    new_of = {name: new for new, names in PLAN.items() for name in names if name in old}
    gone = [name for name in trees if is_package(name, root) and name in PLAN]
    new_of |= {name: name for name in trees if name not in new_of and name not in gone}

    everything = {name: imports(tree, trees, ast.walk(tree)) for name, tree in trees.items()}
    edges: Graph = collections.defaultdict(set)
    for name, targets in everything.items():
        if name in new_of and not is_package(name, root):
            found = {new_of.get(t) for t in targets if not is_package(t, root)} - {new_of[name], None}
            edges[new_of[name]] |= {target for target in found if target}
    print(f"modules:                {len(old)} -> {len({new_of[name] for name in old})}")
    print("cycles:                ", cycles(edges) or "none")
    print("cycles of neighbours:  ", siblings(everything, new_of) or "none")
    print("cycles between rooms:  ", cycles(rooms(edges)) or "none")
    print("  today:               ", cycles(rooms(everything)) or "none")

    at_start = {name: imports(tree, trees, run_at_import(tree)) for name, tree in trees.items()}
    outside = {name: libraries(run_at_import(tree)) for name, tree in trees.items()}
    merged: Graph = collections.defaultdict(set)
    merged_outside: Graph = collections.defaultdict(set)
    for name in trees:
        new = new_of.get(name)
        if new:
            merged[new] |= {new_of[t] for t in at_start[name] if t in new_of} - {new}
            merged_outside[new] |= outside[name]
    print("newly waits for:")
    for name in sorted(new_of):
        before = reached(name, at_start, outside)
        more = (reached(new_of[name], merged, merged_outside) - before) & HEAVY
        if more:
            print(f"    {name} -> {new_of[name]}: {', '.join(sorted(more))}")


def name_of(path: Path, root: Path) -> str:
    """Return the dotted name of a file, without that of the package at the top."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def is_package(name: str, root: Path) -> bool:
    """Return whether a name is that of a package."""
    return (root / Path(*name.split(".")) / "__init__.py").exists() if name else True


def run_at_import(tree: ast.Module) -> list[ast.AST]:
    """Return the statements of a module that run when it is imported."""
    return [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(tree: ast.Module, trees: dict[str, ast.Module], nodes: object) -> set[str]:
    """Return the modules of cosilo that some import statements name."""
    found = set()
    for node in nodes:  # type: ignore[attr-defined]
        if not isinstance(node, ast.ImportFrom) or (node.module or "").partition(".")[0] != "cosilo":
            continue
        module = (node.module or "").removeprefix("cosilo").lstrip(".")
        for alias in node.names:
            full = f"{module}.{alias.name}".lstrip(".")
            found.add(full if full in trees else module)
    return found & set(trees)


def libraries(nodes: list[ast.AST]) -> set[str]:
    """Return the packages of others that some import statements name."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def reached(start: str, edges: Graph, outside: Graph) -> set[str]:
    """Return the libraries that importing a module loads."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += edges.get(name, ())
        parts = name.split(".")
        waiting += [".".join(parts[:depth]) for depth in range(len(parts))]
    return set().union(*(outside.get(name, set()) for name in seen))


def siblings(everything: Graph, new_of: dict[str, str]) -> list[list[str]]:
    """Return the cycles between what lies in one package, as import-linter counts them."""
    pairs = {
        (new_of[start], new_of[end])
        for start, ends in everything.items()
        for end in ends
        if start in new_of and end in new_of
    }
    levels: dict[str, Graph] = collections.defaultdict(lambda: collections.defaultdict(set))
    for start, end in pairs:
        left, right = start.split("."), end.split(".")
        depth = 0
        while depth < min(len(left), len(right)) and left[depth] == right[depth]:
            depth += 1
        if 0 < depth < min(len(left), len(right)):
            here = ".".join(left[:depth])
            levels[here][".".join(left[: depth + 1])].add(".".join(right[: depth + 1]))
    return [cycle for graph in levels.values() for cycle in cycles(graph)]


def rooms(edges: Graph) -> Graph:
    """Return the edges between the first parts of names."""
    found: Graph = collections.defaultdict(set)
    for start, ends in edges.items():
        room = start.split(".")[0]
        if room:
            found[room] |= {end.split(".")[0] for end in ends} - {room, ""}
    return found


def cycles(edges: Graph) -> list[list[str]]:
    """Return the strongly connected components with more than one node (Tarjan)."""
    sys.setrecursionlimit(10_000)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in list(edges):
        if node not in number:
            visit(node)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "src/cosilo"))
