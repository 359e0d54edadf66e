"""`manikin fidelity improve`: settings with which the simulation comes nearer to the recordings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from manikin.cli.common.terminal import INTERRUPTED, OK, console, counted, show_table
from manikin.cli.fidelity.reality import mask_of, reality_of
from manikin.cli.spread.options import SpreadOptions
from manikin.cli.spread.search import shared_search

if TYPE_CHECKING:
    from manikin.fidelity.simulation.improve import Improved
    from manikin.fidelity.simulation.settings import Settings
    from manikin.spread.blackboard import Blackboard

__all__ = ["ImproveOptions", "improve", "improved"]


@dataclass(frozen=True, kw_only=True)
class ImproveOptions(SpreadOptions):
    """Search for settings that come nearer to the recordings, and score each task with those found without it."""

    vary: tuple[str, ...] = ()
    """Settings with their ranges: table_friction=0.1:0.6 rolling_friction=1e-6:1e-3:log hand_mass=0.5:1.1."""
    config: Path | None = None
    """TOML file with the settings that the search begins with."""
    tasks: tuple[int, ...] = ()
    """Numbers of tasks, by default all ten."""
    candidates: int = 48
    """Of each search. There is one on all tasks, and one without each task."""
    repeats: int = 4
    """Of a candidate on a task while it searches; held-out tasks are scored with twenty."""
    metrics: tuple[str, ...] = ("euclidean", "velocity", "torque", "object_translation")
    """Errors that the loss adds up, as shares of those of the first settings. Of a metric that is no error, such as
    object_moving_time, the difference from the recorded value counts."""
    mode: Literal["released", "paper"] = "released"
    """Of the metrics, as in manikin fidelity score."""
    mask: tuple[str, ...] | None = None
    """As in manikin fidelity score."""
    reality: Path | None = None
    """Folder of the recordings. Default: collins2020/real_mean_10hz in MANIKIN_DATA."""
    seed: int = 0
    """Of the search and of the differences between repeats."""
    device: str = "cpu"
    """cpu, cuda, or warp:cpu for tests."""
    threads: int = 0
    """Physics threads, 0 for all cores; does not change the result."""
    out: Path = Path("improved")
    """Folder for improved.toml, which manikin fidelity run takes as --config, improved.json, and the journal."""
    resume: bool = False
    """Go on with a search that was interrupted."""


def improve(options: ImproveOptions) -> int:
    """Search; 0 done, 1 workers failed, 130 interrupted."""
    options.check_spread()
    reality_of(options.reality)  # there is one
    if options.on is None:
        return _search(options)
    return shared_search(
        console(),
        options,
        work="manikin.cli.workers.searching:ImproveWork",
        made="improved.json",
        finish=lambda board: _search(options, board),
        files=[options.reality, options.config],
    )


def improved(options: ImproveOptions, board: Blackboard | None, on_candidates: Callable[[int], None]) -> Improved:
    """What the options search for; with a board, together with others who search for the same."""
    from manikin.fidelity.protocol import TASKS, benchmark_task
    from manikin.fidelity.recordings.recording import read_reality
    from manikin.fidelity.simulation.improve import improve as search
    from manikin.sysid.methods import Cma

    folder = reality_of(options.reality)
    tasks = sorted({benchmark_task(task).number for task in options.tasks or TASKS})
    return search(
        {task: read_reality(folder, task) for task in tasks},
        options.vary,
        start=_start(options),
        method=Cma(candidates=options.candidates),
        metrics=options.metrics,
        mode=options.mode,
        mask=mask_of(options.mask),
        repeats=options.repeats,
        seed=options.seed,
        device=options.device,
        threads=options.threads,
        folder=options.out if board is None else None,
        resume=options.resume,
        board=board,
        on_candidates=on_candidates,
    )


def _start(options: ImproveOptions) -> Settings:
    from manikin.fidelity.simulation.settings import Settings, read_settings

    return Settings() if options.config is None else read_settings(options.config)


def _search(options: ImproveOptions, board: Blackboard | None = None) -> int:
    """Search, and write what was found."""
    import dataclasses

    from rich.table import Table

    from manikin.data.recording.durable import write_file
    from manikin.fidelity.metrics.modes import COLUMNS
    from manikin.fidelity.protocol import TASKS, benchmark_task
    from manikin.fidelity.simulation.improve import parse_fidelity_parameter
    from manikin.fidelity.simulation.settings import settings_toml

    out, start = console(), _start(options)
    tasks = sorted({benchmark_task(task).number for task in options.tasks or TASKS})
    parameters = [parse_fidelity_parameter(word) for word in options.vary]
    try:
        with out.status("searching") as status:
            simulated = 0

            def count(more: int) -> None:
                nonlocal simulated
                simulated += more
                status.update(f"{counted(simulated, 'candidate')} simulated")

            found = improved(options, board, count)
    except KeyboardInterrupt:
        out.print("interrupted; repeat the command with --resume")
        return INTERRUPTED
    told = dataclasses.asdict(found) | {"subgroups": found.subgroups, "start": dataclasses.asdict(start)}
    write_file(options.out / "improved.json", (json.dumps(told, indent=1) + "\n").encode())
    head = "# Found by manikin fidelity improve, on tasks " + ", ".join(map(str, tasks)) + "\n"
    write_file(options.out / "improved.toml", (head + settings_toml(found.settings)).encode())

    def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
        for k, one in enumerate(heads):
            shown.add_column(one, justify="right" if k else "left")
        for row in rows:
            shown.add_row(*row)
        show_table(out, shown)
        out.print()

    low, high = "a tenth lower", "a tenth higher"
    rows = [
        [one.name, f"{one.of(found.settings):.4g}", *(f"{x:.3f}" for x in found.profile[one.name])]
        for one in parameters
    ]
    table(f"on all tasks: loss {found.loss:.3f}, 1 before", ["setting", "found", low, high], rows)
    columns = [name for name in COLUMNS[2] if any(name in one.after for one in found.held_out.values())]
    rows = [
        [str(task), *(f"{one.before[c]:.3g} -> {one.after[c]:.3g}" if c in one.after else "-" for c in columns)]
        for task, one in found.held_out.items()
    ]
    if rows:
        heads = ["task", *(name.replace("object_", "object ") for name in columns)]
        table(f"each task with the settings found without it, {options.mode}", heads, rows)
    for group, values in found.subgroups.items():
        table(f"subgroup {group}", list(values), [[f"{value:.4g}" for value in values.values()]])
    out.print(f"masked in the recordings: {', '.join(found.masked) or 'nothing'}", soft_wrap=True)
    words = f"{counted(found.candidates, 'candidate')} simulated"
    if board is None:
        words += f"; {found.candidates_per_minute:.1f} a minute, in {found.seconds:.0f} s, "
        words += f"{found.processor_seconds:.0f} s of processor time"
    out.print(f"{words}; use it: --config {options.out / 'improved.toml'}", soft_wrap=True, markup=False)
    return OK
