"""A mobile robot finds its way through eight apartments: drive to the fridge.

python examples/drive_home.py
manikin view examples/drive_home.py --film home.mp4 --num-envs 4
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

import manikin
from manikin import Episode, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.homes import VARIATIONS, Home, Starts, apartment, free_space, furnish
from manikin.math import norm
from manikin.plan.executor import WaypointExecutor

CORNERS = 8  # of the way that an episode remembers
TRIES = 30
NEAR, TURNED = 0.15, 0.2  # [m], [rad] that count as there


@dataclass
class DriveHomeHandles:
    home: Home
    robot: Robot
    way: Variable


class DriveHome(Task):
    """Drive to the fridge.

    Randomization: which of eight apartments (``layouts``), where the robot starts, and where it has to stand before
    the fridge.
    Success: the base stands within 0.15 m of its goal and turned to the fridge within 0.2 rad.
    """

    id = "DriveHome-v0"
    horizon_s = 30.0
    instruction = "drive to the fridge"
    robots = ("fetch",)
    robot_control: ClassVar = {"fetch": "base: base_vel, torso: joint_delta_pos, arm: joint_delta_pos"}
    layouts = tuple(f"apartment{seed}" for seed in range(VARIATIONS))
    observations: ClassVar = {
        "base": Quantity("m, rad", "world", "x, y and turn"),
        "way": Quantity("m, rad", "world", "corners of the way; the last one is the goal"),
    }

    def scene(self, b: SceneBuilder) -> DriveHomeHandles:
        home = apartment(self.layouts.index(self.layout))
        self._fridge = np.array(home.of_kind("fridge")[0].pos[:2])
        self._free = free_space(home, radius=0.45)
        self._starts = Starts(home, self._free, b.robots[0])
        return DriveHomeHandles(
            home=furnish(b, home), robot=b.robot(pos=(0, 0, 0)), way=b.variable("way", (CORNERS, 3), persist=True)
        )

    def start(self, h: DriveHomeHandles, ep: Episode) -> None:
        posture, numbers = h.robot.keyframe("carry"), ep.rng.uniform("start", 0.0, 1.0, (TRIES, 3))
        joints = self._starts.draw(posture, numbers)
        around = {"near": self._fridge, "within": 1.8, "facing": self._fridge}
        goals = self._starts.draw(posture, ep.rng.uniform("goal", 0.0, 1.0, (TRIES, 3)), **around)[:, :3]
        ways = [self._way(*ends) for ends in zip(joints[:, :3].numpy(), goals.numpy(), strict=True)]
        way = torch.tensor(np.stack(ways)).float()
        joints[:, 2] = way[:, 0, 2]  # the same turn, some whole turns on or back
        h.way.set(way[:, 1:])
        h.robot.set_qpos(joints)

    def _way(self, start: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """(1 + CORNERS, 3) places on the way, equally far apart and turned along it, from the start to the goal."""
        corners = self._free.path(start[:2], goal[:2])
        along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
        x, y = (np.interp(np.linspace(0.0, along[-1], CORNERS + 1), along, corners[:, k]) for k in (0, 1))
        yaw = np.unwrap([start[2], *np.arctan2(np.diff(y), np.diff(x))[1:], goal[2]])
        return np.stack([x, y, yaw - 2 * np.pi * np.round(yaw.mean() / (2 * np.pi))], -1)

    def evaluate(self, h: DriveHomeHandles) -> dict[str, Tensor]:
        off = h.robot.arm_qpos[:, :3] - h.way.value[:, -1]
        return {"success": (norm(off[:, :2]) < NEAR) & (off[:, 2].abs() < TURNED)}

    def observe(self, h: DriveHomeHandles) -> dict[str, dict[str, Tensor]]:
        return {"policy": {"base": h.robot.arm_qpos[:, :3], "way": h.way.value}, "privileged": {}}

    def landmarks(self, h: DriveHomeHandles) -> dict[str, Tensor]:
        return {"goal": torch.cat([h.way.value[:, -1, :2], torch.zeros(h.n, 1)], 1)}  # for the map of manikin view

    def expert(self, h: DriveHomeHandles) -> list[Waypoint]:
        joints = torch.cat([h.way.value[:, -1], h.robot.keyframe("carry")[3:].expand(h.n, -1)], 1)
        return [Waypoint(base=h.way.value, joints=joints, gripper=1, rot_tol=0.1, speed=0.9, turn=1.2).hold()]


def main(episodes: int = 16) -> None:
    env = manikin.make(DriveHome, num_envs=episodes, autoreset="disabled", reward="sparse")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    done = torch.zeros(episodes, dtype=torch.bool)
    arrived = done.clone()
    while not done.all():
        _, _, terminated, truncated, info = env.step(expert.act(), active=~done)
        arrived |= info["success"] & ~done
        done |= terminated | truncated
    print(f"arrived in {int(arrived.sum())} of {episodes} episodes")
    assert arrived.float().mean() >= 0.9
    env.close()


if __name__ == "__main__":
    main()
