"""A task that needs all of a mobile manipulator: drive, turn, raise the torso, grasp a cube from a table, carry it."""

from __future__ import annotations

import math
from typing import ClassVar

import torch

from manikin.arenas.ground import ground
from manikin.env.task import Quantity, Task
from manikin.math import pose, quat_mul
from manikin.robots import fetch_mshab
from manikin.spec.plan import Waypoint
from manikin.spec.prop import Shape
from manikin.toolkit import is_static, press, rests, tool_rests

__all__ = ["AWAY", "BACK", "FAR", "TOP", "FetchCube"]

FAR, AWAY, TOP = 1.5, 0.8, 0.7  # [m] the way, from the base to the cube, height of the table
BACK = (0.6, 0.0, 0.0)  # where the cube is carried
VIEW = ((2.6, -1.6, 1.8), (0.9, 0.3, 0.6))


class FetchCube(Task):
    """Drive 1.5 m, turn left, raise the torso, grasp a cube 0.8 m away, carry it back.

    Randomization: the cube +-2 cm.
    Success: the cube is held, the robot is back, rests and stands still.
    """

    id = "FetchCube-v0"
    horizon_s = 25.0
    instruction = "fetch the red cube"
    robots = ("fetch_mshab",)
    robot_control: ClassVar = {"fetch_mshab": fetch_mshab.CONTROL}
    observations = {"qpos": Quantity("m, rad", "joint")}
    turn = math.pi / 2

    def scene(self, b):
        ground(b, height=0.0, base_camera=VIEW, human_camera=VIEW)
        top = Shape(type="box", size=(0.4, 0.25, 0.02), pos=(FAR, AWAY + 0.17, TOP - 0.02), rgba=(0.6, 0.45, 0.3, 1))
        b.fixture("table", top, surface=True)
        leg = Shape(type="box", size=(0.05, 0.05, TOP / 2 - 0.02), pos=(FAR, AWAY + 0.25, TOP / 2 - 0.02))
        b.fixture("leg", leg)
        robot = b.robot(pos=(0, 0, 0))
        cube = b.box("cube", half_size=(0.025,) * 3, rgba=(0.85, 0.1, 0.1, 1))
        return {"robot": robot, "cube": cube, "grasp": b.grasp(robot, cube), "pressed": b.variable("pressed")}

    def start(self, h, ep):
        h.robot.set_qpos(self.joints(h, torso=0.15))
        spot = ep.rng.uniform("cube/xy", -0.02, 0.02, (2,)) + torch.tensor([FAR, AWAY])
        h.cube.set_pose(torch.cat([spot, torch.full((h.n, 1), TOP + 0.025)], 1))

    def advance(self, h):
        press(h.pressed, h.robot)

    def joints(self, h, torso):
        """(n, joints) the rest keyframe with the torso so high [m]."""
        rest = h.robot.keyframe().clone()
        rest[h.robot.groups["torso"]] = torso
        return rest.expand(h.n, -1)

    def evaluate(self, h):
        root = h.robot.root_pose
        back = (root[:, :2] - torch.tensor(BACK[:2])).norm(dim=1) < 0.05
        calm = rests(h.robot) & tool_rests(h.robot) & is_static(h.robot)
        return {"success": h.grasp.value & back & calm, "is_grasped": h.grasp.value}

    def observe(self, h):
        return {"policy": {"qpos": h.robot.qpos}, "privileged": {}}

    def expert(self, h):
        def at(*place):
            return torch.tensor([place]).expand(h.n, 3)

        half = 0.5 * self.turn
        yaw = torch.tensor([[math.cos(half), 0.0, 0.0, math.sin(half)]])
        down = torch.tensor([[math.cos(3 * math.pi / 8), 0.0, math.sin(3 * math.pi / 8), 0.0]])  # 45 deg, ahead
        facing = quat_mul(yaw, down).expand(h.n, 4)
        spot = h.cube.pos + torch.tensor([0.0, 0.0, 0.015])  # the fingertips are above the table
        back = torch.tensor([0.0, -0.1, 0.1])  # against the way the gripper points
        high = self.joints(h, 0.386)
        out = pose(h.robot.tcp_pos + torch.tensor([0.0, -0.1, 0.15]), h.robot.tcp_quat)
        return [
            Waypoint(name="drive", base=at(FAR, 0.0, self.turn), gripper=1, pos_tol=0.01, rot_tol=0.01),
            Waypoint(name="raise", joints=high, gripper=1, rot_tol=0.02),
            Waypoint(name="before", pose=pose(spot + back, facing), gripper=1, pos_tol=0.02, timeout_s=4.0),
            Waypoint(name="around", pose=pose(spot, facing), gripper=1, pos_tol=0.008, speed=0.3),
            Waypoint(name="close", pose=pose(spot, facing), gripper=-1, pos_tol=0.02),
            Waypoint(name="lift", pose=out, gripper=-1, pos_tol=0.03),
            Waypoint(name="tuck", joints=high, gripper=-1, rot_tol=0.05, turn=1.0, timeout_s=4.0),
            Waypoint(name="carry", base=at(*BACK), gripper=-1, pos_tol=0.02, rot_tol=0.02, turn=1.0).hold(),
        ]
