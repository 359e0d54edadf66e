"""How a quadruped of three joints per leg trots: where its feet go, and joints that take them there, in closed form.

Diagonal legs stand and swing together. What a leg carries is added to what its servos are asked for, so that soft ones
do not sink. Everything follows from the time and the robot's state: there is no memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import atan2
from manikin.scene.robot import assemble
from manikin.spec.robot import RobotSpec

__all__ = ["Gait", "Trot"]

_STEP = 0.02  # [s] between the moments from which speeds of joints follow
_STARTS = (0.0, 0.5, 0.5, 0.0)  # [1] of a round, when legs begin to stand: front left, front right, back left, right


@dataclass(frozen=True)
class Gait:
    """How to trot.

    Attributes:
        height: [m] of the hips over the feet's middles.
        inward: [m] by which feet in front stand behind their hips, and those behind in front of theirs.
        aside: [m] by which feet stand outside their hips' axes.
        lift: [m] of a foot that swings.
        period_s: of a round.
        duty: [1] share of it in which a foot stands.
        level: [1] of the tilt that the feet make up for.
        steady_s: [s] times the speed beyond what is asked for is how far feet go ahead of it, which slows the base.
        firm: [1/s] times the robot's mass and the speed that is missing is the force with which standing feet push.
    """

    height: float
    inward: float
    aside: float
    lift: float
    period_s: float
    duty: float = 0.55
    level: float = 0.5
    steady_s: float = 0.05
    firm: float = 4.0


def _dynamics(arm: RobotSpec) -> tuple[Tensor, Tensor, Tensor]:
    """(12,) each, of the legs at rest: damping of the joints [N m s/rad], inertia about them [kg m^2], and the torque
    that holds the legs up [N m]."""
    made = assemble(arm, None)
    model = made.spec.compile()
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in made.arm_joints]
    data.qpos[[int(joint.qposadr[0]) for joint in joints]] = arm.keyframes["rest"]
    mujoco.mj_forward(model, data)
    dofs = [int(joint.dofadr[0]) for joint in joints]
    whole = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, whole)
    found = model.dof_damping[dofs], np.diag(whole)[dofs], data.qfrc_bias[dofs]
    kd, inertia, bias = (torch.tensor(value, dtype=torch.float32) for value in found)
    return kd, inertia, bias


class Trot:
    """The legs of a quadruped, in the order of its joints: front left, front right, back left, back right."""

    def __init__(self, arm: RobotSpec, gait: Gait) -> None:
        links = {link.name: link for link in arm.links}
        hips, sides, sizes, knees = [], [], [], []
        for name in arm.feet:
            link = links[name]
            point = np.array(next(geom.pos for geom in link.geoms if geom.type == "sphere"))
            while not link.joints:
                point = point + link.pos
                assert link.parent is not None
                link = links[link.parent]
            thigh = links[str(link.parent)]
            hip = links[str(thigh.parent)]
            if len(hip.joints) + len(thigh.joints) + len(link.joints) != 3 or hip.parent != arm.links[0].name:
                raise ConfigError(f"{arm.name} has no legs of hip, thigh and shank")
            hips.append((hip.pos[0] + thigh.pos[0], hip.pos[1], hip.pos[2]))
            x, y, z = point.tolist()
            sides.append(thigh.pos[1] + link.pos[1] + y)
            sizes.append((-link.pos[2], math.hypot(x, z)))
            knees.append(math.atan2(-x, -z))
        self.gait, self._rest = gait, torch.tensor(arm.keyframes["rest"])
        self._hips, self._sides = torch.tensor(hips), torch.tensor(sides)
        self._upper, self._lower = torch.tensor(sizes).unbind(1)
        self._knees = torch.tensor(knees)  # [rad] of the shank from foot to knee, where its joint is at 0
        self._bends = torch.sign(self._rest.reshape(4, 3)[:, 2] + self._knees)
        ahead, left = torch.sign(self._hips[:, 0]), torch.sign(self._hips[:, 1])
        self._feet = self._hips + torch.stack(
            [-gait.inward * ahead, gait.aside * left, torch.full((4,), -gait.height)], 1
        )
        self._mass = sum(link.mass for link in arm.links)
        self._kp = torch.tensor(arm.gains.kp)
        self._kd, self._inertia, self._bias = _dynamics(arm)

    def joints(self, feet: Tensor) -> Tensor:
        """(n, 12) [rad] for feet (n, 4, 3) [m] in the base's frame; what is out of reach is approached."""
        x, y, z = (feet - self._hips).unbind(2)
        side, upper, lower = self._sides, self._upper, self._lower
        down = torch.sqrt((y * y + z * z - side * side).clamp_min(1e-6))
        roll = atan2(y, -z) - atan2(side.expand_as(down), down)
        far = (x * x + down * down).clamp_max((0.999 * (upper + lower)).square())
        cosine = ((far - upper * upper - lower * lower) / (2 * upper * lower)).clamp(-0.9999, 0.9999)
        sine = self._bends * torch.sqrt(1.0 - cosine * cosine)
        bend = atan2(sine, cosine)
        lean = atan2(-x, down) - atan2(lower * sine, upper + lower * cosine)
        return torch.stack([roll, lean, bend - self._knees], 2).flatten(1)

    def asked(self, joints: Tensor, time: Tensor, twist: Tensor, moves: Tensor, gravity: Tensor) -> Tensor:
        """(n, 12) [rad] to ask the servos for.

        Args:
            joints: (n, 12) [rad] where they are.
            time: (n,) [s] since the start.
            twist: (n, 3) [m/s, m/s, rad/s] to move with, along x and y of the base and about z.
            moves: (n, 3) likewise, how the base moves now.
            gravity: (n, 3) its direction in the base's frame.
        """
        feet, stands = self.feet(time, twist, moves, gravity)
        now = self.joints(feet)
        before, after = (self.joints(self.feet(time + k * _STEP, twist, moves, gravity)[0]) for k in (-1, 1))
        rate, bend = (after - before) / (2.0 * _STEP), (after - 2.0 * now + before) / _STEP**2
        push = self.gait.firm * self._mass * self._along(twist - moves)
        return now + (self.torques(joints, stands, push) + self._kd * rate + self._inertia * bend) / self._kp

    def _along(self, twist: Tensor) -> Tensor:
        """(n, 4, 2) [m/s] of the places of the feet in a base that moves with ``twist`` (n, 3)."""
        ahead, left, turn = twist.unbind(1)
        x, y = self._feet[:, 0], self._feet[:, 1]
        return torch.stack([ahead[:, None] - turn[:, None] * y, left[:, None] + turn[:, None] * x], 2)

    def feet(self, time: Tensor, twist: Tensor, moves: Tensor, gravity: Tensor) -> tuple[Tensor, Tensor]:
        """(n, 4, 3) [m] where the feet are to be in the base's frame, and (n, 4) which of them stand; arguments as
        those of :meth:`asked`."""
        g, base = self.gait, self._feet
        phase = torch.remainder(time[:, None] / g.period_s + torch.tensor(_STARTS), 1.0)
        stands = phase < g.duty
        swing = ((phase - g.duty) / (1.0 - g.duty)).clamp(0.0, 1.0)
        wave = 2.0 * math.pi * swing
        share = torch.where(stands, 0.5 - phase / g.duty, swing - torch.sin(wave) / (2.0 * math.pi) - 0.5)
        lift = g.lift * (1.0 - torch.cos(wave)) / 2.0
        flat = base[:, :2] + share[..., None] * self._along(twist) * (g.period_s * g.duty)
        flat = flat + g.steady_s * (moves - twist)[:, None, :2]
        level = g.level * (base[:, 0] * gravity[:, :1] + base[:, 1] * gravity[:, 1:2])
        return torch.cat([flat, (base[:, 2] + lift - level)[..., None]], 2), stands

    def torques(self, joints: Tensor, stands: Tensor, push: Tensor) -> Tensor:
        """(n, 12) [N m] with which legs at ``joints`` (n, 12) [rad] carry themselves and, where they stand (n, 4), the
        robot, and push it by their shares of ``push`` (n, 4, 2) [N] along x and y."""
        roll, lean, bend = joints.reshape(-1, 4, 3).unbind(2)
        shank = lean + bend + self._knees
        knee = -self._upper * torch.sin(lean)  # [m] ahead of the hip
        foot = knee - self._lower * torch.sin(shank)
        low = self._lower * torch.cos(shank)
        down = self._upper * torch.cos(lean) + low
        aside = self._sides * torch.cos(roll) + down * torch.sin(roll)
        share = stands.float()
        share = share / share.sum(1, keepdim=True).clamp_min(1.0)
        up, ahead, left = 9.81 * self._mass * share, push[..., 0] * share, push[..., 1] * share  # [N] on each foot
        mine = [-aside * up - down * left, foot * up + down * ahead, (foot - knee) * up + low * ahead]
        return self._bias + torch.stack(mine, 2).flatten(1)
