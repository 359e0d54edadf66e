"""Timing of a path: motion within limits of velocity, acceleration and jerk.

A path is straight from point to point in joint space, its corners rounded as far as was found free of collisions
(see ``corners.py``). Straight parts are driven as fast as the slowest joint allows, all joints in step, so that the
arm stays exactly on what was checked. Between two speeds the fastest motion along a line is seven phases of constant
jerk, found for any number of rows at once; Ruckig, asked for such a motion, gives the same (tested). A corner is taken
in the least time that the limits allow for its curve, and slower where there is no room to change the speed between
two corners.

What begins in motion is :func:`from_motion`'s: time-optimal from any velocity and acceleration, by Ruckig.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.control.numerics.jerk import change
from manikin.errors import ConfigError
from manikin.moved import old_names
from manikin.plan.corners import MOST, RAMP, WHOLE, cuts
from manikin.spec.robot import RobotSpec

__all__ = ["Limits", "TimedPath", "from_motion", "limits_of", "time_path"]

_HALVINGS = 50  # in looking for a speed
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


def limits_of(arm: RobotSpec, *, share: float = 0.5) -> Limits:
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
class TimedPath:
    """Motions of n rows along their paths, as phases of constant jerk.

    Attributes:
        points: (n, points, joints) float64 the corners, of rows with fewer points the last one repeated.
        ends: (n, phases) [s] when each phase is over.
        states: position, velocity, acceleration and jerk, each (n, phases, joints), at each phase's beginning.
    """

    points: Tensor
    ends: Tensor
    states: tuple[Tensor, Tensor, Tensor, Tensor]

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
        wide = torch.minimum(wide.clamp_min(0.0), self.duration[:, None])
        phase = torch.searchsorted(self.ends, wide.contiguous()).clamp_max(self.ends.shape[1] - 1)  # (n, k)
        begins = torch.cat([torch.zeros_like(self.ends[:, :1]), self.ends[:, :-1]], 1)
        s = (wide - begins.gather(1, phase))[:, :, None]
        index = phase[:, :, None].expand(*phase.shape, self.points.shape[2])
        q, qd, qdd, jerk = (state.gather(1, index) for state in self.states)
        out = (q + s * (qd + s * (qdd / 2 + s * jerk / 6)), qd + s * (qdd + s * jerk / 2), qdd + s * jerk)
        return out if t.ndim == 2 else (out[0][:, 0], out[1][:, 0], out[2][:, 0])


def time_path(paths: Tensor | Sequence[Tensor], limits: Limits, reach: Sequence[Tensor] | None = None) -> TimedPath:
    """Drive paths from rest to rest. A corner is rounded where that takes less time than a stop.

    Args:
        paths: (n, points, joints) [rad], or n paths (points, joints) of any length.
        limits: see :func:`limits_of`.
        reach: of each path (points,) [rad] how far before and after a corner the path is left, see
            :mod:`~manikin.plan.corners`; by default 0, stopping at every corner.
    """
    each = [p.detach().cpu().double().numpy() for p in paths]
    joints, longest = len(limits.velocity), max((len(p) for p in each), default=0)
    if not longest or any(p.ndim != 2 or p.shape[1] != joints for p in each):
        said = [tuple(p.shape) for p in each]
        raise ConfigError(f"paths must be (n, points, {joints}) or a list of (points, {joints}), got {said}")
    cut = [np.zeros(len(p)) for p in each] if reach is None else [r.double().numpy() for r in reach]
    for path, r in zip(each, cut, strict=True):
        beside = MOST * np.abs(np.diff(path, axis=0)).max(1) * (1 + 1e-6) + 1e-9  # rounding
        if len(r) != len(path) or (r[1:] > beside).any() or (r[:-1] > beside).any() or r[0] or r[-1]:
            raise ConfigError(f"a corner may take {MOST} of the pieces beside it, the ends nothing; got {r.tolist()}")
    both = [cuts(path, r) for path, r in zip(each, cut, strict=True)]
    points = _padded(each, max(longest, 2), last=True)
    into, out = (_padded([pair[k] for pair in both], max(longest, 2)) for k in (0, 1))
    stops = Timing(points, torch.zeros_like(into), torch.zeros_like(out), limits)
    worth = Timing(points, into, out, limits).worth(stops)
    into, out = (torch.where(worth, x, torch.zeros_like(x)) for x in (into, out))
    return Timing(points, into, out, limits).trajectory()


def _padded(rows: Sequence[np.ndarray], length: int, *, last: bool = False) -> Tensor:
    """(n, length, joints) with the last point repeated, or zeros."""
    return torch.from_numpy(
        np.stack([np.pad(p, ((0, length - len(p)), (0, 0)), mode="edge" if last else "constant") for p in rows])
    )


class Timing:
    """Phases of all rows' paths: of each piece three for the corner at its beginning, seven for its straight part.

    On the straight part the way goes from 0 at one corner to 1 at the next, with all joints in step.
    """

    def __init__(self, points: Tensor, into: Tensor, out: Tensor, limits: Limits) -> None:
        self.points, self.into, self.out = points, into[:, :-1], out[:, :-1]  # of the corner at a piece's beginning
        self.along = points[:, 1:] - points[:, :-1]
        length = self.along.abs()
        self.still = length.amax(2) == 0

        def least(limit: Tensor) -> Tensor:
            found = (limit / length).amin(2)
            return torch.where(self.still, torch.ones_like(found), found)

        self.v, self.a, self.j = (least(x) for x in (limits.velocity, limits.acceleration, limits.jerk))
        whole = length.amax(2).clamp_min(1e-300)
        self.begin = out[:, :-1].abs().amax(2) / whole  # the straight part begins here on the way,
        self.end = 1.0 - into[:, 1:].abs().amax(2) / whole  # and ends here
        # the least time that a corner takes, by each limit
        change = 2 * (self.out - self.into).abs()
        self.rounded = self.out.abs().amax(2) > 0
        by_velocity = 2 * torch.maximum(self.into.abs(), self.out.abs()) / limits.velocity
        by_acceleration = (WHOLE * change / limits.acceleration).sqrt()
        by_jerk = _cube_root(WHOLE / RAMP * change / limits.jerk)
        self.corner = torch.stack([by_velocity, by_acceleration, by_jerk]).amax((0, 3))
        self.corner = torch.where(self.rounded, self.corner, torch.ones_like(self.corner))
        self._slow_down()

    def speeds(self) -> tuple[Tensor, Tensor]:
        """Of the way at the beginning and at the end of the straight parts."""
        end = torch.cat([self.corner[:, 1:], torch.ones_like(self.corner[:, :1])], 1)
        return 2 * self.begin / self.corner, 2 * (1.0 - self.end) / end

    def _slow_down(self) -> None:
        """Corners take longer until the speed can change between any two of them; of two the faster one waits."""
        while True:
            one, two = self.speeds()
            tight = change(one, two, self.a, self.j)[2] > self.end - self.begin
            if not bool(tight.any()):
                return
            slower = tight & (one >= two)
            slower[:, 1:] |= (tight & (two > one))[:, :-1]
            self.corner = torch.where(slower, 1.05 * self.corner, self.corner)

    def top(self) -> Tensor:
        """The highest speed of the way on each piece from which there is room to slow down."""
        one, two = self.speeds()
        low, high = torch.maximum(one, two), torch.maximum(self.v, torch.maximum(one, two))
        top = high
        for _ in range(_HALVINGS):
            way = change(one, top, self.a, self.j)[2] + change(top, two, self.a, self.j)[2]
            fits = way <= self.end - self.begin
            low, high = torch.where(fits, top, low), torch.where(fits, high, top)
            top = (low + high) / 2
        return low

    def worth(self, stops: Timing) -> Tensor:
        """(n, points, 1) bool: going round a corner costs less time than stopping there, where the pieces beside it are
        driven at their top speed otherwise."""
        top = stops.top()

        def lost(speed: Tensor, cut: Tensor) -> Tensor:
            rise, held, way = change(speed, top, self.a, self.j)
            return 2 * rise + held - (way + cut) / top

        one, two = self.speeds()
        none = torch.zeros_like(one)
        gained = lost(none, none) - lost(one, self.begin) - self.corner
        gained[:, 1:] += (lost(none, none) - lost(two, 1.0 - self.end))[:, :-1]
        worth = self.rounded & (gained > 0)
        return torch.cat([worth, torch.zeros_like(worth[:, :1])], 1)[:, :, None]

    def trajectory(self) -> TimedPath:
        """The motion."""
        one, two = self.speeds()
        room, low = self.end - self.begin, self.top()
        rise, held, way = change(one, low, self.a, self.j)
        fall, held_too, way_too = change(low, two, self.a, self.j)
        cruise = ((room - way - way_too) / low).clamp_min(0.0)
        straight = torch.stack([rise, held, rise, cruise, fall, held_too, fall], 2)
        straight = torch.where(self.still[:, :, None], torch.zeros_like(straight), straight)
        ramp = torch.where(self.rounded, self.corner, torch.zeros_like(self.corner))[:, :, None]
        round_ = ramp * torch.tensor([RAMP, 1 - 2 * RAMP, RAMP], dtype=torch.float64)

        b = self.corner[:, :, None]
        jerk = 2 * (self.out - self.into) * (WHOLE / RAMP) / b**3
        curved = _phases(self.points[:, :-1] - self.into, 2 * self.into / b, jerk, (1, 0, -1), round_)
        first = self.points[:, :-1] + self.begin[:, :, None] * self.along
        jerk = self.j[:, :, None] * self.along
        plain = _phases(first, one[:, :, None] * self.along, jerk, (1, 0, -1, 0, -1, 0, 1), straight)
        states = tuple(torch.cat([x, y], 2).flatten(1, 2) for x, y in zip(curved, plain, strict=True))
        ends = torch.cat([round_, straight], 2).flatten(1, 2).cumsum(1)
        return TimedPath(self.points, ends, (states[0], states[1], states[2], states[3]))


def _phases(q: Tensor, qd: Tensor, jerk: Tensor, signs: Sequence[int], lasting: Tensor) -> list[Tensor]:
    """Position, velocity, acceleration and jerk, each (n, pieces, phases, joints), at the beginnings of phases that
    take ``lasting`` (n, pieces, phases) [s], from (n, pieces, joints) and no acceleration."""
    qdd, made = torch.zeros_like(qd), []
    for k, sign in enumerate(signs):
        s, j = lasting[:, :, k, None], sign * jerk
        made.append((q, qd, qdd, j))
        q = q + s * (qd + s * (qdd / 2 + s * j / 6))
        qd, qdd = qd + s * (qdd + s * j / 2), qdd + s * j
    return [torch.stack(values, 2) for values in zip(*made, strict=True)]


def _cube_root(x: Tensor) -> Tensor:
    return torch.where(x > 0, torch.exp(torch.log(x.clamp_min(1e-300)) / 3), torch.zeros_like(x))


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


__getattr__ = old_names(__name__)
