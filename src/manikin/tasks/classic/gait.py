"""What the walkers of the control suite share: the start, what is observed, and for how long they did well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Event, Handles, Labels, Mode, Part, Physics, Quantity, Robot, SceneBuilder, Task, Variable
from manikin.arenas.ground import following, ground
from manikin.math import quat_rotate_inv
from manikin.toolkit import per_step, tolerance

__all__ = ["GaitHandles", "GaitTask", "small_control"]

GAIT = Labels(
    events=(Event("upright", "upright"), Event("fell", "upright", "fall"), Event("success", "success")),
    success=(
        Mode("success", "not fell"),
        Mode("recovered", "otherwise", "it fell, and did well for long before or after"),
    ),
    failure=(Mode("fell", "fell"), Mode("slow", "upright", "it stayed up and was never right for long"),
             Mode("no_success", "otherwise")),
    source="chosen for these tasks",
)  # fmt: skip


@dataclass
class GaitHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    well_for: Variable  # [control steps]
    pace: Variable  # [m/s]
    view: Part  # goes along with the robot and carries the cameras


class GaitTask(Task):
    """A robot on legs on a floor without end."""

    horizon_s = 25.0
    control = "joint_torque:step=0,compensate=false"
    control_hz = 40.0
    physics = Physics(hz=200.0)
    terminate = False
    robot_needs: ClassVar[tuple[str, ...]] = ("feet", "legs", "measures_centre")
    labels = GAIT
    observations = {
        "up": Quantity("1", "", "the world's z axis in the frame of the torso"),
        "ahead": Quantity("1", "", "the world's x axis in the frame of the torso"),
        "height": Quantity("m", "world"),
        "velocity": Quantity("m/s", "torso"),
        "turn_rate": Quantity("rad/s", "torso"),
        "centre_velocity": Quantity("m/s", "torso", "of the centre of mass"),
        "foot_forces": Quantity("log(1 + N)", "", "of each foot on the ground"),
    }

    wanted = 0.0  # [m/s]
    eye: ClassVar[tuple[float, float, float]] = (0.0, -3.0, 1.0)  # [m] of both cameras, beside where the robot is
    focus: ClassVar[tuple[float, float, float]] = (0.0, 0.0, 0.9)
    fovy: ClassVar[float] = math.pi / 3

    @dataclass(frozen=True)
    class Config:
        start_noise: float = 0.01  # [rad, rad/s, m/s] to either side
        fast_share: float = 0.9  # [1] of the wanted speed is fast enough
        pace_s: float = 1.0  # [s] time constant of the mean speed
        hold_steps: int = 80  # [control steps] success: it went well for so long

    def scene(self, b: SceneBuilder) -> GaitHandles:
        ground(b, height=0.0, base_camera=(self.eye, self.focus), human_camera=(self.eye, self.focus))
        robot = b.robot()
        view = following(b, (self.eye, self.focus), fovy=self.fovy)
        return GaitHandles(robot=robot, well_for=b.variable("well_for"), pace=b.variable("pace"), view=view)

    def start(self, h: GaitHandles, ep: Episode) -> None:
        noise = self.config.start_noise
        rest = h.robot.keyframe()
        joints = rest + ep.rng.uniform("joints", -noise, noise, (rest.shape[-1],))
        h.robot.set_qpos(joints, qvel=ep.rng.uniform("rates", -noise, noise, (rest.shape[-1],)))
        h.robot.set_root(h.robot.base_pose, ep.rng.uniform("root", -noise, noise, (6,)))
        h.view.set_pose(torch.zeros(h.n, 3))

    def height(self, h: GaitHandles) -> Tensor:
        """(n,) [m] of the torso."""
        return h.robot.root_pose[:, 2]

    @per_step
    def up(self, h: GaitHandles) -> Tensor:
        """(n, 3) the world's z axis in the torso's frame; its last number is the torso's own z axis upward."""
        return self._in_torso(h, torch.tensor([[0.0, 0.0, 1.0]]))

    @per_step
    def ahead(self, h: GaitHandles) -> Tensor:
        """(n, 3) the world's x axis in the torso's frame."""
        return self._in_torso(h, torch.tensor([[1.0, 0.0, 0.0]]))

    def _in_torso(self, h: GaitHandles, vector: Tensor) -> Tensor:
        return quat_rotate_inv(h.robot.root_pose[:, 3:], vector.expand(h.n, 3))

    def well(self, h: GaitHandles) -> Tensor:
        """(n,) bool: the robot does what is wanted."""
        raise NotImplementedError

    def upright(self, h: GaitHandles) -> Tensor:
        """(n,) bool."""
        raise NotImplementedError

    def advance(self, h: GaitHandles) -> None:
        h.view.set_pose(h.robot.root_pose[:, :3] * torch.tensor([1.0, 1.0, 0.0]))  # it reads: first, before all else
        share = 1.0 / self.control_hz / self.config.pace_s
        h.pace.set(h.pace.value + share * (self.speed(h) - h.pace.value))
        h.well_for.set((h.well_for.value + 1.0) * self.well(h))

    def speed(self, h: GaitHandles) -> Tensor:
        """(n,) [m/s] of the centre of mass, as the task counts it."""
        return h.robot.centre_velocity[:, 0]

    def moves(self, h: GaitHandles, wanted: float | None = None, speed: Tensor | None = None) -> Tensor:
        """(n,) dm_control's tolerance of the speed: from 0 at rest to 1 at the wanted speed [m/s], linear. By default
        they are those of the task."""
        wanted = self.wanted if wanted is None else wanted
        speed = self.speed(h) if speed is None else speed
        return tolerance(speed, low=wanted, high=math.inf, margin=wanted, shape="linear", at_margin=0.0)

    def evaluate(self, h: GaitHandles) -> dict[str, Tensor]:
        return {"success": h.well_for.value >= self.config.hold_steps, "upright": self.upright(h), "pace": h.pace.value}

    def observe(self, h: GaitHandles) -> dict[str, dict[str, Tensor]]:
        velocity = h.robot.root_velocity
        return {
            "policy": {
                "up": self.up(h),
                "ahead": self.ahead(h),
                "height": self.height(h)[:, None],
                "velocity": self._in_torso(h, velocity[:, :3]),
                "turn_rate": velocity[:, 3:],
                "centre_velocity": self._in_torso(h, h.robot.centre_velocity),
                "foot_forces": torch.log1p(h.robot.foot_forces),
            }
        }


def small_control(action: Tensor) -> Tensor:
    """(n,) from 4/5 to 1: dm_control's share for small actions (n, k)."""
    return (4.0 + tolerance(action, margin=1.0, shape="quadratic", at_margin=0.0).mean(1)) / 5.0
