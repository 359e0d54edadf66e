"""Turns a task's waypoints into actions of whatever controller the environment has.

Each row walks through its stages on its own clock: a straight, speed-limited path of the TCP, inverse kinematics from
where the arm is, and the controller's own inverse for the action. A row's actions do not depend on other rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.env.bucket import BucketEnv
from manikin.env.env import Env
from manikin.math import norm, pose_inv, pose_mul, quat_angle, quat_slerp
from manikin.spec.plan import Waypoint

__all__ = ["WaypointExecutor"]


class WaypointExecutor:
    """Executes ``env.task.expert`` for all rows.

    Call :meth:`reset` for rows that begin an episode (done by itself when ``info["elapsed"]`` would be 0), then
    :meth:`act` once per control step.
    """

    def __init__(self, env: Env) -> None:
        self.env = env
        self._of_layout: dict[int, WaypointExecutor] = {}
        if isinstance(env, BucketEnv):
            return
        n = env.num_envs
        arm = env.robot.arm
        self._dt = 1.0 / env.control_hz
        # the arm covers this share of a command in one control step
        self._boost = min(0.9 / (1.0 - math.exp(-env.controller.rate * self._dt)), 2.5)
        self._most = torch.tensor(arm.joint_delta or (0.1,) * len(arm.joints), device=env.device)
        self._turns = env.controller.card.turns  # without rotations the gripper stays as it is
        self._base_inv = pose_inv(env.robot.base_pose)
        self._stage = np.full(n, -1)
        self._since = np.zeros(n)  # [s] in this stage
        self._near = np.full(n, -1.0)  # [s] since the stage's tolerance was first met, -1 before
        self._stages: list[Waypoint] = []
        self._goal, self._path = (torch.zeros(n, 7, device=env.device) for _ in range(2))

    def reset(self, rows: Any = None) -> None:
        """Forget the rows' progress; their next action starts at the first stage."""
        if isinstance(self.env, BucketEnv):
            for k, slots in self.env.slots(rows).items():
                self._inside(self.env.buckets[k]).reset(slots)
            return
        self._stage[slice(None) if rows is None else np.asarray(rows)] = -1

    def _inside(self, env: Env) -> WaypointExecutor:
        """The executor for the rows of one layout."""
        if id(env) not in self._of_layout:
            self._of_layout[id(env)] = WaypointExecutor(env)
        return self._of_layout[id(env)]

    @property
    def stage(self) -> np.ndarray:
        """(N,) index of the stage each row is in, -1 before the first action."""
        if isinstance(self.env, BucketEnv):
            return self.env.each(lambda env: torch.from_numpy(self._inside(env).stage)).numpy()
        return self._stage.copy()

    def act(self) -> Tensor:
        """Actions (N, A) in [-1, 1] for the present state."""
        if isinstance(self.env, BucketEnv):
            return self.env.each(lambda env: self._inside(env).act())
        with torch.no_grad(), self.env._on:
            return self._act()

    def _act(self) -> Tensor:
        env = self.env
        robot = env.robot
        fresh = (self._stage < 0) | (env._elapsed == 0)
        stages = self._waypoints() if fresh.any() or self._must_look() else self._stages
        self._stages = stages
        tcp = robot.tcp_pose
        if fresh.any():
            self._enter(np.flatnonzero(fresh), np.zeros(int(fresh.sum()), int), stages, tcp)
        over = self._over(stages, tcp) & (self._stage < len(stages) - 1)
        if over.any():
            stages = self._stages = self._waypoints()
            rows = np.flatnonzero(over)
            self._enter(rows, self._stage[rows] + 1, stages, tcp)
        for k, stage in enumerate(stages):
            if stage.track and (self._stage == k).any():
                at = torch.from_numpy(np.flatnonzero(self._stage == k))
                self._goal[at] = stage.pose[at]
        self._advance(stages)
        self._since += self._dt
        local = pose_mul(self._base_inv.expand_as(self._path), self._path)
        q = robot.arm_qpos
        found = robot.solver.solve(local[:, :3], local[:, 3:], q, iterations=20, posture=0.05)
        move = self._boost * (found.q.float() - q)
        # as much as the servo can follow; one factor for all joints keeps a long way straight
        want = q + move / (move.abs() / self._most).amax(1, keepdim=True).clamp_min(1.0)
        action = env.controller.towards(env._carry, env._reading(), want)
        if env.robot.drivers:
            action[:, -1] = torch.tensor([s.gripper for s in stages])[torch.from_numpy(self._stage)]
        return action

    def _waypoints(self) -> list[Waypoint]:
        return self.env.task.expert(self.env.h)

    def _must_look(self) -> bool:
        return any(stage.track and (self._stage == k).any() for k, stage in enumerate(self._stages))

    def _enter(self, rows: np.ndarray, stage: np.ndarray, stages: list[Waypoint], tcp: Tensor) -> None:
        at = torch.from_numpy(rows)
        poses = torch.stack([s.pose for s in stages])  # (stages, N, 7)
        self._goal[at] = poses[torch.from_numpy(stage), at]
        self._path[at] = tcp[at]
        if not self._turns:
            self._goal[at, 3:] = tcp[at, 3:]
        self._stage[rows], self._since[rows], self._near[rows] = stage, 0.0, -1.0

    def _over(self, stages: list[Waypoint], tcp: Tensor) -> np.ndarray:
        def column(name: str) -> np.ndarray:
            return np.array([getattr(s, name) for s in stages])[self._stage]

        away = norm(self._goal[:, :3] - tcp[:, :3]).cpu().numpy()
        turned = quat_angle(self._goal[:, 3:], tcp[:, 3:]).cpu().numpy()
        near = away <= column("pos_tol")
        if self._turns:
            near &= turned <= column("rot_tol")
        near |= self._since >= column("timeout_s")
        self._near = np.where(near & (self._near < 0), self._since, self._near)
        return (self._near >= 0) & (self._since - self._near >= self._dwell(stages)[self._stage] - 1e-9)

    def _dwell(self, stages: list[Waypoint]) -> np.ndarray:
        """(stages,) [s]; a stage that closes or opens the gripper lasts at least as long as that takes."""
        gripper = self.env.robot.gripper
        travel = gripper.travel_s if gripper is not None else 0.0
        changes = [k > 0 and s.gripper != stages[k - 1].gripper for k, s in enumerate(stages)]
        return np.array([max(s.dwell_s, travel if c else 0.0) for s, c in zip(stages, changes, strict=True)])

    def _advance(self, stages: list[Waypoint]) -> None:
        """Move the path's end towards the goal, no faster than the stage allows."""
        at = torch.from_numpy(self._stage)
        reach = torch.tensor([s.speed for s in stages])[at] * self._dt
        turn = torch.tensor([s.turn for s in stages])[at] * self._dt
        offset = self._goal[:, :3] - self._path[:, :3]
        share = (reach / norm(offset).clamp_min(1e-9)).clamp_max(1.0)
        angle = quat_angle(self._path[:, 3:], self._goal[:, 3:])
        part = (turn / angle.clamp_min(1e-9)).clamp_max(1.0)
        pos = self._path[:, :3] + share[:, None] * offset
        self._path = torch.cat([pos, quat_slerp(self._path[:, 3:], self._goal[:, 3:], part)], 1)
