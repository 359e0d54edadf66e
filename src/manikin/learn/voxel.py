"""Keyframes from voxels, after PerAct (Shridhar et al., 2022, arXiv:2209.05451): where to go next, not what to do next.

A demonstration is a few keyframes and ways between them. The network sees a voxel grid, made of what cameras with depth
see, and chooses the cell of the next keyframe, its orientation and whether the gripper is open on the way. All frames
of a demonstration are shown, each with the keyframe that it leads to. The policy goes straight there and is asked again
every few steps. Demonstrations are moved and turned as a whole, grid and keyframe alike: the same task elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from manikin.data.recording.format import flatten
from manikin.env.interface import BatchEnv
from manikin.env.observe.views import Voxels
from manikin.errors import ConfigError
from manikin.learn.common.data.keyframes import load_keyframes
from manikin.learn.common.imitation import GradientConfig, Imitation
from manikin.learn.common.numerics.moments import Moments
from manikin.math import quat_from_yaw, quat_mul, quat_rotate
from manikin.policy.chunk import Execution
from manikin.policy.networks.voxels import angle_bins, cell_of
from manikin.sense.pointcloud import PointCloud
from manikin.sense.voxel import voxelize

__all__ = ["Config", "Voxel", "moved"]

_ARM = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, kw_only=True)
class Config(GradientConfig):
    """Settings of ``voxel``, and those of :class:`~manikin.learn.common.imitation.GradientConfig`.

    Attributes:
        tool: name of the tool's pose in the group ``policy`` of the observation.
        numbers: values of that group that the network is told beside the grid, the tool and the gripper's joints. They
            must mean the same wherever the scene stands.
        still: [m] and [rad] per step below which the arm rests. corner: [m] by which a straight line between keyframes
            may miss the demonstration; 0 finds no corners.
        near, turned: [m], [rad] from a keyframe at which a frame leads to the next one.
        shift: [m] by which demonstrations are moved at most, along each axis. yaw: [degrees] by which they are turned
            about the vertical through the middle of the grid at most.
        bins: angles of a full turn among which the orientation is chosen.
        width: channels of the network's finest level.
        angle_weight, gripper_weight: of these losses beside that of the cell.
        speed: [m/s], turn: [rad/s] of the tool on its way.
        execute: control steps after which the policy is asked again.
        rows: of the policy's batches.
    """

    demonstrations: int = 50
    updates: int = 50
    batch_size: int = 16
    learning_rate: float = 2e-3
    max_grad_norm: float = 1.0
    average: float = 0.75
    tool: str = "tcp_pose"
    numbers: tuple[str, ...] = ()
    still: float = 0.004
    corner: float = 0.005
    near: float = 0.01
    turned: float = 0.3
    shift: float = 0.025
    yaw: float = 5.0
    bins: int = 72
    width: int = 16
    angle_weight: float = 0.3
    gripper_weight: float = 0.5
    speed: float = 0.4
    turn: float = 2.5
    execute: int = 4
    rows: int = 8


def moved(cloud: PointCloud, poses: Tensor, shift: Tensor, yaw: Tensor, middle: Tensor) -> tuple[PointCloud, Tensor]:
    """Points (B, P) and poses (B, K, 7), turned by ``yaw`` (B,) [rad] about the vertical through ``middle`` (3,), then
    moved by ``shift`` (B, 3) [m]."""
    turn, by = quat_from_yaw(yaw).unsqueeze(1), shift.unsqueeze(1)
    xyz = quat_rotate(turn, cloud.xyz - middle) + middle + by
    pos = quat_rotate(turn, poses[..., :3] - middle) + middle + by
    quat = quat_mul(turn.expand(-1, poses.shape[1], -1), poses[..., 3:])
    return PointCloud(xyz, cloud.valid, cloud.rgb), torch.cat([pos, quat], -1)


class Voxel(Imitation):
    """Trains a :class:`~manikin.policy.networks.voxels.VoxelKeyframes`. Arguments are those of
    :class:`~manikin.learn.common.imitation.Imitation`; ``env`` observes voxels and is driven by absolute poses.

    Raises:
        ConfigError: an observation without voxels or without the tool's pose, a controller of another kind, or
            settings that cannot work.
    """

    config: Config
    network = "voxel"

    def loaded(self, env: BatchEnv, demos: str | Path) -> Any:
        config = self.config
        grids = [one for one in env.observation.every(env.vision) if isinstance(one, Voxels)]
        if len(grids) != 1 or env.observation.stacks:
            raise ConfigError(
                f"voxel learns from one voxel grid, observe='voxel', without a Stack; not {env.observe!r}"
            )
        self.spec, source = grids[0].spec, grids[0].name
        shapes = {path: one.shape or (1,) for path, one in flatten(env.single_observation_space).items()}
        told = {}
        for name in (config.tool, "qpos", *config.numbers):
            if f"policy/{name}" not in shapes:
                there = [path.removeprefix("policy/") for path in shapes if path.startswith("policy/")]
                raise ConfigError(f"voxel needs {name!r} in the observation's group policy, which has {there}")
        joints, width = len(env.robot.arm.joints), math.prod(shapes["policy/qpos"])
        if width > joints:
            told["policy/qpos"] = (joints, width)
        told |= {f"policy/{name}": (0, math.prod(shapes[f"policy/{name}"])) for name in config.numbers}
        if not told:
            raise ConfigError("voxel must be told something beside the grid where there is no gripper: set numbers")
        goal, gripper = _goal(env)
        tool = f"policy/{config.tool}"
        self.about = {"execution": Execution(config.execute).plain, "width": config.rows}
        self.network_options = {
            "grid": {name: list(value) for name, value in asdict(self.spec).items()},
            "source": source,
            "tool": tool,
            "told": {path: list(span) for path, span in told.items()},
            "bins": config.bins,
            "width": config.width,
            "goal": goal,
            "gripper": gripper,
            "predict": config.execute,
            "reach": config.speed / env.control_hz,
            "turn": config.turn / env.control_hz,
        }
        return load_keyframes(
            demos,
            env,
            source=source,
            tool=tool,
            told=told,
            gripper=len(_ARM) if gripper else None,
            most=config.demonstrations,
            still=config.still,
            corner=config.corner,
            reach=config.near,
            turned=config.turned,
        )

    def fitted(self, env: BatchEnv) -> None:
        moments = Moments(self.data.numbers.shape[1], self.device)
        moments.add(self.data.numbers)
        moments.write(self.module.scaling)

    # ---- a batch -----------------------------------------------------------------------------------------------------

    def drawn(self) -> dict[str, Tensor]:
        config, data = self.config, self.data
        frames = torch.randint(len(data), (config.batch_size,), generator=self.streams["frames"], device=self.device)
        cloud, poses = self._augmented(frames)
        grid = voxelize(cloud, self.spec)
        assert grid.rgb is not None
        cell, _ = cell_of(poses[:, 1, :3], self.spec)
        angles = angle_bins(poses[:, 1, 3:], config.bins)
        scores, features = self.module.encode(grid.occupancy, grid.rgb, poses[:, 0], data.numbers[frames])
        turns, opened = self.module.describe(features, cell)
        where = functional.cross_entropy(scores, cell)
        turned = functional.cross_entropy(turns.flatten(0, 1), angles.flatten())
        gripper = functional.binary_cross_entropy_with_logits(opened, data.opened[frames].float())
        return {
            "loss": where + config.angle_weight * turned + config.gripper_weight * gripper,
            "cell": where,
            "angle": turned,
            "gripper": gripper,
        }

    def _augmented(self, frames: Tensor) -> tuple[PointCloud, Tensor]:
        """Points of frames (B,), and (B, 2, 7) poses of the tool and of the next keyframe. A frame whose keyframe would
        leave the grid stays where it is."""
        config, data = self.config, self.data
        cloud, poses = data.cloud(frames, self.spec), torch.stack([data.tool[frames], data.goal[frames]], 1)
        if not (config.shift or config.yaw):
            return cloud, poses
        drawn = 2 * torch.rand((len(frames), 4), generator=self.streams["augment"], device=self.device) - 1
        shift, yaw = drawn[:, :3] * config.shift, drawn[:, 3] * math.radians(config.yaw)
        low, high = (torch.tensor(v, device=self.device) for v in (self.spec.low, self.spec.high))
        middle = (low + high) / 2
        _, there = moved(cloud, poses, shift, yaw, middle)
        inside = cell_of(there[:, 1, :3], self.spec)[1].float()
        return moved(cloud, poses, shift * inside.unsqueeze(1), yaw * inside, middle)


def _goal(env: BatchEnv) -> tuple[dict[str, Any], bool]:
    """How the controller's absolute poses are written, and whether a gripper follows.

    Raises:
        ConfigError: the controller takes something else, or there are several robots.
    """
    dims = env.controller.card.dims
    arm, rest = dims[: len(_ARM)], dims[len(_ARM) :]
    fits = tuple(d.name for d in arm) == _ARM and all(d.reference == "absolute" for d in arm)
    if len(env.robots) != 1 or not fits or len(rest) > 1 or any(d.frame != "gripper" for d in rest):
        raise ConfigError(
            f"voxel drives one arm to poses: control='ee_pose' or 'osc_pose:goal=absolute', not {env.controller.name!r}"
        )
    robot = env.robot
    return {
        "frame": arm[0].frame,
        "pos": arm[0].scale,
        "rot": arm[3].scale,
        "straight": robot.stands_straight,
        "base": robot.base_pose.tolist(),
        "rest": robot.solver.chain.rest_pose[1].tolist(),
    }, bool(rest)
