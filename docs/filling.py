"""What the scripts share that fill pages from results: sections of a page, charts as files, how a script ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

__all__ = ["alone", "finish", "numbers", "sections"]


def sections(page: str, made: Mapping[str, str]) -> str:
    """A page with some of its sections made new.

    Args:
        page: its text. A section stands between ``<!-- name: how it is made -->`` and ``<!-- /name -->``.
        made: the new text of each section, by name.

    Raises:
        SystemExit: the page lacks a section.
    """
    for name, text in made.items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- /{name} -->)"
        page, found = re.subn(pattern, lambda at, text=text: f"{at[1]}\n{text}\n\n{at[2]}", page, flags=re.DOTALL)
        if found != 1:
            raise SystemExit(f"the page has no section between <!-- {name}: ... --> and <!-- /{name} -->")
    return page


def alone(svg: str) -> str:
    """A chart as a file of its own."""
    style = "<style>text{font:11px sans-serif;fill:#777}</style>"
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{style}", 1)


def numbers(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table in Markdown; its first ``words`` columns are to the left, those with numbers to the right."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * words + "---:|" * (len(heads) - words)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


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
