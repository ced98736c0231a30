"""Parameters are described where they are declared; the docstrings of subclasses repeat them."""

import re
from inspect import cleandoc

_HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.M)
_ENTRY = re.compile(r"^((\w+) : .*\n(?: {4}.*\n?)+)", re.M)


def with_inherited_parameters(own: str, base: str) -> str:
    """The docstring of a class, in numpydoc's form, with the parameters that only its base class describes.

    >>> print(with_inherited_parameters("A child.", '''A base.
    ...
    ...     Parameters
    ...     ----------
    ...     a : int
    ...         One.
    ...     '''))
    A child.
    <BLANKLINE>
    Parameters
    ----------
    a : int
        One.
    """
    summary, sections = _sections(own)
    described = _entries(sections.pop("Parameters", ""))
    described |= {
        name: entry
        for name, entry in _entries(_sections(base)[1].get("Parameters", "")).items()
        if name not in described
    }
    if described:
        sections = {"Parameters": "\n".join(described.values())} | sections
    return "\n\n".join([summary, *(f"{name}\n{'-' * len(name)}\n{body}" for name, body in sections.items())])


def _sections(docstring: str) -> tuple[str, dict[str, str]]:
    summary, *rest = _HEADING.split(cleandoc(docstring))
    return summary.rstrip(), {name: body.rstrip() for name, body in zip(rest[::2], rest[1::2], strict=True)}


def _entries(body: str) -> dict[str, str]:
    return {name: entry.rstrip() for entry, name in _ENTRY.findall(body)}
