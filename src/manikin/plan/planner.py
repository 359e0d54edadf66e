"""Collision-free motion to where the TCP or the joints should be: inverse kinematics with a margin, a path, timing::

    planner = Planner(env)
    plan = planner.plan(pose=goal)              # (N, 7) in the world, for all rows at once
    trajectory = plan.timed()                   # within the arm's limits
    q, qd, qdd = trajectory.sample(0.4)         # of every row, 0.4 s after the start

All rows are planned together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.math import pose_inv, pose_mul
from manikin.plan.batched import DENSE, Problems, Search, dense, search
from manikin.plan.collision import CollisionChecker
from manikin.plan.corners import round_corners
from manikin.plan.ompl import search_with_ompl
from manikin.plan.rows import Rows, SceneRows
from manikin.plan.timing import Limits, TimedPath, limits_of, time_path
from manikin.scene.handles import Part, Robot
from manikin.sim.device import on_host

__all__ = ["Goals", "Plan", "Planner"]

METHODS = ("batched", "ompl")


@dataclass(frozen=True)
class Goals:
    """Configurations that put the TCP where it should be, of n rows.

    Attributes:
        q: of each row (any number, joints) [rad] float64: within the joint limits, free with the margin, the nearest
            to the start first. Empty where there is none.
        reasons: (n,) why there is none, "" where there is one.
    """

    q: list[Tensor]
    reasons: list[str]

    @property
    def found(self) -> Tensor:
        """(n,) bool."""
        return torch.tensor([len(q) > 0 for q in self.q])


@dataclass(frozen=True)
class Plan:
    """Paths of n rows.

    Attributes:
        paths: of each row the corners (points, joints) [rad] float64 of its path, the start among them; where none was
            found, the start alone.
        reasons: (n,) why none was found, "" where one was.
        reach: of each row (points,) [rad] how far before and after its corners the arm leaves the path and joins it
            again; 0 where it stops. What it then does was looked at like the path.
        limits: of the arm, for ``timed``.
    """

    paths: list[Tensor]
    reach: list[Tensor]
    reasons: list[str]
    limits: Limits

    @property
    def found(self) -> Tensor:
        """(n,) bool."""
        return torch.tensor([not reason for reason in self.reasons])

    @property
    def length(self) -> Tensor:
        """(n,) [rad] of the way in joint space."""
        return torch.stack([torch.linalg.vector_norm(p.diff(dim=0), dim=1).sum() for p in self.paths])

    def timed(self, limits: Limits | None = None) -> TimedPath:
        """The motion along the paths; rows without a path stand still."""
        return time_path(self.paths, limits or self.limits, self.reach)


class Planner:
    """Plans for one robot of an environment, any number of rows at once. That is done on the CPU, wherever the
    environment is: poses and joints may be given on its device, the results are on the CPU. Rows whose layouts differ
    are planned for layout by layout.

    Args:
        env: whose rows are planned for, in their present state.
        robot: which of its robots; default the first.
        margin: [m] how near the arm may come to what is around it.
        effort: how hard to look; see :class:`~manikin.plan.batched.Search`.
        share: of the maker's limits of velocity, acceleration and jerk.
        corner: [rad] that a joint may be away from the path at a corner, so that the arm need not stop there; 0 to
            stop at each.
    """

    def __init__(
        self,
        env: Rows,
        *,
        robot: Robot | None = None,
        margin: float = 0.01,
        effort: Search | None = None,
        share: float = 0.5,
        corner: float = 0.1,
    ) -> None:
        if corner < 0:
            raise ConfigError(f"corner must be at least 0 rad, not {corner}")
        self.env, self.margin, self.effort, self.corner = env, margin, effort or Search(), corner
        name = (robot or env.robots[0]).name
        self._robot = next(k for k, one in enumerate(env.robots) if one.name == name)
        with on_host(env.device):
            self.limits = limits_of(env.robots[self._robot].arm, share=share)
        self._of_scene: dict[int, _ScenePlanner] = {}

    def goals(
        self,
        pose: Tensor,
        *,
        rows: Sequence[int] | np.ndarray | None = None,
        start: Tensor | None = None,
        held: Part | None = None,
        ignore: Iterable[Part] = (),
        count: int = 12,
    ) -> Goals:
        """Inverse kinematics with a margin: free configurations for TCP poses (n, 7) in the world.

        Args:
            pose: one for each of the rows.
            rows: default all.
            start: (n, joints) [rad]; default where the arm is.
            held: what the gripper holds and carries along; in other layouts the part of the same name.
            ignore: parts that may be touched; in other layouts those of the same names.
            count: starts of the solver per pose.
        """
        q: dict[int, Tensor] = {}
        reasons: dict[int, str] = {}
        for planner, numbers, places in self._split(rows):
            with planner.looking(numbers, start if start is None else start[places], held, ignore) as (checker, begin):
                found = planner.goals(checker, pose[places], begin, count)
            q |= zip(places.tolist(), found.q, strict=True)
            reasons |= zip(places.tolist(), found.reasons, strict=True)
        return Goals([q[r] for r in range(len(q))], [reasons[r] for r in range(len(q))])

    def plan(
        self,
        *,
        pose: Tensor | None = None,
        qpos: Tensor | None = None,
        rows: Sequence[int] | np.ndarray | None = None,
        start: Tensor | None = None,
        held: Part | None = None,
        ignore: Iterable[Part] = (),
        seed: int | Tensor = 0,
        method: str = "batched",
        count: int = 12,
    ) -> Plan:
        """Paths that keep the margin, from where the arms are (or ``start``) to TCP poses or joint positions.

        A row's path depends on its problem and its seed alone, not on the other rows.

        Args:
            pose: (n, 7) TCP poses in the world; or
            qpos: (n, joints) [rad].
            rows: which rows, in ascending order; default all.
            start: (n, joints) [rad]; default where the arm is.
            held: what the gripper holds and carries along; in other layouts the part of the same name.
            ignore: parts that may be touched; in other layouts those of the same names.
            seed: of the random choices, one number or (n,) int64.
            method: ``batched``, or ``ompl`` (one row after the other; needs ``pip install 'manikin[plan]'``).
            count: starts of the inverse kinematics per pose.
        """
        if (pose is None) == (qpos is None):
            raise ConfigError("plan() takes either pose= (TCP poses in the world) or qpos= (joint positions)")
        if method not in METHODS:
            raise UnknownNameError("planning method", method, METHODS)
        split = self._split(rows)
        n = sum(len(numbers) for _, numbers, _ in split)
        target = pose if qpos is None else qpos
        assert target is not None
        width = 7 if qpos is None else len(self.env.robots[self._robot].arm.joints)
        if target.shape != (n, width):
            raise ConfigError(f"the goals of {n} rows must be ({n}, {width}), got {tuple(target.shape)}")
        seeds = seed.cpu().numpy() if isinstance(seed, Tensor) else np.full(n, seed, np.int64)
        paths, reach, reasons = dict[int, Tensor](), dict[int, Tensor](), dict[int, str]()
        for planner, numbers, places in split:
            with planner.looking(numbers, start if start is None else start[places], held, ignore) as (checker, begin):
                part = planner.plan(checker, begin, target[places], pose is not None, seeds[places], method, count)
            at = places.tolist()
            paths |= zip(at, part.paths, strict=True)
            reach |= zip(at, part.reach, strict=True)
            reasons |= zip(at, part.reasons, strict=True)
        every = range(n)
        return Plan([paths[r] for r in every], [reach[r] for r in every], [reasons[r] for r in every], self.limits)

    def _split(self, rows: Sequence[int] | np.ndarray | None) -> list[tuple[_ScenePlanner, np.ndarray, np.ndarray]]:
        """The planner of each scene, its rows in ascending order, and their places among those that are asked for."""
        chosen = np.arange(self.env.num_envs) if rows is None else np.asarray(rows, np.int64)
        if chosen.ndim != 1 or not len(chosen) or (np.diff(chosen) <= 0).any() or chosen[-1] >= self.env.num_envs:
            raise ConfigError(f"rows must be ascending numbers below {self.env.num_envs}, got {chosen.tolist()}")
        parts = self.env.parts(chosen)
        out = []
        for part in parts:
            if id(part.env) not in self._of_scene:
                present = {id(one.env) for one in parts}
                self._of_scene = {k: one for k, one in self._of_scene.items() if k in present}  # others may be closed
                robot = part.env.robots[self._robot]
                made = _ScenePlanner(part.env, robot, self.margin, self.effort, self.corner, self.limits)
                self._of_scene[id(part.env)] = made
            order = np.argsort(part.rows, kind="stable")
            out.append((self._of_scene[id(part.env)], part.rows[order], part.places[order]))
        return out


class _ScenePlanner:
    """Plans for one robot of one scene."""

    def __init__(
        self, env: SceneRows, robot: Robot, margin: float, effort: Search, corner: float, limits: Limits
    ) -> None:
        self.env, self.robot = env, robot
        self.margin, self.effort, self.corner, self.limits = margin, effort, corner, limits
        with on_host(env.device):
            chain = self.robot.solver.chain.host
        self._low, self._high = (chain.limits[:, k].numpy() for k in (0, 1))
        self._moved = chain.moved.numpy()
        self._checkers: dict[Any, CollisionChecker] = {}

    @contextmanager
    def looking(
        self, rows: np.ndarray, start: Tensor | None, held: Part | None, ignore: Iterable[Part]
    ) -> Iterator[tuple[CollisionChecker, np.ndarray]]:
        """A checker that has seen what is around these rows, and where their arms begin (n, joints) [rad]; inside,
        tensors are made on the CPU."""
        at = self.robot.arm_qpos.cpu()[torch.from_numpy(rows)] if start is None else start
        begin = np.clip(at.detach().cpu().double().numpy(), self._low, self._high)
        held = held and self.env.thing(held.name)
        touched = tuple(self.env.thing(part.name) for part in ignore)
        key = (held and held.name, *sorted(part.name for part in touched))
        if key not in self._checkers:
            made = CollisionChecker(self.env.world, self.robot, margin=self.margin, held=held, ignore=touched)
            self._checkers[key] = made
        self._checkers[key].look(rows)
        with on_host(self.env.device):
            yield self._checkers[key], begin

    def plan(
        self,
        checker: CollisionChecker,
        begin: np.ndarray,
        target: Tensor,
        poses: bool,
        seeds: np.ndarray,
        method: str,
        count: int,
    ) -> Plan:
        """For a checker that has looked at the rows; ``target`` are TCP poses or joint positions."""
        n = len(begin)
        reasons = self._why_not(checker, begin, "the start")
        if poses:
            goals = self.goals(checker, target, begin, count)
            wanted, also = [q.numpy() for q in goals.q], goals.reasons
        else:
            end = target.detach().cpu().double().numpy()
            also = self._why_not(checker, end, "the goal")
            wanted = [end[r : r + 1] if not also[r] else end[:0] for r in range(n)]
        reasons = [one or other for one, other in zip(reasons, also, strict=True)]
        wanted = [q if not reasons[r] else q[:0] for r, q in enumerate(wanted)]
        problems = Problems(begin, wanted, self._low, self._high, self._moved, seeds)
        if method == "ompl":
            found = _ompl_paths(checker, problems, self.effort)
        else:
            found = search(checker, problems, self.effort)
        paths = [torch.from_numpy(begin[r : r + 1] if p is None else p) for r, p in enumerate(found)]
        for r, path in enumerate(found):
            if path is None and not reasons[r]:
                reasons[r] = "no path was found; give it more rounds, another seed or a smaller margin"
        rounded = round_corners(
            checker, {r: p for r, p in enumerate(found) if p is not None}, self.corner, self.effort.step
        )
        reach = [torch.from_numpy(rounded.get(r, np.zeros(1))) for r in range(n)]
        return Plan(paths, reach, reasons, self.limits)

    def goals(self, checker: CollisionChecker, pose: Tensor, start: np.ndarray, count: int) -> Goals:
        """Inverse kinematics with a margin."""
        n, joints = start.shape
        local = pose_mul(pose_inv(self.robot.base_pose.cpu()).expand(n, 7), pose.cpu())
        found = self.robot.solver.host.solutions(local[:, :3], local[:, 3:], torch.from_numpy(start), count=count)
        q = found.q.view(n, count, joints).numpy()
        reached = found.reached.view(n, count).numpy()
        which = np.arange(n)
        free = checker.free(q, which, reached)
        good = reached & free
        far = np.abs(q - start[:, None]).max(2)
        chosen, reasons = [], []
        for r in range(n):
            order = [k for k in np.argsort(far[r], kind="stable") if good[r, k]]
            kept: list[int] = []
            for k in order:
                if all(np.abs(q[r, k] - q[r, other]).max() > 0.1 for other in kept):
                    kept.append(int(k))
            chosen.append(torch.from_numpy(q[r, kept].copy()))
            if kept:
                reasons.append("")
            elif reached[r].any():
                first = int(np.flatnonzero(reached[r])[far[r][reached[r]].argmin()])
                reasons.append(_near(checker, q[r, first], r, "the goal", self.margin))
            else:
                away = found.pos_error.view(n, count)[r].min()
                reasons.append(f"the goal is out of reach: the TCP stays {float(away):.3f} m away, or its turn is")
        return Goals(chosen, reasons)

    def _why_not(self, checker: CollisionChecker, q: np.ndarray, what: str) -> list[str]:
        free = checker.free(q[:, None], np.arange(len(q)))[:, 0]
        inside = ((q >= self._low - 1e-6) & (q <= self._high + 1e-6)).all(1)
        return [
            f"{what} is beyond the joint limits"
            if not inside[r]
            else ""
            if free[r]
            else _near(checker, q[r], r, what, self.margin)
            for r in range(len(q))
        ]


def _ompl_paths(checker: CollisionChecker, problems: Problems, effort: Search) -> list[np.ndarray | None]:
    """OMPL's paths, held to the same promise: found anew, with half the step, where the dense look finds contact."""
    paths: list[np.ndarray | None] = [None] * len(problems.start)
    left = problems
    for attempt in range(effort.attempts):
        # OMPL measures the length of the joint vector, often about twice its largest joint
        found = search_with_ompl(checker, left, step=2 * effort.step / 2**attempt)
        made = {r: path for r, path in enumerate(found) if path is not None}
        if not made:
            break
        good = dense(checker, made, effort.step / DENSE)
        for r, fine in zip(made, good, strict=True):
            paths[r] = made[r] if fine else None
        again = {r for r, fine in zip(made, good, strict=True) if not fine}
        left = dataclasses.replace(left, goals=[q if r in again else q[:0] for r, q in enumerate(left.goals)])
    return paths


def _near(checker: CollisionChecker, q: np.ndarray, which: int, what: str, margin: float) -> str:
    """Why a configuration is not free."""
    one, other, distance = checker.touching(q, which)[0]
    if distance < 0:
        return f"{what} is in collision: {one} is {-1e3 * distance:.1f} mm inside {other}"
    return f"{what} is too near: {one} is {1e3 * distance:.1f} mm from {other}, the margin is {1e3 * margin:.1f} mm"
