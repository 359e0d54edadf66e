"""Operational-space control at 500 Hz: manikin, raw MuJoCo on the same model, and robosuite, side by side in one run.

    python benchmarks/osc.py                     # manikin against raw physics
    python benchmarks/osc.py --peers DIR         # also robosuite's Lift with OSC_POSE

``DIR`` as for ``benchmarks/throughput.py``. Every contestant runs in a process of its own, all of them once per round;
compare ratios, not machines. 20 Hz control, 25 physics steps of 2 ms, random actions in [-1, 1]; full reward, success
and info; no rendering. Jacobian and inertia are computed every ``refresh`` physics steps.

Raw is ``mujoco.batch.Batch.step(25, stage=mjSTAGE_VEL)`` from the same states. It commands the last physics step's
torques throughout, since what the controller did in between is what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import arguments, command, write
from throughput import run_peer


def worker(task: str, num_envs: int, refresh: int, seconds: float) -> dict[str, float]:
    """Control steps per second with and without everything but physics, and what the law costs and how often it ran."""
    import mujoco
    import torch

    import manikin

    torch.set_num_threads(1)
    word = "osc_pose" if refresh == 1 else f"osc_pose:refresh={refresh}"
    env = manikin.make(task, num_envs=num_envs, physics_hz=500.0, control=word, horizon=10**9, terminate=False)
    env.reset(seed=0)
    actions = torch.rand(64, num_envs, env.controller.card.size, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for k in range(5):
        env.step(actions[k])
    spent = {"law": 0.0, "calls": 0.0}
    make_drive = env.controller.drive

    def drive(*args):
        inner = make_drive(*args)
        torque = inner._command

        def timed(substep):
            begin = time.perf_counter()
            out = torque(substep)
            spent["law"] += time.perf_counter() - begin
            spent["calls"] += 1
            return out

        inner._command = timed
        return inner

    env.controller.drive = drive
    batch, state, stage = env.world._b, env.world._state, int(mujoco.mjtStage.mjSTAGE_VEL)
    whole = raw = 0.0
    steps = 0
    while whole < seconds:  # the two take turns, so that a slow moment of the machine meets both
        begin = time.perf_counter()
        env.step(actions[steps % 64])
        whole += time.perf_counter() - begin
        kept = state.copy()
        begin = time.perf_counter()
        batch.step(None, env.substeps, stage)
        raw += time.perf_counter() - begin
        state[...] = kept
        batch.forward(None, stage=stage)
        state[...] = kept
        steps += 1
    return {
        "env": num_envs * steps / whole,
        "raw": num_envs * steps / raw,
        "env_over_raw": raw / whole,
        "law_us_per_substep": 1e6 * spent["law"] / spent["calls"],
        "law_calls_per_step": spent["calls"] / steps,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", default="PickCube-v2")
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of stepping per measurement")
    parser.add_argument("--worker", nargs=3, metavar=("N", "REFRESH", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        n, refresh, seconds = args.worker
        print(json.dumps(worker(args.task, int(n), int(refresh), float(seconds))))
        return
    sizes = (1, 256)
    if args.quick:
        args.rounds, args.seconds, sizes = 1, 0.05, (1,)
    measured: dict[str, list[dict[str, float]]] = {}
    peer: list[float] = []
    for _ in range(args.rounds):
        for n in sizes:
            for refresh in (1, 5):
                words = [sys.executable, __file__, "--task", args.task]
                words += ["--worker", str(n), str(refresh), str(args.seconds)]
                line = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
                measured.setdefault(f"N={n}, refresh={refresh}", []).append(json.loads(line))
        if args.peers:
            peer.append(run_peer(args.peers, "robosuite", args.seconds))
    rows = {
        label: {k: round(statistics.median(r[k] for r in runs), 3) for k in runs[0]} for label, runs in measured.items()
    }
    result = {
        "command": command(),
        "task": args.task,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "manikin": rows,
    }
    if peer:
        result["robosuite_lift_osc_pose"] = round(statistics.median(peer), 1)
        for label, runs in measured.items():
            ratios = [m["env"] / p for m, p in zip(runs, peer, strict=True)]
            result["manikin"][label]["times_robosuite"] = round(statistics.median(ratios), 2)
    write(result, args.out)


if __name__ == "__main__":
    main()
