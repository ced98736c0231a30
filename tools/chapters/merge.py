#!/usr/bin/env python3
"""Merge the modules of rooms into the chapters of the plan: python tools/chapters/merge.py ROOM ... | all

A room is the first part of a chapter's name; "top" are the chapters that have only one. Works on the tree in
the current directory, whatever it is; moves code and changes none of it: a name that would be bound twice, or
hidden, stops the script before anything is written (`rename.py` has the table of names to change first).
"""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import layout
import libcst as cst
from plan import DOCSTRINGS, PLAN
from references import PACKAGE, Moves, Problem, Source, Tree, dotted, strings_moved

ROOT = Path("src") / PACKAGE
#: Where references to the package are, besides the package itself.
CODE = ("tests", "benchmarks", "examples", "docs")
TEXT = ("*.md", "*.toml", "*.txt", "*.html", "*.yml", "*.yaml", "*.cfg")
DASHES = "# " + "-" * 70


def main(rooms: list[str]) -> None:
    """Merge the chapters of some rooms."""
    tree = Tree(ROOT)
    plan = chosen(tree, rooms)
    modules = {old: new for new, olds in plan.items() for old in olds if old != new}
    moves = Moves(tree, modules, gone(tree, plan))
    chapters = [Chapter(new, olds, moves) for new, olds in plan.items()]
    changing = {old for olds in plan.values() for old in olds}
    others = [
        Source(path, moves, name)
        for name, path in tree.paths.items()
        if name not in changing and name not in moves.gone and touches(path, moves)
    ]
    others += [
        Source(path, moves)
        for folder in CODE
        for path in sorted(Path(folder).rglob("*.py"))
        if Path(folder).exists() and touches(path, moves)
    ]
    problems: list[str] = []
    for chapter in chapters:
        problems += chapter.read()
    for source in others:
        source.read_imports()
        problems += source.problems
    for line in problems:
        print(line)
    if any(not line.startswith("note:") for line in problems):
        raise SystemExit("nothing was written")

    written: dict[Path, str] = {}
    for chapter in chapters:
        written[path_of(chapter.name)] = chapter.text()
    for source in others:
        text = source.edited().code
        if source.home is not None and source.path.name == "__init__.py":
            text = with_homes(text, source.home, modules)
        written[source.path] = text
    for path in [*tree.paths.values(), *(path for folder in CODE for path in Path(folder).rglob("*.py"))]:
        name = next((name for name, there in tree.paths.items() if there == path), None)
        if path not in written and name not in changing and name not in moves.gone:
            written[path] = path.read_text()
    for path in texts():
        text = path.read_text()
        for old, new in modules.items():
            before, after = (name.replace(".", "/") + ".py" for name in (old, new))
            text = re.sub(rf"(?<![\w/]){re.escape(before)}\b|(?<=/cosilo/){re.escape(before)}\b", after, text)
        written[path] = text
    changed = []
    for path, text in written.items():
        text = strings_moved(text, modules)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            changed.append((path, text))
    removed = [tree.paths[old] for old in changing if path_of(plan_of(plan, old)) != tree.paths[old]]
    removed = [path for path in removed if path not in written]
    for path in [*removed, *(tree.paths[package] for package in moves.gone)]:
        path.unlink()
    for package in sorted(moves.gone, reverse=True):
        folder = tree.paths[package].parent
        for cache in folder.glob("__pycache__/*"):
            cache.unlink()
        if (folder / "__pycache__").exists():
            (folder / "__pycache__").rmdir()
        folder.rmdir()
    for path, text in changed:
        path.write_text(text)
    tidy([path for path, _ in changed if path.suffix == ".py"])
    layout.write(tree, modules)
    report(modules)
    print(
        f"{len(plan)} chapters, {len(changing)} modules, {len(changed)} files written, {len(removed)} removed"
    )


def chosen(tree: Tree, rooms: list[str]) -> dict[str, list[str]]:
    """Return the chapters of some rooms, of the modules that the tree has."""
    found = {}
    for new, olds in PLAN.items():
        room = new.partition(".")[0] if "." in new else "top"
        there = [old for old in olds if old in tree.paths and not tree.is_package(old)]
        done = new in tree.paths and there == [new]
        if there and not done and (rooms == ["all"] or room in rooms):
            found[new] = there
    members = {old for olds in found.values() for old in olds}
    for new, olds in found.items():
        # a module of the same name that goes elsewhere, or a package that some modules would stay in
        if new in tree.paths and not tree.is_package(new) and new not in members:
            raise SystemExit(f"{new}: there is such a module, and it is not of this chapter: {olds}")
    return found


def gone(tree: Tree, plan: dict[str, list[str]]) -> set[str]:
    """Return the packages that no module is left in."""
    moved = {old for new, olds in plan.items() for old in olds if old != new}
    made = set(plan)
    found = set()
    for package in sorted(tree.paths, reverse=True):
        if not package or not tree.is_package(package):
            continue
        inside = [one for one in tree.paths if one.startswith(package + ".")]
        stay = [one for one in inside if one not in moved and one not in found]
        new = [one for one in made if one.startswith(package + ".")]
        others = [path for path in tree.paths[package].parent.rglob("*") if path.is_file()]
        data = [path for path in others if path.suffix not in (".py", ".pyc")]
        if package in plan and (stay or new or data):
            raise SystemExit(f"{package}: cannot become a module, it keeps {stay or new or data}")
        if inside and not (stay or new or data):
            found.add(package)
    return found


def plan_of(plan: dict[str, list[str]], old: str) -> str:
    """Return the chapter of a module."""
    return next(new for new, olds in plan.items() if old in olds)


def path_of(module: str) -> Path:
    """Return the file of a module."""
    return ROOT / Path(*module.split(".")).with_suffix(".py")


def mentions(path: Path) -> bool:
    """Return whether a file speaks of the package."""
    return PACKAGE in path.read_text()


def touches(path: Path, moves: Moves) -> bool:
    """Return whether a file imports something of what moves."""
    moving = {*moves.modules, *moves.gone}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            module = (node.module or "").removeprefix(PACKAGE).lstrip(".")
            if module in moving or any(f"{module}.{one.name}".lstrip(".") in moving for one in node.names):
                return True
    # names of a package that are looked up in strings
    return path.name == "__init__.py" and "names_from" in path.read_text()


def texts() -> Iterator[Path]:
    """Yield the files of text that dotted names may stand in; the changelog tells of the past."""
    tracked = subprocess.run(["git", "ls-files", *TEXT], capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        path = Path(name)
        if path.name not in ("CHANGELOG.md", "constraints.txt") and "results" not in path.parts:
            yield path


def tidy(paths: list[Path]) -> None:
    """Sort imports and format."""
    binary = Path(sys.executable).with_name("ruff")
    names = [str(path) for path in paths]
    subprocess.run([binary, "check", "-q", "--select", "I,RUF022", "--fix", *names], check=False)
    subprocess.run([binary, "format", "-q", *names], check=False)
    for path in paths:  # what sorting made of two lines with the same comment
        text = path.read_text()
        pattern = r"^from (\S+) import \(\n((?:    \w+,  # noqa: E402\n)+)\)$"
        one_line = flowed(re.sub(pattern, on_one_line, text, flags=re.M))
        if one_line != text:
            path.write_text(one_line)


def flowed(text: str) -> str:
    """Return a source with lines of prose that grew too long broken: the last words go to the next line."""
    lines, place = text.splitlines(), 0
    while place < len(lines):
        line = lines[place]
        named = re.search(rf"`{PACKAGE}\.[\w.]+`", line)
        if len(line) > 110 and named:
            start = re.match(r"[ ]*(# ?|#: ?)?", line)[0]  # type: ignore[index]
            words: list[str] = []
            while len(line) > 99:
                line, _, word = line.rpartition(" ")
                words.insert(0, word)
            lines[place] = line
            after = lines[place + 1] if place + 1 < len(lines) else ""
            rest = after.removeprefix(start)
            same = after.startswith(start) and rest[:1] not in ("", " ", "-", ">", '"')
            if same and len(after) + len(" ".join(words)) < 110:
                lines[place + 1] = f"{start}{' '.join(words)} {rest}"
            else:
                lines.insert(place + 1, start + " ".join(words))
        place += 1
    return "\n".join(lines) + "\n"


def on_one_line(found: re.Match[str]) -> str:
    """Return an import with one comment."""
    names = ", ".join(re.findall(r"^    (\w+),", found[2], re.M))
    return f"from {found[1]} import {names}  # noqa: E402"


def with_homes(text: str, package: str, modules: dict[str, str]) -> str:
    """Rewrite the modules that names of a package are looked up in, which are strings (`cosilo.lazy`)."""
    if "names_from" not in text:
        return text

    def new(match: re.Match[str]) -> str:
        old = f"{package}.{match[2]}".lstrip(".")
        target = modules.get(old)
        if target is None:
            return match[0]
        if package and not target.startswith(package + "."):
            raise Problem(f"{package}: {old} goes to {target}, outside the package")
        return f'{match[1]}"{target.removeprefix(package).lstrip(".")}"'

    head, mark, rest = text.partition("if not TYPE_CHECKING:")
    if not mark:
        return text
    return head + mark + re.sub(r'([:,] )"([a-z_.]+)"(?=[,)}])', new, rest)


@dataclass
class Member:
    """A module of today, taken apart."""

    name: str
    source: Source
    docstring: str = ""
    imports: list[cst.BaseStatement] = field(default_factory=list)
    typing: list[cst.BaseStatement] = field(default_factory=list)
    late: list[cst.BaseStatement] = field(default_factory=list)
    body: list[cst.BaseStatement] = field(default_factory=list)


class Chapter:
    """A new module, and the modules that it is made of."""

    def __init__(self, name: str, olds: list[str], moves: Moves) -> None:
        self.name, self.moves = name, moves
        self.members = [Member(old, Source(moves.tree.paths[old], moves, name)) for old in olds]

    def read(self) -> list[str]:
        """Read the members; return what is wrong."""
        problems: list[str] = []
        for member in self.members:
            member.source.read_imports()
            problems += member.source.problems
        if len(self.members) > 1:
            problems += self._clashes()
        return [f"{self.name}: {line}" if not line.startswith("note:") else line for line in problems]

    def _clashes(self) -> list[str]:
        """Return the names that would be bound twice, or hide a builtin that another part uses."""
        tree, seen, problems = self.moves.tree, {}, []
        for member in self.members:
            for name, origin in tree.bound(member.name).items():
                real = tree.defined(origin)
                if real[0] == "module" and real[1] in self.moves.modules:
                    continue  # not bound afterwards, or bound by its new name
                before, which = seen.setdefault(name, (real, member.name))
                if before != real:
                    problems.append(f"{name} is bound twice, by {which} and by {member.name}")
        used = {name: member for member in self.members for name in member.source.builtins_used()}
        for name, member in used.items():
            if name in seen and name not in tree.bound(member.name):
                problems.append(f"{name} of {seen[name][1]} hides the builtin that {member.name} uses")
        return problems

    def text(self) -> str:
        """Return the source of the chapter."""
        if len(self.members) == 1:
            return self.members[0].source.edited().code
        for member in self.members:
            take_apart(member)
        ordered = self._ordered()
        main = self.members[0]
        out = [f'"""{self._docstring()}"""\n', "\n"]
        seen: set[str] = set()
        drop_unused(ordered)
        plain = [one for member in ordered for one in member.imports]
        skipped: list[str] = []
        if any("isort: skip" in cst.Module(body=[one]).code for member in ordered for one in member.late):
            # torch may be missing: what says so in one line comes first
            optional = [one for one in plain if needs_torch(one)]
            plain = [one for one in plain if one not in optional]
            out += unique(plain, seen)
            first = unique([one for member in ordered for one in member.late], seen)
            skipped = [*first, *(f"{one.rstrip()}  # isort: skip\n" for one in unique(optional, seen))]
        else:
            out += unique(plain, seen)
        late = unique([one for member in ordered for one in member.late], seen)
        late += skipped
        typing = unique([one for member in ordered for one in member.typing], seen)
        if typing:
            out += [
                "\nif TYPE_CHECKING:\n",
                *("    " + line for one in typing for line in one.splitlines(True)),
            ]
        out += ["\n", *late]
        for place, member in enumerate(ordered):
            if member is main and place == 0 and self.name not in DOCSTRINGS:
                out.append("\n")
            else:
                out.append(heading(member, main, self.name))
            code = cst.Module(body=member.body, footer=member.source.module.footer).code
            out.append(code.lstrip("\n"))
            out.append("\n\n")
        return "".join(out)

    def _docstring(self) -> str:
        """Return the docstring of the main module, with the examples of the others."""
        text = DOCSTRINGS.get(self.name, self.members[0].docstring)
        examples = [member.docstring for member in self.members[1:] if ">>>" in member.docstring]
        if not examples:
            return text
        return "\n\n".join([text.rstrip(), *(one.rstrip() for one in examples)]) + "\n"

    def _ordered(self) -> list[Member]:
        """Return the members in an order in which all that is used at import is bound."""
        names = {member.name: member for member in self.members}
        needs: dict[str, set[str]] = {}
        for member in self.members:
            needs[member.name] = (member.source.needed & set(names)) - {member.name}
        imported = {member.name: self._imports(member) & set(names) for member in self.members}
        for name, found in needs.items():  # what a function needs that is called at import
            waiting = list(found)
            while waiting:
                more = imported[waiting.pop()] - found - {name}
                found |= more
                waiting += more
        ordered: list[Member] = []
        left = list(self.members)
        while left:
            done = {member.name for member in ordered}
            ready = [member for member in left if needs[member.name] <= done]
            if not ready:
                raise Problem(f"{self.name}: no order for {[member.name for member in left]}")
            ordered.append(ready[0])
            left.remove(ready[0])
        return ordered

    def _imports(self, member: Member) -> set[str]:
        found = set()
        for origin in self.moves.tree.bound(member.name).values():
            real = self.moves.tree.defined(origin)
            if real[0] in ("name", "module"):
                found.add(real[1])
        return found - {member.name}


def take_apart(member: Member) -> None:
    """Sort the statements of a module into its docstring, its imports and the rest."""
    body = list(member.source.edited().body)
    if body and is_docstring(body[0]):
        text = body.pop(0).body[0].value.evaluated_value  # type: ignore[union-attr,attr-defined]
        member.docstring = text
    last = max((place for place, one in enumerate(body) if is_import(one) or is_typing(one)), default=-1)
    special = False
    for place, one in enumerate(body):
        if place > last:
            member.body.append(one)
        elif is_typing(one):
            assert isinstance(one, cst.If)
            member.typing += one.body.body  # type: ignore[arg-type]
        elif is_import(one) and not special and not has_comment(one):
            member.imports.append(one)
        else:
            special |= not is_import(one)
            member.late.append(one)


def is_docstring(node: cst.CSTNode) -> bool:
    """Return whether a statement is a docstring."""
    return (
        isinstance(node, cst.SimpleStatementLine)
        and isinstance(node.body[0], cst.Expr)
        and isinstance(node.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def is_import(node: cst.CSTNode) -> bool:
    """Return whether a statement is an import."""
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Import | cst.ImportFrom)


def is_typing(node: cst.CSTNode) -> bool:
    """Return whether a statement holds imports for type checkers."""
    return (
        isinstance(node, cst.If)
        and node.orelse is None
        and isinstance(node.test, cst.Name)
        and node.test.value == "TYPE_CHECKING"
        and all(is_import(one) for one in node.body.body)
    )


def drop_unused(members: list[Member]) -> None:
    """Drop imports that only say that torch is missing, if another import of the chapter says it."""
    lines = [line for member in members for one in member.imports for line in imported(one)]
    for member in members:
        for one in list(member.late):
            if "noqa: F401" not in cst.Module(body=[one]).code or not is_import(one):
                continue
            (line,) = imported(one)
            module = line.removeprefix("from ").replace(" import ", ".")
            if any(other.startswith(f"from {module} import") for other in lines):
                member.late.remove(one)


def needs_torch(node: cst.BaseStatement) -> bool:
    """Return whether an import needs torch."""
    return any("torch" in re.split(r"\W+", line) for line in imported(node))


def has_comment(node: cst.BaseStatement) -> bool:
    """Return whether a line has a comment, which says why it is where it is."""
    assert isinstance(node, cst.SimpleStatementLine)
    return node.trailing_whitespace.comment is not None or any(one.comment for one in node.leading_lines)


def unique(nodes: list[cst.BaseStatement], seen: set[str]) -> list[str]:
    """Return the code of statements, without the imports that were seen before."""
    out = []
    for node in nodes:
        if not is_import(node):
            if isinstance(node, cst.Try):
                for inner in node.body.body:
                    if is_import(inner):
                        seen |= set(imported(inner))
            code = cst.Module(body=[node]).code
            if code.strip() not in seen:
                seen.add(code.strip())
                out.append(code)
            continue
        assert isinstance(node, cst.SimpleStatementLine)
        fresh = [one for one in imported(node) if one not in seen]
        seen |= set(fresh)
        if not fresh:
            continue
        comment = node.trailing_whitespace.comment
        tail = f"  {comment.value}" if comment else ""
        above = "".join(f"{one.comment.value}\n" for one in node.leading_lines if one.comment)
        out += [f"{above if not place else ''}{line}{tail}\n" for place, line in enumerate(joined(fresh))]
    return out


def joined(lines: list[str]) -> list[str]:
    """Return `from a import b` and `from a import c` as one line."""
    found: dict[str, list[str]] = {}
    for line in lines:
        start, mark, name = line.partition(" import ")
        found.setdefault(start if mark else line, []).append(name)
    return [
        f"{start} import {', '.join(names)}" if names != [""] else start for start, names in found.items()
    ]


def imported(node: cst.CSTNode) -> list[str]:
    """Return the imports of a statement one by one: `from a import b as c`."""
    assert isinstance(node, cst.SimpleStatementLine)
    small = node.body[0]
    assert isinstance(small, cst.Import | cst.ImportFrom)
    assert not isinstance(small.names, cst.ImportStar)
    found = []
    for alias in small.names:
        name = alias.evaluated_name + (f" as {alias.evaluated_alias}" if alias.asname else "")
        found.append(
            f"from {dotted(small.module)} import {name}"
            if isinstance(small, cst.ImportFrom)
            else f"import {name}"
        )
    return found


def heading(member: Member, main: Member, chapter: str) -> str:
    """Return the heading of a section: the docstring that its module had."""
    words = member.name.rpartition(".")[2].replace("_", " ")
    lines = [f"\n\n{DASHES} {words}"]
    if (member is not main or chapter in DOCSTRINGS) and ">>>" not in member.docstring:
        lines += [f"# {line}".rstrip() for line in narrow(member.docstring.strip())]
    return "\n".join(lines) + "\n\n\n"


def narrow(text: str) -> list[str]:
    """Return the lines of a text; paragraphs and items with a line that is too long are filled again."""
    lines: list[str] = []
    for block in re.split(r"(?<=\n)(?=\n)|\n(?=- )", text):
        inner = block.strip("\n").splitlines()
        if block.startswith("\n"):
            lines.append("")
        if any(len(line) > 97 for line in inner) and not any(line.startswith("    ") for line in inner):
            indent = "  " if inner[0].startswith("- ") else ""
            lines += textwrap.wrap(" ".join(line.strip() for line in inner), 97, subsequent_indent=indent)
        else:
            lines += inner
    return lines


def report(modules: dict[str, str]) -> None:
    """Print what has to be looked at by hand: paths of modules that moved, in texts and strings."""
    moved = {f"{old.replace('.', '/')}.py": new for old, new in modules.items()}
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        path = Path(name)
        if not path.exists() or path.suffix not in (".py", ".md", ".toml", ".txt") or "tools" in path.parts:
            continue
        if path.name == "CHANGELOG.md":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for old, new in moved.items():
                if re.search(rf"(?<![\w/]){re.escape(old)}\b|/{re.escape(old)}\b", line):
                    print(f"by hand: {path}:{number}: {old} is now {new}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["all"])
