"""Every number of MS-HAB's subtasks, in one table.

They are those of its code (August 2025), which made the published tables; where the paper says otherwise, a comment
does. Source: Shukla et al., ManiSkill-HAB: A Benchmark for Low-Level Manipulation in Home Rearrangement Tasks, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from manikin.robots.fetch_mshab import REST
from manikin.toolkit import LOOSE, TIGHT, Still

__all__ = ["ARTICULATIONS", "RULES", "SEQUENCES", "ArticulationRules", "Common", "SubtaskRules"]


@dataclass(frozen=True)
class Common:
    """What all subtasks share.

    Attributes:
        rest: [m] where the tool rests, in the frame of the base.
        ee_rest: [m] how far from it the tool may be. The paper prints a square with unit m.
        arm_loose, arm_tight: [rad, m] how far any joint may be from rest, with and without an object in hand. Loose
            asks of torso, head and arm; tight of head and arm, and of the torso ``torso_tight``. The paper names the
            arm alone.
        torso_rest: [m].
        still: [rad/s, m/s] of torso, head and arm; still_base: of the base. One-sided in paper and code: a negative
            velocity always passes.
        grasp_force: [N] of each finger, at least, within grasp_angle [rad] of the way that it opens.
        at_goal: [m] of an object from its goal, for spheres, cylinders and zones.
        near: [m] of the base from its goal after Navigate; heading: [rad] off it.
        spawn: [m] from the target within which Pick and Place begin.
        arm_noise, base_noise, yaw_noise: standard deviations of the start [rad, m, rad], each cut at ``noise_cut``.
    """

    rest: tuple[float, float, float] = REST
    ee_rest: float = 0.05
    arm_loose: float = LOOSE.joints
    arm_tight: float = TIGHT.joints
    torso_tight: float = TIGHT.torso
    torso_rest: float = 0.386
    still: float = Still().joints
    still_base: float = Still().base
    grasp_force: float = 0.5
    grasp_angle: float = math.radians(30)
    at_goal: float = 0.15
    near: float = 2.0
    heading: float = 0.5
    spawn: float = 2.0
    arm_noise: float = 0.1
    base_noise: float = 0.1
    yaw_noise: float = 0.25
    arm_noise_cut: float = 0.2
    base_noise_cut: float = 0.2
    yaw_noise_cut: float = 0.5


@dataclass(frozen=True)
class SubtaskRules:
    """A subtask.

    Attributes:
        number: of the subtask in MS-HAB's state of a sequence.
        horizon: control steps in which it is evaluated; training_horizon: in which it is trained.
        force_limit: [N, added up over control steps] below which the robot's contacts must stay; the paper allows the
            limit itself.
        tight: whether success asks for the tight rest. Navigate asks for it while nothing is carried.
        reward_max: of the dense reward.
        force_scale, force_free: the reward counts max(scale F, free) - free of a step's force F [N].
    """

    number: int
    horizon: int
    training_horizon: int
    force_limit: float
    tight: bool
    reward_max: float
    force_scale: float = 0.001
    force_free: float = 0.2


@dataclass(frozen=True)
class ArticulationRules:
    """A drawer or a fridge.

    Attributes:
        open_share: of the range beyond which it is open; close_share: below which it is closed.
        slightly_open, slightly_closed: shares of the range after which it counts as moved.
        fast: [rad/s, m/s] above which the reward calls it too fast.
        front: where the base must stand to open, close or navigate to it [m]: along the way it opens, and aside.
        stroke: [m, rad] the range, inferred from Habitat's goals.
    """

    open_share: float
    fast: float
    front: tuple[tuple[float, float], tuple[float, float]]
    stroke: float
    close_share: float = 0.01
    slightly_open: float = 0.1
    slightly_closed: float = 0.05


RULES: Mapping[str, SubtaskRules] = MappingProxyType(
    {
        "pick": SubtaskRules(0, 200, 100, 5000.0, tight=False, reward_max=28.0),
        "place": SubtaskRules(1, 200, 100, 7500.0, tight=True, reward_max=44.0),
        "navigate": SubtaskRules(2, 500, 1000, math.inf, tight=True, reward_max=28.0, force_scale=0.005),
        "open": SubtaskRules(3, 200, 100, 10000.0, tight=True, reward_max=27.0),
        "close": SubtaskRules(4, 200, 100, 10000.0, tight=True, reward_max=37.0),
    }
)
"""Rules by subtask."""

ARTICULATIONS: Mapping[str, ArticulationRules] = MappingProxyType(
    {
        "fridge": ArticulationRules(0.75, 2.0, ((0.933, 1.833), (-0.6, 0.6)), math.pi / 2),
        "drawer": ArticulationRules(0.9, 1.0, ((0.3, 1.5), (-0.6, 0.6)), 0.5),
    }
)
"""Rules by kind of articulation."""

_TIDY = ("pick", "place") * 5
_GROCERIES = ("pick", "place") * 3
_TABLE = ("open", "pick", "place", "close") * 2
SEQUENCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        name: tuple(word for subtask in subtasks for word in ("navigate", subtask))
        for name, subtasks in (("tidy_house", _TIDY), ("prepare_groceries", _GROCERIES), ("set_table", _TABLE))
    }
)
"""The subtasks of each long task in their order."""
