#!/usr/bin/env python3
"""Rename what two modules of one chapter both bind: python tools/chapters/rename.py

Runs before `merge.py`, in a commit of its own. Names that are no longer there are left out.
"""

import re
import sys
from pathlib import Path

import libcst as cst
from libcst import matchers as m
from libcst.metadata import Assignment
from merge import CODE, ROOT, mentions, texts, tidy
from references import PACKAGE, Moves, Source, Tree, dotted

#: (module, name today) -> name.
RENAMES = {
    ("aggregation.voting.ballots", "Votes"): "Ballot",  # `Votes` are the findings of CoFED
    ("aggregation.voting.shares", "BLOCK"): "SHARE_BLOCK",
    ("aggregation.voting.shares", "TILE"): "SHARE_TILE",
    ("aggregation.voting.shares", "counts"): "count_votes",
    ("config.explain", "P"): "Checked",
    ("data.overlap", "ATTEMPTS"): "OVERLAP_DRAWS",
    ("engines.flare.kit_manifest", "_FILE"): "_MANIFEST",
    ("engines.flare.kit_settings", "_FILE"): "_SETTINGS",
    ("learners.saving.libraries", "FORMS"): "LIBRARY_FORMS",
    ("learners.saving.plain", "FORMS"): "PLAIN_FORMS",
    ("learners.saving.tree_arrays", "FORMS"): "TREE_FORMS",
    ("learners.training_loop", "cross_entropy"): "mean_cross_entropy",  # torch's
    ("report.comparison_verdict", "verdict"): "comparison_verdict",
    ("report.time_to_accuracy", "_curve"): "_curve_of",
    ("reproduce.claims_summary", "_lines"): "_claim_lines",
}


def main() -> None:
    """Rename everywhere."""
    tree = Tree(ROOT)
    renames = {
        key: new for key, new in RENAMES.items() if key[0] in tree.paths and key[1] in tree.bound(key[0])
    }
    paths = {path: name for name, path in tree.paths.items()}
    for folder in CODE:
        paths |= {path: "" for path in sorted(Path(folder).rglob("*.py")) if mentions(path)}
    changed = []
    for path, name in paths.items():
        source = Source(path, Moves(tree, {}), name)
        rename(source, name if path in tree.paths.values() else None, renames)
        text = source.edited().code
        text = in_strings(text, renames)
        if text != path.read_text():
            changed.append((path, text))
        for line in source.problems:
            raise SystemExit(line)
    for path in texts():
        text = in_strings(path.read_text(), renames)
        if text != path.read_text():
            changed.append((path, text))
    for path, text in changed:
        path.write_text(text)
    tidy([path for path, _ in changed if path.suffix == ".py"])
    print(f"{len(renames)} names, {len(changed)} files written")


def rename(source: Source, name: str | None, renames: dict[tuple[str, str], str]) -> None:
    """Collect the edits of one file."""
    tree = source.moves.tree
    for (module, old), new in renames.items():
        if module == name:
            _own(source, old, new)
    for node in list(source.scope_of):
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        for alias in node.names:
            origin = tree.at_first_hand(dotted(node.module), alias.evaluated_name)
            bound = alias.evaluated_alias or alias.evaluated_name
            if origin[0] == "module":
                for (module, old), new in renames.items():
                    if module == origin[1]:
                        _attributes(source, node, bound, old, new)
            elif origin[0] == "name":
                real = tree.defined(origin)
                new = renames.get((real[1], real[2])) if real[0] == "name" else renames.get(origin[1:])
                if new is None or alias.evaluated_name == new:
                    continue
                _check(source, new)
                if alias.asname is None:
                    source._replace(node, bound, new)
                source.edits[id(alias.name)] = cst.Name(new)
                if source.path.name == "__init__.py":
                    _in_all(source, bound, new)


def _own(source: Source, old: str, new: str) -> None:
    """Rename what a file binds itself."""
    _check(source, new)
    scope = next(one for one in source.scopes if type(one).__name__ == "GlobalScope")
    for assignment in scope._assignments.get(old, ()):
        assert isinstance(assignment, Assignment)
        node = assignment.node
        if isinstance(node, cst.ImportFrom):
            assert not isinstance(node.names, cst.ImportStar)
            for alias in node.names:
                if alias.evaluated_name == old:
                    source.edits[id(alias)] = alias.with_changes(
                        asname=cst.AsName(cst.Name(new), cst.SimpleWhitespace(" "), cst.SimpleWhitespace(" "))
                    )
        elif isinstance(node, cst.Name):
            source.edits[id(node)] = cst.Name(new)
        elif isinstance(node, cst.FunctionDef | cst.ClassDef):
            source.edits[id(node.name)] = cst.Name(new)
        else:
            raise SystemExit(f"{source.path}: {old} is bound in a way that is not known")
        for access in assignment.references:
            if isinstance(access.node, cst.SimpleString):
                source._replace_in_string(access.node, rf"\b{old}\b", new)
            elif isinstance(access.node, cst.Name):
                source.edits[id(access.node)] = cst.Name(new)
    for call in m.findall(source.module, m.Call(func=m.Name("TypeVar"), args=[m.Arg(), m.ZeroOrMore()])):
        assert isinstance(call, cst.Call)
        text = call.args[0].value
        if isinstance(text, cst.SimpleString) and text.evaluated_value == old:
            source.edits[id(text)] = cst.SimpleString(f'"{new}"')


def _attributes(source: Source, node: cst.ImportFrom, bound: str, old: str, new: str) -> None:
    """Rename `module.old`, and `setattr(module, "old", ...)`."""
    for use, _ in source.uses(node, bound):
        while isinstance(use, cst.Attribute):
            use = use.value  # type: ignore[assignment]
        parent = source.parents[use]
        if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value == old:
            source.edits[id(parent.attr)] = cst.Name(new)
        if isinstance(parent, cst.Arg):
            call = source.parents[parent]
            if isinstance(call, cst.Call) and len(call.args) > 1 and call.args[0] is parent:
                text = call.args[1].value
                if isinstance(text, cst.SimpleString) and text.evaluated_value == old:
                    source.edits[id(text)] = cst.SimpleString(f'"{new}"')


def _in_all(source: Source, old: str, new: str) -> None:
    """Rename an entry of `__all__`."""
    for node in m.findall(source.module, m.Element(value=m.SimpleString())):
        text = node.value  # type: ignore[attr-defined]
        if text.evaluated_value == old:
            source.edits[id(text)] = cst.SimpleString(f'"{new}"')


def _check(source: Source, new: str) -> None:
    for scope in source.scopes:
        if new in scope._assignments:
            raise SystemExit(f"{source.path}: {new} is taken")


def in_strings(text: str, renames: dict[tuple[str, str], str]) -> str:
    """Return a text with dotted names replaced."""
    for (module, old), new in renames.items():
        text = re.sub(rf"\b{re.escape(f'{PACKAGE}.{module}.{old}')}\b", f"{PACKAGE}.{module}.{new}", text)
    return text


if __name__ == "__main__":
    sys.exit(main())
