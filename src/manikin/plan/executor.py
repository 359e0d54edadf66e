"""Turns a task's waypoints into actions for the environment's controller.

Each row walks through its stages on its own clock: a straight, speed-limited path of the TCP, inverse kinematics from
where the arm is, and the controller's own inverse for the action. A stage that says ``avoid`` follows a planned path
instead, round what is in the way. Several robots go from stage to stage together. A row's actions do not depend on
other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from manikin.compat.torch import WithoutGradients
from manikin.control import Controller
from manikin.errors import ConfigError
from manikin.math import norm, pose_inv, pose_mul, quat_angle, quat_slerp
from manikin.plan.driving import Driver
from manikin.plan.planned import Planned
from manikin.plan.rows import Rows, SceneRows
from manikin.scene.handles import Robot
from manikin.spec.control import parse_control
from manikin.spec.plan import FOREVER, Waypoint, each_robot

__all__ = ["Timeout", "WaypointExecutor"]

T = TypeVar("T")

_AHEAD = 2  # control steps in which torques are to bring the arm to where it should be


@dataclass(frozen=True)
class Timeout:
    """A waypoint that a row left because ``timeout_s`` was over, not because the TCP had arrived.

    Attributes:
        waypoint: its name, or its number where it has none; with several robots also whose it is.
        away: [m] from the TCP to its pose at that moment.
        turned: [rad] likewise.
        limits: its tolerances and time, for people.
    """

    waypoint: str
    away: float
    turned: float
    limits: str


class WaypointExecutor:
    """Executes ``env.task.expert`` for all rows. An expert that gives actions instead of waypoints is passed through.

    Call :meth:`reset` for rows that begin an episode (done by itself when ``info["elapsed"]`` would be 0), then
    :meth:`act` once per control step.

    Args:
        env: whose rows act.
        margin: [m] that stages with ``avoid`` keep from what is around.
        avoid: every stage but the last has ``avoid``, whatever it says. Where a stage begins or ends at a thing, there
            is no room to plan in, and the row goes straight.
    """

    def __init__(self, env: Rows, *, margin: float = 0.01, avoid: bool = False) -> None:
        self.env, self._margin, self._avoid = env, margin, avoid
        self._of_scene: dict[int, _SceneExecutor] = {}

    def reset(self, rows: Any = None) -> None:
        """Forget the rows' progress; their next action starts at the first stage."""
        for part in self.env.parts(rows):
            self._of(part.env).reset(part.rows)

    @property
    def stage(self) -> np.ndarray:
        """(N,) index of the stage each row is in, -1 before the first action."""
        return self._gathered(lambda one: one.stage)

    @property
    def unplanned(self) -> np.ndarray:
        """(N,) bool: no path was found for the row's present stage, which says ``avoid``; it goes straight."""
        return self._gathered(lambda one: one.unplanned)

    @property
    def waypoint(self) -> list[str]:
        """N names of the waypoints that the rows are at; "" before the first action."""
        return self._listed(lambda one, row: one.name(row))

    @property
    def timeouts(self) -> list[tuple[Timeout, ...]]:
        """Of each of the N rows, the waypoints of its episode so far that timed out. :meth:`Waypoint.hold` is meant to
        last until then and does not count."""
        return self._listed(lambda one, row: tuple(one.timeouts[row]))

    def way(self, row: int) -> np.ndarray:
        """(k, 3) x, y [m] and turn [rad] in the world of the places to which the first robot's base still drives in a
        row's present stage, the nearest first; none before the first action, or where the base is not on its way."""
        (part,) = self.env.parts([row])
        return self._of(part.env).way(int(part.rows[0]))

    def act(self, active: Any = None) -> Tensor:
        """Actions (N, A) in [-1, 1] for the present state.

        ``active`` (N,) bool are the rows that will move, None for all. The others stay in their stage, its clock
        stands, and their actions are 0; on their way between waypoints nothing is worked out for them."""
        if active is None:
            going = torch.ones(self.env.num_envs, dtype=torch.bool, device=self.env.device)
        else:
            going = torch.as_tensor(active, dtype=torch.bool, device=self.env.device)
        return self.env.gather(lambda env, mine: self._of(env).act(mine.numpy(force=True)), going)

    def _gathered(self, values: Callable[[_SceneExecutor], np.ndarray]) -> np.ndarray:
        found = self.env.gather(lambda env: torch.from_numpy(values(self._of(env))).to(env.device))
        return found.numpy(force=True).copy()

    def _listed(self, value: Callable[[_SceneExecutor, int], T]) -> list[T]:
        """What each of the N rows has of its scene's executor."""
        found = {
            int(place): value(self._of(part.env), int(row))
            for part in self.env.parts()
            for place, row in zip(part.places, part.rows, strict=True)
        }
        return [found[k] for k in range(self.env.num_envs)]

    def _of(self, env: SceneRows) -> _SceneExecutor:
        """The executor for the rows of one scene."""
        if id(env) not in self._of_scene:
            present = {id(part.env) for part in self.env.parts()}
            self._of_scene = {k: one for k, one in self._of_scene.items() if k in present}  # others may be closed
            self._of_scene[id(env)] = _SceneExecutor(env, self._margin, self._avoid)
        return self._of_scene[id(env)]


class _SceneExecutor:
    """The rows of one scene."""

    def __init__(self, env: SceneRows, margin: float, avoid: bool) -> None:
        self.env, self._margin, self._avoid = env, margin, avoid
        self._dt = 1.0 / env.control_hz
        self._movers: list[_Mover] = []  # none before a waypoint is asked for
        self.stage = np.full(env.num_envs, -1)
        self.timeouts: list[list[Timeout]] = [[] for _ in range(env.num_envs)]
        self._part = np.zeros((env.num_envs, 2), np.int64)  # see Task.expert_part
        self._since = np.zeros(env.num_envs)  # [s] in this stage
        self._stages: list[tuple[Waypoint, ...]] = []
        self._feedback = False  # whether the expert gives actions

    def reset(self, rows: np.ndarray) -> None:
        self.stage[rows] = -1

    @property
    def unplanned(self) -> np.ndarray:
        none = np.zeros(self.env.num_envs, bool)
        return np.logical_or.reduce([none, *(mover.planned.failed for mover in self._movers)])

    def name(self, row: int) -> str:
        """Of the waypoint that a row is at."""
        k = int(self.stage[row])
        if k < 0 or not self._stages:
            return ""
        return next((w.name for w in self._stages[k] if w.name), f"number {k + 1}")

    def way(self, row: int) -> np.ndarray:
        """See :meth:`WaypointExecutor.way`."""
        return np.zeros((0, 3)) if self.stage[row] < 0 or not self._movers else self._movers[0].driver.ahead(row)

    def act(self, on: np.ndarray) -> Tensor:
        """Actions (N, A), 0 in rows outside ``on`` (N,) bool."""
        no_grad = WithoutGradients() if self.env.world.kind == "cpu" else torch.no_grad()
        with no_grad, self.env.on_device():
            action = self._act(on)
            if not on.all():
                action[torch.from_numpy(~on).to(action.device)] = 0.0
            return action

    def _act(self, on: np.ndarray) -> Tensor:
        env = self.env
        if self._feedback:
            return self._actions()
        begins = ((self.stage < 0) | (env.elapsed.numpy(force=True) == 0)) & on
        part = env.task.expert_part(env.h).numpy(force=True)
        fresh = begins | ((part != self._part).any(1) & on)
        self._part = np.where(on[:, None], part, self._part)
        asked = not self._movers or bool(fresh.any()) or self._must_look(on)
        if asked:
            self._ask()
            if self._feedback:
                return self._actions()
        if fresh.any():
            for row in np.flatnonzero(begins).tolist():
                self.timeouts[row] = []
            first = np.array([0, *(k for k, stage in enumerate(self._stages) if k and stage[0].begins)])
            self._enter(np.flatnonzero(fresh), first[part[fresh, 0]], fresh=True)
        over = on & (self.stage < len(self._stages) - 1)
        for mover in self._movers:
            over &= mover.over(self.stage, self._since)
        if over.any():
            rows = np.flatnonzero(over)
            for row in rows.tolist():
                late = [mover.late(self.name(row), row, int(self.stage[row])) for mover in self._movers]
                self.timeouts[row] += [one for one in late if one is not None]
            if not asked:  # the expert only reads, and nothing has moved since
                self._ask()
            self._enter(rows, self.stage[rows] + 1)
        for mover in self._movers:
            mover.advance(self.stage, on)
        self._since[on] += self._dt
        want = [mover.want(on) for mover in self._movers]
        joints = want[0] if len(want) == 1 else torch.cat(want, 1)
        within = _AHEAD * self._dt if env.controller.torques else None
        action = env.towards(joints, within=within)
        grippers = [mover for mover in self._movers for tool in mover.robot.tools.values() if tool.drivers]
        for mover, column in zip(grippers, env.controller.card.grippers, strict=True):  # all of a robot do the same
            action[:, column] = mover.gripper(self.stage)
        return action

    def _actions(self) -> Tensor:
        """What an expert without waypoints does now, in all rows."""
        env = self.env
        control = env.task.robot_control.get(env.robots[0].arm.name, env.task.control)
        if env.controller.name != parse_control(control).word:
            raise ConfigError(
                f"the expert of {env.task.id} gives actions of {control!r}; it cannot act through "
                f"{env.controller.name!r}"
            )
        actions = env.task.expert(env.h)
        assert isinstance(actions, Tensor)
        return actions.clamp(-1.0, 1.0)

    def _ask(self) -> None:
        """Have the expert say what to do from here."""
        said = self.env.task.expert(self.env.h)
        if isinstance(said, Tensor):
            if self._avoid:
                raise ConfigError(f"the expert of {self.env.task.id} gives actions, no waypoints to plan a way between")
            self._feedback = True
            return
        self._stages = [each_robot(stage) for stage in said]
        if self._avoid:
            around = [tuple(replace(w, avoid=w.pose is not None) for w in stage) for stage in self._stages[:-1]]
            self._stages = [*around, *self._stages[-1:]]
        if not self._movers:
            pairs = zip(self.env.robots, self.env.controllers, strict=True)
            self._movers = [_Mover(robot, one, self.env, self._margin) for robot, one in pairs]
        for k, mover in enumerate(self._movers):
            mover.take([stage[k] for stage in self._stages])

    def _must_look(self, on: np.ndarray) -> bool:
        return any(any(w.track for w in s) and ((self.stage == k) & on).any() for k, s in enumerate(self._stages))

    def _enter(self, rows: np.ndarray, stage: np.ndarray, *, fresh: bool = False) -> None:
        for mover in self._movers:
            mover.enter(rows, stage, fresh)
        self.stage[rows], self._since[rows] = stage, 0.0


class _Mover:
    """One robot on its way: where the present stage wants its TCP, and how far along it is, in each row."""

    def __init__(self, robot: Robot, controller: Controller, env: SceneRows, margin: float) -> None:
        n, dt = env.num_envs, 1.0 / env.control_hz
        self.robot, self._dt, self._alone = robot, dt, len(env.robots) == 1
        # the arm covers this share of a command in one control step; where torques are commanded, the inverse of the
        # response counts that in
        self._torques = env.controller.torques
        self._boost = 1.0 if self._torques else min(0.9 / (1.0 - math.exp(-controller.rate * dt)), 2.5)
        device = robot.scope.device
        self._most = torch.tensor(robot.arm.joint_delta or (0.1,) * len(robot.arm.joints), device=device)
        self._by_joint = all(d.frame in ("joint", "gripper") for d in controller.card.dims)
        own = set(robot.arm.base.joints)  # a controller of the base, or of each joint, holds it
        alone = any(own == {robot.arm.joints[k] for k in part.moves} for part in getattr(controller, "parts", ()))
        self.driver = Driver(robot, n, dt, holds=alone or self._by_joint)
        self._base = self.driver.columns
        self._turns = controller.card.turns  # without rotations the gripper stays as it is
        self._base_inv = pose_inv(robot.base_pose)
        self._near = np.full(n, -1.0)  # [s] since the stage's tolerance was first met, -1 before
        self._late = np.zeros((n, 3))  # whether it never was, then how far the TCP was away [m], [rad]
        self._stages: Sequence[Waypoint] = ()
        self._goal, self._path = (torch.zeros(n, 7, device=device) for _ in range(2))
        many = len(robot.arm.joints)  # where the stage is one of poses, the joints are not a number
        self._joints, self._bend = (torch.full((n, many), math.nan, device=device) for _ in range(2))
        self.planned = Planned(env, robot, margin, most=0.8 * self._most / self._boost / dt)

    def take(self, stages: Sequence[Waypoint]) -> None:
        """What the expert says now."""
        self._stages = stages

    def enter(self, rows: np.ndarray, stage: np.ndarray, fresh: bool) -> None:
        """The rows begin their stage, from where the TCP is; ``fresh``: it is the first of an episode or a part."""
        at, tcp = torch.from_numpy(rows), self.robot.tcp_pose
        poses = torch.stack([tcp if s.pose is None else s.pose for s in self._stages])  # (stages, N, 7)
        self._goal[at] = poses[torch.from_numpy(stage), at]
        self._bends(at, torch.from_numpy(stage), fresh)
        self.driver.enter(at, torch.from_numpy(stage), self._stages, fresh=fresh)
        self._path[at] = tcp[at]
        if not self._turns:
            self._goal[at, 3:] = tcp[at, 3:]
        self._near[rows] = -1.0
        self.planned.forget(rows)
        for k, one in enumerate(self._stages):
            if one.avoid and (stage == k).any():
                away = rows[stage == k]
                there = away[self.planned.begin(away, self._goal, one.carries)]
                self._path[torch.from_numpy(there)] = self._goal[torch.from_numpy(there)]  # where the plan ends

    def _bends(self, rows: Tensor, stage: Tensor, fresh: bool) -> None:
        """Where the joints go in the stage that the rows begin; from where they are, or where such a stage before had
        them go, so that what presses on something goes on pressing."""
        if all(s.pose is not None for s in self._stages):
            return
        none = torch.full_like(self._joints, math.nan)
        # where only the base drives, the arm stays as it is, or as a stage before had it
        stays = torch.where(self._bend.isnan(), self.robot.arm_qpos, self._bend)
        joints = [
            none if s.pose is not None else stays if s.joints is None else s.joints.to(none) for s in self._stages
        ]
        self._joints[rows] = torch.stack(joints)[stage, rows]
        q = self.robot.arm_qpos[rows]
        self._bend[rows] = q if fresh else torch.where(self._bend[rows].isnan(), q, self._bend[rows])
        self._bend[rows] = torch.where(self._joints[rows].isnan(), math.nan, self._bend[rows])

    def over(self, stage: np.ndarray, since: np.ndarray) -> np.ndarray:
        """(N,) bool: this robot is done with the stage that it has been in since so long."""

        def column(name: str) -> np.ndarray:
            return np.array([getattr(s, name) for s in self._stages])[stage]

        tcp = self.robot.tcp_pose
        away = norm(self._goal[:, :3] - tcp[:, :3]).cpu().numpy()
        turned = quat_angle(self._goal[:, 3:], tcp[:, 3:]).cpu().numpy()
        bent = ~self._joints[:, 0].isnan().cpu().numpy()
        if bent.any():
            off = (self._joints - self.robot.arm_qpos).abs()
            if self._base:
                told = ~self.driver.goal.isnan()  # the base has a goal of its own
                off[:, self._base] = torch.where(told, 0.0, off[:, self._base])
            most = off.amax(1).cpu().numpy()
            away, turned = np.where(bent, 0.0, away), np.where(bent, most, turned)
        drives = self._driving()[stage]
        if drives.any():
            far, askew = self.driver.off()
            away, turned = np.where(drives, far, away), np.where(drives, np.maximum(askew, turned), turned)
        near = away <= column("pos_tol")
        near &= (turned <= column("rot_tol")) | (~bent & (not self._turns))
        late = (since >= column("timeout_s") + self.planned.duration + self.driver.duration) & ~near
        first = (near | late) & (self._near < 0)
        self._late[first] = np.stack([late & (column("pos_tol") > 0), away, turned], 1)[first]
        self._near = np.where(first, since, self._near)
        leaves = (self._near >= 0) & (since - self._near >= self._dwell()[stage] - 1e-9)
        return np.asarray(leaves & (column("timeout_s") < FOREVER))

    def late(self, name: str, row: int, stage: int) -> Timeout | None:
        """How far off a row was when the time of its stage was over; None if it had arrived."""
        timed_out, away, turned = self._late[row].tolist()
        if not timed_out:
            return None
        one = self._stages[stage]
        limits = f"pos_tol {1e3 * one.pos_tol:.3g} mm, rot_tol {one.rot_tol:.3g} rad, timeout_s {one.timeout_s:.3g}"
        name = name if self._alone else f"{name} of {self.robot.name}"
        return Timeout(name, away, turned, limits)

    def _driving(self) -> np.ndarray:
        """(stages,) bool: those in which the base drives without the tool."""
        return np.array([s.base is not None and s.pose is None for s in self._stages])

    def _dwell(self) -> np.ndarray:
        """(stages,) [s]; a stage that closes or opens the gripper lasts at least as long as that takes."""
        gripper, stages = self.robot.gripper, self._stages
        travel = gripper.travel_s if gripper is not None else 0.0
        changes = [k > 0 and s.gripper != stages[k - 1].gripper for k, s in enumerate(stages)]
        return np.array([max(s.dwell_s, travel if c else 0.0) for s, c in zip(stages, changes, strict=True)])

    def advance(self, stage: np.ndarray, on: np.ndarray) -> None:
        """Move the path's end towards the goal in the rows ``on`` (N,) bool, no faster than the stage allows."""
        for k, one in enumerate(self._stages):
            if one.track and ((stage == k) & on).any():
                rows = torch.from_numpy(np.flatnonzero((stage == k) & on))
                if one.pose is not None:
                    self._goal[rows] = one.pose[rows]
                elif one.joints is not None:
                    self._joints[rows] = one.joints[rows].to(self._joints)
        at = torch.from_numpy(stage)
        reach = torch.tensor([s.speed for s in self._stages])[at] * self._dt
        turn = torch.tensor([s.turn for s in self._stages])[at] * self._dt
        offset = self._goal[:, :3] - self._path[:, :3]
        share = (reach / norm(offset).clamp_min(1e-9)).clamp_max(1.0)
        angle = quat_angle(self._path[:, 3:], self._goal[:, 3:])
        part = (turn / angle.clamp_min(1e-9)).clamp_max(1.0)
        pos = self._path[:, :3] + share[:, None] * offset
        path = torch.cat([pos, quat_slerp(self._path[:, 3:], self._goal[:, 3:], part)], 1)
        bend = self._joints - self._bend
        bend = self._bend + bend / (bend.abs().amax(1) / turn).clamp_min(1.0)[:, None]
        moves = torch.from_numpy(on).to(path.device)
        self._path, self._bend = (
            torch.where(moves[:, None], new, old) for new, old in ((path, self._path), (bend, self._bend))
        )
        self.driver.advance(reach, turn, torch.tensor(self._driving().tolist())[at], moves)

    def want(self, on: np.ndarray) -> Tensor:
        """(N, arm joints) [rad] where the arm should be next; where it is in rows outside ``on`` (N,) bool."""
        robot = self.robot
        planned, joints = self.planned.next(robot.tcp_pose, self._dt, on)
        if len(planned) and not self._by_joint:
            self._path[planned] = self.planned.tool(joints).to(self._path)
        q = robot.arm_qpos
        bent = ~self._bend[:, :1].isnan()
        goal = torch.where(bent, self._bend, q)
        rows = torch.from_numpy(np.flatnonzero(on & ~bent[:, 0].numpy(force=True))).to(q.device)
        if len(rows):
            path = self._path[rows]
            local = pose_mul(self._base_inv.expand_as(path), path)
            found = robot.solver.solve(local[:, :3], local[:, 3:], q[rows], iterations=20, posture=0.05)
            goal[rows] = found.q.float()
        if len(planned) and self._by_joint:
            goal[planned] = joints.to(goal)
        if not self._torques:
            move = self._boost * (goal - q)
            # as much as the servo can follow; one factor for all joints keeps a long way straight, but a joint that
            # something stops must not hold up the others
            much = move.abs() / self._most
            much = torch.where(bent, much, much.amax(1, keepdim=True))
            goal = q + move / much.clamp_min(1.0)
        if self._base:
            drive = self.driver.goal
            goal[:, self._base] = torch.where(drive.isnan(), goal[:, self._base], drive)
        return goal

    def gripper(self, stage: np.ndarray) -> Tensor:
        """(N,) what the stage wants of the gripper."""
        return torch.tensor([s.gripper for s in self._stages])[torch.from_numpy(stage)]
