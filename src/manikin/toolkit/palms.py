"""Where an arm's joints are when its palm lies against something: inverse kinematics that leaves the turn about the
palm's normal free, as arms of five joints need it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from manikin.control.ik import Chain
from manikin.errors import SceneError, UnknownNameError
from manikin.math import quat_rotate, quat_rotate_inv
from manikin.scene.handles import Robot
from manikin.sim.device import on_host

__all__ = ["Palm"]

_NEAR = 2e-4  # [m] at which the search ends
_MOST = 0.3  # [rad] that a joint moves in one step


@dataclass
class Palm:
    """One tool of a robot, brought to a place by the group of joints that is declared with it.

    Args:
        robot: whose.
        tool: its name, such as "left".
        flat: what comes to the place is the flat of the hand, which the gripper's declaration names; else the TCP.

    Raises:
        UnknownNameError: the robot has no such tool.
        SceneError: no group of joints is declared to move it, or, with ``flat``, no palm.
    """

    robot: Robot
    tool: str
    flat: bool = False

    def __post_init__(self) -> None:
        if self.tool not in self.robot.tools:
            raise UnknownNameError(f"tool of {self.robot.arm.name}", self.tool, self.robot.tools)
        if not self.robot.tools[self.tool].group:
            raise SceneError(f"the tool {self.tool!r} of {self.robot.arm.name} has no group of joints that moves it")
        gripper = self.robot.tools[self.tool].gripper
        if self.flat and (gripper is None or gripper.palm is None):
            raise SceneError(f"the tool {self.tool!r} of {self.robot.arm.name} has no palm that is declared flat")

    @property
    def columns(self) -> slice:
        """Which of the robot's arm joints bring it to a place."""
        return self.robot.groups[self.robot.tools[self.tool].group]

    @cached_property
    def _chain(self) -> Chain:
        return Chain(self.robot.arm, self.robot.gripper, tool=self.tool)

    @cached_property
    def _frame(self) -> tuple[Tensor, Tensor, float]:
        """What comes to the place, in the TCP's frame: (3,) the way it faces, (3,) [m] how far it is aside of that, and
        how far along it [m]."""
        gripper = self.robot.tools[self.tool].gripper
        if not self.flat or gripper is None or gripper.palm is None:
            return torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64), torch.zeros(3, dtype=torch.float64), 0.0
        place, way, tcp, quat = (
            torch.tensor(value, dtype=torch.float64) for value in (*gripper.palm, gripper.tcp_pos, gripper.tcp_quat)
        )
        quat = quat / quat.norm()
        offset, way = quat_rotate_inv(quat, place - tcp), quat_rotate_inv(quat, way)
        along = float(offset @ way)
        return way, offset - along * way, along

    def at(
        self,
        place: Tensor,
        normal: Tensor,
        start: Tensor,
        *,
        weight: float = 0.2,
        iterations: int = 30,
        posture: float = 0.02,
    ) -> tuple[Tensor, Tensor]:
        """Joints for which the tool is at a place and its z axis along a direction.

        Args:
            place: (n, 3) of the TCP, or the flat of the hand, in the world [m].
            normal: (n, 3) unit vectors in the world: of the TCP's z, or out of the flat of the hand.
            start: (n, arm joints) [rad]: where the search begins, and where joints stay that do not belong to it.
            weight: [m/rad] how much an error of the normal counts against one of the place.
            iterations: how many steps it takes at most.
            posture: how much a redundant arm is pulled to where it starts.

        Returns:
            (n, arm joints) [rad], within the limits; and (n,) [m] how far from it the tool is, with the normal's
            error by its weight.
        """
        device, base = start.device, self.robot.base_pose
        turn = base[3:].expand(len(place), 4)
        goal, way = quat_rotate_inv(turn, place - base[:3]), quat_rotate_inv(turn, normal)
        with on_host(device):
            goal, way, begin = goal.cpu().double(), way.cpu().double(), start.cpu().double()
            q, off = self._descend(goal, way, begin, weight, iterations, posture)
        return q.to(device, torch.float32), off.to(device, torch.float32)

    def _descend(
        self, goal: Tensor, way: Tensor, start: Tensor, weight: float, iterations: int, posture: float
    ) -> tuple[Tensor, Tensor]:
        """Damped least squares, in the base frame."""
        own, low, high = self.columns, *self._chain.limits[self.columns].unbind(1)
        out, offset, along = self._frame
        goal = goal - along * way  # an error of the normal is none of the place
        soft, eye = 1e-4 * torch.eye(6, dtype=torch.float64), torch.eye(len(low), dtype=torch.float64)
        q, rest, rows = start.clone(), start[:, own], torch.arange(len(start))  # rows that still move
        best, least = q.clone(), torch.full((len(q),), torch.inf, dtype=torch.float64)
        for step in range(iterations + 1):
            pos, quat, jacobian = self._chain.fk_jacobian(q)
            aside, axis = quat_rotate(quat, offset.expand(len(q), 3)), quat_rotate(quat, out.expand(len(q), 3))
            pos = pos + aside
            linear = jacobian[:, :3] + torch.linalg.cross(jacobian[:, 3:], aside[:, :, None], dim=1)
            jacobian = torch.cat([linear, jacobian[:, 3:]], 1)
            error = torch.cat([goal[rows] - pos, weight * torch.linalg.cross(axis, way[rows])], 1)
            off = (error * error).sum(1).sqrt()
            better = off < least[rows]
            best[rows[better]], least[rows[better]] = q[better], off[better]
            go = off >= _NEAR
            if step == iterations or not go.any():
                break
            rows, q, error, jacobian = rows[go], q[go], error[go], jacobian[go]
            seen = eye[:3, :3] - way[rows, :, None] * way[rows, None]  # of a turn, what moves the normal
            arm = jacobian[:, :, own]
            arm = torch.cat([arm[:, :3], weight * seen @ arm[:, 3:]], 1)
            square = arm @ arm.transpose(1, 2) + soft
            inverse = torch.linalg.solve(square, torch.cat([error[:, :, None], arm], 2))
            null = eye - arm.transpose(1, 2) @ inverse[:, :, 1:]
            pull = posture * (rest[rows] - q[:, own])
            move = (arm.transpose(1, 2) @ inverse[:, :, :1] + null @ pull[:, :, None])[:, :, 0]
            move = move * (_MOST / move.abs().amax(1, keepdim=True).clamp_min(_MOST))
            q[:, own] = torch.minimum(torch.maximum(q[:, own] + move, low), high)
        return best, least
