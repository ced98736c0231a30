"""References between the modules of a tree, and edits of them that keep every other character (libcst).

`Tree` knows the modules of `src/cosilo` and where each of their names is defined. `Source` gives the text of
one file after modules have moved: its imports, and every use of what they bind.
"""

import builtins
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import libcst as cst
from libcst.metadata import (
    Assignment,
    ClassScope,
    GlobalScope,
    MetadataWrapper,
    ParentNodeProvider,
    Scope,
    ScopeProvider,
)

PACKAGE = "cosilo"
#: Where a name comes from: ("module", dotted), ("name", module, name) or ("other", module, name).
Origin = tuple[str, ...]


class Problem(Exception):
    """Something that the script cannot do by itself."""


def dotted(node: cst.BaseExpression | None) -> str:
    """Return the text of a dotted name."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    assert node is None or isinstance(node, cst.Name)
    return "" if node is None else node.value


def as_expression(name: str) -> cst.Name | cst.Attribute:
    """Return a dotted name as an expression."""
    found = cst.parse_expression(name)
    assert isinstance(found, cst.Name | cst.Attribute)
    return found


@dataclass
class Tree:
    """The modules of the package by name, "protocol.task"; the package itself is ""."""

    root: Path
    paths: dict[str, Path] = field(default_factory=dict)
    _bound: dict[str, dict[str, Origin]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in sorted(self.root.rglob("*.py")):
            parts = path.relative_to(self.root).with_suffix("").parts
            self.paths[".".join(part for part in parts if part != "__init__")] = path

    def is_package(self, name: str) -> bool:
        """Return whether a module is the `__init__` of a package."""
        return name in self.paths and self.paths[name].name == "__init__.py"

    def bound(self, name: str) -> dict[str, Origin]:
        """Return what a module binds at its top level, with where it comes from at first hand."""
        if name not in self._bound:
            self._bound[name] = dict(
                self._bindings(name, cst.parse_module(self.paths[name].read_text()).body)
            )
        return self._bound[name]

    def _bindings(self, name: str, body: object) -> Iterator[tuple[str, Origin]]:
        for node in body:  # type: ignore[attr-defined]
            if isinstance(node, cst.FunctionDef | cst.ClassDef):
                yield node.name.value, ("name", name, node.name.value)
            elif isinstance(node, cst.If | cst.Try | cst.For | cst.With):
                yield from self._bindings(name, node.body.body)
            elif isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    yield from self._small(name, small)

    def _small(self, name: str, node: cst.BaseSmallStatement) -> Iterator[tuple[str, Origin]]:
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                origin = self.at_first_hand(dotted(node.module), alias.name.value)
                yield alias.evaluated_alias or alias.evaluated_name, origin
        elif isinstance(node, cst.Import):
            for alias in node.names:
                bound = alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
                full = alias.evaluated_name if alias.evaluated_alias else bound
                yield bound, ("other", full, "")
        elif isinstance(node, cst.Assign):
            for target in node.targets:
                for leaf in _names(target.target):
                    yield leaf, ("name", name, leaf)
        elif isinstance(node, cst.AnnAssign):
            for leaf in _names(node.target):
                yield leaf, ("name", name, leaf)

    def at_first_hand(self, module: str, name: str) -> Origin:
        """Return what `from module import name` means, without following what that module imports."""
        if module != PACKAGE and not module.startswith(PACKAGE + "."):
            return "other", module, name
        inside = module.removeprefix(PACKAGE).lstrip(".")
        full = f"{inside}.{name}".lstrip(".")
        if full in self.paths and not (inside in self.paths and self._defines(inside, name)):
            return "module", full
        return "name", inside, name

    def _defines(self, package: str, name: str) -> bool:
        """Return whether a package has a function or class with the name of one of its modules."""
        text = self.paths[package].read_text()
        return re.search(rf"^(def|class) {name}\b|^from \S+ import .*\b{name}\b", text, re.M) is not None

    def defined(self, origin: Origin) -> Origin:
        """Follow imports to the module that defines a name."""
        seen = set()
        while origin[0] == "name" and origin not in seen:
            seen.add(origin)
            if origin[1] not in self.paths:
                break
            found = self.bound(origin[1]).get(origin[2])
            if found is None:
                break
            origin = found
        return origin


def _names(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _names(element.value)


@dataclass
class Moves:
    """Where modules go: old name -> new name; packages that disappear with their last module."""

    tree: Tree
    modules: Mapping[str, str]
    gone: set[str] = field(default_factory=set)

    def home(self, module: str) -> str:
        """Return the new name of a module."""
        return self.modules.get(module, module)

    def target(self, origin: Origin) -> Origin:
        """Return where something is imported from afterwards."""
        if origin[0] == "name" and origin[1] in self.gone:
            origin = self.tree.defined(origin)
            if origin[0] == "name" and origin[1] in self.gone:
                raise Problem(f"{origin}: is defined in a package that disappears")
        if origin[0] == "module":
            return "module", self.home(origin[1])
        if origin[0] == "name":
            return "name", self.home(origin[1]), origin[2]
        return origin


@dataclass
class Source:
    """A file with its scopes, and the edits that are to be made in it."""

    path: Path
    moves: Moves
    #: The new module that the file becomes, or becomes a part of; None outside the package.
    home: str | None = None

    def __post_init__(self) -> None:
        self.wrapper = MetadataWrapper(cst.parse_module(self.path.read_text()), unsafe_skip_copy=True)
        self.module = self.wrapper.module
        scopes = self.wrapper.resolve(ScopeProvider)
        self.scope_of = scopes
        self.parents = self.wrapper.resolve(ParentNodeProvider)
        self.scopes = {scope for scope in scopes.values() if scope is not None}
        #: New expressions and strings for nodes, by identity.
        self.edits: dict[int, cst.CSTNode] = {}
        self.lines: dict[int, list[cst.ImportFrom]] = {}
        self.problems: list[str] = []
        #: Names of this chapter that code run at import uses, with the module of today that defines them.
        self.needed: set[str] = set()

    # ------------------------------------------------------------------ imports

    def read_imports(self) -> None:
        """Collect the edits that the moves ask for."""
        # Names first that bring nothing with them, then modules, whose new names have to be free.
        found = [node for node in self.scope_of if isinstance(node, cst.ImportFrom)]
        for node in found:
            module = dotted(node.module)
            inside = module == PACKAGE or module.startswith(PACKAGE + ".")
            if not inside or isinstance(node.names, cst.ImportStar):
                continue
            self._rewrite(node, module, node.names)

    def _rewrite(self, node: cst.ImportFrom, module: str, names: object) -> None:
        tree, kept = self.moves.tree, {}
        changed = False
        for alias in names:  # type: ignore[attr-defined]
            name, bound = alias.evaluated_name, alias.evaluated_alias or alias.evaluated_name
            origin = tree.at_first_hand(module, name)
            target = self.moves.target(origin)
            explicit = alias.asname is not None
            if origin[0] == "module":
                place = self._module_alias(node, origin[1], target[1], bound, explicit)
            else:
                place = self._name(node, origin, target, bound, explicit)
            if place is None:
                changed = True
                continue
            new_module, new_name, new_alias = place
            kept.setdefault(new_module, []).append((new_name, new_alias))
            same_alias = new_alias == (bound if explicit else None)
            changed |= (new_module, new_name) != (module, name) or not same_alias
        if changed:
            self.lines[id(node)] = [made(where, pairs, node) for where, pairs in kept.items()]

    def _name(
        self, node: cst.ImportFrom, origin: Origin, target: Origin, bound: str, explicit: bool
    ) -> tuple[str, str, str | None] | None:
        """Return how a name is imported afterwards; None if it is in the same module."""
        name = target[-1]
        real = self.moves.target(self.moves.tree.defined(origin))
        if self.home is not None and target[1] == self.home:
            if real[0] == "name" and real[1] == self.home:
                self._note(node, bound, self.moves.tree.defined(origin)[1])
                if bound != real[2]:
                    self._replace(node, bound, real[2])
                return None
            # the module only imported it from elsewhere
            target, name = real, real[-1]
            if target[0] == "module":
                raise Problem(f"{self.path}: {bound} is a module that another imports")
        elif target[0] == "module":  # re-exported by a package that disappears
            raise Problem(f"{self.path}: {bound}: a module by way of a package that disappears")
        where = target[1] if target[0] == "other" else f"{PACKAGE}.{target[1]}".rstrip(".")
        return where, name, bound if explicit else None

    def _module_alias(
        self, node: cst.ImportFrom, old: str, new: str, bound: str, explicit: bool
    ) -> tuple[str, str, str | None] | None:
        """Return how a module is imported afterwards; None if its names are in the same module."""
        package, _, stem = new.rpartition(".")
        where = f"{PACKAGE}.{package}".rstrip(".")
        if self.home == new:
            self._note(node, bound, old)
            self._replace_attributes(node, bound, "")
            return None
        if old == new or explicit:
            return where, stem, bound if explicit else None
        if bound == stem:
            return where, stem, None
        if self._is_free(stem, new):
            self._replace_attributes(node, bound, f"{stem}.")
            return where, stem, None
        self.problems.append(f"note: {self.path}: {stem} is taken, {bound} stays as an alias")
        return where, stem, bound

    def _is_free(self, name: str, module: str) -> bool:
        """Return whether a name is bound nowhere in the file, but for what becomes the same module."""
        for scope in self.scopes:
            for assignment in scope[name] if name in scope._assignments else ():
                node = getattr(assignment, "node", None)
                if isinstance(node, cst.ImportFrom):
                    origin = self.moves.tree.at_first_hand(dotted(node.module), name)
                    if self.moves.target(origin) == ("module", module):
                        continue
                return False
        return True

    # ------------------------------------------------------------------ uses

    def uses(self, node: cst.CSTNode, bound: str) -> Iterator[tuple[cst.CSTNode, Scope]]:
        """Yield where something that a statement binds is used."""
        scope = self.scope_of[node]
        assert scope is not None
        for assignment in scope._assignments.get(bound, ()):
            if isinstance(assignment, Assignment) and assignment.node is node:
                for access in assignment.references:
                    yield access.node, access.scope

    def _note(self, node: cst.ImportFrom, bound: str, module: str) -> None:
        for use, scope in self.uses(node, bound):
            if not isinstance(use, cst.SimpleString) and runs_at_import(scope):
                self.needed.add(module)

    def _replace(self, node: cst.CSTNode, bound: str, name: str) -> None:
        for use, scope in self.uses(node, bound):
            if isinstance(use, cst.SimpleString):
                self._replace_in_string(use, rf"\b{bound}\b", name)
            elif isinstance(use, cst.Name):
                self._check_free(name, scope, use)
                self.edits[id(use)] = cst.Name(name)
            else:
                raise Problem(f"{self.path}: {bound} is used in a way that is not known")

    def _replace_attributes(self, node: cst.CSTNode, bound: str, prefix: str) -> None:
        """Replace `bound.name` by `prefix` + `name` everywhere."""
        for use, scope in self.uses(node, bound):
            if isinstance(use, cst.SimpleString):
                self._replace_in_string(use, rf"\b{bound}\.", prefix)
                continue
            while not isinstance(use, cst.Name):
                assert isinstance(use, cst.Attribute)
                use = use.value
            parent = self.parents[use]
            if isinstance(parent, cst.Attribute) and parent.value is use:
                name = parent.attr.value
                if prefix:
                    self.edits[id(use)] = cst.Name(prefix[:-1])
                else:
                    self._check_free(name, scope, use)
                    self.edits[id(parent)] = cst.Name(name, lpar=parent.lpar, rpar=parent.rpar)
            elif prefix:
                self.edits[id(use)] = cst.Name(prefix[:-1])
            else:
                raise Problem(f"{self.path}: the module {bound} itself is used as a value")

    def _replace_in_string(self, node: cst.SimpleString, pattern: str, by: str) -> None:
        before = self.edits.get(id(node), node)
        assert isinstance(before, cst.SimpleString)
        self.edits[id(node)] = before.with_changes(value=re.sub(pattern, by, before.value))

    def _check_free(self, name: str, scope: Scope, use: cst.CSTNode) -> None:
        """Note a problem if a local name would hide the name of the module."""
        inner: Scope = scope
        while not isinstance(inner, GlobalScope):
            if name in inner._assignments and (inner is scope or not isinstance(inner, ClassScope)):
                function = getattr(inner, "name", None) or "?"
                self.problems.append(
                    f"{self.path}: in {function}, a local {name!r} hides that of the chapter"
                )
                return
            if inner.parent is inner:
                return
            inner = inner.parent

    def builtins_used(self) -> set[str]:
        """Return the builtins that the file uses."""
        found = set()
        for scope in self.scopes:
            for access in scope.accesses:
                name = access.node.value if isinstance(access.node, cst.Name) else ""
                if name in dir(builtins) and all(not isinstance(one, Assignment) for one in access.referents):
                    found.add(name)
        return found

    def edited(self) -> cst.Module:
        """Return the module with all edits made."""
        found = self.module.visit(_Editor(self.edits, self.lines))
        assert isinstance(found, cst.Module)
        return found


def runs_at_import(scope: Scope) -> bool:
    """Return whether code of a scope runs when the module is imported."""
    kinds = set()
    while not isinstance(scope, GlobalScope):
        kinds.add(type(scope).__name__)
        if scope.parent is scope:
            break
        scope = scope.parent
    return "FunctionScope" not in kinds


def made(module: str, pairs: list[tuple[str, str | None]], like: cst.ImportFrom) -> cst.ImportFrom:
    """Return an import statement."""
    names = ", ".join(name if alias is None else f"{name} as {alias}" for name, alias in pairs)
    line = cst.parse_statement(f"from {module} import {names}")
    assert isinstance(line, cst.SimpleStatementLine)
    found = line.body[0]
    assert isinstance(found, cst.ImportFrom)
    if like.lpar is not None and len(pairs) > 1:
        found = found.with_changes(lpar=cst.LeftParen(), rpar=cst.RightParen())
    return found


class _Editor(cst.CSTTransformer):
    def __init__(self, edits: Mapping[int, cst.CSTNode], lines: Mapping[int, list[cst.ImportFrom]]) -> None:
        super().__init__()
        self.edits, self.lines = edits, lines

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> object:  # type: ignore[override]
        if id(original_node) in self.edits:
            return self.edits[id(original_node)]
        if isinstance(original_node, cst.SimpleStatementLine):
            first = original_node.body[0]
            if id(first) in self.lines:
                assert isinstance(updated_node, cst.SimpleStatementLine)
                lines = [updated_node.with_changes(body=[one]) for one in self.lines[id(first)]]
                if not lines:
                    return cst.RemoveFromParent()
                lines[1:] = [line.with_changes(leading_lines=[]) for line in lines[1:]]
                return cst.FlattenSentinel(lines)
        return super().on_leave(original_node, updated_node)


def strings_moved(text: str, moves: Mapping[str, str]) -> str:
    """Return a text with the dotted names of modules replaced: `cosilo.runs.locks.locked`."""

    def new(match: re.Match[str]) -> str:
        parts = match[1].split(".")
        for length in range(len(parts), 0, -1):
            old = ".".join(parts[:length])
            if old in moves:
                return ".".join([PACKAGE, moves[old], *parts[length:]])
        return match[0]

    return re.sub(rf"(?<![\w.]){PACKAGE}\.(\w+(?:\.\w+)*)", new, text)
