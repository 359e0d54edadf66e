"""robosuite's rewards and success, written a second time from what is published, on plain numbers.

Each rule takes a state and gives reward and success. A state has ``pos`` and ``rot`` of things by name, ``tcp`` (of two
arms a list), ``held`` (of a thing, or of two arms' numbers: what this arm should hold), and what else a rule asks for.
``test_published.py`` holds the rules to robosuite's own numbers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

__all__ = ["REFERENCE"]


def _near(k: float, d: Any) -> float:
    return 1 - math.tanh(k * float(np.linalg.norm(d)))


def _lift(s: Any) -> tuple[float, bool]:
    cube = s.pos["cube"]
    if cube[2] > 0.04:
        return 2.25, True
    return _near(10, s.tcp - cube) + 0.25 * s.held("cube"), False


def _stack(s: Any) -> tuple[float, bool]:
    red, green = s.pos["red"], s.pos["green"]
    lifted = red[2] > 0.04
    stacked = lifted and ("red", "green") in s.touching and not s.fingered("red")
    reach = 0.25 * _near(10, s.tcp - red) + 0.25 * s.held("red")
    lift = 1 + 0.5 * _near(1, (red - green)[:2]) if lifted else 0
    return max(reach, lift, 2.0 * stacked), stacked


def _staged(s: Any, things: dict[str, Any]) -> tuple[float, bool]:
    """Things: name -> (placed, point to reach, height still to rise, horizontal distance, over its place)."""
    active = {name: of for name, of in things.items() if not of[0]}
    count = len(things) - len(active)
    if not active:
        return float(count), True
    reach = 0.1 * max(_near(10, s.tcp - of[1]) for of in active.values())
    grasp = 0.35 * any(s.held(name) for name in active)
    lift = 0.35 + 0.15 * max(_near(15, max(of[2], 0.0)) for of in active.values()) if grasp else 0.0
    hover = max((0.5 if of[4] else lift) + 0.2 * _near(10, of[3]) for of in active.values())
    return count + max(reach, grasp, lift, hover), False


def _pick_place(names: tuple[str, ...], s: Any) -> tuple[float, bool]:
    things = {}
    for name in names:
        pos, low = s.pos[name], np.array([0.1, 0.28])
        if name in ("milk", "cereal"):
            low[0] -= 0.39 / 2
        if name in ("milk", "bread"):
            low[1] -= 0.49 / 2
        high = low + np.array([0.39, 0.49]) / 2
        inside = bool((low < pos[:2]).all() and (pos[:2] < high).all())
        placed = inside and 0 < pos[2] < 0.1 and _near(10, s.tcp - pos) < 0.6
        things[name] = (placed, pos, 0.25 - pos[2], pos[:2] - (low + high) / 2, inside)
    return _staged(s, things)


def _nuts(names: tuple[str, ...], s: Any) -> tuple[float, bool]:
    things = {}
    for name in names:
        pos, peg = s.pos[name], np.array([0.23, 0.1 if name == "square" else -0.1])
        handle = pos + s.rot[name] @ [0.054 if name == "square" else 0.06, 0, 0]
        placed = (np.abs(pos[:2] - peg) < 0.03).all() and pos[2] < 0.05 and _near(10, s.tcp - pos) < 0.6
        things[name] = (bool(placed), handle, 0.175 - pos[2], pos[:2] - peg, False)
    return _staged(s, things)


def _door(s: Any) -> tuple[float, bool]:
    if s.joint("door/hinge") > 0.3:
        return 1.0, True
    turned = abs(s.joint("door/latch")) / (math.pi / 2)
    return 0.25 * _near(10, s.tcp - s.handle) + min(0.25 * turned, 0.25), False


def _pot(s: Any) -> tuple[float, bool]:
    pos, rot = s.pos["pot"], s.rot["pot"]
    height, flat = pos[2] - 0.07, rot[2, 2] >= math.cos(math.pi / 6)
    if height > 0.1:
        return 3.0 * flat, True
    reward = 10 * min(max(height - 0.05, 0), 0.15) * flat
    for k, side in enumerate((-1, 1)):
        handle = pos + rot @ [0, side * 0.155, 0.06]
        reward += 0.5 * _near(10, s.tcp[k] - handle)
        reward += 0.25 * s.held(k)
    return reward, False


def _peg(s: Any) -> tuple[float, bool]:
    peg, plate = s.pos["peg"], s.pos["plate"]
    axis, centre = s.rot["peg"][:, 2], plate + s.rot["plate"] @ [0.1, 0, 0]
    t = (centre - peg) @ axis
    d = np.linalg.norm((peg - centre) + t * axis)
    cosine = abs(s.rot["plate"][:, 2] @ axis)
    inside = d < 0.06 and -0.12 <= t <= 0.14 and cosine > 0.95
    return _near(1, peg - plate) + _near(1, d) + _near(1, t) + cosine + inside, inside


def _handover(s: Any) -> tuple[float, bool]:
    pos, (radius, half, head) = s.pos["hammer"], s.size
    height = pos[2] - radius - (half + 2 * head) * s.rot["hammer"][2, 2]
    first, second = s.held(0), s.held(1)
    if height > 0.1:
        if second:
            return (1.5, False) if first else (2.0, True)
        return 1 + 0.25 * _near(1, s.tcp[1] - pos), False
    return (0.5 if first else 0.25 * _near(1, s.tcp[0] - pos)), False


REFERENCE = {
    "Door-v2": _door,
    "Lift-v2": _lift,
    "NutAssembly-v4": functools.partial(_nuts, ("square", "round")),
    "NutAssemblyRound-v4": functools.partial(_nuts, ("round",)),
    "NutAssemblySquare-v4": functools.partial(_nuts, ("square",)),
    "PickPlace-v2": functools.partial(_pick_place, ("milk", "bread", "cereal", "can")),
    "PickPlaceBread-v2": functools.partial(_pick_place, ("bread",)),
    "PickPlaceCan-v2": functools.partial(_pick_place, ("can",)),
    "PickPlaceCereal-v2": functools.partial(_pick_place, ("cereal",)),
    "PickPlaceMilk-v2": functools.partial(_pick_place, ("milk",)),
    "Stack-v2": _stack,
    "TwoArmHandover-v2": _handover,
    "TwoArmLift-v3": _pot,
    "TwoArmPegInHole-v2": _peg,
}
