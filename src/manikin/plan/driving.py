"""Where waypoints send a base that drives, row by row: straight from leg to leg, turning on the spot between them where
a base has two driven wheels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import atan2, norm, wrap_to_pi
from manikin.scene.handles import Robot
from manikin.spec.plan import Waypoint

__all__ = ["Driver"]

_BACK = 1.0  # [m] a base with two driven wheels backs no further than this, and never along a path of several places
_HERE = 1e-3  # [m] a way so short is none
_CORNER = (0.02, 0.08)  # [m], [rad] the base itself is this near to the end of a leg before the next begins
_BRAKE, _CREEP = 6.0, 0.1  # [1/s] speed over what is left of a leg; [m/s], [rad/s] at least
_SHORT = 0.1  # [rad] of the end of the joint that turns it, it turns the other way round
_SETTLE = 1.5  # [s] more for each leg than its length takes


class Driver:
    """The base of one robot in each row, and the leg that it is on.

    Args:
        robot: whose base.
        n: rows.
        dt: [s] of a control step.
        holds: a base that is sent nowhere is told to stay where the first stage found it, so that what the arm presses
            on does not push it away. False where a controller moves it together with the arm.
    """

    def __init__(self, robot: Robot, n: int, dt: float, *, holds: bool = True) -> None:
        base, device = robot.arm.base, robot.scope.device
        joints = base.joints if base.drives else ()
        self._robot, self._dt, self._rolls, self._holds = robot, dt, base.kind == "differential", holds
        self.columns = [robot.arm.joints.index(joint) for joint in joints]
        self.goal = torch.full((n, len(joints)), math.nan, device=device)  # where it is told to be, in its joints
        self._legs = torch.full((n, 1, 3), math.nan, device=device)
        self._leg, self._last = (torch.zeros(n, dtype=torch.int64, device=device) for _ in range(2))
        self.duration = np.zeros(n)  # [s] that the way takes where nothing but the base is on its way
        speeds = [robot.arm.joint_speed[k] for k in self.columns]
        ends = robot.ranges[self.columns[2]].tolist() if joints else (-math.inf, math.inf)
        self._ends = (ends[0] + _SHORT, ends[1] - _SHORT) if ends[1] - ends[0] > 2 * math.pi + 2 * _SHORT else ends
        self._fastest = (min(speeds[:2]), speeds[2]) if speeds else (math.inf, math.inf)

    def enter(self, rows: Tensor, stage: Tensor, stages: Sequence[Waypoint], *, fresh: bool) -> None:
        """The rows begin their stage, ``fresh`` the first of an episode or a part of one. A base that is sent nowhere
        stays where it was sent before."""
        self.duration[rows.numpy(force=True)] = 0.0
        first = rows if fresh else rows[:0]
        if self.columns:
            now = self._robot.arm_qpos[first][:, self.columns]
            self.goal[first], self._legs[first] = now if self._holds else torch.full_like(now, math.nan), math.nan
            self._leg[first], self._last[first] = 0, 0
        for k, one in enumerate(stages):
            if one.base is None:
                continue
            if not self.columns:
                raise ConfigError(f"a waypoint says where the base goes, and that of {self._robot.name} does not drive")
            own = rows[stage == k]
            if len(own):
                self._begin(own, one)

    def _begin(self, rows: Tensor, one: Waypoint) -> None:
        assert one.base is not None
        path = one.base if one.base.ndim == 3 else one.base[:, None]
        many = path.shape[1]
        points = self._robot.base_joints(path.flatten(0, 1)).unflatten(0, (-1, many))[rows]
        now = self._robot.arm_qpos[rows][:, self.columns]
        legs = self._way(now, points) if one.pose is None else self._unwound(now, points)
        before = torch.cat([now[:, None], legs[:, :-1]], 1)
        counts = (legs != before).any(2)  # the others are where the row already is, as paths have one length for all
        counts[:, -1] = True
        order = torch.argsort(~counts, dim=1, stable=True)
        last = counts.sum(1) - 1
        if (missing := legs.shape[1] - self._legs.shape[1]) > 0:
            more = torch.full((len(self._legs), missing, 3), math.nan, device=self._legs.device)
            self._legs = torch.cat([self._legs, more], 1)
        self._legs[rows, : legs.shape[1]] = legs.gather(1, order[..., None].expand_as(legs))
        self._leg[rows], self._last[rows], self.goal[rows] = 0, last, now
        if one.pose is None:
            moves = legs - before
            reach, turn = min(one.speed, self._fastest[0]), min(one.turn, self._fastest[1])
            each = torch.maximum(norm(moves[..., :2]) / reach, moves[..., 2].abs() / turn) + _SETTLE
            self.duration[rows.numpy(force=True)] = (each * counts).sum(1).numpy(force=True)

    def _way(self, now: Tensor, points: Tensor) -> Tensor:
        """(rows, legs, 3) from where the base is through ``points`` (rows, k, 3), turning by half a turn at most,
        unless the joint ends there."""
        legs, at = [], now
        alone = (points[..., :2] == points[:, :1, :2]).all(2).all(1)  # the path has one place
        backs = alone * _BACK
        for k in range(points.shape[1]):
            to = points[:, k]
            if self._rolls:
                x, y = (to - at)[:, :2].unbind(1)
                far = norm((to - at)[:, :2])
                turn = wrap_to_pi(atan2(y, x) - at[:, 2])
                back = (turn.abs() > math.pi / 2) & (far < backs)
                turn = torch.where(back, wrap_to_pi(turn + math.pi), turn)
                heading = self._within(at[:, 2] + torch.where(far > _HERE, turn, torch.zeros_like(turn)))
                legs += [torch.cat([place, heading[:, None]], 1) for place in (at[:, :2], to[:, :2])]
                at = legs[-1]
                if k < points.shape[1] - 1:
                    continue  # it turns to where it goes next
            yaw = self._within(at[:, 2] + wrap_to_pi(to[:, 2] - at[:, 2]))
            legs.append(torch.cat([to[:, :2], yaw[:, None]], 1))
            at = legs[-1]
        return torch.stack(legs, 1)

    def _unwound(self, now: Tensor, points: Tensor) -> Tensor:
        """The points (rows, k, 3) by headings that are the same and at most half a turn from one another and ``now``:
        a joint that has turned once round does not turn back on the way."""
        legs, at = [], now
        for k in range(points.shape[1]):
            to = points[:, k]
            near = self._within(at[:, 2] + wrap_to_pi(to[:, 2] - at[:, 2]))
            yaw = torch.where((to[:, 2] - at[:, 2]).abs() <= math.pi, to[:, 2], near)
            at = torch.cat([to[:, :2], yaw[:, None]], 1)
            legs.append(at)
        return torch.stack(legs, 1)

    def _within(self, yaw: Tensor) -> Tensor:
        """(rows,) the same heading where the joint can go: the other way round, where a turn would pass its end."""
        low, high = self._ends
        turn = 2 * math.pi
        return torch.where(yaw > high, yaw - turn, torch.where(yaw < low, yaw + turn, yaw))

    def advance(self, reach: Tensor, turn: Tensor, alone: Tensor, moves: Tensor) -> None:
        """Move each row's goal along its leg by ``reach`` (n,) [m] and ``turn`` (n,) [rad] at most; where it drives
        ``alone`` (n,) bool, no faster than the base can. Only rows that ``moves`` (n,) bool."""
        if not self.columns:
            return
        row = torch.arange(len(self._legs), device=self._legs.device)
        end = self._legs[row, self._leg]
        way = torch.where(end.isnan(), 0.0, end - self.goal)  # a base that is sent nowhere
        far, askew = norm(way[:, :2]), way[:, 2].abs()
        reach = torch.where(alone, self._slowing(far, reach, self._fastest[0]), reach)
        turn = torch.where(alone, self._slowing(askew, turn, self._fastest[1]), turn)
        late = torch.maximum(far / reach, askew / turn)
        self.goal = torch.where(moves[:, None], self.goal + way / late[:, None].clamp_min(1.0), self.goal)
        away = end - self._robot.arm_qpos[:, self.columns]
        far = norm(away[:, :2])
        if self._rolls:  # beside its way it cannot come nearer
            far = (away[:, 0] * torch.cos(end[:, 2]) + away[:, 1] * torch.sin(end[:, 2])).abs()
        on = (late <= 1.0) & (far <= _CORNER[0]) & (away[:, 2].abs() <= _CORNER[1]) & (self._leg < self._last)
        self._leg = self._leg + (on & moves)

    def _slowing(self, way: Tensor, most: Tensor, fastest: float) -> Tensor:
        """(n,) how far a base that is heavy goes in a step, less and less towards the end of its way."""
        slow = (way * (_BRAKE * self._dt)).clamp_min(_CREEP * self._dt)
        return torch.minimum(slow, most.clamp_max(fastest * self._dt))

    def off(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) [m] and (n,) [rad] how far the base is from the end of its last leg; endless while legs are ahead."""
        row = torch.arange(len(self._legs), device=self._legs.device)
        away = self._legs[row, self._last] - self._robot.arm_qpos[:, self.columns]
        ahead = self._leg < self._last
        far, turned = norm(away[:, :2]), away[:, 2].abs()
        far, turned = (torch.where(ahead, torch.full_like(far, math.inf), x) for x in (far, turned))
        return far.numpy(force=True), turned.numpy(force=True)

    def ahead(self, row: int) -> np.ndarray:
        """(k, 3) x, y [m] and turn [rad] in the world of the ends of the legs that a row still has before it; none
        where its base is sent nowhere, or is there."""
        if not self.columns:
            return np.zeros((0, 3))
        legs = self._legs[row, int(self._leg[row]) : int(self._last[row]) + 1]
        if legs.isnan().any() or norm(legs[:, :2] - self._robot.arm_qpos[row, self.columns[:2]]).max() < _CORNER[0]:
            return np.zeros((0, 3))
        return self._robot.base_place(legs).numpy(force=True)
