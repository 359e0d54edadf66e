"""Rows on planned paths, each on its own clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.math import norm, pose_mul
from manikin.plan.planner import Planner
from manikin.plan.rows import SceneRows
from manikin.plan.timing import Limits, TimedPath
from manikin.scene.handles import Robot
from manikin.sim.device import on_host

__all__ = ["Planned"]

_NOBODY = torch.zeros(0, dtype=torch.int64, device="cpu")
_LATE = 0.05  # [m] that the TCP may be behind a planned motion before that waits


class Planned:
    """The rows of one robot that are on a planned path, and when in it they are. All of it is on the CPU, wherever the
    environment is."""

    def __init__(self, env: SceneRows, robot: Robot, margin: float, *, most: Tensor) -> None:
        self._env, self._robot, self._margin, self._most = env, robot, margin, most.cpu().double()
        self._planner: Planner | None = None
        self._motions: dict[int, TimedPath] = {}
        n = env.num_envs
        self._motion, self._place = np.full(n, -1), np.zeros(n, np.int64)  # which motion, and which row of it
        self._clock = np.zeros(n)  # [s]
        self.duration, self.failed = np.zeros(n), np.zeros(n, bool)

    def forget(self, rows: np.ndarray) -> None:
        """The rows are on no planned path any more."""
        self._motion[rows], self.duration[rows], self.failed[rows] = -1, 0.0, False
        self._motions = {k: motion for k, motion in self._motions.items() if (self._motion == k).any()}

    def begin(self, rows: np.ndarray, goal: Tensor, carries: Any) -> np.ndarray:
        """Plan for rows to the TCP poses in ``goal`` (N, 7); (rows,) bool which of them have a path now."""
        if self._planner is None:
            self._planner = Planner(self._env, robot=self._robot, margin=self._margin)
        planner = self._planner
        with on_host(self._env.device):
            plan = planner.plan(pose=goal.cpu()[torch.from_numpy(rows)], rows=rows, held=carries)
            given = planner.limits
            limits = Limits(torch.minimum(given.velocity, self._most), given.acceleration, given.jerk)
            motion, found = plan.timed(limits), plan.found.numpy()
        number = max(self._motions, default=0) + 1
        self._motions[number] = motion
        self._motion[rows], self._place[rows] = np.where(found, number, -1), np.arange(len(rows))
        self._clock[rows], self.duration[rows], self.failed[rows] = 0.0, motion.duration.numpy() * found, ~found
        return found

    def next(self, tcp: Tensor, dt: float, on: np.ndarray | None = None) -> tuple[Tensor, Tensor]:
        """Numbers of the rows ``on`` (N,) bool, None for all, that are on a path, and where their arms (rows, joints)
        should be after the next step.

        A row's clock waits while its TCP, which is at ``tcp`` (N, 7), is far behind.
        """
        if not self._motions:
            return _NOBODY, _NOBODY.float()
        with on_host(self._env.device):
            return self._next(tcp.cpu(), dt, np.ones(len(self._clock), bool) if on is None else on)

    def _next(self, tcp: Tensor, dt: float, on: np.ndarray) -> tuple[Tensor, Tensor]:
        moving, want = [], []
        for number, motion in self._motions.items():
            rows = np.flatnonzero((self._motion == number) & (self._clock < self.duration) & on)
            if not len(rows):
                continue
            place = torch.from_numpy(self._place[rows])
            clock = torch.zeros(len(motion.points), dtype=torch.float64)
            clock[place] = torch.from_numpy(self._clock[rows])
            should = self.tool(motion.sample(clock)[0][place])
            late = norm(should[:, :3] - tcp[torch.from_numpy(rows), :3]) > _LATE
            clock[place] += dt * ~late
            self._clock[rows] = clock[place].numpy()
            moving.append(torch.from_numpy(rows))
            want.append(motion.sample(clock)[0][place])
        if not moving:
            return _NOBODY, _NOBODY.float()
        return torch.cat(moving), torch.cat(want).to(tcp)

    def tool(self, q: Tensor) -> Tensor:
        """(rows, 7) TCP poses in the world of joint positions."""
        with on_host(self._env.device):
            found = torch.cat(self._robot.solver.chain.host.fk(q), 1).float()
        return pose_mul(self._robot.base_pose.cpu().expand(len(q), 7), found)
