"""HomeNavigate-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from manikin import (
    Episode,
    Grasp,
    Handles,
    Marker,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    VariantPart,
    Waypoint,
)
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import Home, furnish
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.homes.objects import home_objects
from manikin.math import pose_mul, yaw_rotate
from manikin.robots import fetch_mshab
from manikin.tasks.home.doors.destinations import Destinations, destinations
from manikin.tasks.home.doors.fronts import WHERE
from manikin.tasks.home.doors.inside import open_up
from manikin.tasks.home.doors.mechanisms import MechanismHandles
from manikin.tasks.home.handling import HELD_ANGLE, fitting, held_in
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.long.doors import Doors
from manikin.tasks.home.long.steps import Step
from manikin.tasks.home.numbers import STATE, from_rest, goal_from_base, numbers
from manikin.tasks.home.objects_at import Grips
from manikin.tasks.home.predicates import COMMON, Goal, Joint, Seen, is_facing, is_near, succeeds
from manikin.tasks.home.rewards import navigate_terms
from manikin.tasks.home.rules import RULES
from manikin.tasks.home.scene import LAYOUTS, Spots, about_rest, facing, needs_mobile, see, spots, within
from manikin.tasks.home.ways import stacked
from manikin.toolkit import per_step, press

__all__ = ["BEFORE", "STARTS", "HomeNavigate", "HomeNavigateHandles"]

BEFORE = ("pick", "place", "open", "close")
"""Subtasks that follow Navigate."""
STARTS = ("far", "anywhere", "previous")
"""Where the robot starts."""
_WAY = Quantity("m", note="that is to be driven, round the furniture")


@dataclass
class HomeNavigateHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    home: Home
    marker: Marker
    target: Variable  # number of the goal
    pressed: Variable  # [N] added up over control steps
    things: list[VariantPart]  # what is carried, if anything is
    grasps: list[Grasp]  # of it
    doors: dict[str, MechanismHandles]  # of the drawer or the fridge, if it is gone to


class HomeNavigate(Task):
    """Drive through an apartment to a table, a counter or a sofa, and face it.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which surface; where in
    the apartment the robot starts, more than 2 m away, and its heading; its arm's joints, a little noise about rest.
    Success: the base is within 2 m of the goal and faces it to half a radian; the tool and all joints are at rest; the
    robot stands still.

    After MS-HAB's Navigate, whose numbers are in ``manikin.tasks.home.rules``. The option ``starts`` says where the
    robot starts: ``far``, ``anywhere`` that it can drive from, as in MS-HAB's TidyHouse and SetTable (it may then be
    there already), or before a ``previous`` goal, as in its PrepareGroceries. The option ``before`` says which subtask
    follows, and so where it leads: before Place it carries an object, which it has to hold at the end; before Open and
    Close it has to stand in the box before the drawer or the fridge. MS-HAB's evaluation of whole sequences leaves the
    arm out, as ``arm_counts=False`` does here.
    There are 500 control steps.
    """

    id = "HomeNavigate-v1"
    horizon_s = 25.0
    instruction = "drive to the marked place and face it"
    labels = subtask_labels("navigate")
    robots = ("fetch_mshab",)
    robot_control: ClassVar[Mapping[str, str]] = {"fetch_mshab": fetch_mshab.CONTROL}
    layouts = LAYOUTS
    reward_max = RULES["navigate"].reward_max
    observations = {
        "joints_from_rest": Quantity("m, rad", "joint", "torso, head, arm, less where they rest"),
        "joint_speeds": Quantity("m/s, rad/s", "joint", "torso, head, arm"),
        "tcp_from_base": Quantity("m, quaternion wxyz", "base"),
        "goal_from_base": Quantity("m", "base"),
        "way": _WAY,
    }
    reward_terms = {
        "hold": "2, as nothing is carried",
        "drive": "12 near the goal; elsewhere 8 (1 - tanh(w / 10)) + 2 tanh(2 v), w the way that is left, v the speed "
        "forward",
        "face": "near the goal: 2 (1 - tanh(e / 2)) of the heading's error e; once it faces the goal, 2 and up to 3 "
        "for standing still at rest",
        "arm": "2 (1 - tanh(d / 5)) + 2 (1 - tanh(3 t)), d of the joints and t of the tool from rest",
        "gentle": "5 (1 - tanh(3 c)), c = max(0.005 F, 0.2) - 0.2, F the force on the robot's links",
    }

    @dataclass(frozen=True)
    class Config:
        arm_counts: bool = True  # whether success asks for an arm at rest
        both_ways: bool = False  # whether standing still counts negative velocities, too; as published it does not
        published_state: bool = False  # MS-HAB's 42 numbers are observed, with fingers and 0 for an object not carried
        before: str = "pick"  # the subtask that follows: pick, place, open or close; before place it carries an object
        where: str = "open"  # that is about: open surfaces, the drawer, or the fridge, which is open unless before open
        objects: tuple[str, ...] = ()  # names of what is carried; by default those of TidyHouse that fit there
        starts: str = "far"  # from the goal, anywhere, or within 2 m of a previous goal on another surface, facing that

    def __init__(self, config: Any = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        c = self.config
        for name, word, words in (
            ("before", c.before, BEFORE),
            ("where", c.where, WHERE),
            ("starts", c.starts, STARTS),
        ):
            if word not in words:
                raise UnknownNameError(f"{name} of {self.id}", word, words)
        self.carrying, self.door = c.before == "place", c.where if c.before in ("open", "close") else ""
        if self.door == "open":
            raise ConfigError(f"before {c.before} {self.id} leads to a door: say where='drawer' or where='fridge'")
        if c.objects and not self.carrying:
            raise ConfigError(f"{self.id} carries objects before place alone, not before {c.before}")
        if self.carrying:
            self.instruction = "bring the object to the marked place and face it"  # type: ignore[misc]  # of this one
            held = {"hold": "2 while the object is held, and drive only then"}
            self.reward_terms = {**self.reward_terms, **held}  # type: ignore[misc]  # likewise
        if c.published_state:
            self.observations = {**STATE, "way": _WAY}  # type: ignore[misc]  # likewise
        if self.door:
            self.instruction = f"drive to the {self.door} and face it"  # type: ignore[misc]  # likewise

    def scene(self, b: SceneBuilder) -> HomeNavigateHandles:
        c = self.config
        self._opened = "" if c.where == "open" or c.before == "open" else c.where
        self._spots = found = self.find_goals()
        starts = found.starts if c.starts == "far" else found.places[None]
        if c.starts == "previous":
            self._previous = torch.tensor(spots(self.layout).goals)
            starts = within(found.places, spots(self.layout).goals, most=COMMON.near)
        self._starts, self._goals, self._ways = map(torch.tensor, (starts, found.goals, found.ways))
        self._origin = torch.tensor(found.space.origin.tolist())
        self._last = torch.tensor(found.ways.shape[1:]) - 1
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot, fingers=self.carrying or c.published_state)
        home = furnish(b, home_of(self.layout))
        self._doors = Doors(self.layout, [Step("navigate", 0, door=self.door, opened=self._opened)])
        things = [self._carried(b)] if self.carrying else []
        return HomeNavigateHandles(
            robot=robot,
            home=home,
            marker=b.marker("goal_marker", size=(0.15,), rgba=(0.1, 0.8, 0.2, 0.5)),
            target=b.variable("target"),
            pressed=b.variable("pressed"),
            things=things,
            grasps=[b.grasp(robot, one, min_force=COMMON.grasp_force, max_angle=HELD_ANGLE) for one in things],
            doors=self._doors.declare(b, robot, home),
        )

    def _carried(self, b: SceneBuilder) -> VariantPart:
        """The object in the hand."""
        objects = home_objects(self.names())
        self._grips = Grips(objects)
        return b.mesh("object", choice=[one.prop for one in objects])

    def names(self) -> tuple[str, ...]:
        """Of the objects that are carried, in the order in which the object's choice counts them. Raises as those of
        HomePlace."""
        return fitting(self.config.where, self.config.objects)

    def find_goals(self) -> Spots | Destinations:
        """The goals of this layout."""
        c = self.config
        if (c.before, c.where) == ("pick", "open"):
            return spots(self.layout)
        return destinations(self.layout, c.before, c.where)

    def goal_number(self, h: HomeNavigateHandles, ep: Episode) -> Tensor:
        """(n,) int64 which of them it is."""
        return ep.rng.integers("goal", 0, len(self._goals))

    def start(self, h: HomeNavigateHandles, ep: Episode) -> None:
        if self._opened:
            open_up(h.home, self.layout, self._opened)
        number = self.goal_number(h, ep)
        h.target.set(number.float())
        h.marker.set_pose(self._goals[number])
        joints = about_rest(h.robot, ep, self._base(ep, number))
        opening = self.take(h, joints) if self.carrying else 0.3
        h.robot.set_qpos(joints, opening=opening)

    def _base(self, ep: Episode, number: Tensor) -> Tensor:
        """(n, 3) x, y [m] and yaw [rad] at the start of a way to the goals of these numbers (n,)."""
        starts, yaw = self._starts, ep.rng.uniform("base/yaw", -torch.pi, torch.pi)
        which = ep.rng.integers("base/place", 0, starts.shape[1])
        if self.config.starts == "far":
            place = starts[number, which]
        elif self.config.starts == "anywhere":
            place = starts[0, which]
        else:
            goals = self._previous
            previous = ep.rng.integers("base/previous", 0, len(goals))
            same = (goals[previous] == self._goals[number]).all(1)
            previous = (previous + same.long()) % len(goals)
            place = starts[previous, which]
            yaw = facing(ep, place, goals[previous])
        return torch.cat([place, yaw[:, None]], 1)

    def take(self, h: HomeNavigateHandles, joints: Tensor) -> Tensor:
        """Put the object into the hand of a robot at these joints (n, joints); (n,) how far that is open then."""
        (thing,), grips = h.things, self._grips
        tool = torch.cat(h.robot.solver.chain.fk(joints.double()), 1).float()
        tool = pose_mul(h.robot.base_pose.expand_as(tool), tool)
        pose = held_in(h.robot, grips, thing.choice, tool, from_front=self.config.where == "fridge")
        thing.set_pose(pose[:, :3], pose[:, 3:])
        return grips.opening(h.robot, thing.choice)

    def advance(self, h: HomeNavigateHandles) -> None:
        press(h.pressed, h.robot)

    @per_step
    def seen(self, h: HomeNavigateHandles) -> Seen:
        """What conditions and rewards ask of the rows."""
        grasped = h.grasps[0].value if self.carrying else torch.zeros(h.n, dtype=torch.bool)
        return see(h.robot, self.goal(h), grasped, h.pressed.value, both_ways=self.config.both_ways)

    def goal(self, h: HomeNavigateHandles) -> Tensor:
        """(n, 3) [m]; of a drawer the handle, of a fridge where that stands, at the height of its handle."""
        place = self._goals[h.target.value.long()]
        return self._doors.goal(h.doors, torch.zeros(h.n, dtype=torch.int64), place) if self.door else place

    def joint(self, h: HomeNavigateHandles) -> Joint | None:
        """The drawer or the fridge that is gone to, if one is."""
        return self._doors.joint(h.doors, self.door) if self.door else None

    def evaluate(self, h: HomeNavigateHandles) -> dict[str, Tensor]:
        seen, goal, joint = self.seen(h), self.goal(h), self.joint(h)
        arm = self.config.arm_counts
        done = succeeds("navigate", seen, Goal(goal), joint=joint, carrying=self.carrying, arm_counts=arm)
        return {
            "success": done,
            "is_near": is_near(seen, goal, joint),
            "is_facing": is_facing(seen.base, goal),
            "is_still": seen.still,
            "is_grasped": seen.grasped,
            "robot_force": h.pressed.value,
        }

    def landmarks(self, h: HomeNavigateHandles) -> dict[str, Tensor]:
        return {"goal": self.goal(h)}

    def way(self, h: HomeNavigateHandles) -> Tensor:
        """(n,) [m] that is left to drive."""
        cell = torch.round((self.seen(h).base[:, :2] - self._origin) / CELL).long()
        cell = torch.minimum(cell.clamp_min(0), self._last)
        return self._ways[h.target.value.long(), cell[:, 0], cell[:, 1]]

    def observe(self, h: HomeNavigateHandles) -> dict[str, dict[str, Tensor]]:
        seen, goal = self.seen(h), goal_from_base(h.robot, self.goal(h))
        if self.config.published_state:
            policy = numbers(h.robot, h.things[0].pose if self.carrying else None, goal, seen.grasped)
        else:
            policy = from_rest(h.robot, seen, goal)
        return {"policy": policy, "privileged": {"way": self.way(h)[:, None]}}

    def reward(self, h: HomeNavigateHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        seen = self.seen(h)
        forward = yaw_rotate(seen.base_speeds[:, :2], -seen.base[:, 2])[:, 0]
        goal, joint = self.goal(h), self.joint(h)
        return navigate_terms(seen, goal, self.way(h), forward, joint=joint, carrying=self.carrying)

    def expert(self, h: HomeNavigateHandles) -> list[Waypoint]:
        """Along a short way to where it stands before the goal, the arm at rest."""
        numbers, bases = h.target.value.long().tolist(), self.seen(h).base.numpy(force=True)
        found = [self._spots.path(number, base) for number, base in zip(numbers, bases, strict=True)]
        paths, _ = stacked(found)
        rest = h.robot.keyframe("rest").expand(h.n, -1)
        return [
            Waypoint(
                name="drive", base=paths, joints=rest, gripper=-1, pos_tol=0.05, rot_tol=0.1, speed=0.9, turn=1.5
            ).hold()
        ]
