"""Help for flags that are options of an environment, from the one place where these are documented."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path
from typing import Any

import tyro

__all__ = ["documented", "option_docs"]


def documented(name: str, more: str = "") -> Any:
    """For ``Annotated``: the help of a flag that is the option ``name`` of
    :class:`~manikin.env.options.EnvOptions`, its first sentence there, and ``more`` that only the command line has.

    Raises:
        KeyError: there is no such option.
    """
    first = re.split(r"(?<=[.])\s", option_docs()[name])[0]
    return tyro.conf.arg(help=f"{first} {more}".strip())


@functools.cache
def option_docs() -> dict[str, str]:
    """Option -> what the docstring of :class:`~manikin.env.options.EnvOptions` says of it, as plain text. Read without
    an import, which would take a second of every command."""
    spec = importlib.util.find_spec("manikin.env.options")
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (kind,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "EnvOptions")
    text = ast.get_docstring(kind) or ""
    listed = text.partition("Attributes:\n")[2].partition("\nRaises:")[0]
    found: dict[str, str] = {}
    for entry in re.split(r"\n {4}(?=\w)", f"\n{listed.rstrip()}")[1:]:
        names, _, said = entry.partition(": ")
        plain = re.sub(r":\w+:`~?([^`]+)`", r"\1", " ".join(said.split())).replace("``", "")
        found |= dict.fromkeys(names.split(", "), plain if said.startswith("``") else plain[:1].upper() + plain[1:])
    return found
