"""How a conversion follows a recorded motion with another controller.

Between two position controllers the commanded joint positions are handed over, so that what the new one can express
comes out the same. Where one of the two commands torques there is no common command; then the recorded motion is
followed a few steps ahead, by the inverse of the new controller's response (``Controller.towards``). Either way the
loop is closed: each action starts from where the arm is. Where the new controller cannot keep up, the recorded motion
waits for it, and a recorded step becomes several.

What the fingers touch is what a demonstration is about. A part that lies otherwise in the hand than it did when
recorded is brought where it was recorded: the tool's path is moved by as much as the part is off in the hand. A tool
that cannot turn does not do that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.data.recording.format import RESIDUALS, RecordedEpisode
from manikin.data.replay.play import ControlStep, stepped
from manikin.env.arrays import to_numpy
from manikin.errors import ConfigError
from manikin.math import norm, pose_inv, pose_mul, quat_angle, quat_from_rotvec, quat_to_rotvec
from manikin.scene.handles import Part

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv, LayoutRows

__all__ = ["Trace", "Track", "Way", "hand_offset", "ways_to_follow"]

_HASTE = 4  # how often it gets less time because something is in the way, down to one step
_NEAR, _TURNED = 0.005, 0.05  # [m], [rad] the recorded motion goes on while the tool is as near as this
_GRIP, _CHANGE = 0.4, 0.05  # a share of that before a gripper's number changes by as much as this
_PATIENCE = 8  # steps to wait without coming nearer
_TAIL = 20  # steps after the last recorded one in which to succeed
_SHIFT, _TURN = 0.03, 0.3  # [m], [rad] that the tool's path is moved at most for what lies otherwise in the hand


@dataclass(frozen=True, kw_only=True)
class Way:
    """How an episode is tried.

    Attributes:
        commands: they are handed over, else the motion is followed.
        actions: they are handed over as they are, to the very controller that they are of.
        ahead: steps, by which the motion is followed.
        pace: new steps that a recorded one takes at least.
        near: how near the tool has to be for the motion to go on, as a share of the usual.
        reach: how far the path is moved at most for what lies otherwise in the hand, in multiples of the usual.
    """

    commands: bool
    ahead: int
    actions: bool = False
    pace: int = 1
    near: float = 1.0
    reach: float = 1.0


def ways_to_follow(commands: bool, actions: bool = False) -> list[Way]:
    """One after the other until it succeeds: ``actions`` where they mean the same, then quick, then with the hand
    heeded more or the path kept more or less closely, at last slow."""
    quick = [Way(commands=False, ahead=steps, reach=reach) for reach in (1.0, 0.0) for steps in (2, 4)]
    wide, careful = Way(commands=False, ahead=3, reach=2.0), Way(commands=False, ahead=3, near=0.6)
    other = [Way(commands=commands, ahead=3, near=0.6), Way(commands=False, ahead=2, near=1.5)]
    paces = ((3, 3, 0.4), (2, 2, 0.4), (5, 4, 0.4), (6, 4, 0.6), (7, 5, 0.4))
    slow = [Way(commands=False, ahead=ahead, pace=pace, near=near) for ahead, pace, near in paces]
    blind = Way(commands=False, ahead=4, pace=4, near=0.4, reach=0.0)
    same = [Way(commands=commands, ahead=3, actions=True)] if actions else []
    return list(dict.fromkeys([*same, Way(commands=commands, ahead=3), *quick, wide, careful, *other, *slow, blind]))


def hand_offset(then: Tensor, now: Tensor, *, reach: float = 1.0) -> Tensor:
    """(n, 6) [m], [rad] in the tool's axes: how to move the tool for a part that lies at ``now`` (n, 7) in the hand to
    be where it would be lying at ``then`` (n, 7); not farther than ``reach`` times the usual."""
    move = pose_mul(then, pose_inv(now))
    shift, turn = move[:, :3], quat_to_rotvec(move[:, 3:])
    return torch.cat([_within(shift, reach * _SHIFT), _within(turn, reach * _TURN)], 1)


def _within(vector: Tensor, most: float) -> Tensor:
    return vector * (most / norm(vector).clamp_min(max(most, 1e-9)))[:, None]


def _moved(pose: Tensor, by: Tensor) -> Tensor:
    """Poses (n, 7) moved by (n, 6) in their own axes."""
    return pose_mul(pose, torch.cat([by[:, :3], quat_from_rotvec(by[:, 3:])], 1))


def bodies_touched(some: LayoutRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each robot with each part of a scene: whether a finger touches it (n, pairs), where it lies in the hand
    (n, pairs, 7) float64, and which robot it is (pairs,)."""
    pairs = [
        (k, robot, grasp, grasp.part)
        for k, robot in enumerate(some.env.robots)
        for grasp in robot.grasps.values()
        if isinstance(grasp.part, Part)  # an articulation, such as a drawer, lies in no hand
    ]
    touched, lies = np.zeros((len(some.rows), len(pairs)), bool), np.zeros((len(some.rows), len(pairs), 7))
    for i, (_, robot, grasp, part) in enumerate(pairs):
        touched[:, i] = to_numpy(grasp.touches)[some.rows]
        lies[:, i] = to_numpy(pose_mul(pose_inv(robot.tcp_pose.double()), part.pose.double()))[some.rows]
    return touched, lies, np.array([k for k, *_ in pairs], np.int64)


class Trace:
    """An observer: what the arm was commanded and did, and what lay in the hand."""

    def __init__(self, env: BatchEnv) -> None:
        self._env = env
        self.commands: list[list[np.ndarray]] = []
        self.joints: list[list[np.ndarray]] = []
        self.tools: list[list[np.ndarray]] = []
        self.touched: list[list[np.ndarray]] = []
        self.lies: list[list[np.ndarray]] = []
        self.health: list[list[int]] = []  # bits, once it is over

    @property
    def _lists(self) -> tuple[list[list[Any]], ...]:
        return self.commands, self.joints, self.tools, self.touched, self.lies, self.health

    def only(self, rows: Sequence[int]) -> Trace:
        """That of some rows."""
        some = Trace(self._env)
        for kept, mine in zip(some._lists, self._lists, strict=True):
            kept[:] = [mine[row] for row in rows]
        return some

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        for kept in self._lists:
            kept[:] = [[] for _ in rows]
        self._look(rows)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        commands = to_numpy(self._env.arm_command)
        for row in rows.tolist():
            self.commands[row].append(commands[row].copy())
        self._look(rows)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        for row, bits in zip(rows.tolist(), health.tolist(), strict=True):
            self.health[row].append(int(bits))

    def _look(self, rows: np.ndarray) -> None:
        joints, tools = to_numpy(self._env.arm_qpos), to_numpy(self._env.tcp_poses)
        for row in rows.tolist():
            self.joints[row].append(joints[row].copy())
            self.tools[row].append(tools[row].copy())
        for some in self._env.parts(rows):
            touched, lies, _ = bodies_touched(some)
            for i, row in enumerate(rows[some.places].tolist()):
                self.touched[row].append(touched[i])
                self.lies[row].append(lies[i])


class Track:
    """A mover: the new controller follows what was traced, each row on its own clock."""

    def __init__(self, source: Any, trace: Trace, way: Way) -> None:
        self._trace, self._way = trace, way
        self._from = list(source.controller.card.grippers)
        self._torques = source.controller.torques

    def begin(self, env: BatchEnv, batch: Sequence[RecordedEpisode], observation: Any) -> Any:
        """Raises :class:`ConfigError` where the two controllers do not move the same grippers."""
        card, n = env.controller.card, env.num_envs
        self._to = list(card.grippers)
        if len(self._to) != len(self._from):
            raise ConfigError(
                f"{card.controller} controls {len(self._to)} grippers, but the recording has {len(self._from)}; "
                "choose a robot with as many grippers"
            )
        self._env, self._batch, self._turns = env, batch, card.turns
        self._withins = np.linspace(self._way.ahead, 1, _HASTE + 1) / env.control_hz  # [s] by haste
        self._haste = np.zeros(n, np.int64)
        self._last = np.array([len(e) - 1 for e in batch])
        self._at = np.zeros(n, np.int64)  # the recorded step that comes next
        self._begun = np.zeros(n, np.int64)  # new steps that it has taken so far, up to the pace
        self._nearest = np.full(n, np.inf)
        self._waited, self._tail = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._shift = np.zeros((n, env.tcp_poses.shape[1], 6))  # by which the tools' path is moved
        return observation

    def move(self, active: np.ndarray) -> ControlStep:
        env, rows = self._env, np.flatnonzero(active)
        at = np.minimum(self._at[rows], self._last[rows])
        moved = stepped(env, self._same(rows, at) if self._way.actions else self._action(rows, at), active)
        off = self._residual(rows, at + 1, self._look(rows, at + 1))
        outcome = {**moved.outcome, "flags/source_step": np.zeros(env.num_envs, np.float32)}
        outcome["flags/source_step"][rows] = at
        for name, value in off.items():
            outcome[f"flags/residual_{name}"] = value
        self._advance(rows, at)
        over = moved.over.copy()
        for row in rows[self._at[rows] > self._last[rows]].tolist():
            enough = not self._batch[row].success_once or outcome["success"][row]
            over[row] |= enough or self._tail[row] >= _TAIL
            self._tail[row] += 1
        return moved._replace(outcome=outcome, over=over)

    def _same(self, rows: np.ndarray, at: np.ndarray) -> torch.Tensor:
        """(N, A) the recorded actions; the rows that are not asked for stand still."""
        actions = torch.zeros(self._env.num_envs, self._env.single_action_space.shape[0])
        for row, t in zip(rows.tolist(), at.tolist(), strict=True):
            actions[row] = torch.from_numpy(self._batch[row].actions[t])
        return actions.to(self._env.device)

    def _action(self, rows: np.ndarray, at: np.ndarray) -> torch.Tensor:
        """(N, A) actions of the rows; the others stand still."""
        env, trace = self._env, self._trace
        now = to_numpy(env.arm_qpos).copy()
        ahead, handed = now.copy(), now
        for row, t in zip(rows.tolist(), at.tolist(), strict=True):
            path, told = trace.joints[row], trace.commands[row]
            # beyond its end the motion would have gone on to what was commanded last; the longer it takes, the farther
            lead = 0.0 if self._torques else 1.0 + 0.1 * self._tail[row]
            end = path[-1] + lead * (told[-1] - path[-1])
            part, whole = math.modf(t + (self._begun[row] + self._way.ahead) / self._way.pace)
            k = int(whole)
            after = path[min(k + 1, len(path) - 1)]
            ahead[row] = path[k] + part * (after - path[k]) if k < len(path) else end
            handed[row] = told[t]
        ahead[rows] = self._bring(ahead[rows], rows)
        follow = np.full(env.num_envs, not self._way.commands)
        haste = np.where(follow, self._haste, -1)[rows]
        ways = [(haste == k, ahead, within) for k, within in enumerate(self._withins)] + [(haste < 0, handed, None)]
        actions = torch.zeros(env.num_envs, env.single_action_space.shape[0])
        for those, want, within in ways:
            if those.any():
                asked = env.towards(torch.from_numpy(want).to(env.device), within=within).cpu()
                actions[rows[those]] = asked[rows[those]]
        for row, t in zip(rows.tolist(), at.tolist(), strict=True):
            actions[row, self._to] = torch.from_numpy(self._batch[row].actions[t, self._from])
        return actions.to(env.device)

    def _look(self, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
        """See how what the fingers touch lies in the hand, and move the tools' path by that; (n,) [m] by how much the
        part that is farthest off is elsewhere than recorded."""
        trace, shift = self._trace, 0.5 * self._shift[rows]  # of what nothing touches any more
        tools, was = to_numpy(self._env.tcp_poses)[rows].astype(np.float64), self._recorded(trace.tools, rows, at)
        part = np.zeros(len(rows))
        for some in self._env.parts(rows):
            touched, lies, robots = bodies_touched(some)
            mine, then = some.places, self._recorded(trace.lies, rows[some.places], at[some.places])
            both = self._recorded(trace.touched, rows[mine], at[mine]) & touched
            for i, k in enumerate(robots.tolist()):
                here, there = torch.from_numpy(lies[:, i]), torch.from_numpy(then[:, i])
                wanted = hand_offset(there, here, reach=self._way.reach).numpy()
                shift[mine, k] = np.where(both[:, i, None], wanted, shift[mine, k])
                here, there = (pose_mul(torch.from_numpy(a[mine, k]), b) for a, b in ((tools, here), (was, there)))
                part[mine] = np.maximum(part[mine], both[:, i] * norm(here[:, :3] - there[:, :3]).numpy())
        if self._turns and not self._way.commands:
            self._shift[rows] = shift
        return part

    def _bring(self, joints: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(n, joints) that bring the tools where their path is moved to."""
        out = joints.copy()
        for some in self._env.parts(rows):
            column = 0
            for k, robot in enumerate(some.env.robots):
                own, by = slice(column, column + robot.arm_joints), self._shift[rows[some.places], k]
                column, away = own.stop, by.any(1)
                mine = some.places[away]
                if len(mine):
                    q = torch.from_numpy(joints[mine, own]).to(self._env.device)
                    goal = _moved(torch.cat(robot.solver.chain.fk(q), 1), torch.from_numpy(by[away]).to(q.device))
                    found = robot.solver.solve(goal[:, :3], goal[:, 3:], q, iterations=20, posture=0.0)
                    out[mine, own] = to_numpy(found.q)
        return out

    def _recorded(self, kept: list[list[np.ndarray]], rows: np.ndarray, at: np.ndarray) -> np.ndarray:
        """(n, ...) what was traced at the instants ``at``, or at the end."""
        at = np.minimum(at, self._last[rows] + 1)
        some = np.stack([kept[row][t] for row, t in zip(rows.tolist(), at.tolist(), strict=True)])
        return some if some.dtype == bool else some.astype(np.float64)

    def _away(self, rows: np.ndarray, at: np.ndarray, moved: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(n,) [m], [rad] by how much the tools are elsewhere and turned than recorded, or than that ``moved``."""
        now = torch.from_numpy(to_numpy(self._env.tcp_poses)[rows].astype(np.float64))
        then = torch.from_numpy(self._recorded(self._trace.tools, rows, at))
        if moved is not None:
            then = _moved(then.flatten(0, 1), torch.from_numpy(moved[rows]).flatten(0, 1)).view_as(then)
        away, turned = norm(now[..., :3] - then[..., :3]), quat_angle(now[..., 3:], then[..., 3:])
        return away.amax(1).numpy(), turned.amax(1).numpy()

    def _residual(self, rows: np.ndarray, at: np.ndarray, part: np.ndarray) -> dict[str, np.ndarray]:
        """How far the rows are from the recorded instants ``at``, by the names of :data:`RESIDUALS`, (N,) float32."""
        tool, turn = self._away(rows, at)
        joints = np.abs(to_numpy(self._env.arm_qpos)[rows] - self._recorded(self._trace.joints, rows, at)).max(1)
        off = {name: np.zeros(self._env.num_envs, np.float32) for name in RESIDUALS}
        for name, value in {"joints": joints, "tool": tool, "turn": turn, "part": part}.items():
            off[name][rows] = value
        return off

    def _distance(self, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
        """(n,) of the rows' tools from their moved path; up to 1 is near."""
        tool, turn = self._away(rows, at, self._shift)
        far: np.ndarray = tool / _NEAR
        return (np.maximum(far, turn / _TURNED) if self._turns else far) / self._way.near

    def _grips(self, row: int, step: int) -> bool:
        """Whether the gripper is told something else after a recorded step; where it then is decides what follows."""
        told = self._batch[row].actions[step : step + 2, self._from]
        return len(told) == 2 and bool((np.abs(told[1] - told[0]) >= _CHANGE).any())

    def _advance(self, rows: np.ndarray, at: np.ndarray) -> None:
        """Let the recorded motion go on where the tool is near or ahead, or where waiting brings it no nearer."""
        if self._way.actions:
            self._at[rows] += 1
            return
        grips = np.array([self._grips(row, t) for row, t in zip(rows.tolist(), at.tolist(), strict=True)])
        far = self._distance(rows, at + 1) / np.where(grips, _GRIP, 1.0)
        ahead = ~grips & (self._distance(rows, at + 2) < 0.9 * far)
        better = far < 0.98 * self._nearest[rows]
        self._nearest[rows] = np.where(better, far, self._nearest[rows])
        self._waited[rows] = np.where(better, 0, self._waited[rows] + 1)
        near, stuck = far <= 1, ~ahead & ~better & ((far > 1) | (self._tail[rows] > 0))
        self._haste[rows] = np.clip(self._haste[rows] + stuck - (near & ~stuck), 0, _HASTE)
        done = self._begun[rows] + 1 >= self._way.pace
        self._begun[rows] += ~done
        on = done & (near | ahead | (self._waited[rows] >= _PATIENCE))
        self._begun[rows[on]] = 0
        self._at[rows] += on
        self._nearest[rows[on]], self._waited[rows[on]] = np.inf, 0
