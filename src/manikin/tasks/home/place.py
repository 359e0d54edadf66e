"""HomePlace-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Marker, Robot, SceneBuilder, Variable, Waypoint
from manikin.errors import UnknownNameError
from manikin.math import norm, pose, pose_mul
from manikin.tasks.home.from_front import stowing
from manikin.tasks.home.handling import HandlingHandles, HandlingTask, back, brought, held_in
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.predicates import COMMON, SHAPES, Goal, at_goal, succeeds
from manikin.tasks.home.rewards import place_terms
from manikin.tasks.home.rules import RULES
from manikin.toolkit import above, constant, per_step

__all__ = ["HomePlace", "placing"]

_OVER = 0.1  # [m] above the goal, and above where the object was let go
_ABOVE = 0.004  # [m] it is let go so far above the surface


@dataclass
class HomePlaceHandles(HandlingHandles):
    """What the scene consists of, and ``h`` in the methods below."""

    marker: Marker
    goal: Variable  # (3,) [m]
    held: Variable  # (2,) whether the gripper held the object after this step, and after the one before


class HomePlace(HandlingTask):
    """Put the object in the gripper down on a table, a counter or a sofa, or in an open drawer or the open fridge, and
    bring the arm back to rest.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which object; which goal
    on which surface; where within 2 m of it the robot starts, about facing it; its arm's joints.
    Success: the gripper does not hold the object; that is within 15 cm of its goal; the tool and all joints are at
    rest; the robot stands still; and it has pressed on things by less than 7500 N, added up over control steps.

    After MS-HAB's Place, whose numbers are in ``manikin.tasks.home.rules``. The object is at first in the gripper as
    the expert of Pick takes it; there, as trained policies of Pick end. There are 200 control steps.
    """

    id = "HomePlace-v1"
    subtask = "place"
    instruction = "put the object down at the marked place and bring the arm back to rest"
    labels = subtask_labels("place")
    reward_max = RULES["place"].reward_max
    reward_terms: ClassVar = {
        "slow": "1 - tanh(v / 5), v of the TCP, and 3 (1 - tanh(o / 5)), o how fast the object moves and turns while "
        "it is not held",
        "carry": "away from the goal: 2 while held + 1 - tanh(5 s), s of the torso downwards + 6 - 3 (tanh(d) + "
        "tanh(t)), d of object and t of TCP from the goal + 4 (1 - tanh(a / 2)), a of both from 5 cm above it",
        "back": "at the goal: 13 + 5 (1 - tanh(3 r)) + 4 (1 - tanh(q)) + 2 u + 1 - tanh(b), r of the TCP and q of the "
        "joints from rest, u the torso's height, 0 to 1, b of the base's speeds",
        "still": "at the goal and at rest: 2 + 1 - tanh(s) + 1 - tanh(b), s of all speeds",
        "gentle": "3 (1 - tanh(3 c)), c = max(0.001 F, 0.2) - 0.2, F the force on the robot's links",
        "within_limit": "2 while the sum of F over the steps is below 7500 N",
        "success": "6",
    }

    @dataclass(frozen=True)
    class Config(HandlingTask.Config):
        goal_shape: str = "sphere"  # sphere, cylinder, or zone: anywhere on the surface
        force_limit: float = RULES["place"].force_limit  # [N] added up over steps; contacts must stay below

    def scene(self, b: SceneBuilder) -> HomePlaceHandles:
        if self.config.goal_shape not in SHAPES:
            raise UnknownNameError("goal_shape", self.config.goal_shape, SHAPES)
        things = self.furnished(b)
        return HomePlaceHandles(
            **vars(things),
            marker=b.marker("goal_marker", size=(COMMON.at_goal,), rgba=(0.1, 0.8, 0.2, 0.3)),
            goal=b.variable("goal", (3,)),
            held=b.variable("held", (2,)),
        )

    def start(self, h: HomePlaceHandles, ep: Episode) -> None:
        point, joints = self.begin(h, ep)
        choice, grips = h.thing.choice, self._grips
        goal = above(point, grips.height(choice))
        h.goal.set(goal)
        h.marker.set_pose(goal)
        tool = torch.cat(h.robot.solver.chain.fk(joints.double()), 1).float()
        tool = pose_mul(h.robot.base_pose.expand_as(tool), tool)
        thing = held_in(h.robot, grips, choice, tool, from_front=self.from_front)
        h.thing.set_pose(thing[:, :3], thing[:, 3:])
        h.robot.set_qpos(joints, opening=grips.opening(h.robot, choice))

    def advance(self, h: HomePlaceHandles) -> None:
        super().advance(h)
        h.held.set(torch.stack([h.grasp.value.float(), h.held.value[:, 0]], 1))

    def goal(self, h: HomePlaceHandles) -> Goal:
        """Where the object is to be, with the corners of the surface, which zones ask for."""
        return Goal(h.goal.value, self._corners[h.place.value.long()])

    @per_step
    def there(self, h: HomePlaceHandles) -> Tensor:
        """(n,) bool: the object is at its goal."""
        return at_goal(h.thing.pos, self.goal(h), self.config.goal_shape)

    @per_step
    def done(self, h: HomePlaceHandles) -> Tensor:
        """(n,) bool: success."""
        limit, shape = self.config.force_limit, self.config.goal_shape
        return succeeds("place", self.seen(h), self.goal(h), shape=shape, force_limit=limit)

    def evaluate(self, h: HomePlaceHandles) -> dict[str, Tensor]:
        there, released = self.there(h), (h.held.value[:, 0] == 0) & (h.held.value[:, 1] != 0)
        return {
            "success": self.done(h),
            "fail": h.pressed.value >= constant(self.config.force_limit),
            "at_goal": there,
            "released_at_goal": released & there,
            "released_outside_goal": released & ~there,
            **self.flags(h),
        }

    def landmarks(self, h: HomePlaceHandles) -> dict[str, Tensor]:
        return {"goal": h.goal.value, "object": h.thing.pos}

    def observe(self, h: HomePlaceHandles) -> dict[str, dict[str, Tensor]]:
        return self.state(h, h.goal.value)

    def reward(self, h: HomePlaceHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        thing = torch.stack([norm(h.thing.linvel), norm(h.thing.angvel_body)], 1)
        low, high = h.robot.ranges[h.robot.groups["torso"]][0].tolist()
        return place_terms(
            self.seen(h),
            self.goal(h),
            h.tool.value[:, 3],
            thing,
            self.done(h),
            (low, high),
            self.config.goal_shape,
            self.config.force_limit,
        )

    def expert(self, h: HomePlaceHandles) -> list[Waypoint]:
        drive, stand = self.drive(h, gripper=-1)
        if self.from_front:
            return [drive, *stowing(h.robot, h.thing.pose, h.goal.value, stand)]
        free = self._grips.let_go(h.robot, h.thing.choice, h.thing.pose)
        return [drive, *placing(h.robot, h.thing.pose, h.goal.value, stand[:, 2], free)]


def placing(robot: Robot, thing: Tensor, goal: Tensor, facing: Tensor, free: Tensor) -> list[Waypoint]:
    """From a stand: put what is held, at ``thing`` (n, 7), down to ``goal`` (n, 3) [m], let go, go back to rest. It is
    turned so that the tool then faces as the robot does, ``facing`` (n,) [rad]; it lets go at ``free`` (n, 7)."""
    over, down = brought(robot, thing, goal, facing, (_OVER, _ABOVE))
    up = pose(above(robot.tcp_pos, _OVER), robot.tcp_quat)
    return [
        Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.02, rot_tol=0.1, speed=1.2, turn=3.0),
        Waypoint(name="down", pose=down, gripper=-1, pos_tol=0.005, speed=0.25),
        Waypoint(name="open", pose=free, gripper=1, pos_tol=0.02),
        Waypoint(name="up", pose=up, gripper=1, pos_tol=0.03, speed=0.4),
        back(robot, gripper=1),
    ]
