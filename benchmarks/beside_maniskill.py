"""PPO on PickCube with manikin's recipe, beside the same PPO file with ManiSkill3's published settings on its own
CPU environments.

    python benchmarks/beside_maniskill.py --peers DIR --minutes 10 --seed 9351

``DIR`` holds ManiSkill3's virtual environment as for throughput.py; without it, manikin runs alone. Both train at the
same time, each on one core, until its processes have used so many minutes of processor time, validation included: so
other work on the machine favours neither. ManiSkill3's rows live in a process of its own Python, on the core of their
trainer; on the CPU it simulates one row at a time.

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
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import torch
from common import arguments, command, write
from peers.maniskill_rows import SIZES

from manikin.env.state.provenance import machine, versions
from manikin.learn.common.seeds import VALIDATION
from manikin.learn.ppo import PPO, Config
from manikin.learn.run.recipe import recipe_for
from manikin.learn.run.record import read_progress
from manikin.learn.run.train import train

HERE = Path(__file__).parent
OURS, THEIRS = "manikin PickCube-v2", "ManiSkill3 PickCube-v1"
EPISODES, HORIZON = 64, 50
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
        words: the command that serves them, see ``peers/maniskill_rows.py``.
        rows: how many.
    """

    def __init__(self, words: list[str], rows: int) -> None:
        self.num_envs, self.horizon, self.device = rows, HORIZON, torch.device("cpu")
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._into, self._out = self._process.stdin, self._process.stdout
        sizes = json.loads(self._out.readline())
        box = lambda n: gymnasium.spaces.Box(-np.inf, np.inf, (n,), np.float32)  # noqa: E731
        self.single_observation_space, self.single_action_space = box(sizes["observations"]), box(sizes["actions"])

    def _read(self, kind: Any, *shape: int) -> torch.Tensor:
        size = int(np.prod(shape)) * np.dtype(kind).itemsize
        data = self._out.read(size)
        if len(data) < size:
            raise RuntimeError("the peer's process has ended")
        return torch.from_numpy(np.frombuffer(data, kind).reshape(shape).copy())

    def reset(self, *, seed: list[int]) -> tuple[torch.Tensor, dict[str, Any]]:
        """All rows, each from its seed."""
        self._into.write(b"r" + np.array(seed, np.int64).tobytes())
        self._into.flush()
        return self._read(np.float32, self.num_envs, *self.single_observation_space.shape), {}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """As an environment of manikin with ``autoreset="same_step"``."""
        n, columns = self.num_envs, self.single_observation_space.shape
        self._into.write(b"s" + actions.detach().numpy().astype(np.float32).tobytes())
        self._into.flush()
        seen, final = self._read(np.float32, n, *columns), self._read(np.float32, n, *columns)
        rewards = self._read(np.float32, n)
        flags = {name: self._read(kind, n) for name, kind in SIZES.items()}
        terminated, truncated = flags["terminated"].bool(), flags["truncated"].bool()
        done = terminated | truncated
        info: dict[str, Any] = {"success": flags["success"].bool(), "elapsed": flags["elapsed"]}
        if bool(done.any()):
            info |= {"final_obs": final, "_final_obs": done, "final_info": dict(info), "_final_info": done}
        return seen, rewards, terminated, truncated, info

    def cpu_seconds(self) -> float:
        """Processor time of the process so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End the process."""
        self._into.close()
        self._process.wait()


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


def ours(minutes: float, seed: int, quick: bool) -> dict[str, Any]:
    """The recipe of manikin, validated as it says."""
    recipe = recipe_for("ppo", "PickCube-v2")[0].replace(minutes=10**6, stop_at=2.0)
    if quick:
        recipe = recipe.replace(env={"num_envs": 4}, steps=200, validate_every=1, validation_episodes=4)
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        over = lambda: time.process_time() - began > 60 * minutes  # noqa: E731
        train(recipe, folder=folder, seed=seed, threads=1, stop=over)
        rows = read_progress(Path(folder) / "progress.csv")
    curve = [
        [round(row["cpu_seconds"], 1), int(row["steps"]), round(row["validated_success"], 4)]
        for row in rows
        if "validated_success" in row
    ]
    last = rows[-1]
    return {"settings": recipe.hash, "steps": int(last["steps"]), "cpu_seconds": last["cpu_seconds"], "curve": curve}


def theirs(words: list[str], minutes: float, seed: int, rows: int, config: Config = PUBLISHED) -> dict[str, Any]:
    """The same trainer on the peer's rows."""
    env, held_out = PeerRows(words, rows), PeerRows(words, rows)
    trainer: Any = PPO(env, config, seed)  # type: ignore[arg-type]  # which needs no more of an environment

    def spent() -> float:
        return time.process_time() + env.cpu_seconds() + held_out.cpu_seconds()

    began, curve, seconds = spent(), [], 0.0
    while seconds < 60 * minutes:
        trainer.iterate()
        success = validated(held_out, trainer.actor, EPISODES)
        seconds = spent() - began
        curve.append([round(seconds, 1), trainer.steps, success])
    for one in (env, held_out):
        one.close()
    return {"settings": "published", "steps": trainer.steps, "cpu_seconds": seconds, "curve": curve}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--minutes", type=float, default=10.0, help="of processor time of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=16, help="of ManiSkill3")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        torch.set_num_threads(1)
        if args.worker == OURS:
            found = ours(args.minutes, args.seed, args.quick)
        else:
            python = args.peers / "maniskill" / "bin" / "python"
            script = HERE / "peers" / "maniskill_rows.py"
            source = f". {args.peers}/env.sh; " if (args.peers / "env.sh").exists() else ""
            words = ["bash", "-c", f"{source}exec {python} {script} serve {args.rows}"]
            found = theirs(words, args.minutes, args.seed, args.rows)
        args.out.write_text(json.dumps(found))
        return
    names = [OURS]
    if args.peers is None or args.quick:
        print(f"without {THEIRS}: " + ("--quick leaves it out" if args.quick else "--peers DIR has it"))
    else:
        names.append(THEIRS)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, name in enumerate(names):
            out = Path(folder) / f"{number}.json"
            words = [sys.executable, __file__, "--worker", name, "--minutes", str(args.minutes), "--out", str(out)]
            words += ["--seed", str(args.seed), "--rows", str(args.rows), *(["--quick"] if args.quick else [])]
            words += ["--peers", str(args.peers.resolve())] if args.peers else []
            core = str(cores[number % len(cores)])
            here = {**os.environ, "OMP_NUM_THREADS": "1", "MANIKIN_CORES": "1"}
            running.append(
                SimpleNamespace(name=name, out=out, process=subprocess.Popen(["taskset", "-c", core, *words], env=here))
            )
        runs = {}
        for one in running:
            if one.process.wait():
                raise RuntimeError(f"{one.name} failed")
            found = json.loads(one.out.read_text())
            best = max((success for _, _, success in found["curve"]), default=None)
            seconds = found["cpu_seconds"]
            rate = round(found["steps"] / seconds, 1)
            runs[one.name] = {**found, "cpu_seconds": round(seconds, 1), "steps_per_cpu_second": rate, "best": best}
    result = {"command": command(), "minutes": args.minutes, "machine": {**machine(), "cores": os.cpu_count()}}
    write({**result, "versions": versions(), "runs": runs}, args.out)


if __name__ == "__main__":
    main()
