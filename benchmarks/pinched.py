"""Make the target shapes of Pinch-v1: the clay as its expert leaves it, pinched along x and along y of the block.

    python benchmarks/pinched.py [--out src/manikin/tasks/soft/pinched.json]

Another target makes another version of the task. Prints how far the volume fell meanwhile.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.plan.executor import WaypointExecutor

OUT = Path(__file__).resolve().parents[1] / "src" / "manikin" / "tasks" / "soft" / "pinched.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few steps, and write nothing unless --out says where")
    parser.add_argument("--out", type=Path, help=f"default {OUT.name} of the task")
    args = parser.parse_args()
    still = {"turn": 0.0, "spread": 0.0}
    env = Env(task_class("Pinch-v1"), num_envs=2, config=still, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    env.h.axis.set(torch.tensor([0.0, 1.0]))
    expert, start = WaypointExecutor(env), env.h.clay.volume
    least = torch.ones(2)
    for _ in range(5 if args.quick else env.horizon):
        env.step(expert.act())
        least = torch.minimum(least, env.h.clay.volume / start)
    points = env.h.clay.pos - env.h.clay.middle[:, None]
    lines = [", ".join(json.dumps([round(x, 5) for x in point]) for point in shape) for shape in points.tolist()]
    out = args.out or (None if args.quick else OUT)
    if out is not None:
        out.write_text("[\n [" + "],\n [".join(lines) + "]\n]\n")
    print("least volume, as shares of that at the start:", [round(share, 4) for share in least.tolist()])
    env.close()


if __name__ == "__main__":
    main()
