"""Control steps per second: manikin, raw MuJoCo on the same model, and other libraries, side by side in one run.

    python benchmarks/throughput.py                     # manikin against raw physics
    python benchmarks/throughput.py --peers DIR         # also ManiSkill3, robosuite, Gymnasium-Robotics

``DIR`` holds one virtual environment per peer: DIR/maniskill (mani_skill==3.0.1 sapien==3.0.3), DIR/robosuite
(robosuite==1.5.2 mujoco==3.3.7), DIR/gymrobotics (gymnasium-robotics==1.4.2 mujoco==3.3.7); a file DIR/env.sh, where
present, is sourced first. Every contestant runs in a process of its own, all of them once per round, so that a slow
moment of the machine meets them alike; compare ratios, not machines. Random actions in [-1, 1]; full reward, success
and info; no rendering.

Each figure is the median of at least five rounds, beside the least and the most.

Raw is ``mujoco.batch.Batch.step(nstep, stage=mjSTAGE_VEL)`` on the very model, with the same bound fields and the
controls that the environment had commanded, and nothing else.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import arguments, command, spread, write

HERE = Path(__file__).parent
ROUNDS = 5  # of which a published figure is the median
RATES = {"5 ms x 10": 200.0, "10 ms x 5": 100.0}
PEERS = {"ManiSkill3 PickCube": "maniskill", "robosuite Lift": "robosuite", "FetchPickAndPlace": "gymrobotics"}


def worker(task: str, num_envs: int, physics_hz: float, seconds: float) -> dict:
    """Rates in control steps per second, and what goes with them, in this process."""
    from manikin.author.speed import measure_speed

    return dataclasses.asdict(measure_speed(task, num_envs, seconds=seconds, physics_hz=physics_hz))


def breakdown(task: str, steps: int) -> dict[str, float]:
    """Microseconds per control step at one environment: of physics, of the task's own methods, and of the rest."""
    import torch

    import manikin

    torch.set_num_threads(1)
    env = manikin.make(task, horizon=10**9, terminate=False)
    env.reset(seed=0)
    spent: dict[str, float] = {}

    def timed(owner: object, method: str, label: str) -> None:
        inner = getattr(owner, method)

        def call(*args, **kwargs):
            begin = time.perf_counter()
            result = inner(*args, **kwargs)
            spent[label] = spent.get(label, 0.0) + time.perf_counter() - begin
            return result

        setattr(owner, method, call)

    timed(env.world, "step", "physics")
    for method in ("evaluate", "reward", "observe"):
        timed(env.task, method, f"the task's {method}")
    actions = torch.rand(64, 1, env.single_action_space.shape[0]) * 2 - 1
    begin = time.perf_counter()
    for k in range(steps):
        env.step(actions[k % 64])
    total = time.perf_counter() - begin
    env.close()
    spent["controller and the rest"] = total - sum(spent.values())
    return {k: round(1e6 * v / steps, 1) for k, v in sorted(spent.items(), key=lambda kv: -kv[1])}


def run_peer(folder: Path, name: str, seconds: float) -> float:
    """Control steps per second of a peer, from its own virtual environment."""
    script, python = HERE / "peers" / f"{name}.py", folder / name / "bin" / "python"
    source = f". {folder}/env.sh; " if (folder / "env.sh").exists() else ""
    command = f"{source}exec {python} {script} {seconds}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.strip().splitlines()[-1])


def summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    """One row of what the rounds measured: rates with their spread, of the rest the median."""
    row: dict[str, Any] = {k: spread([run[k] for run in runs]) for k in ("env", "raw")}
    others = [k for k in runs[0] if k not in ("num_envs", *row)]
    row |= {k: round(statistics.median(run[k] for run in runs), 3) for k in others}
    return row | {"env_over_raw": spread([run["env"] / run["raw"] for run in runs], digits=3)}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", default="PickCube-v2")
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at least {ROUNDS}")
    parser.add_argument("--seconds", type=float, default=2.0, help="of stepping per measurement")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 256, 1024])
    parser.add_argument("--worker", nargs=3, metavar=("N", "HZ", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        n, hz, seconds = args.worker
        print(json.dumps(worker(args.task, int(n), float(hz), float(seconds))))
        return
    if args.quick:
        args.rounds, args.seconds, args.num_envs = 1, 0.05, [1]
    elif args.rounds < ROUNDS:
        parser.error(f"--rounds {args.rounds}: a figure is the median of at least {ROUNDS} rounds; or take --quick")

    measured: dict[str, list[dict[str, float]]] = {}
    peers: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for label, hz in RATES.items():
            for n in args.num_envs:
                words = [sys.executable, __file__, "--task", args.task, "--worker", str(n), str(hz), str(args.seconds)]
                line = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
                measured.setdefault(f"{label}, N={n}", []).append(json.loads(line))
        for title, name in PEERS.items() if args.peers else ():
            peers.setdefault(title, []).append(run_peer(args.peers, name, args.seconds))

    result: dict[str, Any] = {
        "command": command(),
        "task": args.task,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "rounds": args.rounds,
        "manikin": {label: summary(runs) for label, runs in measured.items()},
        "breakdown_us": breakdown(args.task, steps=30 if args.quick else 3000),
    }
    if peers:
        result["peers"] = {title: spread(rates) for title, rates in peers.items()}
        base = peers["ManiSkill3 PickCube"]
        single = {label: runs for label, runs in measured.items() if label.endswith("N=1")}
        result["times_maniskill3_at_one_env"] = {  # within each round
            label: spread([run["env"] / rate for run, rate in zip(runs, base, strict=True)], digits=2)
            for label, runs in single.items()
        }
    write(result, args.out)


if __name__ == "__main__":
    main()
