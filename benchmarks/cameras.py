"""ManiSkill3's camera benchmark: frames per second and memory of a cart-pole whose cameras are read in each step.

    python benchmarks/cameras.py                        # the processor; a CUDA device too, where there is one
    python benchmarks/cameras.py growth                 # 10,000 resets with pictures: does memory grow?

As in the paper (arXiv 2410.00425, appendix XI): cart-pole at 120 Hz of physics and 60 Hz of control, no reward and no
end, random actions; one camera of 128, 256 and 512 pixels square, one of 640x480, three of 320x180, colour alone and
colour with depth. Frames are steps times rows: with three cameras a frame is three pictures. Each measurement is a
process of its own; memory is the most that it held, and what the pictures added to that. The published figures are of
an RTX 4090 and stand beside; of Isaac Lab the paper's plots have no numbers, so its ratios are quoted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from common import ROOT, arguments, command, parsed, spread

RESULTS = ROOT / "benchmarks" / "results"
UNMEASURED = "unmeasured"
SETUPS = {  # name -> (cameras, width, height)
    "1x128x128": (1, 128, 128),
    "1x256x256": (1, 256, 256),
    "1x512x512": (1, 512, 512),
    "1x640x480": (1, 640, 480),
    "3x320x180": (3, 320, 180),
}
OUTPUTS = ("rgb", "rgb+depth")
ROWS = {"cpu": (1, 4, 16), "cuda": (1, 16, 128, 512, 1024)}
PUBLISHED = {
    "card": "RTX 4090",
    "maniskill3": {
        "1x128x128 rgb, as many rows as fit [frames/s]": 33018,
        "1x640x480, 128 rows, memory [GB]": 3.5,
        "least memory with a camera [GB]": 1.7,
    },
    "isaac_lab": {
        "version": "1.2.0",
        "1x128x128, many rows [times ManiSkill3, at most]": 1.25,
        "1x640x480 and 3x320x180 [times ManiSkill3, about]": 0.5,
        "1x512x512 [times ManiSkill3, at least]": 0.5,
        "1x640x480, 128 rows, memory [GB]": 14.1,
        "1x640x480, more than 128 rows": "out of memory",
        "least memory with a camera [GB]": 4.8,
    },
    "sources": [
        "ManiSkill3, arXiv 2410.00425, figures 2 and 31 to 35 and their text",
        "ManiSkill3's documentation, page on performance: 33,018 frames/s",
    ],
}
MOST_PER_RESET = 2000.0  # bytes by which memory may rise from reset to reset, in a straight line through the last part
JUDGED = 2000  # fewer resets are not judged: an allocator takes megabytes at a time, which would be a slope


def memory() -> float:
    """What this process holds now [MB]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def watched(count: int, width: int, height: int) -> Any:
    """The cameras, all where ManiSkill3's stands before its cart."""
    from manikin.env.observe import Vision
    from manikin.spec.camera import CameraSpec

    cameras = [
        CameraSpec(name=f"camera{i}", pos=(2.5, -0.5, 1.75), target=(0.0, 0.0, 1.0), fovy=0.63) for i in range(count)
    ]
    return Vision(cameras=tuple(cameras), size=(width, height))


def measure(setup: str, outputs: str, rows: int, device: str, seconds: float, steps: int) -> dict[str, float]:
    """One measurement, in this process: at most so many steps and seconds."""
    import torch

    import manikin

    torch.set_num_threads(1)
    given: dict[str, Any] = {"physics_hz": 120.0, "control_hz": 60.0, "reward": "none", "horizon": 10**9}
    env = manikin.make("CartpoleBalance-v1", rows, observe="state", device=device, **given)
    env.reset(seed=2022)
    env.close()
    bare = memory()
    env = manikin.make(
        "CartpoleBalance-v1", rows, observe=outputs, vision=watched(*SETUPS[setup]), device=device, **given
    )
    generator = torch.Generator().manual_seed(2022)
    actions = (torch.rand(64, rows, env.single_action_space.shape[0], generator=generator) * 2 - 1).to(env.device)

    def wait() -> None:
        if env.device.type == "cuda":
            torch.cuda.synchronize()

    env.reset(seed=2022)
    env.step(actions[0])
    env.reset(seed=2022)
    wait()
    began, done = time.perf_counter(), 0
    while done < steps and (done < 3 or time.perf_counter() - began < seconds):
        seen, *_ = env.step(actions[done % 64])
        done += 1
    wait()
    rate = done * rows / (time.perf_counter() - began)
    pictures = seen["cameras"]
    assert len(pictures) == SETUPS[setup][0] and all(len(shown["rgb"]) == rows for shown in pictures.values())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    found = {"frames_per_s": rate, "images_per_s": rate * len(pictures), "memory_mb": most, "pictures_mb": most - bare}
    if env.device.type == "cuda":
        free, total = torch.cuda.mem_get_info()
        found["device_memory_mb"] = (total - free) / 1e6
    env.close()
    return found


def growth(resets: int, rows: int) -> dict[str, Any]:
    """Resets with pictures, one step each, and what the process holds meanwhile."""
    import numpy as np
    import torch

    import manikin
    from manikin.env.observe import Vision

    torch.set_num_threads(1)
    env = manikin.make("PickCube-v2", rows, observe="rgb+depth", vision=Vision(size=(64, 64)), horizon=10)
    action = torch.zeros(rows, env.single_action_space.shape[0])
    held, every = [], max(1, resets // 100)
    began = time.perf_counter()
    for k in range(resets):
        env.reset(seed=k)
        env.step(action)
        if (k + 1) % every == 0:
            held.append(memory())
    seconds = time.perf_counter() - began
    env.close()
    late = held[len(held) // 2 :]  # what is made once has been made by then
    slope = float(np.polyfit(np.arange(len(late)) * every, late, 1)[0]) * 1e6
    return {
        "resets": resets,
        "rows": rows,
        "seconds": round(seconds, 1),
        "held_mb": {f"{share} %": round(held[len(held) * share // 100 - 1], 1) for share in (25, 50, 75, 100)},
        "bytes_per_reset": round(slope, 1),
        "grows": slope > MOST_PER_RESET if resets >= JUDGED else "not judged: too few resets",
    }


def in_process(*options: object) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--one", *map(str, options)], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{options} failed")
    return json.loads(done.stdout.splitlines()[-1])


def cameras(args: argparse.Namespace, device: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    setups, rows, rounds = (SETUPS, ROWS[device], args.rounds)
    if args.quick:
        setups, rows, rounds = {"3x320x180": SETUPS["3x320x180"]}, (2,), 1
    for setup in setups:
        for outputs in OUTPUTS:
            for count in rows:
                runs = [in_process(setup, outputs, count, device, args.seconds, args.steps) for _ in range(rounds)]
                found[f"{setup} {outputs}, N={count}"] = {name: spread([run[name] for run in runs]) for name in runs[0]}
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", nargs="?", choices=("cameras", "growth"), default="cameras")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1000, help="of a measurement, at most")
    parser.add_argument("--seconds", type=float, default=4.0, help="of a measurement, at most")
    parser.add_argument("--resets", type=int, default=10_000)
    parser.add_argument("--loaded", action="store_true", help="other work runs here: say so beside the figures")
    parser.add_argument("--one", nargs=6, help=argparse.SUPPRESS)
    if "--one" in sys.argv:
        setup, outputs, rows, device, seconds, steps = parser.parse_args().one
        print(json.dumps(measure(setup, outputs, int(rows), device, float(seconds), int(steps))))
        return
    out = RESULTS / ("camera_growth.json" if "growth" in sys.argv else "cameras.json")
    args = parsed(parser, out)
    from manikin.machine import machine

    result: dict[str, Any] = {"command": command(), "machine": {**machine(), "cores": os.cpu_count()}}
    result["other_work_ran_too"] = args.loaded
    if args.what == "growth":
        result |= growth(200 if args.quick else args.resets, 2)
    else:
        import torch

        if args.quick:
            args.seconds, args.steps = 0.1, 5
        result["cpu"] = cameras(args, "cpu")
        result["cuda"] = cameras(args, "cuda") if torch.cuda.is_available() else UNMEASURED
        result["published"] = PUBLISHED
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    if result.get("grows") is True:
        sys.exit(f"memory grows by {result['bytes_per_reset']:.0f} bytes per reset")


if __name__ == "__main__":
    main()
