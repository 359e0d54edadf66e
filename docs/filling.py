"""How the scripts end that fill pages from results: they write the pages, or say which are not up to date."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["finish"]


def finish(words: list[str], usage: str | None, made: Callable[[], Mapping[Path, str]]) -> int:
    """The exit status of a script.

    Args:
        words: its arguments: none, or ``--check``.
        usage: what it says of other arguments.
        made: the text of each file as it has to be.
    """
    if words not in ([], ["--check"]):
        raise SystemExit(usage)
    wanted = made()
    other = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    if words and other:
        print("not up to date:", ", ".join(path.name for path in other))
    for path in [] if words else other:
        path.write_text(wanted[path])
    return int(bool(words and other))
