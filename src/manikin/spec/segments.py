"""How a task falls into segments, each relative to one thing: what carries demonstrations over to other starts."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GRIPPER", "WORLD", "Segment"]

WORLD = "world"
"""The frame that stands still."""
GRIPPER = "gripper"
"""In place of a flag: the gripper is told otherwise than before."""


@dataclass(frozen=True)
class Segment:
    """A stretch of a demonstration in which one thing matters: ``Segment("red", until="is_grasped", after_s=0.4)``.

    Attributes:
        frame: the motion is relative to this: a part of the scene, ``world``, or a name that ``Task.frames`` gives.
        until: the flag of ``evaluate`` whose rise ends it, or ``gripper``: the step in which the gripper is told
            otherwise than at its beginning; "" lasts to the end.
        after_s: it goes on for so long after that [s], for example until a grasped thing is lifted.
        moves: what the motion brings to the frame: something in the gripper, named like a frame; "" the tool itself.
            What lies otherwise in the hand, or is longer, is then brought to the same place.
    """

    frame: str
    until: str = ""
    after_s: float = 0.0
    moves: str = ""
