"""What Pick and Place share: an apartment, Fetch, an object, and how they begin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Quantity, Robot, SceneBuilder, Task, Variable, VariantPart, Waypoint
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import Home, furnish
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.homes.objects import FROM_FRONT, HOME_OBJECTS, OBJECT_SETS, home_objects
from manikin.math import (
    Constant,
    norm,
    pose,
    pose_inv,
    pose_mul,
    quat_conj,
    quat_from_yaw,
    quat_mul,
    quat_to_yaw,
)
from manikin.robots import fetch_mshab
from manikin.tasks.home.doors.fronts import WHERE
from manikin.tasks.home.doors.inside import open_up, places_in
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.numbers import STATE, goal_from_base, numbers
from manikin.tasks.home.objects_at import Grips, ObjectPlaces, places, way_to
from manikin.tasks.home.predicates import COMMON, Seen
from manikin.tasks.home.scene import LAYOUTS, about_rest, facing, needs_mobile, see
from manikin.tasks.home.ways import stacked
from manikin.toolkit import above, constant, facing_down, fingers_touch, first_valid, per_step, press

__all__ = [
    "HELD_ANGLE",
    "SIZE",
    "HandlingHandles",
    "HandlingTask",
    "back",
    "brought",
    "drive",
    "fitting",
    "half_ready",
    "held_in",
]

SIZE = Quantity("m", "object", "of the box around it")
_TRIES = 6  # of noise on the base's place; the last has none
_TURN, _CARRIES = 2.5, 1.5  # [rad/s] of the base; with something in hand, which slips when it is turned fast
_LOW = 0.45  # [m] below this height of a place the arm, which is slow, goes down on the way
_HALFWAY = Constant((0.286, -0.27, -0.98, 0.49, 1.28, -0.16, 1.47, 0.2))  # [m, rad] of torso and arm then
_WRIST = -2, 1.8  # number among all joints, and [rad], of the wrist while it drives to what is taken from the front
HELD_ANGLE = math.degrees(COMMON.grasp_angle)
"""[degrees] of a finger's force from the way that it opens, where it holds something."""


@dataclass
class HandlingHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    home: Home
    thing: VariantPart
    grasp: Grasp
    place: Variable  # number of the place
    begun: Variable  # (3,) where the base was at the start, x, y [m] and yaw [rad]
    pressed: Variable  # [N] added up over control steps
    tool: Variable  # (4,) where the tool was after this step [m], and how fast it moved there [m/s]


class HandlingTask(Task):
    """A subtask of MS-HAB in which Fetch handles an object at one of the places of an apartment."""

    subtask: ClassVar[str]
    horizon_s = 10.0
    robots = ("fetch_mshab",)
    robot_control: ClassVar[Mapping[str, str]] = {"fetch_mshab": fetch_mshab.CONTROL}
    layouts = LAYOUTS
    observations = STATE

    @dataclass(frozen=True)
    class Config:
        where: str = "open"  # the object lies, or is to be: on open surfaces, in the open drawer, in the open fridge
        objects: tuple[str, ...] = ()  # names of manikin.homes.objects; by default those of TidyHouse that fit there
        both_ways: bool = False  # whether standing still counts negative velocities, too; as published it does not
        size_seen: bool = False  # the object's size is observed, which says which one it is; MS-HAB's numbers do not

    def __init__(self, config: Any = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        self.labels = subtask_labels(self.subtask, force_limit=self.config.force_limit)
        if len(self.config.objects) == 1:  # 024_bowl
            thing = self.config.objects[0].partition("_")[2].replace("_", " ")
            self.instruction = self.instruction.replace("the object", f"the {thing}")  # type: ignore[misc]  # likewise
        if self.config.size_seen:
            self.observations = {**STATE, "object_size": SIZE}  # type: ignore[misc]  # of this one, not of its class

    def furnished(self, b: SceneBuilder) -> HandlingHandles:
        """The apartment of this layout with the robot and the object."""
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot, fingers=True)
        objects = home_objects(self.names())
        self._opened = "" if self.config.where == "open" else self.config.where
        self._places = found = self.find_places(self._opened)
        arrays = (found.points, found.corners, found.starts, found.roomy)
        self._points, self._corners, self._starts, self._roomy = map(torch.tensor, arrays)
        self._origin = torch.tensor(found.space.origin.tolist())
        self._last = torch.tensor(found.roomy.shape) - 1
        self._grips = Grips(objects)
        self._sizes = torch.tensor([one.size for one in objects])
        home = furnish(b, home_of(self.layout))
        thing = b.mesh("object", choice=[one.prop for one in objects])
        return HandlingHandles(
            robot=robot,
            home=home,
            thing=thing,
            grasp=b.grasp(robot, thing, min_force=COMMON.grasp_force, max_angle=HELD_ANGLE),
            place=b.variable("place"),
            begun=b.variable("begun", (3,)),
            pressed=b.variable("pressed"),
            tool=b.variable("tool", (4,)),
        )

    def find_places(self, opened: str) -> ObjectPlaces:
        """The places of this layout at which the object can lie: in what is ``opened``, or on open surfaces."""
        return places_in(self.layout, opened) if opened else places(self.layout)

    def place_number(self, h: HandlingHandles, ep: Episode) -> Tensor:
        """(n,) int64 which of them it is."""
        return ep.rng.integers("place", 0, len(self._points))

    @property
    def from_front(self) -> bool:
        """Whether the gripper takes the object from the front, as under a shelf there is no room above."""
        return self.config.where == "fridge"

    def names(self) -> tuple[str, ...]:
        """Of the objects, in the order in which the object's choice counts them.

        Raises:
            UnknownNameError: there is no such place.
            ConfigError: one is too wide to be taken there.
        """
        if self.config.where not in WHERE:
            raise UnknownNameError("where", self.config.where, WHERE)
        return fitting(self.config.where, self.config.objects)

    # ---- how an episode begins ---------------------------------------------------------------------------------------

    def begin(self, h: HandlingHandles, ep: Episode) -> tuple[Tensor, Tensor]:
        """Draw a place for the object (n, 3) [m], and joints (n, arm joints) of a robot within 2 m that faces it; open
        what it is in."""
        if self._opened:
            open_up(h.home, self.layout, self._opened)
        number = self.place_number(h, ep)
        h.place.set(number.float())
        point = self._points[number]
        start = self._starts[number, ep.rng.integers("base/place", 0, self._starts.shape[1])]
        cut = COMMON.base_noise_cut
        noise = ep.rng.normal("base/noise", 0.0, COMMON.base_noise, (_TRIES, 2)).clamp(-cut, cut)
        noise[:, -1] = 0.0
        spots = start[:, None] + noise
        cell = torch.round((spots - self._origin) / CELL).long()
        cell = torch.minimum(cell.clamp_min(0), self._last)
        spot = first_valid(spots, self._roomy[cell[..., 0], cell[..., 1]])
        begun = torch.cat([spot, facing(ep, spot, point)[:, None]], 1)
        h.begun.set(begun)
        joints = about_rest(h.robot, ep, begun)
        low, high = h.robot.limits[h.robot.groups["arm"]].unbind(1)
        arm = torch.minimum(torch.maximum(joints[:, -7:], low), high)
        return point, torch.cat([joints[:, :-7], arm], 1)

    def settled(self, h: HandlingHandles) -> None:
        h.tool.set(torch.cat([h.robot.tcp_pos, torch.zeros(h.n, 1)], 1))

    def advance(self, h: Any) -> None:
        press(h.pressed, h.robot)
        now = h.robot.tcp_pos
        h.tool.set(torch.cat([now, norm(now - h.tool.value[:, :3])[:, None] * constant(self.control_hz)], 1))

    # ---- what is seen ------------------------------------------------------------------------------------------------

    @per_step
    def seen(self, h: HandlingHandles) -> Seen:
        """What conditions and rewards ask of the rows."""
        return see(h.robot, h.thing.pos, h.grasp.value, h.pressed.value, both_ways=self.config.both_ways)

    def flags(self, h: HandlingHandles) -> dict[str, Tensor]:
        """What ``evaluate`` says of both subtasks."""
        seen = self.seen(h)
        return {
            "is_grasped": seen.grasped,
            "contact": fingers_touch([h.grasp]).any(-1)[:, 0],
            "is_still": seen.still,
            "tool_rests": seen.tool_rests,
            "robot_force": h.pressed.value,
        }

    def state(self, h: HandlingHandles, goal: Tensor | None = None) -> dict[str, dict[str, Tensor]]:
        """MS-HAB's 42 numbers, with a goal (n, 3) in the world, and what else a policy is told by option."""
        to = None if goal is None else goal_from_base(h.robot, goal)
        told = {"object_size": self._sizes[h.thing.choice]} if self.config.size_seen else {}
        return {"policy": numbers(h.robot, h.thing.pose, to, h.grasp.value), "privileged": told}

    # ---- what experts share ------------------------------------------------------------------------------------------

    def drive(self, h: HandlingHandles, gripper: float) -> tuple[Waypoint, Tensor]:
        """To the nearest stand before the place, with the arm at rest, before a seat or a low table already halfway
        to it; and that stand (n, 3), x, y [m] and yaw [rad]."""
        number, begun = h.place.value.long().tolist(), h.begun.value.tolist()
        ways = [way_to(self._places, place, *base) for place, base in zip(number, begun, strict=True)]
        paths, _ = stacked(ways)
        if self.from_front:
            joints = half_ready(h.robot, h.n)
        else:
            low = self._points[h.place.value.long(), 2:] < _LOW
            rest = h.robot.keyframe("rest")
            joints = torch.where(low, torch.cat([rest[:-8], _HALFWAY.like(rest)]), rest)
        return drive("drive", paths, joints, gripper), paths[:, -1]


def fitting(where: str, objects: Sequence[str]) -> tuple[str, ...]:
    """Names of objects that can be handled where they lie: ``open``, in the ``drawer`` or in the ``fridge``; these, or
    without any those of TidyHouse.

    Raises:
        ConfigError: one is too wide to be taken there.
    """
    fit = FROM_FRONT if where == "fridge" else tuple(HOME_OBJECTS)
    names = objects or [name for name in OBJECT_SETS["tidy_house"].targets if name in fit]
    wide = [name for name in names if name in HOME_OBJECTS and name not in fit]
    if wide:
        raise ConfigError(f"{wide[0]} is too wide to be taken from the front; in the fridge can be {fit}")
    return tuple(names)


def held_in(robot: Robot, grips: Grips, choice: Tensor, tool: Tensor, *, from_front: bool) -> Tensor:
    """(n, 7) poses of objects ``choice`` (n,) that a tool at ``tool`` (n, 7) holds, as it takes them."""
    return grips.held_from_front(choice, tool) if from_front else grips.held(robot, choice, tool)


def drive(name: str, paths: Tensor, joints: Tensor, gripper: float) -> Waypoint:
    """The base along paths (n, k, 3), all other joints as in (n, joints)."""
    turn = _TURN if gripper > 0 else _CARRIES
    return Waypoint(
        name=name, base=paths, joints=joints, gripper=gripper, pos_tol=0.05, rot_tol=0.12, speed=1.0, turn=turn
    )


def half_ready(robot: Robot, n: int) -> Tensor:
    """(n, joints) rest, with the wrist, which is slow, already on its way to a hand that points ahead."""
    joints = robot.keyframe("rest").expand(n, -1).clone()
    joints[:, _WRIST[0]] = _WRIST[1]
    return joints


def back(robot: Robot, gripper: float) -> Waypoint:
    """Torso, head and arm to rest."""
    rest = robot.keyframe("rest").expand(len(robot.tcp_pos), -1)
    return Waypoint(name="rest", joints=rest, gripper=gripper, turn=2.5).hold()


def brought(robot: Robot, thing: Tensor, goal: Tensor, facing: Tensor, up: tuple[float, ...]) -> list[Tensor]:
    """(n, 7) poses of the tool that bring what it holds, at ``thing`` (n, 7), upright to ``goal`` (n, 3) [m], once so
    far ``up`` above it [m] each, turned so that the tool then faces ``facing`` (n,) [rad]."""
    in_hand = pose_mul(pose_inv(thing), robot.tcp_pose)
    own = quat_to_yaw(quat_mul(in_hand[:, 3:], quat_conj(facing_down(robot))))
    turn = quat_from_yaw(facing - own)
    return [pose_mul(pose(above(goal, one), turn), in_hand) for one in up]
