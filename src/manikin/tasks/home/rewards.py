"""The dense rewards of MS-HAB's subtasks, term by term, as its code has them. ``n`` is the number of rows.

The published code divides the sum of the terms by ``reward_max`` of the rules; Pick's can add up to one more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.math import norm
from manikin.tasks.home import predicates
from manikin.tasks.home.predicates import COMMON, Goal, Joint, Seen
from manikin.tasks.home.rules import ARTICULATIONS, RULES
from manikin.toolkit import ONE, ZERO, closeness, constant

__all__ = ["close_terms", "navigate_terms", "open_terms", "pick_terms", "place_terms"]

_SLIGHTLY = 0.01  # [m, rad] that a joint has moved from shut


def _gentle(subtask: str, seen: Seen, force_limit: float | None = None) -> dict[str, Tensor]:
    """What every subtask but Open and Close adds for pressing on nothing."""
    rules = RULES[subtask]
    pressing = (seen.force * rules.force_scale).clamp_min(rules.force_free) - rules.force_free
    if subtask == "navigate":
        return {"gentle": 5.0 * closeness(pressing, 3.0)}
    return {
        "gentle": 3.0 * closeness(pressing, 3.0),
        "within_limit": 2.0 * (seen.pressed < constant(rules.force_limit if force_limit is None else force_limit)),
    }


def _speed(seen: Seen) -> Tensor:
    """(n,) norm of all velocities but the gripper's."""
    return norm(torch.cat([seen.base_speeds, seen.joint_speeds], 1))


def _raised(seen: Seen, torso: tuple[float, float]) -> Tensor:
    """(n,) how far the torso is raised, 0 to 1."""
    return (seen.joints[:, 0] + COMMON.torso_rest - torso[0]) / (torso[1] - torso[0])


def _if(condition: Tensor, value: Tensor) -> Tensor:
    return torch.where(condition, value, ZERO)


def pick_terms(seen: Seen, tcp_speed: Tensor, success: Tensor, force_limit: float | None = None) -> dict[str, Tensor]:
    """Terms of Pick, each (n,): reach the object, grasp it, go back to rest, hold still.

    Args:
        seen: of the rows.
        tcp_speed: (n,) [m/s].
        success: (n,) bool.
        force_limit: [N] instead of the published one.
    """
    held, to = seen.grasped, seen.obj - seen.tcp
    reach = norm(to)
    arm = closeness(norm(seen.joints), 0.2)
    to_rest = norm(seen.tcp - predicates.rest_place(seen.base))
    torso = torch.where(reach < 0.3, ONE, closeness(seen.joint_speeds[:, 0].abs(), 5.0))
    back = 2.0 + 5.0 * closeness(to_rest, 3.0) + arm + closeness(norm(seen.base_speeds), 1.0)
    return {
        "reach": 5.0 * closeness(reach, 3.0) + _if(~held, torso + closeness(norm(to[:, :2]), 5.0)),
        "slow": closeness(tcp_speed, 0.2),
        "grasp": 2.0 * held,
        "arm": arm,
        "back": _if(held, back),
        "still": _if(held & seen.rests(tight=False), 2.0 + closeness(_speed(seen), 1.0)),
        **_gentle("pick", seen, force_limit),
        "success": 3.0 * success,
    }


def place_terms(
    seen: Seen,
    goal: Goal,
    tcp_speed: Tensor,
    obj_speeds: Tensor,
    success: Tensor,
    torso: tuple[float, float],
    shape: str = "sphere",
    force_limit: float | None = None,
) -> dict[str, Tensor]:
    """Terms of Place, each (n,): bring the object over the goal, let go, go back to rest, hold still.

    Args:
        seen: of the rows.
        goal: of the object.
        tcp_speed: (n,) [m/s].
        obj_speeds: (n, 2) how fast the object moves and turns [m/s, rad/s].
        success: (n,) bool.
        torso: limits of its joint [m].
        shape: of the goal.
        force_limit: [N] instead of the published one.
    """
    there, held = predicates.at_goal(seen.obj, goal, shape), seen.grasped
    away, tool = seen.obj - goal.pos, seen.tcp - goal.pos
    forth = 6.0 - 3.0 * (torch.tanh(norm(away)) + torch.tanh(norm(tool)))
    above = (away[:, 2] - 0.05).abs() + (tool[:, 2] - 0.05).abs()
    sinking = seen.joint_speeds[:, 0].clamp_max(0.0).abs()
    carry = 2.0 * held + closeness(sinking, 5.0) + forth + 4.0 * closeness(above, 0.5)
    to_rest = norm(seen.tcp - predicates.rest_place(seen.base))
    back = 13.0 + 5.0 * closeness(to_rest, 3.0) + 4.0 * closeness(norm(seen.joints), 1.0)
    back = back + 2.0 * _raised(seen, torso) + closeness(norm(seen.base_speeds), 1.0)
    calm = 2.0 + closeness(_speed(seen), 1.0) + closeness(norm(seen.base_speeds), 1.0)
    lies = closeness(obj_speeds.sum(1) * (~held), 0.2)
    return {
        "slow": closeness(tcp_speed, 0.2) + 3.0 * lies,
        "carry": _if(~there, carry),
        "back": _if(there, back),
        "still": _if(there & seen.rests(tight=True), calm),
        **_gentle("place", seen, force_limit),
        "success": 6.0 * success,
    }


def open_terms(seen: Seen, joint: Joint, success: Tensor, torso: tuple[float, float]) -> dict[str, Tensor]:
    """Terms of Open, each (n,): reach the handle, pull it slowly, go back to rest.

    Args:
        seen: of the rows.
        joint: that is to be opened.
        success: (n,) bool.
        torso: limits of its joint [m].
    """
    rules, is_open = ARTICULATIONS[joint.kind], predicates.opened(joint)
    low, high = joint.limits.unbind(1)
    goal = low + rules.open_share * (high - low)
    left = ((goal - joint.q) / (goal - low)).clamp_min(0.0)
    reach = torch.where(seen.grasped, constant(5.0), 3.0 * closeness(norm(seen.tcp - joint.handle), 1.0))
    to_rest = norm(seen.tcp - predicates.rest_place(seen.base))
    back = 2.0 * closeness(norm(seen.joints), 1.0) + _raised(seen, torso) + 2.0 * closeness(to_rest, 1.0)
    calm = closeness(_speed(seen), 1.0)
    return {
        "reach": torch.where(is_open, constant(6.0), reach),
        "open": 6.0 * (1.0 - left) + 3.0 * (joint.q > low + _SLIGHTLY),
        "slow": 3.0 * (joint.speed <= constant(rules.fast)),
        "back": _if(is_open, back + _if(seen.rests(tight=True), calm)),
        "success": 3.0 * success,
    }


def close_terms(
    seen: Seen, joint: Joint, pushed: Tensor, success: Tensor, torso: tuple[float, float]
) -> dict[str, Tensor]:
    """Terms of Close, each (n,): reach the handle, push it, go back to rest.

    Args:
        seen: of the rows.
        joint: that is to be closed.
        pushed: (n,) bool, shut, and the tool was within 30 cm of the handle while it was.
        success: (n,) bool.
        torso: limits of its joint [m].
    """
    rules = ARTICULATIONS[joint.kind]
    low, high = joint.limits.unbind(1)
    goal = low + rules.close_share * (high - low)
    left = ((joint.q - goal) / (high - goal)).clamp_min(0.0)
    reach = torch.where(seen.grasped, constant(7.5), 7.0 * closeness(norm(seen.tcp - joint.handle), 1.0))
    away = norm(seen.joints)
    arm = 0.5 * (closeness(away, 1.0) + closeness(away, 0.2))
    to_rest = norm(seen.tcp - predicates.rest_place(seen.base))
    back = _raised(seen, torso) + closeness(to_rest, 1.0) + closeness(to_rest, 3.0)
    calm = 2.0 * closeness(_speed(seen), 1.0)
    return {
        "reach": torch.where(pushed, constant(8.0), reach),
        "close": 5.0 * (1.0 - left),
        "slow": 5.0 * (joint.speed.abs() <= constant(rules.fast)),
        "arm": torch.where(pushed, 10.0 * arm, arm),
        "back": _if(pushed, back + _if(seen.rests(tight=True), calm)),
        "success": 3.0 * (success & pushed),
    }


def navigate_terms(
    seen: Seen,
    goal: Tensor,
    way: Tensor,
    forward_speed: Tensor,
    *,
    joint: Joint | None = None,
    carrying: bool = False,
) -> dict[str, Tensor]:
    """Terms of Navigate, each (n,): drive to the goal, face it, stand still.

    Args:
        seen: of the rows.
        goal: (n, 3) [m].
        way: (n,) [m] how far it is to drive.
        forward_speed: (n,) [m/s].
        joint: the drawer or fridge to stand before; None for a place.
        carrying: whether an object is brought along.
    """
    ready = seen.grasped if carrying else torch.ones_like(seen.grasped)
    near = predicates.is_near(seen, goal, joint)
    error, facing = predicates.heading_error(seen.base, goal).abs(), predicates.is_facing(seen.base, goal)
    drive = 8.0 * closeness(way, 0.1) + 2.0 * torch.tanh(2.0 * forward_speed.clamp_min(0.0))
    stand = 2.0 + 2.0 * closeness(norm(seen.base_speeds), 1.0 / 3.0)
    stand = stand + _if(seen.tool_rests, closeness(_speed(seen), 1.0))
    to_rest = norm(seen.tcp - predicates.rest_place(seen.base))
    return {
        "hold": 2.0 * ready,
        "drive": _if(ready, torch.where(near, constant(12.0), drive)),
        "face": _if(near, torch.where(facing, stand, 2.0 * closeness(error, 0.5))),
        "arm": 2.0 * closeness(norm(seen.joints), 0.2) + 2.0 * closeness(to_rest, 3.0),
        **_gentle("navigate", seen),
    }
