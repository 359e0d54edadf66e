"""PPO on PickCube with manikin's recipe, beside the same PPO file with ManiSkill3's published settings on its own
CPU environments.

    python benchmarks/beside_maniskill.py --peers DIR --minutes 10 --seed 9351
    python benchmarks/beside_maniskill.py --peers DIR --minutes 10 --seed 9351 --clock wall

``DIR`` holds ManiSkill3's virtual environment as for throughput.py; without it, manikin runs alone. Both train at the
same time, each on one core, until its processes have used so many minutes of processor time, validation included: so
other work on the machine favours neither. With ``--clock wall`` one trains after the other, each on all cores for so
many minutes by the clock, which needs a machine that does nothing else.

ManiSkill3's rows live in processes of its own Python, on the cores of their trainer; on the CPU each simulates one row
at a time. How many processes help is found by trying 1, 2, 4 and so on for a few seconds each; the fewest are taken
that come within 5 % of the best. ``--processes`` says it instead. ``probe`` of the result has the rates.

ManiSkill3's settings are those of its ``ppo.py``: three layers of 256, 8 passes over 25,600 steps in 32 minibatches,
no normalization. Its 512 rows of 50 steps become 16 rows of 1,600 steps, since rows on the CPU are whole simulations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import gymnasium
import numpy as np
import torch
from common import arguments, command, write
from peers.maniskill_rows import SIZES

from manikin.env.state.provenance import versions
from manikin.learn.common.seeds import VALIDATION
from manikin.learn.ppo import PPO, Config
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train
from manikin.machine import machine

HERE = Path(__file__).parent
OURS, THEIRS = "manikin PickCube-v2", "ManiSkill3 PickCube-v1"
EPISODES, HORIZON = 64, 50
ENOUGH = 0.95  # of the best rate, for fewer processes
PUBLISHED = Config(
    num_steps=1600,
    epochs=8,
    minibatches=32,
    hidden=(256, 256, 256),
    critic_hidden=(256, 256, 256),
    target_kl=0.1 / 1.5,  # an iteration ends beyond 1.5 times this; theirs ends beyond 0.1
    normalize=False,
    stagger=False,
)


class PeerRows:
    """Rows of another library's environment as a trainer wants an environment: ``reset`` and ``step`` of tensors.

    Args:
        words: the command that serves some of them, whose number is appended; see ``peers/maniskill_rows.py``.
        rows: how many.
        processes: among which they are divided; all step at the same time.
    """

    def __init__(self, words: list[str], rows: int, processes: int = 1) -> None:
        self.num_envs, self.horizon, self.device = rows, HORIZON, torch.device("cpu")
        self._parts = [len(part) for part in np.array_split(range(rows), processes)]
        pipe = subprocess.PIPE
        self._processes = [subprocess.Popen([*words, str(part)], stdin=pipe, stdout=pipe) for part in self._parts]
        sizes, *_ = [json.loads(self._out(process).readline()) for process in self._processes]  # each says so
        box = lambda n: gymnasium.spaces.Box(-np.inf, np.inf, (n,), np.float32)  # noqa: E731
        self.single_observation_space, self.single_action_space = box(sizes["observations"]), box(sizes["actions"])

    @staticmethod
    def _out(process: subprocess.Popen[bytes]) -> IO[bytes]:
        assert process.stdout is not None
        return process.stdout

    def _write(self, word: bytes, values: np.ndarray) -> None:
        """To every process, its rows' share of the values."""
        ends = np.cumsum(self._parts)[:-1]
        for process, part in zip(self._processes, np.split(values, ends), strict=True):
            assert process.stdin is not None
            process.stdin.write(word + part.tobytes())
            process.stdin.flush()

    def _read(self, *arrays: tuple[Any, tuple[int, ...]]) -> list[torch.Tensor]:
        """Arrays of all rows, by kind and shape of a row: each process sends those of its rows, one after the other."""
        found: list[list[np.ndarray]] = [[] for _ in arrays]
        for process, rows in zip(self._processes, self._parts, strict=True):
            for (kind, shape), parts in zip(arrays, found, strict=True):
                size = rows * int(np.prod(shape)) * np.dtype(kind).itemsize
                data = self._out(process).read(size)
                if len(data) < size:
                    raise RuntimeError("the peer's process has ended")
                parts.append(np.frombuffer(data, kind).reshape(rows, *shape))
        return [torch.from_numpy(np.concatenate(parts)) for parts in found]

    def reset(self, *, seed: list[int]) -> tuple[torch.Tensor, dict[str, Any]]:
        """All rows, each from its seed."""
        self._write(b"r", np.array(seed, np.int64))
        return self._read((np.float32, self.single_observation_space.shape))[0], {}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """As an environment of manikin with ``autoreset="same_step"``."""
        self._write(b"s", actions.detach().numpy().astype(np.float32))
        observed = (np.float32, self.single_observation_space.shape)
        kinds = [(kind, ()) for kind in SIZES.values()]
        seen, final, rewards, *rest = self._read(observed, observed, (np.float32, ()), *kinds)
        flags = dict(zip(SIZES, rest, strict=True))
        terminated, truncated = flags["terminated"].bool(), flags["truncated"].bool()
        done = terminated | truncated
        info: dict[str, Any] = {"success": flags["success"].bool(), "elapsed": flags["elapsed"]}
        if bool(done.any()):
            info |= {"final_obs": final, "_final_obs": done, "final_info": dict(info), "_final_info": done}
        return seen, rewards, terminated, truncated, info

    def cpu_seconds(self) -> float:
        """Processor time of the processes so far."""
        ticks = 0
        for process in self._processes:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            process.wait()


def probe(words: list[str], rows: int, cores: int, seconds: float) -> dict[int, float]:
    """Control steps per second of all rows with random actions, by the number of processes: 1, 2, 4 and so on, up to
    twice the cores."""
    rates, count = {}, 1
    while count <= min(rows, 2 * cores):
        env = PeerRows(words, rows, count)
        env.reset(seed=list(range(rows)))
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            env.step(2 * torch.rand((rows, *env.single_action_space.shape)) - 1)
            steps += rows
        rates[count] = round(steps / (time.perf_counter() - began), 1)
        env.close()
        count *= 2
    return rates


def helpful(rates: Mapping[int, float]) -> int:
    """The fewest processes whose rate comes near the best."""
    return min(count for count, rate in rates.items() if rate >= ENOUGH * max(rates.values()))


def validated(env: PeerRows, actor: torch.nn.Module, episodes: int) -> float:
    """Share of held-out episodes that succeed at least once."""
    won = 0
    for first in range(0, episodes, env.num_envs):
        observation, _ = env.reset(seed=[VALIDATION + first + row for row in range(env.num_envs)])
        playing, succeeded = torch.ones(env.num_envs, dtype=torch.bool), torch.zeros(env.num_envs, dtype=torch.bool)
        while bool(playing.any()):
            with torch.no_grad():
                observation, _, terminated, truncated, info = env.step(actor(observation))
            succeeded |= playing & info["success"]
            playing &= ~(terminated | truncated)
        won += int(succeeded.sum())
    return won / (-(-episodes // env.num_envs) * env.num_envs)


def ours(minutes: float, seed: int, quick: bool, wall: bool) -> dict[str, Any]:
    """The recipe of manikin, validated as it says."""
    now, column = (time.perf_counter, "seconds") if wall else (time.process_time, "cpu_seconds")
    recipe = recipe_for("ppo", "PickCube-v2")[0].replace(minutes=10**6, stop_at=2.0)
    if quick:
        recipe = recipe.replace(env={"num_envs": 4}, steps=200, validate_every=1, validation_episodes=4)
    began = now()
    with tempfile.TemporaryDirectory() as folder:
        over = lambda: now() - began > 60 * minutes  # noqa: E731
        train(recipe, folder=folder, seed=seed, threads=0 if wall else 1, stop=over)
        rows = read_progress(Path(folder) / "progress.csv")
    curve = [
        [round(row[column], 1), int(row["steps"]), round(row["validated_success"], 4)]
        for row in rows
        if "validated_success" in row
    ]
    last = rows[-1]
    times = {name: last[name] for name in ("seconds", "cpu_seconds")}
    return {"settings": recipe.hash, "steps": int(last["steps"]), **times, "curve": curve}


def theirs(
    words: list[str], minutes: float, seed: int, rows: int, processes: int, wall: bool, config: Config = PUBLISHED
) -> dict[str, Any]:
    """The same trainer on the peer's rows."""
    env, held_out = PeerRows(words, rows, processes), PeerRows(words, rows, processes)
    trainer: Any = PPO(env, config, seed)  # type: ignore[arg-type]  # which needs no more of an environment

    def spent() -> float:
        return time.process_time() + env.cpu_seconds() + held_out.cpu_seconds()

    clocks = {"seconds": time.perf_counter, "cpu_seconds": spent}
    began, curve = {name: now() for name, now in clocks.items()}, []
    times = dict.fromkeys(clocks, 0.0)
    while times["seconds" if wall else "cpu_seconds"] < 60 * minutes:
        trainer.iterate()
        success = validated(held_out, trainer.actor, EPISODES)
        times = {name: now() - began[name] for name, now in clocks.items()}
        curve.append([round(times["seconds" if wall else "cpu_seconds"], 1), trainer.steps, success])
    for one in (env, held_out):
        one.close()
    return {"settings": "published", "steps": trainer.steps, **times, "curve": curve}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each, by the clock that counts")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="processor time, or wall-clock")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=16, help="of ManiSkill3")
    parser.add_argument("--processes", type=int, default=0, help="of ManiSkill3's rows; 0: as many as help")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    wall = args.clock == "wall"
    if args.worker:
        torch.set_num_threads(1)
        if args.worker == OURS:
            found = ours(args.minutes, args.seed, args.quick, wall)
        else:
            python = args.peers / "maniskill" / "bin" / "python"
            script = HERE / "peers" / "maniskill_rows.py"
            source = f". {args.peers}/env.sh; " if (args.peers / "env.sh").exists() else ""
            words = ["bash", "-c", f'{source}exec {python} {script} serve "$0"']
            rates = {} if args.processes else probe(words, args.rows, len(os.sched_getaffinity(0)), 5.0)
            processes = args.processes or helpful(rates)
            found = theirs(words, args.minutes, args.seed, args.rows, processes, wall)
            found |= {"processes": processes, "probe": rates}
        args.out.write_text(json.dumps(found))
        return
    names = [OURS]
    if args.peers is None or args.quick:
        print(f"without {THEIRS}: " + ("--quick leaves it out" if args.quick else "--peers DIR has it"))
    else:
        names.append(THEIRS)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        running: list[SimpleNamespace] = []
        for number, name in enumerate(names):
            out = Path(folder) / f"{number}.json"
            words = [sys.executable, __file__, "--worker", name, "--minutes", str(args.minutes), "--out", str(out)]
            words += ["--seed", str(args.seed), "--rows", str(args.rows), *(["--quick"] if args.quick else [])]
            words += ["--peers", str(args.peers.resolve())] if args.peers else []
            words += ["--clock", args.clock, "--processes", str(args.processes)]
            chosen = cores if wall else [cores[number % len(cores)]]
            here = os.environ if wall else {**os.environ, "OMP_NUM_THREADS": "1", "MANIKIN_CORES": "1"}
            if wall and running:
                running[-1].process.wait()
            words = ["taskset", "-c", ",".join(map(str, chosen)), *words]
            running.append(SimpleNamespace(name=name, out=out, process=subprocess.Popen(words, env=here)))
        runs = {}
        for one in running:
            if one.process.wait():
                raise RuntimeError(f"{one.name} failed")
            found = json.loads(one.out.read_text())
            best = max((success for _, _, success in found["curve"]), default=None)
            done = {
                f"steps_per_{name.removesuffix('s')}": round(found["steps"] / found[name], 1)
                for name in ("seconds", "cpu_seconds")
            }
            times = {name: round(found[name], 1) for name in ("seconds", "cpu_seconds")}
            runs[one.name] = {**found, **times, **done, "best": best}
    result = {"command": command(), "minutes": args.minutes, "clock": args.clock}
    result |= {"machine": {**machine(), "cores": os.cpu_count()}}
    write({**result, "versions": versions(), "runs": runs}, args.out)


if __name__ == "__main__":
    main()
