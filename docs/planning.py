"""Draw docs/images/planning.png: a planned way among clutter, and the straight one. Look at what comes out.

python docs/planning.py [PROBLEM]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from plan import Clutter, problems  # noqa: E402

from manikin.env.env import Env  # noqa: E402
from manikin.plan.planner import Planner  # noqa: E402
from manikin.render import make_renderer, write_png  # noqa: E402
from manikin.spec.camera import CameraSpec  # noqa: E402

MARKS = 40
VIEW = CameraSpec(name="docs", pos=(0.75, 0.75, 0.75), target=(-0.15, 0.0, 0.15), fovy=0.75)


class Marked(Clutter):
    __doc__ = Clutter.__doc__
    id = "MarkedClutter-v0"

    def scene(self, b):
        handles = super().scene(b)
        for k in range(MARKS):
            for name, size, rgba in (("planned", 0.008, (0.1, 0.8, 0.2, 1)), ("straight", 0.006, (0.9, 0.1, 0.1, 1))):
                handles[f"{name}{k}"] = b.marker(f"{name}{k}", size=(size,), rgba=rgba)
        return handles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", nargs="?", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a small picture, to see that it runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder of the picture")
    options = parser.parse_args()
    row, (width, height) = options.problem, (72, 48) if options.quick else (720, 480)
    env = Env(Marked, num_envs=row + 1, control="joint_pos", autoreset="disabled", reward="none")
    env.reset(seed=0)
    planner = Planner(env)
    start, goal, _ = problems(planner)
    plan = planner.plan(qpos=goal[row : row + 1], start=start[row : row + 1], rows=[row])
    print(plan.found, plan.reasons, len(plan.paths[0]), "corners")
    motion = plan.timed()
    times = torch.linspace(0, float(motion.duration), MARKS, dtype=torch.float64)
    chain, base = env.robot.solver.chain, env.robot.base_pose[:3]
    share = torch.linspace(0, 1, MARKS, dtype=torch.float64)[:, None]
    for name, q in (
        ("planned", motion.sample(times[None])[0][0]),
        ("straight", start[row] + share * (goal[row] - start[row])),
    ):
        places = chain.fk(q)[0].float() + base
        for k, place in enumerate(places):
            env.h[f"{name}{k}"].set_pose(place.expand(row + 1, 3))
    env.robot.set_qpos(motion.sample(0.5 * motion.duration)[0].float().expand(row + 1, 7))
    env.world.forward()
    model, data = env.model_data(row)
    renderer = make_renderer(samples=3, shadows=True)
    write_png(options.out / "planning.png", renderer.rgb(model, data, VIEW, width=width, height=height))
    renderer.close()


if __name__ == "__main__":
    main()
