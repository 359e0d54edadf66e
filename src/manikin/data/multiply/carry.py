"""Carries pieces of demonstrations out in new episodes: each row goes from segment to segment on its own clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.data.multiply.pieces import Piece, carried, frame_poses
from manikin.data.recording.format import RecordedEpisode
from manikin.data.replay.play import ControlStep, stepped
from manikin.env.interface import BatchEnv, SceneEnv
from manikin.math import norm, pose_inv, pose_mul, quat_angle, quat_slerp
from manikin.rng import EpisodeRng

__all__ = ["Carry", "entry", "way_to"]

_SPEED, _TURN = 0.5, 2.0  # [m/s], [rad/s] from where the tool is to where a piece begins
_AHEAD = 2  # steps ahead on the path that an action aims at
_NEAR, _TURNED, _FAR = 0.006, 0.06, 4.0  # [m], [rad] to go on along a piece; so many times that on the way to it
_PATIENCE, _TAIL = 4, 20  # steps to wait on the way, and at the end for success


def entry(now: Tensor, path: Tensor, grips: Tensor, dt: float) -> tuple[int, int]:
    """Which pose of a path (K + 1, 7) to go to from ``now`` (7,), and how many steps the way and the rest take.

    The whole then takes the least time. It is in the first quarter of the poses before the gripper is told otherwise:
    what is done with the gripper is done as demonstrated.

    Args:
        now: TCP pose.
        path: of the piece.
        grips: (K, G) what the grippers are told on it.
        dt: of a step [s].
    """
    changes = torch.nonzero((grips != grips[:1]).any(1))
    quarter = (int(changes[0]) if len(changes) else len(grips)) // 4
    some = path[: quarter + 1]
    far, turn = norm(some[:, :3] - now[:3]), quat_angle(now[3:].expand(len(some), 4), some[:, 3:])
    way = torch.ceil(torch.maximum(far / _SPEED, turn / _TURN) / dt - 1e-6)
    whole = way + torch.arange(len(path) - 1, len(path) - 1 - len(some), -1)
    best = int(whole.argmin())
    return best, int(whole[best])


def way_to(now: Tensor, first: Tensor, dt: float) -> Tensor:
    """(k, 7) poses, one per step of ``dt`` [s], that lead from the TCP pose ``now`` (7,) to ``first`` (7,)."""
    far, turn = float(norm(first[:3] - now[:3])), float(quat_angle(now[3:], first[3:]))
    steps = math.ceil(max(far / _SPEED, turn / _TURN) / dt - 1e-6)
    share = torch.arange(1, steps + 1, dtype=now.dtype) / max(steps, 1)
    pos = now[:3] + share[:, None] * (first[:3] - now[:3])
    quats = quat_slerp(now[3:].expand(steps, 4), first[3:].expand(steps, 4), share)
    return torch.cat([pos, quats], 1)


@dataclass
class _Row:
    """Where a row is: its segment, the piece that it follows and from which pose on, where the segment's frame was when
    it began, the path and what the grippers are told on it."""

    segment: int = -1
    piece: Piece | None = None
    first: int = 0
    frame: Tensor = field(default_factory=lambda: torch.zeros(7))
    path: Tensor = field(default_factory=lambda: torch.zeros(0, 7))
    grips: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    at: int = 0  # the pose to be reached next
    way: int = 0  # how many poses lead to the piece
    nearest: float = math.inf
    waited: int = 0
    tail: int = 0

    @property
    def over(self) -> bool:
        return self.at >= len(self.path)

    @property
    def holds(self) -> bool:
        """Whether the gripper is told what it was at the segment's beginning."""
        return not self.over and bool((self.grips[self.at] == self.grips[0]).all())

    def bring(self, held: Tensor) -> None:
        """What is moved lies at ``held`` (7,) in the TCP's frame now: the path brings it where it belongs."""
        assert self.piece is not None
        after = self.piece.tools[self.first + 1 :]
        self.path[len(self.path) - len(after) :] = carried(after, self.piece.frame, self.piece.held, self.frame, held)


class Carry:
    """A mover: in each segment one of the pieces that ask least of the arm is carried to where its frame is.

    Args:
        env: whose rows are moved.
        pieces: of each segment, from :func:`~manikin.data.multiply.pieces.read_pieces`.
        among: how many of those that ask least it is drawn from, by the episode's own random numbers.
    """

    def __init__(self, env: SceneEnv, pieces: Sequence[Sequence[Piece]], *, among: int = 3) -> None:
        self._env, self._pieces, self._among = env, pieces, among
        self._dt, self._robot = 1.0 / env.control_hz, env.robots[0]

    def begin(self, env: BatchEnv, batch: Sequence[RecordedEpisode], observation: Any) -> Any:
        n = env.num_envs
        self._rows = [_Row() for _ in range(n)]
        self._draws = torch.zeros(n, len(self._pieces))
        keys = (torch.tensor([getattr(e, name) for e in batch], dtype=torch.int64) for name in ("seed", "index"))
        self._draws[: len(batch)] = EpisodeRng(*keys).uniform("multiply/piece", 0.0, 1.0, (len(self._pieces),))
        return observation

    def move(self, active: np.ndarray) -> ControlStep:
        env, rows = self._env, np.flatnonzero(active)
        tools = self._tools()
        frames = frame_poses(env, env.task.segments)
        for row in rows.tolist():
            one, mine = self._rows[row], {name: value[row] for name, value in frames.items()}
            if one.over and one.segment + 1 < len(self._pieces):
                self._enter(row, tools[row], mine)
            elif one.holds and (moves := env.task.segments[one.segment].moves):
                one.bring(pose_mul(pose_inv(tools[row]), mine[moves]))
        aim, grips = tools.clone(), torch.zeros(env.num_envs, len(env.controller.card.grippers))
        for row in rows.tolist():
            one = self._rows[row]
            aim[row] = one.path[min(one.at + _AHEAD - 1, len(one.path) - 1)]
            grips[row] = one.grips[min(one.at, len(one.grips) - 1)]
        moved = stepped(env, self._actions(aim, grips), active)
        tools, over, tags = self._tools(), moved.over.copy(), np.zeros((2, env.num_envs), np.float32)
        for row in rows.tolist():
            one = self._rows[row]
            tags[:, row] = one.segment, -1 if one.piece is None else one.piece.episode
            self._advance(one, tools[row])
            over[row] |= one.tail >= _TAIL
        outcome = {**moved.outcome, "flags/segment": tags[0], "flags/source_episode": tags[1]}
        return moved._replace(outcome=outcome, over=over)

    def _tools(self) -> Tensor:
        return self._env.tcp_poses[:, 0].double().cpu().clone()

    def _enter(self, row: int, tool: Tensor, frames: dict[str, Tensor]) -> None:
        """The row begins its next segment."""
        one = self._rows[row]
        one.segment += 1
        segment, pieces = self._env.task.segments[one.segment], self._pieces[one.segment]
        held = pose_mul(pose_inv(tool), frames[segment.moves]) if segment.moves else pose_mul(pose_inv(tool), tool)
        paths = [carried(p.tools, p.frame, p.held, frames[segment.frame], held) for p in pieces]
        entries = [entry(tool, path, p.grips, self._dt) for path, p in zip(paths, pieces, strict=True)]
        asked = torch.tensor(
            [_asked(tool, path, steps * self._dt) for path, (_, steps) in zip(paths, entries, strict=True)]
        )
        few = torch.argsort(asked, stable=True)[: self._among]
        chosen = int(few[int(self._draws[row, one.segment] * len(few))])
        piece, path, first = pieces[chosen], paths[chosen], entries[chosen][0]
        before = way_to(tool, path[first], self._dt)
        told = one.grips[-1:] if len(one.grips) else piece.grips[:1]
        one.path = torch.cat([before, path[first + 1 :]])
        one.grips = torch.cat([told.expand(len(before), -1), piece.grips[first:]])
        one.piece, one.first, one.frame = piece, first, frames[segment.frame]
        one.at, one.way, one.nearest, one.waited = 0, len(before), math.inf, 0

    def _actions(self, aim: Tensor, grips: Tensor) -> Tensor:
        """(N, A) that bring the tools to ``aim`` (N, 7) within the steps that it lies ahead."""
        env, robot = self._env, self._robot
        with torch.no_grad(), env.on_device():
            goal = aim.float().to(env.device)
            local = pose_mul(pose_inv(robot.base_pose).expand_as(goal), goal)
            found = robot.solver.solve(local[:, :3], local[:, 3:], robot.arm_qpos, iterations=20, posture=0.05)
        actions = env.towards(found.q.float(), within=_AHEAD * self._dt)
        actions[:, list(env.controller.card.grippers)] = grips.to(env.device)
        return actions

    def _advance(self, one: _Row, tool: Tensor) -> None:
        """Go on along the path where the tool is near, has passed, or comes no nearer."""
        if one.over:
            one.tail += 1
            return
        last = one.at + 1 >= len(one.path)
        grips = not last and bool((one.grips[one.at + 1] != one.grips[one.at]).any())
        far = _far(tool, one.path[one.at]) / (_FAR if one.at + 1 < one.way else 1.0)
        passed = not grips and not last and _far(tool, one.path[one.at + 1]) < _far(tool, one.path[one.at])
        one.waited = 0 if far < 0.98 * one.nearest else one.waited + 1
        one.nearest = min(one.nearest, far)
        if far <= 1 or passed or one.waited >= _PATIENCE:
            one.at, one.nearest, one.waited = one.at + 1, math.inf, 0


def _far(a: Tensor, b: Tensor) -> float:
    """How far two poses (7,) are apart; up to 1 is near."""
    return max(float(norm(a[:3] - b[:3])) / _NEAR, float(quat_angle(a[3:], b[3:])) / _TURNED)


def _asked(tool: Tensor, path: Tensor, seconds: float) -> float:
    """How much a path (k, 7) of so many seconds asks of an arm whose tool is at ``tool`` (7,): a second counts as much
    as 1 rad that its end is turned."""
    return seconds + float(quat_angle(tool[3:], path[-1, 3:]))
