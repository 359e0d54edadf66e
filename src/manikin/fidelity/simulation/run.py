"""All tasks with one choice of settings: files in the benchmark's layout, and films."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manikin._version import __version__
from manikin.data.recording.durable import write_file
from manikin.fidelity.protocol import BASE_HEIGHT, REPEATS, TASKS, benchmark_task
from manikin.fidelity.recordings.recording import Recording, write_repeats
from manikin.fidelity.simulation.rollout import TaskSimulation
from manikin.fidelity.simulation.settings import Settings
from manikin.fidelity.submission import ABOUT, write_about

__all__ = ["FidelityRun", "run_tasks", "write_run"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FidelityRun:
    """What a run made.

    Attributes:
        settings, seed: of the run.
        recordings: by task.
        films: by task; empty without films.
        seconds, processor_seconds: it took, without writing files and films.
    """

    settings: Settings
    seed: int
    recordings: Mapping[int, Recording]
    films: Mapping[int, Path]
    seconds: float
    processor_seconds: float

    @property
    def name(self) -> str:
        """What its row of a table is called."""
        return f"manikin {self.settings.digest[:8]}"

    def write(self, folder: str | Path) -> Path:
        """Write ``taskTT_RR.csv`` of each task, ``settings.json``, and ``about.toml`` for a submission. Returns the
        folder.

        Raises:
            OSError: they cannot be written.
        """
        for one in self.recordings.values():
            write_repeats(one, folder)
        return write_run(folder, self.settings, tuple(self.recordings), self.seed, self.seconds, self.processor_seconds)


def write_run(
    folder: str | Path,
    settings: Settings,
    tasks: Sequence[int],
    seed: int,
    seconds: float,
    processor_seconds: float,
) -> Path:
    """Write ``settings.json`` and ``about.toml`` beside the files of the tasks. Returns the folder.

    Args:
        folder: it.
        settings: of the run.
        tasks: their numbers.
        seed: of the differences between repeats.
        seconds: that the simulation took.
        processor_seconds: likewise.

    Raises:
        OSError: they cannot be written.
    """
    folder = Path(folder)
    said = {
        "settings": dataclasses.asdict(settings),
        "digest": settings.digest,
        "seed": seed,
        "seconds": round(seconds, 2),
        "processor_seconds": round(processor_seconds, 2),
        "manikin": __version__,
    }
    write_file(folder / "settings.json", (json.dumps(said, indent=1) + "\n").encode())
    used, tuned = _choices(settings, tasks)
    name = f"manikin {__version__}, settings {settings.digest[:8]}"
    write_about(folder / ABOUT, simulator=name, run_time_s=seconds, tuned=tuned, used=used)
    return folder


def _choices(one: Settings, tasks: Sequence[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Immutables of the benchmark that the settings change, and what else they change."""
    tuned = dict(one.changed)
    used: dict[str, Any] = {}
    if one.base_z:
        used["base_height_m"] = BASE_HEIGHT + one.base_z
    if one.base_x or one.base_y:
        used["base_xy_m"] = [one.base_x, one.base_y]
    if one.base_yaw:
        used["base_yaw_deg"] = one.base_yaw
    for number in tasks:
        task = benchmark_task(number)
        if one.segments_of(number) != task.segments:
            used[f"task{number}/targets_deg"] = [[end, list(target)] for end, target in one.segments_of(number)]
        if task.thing is not None and one.object_mass != 1:
            used[f"task{number}/object_mass_kg"] = task.thing.mass * one.object_mass
    for name in ("base_x", "base_y", "base_z", "base_yaw", "times", "object_mass"):
        tuned.pop(name, None)
    return used, tuned


def run_tasks(
    settings: Settings | None = None,
    tasks: Sequence[int] = tuple(TASKS),
    *,
    seed: int = 0,
    repeats: int = REPEATS,
    device: str = "cpu",
    threads: int = 0,
    films: str | Path | None = None,
    reality: Mapping[int, Recording] | None = None,
    on_task: Callable[[int], None] | None = None,
) -> FidelityRun:
    """Simulate tasks.

    Args:
        settings: default :class:`Settings` ``()``.
        tasks: numbers.
        seed: of the differences between repeats; the same seed gives the same result.
        repeats: of each task, rows of one batch.
        device: ``cpu``, ``warp:cpu`` or ``cuda``.
        threads: of the physics, 0 for all cores; changes no result.
        films: folder for a film of each task; None for no films.
        reality: recordings by task, whose wrist and object films show as spheres.
        on_task: told each task that is done.

    Raises:
        UnknownNameError: no such task or device. DivergedError: a simulation breaks down.
        ConfigError: films, and PyAV is not installed.
    """
    settings = settings or Settings()
    for task in tasks:
        benchmark_task(task)
    found, written = {}, {}
    wall = processor = 0.0
    for task in sorted(set(tasks)):
        began = time.perf_counter(), time.process_time()
        simulation = TaskSimulation(
            task,
            repeats=repeats,
            physics_hz=settings.physics_hz,
            hand=settings.hand,
            device=device,
            threads=threads,
        )
        film = None
        if films is not None:
            from manikin.fidelity.simulation.film import FidelityFilm

            film = FidelityFilm(simulation, (reality or {}).get(task))
        try:
            (found[task],) = simulation.run([settings], seed=seed, on_row=film)
            wall, processor = wall + time.perf_counter() - began[0], processor + time.process_time() - began[1]
            if film is not None and films is not None:
                written[task] = film.write(Path(films) / f"task{task:02d}.mp4")
        finally:
            simulation.close()
            if film is not None:
                film.close()
        if on_task is not None:
            on_task(task)
    return FidelityRun(
        settings=settings, seed=seed, recordings=found, films=written, seconds=wall, processor_seconds=processor
    )
