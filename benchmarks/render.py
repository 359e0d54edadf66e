"""Images per second of a whole environment step, and what its time goes to, beside other libraries in the same run.

    python benchmarks/render.py                     # manikin alone; panda:menagerie needs MENAGERIE_ROOT
    python benchmarks/render.py --peers DIR         # also ManiSkill3 and robosuite (see throughput.py for DIR)

PickCube-v2 (robosuite: Lift), one camera, random actions, full reward and info; every contestant runs in a process of
its own, all of them once per round. ``crossover`` times the renderers against each other over picture sizes.
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

HERE = Path(__file__).parent
CASES = {"128x128 rgb": (128, 128, "rgb"), "128x128 rgb+depth+segmentation": (128, 128, "rgb+depth+segmentation")}
CASES |= {"640x480 rgb": (640, 480, "rgb")}
PEERS = {"ManiSkill3 PickCube": "maniskill", "robosuite Lift": "robosuite"}
SIZES = (32, 64, 96, 128, 256)


def worker(robot: str, num_envs: int, width: int, height: int, outputs: str, backend: str, seconds: float) -> dict:
    """Images per second of step and pictures, then milliseconds per image by what they are spent on."""
    import dataclasses

    import mujoco
    import torch

    import manikin
    from manikin.render import CameraRig

    torch.set_num_threads(1)
    env = manikin.make("PickCube-v2", robot=robot, num_envs=num_envs, horizon=10**9, terminate=False)
    env.reset(seed=0)
    camera = dataclasses.replace(env.camera("base_camera"), width=width, height=height)
    begin = time.perf_counter()
    rig = CameraRig(env.world, [camera], outputs.split("+"), backend=backend)
    create = time.perf_counter() - begin
    actions = torch.rand(64, num_envs, env.single_action_space.shape[0]) * 2 - 1
    for k in range(3):
        env.step(actions[k])
        rig.render()

    def run() -> tuple[float, float, int]:
        physics, steps, start = 0.0, 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            begin = time.perf_counter()
            env.step(actions[steps % 64])
            physics += time.perf_counter() - begin
            rig.render()
            steps += 1
        return time.perf_counter() - start, physics, steps * num_envs

    total, physics, images = run()
    result = {
        "images_per_s": images / total,
        "create_s": create,
        "backend": rig.backend,
        "physics_ms": 1e3 * physics / images,
    }
    result["pictures_ms"] = 1e3 * (total - physics) / images
    result["threads"] = rig.threads
    if rig.backend.startswith("gl"):  # again, by one thread that waits for the drawing, to tell it from reading back
        rig.close()
        rig = CameraRig(env.world, [camera], outputs.split("+"), backend=backend, threads=1)
        spent = {"draw": 0.0, "read": 0.0}
        draw, read = mujoco.mjr_render, mujoco.mjr_readPixels

        def timed_draw(*args: object) -> None:
            begin = time.perf_counter()
            draw(*args)
            mujoco.mjr_finish()
            spent["draw"] += time.perf_counter() - begin

        def timed_read(*args: object) -> None:
            begin = time.perf_counter()
            read(*args)
            spent["read"] += time.perf_counter() - begin

        mujoco.mjr_render, mujoco.mjr_readPixels = timed_draw, timed_read
        total, physics, images = run()
        result["split_ms"] = {
            "physics, reward, state": 1e3 * physics / images,
            "draw": 1e3 * spent["draw"] / images,
            "read back": 1e3 * spent["read"] / images,
            "pose, backdrop, depth in metres, copies": 1e3 * (total - physics - sum(spent.values())) / images,
        }
    rig.close()
    return result


def crossover(robot: str, sizes: list[int]) -> dict[str, dict[str, float]]:
    """Milliseconds per image of each renderer that works here, over sizes; a batch of 8 rows."""
    import dataclasses

    import manikin
    from manikin.errors import ManikinError
    from manikin.render import CameraRig

    env = manikin.make("PickCube-v2", robot=robot, num_envs=8)
    env.reset(seed=0)
    base = env.camera("base_camera")
    table: dict[str, dict[str, float]] = {}
    for backend in ("gl", "warp", "rays"):
        for outputs in (("rgb",), ("rgb", "depth", "segmentation")):
            for size in sizes:
                try:
                    rig = CameraRig(
                        env.world, [dataclasses.replace(base, width=size, height=size)], outputs, backend=backend
                    )
                except (ManikinError, ImportError):
                    continue
                rig.render()
                spent = []
                for _ in range(5):
                    begin = time.perf_counter()
                    rig.render()
                    spent.append(time.perf_counter() - begin)
                label = f"{backend} {'+'.join(outputs)}"
                table.setdefault(label, {})[f"{size}x{size}"] = round(1e3 * statistics.median(spent) / 8, 2)
                rig.close()
    return table


def in_process(*options: object) -> dict:
    words = [sys.executable, __file__, *map(str, options)]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


def run_peer(folder: Path, name: str, *options: object) -> float:
    script, python = HERE / "peers" / f"{name}_render.py", folder / name / "bin" / "python"
    source = f". {folder}/env.sh; " if (folder / "env.sh").exists() and name == "maniskill" else ""
    line = f"{source}exec {python} -P {script} {' '.join(map(str, options))}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peers", type=Path, help="folder with the peers' virtual environments")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="per measurement")
    parser.add_argument("--robots", nargs="+", default=["panda:menagerie", "panda"])
    parser.add_argument("--num-envs", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--worker", nargs=7, help=argparse.SUPPRESS)
    parser.add_argument("--crossover", nargs=2, metavar=("ROBOT", "SIZES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        robot, n, width, height, outputs, backend, seconds = args.worker
        print(json.dumps(worker(robot, int(n), int(width), int(height), outputs, backend, float(seconds))))
        return
    if args.crossover:
        robot, sizes = args.crossover
        print(json.dumps(crossover(robot, json.loads(sizes))))
        return
    whole, sizes = CASES, SIZES
    if args.quick:
        args.rounds, args.seconds, args.robots, args.num_envs = 1, 0.05, ["panda"], [1]
        whole, sizes = {"32x32 rgb": (32, 32, "rgb")}, (16,)

    ours: dict[str, list[dict]] = {}
    peers: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for case, (width, height, outputs) in whole.items():
            for robot in args.robots:
                for n in args.num_envs:
                    options = ("--worker", robot, n, width, height, outputs, args.backend, args.seconds)
                    ours.setdefault(f"{robot}, N={n}, {case}", []).append(in_process(*options))
            for title, name in PEERS.items() if args.peers else ():
                rate = run_peer(args.peers, name, args.seconds, width, height, outputs)
                peers.setdefault(f"{title}, {case}", []).append(rate)
    middle = {k: sorted(v, key=lambda r: r["images_per_s"])[len(v) // 2] for k, v in ours.items()}
    result = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "manikin": middle,
        "peers_images_per_s": {k: round(statistics.median(v), 1) for k, v in peers.items()},
        "crossover_ms": {robot: in_process("--crossover", robot, json.dumps(sizes)) for robot in args.robots},
    }
    result = json.loads(json.dumps(result), parse_float=lambda x: round(float(x), 3))
    write(result, args.out)


if __name__ == "__main__":
    main()
