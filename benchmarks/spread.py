"""What spreading a command over workers costs, and how it scales.

    python benchmarks/spread.py
    python benchmarks/spread.py --only collect eval     # these anew; the other figures of the file stay

``collect`` and ``eval``: two workers (``--on local --workers 2``) against two independent processes that share the same
episodes, in turn, a few rounds. ``ratio`` is that of their speeds, by the clock and by the time that cores spent.
``shard``: what a shard costs beside its episodes, from shards that do nothing: in its worker, and in the process that
hands out, where it limits all workers together; and the bytes that go through that process. ``train``: control steps
per second of ``ppo`` on PushCube-v2 by state and from 64x64 pictures, with the environments in this process, in two
workers, and in two workers with a lag of one iteration. ``model``: a simulation of
the scheduler with the measured times of shards and those costs. It is checked with 2 and 4 workers whose shards last as
measured and compute nothing, so that two cores are enough. It says what more workers would reach on cores of their own:
there every time is one of a processor.
"""

from __future__ import annotations

import heapq
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import arguments, command, parsed, write
from common import spread as spans

from manikin.cli.collecting.episodes import CollectOptions
from manikin.cli.collecting.spread import FILE, merge_recordings
from manikin.cli.spread.options import plain_options
from manikin.env.state.provenance import versions
from manikin.eval.protocol import Protocol
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.record import read_progress
from manikin.machine import exact_machine
from manikin.spread.crew import Word
from manikin.spread.drive import drive
from manikin.spread.ledger import Intent, Ledger
from manikin.spread.processes import Processes
from manikin.spread.shards import Shard, split

OUT = Path(__file__).parent / "results" / "spread.json"
TASK, TRAINED = "PickCube-v2", "PushCube-v2"
HERE = {**os.environ, "MANIKIN_CORES": "1", "OMP_NUM_THREADS": "1"}
MANY = (1, 2, 4, 16, 64, 256, 1000)
PARTS = ("collect", "eval", "train", "shard")
SHARD = 64  # episodes of a shard in the model, as --per-shard has it by default


class Waits:
    """A work whose item n lasts as long as the settings say, and computes nothing."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._seconds = settings["seconds"]

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        for number in numbers:
            time.sleep(self._seconds[number])
            (folder / f"{number}.item").touch()

    def finished(self, folder: Path) -> set[int]:
        return {int(path.stem) for path in folder.glob("*.item")}

    def facts(self, folder: Path) -> dict[str, Any]:
        return {"content": sorted(self.finished(folder))}

    def called(self, number: int) -> str:
        return f"item {number}"

    def close(self) -> None:
        pass


class Counting(Processes):
    """Processes; counts the bytes that come from them, and notes when each was ready."""

    heard = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ready: list[float] = []

    def listen(self, seconds: float) -> Sequence[Word]:
        words = super().listen(seconds)
        self.heard += sum(len(f'{{"kind": "{word.kind}", "text": "{word.text}"}}\n') for word in words)
        self.ready += [time.perf_counter() for word in words if word.kind == "ready"]
        return words


def at_once(commands: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Seconds until all of the commands, started together, have ended, and what they and theirs used of the cores."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [subprocess.Popen([sys.executable, "-m", "manikin.cli", *words], env=HERE, **QUIET) for words in commands]
    for process in running:
        if process.wait():
            raise SystemExit(f"{process.args} ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu


QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL}


def compared(independent: Callable[[Path], list[list[str]]], spread: Callable[[Path], list[str]], rounds: int) -> Any:
    """Two independent processes and two workers, in turn: wall time and time of the cores [s], and for each the ratio
    of the former to the latter. On a machine that does other work the time of the cores says more."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, commands in (("independent", independent), ("spread", lambda place: [spread(place)])):
            with tempfile.TemporaryDirectory() as place:
                wall, cpu = at_once(commands(Path(place)))
            times.setdefault(f"{name}_s", []).append(wall)
            times.setdefault(f"{name}_cpu_s", []).append(cpu)
    for name, kind in (("ratio", "s"), ("ratio_cpu", "cpu_s")):
        pairs = zip(times[f"independent_{kind}"], times[f"spread_{kind}"], strict=True)
        times[name] = [a / b for a, b in pairs]
    return {name: spans(values, 3) for name, values in times.items()}


def of_collecting(episodes: int, rounds: int) -> Any:
    base = ["collect", TASK, "--episodes", str(episodes), "--num-envs", "16"]

    def independent(place: Path) -> list[list[str]]:
        return [[*base, "--out", str(place / f"{i}.h5"), "--shard", f"{i}/2"] for i in range(2)]

    def spread(place: Path) -> list[str]:
        return [*base, "--out", str(place / "a.h5"), "--on", "local", "--workers", "2"]

    return {"episodes": episodes, **compared(independent, spread, rounds)}


def of_evaluating(episodes: int, rounds: int) -> Any:
    def protocol(place: Path, name: str, seeds: range) -> str:
        path = place / f"{name}.toml"
        path.write_text(Protocol(name=name, tasks=(TASK,), seeds=tuple(seeds)).to_toml())
        return str(path)

    def words(place: Path, name: str, seeds: range) -> list[str]:
        out = ["--out", str(place / name), "--pictures", "0", "--num-envs", "16"]
        return ["eval", protocol(place, name, seeds), *out]

    def independent(place: Path) -> list[list[str]]:
        half = episodes // 2
        return [words(place, "a", range(half)), words(place, "b", range(half, episodes))]

    def spread(place: Path) -> list[str]:
        return [*words(place, "c", range(episodes)), "--on", "local", "--workers", "2"]

    return {"episodes": episodes, **compared(independent, spread, rounds)}


def of_training(steps: int, rounds: int, *, quick: bool) -> Any:
    """Steps per second of the loop, without its first iteration and the last, which validates; each way in turn."""
    seen: dict[str, dict[str, Any]] = {"state": {}, "rgb": {"observe": "rgb", "size": [64, 64], "renderer": "gl"}}
    seen = {"state": seen["state"]} if quick else seen
    ways = {
        "in_process": ([], 0),
        "two_workers": (["--on", "local", "--workers", "2"], 0),
        "two_workers_lag": (["--on", "local", "--workers", "2"], 1),
    }
    rates: dict[str, dict[str, list[float]]] = {name: {way: [] for way in ways} for name in seen}
    plain = recipe_for("ppo", TRAINED)[0].replace(minutes=0, steps=1, validate_every=10**9, validation_episodes=1)
    for _ in range(rounds):
        for name, shown in seen.items():
            for way, (on, lag) in ways.items():
                planned = steps if name == "state" else steps // 4
                recipe = plain.replace(steps=planned, env={"num_envs": 64, **shown}, settings={"lag": lag})
                with tempfile.TemporaryDirectory() as place:
                    file = Path(place) / "recipe.toml"
                    file.write_text(recipe.to_toml())
                    run = ["train", "--recipe", str(file), "--no-test", "--out", f"{place}/run", *on]
                    subprocess.run([sys.executable, "-m", "manikin.cli", *run], check=True, **QUIET)
                    first, *_, last = read_progress(Path(place) / "run" / "progress.csv")
                    spent = last["seconds"] - first["seconds"]
                    rates[name][way].append((last["steps"] - first["steps"]) / spent)
    return {name: {way: spans(values, 0) for way, values in of.items()} for name, of in rates.items()}


def begun(place: Path, work: str, settings: Mapping[str, Any], shards: Sequence[Shard]) -> Ledger:
    intent = Intent(work=work, settings=settings, same={}, shards=tuple(shards), machine=exact_machine())
    return Ledger.begin(place, intent)


def waited(place: Path, seconds: Sequence[float], workers: int) -> dict[str, Any]:
    """Shards that wait so long: wall time from when the first worker is ready, and when each was; processor time of the
    process that hands out, and of the workers; bytes."""
    shards = split(range(len(seconds)), 1)
    ledger = begun(place, "spread:Waits", {"seconds": list(seconds)}, shards)
    crew = Counting(ledger.folder)
    used = time.process_time()
    drive(ledger, crew, workers=workers, deadline=3600)
    ended, cpu = time.perf_counter(), time.process_time() - used
    ready = [at - crew.ready[0] for at in crew.ready]
    of_workers = sum(manifest.processor_seconds for manifest in ledger.manifests())
    return {"wall": ended - crew.ready[0], "ready": ready, "cpu": cpu, "workers": of_workers, "bytes": crew.heard}


def simulated(shards: Sequence[float], ready: Sequence[float], *, worker_s: float, driver_s: float) -> float:
    """Seconds until the last shard is finished: each goes to the worker that is free first, from when that was
    ``ready``; handing one out keeps the one process that does it busy for ``driver_s``, and a worker needs ``worker_s``
    beside the shard's own time."""
    free = list(ready)
    heapq.heapify(free)
    driver = end = 0.0
    for seconds in shards:
        driver = max(driver, heapq.heappop(free)) + driver_s
        done = driver + worker_s + seconds
        end = max(end, done)
        heapq.heappush(free, done)
    return end


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--rounds", type=int, default=3)
    args = parsed(parser, OUT)
    episodes, rounds = (8, 1) if args.quick else (args.episodes, args.rounds)
    about = {"command": command(), "load": round(os.getloadavg()[0], 1)}
    measured: dict[str, Callable[[], dict[str, Any]]] = {
        "collect": lambda: {"collect": {**about, **of_collecting(episodes, rounds)}},
        "eval": lambda: {"eval": {**about, **of_evaluating(episodes, rounds)}},
        "train": lambda: {"train": {**about, **of_training(4_800 if args.quick else 80_000, rounds, quick=args.quick)}},
        "shard": lambda: of_shards(min(episodes, 512), about, quick=args.quick),
    }
    kept = set(args.only) != set(PARTS) and args.out.exists()
    result: dict[str, Any] = json.loads(args.out.read_text()) if kept else {}
    result.setdefault("command", about["command"])  # of all together; each part has its own
    result |= {"versions": versions(), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    for name in args.only:
        result |= measured[name]()
    write(result, args.out)


def of_shards(episodes: int, about: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """What a shard costs, and what follows for many workers."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        # shards as they are: how long they take, how large they are, what merging them takes
        options = CollectOptions(task=TASK, episodes=episodes, num_envs=16)
        shards = split(range(episodes), max(4, episodes // 16))
        work = "manikin.cli.collecting.spread:CollectWork"
        ledger = begun(place / "real", work, plain_options(replace(options, out=None)), shards)
        drive(ledger, Processes(ledger.folder), workers=1, deadline=3600)
        manifests = ledger.manifests()
        seconds, busy = [m.seconds for m in manifests], [m.processor_seconds for m in manifests]
        size = sum(m.files[FILE][0] for m in manifests)
        began, used = time.perf_counter(), time.process_time()
        merge_recordings(place / "merged.h5", [folder / FILE for _, folder in ledger.results()])
        merge_s, merge_cpu = (time.perf_counter() - began) / len(shards), (time.process_time() - used) / len(shards)
        # and shards of nothing: what is left is what a shard costs
        count = 8 if quick else 200
        nothing = waited(place / "nothing", [0.0] * count, 1)
        driver_s = nothing["cpu"] / count
        worker_s = nothing["wall"] / count - driver_s
        costs = {"worker_s": worker_s, "driver_s": driver_s}
        result["shard"] = {
            **about,
            "episodes": len(shards[0].numbers),
            "seconds": spans(seconds, 3),
            "processor_seconds": spans(busy, 3),
            "overhead_worker_ms": round(1e3 * worker_s, 2),
            "overhead_driver_ms": round(1e3 * driver_s, 2),
            "overhead_worker_processor_ms": round(1e3 * nothing["workers"] / count, 2),
            "merge_ms": round(1e3 * merge_s, 2),
            "merge_processor_ms": round(1e3 * merge_cpu, 2),
            "bytes_through_driver": round(nothing["bytes"] / count),
            "bytes_of_its_file": size // len(shards),
        }
        checks = {}
        lasting = [min(0.3, s) if quick else min(s, 3.0) for s in seconds] * 2
        for workers in (2, 4):
            told = waited(place / f"check{workers}", lasting, workers)
            expected = simulated(lasting, told["ready"], **costs)
            checks[str(workers)] = {"measured_s": round(told["wall"], 2), "model_s": round(expected, 2)}
        # a hundred thousand episodes, in shards of the default size whose episodes last as the measured ones
        each = [s / len(shard.numbers) for s, shard in zip(busy, shards, strict=True)]
        many = [SHARD * each[k % len(each)] for k in range(100_000 // SHARD)]
        merge_s = merge_cpu * SHARD / len(shards[0].numbers)
        costs = {"worker_s": nothing["workers"] / count, "driver_s": driver_s}
        whole = {n: simulated(many, [0.0] * n, **costs) for n in MANY}
        one = whole[1]
        limits = {
            "handing out": 1 / driver_s,
            "merging at the end": 1 / merge_s,
        }
        result["model"] = {
            "checks": checks,
            "episodes": 100_000,
            "shards": len(many),
            "merge_ms_of_a_shard": round(1e3 * merge_s, 1),
            "workers": {
                str(n): {
                    "minutes": round(value / 60, 2),
                    "minutes_with_merge": round((value + merge_s * len(many)) / 60, 2),
                    "efficiency": round(one / value / n, 3),
                    "efficiency_with_merge": round(one / (value + merge_s * len(many)) / n, 3),
                }
                for n, value in whole.items()
            },
            "shards_per_s_at_most": {name: round(value, 1) for name, value in limits.items()},
            "bottleneck": min(limits, key=lambda name: limits[name]),
        }
    return result


if __name__ == "__main__":
    main()
