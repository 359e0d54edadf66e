"""`manikin fidelity`: how far simulations are from the recordings of a real arm."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from manikin.cli.common.terminal import OK, console, counted, show_table
from manikin.errors import AssetError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.fidelity import Score

__all__ = ["PackOptions", "ScoreOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Score folders of simulated repeats, task01_01.csv to task10_20.csv, beside the published simulators."""

    folders: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of simulations; each is a row of the tables."""
    reality: Path | None = None
    """Folder of the recordings: Task01_mean10Hz.csv and so on, or repeats. Default: collins2020/real_mean_10hz in
    MANIKIN_DATA."""
    mode: Literal["released", "paper"] = "released"
    """released: as the authors' script computes, errors included; compares with the published rows. paper: the
    paper's formulas."""
    tasks: tuple[int, ...] = ()
    """Numbers of tasks; by default those that a folder holds."""
    mask: tuple[str, ...] | None = None
    """With --mode paper: kinds of defects of the recordings that are left out; none for none. Default: zero_rows
    zero_repeat quaternion label_swap after_end."""
    hz: float = 10.0
    """Rate of the folders' files; at 100 every tenth row is taken."""
    reality_hz: float = 10.0
    """Rate of the recordings, for raw repeats at 100 Hz."""
    out: Path | None = None
    """Folder for index.html, a page with curves, and score.json."""
    json: bool = False
    """Print one JSON object with all metrics and all defects."""


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Write a submission: the files of a simulation, what was tuned, what is immutable, how long it ran and where."""

    folder: tyro.conf.Positional[Path]
    """Folder of simulated repeats."""
    about: Path
    """TOML file with simulator, run_time_s, system, [tuned] and [immutable]."""
    out: Path = Path("submission")
    """Folder to write, new or empty."""


_Commands = (
    Annotated[ScoreOptions, tyro.conf.subcommand("score")] | Annotated[PackOptions, tyro.conf.subcommand("pack")]
)


def main(options: Annotated[_Commands, tyro.conf.arg(name="")]) -> int:
    """Score simulations on the CSIRO manipulation benchmark, or pack a submission."""
    return run(options)


def run(options: ScoreOptions | PackOptions) -> int:
    """Score or pack."""
    return _score(options) if isinstance(options, ScoreOptions) else _pack(options)


def _score(options: ScoreOptions) -> int:
    from manikin.assets.paths import data_root
    from manikin.data.recording.durable import write_file
    from manikin.fidelity.page import render_page
    from manikin.fidelity.score import as_values, score_folder

    out, reality = console(), options.reality
    if not options.folders:
        raise ConfigError("which simulation? Name a folder of files task01_01.csv to task10_20.csv")
    if reality is None:
        root = data_root()
        if root is None or not (root / "collins2020").is_dir():
            where = "MANIKIN_DATA is not set" if root is None else f"{root} has no collins2020"
            raise AssetError(f"there are no recordings: {where}; name their folder with --reality")
        reality = root / "collins2020" / "real_mean_10hz"
    mask = () if options.mask == ("none",) else options.mask
    scores = [
        score_folder(
            folder,
            reality,
            mode=options.mode,
            tasks=options.tasks or None,
            mask=mask,
            hz=options.hz,
            reality_hz=options.reality_hz,
        )
        for folder in options.folders
    ]
    text = json.dumps(as_values(scores), indent=1)
    if options.out is not None:
        write_file(options.out / "index.html", render_page(scores).encode())
        write_file(options.out / "score.json", (text + "\n").encode())
    if options.json:
        out.print(text, soft_wrap=True, markup=False)
        return OK
    _show(out, scores)
    if options.out is not None:
        out.print(f"page: {options.out / 'index.html'}", soft_wrap=True, markup=False)
    return OK


def _show(out: Console, scores: list[Score]) -> None:
    from rich.table import Table

    from manikin.fidelity.metrics.modes import COLUMNS
    from manikin.fidelity.page import NOT_COMPARED, compared, unit
    from manikin.fidelity.recordings.defects import summary

    mode = scores[0].mode

    def table(first: str, group: int, rows: dict[str, dict[str, float]], title: str) -> None:
        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
        shown.add_column(f"\n{first}", no_wrap=True)
        for column in COLUMNS[group]:
            shown.add_column(f"{column.replace('object_', 'object ')}\n{unit(column, mode)}", justify="right")
        for name, values in rows.items():
            shown.add_row(name, *(f"{values[c]:.4g}" if c in values else "-" for c in COLUMNS[group]))
        show_table(out, shown)
        out.print()

    if any(one.synthetic for one in scores):
        out.print(f"[bold red]SYNTHETIC.[/] {NOT_COMPARED}", soft_wrap=True)
    for one in scores:
        group = 1 if all(task < 3 for task in one.tasks) else 2
        table("task", group, {str(task): dict(each.values) for task, each in one.tasks.items()}, f"{one.name}, {mode}")
        for task, each in one.tasks.items():
            for word, found, told in (
                ("recording", each.real, each.real_defects),
                ("simulation", each.sim, each.sim_defects),
            ):
                for line in summary(told, found.first_line):
                    out.print(f"task {task}, {word}: {line}", soft_wrap=True, markup=False)
        hidden = ", ".join(one.masked) if one.masked else "nothing"
        out.print(f"masked in the recordings: {hidden}\n", soft_wrap=True)
    for group, rows in compared(scores).items():
        if any(group in one.subgroups for one in scores):
            table("simulator", group, rows, f"subgroup {group}, {mode}")
        for one in scores:
            if one.lacking(group):
                lost = ", ".join(map(str, one.lacking(group)))
                out.print(f"subgroup {group} is not reported for {one.name}: it lacks task {lost}", soft_wrap=True)
    if mode == "paper" and not any(one.synthetic for one in scores):
        out.print("The published rows are of the released script; compare with --mode released.", soft_wrap=True)


def _pack(options: PackOptions) -> int:
    from manikin.fidelity.submission import pack

    said = pack(options.folder, options.about, options.out)
    out = console()
    out.print(f"{said['simulator']}: {counted(len(said['tasks']), 'task')}, {counted(len(said['sha256']), 'file')}")
    out.print(f"wrote {options.out / 'submission.json'}", soft_wrap=True, markup=False)
    return OK
