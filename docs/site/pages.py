"""What the site has beyond the pages as they stand: menus, commands, names, and files from outside docs/.

Text in, text out: a page asks for a part with a comment `<!-- site: PART -->`, which a code host does not
show.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

import cosilo
import cosilo.data
from cosilo.cli.main import app

# Names are imported when they are used; here all at once, before Sphinx imports any of them in its own way,
# in which pydantic does not understand models that take any key.
for _name_used in cosilo.__all__:
    getattr(cosilo, _name_used)

#: Where the names of a module are described, as the page and the heading there. The longest match counts, and
#: a room that is not here gets a heading of its own on the first page.
SECTIONS = {
    "cosilo.federation": ("python", "Federations and runs"),
    "cosilo.silo": ("python", "Federations and runs"),
    "cosilo.coordination.institution": ("python", "Federations and runs"),
    "cosilo.engines": ("python", "Federations and runs"),
    "cosilo.learners": ("python", "Learners"),
    "cosilo.data": ("python", "Data"),
    "cosilo.simulated_time": ("python", "Simulated time"),
    "cosilo.errors": ("python", "Errors"),
    "cosilo.methods": ("methods", "Methods"),
    "cosilo.methods.base": ("extending", "A method"),
    "cosilo.coordination.coordinator": ("extending", "A method"),
    "cosilo.protocol": ("extending", "The words of the contract"),
    "cosilo.runs": ("extending", "The words of the contract"),
}
#: Classes whose members are not described where others inherit them: engines call these, and pydantic.
INNER = {"BaseModel", "Holdings", "Participant"}
#: Files outside docs/ that pages may link to, and where the site has them.
OUTSIDE = {"../CONTRIBUTING.md": "contributing.md", "../README.md": "index.md"}


def filled(name: str, text: str, docs: Path) -> str:
    """A page as the site has it.

    >>> filled("page", "as it stands", Path())
    'as it stands'
    """

    def part(comment: re.Match[str]) -> str:
        words = comment[1].split()
        if words == ["commands"]:
            return commands()
        if words == ["names"]:
            return names(Path(name).name)
        if words[0] == "file":
            return outside(docs / words[1])
        raise ValueError(f"docs/{name}.md: no such part of the site: {comment[0]}")

    text = re.sub(r"<!-- site: (.*?) -->", part, text)
    for file, page in OUTSIDE.items():
        text = text.replace(f"]({file})", f"]({page})")
    return text + menus(text) if name == "index" else text


def menus(index: str) -> str:
    """The site's menus: a heading of the index is the caption of one, the links of its list are the entries.

    >>> print(menus("## How-to guides\\n\\n- [Data](data.md): yours.\\n- [Deploy](deploy.md)"))
    <BLANKLINE>
    <BLANKLINE>
    ```{toctree}
    :hidden:
    :caption: How-to guides
    data
    deploy
    ```
    """
    made = []
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        pages = re.findall(r"^- \[.*?\]\(([\w/-]+)\.md\)", section, re.M)
        if pages:
            made += [
                "",
                "",
                "```{toctree}",
                ":hidden:",
                f":caption: {section.splitlines()[0]}",
                *pages,
                "```",
            ]
    return "\n".join(made)


def outside(path: Path) -> str:
    """A file from outside docs/, below the title that the page has, with links that lead to pages here."""
    text = re.sub(r"\A# .*\n", "", path.read_text(encoding="utf-8"))
    return re.sub(r"\]\(docs/", "](", text)


# commands


def commands() -> str:
    """Every command with its arguments and options, from the command line itself."""
    found = list(_commands(typer.main.get_command(app), "cosilo"))
    table = [
        f"| [`{name.removeprefix('cosilo ')}`](#{_anchor(name)}) | {_summary(one.help)} |"
        for name, one in found
    ]
    parts = ["\n".join(["| command | what it does |", "|---|---|", *table])]
    for name, one in found:
        shown = [parameter for parameter in one.params if not parameter.hidden]
        usage = " ".join([name, *(_name(parameter) for parameter in shown if _is_argument(parameter))])
        options = "" if all(map(_is_argument, shown)) else " [OPTIONS]"
        lines = [f"## {name}", _prose(one.help), f"```text\n{usage.replace('`', '')}{options}\n```"]
        if shown:
            rows = [f"| {_name(parameter)} | {_about(parameter)} |" for parameter in shown]
            lines.append("\n".join(["| argument or option | |", "|---|---|", *rows]))
        parts += lines
    return "\n\n".join(parts)


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        elif not command.hidden:
            yield f"{name} {word}", command


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _prose(text: str | None) -> str:
    """Help in which square brackets mean themselves, as Markdown."""
    return inspect.cleandoc(text or "").replace("\\[", "[").replace("\f", "").replace("[", "\\[")


def _summary(text: str | None) -> str:
    return _prose(text).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def _is_argument(parameter: Any) -> bool:
    return str(parameter.param_type_name) == "argument"


def _name(parameter: Any) -> str:
    if _is_argument(parameter):
        word = f"{parameter.metavar or parameter.name.upper()}{'…' if parameter.nargs != 1 else ''}"
        return f"`{word}`" if parameter.required else f"`[{word}]`"
    value = "" if parameter.is_flag else f" {parameter.metavar or _value(parameter)}"
    return ", ".join(f"`{one}{value}`" for one in [*parameter.opts, *parameter.secondary_opts])


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    choices = getattr(kind, "__args__", ())
    if choices and all(isinstance(one, str) for one in choices):
        return "{" + ",".join(choices) + "}"
    return str(getattr((choices or (kind,))[0], "__name__", "value")).upper()


def _about(parameter: Any) -> str:
    about = [_summary(parameter.help)]
    if parameter.multiple and parameter.nargs == 1:
        about.append("May be given several times.")
    default = parameter.default
    if parameter.required:
        about.append("Required.")
    elif not callable(default) and default not in (None, False, (), []):
        about.append(f"Default: `{default}`.")
    return " ".join(about)


# names


def names(page: str) -> str:
    """The public names that belong on a page, by section: a table, and what their docstrings say."""
    sections: dict[str, list[str]] = {}
    for name, (where, heading) in places().items():
        if where == page:
            sections.setdefault(heading, []).append(name)
    order = [heading for _, heading in SECTIONS.values()]
    parts = []
    for heading in sorted(sections, key=lambda one: order.index(one) if one in order else len(order)):
        inside = sorted(sections[heading], key=str.lower)
        rows = [f"| [`{name.rpartition('.')[2]}`](#{name}) | {_first_line(name)} |" for name in inside]
        parts += [f"## {heading}"] * (len(sections) > 1)
        parts += ["\n".join(["| name | |", "|---|---|", *rows])]
        parts += [f"```{{eval-rst}}\n{_described(name)}\n```" for name in inside]
    return "\n\n".join(parts)


@cache
def places() -> dict[str, tuple[str, str]]:
    """Page and heading of every public name."""
    found = {}
    for package in (cosilo, cosilo.data):
        homes = _homes(package)
        for name in package.__all__:
            home = homes[name]
            known = [room for room in SECTIONS if f"{home}.".startswith(f"{room}.")]
            room = home.split(".")[1].replace("_", " ").capitalize()
            found[f"{package.__name__}.{name}"] = SECTIONS[max(known, key=len)] if known else ("python", room)
    return found


def _homes(package: Any) -> dict[str, str]:
    """The module that each name of a package comes from, as its imports for type checkers say."""
    imports = [
        one for one in ast.walk(ast.parse(inspect.getsource(package))) if isinstance(one, ast.ImportFrom)
    ]
    return {alias.name: str(one.module) for one in imports for alias in one.names}


def _thing(name: str) -> Any:
    return getattr(cosilo.data if name.startswith("cosilo.data.") else cosilo, name.rpartition(".")[2])


def _first_line(name: str) -> str:
    return (inspect.getdoc(_thing(name)) or "").split("\n")[0].replace("|", "\\|")


def _described(name: str) -> str:
    """The directive that takes what a docstring says."""
    thing = _thing(name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f".. autoexception:: {name}"
    if inspect.isclass(thing) and thing.__module__.startswith("cosilo."):
        if thing in cosilo.METHODS.values():  # its steps are for engines; what users see are its parameters
            paper = f"   .. rubric:: The paper\n\n   .. automodule:: {thing.__module__}\n      :no-index:"
            return f".. autoclass:: {name}\n\n{paper}"
        options = {
            "members": "",
            "inherited-members": ", ".join(sorted(INNER)),
            "exclude-members": "model_config",
        }
        return "\n".join(
            [f".. autoclass:: {name}", *(f"   :{key}: {value}" for key, value in options.items())]
        )
    if inspect.isfunction(thing):
        return f".. autofunction:: {name}"
    return f".. autodata:: {name}\n   :no-value:"
