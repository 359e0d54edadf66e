"""`manikin report`: several evaluations together: who is better, and does reality agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.terminal import console
from manikin.cli.evaluation.several import write_ranking
from manikin.moved import old_names

__all__ = ["ReportOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `manikin report`."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of evaluations, or their report.json: several policies, policy seeds, and variants of the protocol."""
    real: Path | None = None
    """Success of the policies on real robots, a JSON file. Adds MMRV and correlations."""
    map: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """With --real: what that file calls a policy or a task, and what it is called here: --map rt-1-x=mine. An empty
    name leaves one out: --map rt-2-x=."""
    offline: Path | None = None
    """An offline.json of `manikin eval --offline`: shows the ranking by action error beside this one."""
    out: Path = Path("runs/ranking")
    """Folder for ranking.json and ranking.html."""


def main(options: Annotated[ReportOptions, tyro.conf.arg(name="")]) -> int:
    """Rank the policies of several evaluations, show what variants of the protocol change, and compare with reality."""
    return run(options)


def run(options: ReportOptions) -> int:
    """Write the ranking; 1 where episodes are unhealthy."""
    return write_ranking(console(), options.runs, options.out, options.real, options.map, options.offline)


__getattr__ = old_names(__name__)
