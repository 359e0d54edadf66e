"""When to be where on a path: motion within limits of velocity, acceleration and jerk.

A path is straight from point to point in joint space. Each straight piece is driven from rest to rest as fast as the
slowest joint allows, all joints in step, so that the arm stays exactly on the pieces that were found free of
collisions. For such a piece the fastest motion is known in closed form (seven phases of constant jerk), for any number
of rows at once; Ruckig, asked for a piece with the joints kept in step, gives the same (tested).

What begins in motion is :func:`from_motion`'s: time-optimal from any velocity and acceleration, by Ruckig.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.spec.robot import ArmSpec

__all__ = ["Limits", "Trajectory", "from_motion", "limits_of", "time_path"]

_FOLLOWS = 0.8  # of the speed at which a servo's damping takes all its force


@dataclass(frozen=True)
class Limits:
    """Per joint, each (joints,) float64: velocity [rad/s], acceleration [rad/s^2], jerk [rad/s^3]; m for slides."""

    velocity: Tensor
    acceleration: Tensor
    jerk: Tensor

    def __post_init__(self) -> None:
        for name in ("velocity", "acceleration", "jerk"):
            value = getattr(self, name)
            if value.shape != self.velocity.shape or value.ndim != 1 or not bool((value > 0).all()):
                raise ConfigError(f"limits: {name} must be {len(self.velocity)} positive numbers, got {value.tolist()}")


def limits_of(arm: ArmSpec, *, share: float = 0.5) -> Limits:
    """The maker's limits of an arm times ``share``, and no faster than the servos of its model can follow.

    A servo of stiffness kp and damping kd cannot move a joint faster than force / kd; velocities stay below 0.8 of it.
    An arm whose maker gives no figures has those of :class:`~manikin.spec.robot.MotionLimits`' defaults.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"share must be in (0, 1], not {share}")
    n, given = len(arm.joints), arm.motion
    velocity, acceleration, jerk = (
        share * torch.tensor(value if len(value) == n else value * n, dtype=torch.float64)
        for value in (given.velocity, given.acceleration, given.jerk)
    )
    gains = arm.gains
    follows = [
        _FOLLOWS * force / kd if kd > 0 else float("inf") for force, kd in zip(gains.force, gains.kd, strict=True)
    ]
    return Limits(torch.minimum(velocity, torch.tensor(follows, dtype=torch.float64)), acceleration, jerk)


@dataclass(frozen=True)
class Trajectory:
    """Motions of n rows along their paths.

    Attributes:
        points: (n, points, joints) float64, of rows with fewer points the last one repeated.
        ends: (n, points - 1) [s] when each piece is over.
        phases: (n, points - 1, 7) [s] length of each phase of a piece.
        jerk: (n, points - 1) of the way along the piece, which goes from 0 to 1 [1/s^3].
    """

    points: Tensor
    ends: Tensor
    phases: Tensor
    jerk: Tensor

    @property
    def duration(self) -> Tensor:
        """(n,) [s]."""
        return self.ends[:, -1]

    def sample(self, t: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
        """Position [rad], velocity [rad/s] and acceleration [rad/s^2], each (n, joints), at a time or times (n,) [s].

        Before the start and after the end it stands still. Times (n, k) give (n, k, joints).
        """
        t = torch.as_tensor(t, dtype=torch.float64)
        t = t.expand(len(self.points)) if t.ndim == 0 else t
        wide = t if t.ndim == 2 else t[:, None]
        n, k = wide.shape
        wide = torch.minimum(wide.clamp_min(0.0), self.duration[:, None])
        piece = (wide[:, :, None] > self.ends[:, None]).sum(2).clamp_max(self.ends.shape[1] - 1)  # (n, k)
        begins = torch.cat([torch.zeros_like(self.ends[:, :1]), self.ends[:, :-1]], 1)
        left = wide - begins.gather(1, piece)
        phases = self.phases.gather(1, piece[:, :, None].expand(n, k, 7))
        jerk = self.jerk.gather(1, piece)
        way = torch.zeros_like(left)
        rate, change = torch.zeros_like(left), torch.zeros_like(left)
        for phase, sign in enumerate((1, 0, -1, 0, -1, 0, 1)):
            dt = torch.minimum(left, phases[:, :, phase]).clamp_min(0.0)
            way = way + dt * (rate + dt * (change / 2 + dt * (sign / 6) * jerk))
            rate = rate + dt * (change + dt * (sign / 2) * jerk)
            change = change + dt * sign * jerk
            left = left - phases[:, :, phase]
        index = piece[:, :, None].expand(n, k, self.points.shape[2])
        start = self.points.gather(1, index)
        along = self.points.gather(1, index + 1) - start
        out = tuple(along * x[:, :, None] for x in (way, rate, change))
        q, qd, qdd = start + out[0], out[1], out[2]
        return (q, qd, qdd) if t.ndim == 2 else (q[:, 0], qd[:, 0], qdd[:, 0])


def time_path(paths: Tensor | Sequence[Tensor], limits: Limits) -> Trajectory:
    """Drive paths from rest to rest, stopping at every corner.

    Args:
        paths: (n, points, joints) [rad], or n paths (points, joints) of any length.
        limits: see :func:`limits_of`.
    """
    points = paths.double() if isinstance(paths, Tensor) else _padded([p.double() for p in paths])
    if points.ndim != 3 or points.shape[2] != len(limits.velocity) or points.shape[1] < 1:
        raise ConfigError(f"paths must be (n, points, {len(limits.velocity)}), got {tuple(points.shape)}")
    if points.shape[1] == 1:
        points = torch.cat([points, points], 1)
    along = (points[:, 1:] - points[:, :-1]).abs()  # of a piece, whose way goes from 0 to 1

    def least(limit: Tensor) -> Tensor:
        return (limit / along).amin(2)  # nothing moves: infinite

    still = along.amax(2) == 0
    v, a, j = (
        torch.where(still, torch.ones_like(x), x)
        for x in map(least, (limits.velocity, limits.acceleration, limits.jerk))
    )
    a = torch.minimum(a, (v * j).sqrt())  # more is never reached on the way to v
    # the jerk phase, all of the speeding up, and the rest at full speed
    tj, ta = a / j, a / j + v / a
    cruise = 1 / v - ta
    # full speed is not reached: full acceleration is ...
    top = a / 2 * ((tj * tj + 4 / a).sqrt() - tj)
    # ... or not even that
    short = torch.exp(torch.log(1 / (2 * j)) / 3)
    tj_late, ta_late = torch.where(top * j >= a * a, tj, short), torch.where(top * j >= a * a, tj + top / a, 2 * short)
    late = cruise < 0
    tj, ta, cruise = torch.where(late, tj_late, tj), torch.where(late, ta_late, ta), cruise.clamp_min(0.0)
    # rounding must not move the end: the jerk is what makes the way exactly 1
    jerk = 1 / (tj * (ta - tj) * (ta + cruise))
    phases = torch.stack([tj, ta - 2 * tj, tj, cruise, tj, ta - 2 * tj, tj], 2).clamp_min(0.0)
    phases = torch.where(still[:, :, None], torch.zeros_like(phases), phases)
    return Trajectory(points, phases.sum(2).cumsum(1), phases, torch.where(still, torch.zeros_like(jerk), jerk))


def _padded(paths: Sequence[Tensor]) -> Tensor:
    longest = max(len(p) for p in paths)
    return torch.stack([torch.cat([p, p[-1:].expand(longest - len(p), -1)]) for p in paths])


def from_motion(
    q: Tensor, velocity: Tensor, acceleration: Tensor, goal: Tensor, limits: Limits, *, dt: float
) -> list[Tensor]:
    """The fastest motion from any state to rest at a goal, by Ruckig, one row after the other (about 10 us each).

    The joints arrive together but are not kept on a straight line. Needs ``pip install 'manikin[plan]'``.

    Args:
        q: (n, joints) [rad] at the beginning, with ...
        velocity: ... (n, joints) [rad/s] and ...
        acceleration: ... (n, joints) [rad/s^2].
        goal: (n, joints) [rad].
        limits: see :func:`limits_of`.
        dt: [s] between samples.

    Returns:
        Of each row the positions (samples, joints) at dt, 2 dt, ... until the goal is reached.

    Raises:
        ConfigError: Ruckig is not installed, or finds no motion (the row and its words for why).
    """
    ruckig = _ruckig()
    n, joints = q.shape
    made = []
    for row in range(n):
        given = ruckig.InputParameter(joints)
        given.current_position, given.current_velocity = q[row].tolist(), velocity[row].tolist()
        given.current_acceleration, given.target_position = acceleration[row].tolist(), goal[row].tolist()
        given.max_velocity, given.max_acceleration = limits.velocity.tolist(), limits.acceleration.tolist()
        given.max_jerk = limits.jerk.tolist()
        found = ruckig.Trajectory(joints)
        outcome = ruckig.Ruckig(joints).calculate(given, found)
        if outcome not in (ruckig.Result.Working, ruckig.Result.Finished):
            raise ConfigError(
                f"row {row}: Ruckig finds no motion ({outcome.name}); is it within the limits at the start?"
            )
        count = max(1, int(-(-found.duration // dt)))
        samples = [found.at_time(min((k + 1) * dt, found.duration))[0] for k in range(count)]
        made.append(torch.tensor(samples, dtype=torch.float64))
    return made


def _ruckig() -> Any:
    try:
        import ruckig
    except ImportError as error:
        raise ConfigError(f"motion that begins at speed needs Ruckig ({error}): pip install 'manikin[plan]'") from None
    return ruckig
