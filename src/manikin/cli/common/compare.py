"""`manikin train --compare`: finished runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from manikin.cli.common.terminal import OK, show_table

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["compare_runs", "runs_in"]


def runs_in(place: Path) -> list[Path]:
    """The folder of a run, also named by its checkpoint; or the runs in a folder, as ``--vary`` writes them.

    Raises:
        AssetError: there is none.
    """
    from manikin.errors import AssetError
    from manikin.learn.run.train import CHECKPOINT

    folder = place.parent if place.name == CHECKPOINT else place
    if (folder / CHECKPOINT).is_file():
        return [folder]
    found = sorted(one.parent for one in folder.glob(f"*/{CHECKPOINT}"))
    if not found:
        raise AssetError(f"no run in {folder}: the folder of a run holds a {CHECKPOINT}")
    return found


def compare_runs(out: Console, folders: Sequence[Path], target: Path | None) -> int:
    """Print runs side by side and write a page with their curves.

    Raises:
        AssetError, DataError: as :func:`runs_in` and :func:`~manikin.learn.run.page.summary_of`.
    """
    from rich.table import Table

    from manikin.learn.run.page import rate_words, summary_of, write_comparison

    folders = [run for place in folders for run in runs_in(place)]
    found = [summary_of(folder) for folder in folders]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("run", "algorithm", "task", "seed", "steps", "minutes", "validated", "tested"):
        table.add_column(heading, no_wrap=True)
    for one in found:
        tested = (
            "not tested"
            if one["tested"] is None
            else f"{one['tested']['rate']:.1%} [{one['tested']['low']:.1%}, {one['tested']['high']:.1%}]"
        )
        table.add_row(
            one["name"],
            one["algorithm"],
            one["task"],
            str(one["seed"]),
            f"{one['steps']:,}",
            f"{one['seconds'] / 60:.1f}",
            rate_words(one["best"]),
            tested,
        )
    show_table(out, table)
    for name in sorted({name for one in found for name in one["settings"]}):
        values = [one["settings"].get(name) for one in found]
        if any(value != values[0] for value in values):
            out.print(f"{name}: {', '.join(str(value) for value in values)}", soft_wrap=True)
    target = target or Path("runs") / "compared.html"
    write_comparison(folders, target)
    out.print(f"page: {target}", soft_wrap=True)
    return OK
