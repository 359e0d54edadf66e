"""HomeNavigate-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Handles, Marker, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.homes import Home, furnish
from manikin.homes.episodes import home_of
from manikin.homes.free_space import CELL
from manikin.math import atan2, quat_rotate_inv, yaw_rotate
from manikin.robots import fetch_mshab
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.predicates import Goal, Seen, is_facing, is_near, succeeds
from manikin.tasks.home.rewards import navigate_terms
from manikin.tasks.home.rules import RULES
from manikin.tasks.home.scene import LAYOUTS, about_rest, needs_mobile, see, spots
from manikin.tasks.home.ways import stacked
from manikin.toolkit import per_step, press, tool_from_base

__all__ = ["HomeNavigate"]


@dataclass
class HomeNavigateHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    home: Home
    marker: Marker
    target: Variable  # number of the goal
    pressed: Variable  # [N] added up over control steps


class HomeNavigate(Task):
    """Drive through an apartment to a table, a counter or a sofa, and face it.

    Randomization: which of the built-in apartments (by the episode's seed, see ``layouts``); which surface; where in
    the apartment the robot starts, more than 2 m away, and its heading; its arm's joints, a little noise about rest.
    Success: the base is within 2 m of the goal and faces it to half a radian; the tool and all joints are at rest; the
    robot stands still.

    After MS-HAB's Navigate, whose numbers are in ``manikin.tasks.home.rules``. The robot starts anywhere that it can
    drive from, as in TidyHouse. Nothing is carried. MS-HAB's evaluation of whole sequences leaves the arm out, as
    ``arm_counts=False`` does here. There are 500 control steps.
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
        "way": Quantity("m", note="that is to be driven, round the furniture"),
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

    def scene(self, b: SceneBuilder) -> HomeNavigateHandles:
        self._spots = found = spots(self.layout)
        arrays = (found.starts, found.goals, found.stands, found.ways)
        self._starts, self._goals, self._stands, self._ways = map(torch.tensor, arrays)
        self._origin = torch.tensor(found.space.origin.tolist())
        self._last = torch.tensor(found.ways.shape[1:]) - 1
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot)
        return HomeNavigateHandles(
            robot=robot,
            home=furnish(b, home_of(self.layout)),
            marker=b.marker("goal_marker", size=(0.15,), rgba=(0.1, 0.8, 0.2, 0.5)),
            target=b.variable("target"),
            pressed=b.variable("pressed"),
        )

    def start(self, h: HomeNavigateHandles, ep: Episode) -> None:
        goals, starts = self._goals, self._starts
        number = ep.rng.integers("goal", 0, len(goals))
        h.target.set(number.float())
        h.marker.set_pose(goals[number])
        place = starts[number, ep.rng.integers("base/place", 0, starts.shape[1])]
        yaw = ep.rng.uniform("base/yaw", -torch.pi, torch.pi)
        h.robot.set_qpos(about_rest(h.robot, ep, torch.cat([place, yaw[:, None]], 1)), opening=0.3)

    def advance(self, h: HomeNavigateHandles) -> None:
        press(h.pressed, h.robot)

    @per_step
    def seen(self, h: HomeNavigateHandles) -> Seen:
        """What conditions and rewards ask of the rows."""
        goal = self.goal(h)
        return see(h.robot, goal, torch.zeros(h.n, dtype=torch.bool), h.pressed.value, both_ways=self.config.both_ways)

    def goal(self, h: HomeNavigateHandles) -> Tensor:
        """(n, 3) [m]."""
        return self._goals[h.target.value.long()]

    def evaluate(self, h: HomeNavigateHandles) -> dict[str, Tensor]:
        c, seen, goal = self.config, self.seen(h), self.goal(h)
        return {
            "success": succeeds("navigate", seen, Goal(goal), arm_counts=c.arm_counts),
            "is_near": is_near(seen, goal),
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
        seen, root = self.seen(h), h.robot.root_pose
        return {
            "policy": {
                "joints_from_rest": seen.joints,
                "joint_speeds": seen.joint_speeds,
                "tcp_from_base": tool_from_base(h.robot),
                "goal_from_base": quat_rotate_inv(root[:, 3:], self.goal(h) - root[:, :3]),
            },
            "privileged": {"way": self.way(h)[:, None]},
        }

    def reward(self, h: HomeNavigateHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        seen = self.seen(h)
        forward = yaw_rotate(seen.base_speeds[:, :2], -seen.base[:, 2])[:, 0]
        return navigate_terms(seen, self.goal(h), self.way(h), forward)

    def expert(self, h: HomeNavigateHandles) -> list[Waypoint]:
        """Along the shortest way to where it stands before the goal, the arm at rest."""
        stands = self._stands[h.target.value.long()]
        base, space = self.seen(h).base, self._spots.space
        found = []
        for start, stand in zip(base.numpy(force=True), stands.numpy(force=True), strict=True):
            corners = torch.tensor(space.path(start[:2], stand[:2]), dtype=torch.float32)[1:]
            before = torch.cat([torch.tensor(start[None, :2]), corners[:-1]])
            ahead = corners - before
            yaws = atan2(ahead[:, 1], ahead[:, 0])
            yaws[-1] = float(stand[2])
            found.append(torch.cat([corners, yaws[:, None]], 1).numpy(force=True))
        paths, _ = stacked(found)
        rest = h.robot.keyframe("rest").expand(h.n, -1)
        return [
            Waypoint(
                name="drive", base=paths, joints=rest, gripper=-1, pos_tol=0.05, rot_tol=0.1, speed=0.9, turn=1.5
            ).hold()
        ]
