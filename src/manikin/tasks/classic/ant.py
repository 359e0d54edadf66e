"""AntWalk-v1 and AntRun-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.tasks.classic.bound import bound
from manikin.tasks.classic.gait import GaitHandles, GaitTask, small_control
from manikin.toolkit import tolerance

__all__ = ["AntRun", "AntWalk"]

HEIGHT = 0.55  # [m] of the torso: no less counts as standing


class AntWalk(GaitTask):
    """Walk along x with four legs.

    Randomization: joints and all velocities, uniform about the rest pose.
    Success: for the last ``hold_steps`` (2 s) the torso was not lower than ``low_share`` of 0.55 m, and the centre of
    mass moved along x with at least ``fast_share`` of the speed, in the mean over ``pace_s``.

    Numbers: ManiSkill3 3.0.1, which has no success; that is chosen here. There the joints have position servos of
    1000 N m/rad on an ant of 0.9 kg; here the actions are the 15 N m of the model's motors, and
    ``control="joint_delta_pos"`` has the servos. The ant starts where it stands, and not 2 cm above.
    """

    id = "AntWalk-v1"
    instruction = "walk along x"
    robots = ("ant",)
    robot_needs = (*GaitTask.robot_needs, "free base")
    reward_terms = {
        "walk": "moves x stands x small: dm_control's tolerances of the speed along x (from 0 to the speed, linear), "
        "of the torso's height (0.55 m, margin a quarter of it), and of the actions, scaled to at least 4/5"
    }
    wanted = 0.5  # [m/s]
    eye, focus = (0.5, -2.0, 1.0), (0.0, 0.0, 0.4)

    @dataclass(frozen=True)
    class Config(GaitTask.Config):
        low_share: float = 0.7  # [1] the torso may be so low while the ant walks

    def upright(self, h: GaitHandles) -> Tensor:
        return (self.height(h) >= self.config.low_share * HEIGHT) & (self.up(h)[:, 2] > 0)

    def well(self, h: GaitHandles) -> Tensor:
        return self.upright(h) & (h.pace.value >= self.config.fast_share * self.wanted)

    def reward(self, h: GaitHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        stands = tolerance(self.height(h), low=HEIGHT, high=math.inf, margin=HEIGHT / 4)
        return {"walk": self.moves(h) * stands * small_control(action)}

    def expert(self, h: GaitHandles) -> Tensor:
        """Bounds along x as fast as it can; see ``manikin.tasks.classic.bound``."""
        robot = h.robot
        ahead, turns, drift = self.ahead(h), robot.root_velocity[:, 5], robot.centre_velocity[:, 1]
        torques = bound(robot.time, robot.arm_qpos, robot.arm_qvel, self.up(h), ahead, turns, drift)
        return (torques / torch.tensor(robot.arm.effort)).clamp(-1.0, 1.0)


class AntRun(AntWalk):
    """Run along x with four legs, at 4 m/s.

    Randomization: as in AntWalk-v1.
    Success: as in AntWalk-v1, at the other speed.

    Numbers: ManiSkill3 3.0.1.
    """

    id = "AntRun-v1"
    instruction = "run along x"
    wanted = 4.0
