"""When a subtask of MS-HAB succeeds: its conditions, each a function of what is seen of all rows.

Numbers are those of :mod:`manikin.tasks.home.rules`. ``n`` is the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin.math import Constant, atan2, norm, quat_from_yaw, quat_rotate, wrap_to_pi, yaw_rotate
from manikin.tasks.home.rules import ARTICULATIONS, RULES, Common
from manikin.toolkit import constant

__all__ = [
    "COMMON",
    "SHAPES",
    "Goal",
    "Joint",
    "Seen",
    "at_goal",
    "closed",
    "heading_error",
    "in_front",
    "is_facing",
    "is_near",
    "opened",
    "rest_place",
    "slightly_closed",
    "succeeds",
]

COMMON = Common()
SHAPES = ("sphere", "cylinder", "zone")
"""Of goals, see :func:`at_goal`."""
_REST = Constant((COMMON.rest,))


@dataclass(frozen=True)
class Seen:
    """What is seen of a robot and of the object of its subtask.

    Attributes:
        base: (n, 3) place and heading of its base, x, y [m] and yaw [rad], in the world.
        tcp: (n, 3) [m] the tool, in the world.
        joints: (n, J) torso [m], then head and arm [rad], less where they rest.
        joint_speeds: (n, J) [m/s, rad/s]; base_speeds: (n, 3) along x and y, and turning [m/s, rad/s].
        grasped: (n,) bool, whether the gripper holds the object, or the handle.
        force: (n,) [N] this step's sum over the robot's links of net contact forces.
        pressed: (n,) [N] the sum of that over the steps of the subtask.
        obj: (n, 3) [m] the object, in the world.
        still: (n,) bool, whether nothing of the robot moves.
        tool_rests: (n,) bool, whether the tool is where it rests, in the frame of the base.
        loose, tight: (n,) bool, whether all joints are near rest: as near as while something is held, and nearer.
    """

    base: Tensor
    tcp: Tensor
    joints: Tensor
    joint_speeds: Tensor
    base_speeds: Tensor
    grasped: Tensor
    force: Tensor
    pressed: Tensor
    obj: Tensor
    still: Tensor
    tool_rests: Tensor
    loose: Tensor
    tight: Tensor

    def rests(self, tight: bool) -> Tensor:
        """(n,) bool: tool and joints are at rest."""
        return self.tool_rests & (self.tight if tight else self.loose)


@dataclass(frozen=True)
class Goal:
    """Where an object is to be, or the robot.

    Attributes:
        pos: (n, 3) [m].
        corners: (n, 4, 2) [m] of the rectangle of a zone, in order; None without zones.
    """

    pos: Tensor
    corners: Tensor | None = None


@dataclass(frozen=True)
class Joint:
    """A drawer or a door.

    Attributes:
        kind: ``drawer`` or ``fridge``.
        q, speed: (n,) where its joint is [m, rad] and how fast.
        limits: (n, 2).
        start: (n,) where the joint was when the subtask began.
        frame: (n, 3) x, y [m] and yaw [rad] of the frame in which the base has to stand.
        handle: (n, 3) [m].
    """

    kind: str
    q: Tensor
    speed: Tensor
    limits: Tensor
    start: Tensor
    frame: Tensor
    handle: Tensor

    def share(self, q: Tensor) -> Tensor:
        """(n,) how much of its range lies below ``q`` (n,)."""
        low, high = self.limits.unbind(1)
        return (q - low) / (high - low)


def rest_place(base: Tensor) -> Tensor:
    """(n, 3) [m] where the tool rests, of bases (n, 3) that stand on the floor."""
    rest = _REST.like(base).expand(len(base), 3)
    place = torch.cat([base[:, :2], torch.zeros_like(base[:, :1])], 1)
    return place + quat_rotate(quat_from_yaw(base[:, 2]), rest)


def at_goal(obj: Tensor, goal: Goal, shape: str = "sphere") -> Tensor:
    """(n,) bool: objects (n, 3) [m] are at their goals: within a ``sphere``, a ``cylinder`` of the same radius and
    half height, or the ``zone`` of a rectangle and that half height.

    Raises:
        ValueError: another shape, or a zone without corners.
    """
    away, near = obj - goal.pos, constant(COMMON.at_goal)
    if shape == "sphere":
        return norm(away) <= near
    level = away[:, 2].abs() <= near
    if shape == "cylinder":
        return level & (norm(away[:, :2]) <= near)
    if shape != "zone" or goal.corners is None:
        raise ValueError(f"the shape of a goal is sphere, cylinder, or zone where it has corners; not {shape!r}")
    side = torch.roll(goal.corners, -1, 1) - goal.corners
    to = obj[:, None, :2] - goal.corners
    turn = side[..., 0] * to[..., 1] - side[..., 1] * to[..., 0]
    return level & ((turn >= 0).all(1) | (turn <= 0).all(1))


def opened(joint: Joint, share: float | None = None) -> Tensor:
    """(n,) bool: open, beyond ``share`` of the range, by default the one of the rules."""
    return joint.share(joint.q) > constant(ARTICULATIONS[joint.kind].open_share if share is None else share)


def closed(joint: Joint) -> Tensor:
    """(n,) bool: shut."""
    return joint.share(joint.q) < constant(ARTICULATIONS[joint.kind].close_share)


def slightly_closed(joint: Joint) -> Tensor:
    """(n,) bool: further shut than at the start by a twentieth of the range."""
    least = constant(ARTICULATIONS[joint.kind].slightly_closed)
    return joint.share(joint.q) < joint.share(joint.start) - least


def in_front(base: Tensor, joint: Joint) -> Tensor:
    """(n,) bool: bases (n, 3) stand in the box before an articulation."""
    forth, aside = yaw_rotate(base[:, :2] - joint.frame[:, :2], -joint.frame[:, 2]).unbind(1)
    (near, far), (right, left) = ARTICULATIONS[joint.kind].front
    ahead = (forth >= constant(near)) & (forth <= constant(far))
    return ahead & (aside >= constant(right)) & (aside <= constant(left))


def heading_error(base: Tensor, goal: Tensor) -> Tensor:
    """(n,) [rad] by which bases (n, 3) face away from goals (n, 3)."""
    to = goal[:, :2] - base[:, :2]
    return wrap_to_pi(atan2(to[:, 1], to[:, 0]) - base[:, 2])


def is_facing(base: Tensor, goal: Tensor) -> Tensor:
    """(n,) bool: bases (n, 3) face goals (n, 3)."""
    return heading_error(base, goal).abs() <= constant(COMMON.heading)


def is_near(seen: Seen, goal: Tensor, joint: Joint | None = None) -> Tensor:
    """(n,) bool: the base is close enough to goals (n, 3), and before the articulation if there is one."""
    near = norm(goal[:, :2] - seen.base[:, :2]) <= constant(COMMON.near)
    return near if joint is None else near & in_front(seen.base, joint)


def succeeds(
    subtask: str,
    seen: Seen,
    goal: Goal,
    *,
    joint: Joint | None = None,
    carrying: bool = False,
    shape: str = "sphere",
    force_limit: float | None = None,
    arm_counts: bool = True,
) -> Tensor:
    """(n,) bool: the subtask is done in rows that see this.

    Args:
        subtask: ``pick``, ``place``, ``open``, ``close`` or ``navigate``.
        seen: of the rows.
        goal: of Place and Navigate.
        joint: of Open, of Close, and of Navigate to a drawer or a fridge.
        carrying: whether Navigate brings an object along.
        shape: of the goal of Place, see :func:`at_goal`.
        force_limit: [N] instead of the published one.
        arm_counts: whether Navigate asks for an arm at rest; the published evaluation of sequences does not.

    Raises:
        ValueError: Open or Close without a joint.
    """
    rules = RULES[subtask]
    gentle = seen.pressed < constant(rules.force_limit if force_limit is None else force_limit)
    done = gentle & seen.still
    tight = rules.tight and not (subtask == "navigate" and carrying)
    if subtask != "navigate" or arm_counts:
        done = done & seen.rests(tight)
        if subtask == "navigate" and carrying:
            done = done & seen.grasped
    if subtask == "pick":
        return done & seen.grasped
    if subtask == "place":
        return done & ~seen.grasped & at_goal(seen.obj, goal, shape)
    if subtask == "navigate":
        return done & is_facing(seen.base, goal.pos) & is_near(seen, goal.pos, joint)
    if joint is None:
        raise ValueError(f"{subtask} needs a joint")
    return done & (opened(joint) if subtask == "open" else closed(joint))
