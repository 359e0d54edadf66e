"""What the benchmarks share: their small size, the command that a result names, and how it is written."""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small, to see that it runs; its figures say nothing")
    parser.add_argument("--out", type=Path, help="JSON file for the result")
    return parser


def parsed(parser: argparse.ArgumentParser, out: Path, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a benchmark that adds to a published file; a small run does not go there."""
    options = parser.parse_args(argv)
    if options.quick and options.out is None:
        parser.error(f"--quick needs --out FILE: its figures do not belong into {out}")
    options.out = options.out or out
    return options


def command(words: Sequence[str] | None = None) -> str:
    """The command that runs, as a result names it: a folder elsewhere is called DIR, a file elsewhere FILE.

    Args:
        words: script and arguments, by default of this process.
    """
    script, *rest = sys.argv if words is None else words

    def named(word: str) -> str:
        path = Path(word)
        if not path.is_absolute():
            return word
        if path.is_relative_to(ROOT):
            return path.relative_to(ROOT).as_posix()
        return "DIR" if path.is_dir() else "FILE"

    return shlex.join(["python", named(str(Path(script).resolve())), *map(named, rest)])


def spread(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Median of what the rounds measured, the least and the most."""
    found = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return {name: round(value, digits) for name, value in found.items()}


def write(result: dict[str, Any], out: Path | None) -> None:
    """Print a result, and write it into a file if one is named."""
    text = json.dumps(result, indent=2)
    print(text)
    if out is not None:
        out.write_text(text + "\n")
