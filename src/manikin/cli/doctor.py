"""`manikin doctor`: what works on this machine, and how to get the rest."""

from __future__ import annotations

import dataclasses
import json as json_module
from itertools import groupby

from manikin._version import __version__
from manikin.cli.common.checks import FAILED, MISSING, OK, Diagnosis, run_checks

__all__ = ["main"]

_SIGNS = {OK: "[green]ok[/]", MISSING: "[yellow]--[/]", FAILED: "[red]FAILED[/]"}


def main(*, json: bool = False) -> int:
    """Say what works on this machine and how to get the rest.

    Args:
        json: print one JSON object instead of the table.

    Returns:
        0 when everything that manikin cannot do without works, else 1. What is optional never fails.
    """
    findings = run_checks()
    works = all(finding.state == OK for finding in findings if finding.core)
    if json:
        report = {"version": __version__, "ok": works, "findings": [dataclasses.asdict(f) for f in findings]}
        print(json_module.dumps(report, indent=2))
    else:
        _show(findings, works)
    return 0 if works else 1


def _show(findings: list[Diagnosis], works: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(soft_wrap=False)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for group, members in groupby(findings, key=lambda finding: finding.group):
        table.add_row(f"[bold]{group}[/]")
        for finding in members:
            text = escape(finding.detail) + (f"\n[dim]{escape(finding.hint)}[/]" if finding.hint else "")
            table.add_row(_SIGNS[finding.state], finding.name, text)
    console.print(f"manikin {__version__}\n", table, sep="\n", highlight=False)
    console.print("\nThe core works." if works else "\n[red]The core does not work: see FAILED above.[/]")
