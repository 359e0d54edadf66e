"""QuadrupedReach-v1 and QuadrupedSpin-v1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Part, Quantity, SceneBuilder, Variable
from manikin.errors import ConfigError
from manikin.math import atan2, norm, quat_rotate, quat_rotate_inv
from manikin.tasks.locomotion.legged import STEP, LeggedHandles, LeggedTask
from manikin.tasks.locomotion.trot import Gait, Trot
from manikin.toolkit import closeness, per_step

__all__ = ["QuadrupedReach", "QuadrupedSpin", "ReachHandles", "SpinHandles"]

GAITS = {
    "anymal_c": Gait(height=0.54, inward=0.09, aside=0.09, lift=0.07, period_s=0.6, duty=0.72),
    "go2": Gait(height=0.27, inward=0.0, aside=0.08, lift=0.05, period_s=0.5),
}
SPEED, TURN = 0.5, 1.6  # [m/s, rad/s] that experts ask for
_CALM = "2 vz^2, 0.05 (wx^2 + wy^2), 1 where something other than a foot touches the ground, 0.05 |q - q0|"


@dataclass
class ReachHandles(LeggedHandles):
    """What the scene consists of, and ``h`` in the methods of QuadrupedReach."""

    goal: Variable  # [m] x and y
    mark: Part  # where people see it


@dataclass
class SpinHandles(LeggedHandles):
    """What the scene consists of, and ``h`` in the methods of QuadrupedSpin."""

    pace: Variable  # [rad/s] mean turn rate
    well_for: Variable  # [control steps] that the pace has been enough


class _Quadruped(LeggedTask):
    """What both tasks have: ten seconds, a start that looks along x, and the penalties."""

    robots = ("anymal_c", "go2")
    horizon_s = 10.0

    @dataclass(frozen=True)
    class Config(LeggedTask.Config):
        published_reward: bool = False  # whether the dense reward has ManiSkill3's speeds

    def scene(self, b: SceneBuilder) -> LeggedHandles:
        made = super().scene(b)
        arm = made.robot.arm
        self._trot = Trot(arm, GAITS[arm.name]) if arm.name in GAITS else None
        return made

    def trotting(self, h: LeggedHandles, twist: Tensor) -> Tensor:
        """(n, 12) actions that move the base with twist (n, 3): [m/s, m/s, rad/s] along its x and y and about z."""
        if self._trot is None:
            raise ConfigError(f"the expert of {self.id} has gaits of {', '.join(GAITS)}, not of {h.robot.arm.name}")
        moves = torch.cat([self.velocity(h)[:, :2], self.turn_rate(h)[:, 2:]], 1)
        asked = self._trot.asked(h.robot.arm_qpos, h.robot.time, twist, moves, self.gravity(h))
        return (asked - self._rest) / STEP

    def place(self, h: LeggedHandles, ep: Episode) -> Tensor:
        return h.robot.base_pose.expand(h.n, 7)

    def world_turn_rate(self, h: LeggedHandles) -> Tensor:
        """(n, 3) [rad/s] of the base, along the world's axes."""
        return quat_rotate(h.robot.root_pose[:, 3:], self.turn_rate(h))

    def restless(self, h: LeggedHandles) -> Tensor:
        """(n,) sum of the penalties, 0 or more."""
        v, w = self.velocity(h), self.turn_rate(h)
        if self.config.published_reward:
            v, w = h.robot.root_velocity[:, :3], self.world_turn_rate(h)
        away = norm(h.robot.arm_qpos - self._rest)
        return 2.0 * v[:, 2].square() + 0.05 * w[:, :2].square().sum(1) + self.bumps(h).float() + 0.05 * away


class QuadrupedReach(_Quadruped):
    """Walk to a goal on the ground.

    Randomization: the goal, 2 to 3 m ahead and up to 1 m to either side; joints and velocities about rest.
    Success: the base is within ``goal_radius`` of the goal over the ground, and the robot has not fallen.

    Numbers: ManiSkill3 3.0.1 (AnymalC-Reach, UnitreeGo2-Reach), also its reward. There an action moves the joints'
    targets 20 times per second, as ``control="joint_delta_pos", control_hz=20`` does here, and only a trunk that
    touches the ground is a fall. Here an action is a pose about rest at 50 Hz, and a robot that leans by more than 60
    degrees or is lower than half its height has fallen, too. |q - q0| is the Euclidean norm. Speeds of the penalties
    are along the base's axes; ManiSkill3's are along the world's, as with ``published_reward``. There only some links
    must not touch the ground (ANYmal C's knees, Go2's thighs); here and with that option none but the feet may.
    """

    id = "QuadrupedReach-v1"
    instruction = "walk to the mark"
    observations = {**LeggedTask.observations, "goal": Quantity("m", "base", "along x and y, from the base")}
    reward_terms = {
        "here": "1",
        "near": "2 (1 - tanh d), d from the base to the goal over the ground [m]",
        "restless": f"less {_CALM}",
    }
    reward_max = 3.0

    @dataclass(frozen=True)
    class Config(_Quadruped.Config):
        goal_radius: float = 0.35  # [m]
        goal_x: tuple[float, float] = (2.0, 3.0)  # [m] range
        goal_y: tuple[float, float] = (-1.0, 1.0)  # [m] range

    def scene(self, b: SceneBuilder) -> ReachHandles:
        made = super().scene(b)
        mark = b.marker("mark", shape="cylinder", size=(self.config.goal_radius, 0.005))
        return ReachHandles(**vars(made), goal=b.variable("goal", (2,)), mark=mark)

    def start(self, h: LeggedHandles, ep: Episode) -> None:
        assert isinstance(h, ReachHandles)
        super().start(h, ep)
        (low, high), (right, left) = self.config.goal_x, self.config.goal_y
        share = ep.rng.uniform("goal", 0.0, 1.0, (2,))
        goal = torch.tensor([low, right]) + share * torch.tensor([high - low, left - right])
        h.goal.set(goal)
        h.mark.set_pose(torch.cat([goal, torch.zeros(h.n, 1)], 1))

    @per_step
    def to_goal(self, h: ReachHandles) -> Tensor:
        """(n, 2) [m] from the base to the goal over the ground."""
        return h.goal.value - h.robot.root_pose[:, :2]

    def evaluate(self, h: ReachHandles) -> dict[str, Tensor]:
        fail = self.fail(h)
        return {"success": (norm(self.to_goal(h)) < self.config.goal_radius) & ~fail, "fail": fail}

    def observe(self, h: LeggedHandles) -> dict[str, dict[str, Tensor]]:
        assert isinstance(h, ReachHandles)
        seen = super().observe(h)
        flat = torch.cat([self.to_goal(h), torch.zeros(h.n, 1)], 1)
        goal = quat_rotate_inv(h.robot.root_pose[:, 3:], flat)[:, :2]
        return {**seen, "policy": {**seen["policy"], "goal": goal}}

    def reward(self, h: ReachHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        stands = (~ev["fail"]).float()
        return {
            "here": stands,
            "near": 2.0 * closeness(norm(self.to_goal(h)), 1.0) * stands,
            "restless": -self.restless(h) * stands,
        }

    def expert(self, h: ReachHandles) -> Tensor:
        """Trots towards the goal and turns to it on the way."""
        flat = torch.cat([self.to_goal(h), torch.zeros(h.n, 1)], 1)
        goal = quat_rotate_inv(h.robot.root_pose[:, 3:], flat)
        far, side = norm(goal[:, :2]), atan2(goal[:, 1], goal[:, 0])
        ahead = SPEED * (far / 0.3).clamp_max(1.0) * torch.cos(side).clamp_min(0.0)
        turn = (2.0 * side).clamp(-0.6, 0.6)
        return self.trotting(h, torch.stack([ahead, torch.zeros_like(ahead), turn], 1))


class QuadrupedSpin(_Quadruped):
    """Turn on the spot, to the left, at 1 rad/s or more.

    Randomization: joints and velocities about rest.
    Success: for the last ``hold_steps`` (2 s) the turn rate was at least ``fast_share`` of 1 rad/s in the mean over
    ``pace_s``, and the robot has not fallen.

    Numbers: ManiSkill3 3.0.1 (AnymalC-Spin), which has no success. Its reward has no limit though it calls 2 the
    largest, and its turn rate is about the world's z axis. Here the axis is the base's, and faster than 1 rad/s is
    worth no more than that. ``published_reward`` pays as ManiSkill3 does. Its other differences are those of
    QuadrupedReach-v1.
    """

    id = "QuadrupedSpin-v1"
    instruction = "turn left on the spot"
    reward_terms = {
        "turn": "2 min(wz, 1), wz the base's rate about its z axis [rad/s]; as published, 2 wz about the world's",
        "restless": f"less {_CALM}",
        "fall": "-100 after a fall, and nothing else",
    }
    reward_max = 2.0

    @dataclass(frozen=True)
    class Config(_Quadruped.Config):
        fast_share: float = 0.9  # [1] of 1 rad/s is fast enough
        pace_s: float = 1.0  # [s] time constant of the mean turn rate
        hold_steps: int = 100  # [control steps] success: it was fast enough for so long

    def scene(self, b: SceneBuilder) -> SpinHandles:
        return SpinHandles(**vars(super().scene(b)), pace=b.variable("pace"), well_for=b.variable("well_for"))

    def advance(self, h: LeggedHandles) -> None:
        assert isinstance(h, SpinHandles)
        super().advance(h)
        share = 1.0 / self.control_hz / self.config.pace_s
        pace = h.pace.value + share * (self.turn_rate(h)[:, 2] - h.pace.value)
        h.well_for.set((h.well_for.value + 1.0) * (pace >= self.config.fast_share))
        h.pace.set(pace)

    def evaluate(self, h: SpinHandles) -> dict[str, Tensor]:
        fail = self.fail(h)
        return {"success": (h.well_for.value >= self.config.hold_steps) & ~fail, "fail": fail, "pace": h.pace.value}

    def reward(self, h: SpinHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        fell = ev["fail"].float()
        stands = 1.0 - fell
        paid = self.turn_rate(h)[:, 2].clamp_max(1.0)
        if self.config.published_reward:
            paid = self.world_turn_rate(h)[:, 2]
        return {
            "turn": 2.0 * paid * stands,
            "restless": -self.restless(h) * stands,
            "fall": -100.0 * fell,
        }

    def expert(self, h: SpinHandles) -> Tensor:
        """Trots round on the spot, faster and faster in the first two seconds."""
        turn = TURN * (h.robot.time / 2.0).clamp_max(1.0)
        none = torch.zeros_like(turn)
        return self.trotting(h, torch.stack([none, none, turn], 1))
