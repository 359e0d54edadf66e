"""`manikin fidelity run`: the benchmark's tasks simulated and scored."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from manikin.cli.common.terminal import OK, bar, console, counted
from manikin.cli.fidelity.reality import mask_of, reality_of
from manikin.cli.fidelity.score import report
from manikin.cli.spread.options import SpreadOptions, plain_options, same_options
from manikin.cli.spread.run import made_before, merged, spread
from manikin.errors import AssetError, ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.fidelity.recordings.recording import Recording
    from manikin.fidelity.simulation.settings import Settings

__all__ = ["RunOptions", "device_of", "settings_of", "simulate"]


@dataclass(frozen=True, kw_only=True)
class RunOptions(SpreadOptions):
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
    resume: bool = False
    """With --on: go on with a run that was interrupted."""


def simulate(options: RunOptions) -> int:
    """Simulate and score; 0 done, 1 workers failed, 130 interrupted."""
    from rich.console import Console

    from manikin.fidelity.protocol import TASKS, benchmark_task
    from manikin.fidelity.recordings.recording import read_reality
    from manikin.fidelity.score import score_folder

    out = Console(highlight=False, stderr=True) if options.json else console()  # the object alone is what others read
    options.check_spread()
    engines = tuple(dict.fromkeys(options.engine))
    if options.on is not None and (len(engines) > 1 or engines == ("pybullet",) or options.films):
        raise ConfigError("--on spreads the tasks of one engine, mujoco or warp, without --films")
    if options.resume and options.on is None:
        raise ConfigError("--resume is only valid with --on")
    if engines == ("pybullet",) and (options.config is not None or options.films or options.device != "cpu"):
        raise ConfigError("--config, --films and --device are not for PyBullet: it runs as the exemplar did")
    tasks = tuple(sorted({benchmark_task(task).number for task in options.tasks or TASKS}))
    reality, missing = None, ""
    try:
        reality = reality_of(options.reality)
    except AssetError as error:
        missing = str(error)
    real = {task: read_reality(reality, task) for task in tasks} if reality is not None else {}
    films: Mapping[int, Path] = {}
    made: dict[Path, dict[str, Any]] = {}
    for engine in engines:
        folder = options.out / (engine if len(engines) > 1 else "simulation")
        if options.on is not None:
            told = _on_workers(out, options, engine, folder, tasks)
            if isinstance(told, int):
                return told
            made[folder] = told
        elif engine == "pybullet":
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
    mask = mask_of(options.mask)
    scores = [
        replace(
            score_folder(folder, reality, mode=options.mode, tasks=tasks, mask=mask),
            name=about["simulator"],
            about=about,
        )
        for folder, about in made.items()
    ]
    report(scores, options.out, as_json=options.json, films=films)
    return OK


def _manikin(
    out: Console, options: RunOptions, engine: str, folder: Path, tasks: Sequence[int], real: Mapping[int, Recording]
) -> tuple[dict[str, Any], Mapping[int, Path]]:
    """Simulate with MuJoCo or MuJoCo Warp; returns what the report says of it, and films."""
    from manikin.fidelity.simulation.run import run_tasks

    settings, device = settings_of(options), device_of(options, engine)
    _tell_settings(out, settings)
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
    return _told(out, options, device, folder, len(ran.recordings), ran.seconds, ran.processor_seconds), ran.films


def settings_of(options: RunOptions) -> Settings:
    """The settings that the options name."""
    from manikin.fidelity.simulation.settings import Settings, read_settings

    return Settings() if options.config is None else read_settings(options.config)


def device_of(options: RunOptions, engine: str) -> str:
    """Where an engine simulates."""
    return "warp:cpu" if engine == "warp" and options.device == "cpu" else options.device


def _tell_settings(out: Console, settings: Settings) -> None:
    changed = ", ".join(f"{name} = {value}" for name, value in settings.changed.items()) or "all as by default"
    out.print(f"settings {settings.digest[:12]}: {changed}", soft_wrap=True, markup=False)


def _told(
    out: Console, options: RunOptions, device: str, folder: Path, count: int, seconds: float, processor: float
) -> dict[str, Any]:
    """Say what was simulated; what the report says of it."""
    settings = settings_of(options)
    took = f"{seconds:.0f} s, {processor:.0f} s of processor time"
    out.print(f"{counted(count, 'task')} simulated in {took}: {folder}", soft_wrap=True, markup=False)
    name = f"manikin {settings.digest[:8]}"
    name = name if device == "cpu" else f"{name} {device}"
    return {"simulator": name, "settings": settings.changed, "seed": options.seed, "run_time_s": round(seconds, 1)}


def _on_workers(
    out: Console, options: RunOptions, engine: str, folder: Path, tasks: Sequence[int]
) -> dict[str, Any] | int:
    """Simulate on workers; what the report says of it, or the exit status where it is not all there."""
    from manikin.fidelity.simulation.run import write_run

    _tell_settings(out, settings_of(options))
    if made_before(out, options, folder / "settings.json", options.out / "spread"):
        return OK
    asked = dataclasses.replace(options, out=options.out.absolute(), resume=False)
    ledger, complete = spread(
        out,
        options,
        folder=options.out / "spread",
        work="manikin.cli.workers.simulating:FidelityWork",
        settings=plain_options(asked),
        same=same_options(asked, "threads", "json", "reality", "mode", "mask"),
        numbers=tasks,
        size=1,
        resume=options.resume,
        words="simulating",
        device=options.device,
        items="task",
        files=[options.config],
    )
    spent = {"seconds": 0.0, "processor_seconds": 0.0}

    def put_together() -> int:
        folder.mkdir(parents=True, exist_ok=True)
        for manifest, place in ledger.results():
            for name in spent:
                spent[name] += manifest.facts[name]
            for path in place.glob("task*.csv"):
                shutil.copyfile(path, folder / path.name)
        write_run(folder, settings_of(options), tasks, options.seed, **spent)
        return OK

    if status := merged(options, ledger, complete, put_together):
        return status
    if not spent["seconds"]:  # others of an array job put it together
        return OK
    device = device_of(options, engine)
    return _told(out, options, device, folder, len(tasks), spent["seconds"], spent["processor_seconds"])


def _pybullet(folder: Path, tasks: Sequence[int], seed: int) -> dict[str, Any]:
    """Simulate with PyBullet in a process of its own; returns what the report says of it."""
    import subprocess
    import sys

    words = [str(folder), "--seed", str(seed), "--tasks", *map(str, tasks)]
    ran = subprocess.run([sys.executable, "-m", "manikin.fidelity.bullet", *words], capture_output=True, text=True)
    if ran.returncode:
        raise ConfigError((ran.stderr.strip().splitlines() or ["PyBullet ended without a word"])[-1])
    return {"simulator": "PyBullet here", "seed": seed}
