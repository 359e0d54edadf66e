"""A round ladle on a stick, for a robot that holds a stick in place of a gripper."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.math import pose, pose_inv, pose_mul
from manikin.props.soft.vessel import vessel
from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.part import Part
from manikin.scene.handles.robot import Robot

__all__ = ["FLOOR", "RAISED", "WALL", "ladle", "raise_ladle", "tipped", "tool_of"]

WALL, FLOOR = 0.005, 0.008  # [m]
_WRIST = 5  # the joint that raises the stick
RAISED = 0.6  # [rad] the stick points down and so far forward while the ladle is upright


def ladle(b: SceneBuilder, robot: Robot, *, radius: float, height: float) -> tuple[Part, Tensor]:
    """Fix a ladle to the end of a robot's stick, by the back of its rim.

    Args:
        b: the scene.
        robot: whose TCP is the end of the stick.
        radius: inside [m].
        height: of the rim above the bottom [m].

    Returns:
        The part, its origin the middle of its bottom and z its axis; and its pose (1, 7) in the TCP's frame.
    """
    # how the stick is turned while the ladle is upright: pointing down, then raised; and the way back from there
    down, raised, back = np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4), np.zeros(4)
    mujoco.mju_mulQuat(raised, np.array([math.cos(RAISED / 2), 0.0, -math.sin(RAISED / 2), 0.0]), down)
    mujoco.mju_negQuat(back, raised)
    offset = np.zeros(3)
    mujoco.mju_rotVecQuat(offset, np.array([radius + WALL, 0.0, 0.01 - height]), back)
    pos, quat = offset.tolist(), back.tolist()
    shapes = vessel(radius, height, wall=WALL, floor=FLOOR)
    part = b.part("ladle", shapes, on=robot, pos=pos, quat=quat, density=600.0, rgba=(0.3, 0.55, 0.85, 0.4))
    return part, torch.tensor([[*pos, *quat]])


def raise_ladle(robot: Robot, rng: EpisodeRng) -> Tensor:
    """Put a robot where it holds its ladle upright, with normal noise of 0.02 rad on the arm's joints; returns them
    (n, joints) [rad]."""
    q = robot.keyframe() + rng.normal("robot/qpos", 0.0, 0.02, (robot.arm_joints,))
    q[:, _WRIST] += RAISED
    robot.set_qpos(q)
    return q


def tool_of(at: Tensor, in_tool: Tensor) -> Tensor:
    """(n, 7) pose of the TCP that brings a ladle to ``at`` (n, 7), where it is fixed at ``in_tool`` (1, 7)."""
    tool = pose_mul(at, pose_inv(in_tool).expand(len(at), 7))
    return pose(tool[:, :3], tool[:, 3:])


def tipped(lip: Tensor, tilt: Tensor, *, radius: float, height: float) -> Tensor:
    """(n, 7) pose of a ladle or cup that is tipped forward, along x, by ``tilt`` (n,) [rad] with the lowest point of
    its rim at ``lip`` (n, 3) [m]; ``radius`` [m] is its outside's."""
    half, zero = tilt / 2, torch.zeros_like(tilt)
    quat = torch.stack([torch.cos(half), zero, torch.sin(half), zero], 1)
    inward = torch.tensor([[-radius, 0.0, -height]]).expand(len(tilt), 3)
    return pose_mul(pose(lip, quat), pose(inward))
