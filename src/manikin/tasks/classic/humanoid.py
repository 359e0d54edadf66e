"""HumanoidStand-v1, HumanoidWalk-v1 and HumanoidRun-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin import SceneBuilder
from manikin.math import norm
from manikin.plan.balance import balance
from manikin.tasks.classic.gait import GaitHandles, GaitTask, small_control
from manikin.tasks.classic.stride import stride
from manikin.toolkit import tolerance

__all__ = ["HumanoidRun", "HumanoidStand", "HumanoidWalk"]

HEAD = 1.4  # [m] above the floor
ABOVE = 0.19  # [m] of the head above the torso's origin
BENT = {"hip_y": -0.2, "knee": -0.3, "ankle_y": -0.1}  # [rad] how it stands
EFFORT = 0.3  # [1] share of a joint's torque that costs as much as leaning by 3 cm


class _Humanoid(GaitTask):
    """What all three tasks have: how the robot stands, and the part of the reward that is for that."""

    robots = ("humanoid",)
    robot_needs = (*GaitTask.robot_needs, "free base", "2 feet")

    @dataclass(frozen=True)
    class Config(GaitTask.Config):
        low_share: float = 0.9  # [1] the head may be so low
        lean_cos: float = 0.8  # [1] cosine of the torso's lean that still is upright
        still: float = 0.2  # [m/s] no faster is standing

    def head(self, h: GaitHandles) -> Tensor:
        """(n,) [m] height of the head's middle."""
        return self.height(h) + ABOVE * self.up(h)[:, 2]

    def speed(self, h: GaitHandles) -> Tensor:
        """(n,) [m/s] of the centre of mass over the floor, whatever the direction."""
        return norm(h.robot.centre_velocity[:, :2])

    def upright(self, h: GaitHandles) -> Tensor:
        c = self.config
        return (self.head(h) >= c.low_share * HEAD) & (self.up(h)[:, 2] >= c.lean_cos)

    def well(self, h: GaitHandles) -> Tensor:
        c, pace = self.config, h.pace.value
        return self.upright(h) & (pace >= c.fast_share * self.wanted if self.wanted else pace <= c.still)

    def evaluate(self, h: GaitHandles) -> dict[str, Tensor]:
        height = self.height(h)
        return {**super().evaluate(h), "fail": (height < 0.7) | (height > 2.0)}

    def standing(self, h: GaitHandles, action: Tensor) -> Tensor:
        """(n,) the part of the reward that all three tasks have."""
        stands = tolerance(self.head(h), low=HEAD, high=math.inf, margin=HEAD / 4)
        upright = tolerance(self.up(h)[:, 2], low=0.9, high=math.inf, margin=1.9, shape="linear", at_margin=0.0)
        return stands * upright * small_control(action)


class HumanoidStand(_Humanoid):
    """Stand on two legs without moving.

    Randomization: joints and all velocities, uniform about the upright pose.
    Success: for the last ``hold_steps`` (2 s) the head was at least at ``low_share`` of 1.4 m and the torso within
    ``lean_cos`` of upright, and the centre of mass was in the mean over ``pace_s`` no faster than ``still``.

    Numbers: dm_control's humanoid, also its reward, which ManiSkill3 has, too; it has no success, that is chosen here.
    It begins in any pose that touches nothing, and an episode ends by time alone; here the robot stands at the start,
    as in ManiSkill3, whose harder variants are commented out. ManiSkill3 ends an episode with the torso below 0.7 m or
    above 2 m: here that is ``fail``, which ends nothing unless ``terminate=True``.
    """

    id = "HumanoidStand-v1"
    instruction = "stand without moving"
    reward_terms = {
        "stand": "stands x upright x small x still: dm_control's tolerances of the head's height (1.4 m, margin a "
        "quarter of it), the torso's z axis (0.9, margin 1.9, linear), the actions (at least 4/5), and both horizontal "
        "speeds of the centre of mass (margin 2 m/s)"
    }

    def scene(self, b: SceneBuilder) -> GaitHandles:
        made = super().scene(b)
        arm = made.robot.arm
        self._limits = torch.tensor(arm.gains.force)  # [N m] of an action of 1
        posture = [BENT.get(joint.partition("_")[2], 0.0) for joint in arm.joints]
        effort = EFFORT * np.array(arm.gains.force)
        self._balance = balance(b, made.robot, control_hz=self.control_hz, posture=posture, effort=effort)
        return made

    def reward(self, h: GaitHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        still = tolerance(h.robot.centre_velocity[:, :2], margin=2.0).mean(1)
        return {"stand": self.standing(h, action) * still}

    def expert(self, h: GaitHandles) -> Tensor:
        """Feedback from the whole state, such that small pushes die out; see ``manikin.plan.balance``."""
        return self._balance.commands() / self._limits


_MOVES = (
    "stands x upright x small x (5 moves + 1) / 6: HumanoidStand's, and dm_control's tolerance of the centre of mass's "
    "horizontal speed (from 0 to the speed, linear)"
)


class _Moves(_Humanoid):
    """What the two tasks have in which the robot moves."""

    @dataclass(frozen=True)
    class Config(_Humanoid.Config):
        published_reward: bool = False  # whether the dense reward is ManiSkill3's

    def reward(self, h: GaitHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        if self.config.published_reward:
            return {"walk": self.published(h, action)}
        return {"walk": self.standing(h, action) * (5.0 * self.moves(h) + 1.0) / 6.0}

    def published(self, h: GaitHandles, action: Tensor) -> Tensor:
        """(n,) ManiSkill3's reward for actions (n, 21)."""
        raise NotImplementedError


class HumanoidWalk(_Moves):
    """Walk on two legs at 1 m/s, in any direction.

    Randomization: as in HumanoidStand-v1.
    Success: as in HumanoidStand-v1, but the centre of mass is at least at ``fast_share`` of the speed, in the mean over
    ``pace_s``.

    Numbers: dm_control. ManiSkill3's reward is another one: half of it is given for nothing, and only a speed along x
    counts. ``published_reward`` gives it.
    """

    id = "HumanoidWalk-v1"
    instruction = "walk"
    wanted = 1.0
    reward_terms = {
        "walk": f"{_MOVES}. As published, (1 + stands x upright x small x moves) / 2, the speed that along x"
    }

    def published(self, h: GaitHandles, action: Tensor) -> Tensor:
        moves = self.moves(h, speed=h.robot.centre_velocity[:, 0])
        return (1.0 + self.standing(h, action) * moves) / 2.0

    def expert(self, h: GaitHandles) -> Tensor:
        """Walks to where it faces, at about 1 m/s; see ``manikin.tasks.classic.stride``."""
        robot = h.robot
        velocity, turns = self._in_torso(h, robot.centre_velocity), robot.root_velocity[:, 3:]
        torques = stride(robot.time, robot.arm_qpos, robot.arm_qvel, self.up(h), velocity, turns)
        return (torques / torch.tensor(robot.arm.gains.force)).clamp(-1.0, 1.0)


class HumanoidRun(_Moves):
    """Run on two legs at 10 m/s, in any direction.

    Randomization: as in HumanoidStand-v1.
    Success: as in HumanoidWalk-v1, at the other speed.

    Numbers: dm_control. ManiSkill3's reward has no limit, rises with the speed along x, and asks for no posture, as a
    fall ends its episodes. ``published_reward`` gives it, ``terminate=True`` ends episodes so.
    """

    id = "HumanoidRun-v1"
    instruction = "run"
    wanted = 10.0
    reward_terms = {"walk": f"{_MOVES}. As published, (5 + 1.25 v - 0.1 |action|^2) / 10, v the speed along x [m/s]"}

    def published(self, h: GaitHandles, action: Tensor) -> Tensor:
        return 0.1 * (5.0 + 1.25 * h.robot.centre_velocity[:, 0] - 0.1 * action.square().sum(1))
