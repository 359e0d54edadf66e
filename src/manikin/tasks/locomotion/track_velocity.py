"""TrackVelocity-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Quantity, SceneBuilder, Variable
from manikin.errors import ConfigError
from manikin.math import norm
from manikin.tasks.locomotion.legged import TOUCH, LeggedHandles, LeggedTask
from manikin.toolkit import per_step

__all__ = ["TrackVelocity", "TrackVelocityHandles"]


@dataclass
class TrackVelocityHandles(LeggedHandles):
    """What the scene consists of, and ``h`` in the methods below."""

    commands: Variable  # [m/s, m/s, rad/s] of the episode, one after the other
    impulses: Variable  # [m/s] along x and y of the world, of the episode's pushes, times the robot's mass
    error: Variable  # [m/s] summed over the steps so far
    before: Variable  # [rad] ``asked``, one step ago
    change: Variable  # [rad] of ``asked`` in this step
    air: Variable  # [s] that each foot has been in the air
    landed: Variable  # [s] beyond ``air_s`` that feet which landed in this step had been in the air


class TrackVelocity(LeggedTask):
    """Walk with a commanded velocity along x and y of the base and a commanded turn rate.

    Randomization: the commands, uniform within ``most_speed`` and ``most_turn`` to either side, a new one every
    ``command_s``; heading; joints and velocities about rest. By option also pushes, the friction of the feet, the mass
    of the trunk; and late servos, all by the same ``latency_s``.
    Success: at the end of the 20 s the robot never fell, and the horizontal velocity of its base differed from the
    command by at most ``velocity_tol`` in the mean over all steps, those after a change of command included.

    It falls where its trunk touches the ground, leans by more than 60 degrees, or is lower than half its height at
    rest. The command that counts in a step is the one that the policy saw before it. Joint positions and velocities are
    observed as of every robot; an action of 0 asks for the pose at rest. Of the humanoids actions move the legs alone.

    Numbers: the form of the reward is that of legged_gym (Rudin et al. 2021), the weights are chosen. As there, all of
    it is paid per second: terms are multiplied by the 0.02 s of a control step.
    """

    id = "TrackVelocity-v1"
    instruction = "walk as commanded"
    robots = ("go2", "anymal_c", "h1", "g1")
    horizon_s = 20.0
    observations = {
        **LeggedTask.observations,
        "command": Quantity("m/s, m/s, rad/s", "base", "along x, along y and about z"),
    }
    reward_terms = {
        "speed": "dt exp(-4 |v - c|^2), v and c the base's and the commanded velocity along x and y [m/s]",
        "turn": "dt 0.5 exp(-4 (w - c)^2), w and c the base's and the commanded rate about z [rad/s]",
        "bounce": "-dt vz^2 [m/s], at most 5 dt",
        "sway": "-dt 0.02 (wx^2 + wy^2) [rad/s], at most 4 dt",
        "lean": "-dt (gx^2 + gy^2), g the unit vector of gravity in the base's frame",
        "effort": "-dt 0.2 mean of the squared share of its torque that each servo asks for",
        "change": "-dt 0.02 sum of (a - a')^2, a and a' the legs' positions asked for now and one step ago [rad]",
        "pose": "-dt 0.2 mean of the legs' (q - q0)^2, q0 at rest [rad]",
        "steps": "dt sum over feet that land of min(t, 0.5 s) - air_s, t the time in the air [s]; 0 where the "
        "command is below 0.1",
        "bumps": "-dt where something other than a foot touches the ground",
        "fall": "-1 in each step from a fall on",
    }
    reward_max = 0.054  # in a step in which four feet land after 0.5 s; 0.03 where all is as commanded
    reward_norm = 0.03

    @dataclass(frozen=True)
    class Config(LeggedTask.Config):
        most_speed: float = 1.0  # [m/s] commands along x and y are within it, to either side
        most_turn: float = 1.0  # [rad/s] so are those about z
        command_s: float = 5.0  # [s] between changes of the command
        velocity_tol: float = 0.25  # [m/s] success: mean error
        air_s: float = 0.2  # [s] a foot that was in the air for longer is rewarded where it lands
        push_speed: float = 0.0  # [m/s] pushes change the velocity along x and y by up to this, to either side
        push_every_s: float = 4.0  # [s] between pushes

    def scene(self, b: SceneBuilder) -> TrackVelocityHandles:
        made, c = super().scene(b), self.config
        for option in ("command_s", "push_every_s"):
            if getattr(c, option) <= 0:
                raise ConfigError(f"option {option!r} of {self.id} must be positive, but it is {getattr(c, option)}")
        legs, feet = len(made.robot.arm.groups["legs"].joints), len(made.robot.arm.feet)
        self._every = max(1, round(c.command_s * self.control_hz))  # [control steps]
        self._pushed = max(1, round(c.push_every_s * self.control_hz))
        whole = round(self.horizon_s * self.control_hz)
        return TrackVelocityHandles(
            **vars(made),
            commands=b.variable("commands", (math.ceil(whole / self._every), 3)),
            impulses=b.variable("impulses", (math.ceil(whole / self._pushed), 2)),
            error=b.variable("error"),
            before=b.variable("before", (legs,)),
            change=b.variable("change", (legs,)),
            air=b.variable("air", (feet,)),
            landed=b.variable("landed"),
        )

    def start(self, h: LeggedHandles, ep: Episode) -> None:
        assert isinstance(h, TrackVelocityHandles)
        super().start(h, ep)
        c = self.config
        most = torch.tensor([c.most_speed, c.most_speed, c.most_turn])
        h.commands.set(ep.rng.uniform("commands", -1.0, 1.0, h.commands.shape) * most)
        h.impulses.set(ep.rng.uniform("pushes", -c.push_speed, c.push_speed, h.impulses.shape))
        h.before.set(self.asked(h))

    # ---- commands ----------------------------------------------------------------------------------------------------

    @per_step
    def command(self, h: TrackVelocityHandles) -> Tensor:
        """(n, 3) [m/s, m/s, rad/s] that the next step is to follow."""
        return _at(h.commands.value, self.step_number(h) / self._every)

    @per_step
    def followed(self, h: TrackVelocityHandles) -> Tensor:
        """(n, 3) [m/s, m/s, rad/s] that the step which is over was to follow."""
        return _at(h.commands.value, (self.step_number(h) - 1.0).clamp_min(0.0) / self._every)

    @per_step
    def off(self, h: TrackVelocityHandles) -> Tensor:
        """(n, 2) [m/s] by which the velocity of the base differs from the command."""
        return self.velocity(h)[:, :2] - self.followed(h)[:, :2]

    # ---- a step ------------------------------------------------------------------------------------------------------

    def advance(self, h: LeggedHandles) -> None:
        assert isinstance(h, TrackVelocityHandles)
        if self.config.push_speed:
            self._push(h)
        super().advance(h)
        h.error.set(h.error.value + norm(self.off(h)))
        asked = self.asked(h)
        h.change.set(asked - h.before.value)
        h.before.set(asked)
        dt = 1.0 / self.control_hz
        stands, air = (h.robot.foot_forces > TOUCH).float(), h.air.value + dt
        lands = stands * (h.air.value > 0)
        h.landed.set((lands * (air.clamp_max(0.5) - self.config.air_s)).sum(1))
        h.air.set(air * (1.0 - stands))

    def _push(self, h: TrackVelocityHandles) -> None:
        """A push lasts for one control step. Its force follows from the physics' clock alone, so that in a row which
        is left out of a step it stays as it is."""
        number = self.step_number(h)
        now = (number % self._pushed == 0) & (number > 0)
        force = _at(h.impulses.value, number / self._pushed) * now[:, None] * (self._mass * self.control_hz)
        h.robot.push(torch.cat([force, torch.zeros(h.n, 1)], 1))

    def evaluate(self, h: TrackVelocityHandles) -> dict[str, Tensor]:
        number, fail = self.step_number(h), self.fail(h)
        error = h.error.value / number.clamp_min(1.0)
        over = number >= round(self.horizon_s * self.control_hz)
        return {
            "success": over & ~fail & (error <= self.config.velocity_tol),
            "fail": fail,
            "velocity_error": error,
        }

    def observe(self, h: LeggedHandles) -> dict[str, dict[str, Tensor]]:
        assert isinstance(h, TrackVelocityHandles)
        seen = super().observe(h)
        return {**seen, "policy": {**seen["policy"], "command": self.command(h)}}

    def reward(self, h: TrackVelocityHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        dt = 1.0 / self.control_hz
        followed, v, w, g = self.followed(h), self.velocity(h), self.turn_rate(h), self.gravity(h)
        walks = (norm(followed) >= 0.1).float()
        pose = (h.robot.arm_qpos - self._rest)[:, self._legs]
        return {
            "speed": dt * torch.exp(-4.0 * self.off(h).square().sum(1)),
            "turn": (0.5 * dt) * torch.exp(-4.0 * (w[:, 2] - followed[:, 2]).square()),
            "bounce": -dt * v[:, 2].square().clamp_max(5.0),
            "sway": (-0.02 * dt) * w[:, :2].square().sum(1).clamp_max(200.0),
            "lean": -dt * g[:, :2].square().sum(1),
            "effort": (-0.2 * dt) * self.effort(h),
            "change": (-0.02 * dt) * h.change.value.square().sum(1),
            "pose": (-0.2 * dt) * pose.square().mean(1),
            "steps": dt * h.landed.value * walks,
            "bumps": -dt * self.bumps(h).float(),
            "fall": -ev["fail"].float(),
        }


def _at(each: Tensor, place: Tensor) -> Tensor:
    """(n, k) the entries of ``each`` (n, m, k) at the whole part of ``place`` (n,); the first follows the last."""
    number = (place.long() % each.shape[1]).view(-1, 1, 1).expand(-1, 1, each.shape[2])
    return each.gather(1, number).squeeze(1)
