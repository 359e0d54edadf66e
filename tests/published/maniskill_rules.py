"""ManiSkill3's rewards and success, written a second time from what is published, on plain numbers.

Each rule takes a state and gives reward and success. A state has things by name, each with ``pos``, ``rot`` and speeds
``v`` and ``w``; ``tcp``, the arm's ``speed``, the gripper's ``gap``, ``grasped``, and a task's ``variables``; of robots
with several tools also ``joints``, the places of the ``tools``, and their ``forces``.
``test_published.py`` holds the rules to ManiSkill3's own numbers.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
import pytest

from manikin.props.insertion.kit import SHAPES, kit_shape

__all__ = ["REFERENCE", "covered", "pull_cube_tool"]


def _near(k: float, d: Any) -> float:
    return 1 - math.tanh(k * float(np.linalg.norm(d)))


def _pick_cube(s: Any) -> tuple[float, bool]:
    goal = s.variables["goal"]
    placed = np.linalg.norm(goal - s.cube.pos) <= 0.025
    reward = _near(5, s.tcp - s.cube.pos) + s.grasped + s.grasped * _near(5, goal - s.cube.pos)
    reward += placed * _near(5, s.speed)
    success = placed and np.abs(s.speed).max() <= 0.2
    return (5 if success else reward), success


def _pick_ycb(s: Any) -> tuple[float, bool]:
    """ManiSkill3's own, with the place where a tall thing is taken instead of its middle."""
    top = 0.0
    for g in np.flatnonzero((s.model.geom_bodyid == s.model.body("object").id) & (s.model.geom_margin == 0)):
        place, turn, mesh = s.model.geom_pos[g], np.zeros(9), int(s.model.geom_dataid[g])
        mujoco.mju_quat2Mat(turn, s.model.geom_quat[g])
        if s.model.geom_contype[g] and mesh >= 0:
            points = s.model.mesh_vert[s.model.mesh_vertadr[mesh] :][: s.model.mesh_vertnum[mesh]]
            top = max(top, (points @ turn.reshape(3, 3).T + place)[:, 2].max())
        elif s.model.geom_contype[g]:
            top = max(top, place[2] + (np.abs(turn.reshape(3, 3)) @ s.model.geom_aabb[g, 3:])[2])
    goal, grip = s.variables["goal"], s.object.pos + s.object.rot @ [0, 0, max(0.0, top - 0.035)]
    placed = np.linalg.norm(goal - s.object.pos) <= 0.025
    reward = _near(5, s.tcp - grip) + s.grasped * (1 + _near(5, goal - s.object.pos))
    reward += s.grasped * placed * (1 + _near(5, s.speed))
    success = placed and np.abs(s.speed).max() <= 0.2
    return (6 if success else reward), success


def _push_cube(s: Any) -> tuple[float, bool]:
    goal, behind = s.variables["goal"], s.cube.pos - [0.025, 0, 0]
    reward = _near(5, s.tcp - behind)
    if np.linalg.norm(s.tcp - behind) < 0.01:
        push = _near(5, (goal - s.cube.pos)[:2])
        reward += push + push * _near(5, s.cube.pos[2] - 0.02)
    success = np.linalg.norm((goal - s.cube.pos)[:2]) < 0.1 and s.cube.pos[2] < 0.025
    return (4 if success else reward), success


def _pull_cube(s: Any) -> tuple[float, bool]:
    goal, beyond = s.variables["goal"], s.cube.pos - [-0.03, 0, 0]
    reward = _near(5, s.tcp - beyond)
    if np.linalg.norm(s.tcp - beyond) < 0.01:
        reward += _near(5, (goal - s.cube.pos)[:2])
    success = np.linalg.norm((goal - s.cube.pos)[:2]) < 0.1
    return (3 if success else reward), success


def _stack_cube(s: Any) -> tuple[float, bool]:
    offset = s.red.pos - s.green.pos
    on = np.linalg.norm(offset[:2]) <= np.linalg.norm([0.02, 0.02]) + 0.005 and abs(offset[2] - 0.04) <= 0.005
    v, w = np.linalg.norm(s.red.v), np.linalg.norm(s.red.w)
    success = on and v <= 0.01 and w <= 0.5 and not s.grasped
    reward = 2 * _near(5, s.tcp - s.red.pos)
    if s.grasped:
        reward = 4 + _near(5, s.green.pos - s.red.pos + np.array([0, 0, 0.04]))
    if on:
        reward = 6 + ((s.gap if s.grasped else 1) + 1 - math.tanh(10 * v + w)) / 2
    return (8 if success else reward), success


def _poke_cube(s: Any) -> tuple[float, bool]:
    """With the peg's head at its end, and the goal's height left in the distance to it as published."""
    goal, head = s.variables["goal"], s.peg.pos + s.peg.rot @ [0.12, 0, 0]
    yaw = [math.atan2(thing.rot[1, 0], thing.rot[0, 0]) for thing in (s.peg, s.cube)]
    gap, angle = np.linalg.norm((head - s.cube.pos)[:2]), abs(yaw[0] - yaw[1])
    reward = 2 * _near(5, s.tcp - s.peg.pos)
    if s.grasped and np.linalg.norm(s.tcp - s.peg.pos) < 0.01:
        reward = 4 + _near(5, gap) + _near(5, angle)
        if angle < 0.05 and gap <= 0.025:
            reward = 7 + _near(5, goal - s.cube.pos)
    placed = np.linalg.norm((goal - s.cube.pos)[:2]) < 0.05
    reward += placed * _near(5, s.speed)
    success = placed and np.abs(s.speed).max() <= 0.2
    return (10 if success else reward), success


def pull_cube_tool(s: Any, *, published: bool = False) -> tuple[float, bool]:
    base = np.array([-0.615, 0, 0])
    success = np.linalg.norm((s.cube.pos - base)[:2]) < 0.6
    if published:
        hold, off = s.tool.pos + np.array([0.02, 0, 0]), s.tool.pos - s.cube.pos - np.array([-0.07, -0.067, 0])
    else:  # the cube's middle a centimetre before the hook's inner face, and before the middle of its free length
        hold, off = s.tool.pos + s.tool.rot @ [0.02, 0, 0], s.tool.pos + s.tool.rot @ [0.12, 0.0625, 0] - s.cube.pos
    reward = 2 * _near(5, s.tcp - hold)
    if s.grasped:
        reward += 2 + 1.5 * _near(3, off)
        if np.linalg.norm(off) < 0.05:
            home = base + np.array([0.05, 0, 0])
            whole = np.linalg.norm([0.45, 0, 0.01] - home)
            reward += 3 * (whole - np.linalg.norm(s.cube.pos - home)) / whole
    reward -= 2 * (s.cube.pos[0] > 0.5)
    if published:
        return reward + 5 * success, success
    return (10 if success else reward), success


def _roll_ball(s: Any) -> tuple[float, bool]:
    goal, away = s.variables["goal"], s.ball.pos - s.variables["goal"]
    behind = s.ball.pos + away / np.linalg.norm(away) * (0.035 + 0.05)
    reached = float(s.variables["reached"])  # set in this step or one before
    assert reached or np.linalg.norm(s.tcp - behind) >= 0.04
    success = np.linalg.norm((s.ball.pos - goal)[:2]) < 0.1
    reward = 20 * _near(1, (s.ball.pos - goal)[:2]) * reached + _near(2, s.tcp - behind) * (1 - reached) + reached
    return (30 if success else reward), success


def _transport_box(s: Any) -> tuple[float, bool]:
    """The height at which the box succeeds is MuJoCo's and not PhysX's."""
    q, right, left = s.joints, s.joints["right_shoulder_roll_joint"], s.joints["left_shoulder_roll_joint"]
    places = {side: s.box.pos + s.box.rot @ [x, 0.07, 0.05] for side, x in (("right", -0.165), ("left", 0.165))}
    ways = {side: place - s.tools[side] for side, place in places.items()}
    held = all(force > 10 and ways[side][2] > -0.04 for side, force in zip(("right", "left"), s.forces, strict=True))
    over = abs(s.box.pos[0]) < 0.78 and 0.3 < s.box.pos[1] < 1
    reward = _near(1, q["torso_joint"] + 1.4)
    if -1.7 < q["torso_joint"] < -1.4:
        reward = 1 + (_near(1, right) + _near(1, left) + _near(3, ways["right"]) + _near(3, ways["left"])) / 4
    if held:
        reward = 3 - math.tanh(abs(q["torso_joint"] - 1.4) / 5)
    if over:
        reward = 3 + (_near(1, left - 1.25) + _near(1, right + 1.25)) / 2
    success = over and not held and abs(s.box.pos[2] - (2 * 0.315306137 + 0.12)) <= 0.002
    return (5 if success else reward), success


def _place_apple_in_bowl(s: Any) -> tuple[float, bool]:
    """The bowl's middle is 0.053 m above its bottom, as the published heights of bowl and apple have it."""
    middle = s.bowl.pos + np.array([0, 0, 0.053])
    away = np.linalg.norm(middle + np.array([0, 0, 0.15]) - s.apple.pos)
    reward = _near(5, s.tools["right"] - s.apple.pos) + s.grasped * (1 + _near(5, away))
    if away < 0.025:
        fingers = [abs(s.joints[f"right_{name}_joint"]) for name in "zero one two three four five six".split()]
        reward = 4 + _near(5, away) + _near(1, np.mean(fingers))
    success = np.linalg.norm(middle - s.apple.pos) <= 0.05 and s.tools["right"][2] > middle[2] + 0.125
    return (10 if success else reward), success


def _stack_pyramid(s: Any) -> tuple[float, bool]:
    """The success that the original's page describes, and the reward of ours, since the original's is sparse."""
    apart = np.linalg.norm((s.red.pos - s.green.pos)[:2])
    beside = apart <= 0.04 * math.sqrt(2) + 0.005 and abs(s.red.pos[2] - s.green.pos[2]) <= 0.005
    over = [s.blue.pos - thing.pos for thing in (s.red, s.green)]
    on = beside and all(
        np.linalg.norm(d[:2]) <= 0.02 * math.sqrt(2) + 0.005 and abs(d[2] - 0.04) <= 0.005 for d in over
    )
    speeds = [(np.linalg.norm(thing.v), np.linalg.norm(thing.w)) for thing in (s.red, s.green, s.blue)]
    red, blue = s.flags["is_red_grasped"], s.flags["is_blue_grasped"]
    success = on and not s.grasped and all(v <= 0.01 and w <= 0.5 for v, w in speeds)
    if on or (beside and not red):
        reward = 4.0
        place = (s.red.pos + s.green.pos) / 2 + [0, 0, 0.04]
        if on:
            reward += 4 + (not blue) * (1 - math.tanh(10 * speeds[2][0] + speeds[2][1]))
        else:
            reward += 2 + 2 * _near(5, s.blue.pos - place) if blue else _near(5, s.tcp - s.blue.pos)
    else:
        reward = 2 + 2 * _near(5, max(apart - 0.04, 0)) if red else _near(5, s.tcp - s.red.pos)
    return (10 if success else reward), success


def covered(pos: Any, rot: Any, goal_pos: Any, goal_rot: Any) -> float:
    """Share of the middles of a 64 x 64 raster over 0.3 m, those in the goal's T, that are in the other T, too."""

    def inside(points: Any) -> Any:
        x, y = points[..., 0], points[..., 1]
        bar = (np.abs(x) <= 0.1) & (y >= -0.0625) & (y <= -0.0125)
        return bar | ((np.abs(x) <= 0.025) & (y >= -0.0125) & (y <= 0.1375))

    middle = (np.arange(64) + 0.5) / 64 * 0.3 - 0.15
    points = np.stack(np.meshgrid(middle, middle), -1).reshape(-1, 2)
    points = points[inside(points)]
    world = points @ np.asarray(goal_rot)[:2, :2].T + np.asarray(goal_pos)[:2]
    return float(inside((world - np.asarray(pos)[:2]) @ np.asarray(rot)[:2, :2]).mean())


def _push_t(s: Any) -> tuple[float, bool]:
    """A T that the stick has tipped is as it is seen from above, turned as its stem is."""
    off, stem, there = s.tee.pos - s.goal.pos, s.tee.rot[:2, 1], s.goal.rot[:2, 1]
    stem = stem / np.linalg.norm(stem)
    flat = np.array([[stem[1], stem[0]], [-stem[0], stem[1]]])
    success = covered(s.tee.pos, flat, s.goal.pos, s.goal.rot) >= 0.9 and s.tee.pos[2] < 0.025
    reward = ((stem @ there + 1) / 2) ** 2 / 2 + _near(5, off[:2]) ** 2 / 2
    reward += math.sqrt(_near(5, s.tee.pos - s.tcp)) / 20
    return (3 if success else reward), success


def _place_sphere(s: Any) -> tuple[float, bool]:
    offset = s.ball.pos - s.bin.pos
    on = np.linalg.norm(offset[:2]) <= 0.005 and abs(offset[2] - 0.0225) <= 0.005
    v, w = np.linalg.norm(s.ball.v), np.linalg.norm(s.ball.w)
    success = on and v <= 0.01 and w <= 0.5 and not s.grasped
    reward = 2 * _near(5, s.tcp - s.ball.pos)
    if s.grasped:
        reward = 4 + _near(5, s.bin.pos - s.ball.pos + np.array([0, 0, 0.0225]))
    if on:
        still = np.abs(s.speed).max() <= 0.2
        reward = 6 + ((s.gap if s.grasped else 16) + 1 - math.tanh(10 * v + w) + still) / 3
    return (13 if success else reward), success


def _lift_peg_upright(s: Any) -> tuple[float, bool]:
    axis = s.peg.rot[:, 0]
    tilt = math.acos(min(abs(axis[2]), 1.0))
    success = tilt < 0.08 and abs(s.peg.pos[2] - 0.12) < 0.005
    reward = abs(axis[2]) + _near(5, s.peg.pos[2] - 0.12)
    reward += 0.2 * (1 if s.grasped else _near(5, s.tcp - s.peg.pos))
    return (3 if success else reward), success


def _peg_insertion_side(s: Any) -> tuple[float, bool]:
    model = s.model
    half = model.geom_size[model.body("peg").geomadr[0]]
    first = model.body("box").geomadr[0]
    # the hole is what the walls leave free: y between the first two, z between the others
    place, size = model.geom_pos[first : first + 4], model.geom_size[first : first + 4]
    right, left = place[0, 1] - size[0, 1], place[1, 1] + size[1, 1]
    top, bottom = place[2, 2] - size[2, 2], place[3, 2] + size[3, 2]
    assert right - left == pytest.approx(2 * (half[1] + 0.003), abs=1e-6)
    assert top - bottom == pytest.approx(2 * (half[1] + 0.003), abs=1e-6)
    centre = s.box.pos + s.box.rot @ [0, (right + left) / 2, (top + bottom) / 2]
    head = s.box.rot.T @ (s.peg.pos + s.peg.rot @ [half[0], 0, 0] - centre)
    middle = s.box.rot.T @ (s.peg.pos - centre)
    success = head[0] >= -0.015 and np.abs(head[1:]).max() <= half[1] + 0.003
    a, b = np.linalg.norm(head[1:]), np.linalg.norm(middle[1:])
    reward = _near(4, s.tcp - (s.peg.pos + s.peg.rot @ [-0.06, 0, 0]))
    if s.grasped:
        reward += 1 + 3 * (1 - math.tanh(0.5 * (a + b) + 4.5 * max(a, b)))
        if a < 0.01 and b < 0.01:
            reward += 5 * _near(5, head)
    return (10 if success else reward), success


def _plug_charger(s: Any) -> tuple[float, bool]:
    """The original's success, and the reward of ours, since the original's is sparse."""
    turn = s.receptacle.rot @ np.diag([-1.0, -1.0, 1.0])  # the charger looks into the face
    away = turn.T @ (s.receptacle.pos - s.charger.pos)
    angle = math.acos(min((np.trace(turn.T @ s.charger.rot) - 1) / 2, 1.0))
    success = np.linalg.norm(away) <= 0.005 and angle <= 0.2
    reward = _near(5, s.tcp - (s.charger.pos - 0.025 * s.charger.rot[:, 0]))
    if s.grasped:
        reward += 1 + 2 * _near(5, away[1:]) + _near(1, angle)
        if np.linalg.norm(away[1:]) <= 0.005 and angle <= 0.2:
            reward += 4 * _near(10, away)
    return (10 if success else reward), success


# how often each shape looks the same in a full turn; the others only once, a disc always
_ORDERS = {
    "square": 4,
    "rectangle": 2,
    "triangle": 3,
    "pentagon": 5,
    "hexagon": 6,
    "octagon": 8,
    "star4": 4,
    "star5": 5,
}
_ORDERS |= {"star6": 6, "cross": 4, "S": 2, "H": 2, "diamond": 2, "parallelogram": 2, "ellipse": 2}


def _assembling_kits(s: Any) -> tuple[float, bool]:
    """The original's success, and the reward of ours, since the original's is sparse."""
    name = SHAPES[int(s.variables["choice/piece"])]
    goal, (x, y), height = s.recess, kit_shape(name).grip[0], 0.02
    yaw = [math.atan2(thing.rot[1, 0], thing.rot[0, 0]) for thing in (goal, s.piece)]
    alike = 2 * math.pi / _ORDERS.get(name, 1)
    turn = 0.0 if name == "disc" else abs((yaw[0] - yaw[1] + alike / 2) % alike - alike / 2)
    away = goal.pos - s.piece.pos
    over = np.linalg.norm(away[:2]) < 0.02 and turn < math.radians(4)
    success = over and s.piece.pos[2] < 0.003
    reward = _near(5, s.tcp - (s.piece.pos + s.piece.rot @ [x, y, height]))
    if s.grasped:
        reward += 1 + 2 * _near(5, away[:2]) + _near(1, turn)
        if over:
            reward += 3 * _near(20, away[2])
    return (10 if success else reward), success


def _insert_nist_peg(s: Any) -> tuple[float, bool]:
    """Of no original: success and reward as the task's page says."""
    away = s.hole.pos - s.peg.pos
    off = np.linalg.norm(away[:2])
    tilt = math.acos(min(s.peg.rot[2, 2], 1.0))
    success = off <= 0.0025 and abs(away[2]) <= 0.001 and tilt <= 0.1
    reward = _near(5, s.tcp - (s.peg.pos + s.peg.rot @ [0, 0, 0.036]))
    if s.grasped:
        reward += 1 + 3 * _near(5, off) + (off <= 0.0025) * 3 * _near(20, away[2])
    return (10 if success else reward), success


REFERENCE = {
    "AssemblingKits-v1": _assembling_kits,
    "InsertNISTPeg-v1": _insert_nist_peg,
    "LiftPegUpright-v2": _lift_peg_upright,
    "PegInsertionSide-v2": _peg_insertion_side,
    "PickClutterYCB-v2": _pick_ycb,
    "PickCube-v2": _pick_cube,
    "PickSingleYCB-v2": _pick_ycb,
    "PlaceAppleInBowl-v1": _place_apple_in_bowl,
    "PlaceSphere-v2": _place_sphere,
    "PlugCharger-v1": _plug_charger,
    "PokeCube-v1": _poke_cube,
    "PullCube-v2": _pull_cube,
    "PullCubeTool-v1": pull_cube_tool,
    "PushCube-v2": _push_cube,
    "PushT-v1": _push_t,
    "RollBall-v1": _roll_ball,
    "StackCube-v2": _stack_cube,
    "StackPyramid-v1": _stack_pyramid,
    "TransportBox-v1": _transport_box,
}
