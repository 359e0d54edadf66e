"""TrackMotion-v1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manikin import Episode, Quantity, SceneBuilder, Variable
from manikin.math import norm, quat_angle, quat_rotate_inv
from manikin.plan.balance import balance
from manikin.tasks.locomotion.legged import LeggedHandles, LeggedTask
from manikin.tasks.locomotion.motions import built_in, hands, rates, read_motion, resampled
from manikin.toolkit import per_step

__all__ = ["TrackMotion", "TrackMotionHandles"]

STEP = 1.0  # [rad] that an action of 1 asks for, beside the pose at rest
EFFORT = 1.0  # [rad] of a command that costs as much as leaning by 3 cm


@dataclass
class TrackMotionHandles(LeggedHandles):
    """What the scene consists of, and ``h`` in the methods below."""

    first: Variable  # [1] frame of the motion in which the episode begins
    error: Variable  # [rad] summed over the steps so far


class TrackMotion(LeggedTask):
    """Follow a motion with the whole body.

    ``config={"motion": "squat"}`` has H1 go down by 14 cm and up again in 3 s, ``"step"`` step in place once a second,
    ``"wave"`` wave with the right arm in 4 s. They are formulas, and kinematics alone: feet that stand stay flat and
    where they are, and nobody has asked whether the robot keeps its balance. ``config={"file": "my.npz"}`` is another
    motion, of H1 or of another robot on legs: arrays ``qpos`` (frames, 7 + joints), the base's position [m] and
    quaternion (w, x, y, z), then the joints in the robot's order [rad], and ``hz``, frames per second.

    Randomization: the frame in which the episode begins, uniform (``random_start``); joints and velocities about that
    frame.
    Success: at the end of the 10 s the robot never fell or failed, and its joints were off by at most ``joint_tol`` in
    the mean over all joints and steps.
    It fails where the base is farther than ``far`` from the motion's, or turned from it by more than ``far_turn``. What
    a fall is, is as for TrackVelocity.

    Reward: the form is DeepMimic's (Peng et al. 2018), with its weights and scales for joints, their velocities and
    hands. In place of its centre of mass stands the base, and among the ends of limbs only hands count. As in
    TrackVelocity it is paid per second: terms are multiplied by the 0.02 s of a control step. An action asks for a pose
    of all joints about rest.
    """

    id = "TrackMotion-v1"
    instruction = "move as shown"
    robots = ("h1",)
    robots_named = ("h1",)  # whose motions are built in
    control = f"joint_pos:about=rest,step={STEP}"
    robot_control = {}
    horizon_s = 10.0
    observations = {
        **LeggedTask.observations,
        "asked": Quantity("rad", "joint", "positions commanded last, less those at rest"),
        "next_joints": Quantity("rad", "joint", "where the motion has the joints in a step, less positions at rest"),
        "phase": Quantity("1", "", "cosine and sine of how far the motion is, as a turn"),
        "base_off": Quantity("m", "base", "from the base to where the motion has it"),
        "joints_off": Quantity("rad", "joint", "from the joints to where the motion has them"),
    }
    reward_terms = {
        "joints": "dt 0.65 exp(-2 sum of (q - r)^2), q and r the joints and the motion's [rad]",
        "speeds": "dt 0.1 exp(-0.1 sum of (q' - r')^2), q' and r' their velocities [rad/s]",
        "hands": "dt 0.15 exp(-40 sum of |p - r|^2), p and r the tools and the motion's, in the base's frame [m]",
        "base": "dt 0.1 exp(-10 (|p - r|^2 + a^2)), p and r the base and the motion's [m], a the angle between [rad]",
    }
    reward_max = 0.02

    @dataclass(frozen=True)
    class Config(LeggedTask.Config):
        motion: str = "squat"  # squat, step or wave
        file: str = ""  # a motion in a file .npz instead
        loop: bool = True  # whether the file's first frame follows its last
        random_start: bool = True  # else the episode begins in the first frame
        start_noise: float = 0.02  # [rad, rad/s, m/s] to either side
        far: float = 0.4  # [m] the base may be so far from the motion's
        far_turn: float = 1.0  # [rad] and turned so far from it
        joint_tol: float = 0.15  # [rad] success: mean error

    def scene(self, b: SceneBuilder) -> TrackMotionHandles:
        made, c = super().scene(b), self.config
        arm = made.robot.arm
        motion = read_motion(c.file, arm, loops=c.loop) if c.file else built_in(c.motion, arm, self.control_hz)
        motion = resampled(motion, self.control_hz)
        self._frames, self._loops = len(motion.qpos), motion.loops
        self._laps = bool(np.any(motion.lap))  # whether a round leads somewhere else
        self._motion, self._rates, self._hands = (
            torch.tensor(value, dtype=torch.float32) for value in (motion.qpos, rates(motion), hands(motion, arm))
        )
        turn = np.arange(self._frames) * (2.0 * np.pi / self._frames)
        self._phase = torch.tensor(np.stack([np.cos(turn), np.sin(turn)], 1), dtype=torch.float32)
        self._lap = torch.tensor([*motion.lap, 0.0], dtype=torch.float32)
        self._balance = balance(b, made.robot, control_hz=self.control_hz, effort=EFFORT)
        return TrackMotionHandles(**vars(made), first=b.variable("first"), error=b.variable("error"))

    # ---- the motion --------------------------------------------------------------------------------------------------

    @per_step
    def number(self, h: TrackMotionHandles) -> Tensor:
        """(n,) how many frames the motion has gone on from its first one."""
        return (h.first.value + self.step_number(h)).long()

    @per_step
    def frame(self, h: TrackMotionHandles) -> Tensor:
        """(n,) in which of its frames the motion is."""
        return self._frame(self.number(h))

    def _frame(self, number: Tensor) -> Tensor:
        return number % self._frames if self._loops else number.clamp_max(self._frames - 1)

    @per_step
    def reference(self, h: TrackMotionHandles) -> Tensor:
        """(n, 7 + joints) where the motion has the base, in the world, and the joints [m, rad]."""
        whole = self._motion[self.frame(h)]
        if not self._laps:
            return whole
        rounds = (self.number(h) // self._frames)[:, None]
        return torch.cat([whole[:, :3] + rounds * self._lap, whole[:, 3:]], 1)

    def start(self, h: LeggedHandles, ep: Episode) -> None:
        assert isinstance(h, TrackMotionHandles)
        noise, frames = self.config.start_noise, self._frames
        first = torch.zeros(h.n)
        if self.config.random_start:
            first = (ep.rng.uniform("frame", 0.0, 1.0) * frames).floor().clamp_max(frames - 1.0)
        h.first.set(first)
        number = first.long()
        place, speed = self._motion[number], self._rates[number]
        h.robot.set_qpos(place[:, 7:] + self.posture(ep), qvel=speed[:, 6:])
        h.robot.set_root(place[:, :7], speed[:, :6] + ep.rng.uniform("root", -noise, noise, (6,)))
        self._look(h, place)

    # ---- a step ------------------------------------------------------------------------------------------------------

    @per_step
    def asked(self, h: LeggedHandles) -> Tensor:
        """(n, joints) [rad] commanded last, less the positions at rest."""
        return self.commanded(h) - self._rest

    @per_step
    def joints_off(self, h: TrackMotionHandles) -> Tensor:
        """(n, joints) [rad] from the joints to where the motion has them."""
        return self.reference(h)[:, 7:] - h.robot.arm_qpos

    @per_step
    def base_off(self, h: TrackMotionHandles) -> Tensor:
        """(n, 3) [m] from the base to where the motion has it, in the base's frame."""
        pose = h.robot.root_pose
        return quat_rotate_inv(pose[:, 3:], self.reference(h)[:, :3] - pose[:, :3])

    @per_step
    def turned(self, h: TrackMotionHandles) -> Tensor:
        """(n,) [rad] by which the base is turned from where the motion has it."""
        return quat_angle(h.robot.root_pose[:, 3:], self.reference(h)[:, 3:7])

    @per_step
    def lost(self, h: TrackMotionHandles) -> Tensor:
        """(n,) bool: it has fallen, or is too far from the motion."""
        c = self.config
        return self.fallen(h) | (norm(self.base_off(h)) > c.far) | (self.turned(h) > c.far_turn)

    def advance(self, h: LeggedHandles) -> None:
        assert isinstance(h, TrackMotionHandles)
        super().advance(h)
        h.fell.set(torch.maximum(h.fell.value, self.lost(h).float()))
        h.error.set(h.error.value + self.joints_off(h).abs().mean(1))

    def evaluate(self, h: TrackMotionHandles) -> dict[str, Tensor]:
        number = self.step_number(h)
        fail = self.lost(h) | (h.fell.value > 0)
        error = h.error.value / number.clamp_min(1.0)
        over = number >= round(self.horizon_s * self.control_hz)
        return {"success": over & ~fail & (error <= self.config.joint_tol), "fail": fail, "joint_error": error}

    def observe(self, h: LeggedHandles) -> dict[str, dict[str, Tensor]]:
        assert isinstance(h, TrackMotionHandles)
        seen, ahead = super().observe(h), self._frame(self.number(h) + 1)
        mine = {
            "next_joints": self._motion[ahead, 7:] - self._rest,
            "phase": self._phase[self.frame(h)],
            "base_off": self.base_off(h),
        }
        return {
            "policy": {**seen["policy"], **mine},
            "privileged": {**seen["privileged"], "joints_off": self.joints_off(h)},
        }

    def reward(self, h: TrackMotionHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        dt, frame, root = 1.0 / self.control_hz, self.frame(h), h.robot.root_pose
        speeds = h.robot.arm_qvel - self._rates[frame, 6:]
        away = torch.zeros(h.n)
        for k, tool in enumerate(h.robot.tools.values()):
            place = quat_rotate_inv(root[:, 3:], tool.tcp_pos - root[:, :3])
            away = away + (place - self._hands[frame, k]).square().sum(1)
        base = self.base_off(h).square().sum(1) + self.turned(h).square()
        return {
            "joints": (0.65 * dt) * torch.exp(-2.0 * self.joints_off(h).square().sum(1)),
            "speeds": (0.1 * dt) * torch.exp(-0.1 * speeds.square().sum(1)),
            "hands": (0.15 * dt) * torch.exp(-40.0 * away),
            "base": (0.1 * dt) * torch.exp(-10.0 * base),
        }

    def expert(self, h: TrackMotionHandles) -> Tensor:
        """Asks for the motion's next frame, and keeps its balance; see ``manikin.plan.balance``."""
        ahead = self._frame(self.number(h) + 1)
        return (self._balance.commands(self._motion[ahead, 7:], self._rates[ahead, 6:]) - self._rest) / STEP
