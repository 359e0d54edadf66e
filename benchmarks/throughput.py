"""Control steps per second: manikin, raw MuJoCo on the same model, and other libraries, side by side in one run.

    python benchmarks/throughput.py                     # manikin against raw physics
    python benchmarks/throughput.py --peers DIR         # also ManiSkill3, robosuite, Gymnasium-Robotics

``DIR`` holds one virtual environment per peer: DIR/maniskill (mani_skill==3.0.1 sapien==3.0.3), DIR/robosuite
(robosuite==1.5.2 mujoco==3.3.7), DIR/gymrobotics (gymnasium-robotics==1.4.2 mujoco==3.3.7); a file DIR/env.sh, where
present, is sourced first. Every contestant runs in a process of its own, all of them once per round, so that a slow
moment of the machine meets them alike; compare ratios, not machines. Random actions in [-1, 1]; full reward, success
and info; no rendering.

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

HERE = Path(__file__).parent
RATES = {"5 ms x 10": 200.0, "10 ms x 5": 100.0}
PEERS = {"ManiSkill3 PickCube": "maniskill", "robosuite Lift": "robosuite", "FetchPickAndPlace": "gymrobotics"}


def worker(task: str, num_envs: int, physics_hz: float, seconds: float) -> dict:
    """Rates in control steps per second, and what goes with them, in this process."""
    from manikin.env.speed import measure_speed

    return dataclasses.asdict(measure_speed(task, num_envs, seconds=seconds, physics_hz=physics_hz))


def breakdown(task: str, steps: int = 3000) -> dict[str, float]:
    """Microseconds per control step at one environment, by what they are spent on."""
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
    timed(env, "_action", "check the action")
    timed(env.task, "evaluate", "evaluate")
    timed(env, "_reward", "reward")
    timed(env, "_observer", "observe")
    timed(env, "_info", "info")
    timed(env, "_write_ctrl", "write controls")
    actions = torch.rand(64, 1, env.single_action_space.shape[0]) * 2 - 1
    begin = time.perf_counter()
    for k in range(steps):
        env.step(actions[k % 64])
    total = time.perf_counter() - begin
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="PickCube-v1")
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of stepping per measurement")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 256, 1024])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", nargs=3, metavar=("N", "HZ", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        n, hz, seconds = args.worker
        print(json.dumps(worker(args.task, int(n), float(hz), float(seconds))))
        return

    measured: dict[str, list[dict]] = {}
    peers: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for label, hz in RATES.items():
            for n in args.num_envs:
                command = [
                    sys.executable,
                    __file__,
                    "--task",
                    args.task,
                    "--worker",
                    str(n),
                    str(hz),
                    str(args.seconds),
                ]
                line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                measured.setdefault(f"{label}, N={n}", []).append(json.loads(line))
        for title, name in PEERS.items() if args.peers else ():
            peers.setdefault(title, []).append(run_peer(args.peers, name, args.seconds))

    rows = {}
    for label, runs in measured.items():
        row = {k: round(statistics.median(r[k] for r in runs), 3) for k in runs[0] if k != "num_envs"}
        row["env_over_raw"] = round(statistics.median(r["env"] / r["raw"] for r in runs), 3)
        rows[label] = row
    result = {
        "command": "python benchmarks/throughput.py " + " ".join(a for a in sys.argv[1:] if not Path(a).is_absolute()),
        "task": args.task,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "manikin": rows,
        "breakdown_us": breakdown(args.task),
    }
    if peers:
        result["peers"] = {k: round(statistics.median(v), 1) for k, v in peers.items()}
        single = {label: row["env"] for label, row in rows.items() if label.endswith("N=1")}
        base = result["peers"]["ManiSkill3 PickCube"]
        result["times_maniskill3_at_one_env"] = {k: round(v / base, 2) for k, v in single.items()}
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
