"""`manikin fidelity score`: simulations beside recordings and beside published simulators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from manikin.cli.common.terminal import OK, console, show_table
from manikin.cli.fidelity.reality import mask_of, reality_of
from manikin.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.fidelity import Score

__all__ = ["ScoreOptions", "report", "score"]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Score folders of simulated repeats, task01_01.csv to task10_20.csv, beside the published simulators. Or score
    simulations of tasks of your own on your own recordings: folders with recording.toml, or HDF5 files."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of simulations; each is a row of the tables. Of your own also HDF5 files."""
    reality: Path | None = None
    """Folder of the recordings: Task01_mean10Hz.csv and so on, or repeats, or your own. Default:
    collins2020/real_mean_10hz in MANIKIN_DATA."""
    mode: Literal["released", "paper"] | None = None
    """released, the default: as the authors' script computes, errors included; compares with the published rows. paper:
    the paper's formulas; the only mode of your own recordings."""
    tasks: tuple[str, ...] = ()
    """Numbers of tasks, or names of your own; by default those that a folder holds."""
    mask: tuple[str, ...] | None = None
    """With --mode paper: kinds of defects of the recordings that are left out; none for none. Default: zero_rows
    zero_repeat quaternion label_swap after_end; of your own zero_rows quaternion."""
    hz: float = 10.0
    """Rate of the folders' files; at 100 every tenth row is taken."""
    reality_hz: float = 10.0
    """Rate of the recordings, for raw repeats at 100 Hz."""
    resample: float | None = None
    """Of your own recordings: interpolate both sides to so many rows per second."""
    out: Path | None = None
    """Folder for index.html, a page with curves, and score.json."""
    json: bool = False
    """Print one JSON object with all metrics and all defects."""


def score(options: ScoreOptions) -> int:
    """Score; 0 done."""
    from manikin.fidelity.recordings.own import is_own
    from manikin.fidelity.score import score_folder

    if not options.folders:
        raise ConfigError("which simulation? Name a folder of files task01_01.csv to task10_20.csv, or your own")
    own = any(is_own(folder) for folder in options.folders)
    if own and options.reality is None:
        raise ConfigError("which recordings? Name the real arm's with --reality")
    reality = reality_of(options.reality)
    mask = mask_of(options.mask)
    scores = [
        score_folder(
            folder,
            reality,
            mode=options.mode or ("paper" if own else "released"),
            tasks=[int(task) if task.isdecimal() and not own else task for task in options.tasks] or None,
            mask=mask,
            hz=options.hz,
            reality_hz=options.reality_hz,
            resample=options.resample,
        )
        for folder in options.folders
    ]
    report(scores, options.out, as_json=options.json)
    return OK


def report(scores: list[Score], folder: Path | None, *, as_json: bool, films: Mapping[int, Path] | None = None) -> None:
    """Write the page and the values, and show the tables or the values."""
    from manikin.data.recording.durable import write_file
    from manikin.fidelity.page import render_page
    from manikin.fidelity.score import as_values

    out, text = console(), json.dumps(as_values(scores), indent=1)
    if folder is not None:
        shown = {task: path.relative_to(folder).as_posix() for task, path in (films or {}).items()}
        write_file(folder / "index.html", render_page(scores, shown).encode())
        write_file(folder / "score.json", (text + "\n").encode())
    if as_json:
        out.print(text, soft_wrap=True, markup=False)
        return
    _show(out, scores)
    if folder is not None:
        out.print(f"page: {folder / 'index.html'}", soft_wrap=True, markup=False)


def _show(out: Console, scores: list[Score]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from manikin.fidelity.page import NOT_COMPARED, columns, compared, omitted, unit
    from manikin.fidelity.recordings.defects import summary

    mode, own = scores[0].mode, any(one.own for one in scores)

    def table(first: str, group: int | str, rows: dict[str, dict[str, float]], title: str) -> None:
        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=escape(title), title_justify="left")
        shown.add_column(f"\n{first}", no_wrap=True)
        for column in columns(group, rows):
            shown.add_column(f"{column.replace('object_', 'object ')}\n{unit(column, mode)}", justify="right")
        for name, values in rows.items():
            shown.add_row(escape(name), *(f"{values[c]:.4g}" if c in values else "-" for c in columns(group, rows)))
        show_table(out, shown)
        out.print()

    if any(one.synthetic for one in scores):
        out.print(f"[bold red]SYNTHETIC.[/] {NOT_COMPARED}", soft_wrap=True)
    for one in scores:
        errors: int | str = "" if own else 1 if all(task in (1, 2) for task in one.tasks) else 2
        table("task", errors, {str(k): dict(each.values) for k, each in one.tasks.items()}, f"{one.name}, {mode}")
        for task, each in one.tasks.items():
            for word, found, told in (
                ("recording", each.real, each.real_defects),
                ("simulation", each.sim, each.sim_defects),
            ):
                for line in summary(told, found.first_line):
                    out.print(f"task {task}, {word}: {line}", soft_wrap=True, markup=False)
            for line in omitted(each):
                out.print(f"task {task}, left out: {line}", soft_wrap=True, markup=False)
        hidden = ", ".join(one.masked) if one.masked else "nothing"
        out.print(f"masked in the recordings: {hidden}\n", soft_wrap=True)
    for group, rows in compared(scores).items():
        if not isinstance(group, int):
            if len(scores) > 1:
                table("simulator", group, rows, group)
            continue
        if any(group in one.subgroups for one in scores):
            table("simulator", group, rows, f"subgroup {group}, {mode}")
        for one in scores:
            if one.lacking(group):
                lost = ", ".join(map(str, one.lacking(group)))
                out.print(f"subgroup {group} is not reported for {one.name}: it lacks task {lost}", soft_wrap=True)
    if mode == "paper" and not own and not any(one.synthetic for one in scores):
        out.print("The published rows are of the released script; compare with --mode released.", soft_wrap=True)
