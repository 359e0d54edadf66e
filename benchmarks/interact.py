"""The Interact benchmark of MS-HAB, from built-in parts: Fetch sweeps its arm over the things on a kitchen counter.

    python benchmarks/interact.py --out benchmarks/results/interact.json
    python benchmarks/interact.py --device cuda --rows 1024 4096

As published: an apartment with a fridge and a counter that open, 28 things on counter, fridge and tables, Fetch before
the counter with torso held 0.15 m up and head at 0, 200 arm actions that touch things, two cameras of 128 x 128 with
colour and depth, physics at 100 Hz and control at 20 Hz; one reset to warm up, then a reset and 200 steps are timed.
What differs: the apartment is built-in, things are boxes of the size of groceries, and the arm sweeps along the counter
and back, as the published file is not at hand. Every count of rows runs in a process of its own.

Each count runs three times: with pictures, without, and MuJoCo alone on the same model with the same controls
(``raw``). ``memory`` is what one more row takes of the physics. ``touched`` is how many things the robot touched;
in the published run they are five.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from common import arguments, command, spread, write

from manikin import CameraSpec, Episode, Handles, Part, Quantity, Robot, SceneBuilder, Task
from manikin.homes import Home, apartment, furnish

STEPS = 200
THINGS = {  # how many lie where, as in Habitat's configuration of this benchmark
    "counter/left": 5, "counter/right": 5, "fridge/lower": 4, "fridge/middle": 4, "table/top": 5, "low_table/top": 5,
}  # fmt: skip
SIZE = 128
CONTROL = "arm: joint_delta_pos, gripper: opening, head: joint_pos, torso: joint_pos, base: base_vel"  # these two held
PUBLISHED = {"MS-HAB, 4096 rows, RTX 4090": 4299.18, "Habitat 2.0, best, RTX 4090": 1397.65}  # steps/s
_MOVED = 0.005  # [m] by which something is moved only where the robot touches it
HAND = CameraSpec(name="hand_camera", on="gripper_link", pos=(0, 0, 0), quat=(0.5, -0.5, 0.5, -0.5), fovy=2.0)


def half(k: int) -> tuple[float, float, float]:
    """(3,) half lengths [m] of a box, of the size of groceries."""
    return (0.025 + 0.005 * (k % 3), 0.03, 0.04 + 0.01 * (k % 4))


@dataclass
class Interacting(Handles):
    robot: Robot
    home: Home
    things: list[Part]


class Interact(Task):
    """Sweep the arm over the things on a counter.

    Randomization: none.
    Success: never.
    """

    id = "Interact-v0"
    horizon_s = STEPS / 20
    instruction = "sweep over the counter"
    robots = ("fetch_mshab",)
    robot_control = {"fetch_mshab": CONTROL}
    observations = {"joints": Quantity("m, rad")}

    def scene(self, b: SceneBuilder) -> Interacting:
        robot = b.robot(pos=(0, 0, 0))
        home = furnish(b, apartment(0))
        b.camera(HAND, on=robot, link=HAND.on)
        things = [b.box(f"thing{k}", half_size=half(k), mass=0.3) for k in range(sum(THINGS.values()))]
        return Interacting(robot=robot, home=home, things=things)

    def start(self, h: Interacting, ep: Episode) -> None:
        counter = h.home.receptacle("counter/left")[:, :2]
        place = torch.cat([counter - torch.tensor([0.0, 0.67]), torch.full((h.n, 1), math.pi / 2)], 1)
        joints = h.robot.keyframe("interact").expand(h.n, -1).clone()
        joints[:, :3] = h.robot.base_joints(place)
        h.robot.set_qpos(joints, opening=0.2)
        things = iter(enumerate(h.things))
        for name, count in THINGS.items():
            middle = h.home.receptacle(name)
            room = h.home.apartment.receptacle(name)[1].half
            for k in range(count):
                number, thing = next(things)
                spread_over = 0.6 if name == "counter/left" else 1.0  # within reach of the arm
                along = (2 * k + 1 - count) / count * (room[1] - 0.05) * spread_over
                pos = middle[:, :3].clone()
                aside = 0 if abs(math.sin(2 * math.atan2(*self._turn(h, name)))) > 0.5 else 1
                pos[:, aside] += along
                pos[:, 2] += half(number)[2] - room[2] + 0.002
                thing.set_pose(pos)

    def _turn(self, h: Interacting, name: str) -> tuple[float, float]:
        owner = h.home.apartment.receptacle(name)[0]
        return owner.quat[3], owner.quat[0]

    def evaluate(self, h: Interacting) -> dict[str, torch.Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Interacting) -> dict[str, dict[str, torch.Tensor]]:
        return {"policy": {"joints": h.robot.arm_qpos}, "privileged": {}}


def moves(rows: int, card: Any) -> torch.Tensor:
    """(200, rows, A) actions: the shoulder sweeps to the right, to the left and back, the other joints of the arm sway;
    nothing else moves."""
    out = torch.zeros(STEPS, rows, card.size)
    t = torch.arange(STEPS)[:, None] / 20.0
    out[:, :, 0] = 0.55 * torch.sin(2 * math.pi * 0.1 * t - 0.9)
    for joint in range(1, 7):
        out[:, :, joint] = 0.05 * torch.sin(2 * math.pi * (0.11 + 0.03 * joint) * t + joint)
    held = {"head/head_pan_joint": 0.0, "head/head_tilt_joint": 0.0, "torso/torso_lift_joint": 0.15}  # [rad], [m]
    for k, dim in enumerate(card.dims):
        if dim.name in held:
            out[:, :, k] = (held[dim.name] - dim.offset) / dim.scale
    return out


def timed(rows: int, device: str, *, pictures: bool, steps: int) -> dict[str, float]:
    """Steps per second of all rows together, and of physics alone."""
    import manikin
    from manikin.author.raw import raw_physics
    from manikin.env.observe import Vision

    torch.set_num_threads(1)
    seen: dict[str, Any] = {"observe": "state"}
    if pictures:
        seen = {"observe": "rgb+depth", "vision": Vision(cameras=["fetch_head", HAND.name], size=(SIZE, SIZE))}
    env = manikin.make(Interact, rows, device=device, reward="none", autoreset="disabled", terminate=False,
                       physics_hz=100.0, **seen)  # fmt: skip
    actions = moves(rows, env.controller.card).to(env.device)
    env.reset(seed=0)
    env.step(actions[0])
    begin = time.perf_counter()
    env.reset(seed=0)
    physics = None if pictures else raw_physics(env)
    before = torch.stack([thing.pos[0, :2] for thing in env.h.things])
    controls = []
    for k in range(steps):
        env.step(actions[k])
        if physics is not None:
            controls.append(physics.controls())
    if env.device.type == "cuda":
        torch.cuda.synchronize(env.device)
    found = {"rate": rows * steps / (time.perf_counter() - begin)}
    moved = (torch.stack([thing.pos[0, :2] for thing in env.h.things]) - before).norm(dim=1)
    found["touched"] = int((moved > _MOVED).sum())
    if physics is not None:
        found["raw"] = rows * steps / physics.run(controls)
        found["memory"] = float(env.world.memory_per_row())
    env.close()
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--device", default="cpu", help="cpu, cuda")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=STEPS, help="of the 200 that are timed")
    parser.add_argument("--busy", action="store_true", help="say in the result that the machine did other work, too")
    parser.add_argument("--worker", nargs=2, metavar=("N", "PICTURES"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        rows, pictures = args.worker
        print(json.dumps(timed(int(rows), args.device, pictures=pictures == "1", steps=args.steps)))
        return
    if args.quick:
        args.rows, args.rounds, args.steps = [1], 1, 3
    result: dict[str, Any] = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, device {args.device}",
        "busy": args.busy,
        "steps": args.steps,
        "published": PUBLISHED,
    }
    for rows in args.rows:
        runs: dict[str, list[float]] = {}
        for _ in range(args.rounds):
            for pictures in ("0", "1"):
                words = [sys.executable, __file__, "--worker", str(rows), pictures, "--device", args.device, "--steps",
                         str(args.steps)]  # fmt: skip
                found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
                runs.setdefault("with_pictures" if pictures == "1" else "without_pictures", []).append(found["rate"])
                if pictures == "0":
                    runs.setdefault("raw", []).append(found["raw"])
                    runs.setdefault("share_of_raw", []).append(found["rate"] / found["raw"])
                    runs.setdefault("bytes_per_row", []).append(found["memory"])
                    runs.setdefault("touched", []).append(found["touched"])
        result.setdefault("runs", {})[f"{rows} rows"] = {
            k: spread(v, 3 if k == "share_of_raw" else 1) for k, v in runs.items()
        }
    write(result, args.out)


if __name__ == "__main__":
    main()
