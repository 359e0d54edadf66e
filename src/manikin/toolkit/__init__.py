"""Functions that tasks share: ``from manikin.toolkit import above, closeness, noisy_rest, per_step, top_down``."""

from manikin.toolkit.geometry import above, along_x, chosen, lies_on
from manikin.toolkit.grasps import all_fingers_touch, fingers_touch
from manikin.toolkit.labels import CLOSE, GRASP, OPEN, PICK, PLACE, transport
from manikin.toolkit.mobile import (
    LOOSE,
    TIGHT,
    Resting,
    Still,
    from_keyframe,
    is_static,
    press,
    rests,
    tool_from_base,
    tool_rests,
)
from manikin.toolkit.palms import Palm
from manikin.toolkit.rewards import bonus, closeness
from manikin.toolkit.robots import base_yaw, bearing, facing_down, finger_gap, is_still, top_down
from manikin.toolkit.starts import first_valid, full_turn, noisy_rest
from manikin.toolkit.steps import ONE, ZERO, constant, per_step
from manikin.toolkit.tolerance import TOLERANCES, tolerance
from manikin.toolkit.two_arms import ARRANGEMENTS, aside, tilted, two_robots
from manikin.toolkit.waypoints import pick

__all__ = [
    "above",
    "along_x",
    "chosen",
    "lies_on",
    "LOOSE",
    "TIGHT",
    "Resting",
    "Still",
    "from_keyframe",
    "is_static",
    "press",
    "rests",
    "tool_from_base",
    "tool_rests",
    "Palm",
    "bonus",
    "closeness",
    "base_yaw",
    "bearing",
    "facing_down",
    "finger_gap",
    "is_still",
    "top_down",
    "first_valid",
    "full_turn",
    "noisy_rest",
    "ONE",
    "ZERO",
    "constant",
    "per_step",
    "all_fingers_touch",
    "fingers_touch",
    "CLOSE",
    "GRASP",
    "OPEN",
    "PICK",
    "PLACE",
    "transport",
    "TOLERANCES",
    "tolerance",
    "ARRANGEMENTS",
    "aside",
    "tilted",
    "two_robots",
    "pick",
]
