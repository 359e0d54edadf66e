"""`manikin fidelity`: how far simulations are from the recordings of a real arm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from manikin.cli.common.own_recordings import RecordingExportOptions, export
from manikin.cli.common.terminal import INTERRUPTED, OK, bar, console, counted, show_table
from manikin.errors import AssetError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.fidelity import Score
    from manikin.fidelity.recordings.recording import Recording

__all__ = ["ImproveOptions", "PackOptions", "RunOptions", "ScoreOptions", "main", "run"]


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


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Simulate the benchmark's tasks with settings from a file, write the repeats, and score them."""

    config: Path | None = None
    """TOML file with the settings that differ from the default: cap = "fitted", table_friction = 0.3 and so on. Not for
    PyBullet."""
    tasks: tuple[int, ...] = ()
    """Numbers of tasks, by default all ten."""
    engine: tuple[Literal["mujoco", "warp", "pybullet"], ...] = ("mujoco",)
    """One or several, as rows of one table. warp: MuJoCo Warp on --device cuda, or on its CPU device. pybullet: as in
    the authors' exemplar, without settings; needs pip install 'manikin[pybullet]'."""
    seed: int = 0
    """Of the differences between repeats."""
    reality: Path | None = None
    """Folder of the recordings. Default: collins2020/real_mean_10hz in MANIKIN_DATA."""
    mode: Literal["released", "paper"] = "released"
    """As in manikin fidelity score."""
    mask: tuple[str, ...] | None = None
    """As in manikin fidelity score."""
    films: bool = False
    """Also a film of each task's first repeat, with spheres where wrist and object were recorded."""
    device: str = "cpu"
    """cpu, cuda, or warp:cpu for tests."""
    threads: int = 0
    """Physics threads, 0 for all cores; does not change the result."""
    out: Path = Path("fidelity")
    """Folder for simulation/task01_01.csv and so on, index.html, score.json and films. Of several engines each has a
    folder of its own in place of simulation."""
    json: bool = False
    """Print one JSON object with all metrics and all defects."""


@dataclass(frozen=True, kw_only=True)
class ImproveOptions:
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


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """Write a submission: the files of a simulation, what was tuned, what is immutable, how long it ran and where."""

    folder: tyro.conf.Positional[Path]
    """Folder of simulated repeats."""
    about: Path | None = None
    """TOML file with simulator, run_time_s, system, [tuned] and [immutable]. Default: about.toml in the folder, as
    manikin fidelity run writes it."""
    out: Path = Path("submission")
    """Folder to write, new or empty."""


_Commands = (
    Annotated[ScoreOptions, tyro.conf.subcommand("score")]
    | Annotated[RunOptions, tyro.conf.subcommand("run")]
    | Annotated[ImproveOptions, tyro.conf.subcommand("improve")]
    | Annotated[PackOptions, tyro.conf.subcommand("pack")]
    | Annotated[RecordingExportOptions, tyro.conf.subcommand("export")]
)


def main(options: Annotated[_Commands, tyro.conf.arg(name="")]) -> int:
    """Simulate the tasks of the CSIRO manipulation benchmark, score simulations on it or on recordings of your own,
    search for settings, pack a submission, or export episodes of manikin."""
    return run(options)


def run(options: ScoreOptions | RunOptions | ImproveOptions | PackOptions | RecordingExportOptions) -> int:
    """Score, simulate, search, pack or export."""
    if isinstance(options, RunOptions):
        return _run(options)
    if isinstance(options, RecordingExportOptions):
        return export(options)
    if isinstance(options, ImproveOptions):
        return _improve(options)
    return _score(options) if isinstance(options, ScoreOptions) else _pack(options)


def _reality(given: Path | None) -> Path:
    """Folder of the recordings. Raises AssetError where none is given and MANIKIN_DATA has none."""
    from manikin.assets.paths import data_root

    if given is not None:
        return given
    root = data_root()
    if root is None or not (root / "collins2020").is_dir():
        where = "MANIKIN_DATA is not set" if root is None else f"{root} has no collins2020"
        raise AssetError(f"there are no recordings: {where}; name their folder with --reality")
    return root / "collins2020" / "real_mean_10hz"


def _mask(options: ScoreOptions | RunOptions | ImproveOptions) -> tuple[str, ...] | None:
    return () if options.mask == ("none",) else options.mask


def _score(options: ScoreOptions) -> int:
    from manikin.fidelity.recordings.own import is_own
    from manikin.fidelity.score import score_folder

    if not options.folders:
        raise ConfigError("which simulation? Name a folder of files task01_01.csv to task10_20.csv, or your own")
    own = any(is_own(folder) for folder in options.folders)
    if own and options.reality is None:
        raise ConfigError("which recordings? Name the real arm's with --reality")
    reality = _reality(options.reality)
    mask = _mask(options)
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
    _report(scores, options.out, as_json=options.json)
    return OK


def _report(
    scores: list[Score], folder: Path | None, *, as_json: bool, films: Mapping[int, Path] | None = None
) -> None:
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


def _run(options: RunOptions) -> int:
    from rich.console import Console

    from manikin.fidelity.protocol import TASKS, benchmark_task
    from manikin.fidelity.recordings.recording import read_reality
    from manikin.fidelity.score import score_folder

    out = Console(highlight=False, stderr=True) if options.json else console()  # the object alone is what others read
    engines = tuple(dict.fromkeys(options.engine))
    if engines == ("pybullet",) and (options.config is not None or options.films or options.device != "cpu"):
        raise ConfigError("--config, --films and --device are not for PyBullet: it runs as the exemplar did")
    tasks = tuple(sorted({benchmark_task(task).number for task in options.tasks or TASKS}))
    reality, missing = None, ""
    try:
        reality = _reality(options.reality)
    except AssetError as error:
        missing = str(error)
    real = {task: read_reality(reality, task) for task in tasks} if reality is not None else {}
    films: Mapping[int, Path] = {}
    made: dict[Path, dict[str, Any]] = {}
    for engine in engines:
        folder = options.out / (engine if len(engines) > 1 else "simulation")
        if engine == "pybullet":
            given = {
                "--config": options.config is not None,
                "--films": options.films,
                "--device": options.device != "cpu",
            }
            if ignored := [name for name, there in given.items() if there]:
                words = f"PyBullet runs as the exemplar did, without {', '.join(ignored)}; other engines have them"
                out.print(words, soft_wrap=True, markup=False)
            made[folder] = _pybullet(folder, tasks, options.seed)
        else:
            made[folder], shown = _manikin(out, options, engine, folder, tasks, real)
            films = films or shown
    if reality is None:
        out.print(f"not scored: {missing}", soft_wrap=True, markup=False)
        return OK
    mask = _mask(options)
    scores = [
        replace(
            score_folder(folder, reality, mode=options.mode, tasks=tasks, mask=mask),
            name=about["simulator"],
            about=about,
        )
        for folder, about in made.items()
    ]
    _report(scores, options.out, as_json=options.json, films=films)
    return OK


def _manikin(
    out: Console, options: RunOptions, engine: str, folder: Path, tasks: Sequence[int], real: Mapping[int, Recording]
) -> tuple[dict[str, Any], Mapping[int, Path]]:
    """Simulate with MuJoCo or MuJoCo Warp; returns what the report says of it, and films."""
    from manikin.fidelity.simulation.run import run_tasks
    from manikin.fidelity.simulation.settings import Settings, read_settings

    settings = Settings() if options.config is None else read_settings(options.config)
    changed = ", ".join(f"{name} = {value}" for name, value in settings.changed.items()) or "all as by default"
    out.print(f"settings {settings.digest[:12]}: {changed}", soft_wrap=True, markup=False)
    device = "warp:cpu" if engine == "warp" and options.device == "cpu" else options.device
    with bar(out, "simulating", len(tasks)) as done:
        ran = run_tasks(
            settings,
            tasks,
            seed=options.seed,
            device=device,
            threads=options.threads,
            films=options.out / "films" if options.films else None,
            reality=real,
            on_task=lambda _: done(),
        )
    ran.write(folder)
    took = f"{ran.seconds:.0f} s, {ran.processor_seconds:.0f} s of processor time"
    out.print(f"{counted(len(ran.recordings), 'task')} simulated in {took}: {folder}", soft_wrap=True, markup=False)
    name = ran.name if device == "cpu" else f"{ran.name} {device}"
    about = {"simulator": name, "settings": settings.changed, "seed": ran.seed, "run_time_s": round(ran.seconds, 1)}
    return about, ran.films


def _pybullet(folder: Path, tasks: Sequence[int], seed: int) -> dict[str, Any]:
    """Simulate with PyBullet in a process of its own; returns what the report says of it."""
    import subprocess
    import sys

    words = [str(folder), "--seed", str(seed), "--tasks", *map(str, tasks)]
    ran = subprocess.run([sys.executable, "-m", "manikin.fidelity.bullet", *words], capture_output=True, text=True)
    if ran.returncode:
        raise ConfigError((ran.stderr.strip().splitlines() or ["PyBullet ended without a word"])[-1])
    return {"simulator": "PyBullet here", "seed": seed}


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


def _improve(options: ImproveOptions) -> int:
    import dataclasses

    from rich.table import Table

    from manikin.data.recording.durable import write_file
    from manikin.fidelity.metrics.modes import COLUMNS
    from manikin.fidelity.protocol import TASKS, benchmark_task
    from manikin.fidelity.recordings.recording import read_reality
    from manikin.fidelity.simulation.improve import improve, parse_fidelity_parameter
    from manikin.fidelity.simulation.settings import Settings, read_settings, settings_toml
    from manikin.sysid.methods import Cma

    out, folder = console(), _reality(options.reality)
    tasks = sorted({benchmark_task(task).number for task in options.tasks or TASKS})
    parameters = [parse_fidelity_parameter(word) for word in options.vary]
    start = Settings() if options.config is None else read_settings(options.config)
    method = Cma(candidates=options.candidates)
    try:
        with out.status("searching") as status:
            simulated = 0

            def count(more: int) -> None:
                nonlocal simulated
                simulated += more
                status.update(f"{counted(simulated, 'candidate')} simulated")

            found = improve(
                {task: read_reality(folder, task) for task in tasks},
                parameters,
                start=start,
                method=method,
                metrics=options.metrics,
                mode=options.mode,
                mask=_mask(options),
                repeats=options.repeats,
                seed=options.seed,
                device=options.device,
                threads=options.threads,
                folder=options.out,
                resume=options.resume,
                on_candidates=count,
            )
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
    words = f"{counted(found.candidates, 'candidate')} simulated; {found.candidates_per_minute:.1f} a minute, in "
    words += f"{found.seconds:.0f} s, {found.processor_seconds:.0f} s of processor time"
    out.print(f"{words}; use it: --config {options.out / 'improved.toml'}", soft_wrap=True, markup=False)
    return OK


def _pack(options: PackOptions) -> int:
    from manikin.fidelity.submission import pack

    said = pack(options.folder, options.about, options.out)
    out = console()
    out.print(f"{said['simulator']}: {counted(len(said['tasks']), 'task')}, {counted(len(said['sha256']), 'file')}")
    out.print(f"wrote {options.out / 'submission.json'}", soft_wrap=True, markup=False)
    return OK
