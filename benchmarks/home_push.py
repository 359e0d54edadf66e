"""How much is a newton of the published limits here? Fetch pushes against something fixed, by arm and by base.

    python benchmarks/home_push.py

MS-HAB's limits were chosen with another simulator, and it published no push that could be done again. What is known of
its sum is how it is made: of the forces at the end of each control step, 20 in a second. So whoever simulates, the sum
is about 20 times the impulse that went through the contact, and mechanics says what impulse that is: the momentum of
what is stopped, and what drives it on. Only what happens between two samples is the solver's. The reference push
measures that. It ends at full speed against a post; counted are the 20 control steps from the first touch on, of eight
rows that touch at another moment of a control step each. The impulse is added up over all physics steps. The ratio of
the sum to 20 times the impulse is the factor between calibrated and published limits.

The base is measured, too. There the two differ for another reason: the original's servo presses with 500 N, the one
here with up to 2500 N. ``published`` is what its sum would be: 20 m v + 500 n, of a robot of m kg at v m/s.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from statistics import mean
from typing import Any, ClassVar

import mujoco
import numpy as np
import torch
from common import ROOT, arguments, command, parsed
from torch import Tensor

from manikin import Episode, Robot, SceneBuilder, Task
from manikin.env.env import Env
from manikin.env.state.provenance import versions
from manikin.robots import fetch_mshab
from manikin.scene.handles.forces import FINGERS
from manikin.spec.prop import Shape
from manikin.tasks.home.rules import RULES

OUT = ROOT / "benchmarks" / "results" / "home_push.json"
STEPS, ROWS = 20, 8  # control steps of a push, and moments within a control step
LIMITED = ("pick", "place", "open", "close")
PAN, FORWARD = "shoulder_pan_joint", 11  # the joint, and the column of an action
FORCE = 500.0  # [N] of the base in MS-HAB's code
SPEEDS = (0.25, 0.5, 1.0)  # shares of the arm's 0.1 rad a step and of the base's 1 m/s
_WALL = Shape(type="box", size=(0.05, 1.0, 0.2), pos=(0.75, 0.0, 0.2))  # below the arm
_POST = Shape(type="cylinder", size=(0.03, 0.4), pos=(0.68, 0.5, 1.4))  # the forearm meets it


@dataclass
class PushHandles:
    robot: Robot


class Push(Task):
    """Fetch with its arm stretched ahead, and something fixed.

    Randomization: none.
    Success: never.
    """

    id = "HomePush-v0"
    horizon_s = 10.0
    instruction = "push"
    robots = ("fetch_mshab",)
    robot_control: ClassVar = {"fetch_mshab": fetch_mshab.CONTROL}
    observations: ClassVar = {}

    @dataclass(frozen=True)
    class Config:
        by: str = "arm"  # what pushes: arm or base
        speed: float = 1.0  # share of its full one

    def scene(self, b: SceneBuilder) -> PushHandles:
        b.fixture("block", _POST if self.config.by == "arm" else _WALL)
        return PushHandles(robot=b.robot(pos=(0, 0, 0)))

    def start(self, h: PushHandles, ep: Episode) -> None:
        """Rows begin one after the other a little further away, over what is done in a control step."""
        joints = h.robot.keyframe("forward").expand(h.n, -1).clone()
        at = h.robot.joints.index(PAN) if self.config.by == "arm" else 0
        joints[:, at] -= torch.arange(h.n) / h.n * self.config.speed / self.control_hz
        h.robot.set_qpos(joints)

    def evaluate(self, h: PushHandles) -> dict[str, Tensor]:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: PushHandles) -> dict[str, dict[str, Tensor]]:
        return {"policy": {}, "privileged": {}}


def push(by: str, speed: float, rows: int = ROWS) -> dict[str, Any]:
    """The forces of pushes by ``arm`` or ``base`` at a share of full speed [N], means of rows.

    Returns:
        ``sum`` as a task counts it, with ``low`` and ``high`` of the rows; ``impulse`` 20 times the impulse through all
        contacts; ``ratio`` of the two; ``peak`` and ``held``, the largest force and the last one; ``speed`` before.
    """
    options: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "none"}
    env = Env(Push({"by": by, "speed": speed}, arm="fetch_mshab"), num_envs=rows, robot="fetch_mshab", **options)
    env.reset(seed=0)
    action = env.hold()
    dims = [dim.name.rpartition("/")[2] for dim in env.controller.card.dims]
    action[:, dims.index(PAN if by == "arm" else "forward")] = speed
    joint = env.robot.joints.index(PAN) if by == "arm" else 0
    forces, finely, speeds = np.zeros((200, rows)), np.zeros((200, rows)), np.zeros((200, rows))
    for step in range(200):
        speeds[step] = env.robot.arm_qvel[:, joint].numpy()
        before = [mujoco.MjData(env.scene.model) for _ in range(rows)]
        for row, data in enumerate(before):
            mujoco.mj_copyData(data, env.scene.model, env.world.data(row)[1])
        env.step(action)
        forces[step] = env.robot.forces.total.numpy()
        for row, data in enumerate(before):
            finely[step, row] = between(env, data, row)
        if ((forces > 0).sum(0) > STEPS).all():
            break
    mass = float(env.scene.model.body_subtreemass[1])
    env.close()
    first = [int((finely[:, row] > 0).argmax()) for row in range(rows)]
    counted = np.stack([forces[k : k + STEPS, row] for row, k in enumerate(first)])
    impulse = np.array([finely[k : k + STEPS, row].sum() for row, k in enumerate(first)])
    before_touch = mean(abs(float(speeds[k, row])) for row, k in enumerate(first))
    found = {
        "speed": before_touch,
        "sum": float(counted.sum(1).mean()),
        "low": float(counted.sum(1).min()),
        "high": float(counted.sum(1).max()),
        "impulse": float(impulse.mean()),
        "peak": float(counted.max(1).mean()),
        "held": float(counted[:, -1].mean()),
    }
    if by == "base":
        found["published"] = 20 * mass * before_touch + FORCE * STEPS
    return {name: round(value, 3) for name, value in found.items()} | {
        "ratio": round(found["sum"] / found["impulse"], 3)
    }


def between(env: Env, data: mujoco.MjData, row: int) -> float:
    """[N] mean over the physics steps of a control step of the force on the robot, from the state before it.

    Raises:
        RuntimeError: that did not end where the environment did.
    """
    model, after = env.scene.model, env.world.data(row)[1]
    names = [name for name in env.robot.forces.links if not name.startswith(FINGERS)]
    places = [int(model.sensor(f"{env.robot.forces.name}/{name}").adr[0]) for name in names]
    data.ctrl[:], data.qfrc_applied[:] = after.ctrl, after.qfrc_applied
    total = 0.0
    for _ in range(env.substeps):
        mujoco.mj_step(model, data)
        total += sum(float(np.linalg.norm(data.sensordata[at : at + 3])) for at in places)
    if np.abs(data.qpos - after.qpos).max() > 1e-9:
        raise RuntimeError(f"the push went otherwise when it was done again: {np.abs(data.qpos - after.qpos).max()}")
    return total / env.substeps


def main() -> None:
    args = parsed(arguments(__doc__), OUT)
    torch.set_num_threads(1)
    speeds, rows = (SPEEDS[-1:], 1) if args.quick else (SPEEDS, ROWS)
    found = {by: {f"{speed:g}": push(by, speed, rows) for speed in speeds} for by in ("arm", "base")}
    factor = found["arm"]["1"]["ratio"]
    published = {kind: RULES[kind].force_limit for kind in LIMITED}
    result = {
        "command": command(),
        "versions": versions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "steps": STEPS,
        "rows": rows,
        "pushes": found,
        "factor": factor,
        "limits": {
            kind: {"published": limit, "calibrated": round(factor * limit)} for kind, limit in published.items()
        },
    }
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
