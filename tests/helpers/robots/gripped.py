"""A small task for tests of touch: an arm that points down holds a thing before its pads."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import manikin
from manikin.author.card import hold_action
from manikin.env.task import Task
from manikin.math import quat_mul
from manikin.scene.gel import Gel
from manikin.spec.prop import Shape

HEIGHT = 0.3


class Gripped(Task):
    """Holds a ball, a box or nothing at all, ``HEIGHT`` above the table; floats until the fingers have closed."""

    id = "Gripped-v0"
    horizon_s = 20.0
    instruction = "hold it"
    control = "joint_pos"
    reward_max = 1.0

    @dataclass(frozen=True)
    class Config:
        thing: str = "sphere"
        size: tuple[float, ...] = (0.008,)
        mass: float = 0.2
        where: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the thing in the TCP frame [m]
        resolution: tuple[int, int] = (72, 68)
        gel: Gel = Gel()  # noqa: RUF009
        tactile: bool = True
        resizable: bool = False

    def scene(self, b):
        c = self.config
        b.fixture("ground", Shape(type="box", size=(1, 1, 0.05), pos=(0, 0, -0.05)))
        robot = b.robot()
        shape = Shape(type=c.thing, size=c.size)
        thing = b.part("thing", [shape], mass=c.mass, pos=(0, 0, 2), resizable=c.resizable)
        handles = {"robot": robot, "thing": thing, "wrist": b.force_torque(robot), "touch": b.touch(robot)}
        if c.tactile:
            for finger in (0, 1):
                handles[f"tactile{finger}"] = b.tactile(robot, finger=finger, resolution=c.resolution, gel=c.gel)
        return {**handles, "grasp": b.grasp(robot, thing)}

    def start(self, h, ep):
        down = quat_mul(h.robot.base_pose[3:], torch.tensor([0.0, 1, 0, 0]))  # and ahead, seen from its base
        place = torch.cat([torch.tensor([0.0, 0.0, HEIGHT]), down]).expand(h.n, 7)
        found = h.robot.ik(place)
        h.robot.set_qpos(torch.where(found.reached[:, None], found.q, h.robot.keyframe()))
        h.thing.set_pose((0.3, 0.3, 0.1))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {}, "privileged": {}}

    def reward(self, h, ev, action):
        return {"nothing": torch.zeros(h.n)}


def closed(env):
    """The action that holds the arm where it is and the gripper shut."""
    action = hold_action(env)
    action[:, -1] = -1
    return action


def gripped(n=1, *, robot="panda", steps=40, quat=(1.0, 0, 0, 0), sizes=None, **config):
    """An environment whose gripper has closed on the thing, held in the air till then, and kept it for a while."""
    env = manikin.make(
        Gripped, num_envs=n, robot=robot, autoreset="disabled", terminate=False, reward="none", config=config
    )
    env.reset(seed=0)
    if sizes is not None:
        env.h.thing.set_size(sizes)
    action = closed(env)
    offset = torch.tensor(config.get("where", (0.0, 0, 0)))
    for k in range(steps):
        if k < steps // 2:
            env.h.thing.set_pose(manikin.math.pose_apply(env.h.robot.tcp_pose, offset.expand(n, 3)), quat)
        env.step(action)
    return env
