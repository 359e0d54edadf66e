"""How a task is carried out: the waypoints of a scripted expert, and the segments of a demonstration.

A segment is relative to one thing. That carries demonstrations over to other starts.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from manikin.errors import ConfigError

__all__ = ["FOREVER", "GRIPPER", "WORLD", "Segment", "Waypoint", "each_robot"]

WORLD = "world"
"""The frame that stands still."""
GRIPPER = "gripper"
"""In place of a flag: the gripper is told otherwise than before."""
FOREVER = 1e9
"""[s] A waypoint with such a timeout is never left; a finite number, as executors add it to times."""


@dataclass(frozen=True, kw_only=True)
class Waypoint:
    """One stage of a scripted expert, for one robot.

    An expert returns the same list of stages whenever it is asked. A row takes the pose of a stage at the moment it
    enters it, from the state of that moment, so that later stages can use where things are then. Several robots have a
    waypoint each in a stage and go on together, when all are done.

    Attributes:
        pose: (n, 7) TCP pose in the world; or, instead of it:
        joints: (n, joints) where the arm's joints go [rad or m], each as far on its way as the others: for robots with
            several tools that work together, and for fingers that are joints. ``rot_tol`` and ``turn`` then hold for
            every joint, and ``pos_tol`` and ``speed`` mean nothing.
        gripper: 1 open, -1 commanded closed.
        pos_tol, rot_tol: the stage is over when the TCP is this near [m], [rad] ...
        speed: ... moving there at most this fast [m/s] ...
        turn: ... and turning at most this fast [rad/s] ...
        dwell_s: ... and this long has passed since [s].
        timeout_s: give up on the tolerance after this long [s].
        track: take the pose anew at every step instead of once.
        avoid: go round what is in the way, on a planned path at the arm's own pace, instead of straight. Where it
            starts and ends there must be room; ``timeout_s`` counts from when the planned motion should be over.
        carries: with ``avoid``, the part that the gripper holds and takes along.
        base: (n, 3) where a base that drives goes meanwhile, no faster than the tool: x and y in the world [m] and the
            turn about z [rad]; None leaves it where it was sent before, else where it stands. With neither pose nor
            joints only the base drives, and the arm stays as it is; with joints they go to their places meanwhile. The
            stage is then over when the base is within the tolerances, and ``timeout_s`` counts from when it should be
            there. It may be a path (n, k, 3) then: the base goes through its places one after the other. One with two
            driven wheels turns to the next place, drives there straight, and only at the end turns as it is told.
        begins: a part of the task begins here, in rows whose part is this one; see ``Task.expert_part``.

    Raises:
        ConfigError: it has both a pose and joints, or none of pose, joints and base, or joints and ``avoid``, or a pose
            and a path of the base.
    """

    pose: Tensor | None = None
    gripper: float
    pos_tol: float = 0.005
    rot_tol: float = 0.05
    speed: float = 0.6
    turn: float = 3.0
    dwell_s: float = 0.0
    timeout_s: float = 2.0
    track: bool = False
    avoid: bool = False
    carries: Any = None
    base: Tensor | None = None
    name: str = ""
    joints: Tensor | None = None
    begins: bool = False

    def __post_init__(self) -> None:
        who, none = f"the waypoint {self.name!r}", self.pose is None and self.joints is None
        if (self.pose is not None and self.joints is not None) or (none and self.base is None):
            both = "neither a pose nor joints" if none else "both a pose and joints"
            raise ConfigError(f"{who} has {both}; it takes one of them, or base= alone")
        if self.pose is None and self.avoid:
            raise ConfigError(f"{who} has {'base' if none else 'joints'} and avoid=; that goes with a pose alone")
        if self.base is not None and (self.base.shape[-1] != 3 or self.base.ndim not in (2, 2 + (self.pose is None))):
            kinds = "(n, 3)" if self.pose is not None else "(n, 3) or a path (n, k, 3)"
            raise ConfigError(f"{who}: base must be {kinds}, x, y and turn, not {tuple(self.base.shape)}")

    @property
    def at(self) -> Tensor:
        """(n, 7) TCP pose in the world. Raises :class:`ConfigError` where the waypoint says where joints go."""
        if self.pose is None:
            raise ConfigError(f"the waypoint {self.name!r} has no pose of a tool")
        return self.pose

    def hold(self, seconds: float = math.inf) -> Waypoint:
        """The same waypoint, stayed at for so long [s]; by default until the episode ends."""
        return dataclasses.replace(self, pos_tol=0.0, timeout_s=min(seconds, FOREVER))


def each_robot(stage: Waypoint | tuple[Waypoint, ...]) -> tuple[Waypoint, ...]:
    """The waypoints of a stage, one per robot."""
    return (stage,) if isinstance(stage, Waypoint) else stage


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
