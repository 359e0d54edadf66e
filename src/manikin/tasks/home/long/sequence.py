"""What the long tasks share: a sequence of subtasks, and when a row goes on to the next one.

Rows of a batch are in different subtasks at the same time. All numbers of a subtask are those that it has alone, see
:mod:`manikin.tasks.home.rules`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Robot, SceneBuilder, Task, Variable, VariantPart, Waypoint
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import Home, apartment, furnish
from manikin.homes.objects import OBJECT_SETS, home_objects
from manikin.math import atan2, norm, pose, pose_inv, pose_mul, quat_from_yaw, quat_rotate_inv
from manikin.robots import fetch_mshab
from manikin.spec.labels import Event, Labels, Mode
from manikin.tasks.home.handling import STATE, back, drive, numbers
from manikin.tasks.home.long.ways import paths_to
from manikin.tasks.home.objects_at import Grips, places
from manikin.tasks.home.pick import picking
from manikin.tasks.home.place import placing
from manikin.tasks.home.predicates import COMMON, Goal, Seen, at_goal, succeeds
from manikin.tasks.home.rules import RULES, SEQUENCES
from manikin.tasks.home.scene import LAYOUTS, about_rest, needs_mobile, see
from manikin.toolkit import above, chosen, constant, fingers_touch, full_turn, press

__all__ = ["FAILURES", "LongHandles", "LongTask", "Step"]

FAILURES = ("out_of_time", "excessive_collisions", "undone")
"""Why a row fails: a subtask took longer than its horizon, its contacts reached its limit of force, or an object that
was placed left its goal."""
_LABELS = Labels(
    events=(Event("success", "success"), *(Event(name, name) for name in FAILURES)),
    success=(Mode("all_done", "otherwise", "all subtasks, one after the other"),),
    failure=(
        Mode("undone_failure", "undone", "an object that was placed left its goal"),
        Mode("excessive_collision_failure", "excessive_collisions", "in one subtask"),
        Mode("out_of_time_failure", "otherwise", "one subtask was not done within its horizon"),
    ),
    source="the subtasks of MS-HAB's sequences",
)
_FLAGS = ("contact", "is_grasped", "at_goal", "released_at_goal", "released_outside_goal", "subtask_done")
_NAVIGATION = ("driven", "teleported")
_ASIDE = 0.7  # [rad] that the head is turned while the robot drives, more than counts as rest
_AGAIN = 40  # control steps after which a robot that stands at rest with empty hands tries again to pick


@dataclass(frozen=True)
class Step:
    """One subtask of a sequence.

    Attributes:
        kind: ``navigate``, ``pick`` or ``place``.
        target: number of the object that it is about.
        carrying: whether that is in the gripper meanwhile.
        to_goal: whether Navigate goes to the object's goal, and not to where it is.
    """

    kind: str
    target: int
    carrying: bool = False
    to_goal: bool = False

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.kind} {self.target}" if self.kind != "navigate" else f"navigate to {self._where} {self.target}"

    @property
    def _where(self) -> str:
        return "goal" if self.to_goal else "object"


@dataclass
class LongHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below. ``T`` is the number of targets."""

    robot: Robot
    home: Home
    things: list[VariantPart]  # T targets
    grasps: list[Grasp]  # of each
    subtask: Variable  # number of the present subtask; that of all once they are done
    steps: Variable  # control steps in it
    pressed: Variable  # [N] added up over them
    failed: Variable  # 0, or 1 + the number of the failure
    begun: Variable  # (3,) where the base was when its expert began, x, y [m] and yaw [rad]
    tries: Variable  # how often an expert has begun
    spawns: Variable  # (S + 1, 3) where the base is put when a subtask begins, if it is put anywhere
    resting: Variable  # control steps that the robot has stood at rest with empty hands in Pick
    start_place: Variable  # (T,) numbers of places
    goal_place: Variable  # (T,)
    goal: Variable  # (T, 3) [m]
    held: Variable  # (2,) whether the present object was held after this step, and after the one before
    judged: Variable  # flags of the subtask that the last step belonged to, and its number


class LongTask(Task):
    """A sequence of subtasks with several objects in an apartment.

    Randomization: that of the tasks.
    Success: that of the tasks.
    """

    sequence: ClassVar[str]
    labels = _LABELS
    skills: ClassVar[tuple[str, ...]] = ("navigate", "pick", "place")
    robots = ("fetch_mshab",)
    robot_control: ClassVar[Mapping[str, str]] = {"fetch_mshab": fetch_mshab.CONTROL}
    layouts = LAYOUTS
    observations = STATE
    reward_max = 2.0
    reward_terms: ClassVar = {"progress": "the share of the subtasks that are done", "success": "1 in success"}

    @dataclass(frozen=True)
    class Config:
        targets: int = 0  # how many of the objects, the first ones; 0 for all
        objects: tuple[str, ...] = OBJECT_SETS["tidy_house"].targets  # names of manikin.homes.objects
        arm_counts: bool = True  # whether Navigate asks for an arm at rest; the published evaluation does not
        navigation: str = "driven"  # or teleported: without Navigate; the robot is put where each subtask may begin
        both_ways: bool = False  # whether standing still counts negative velocities, too; as published it does not

    def steps(self) -> tuple[Step, ...]:
        """The subtasks in their order.

        Raises:
            ConfigError: there are not so many targets.
        """
        if self.config.navigation not in _NAVIGATION:
            raise UnknownNameError("navigation", self.config.navigation, _NAVIGATION)
        words, found = SEQUENCES[self.sequence], []
        count = words.count("place")
        wanted = self.config.targets or count
        if not 1 <= wanted <= count:
            raise ConfigError(f"{self.id} has 1 to {count} targets, not {wanted}")
        target, carrying = 0, False
        for i, kind in enumerate(words):
            if target == wanted:
                break
            after = words[i + 1] if kind == "navigate" else ""
            found.append(Step(kind, target, carrying or kind == "place", to_goal=after == "place"))
            carrying = kind == "pick" or (carrying and kind == "navigate")
            target += kind == "place"
        if self.config.navigation == "teleported":
            found = [step for step in found if step.kind != "navigate"]
        return tuple(found)

    def scene(self, b: SceneBuilder) -> LongHandles:
        self._steps = steps = self.steps()
        self._count = count = 1 + max(step.target for step in steps)
        parts = ("drive", "carry", "pick", "place")  # as they follow one another in the expert
        seen = (*steps, steps[-1])  # once all are done, rows are seen as in the last
        of = [("carry" if s.carrying else "drive") if s.kind == "navigate" else s.kind for s in seen]
        self._part = torch.tensor([parts.index(part) for part in of])
        self._target = torch.tensor([s.target for s in seen])
        self._to_goal = torch.tensor([s.to_goal or s.kind == "place" for s in seen])
        self._horizon = torch.tensor([RULES[s.kind].horizon for s in seen])
        self._limit = torch.tensor([RULES[s.kind].force_limit for s in seen])
        before = [steps[:k] for k in range(len(seen))]
        placed = [[any(s.kind == "place" and s.target == k for s in some) for k in range(count)] for some in before]
        self._placed = torch.tensor(placed)  # (subtasks + 1, targets)
        found = places(self.layout)
        self._points, self._starts = torch.tensor(found.points), torch.tensor(found.starts)
        objects = home_objects(tuple(self.config.objects))
        self._grips = Grips(objects)
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot)
        home = furnish(b, apartment(LAYOUTS.index(self.layout)))
        props = [one.prop for one in objects]
        things = [b.mesh(f"object{k}", choice=props) for k in range(count)]
        angle = math.degrees(COMMON.grasp_angle)
        return LongHandles(
            robot=robot,
            home=home,
            things=things,
            grasps=[b.grasp(robot, thing, min_force=COMMON.grasp_force, max_angle=angle) for thing in things],
            subtask=b.variable("subtask"),
            steps=b.variable("steps"),
            pressed=b.variable("pressed"),
            failed=b.variable("failed"),
            begun=b.variable("begun", (3,)),
            tries=b.variable("tries"),
            spawns=b.variable("spawns", (len(steps) + 1, 3)),
            resting=b.variable("resting"),
            start_place=b.variable("start_place", (count,)),
            goal_place=b.variable("goal_place", (count,)),
            goal=b.variable("goal", (count, 3)),
            held=b.variable("held", (2,)),
            judged=b.variable("judged", (len(_FLAGS) + 2,)),
        )

    # ---- how an episode begins ---------------------------------------------------------------------------------------

    def start(self, h: LongHandles, ep: Episode) -> None:
        count = len(h.things)
        order = ep.rng.uniform("places", 0.0, 1.0, (len(self._points),)).argsort(dim=1, stable=True)
        h.start_place.set(order[:, :count].float())
        h.goal_place.set(order[:, count : 2 * count].float())
        height = torch.stack([self._grips.height(thing.choice) for thing in h.things], 1)
        starts, goals = (self._points[order[:, k * count : (k + 1) * count]] for k in (0, 1))
        goals = torch.cat([goals[..., :2], goals[..., 2:] + height[..., None]], 2)
        h.goal.set(goals)
        for k, thing in enumerate(h.things):
            thing.set_pose(above(starts[:, k], height[:, k]), full_turn(ep, f"object{k}/yaw"))
        h.spawns.set(self._spawns(order, ep))
        if self.config.navigation == "teleported":
            begun = h.spawns.value[:, 0]
        else:
            number = ep.rng.integers("base/near", 0, len(self._points))  # anywhere: the start of another place
            place = self._starts[number, ep.rng.integers("base/place", 0, self._starts.shape[1])]
            begun = torch.cat([place, ep.rng.uniform("base/yaw", -torch.pi, torch.pi)[:, None]], 1)
        h.begun.set(begun)
        h.robot.set_qpos(about_rest(h.robot, ep, begun), opening=0.3)

    def _spawns(self, order: Tensor, ep: Episode) -> Tensor:
        """(n, S + 1, 3) of each subtask a place within 2 m of what it is about, and a heading that about faces it."""
        many = len(self._target)
        number = order[:, self._target + self._count * self._to_goal]
        starts = ep.rng.integers("spawns/place", 0, self._starts.shape[1], (many,))
        spot, point = self._starts[number, starts], self._points[number]
        cut = COMMON.yaw_noise_cut
        noise = ep.rng.normal("spawns/yaw", 0.0, COMMON.yaw_noise, (many,)).clamp(-cut, cut)
        to = point[..., :2] - spot
        return torch.cat([spot, (atan2(to[..., 1], to[..., 0]) + noise)[..., None]], 2)

    # ---- how it goes on ----------------------------------------------------------------------------------------------

    def of_target(self, h: LongHandles, each: Sequence[Tensor]) -> Tensor:
        """(n, ...) of the object that the rows' present subtask is about, from those (n, ...) of each."""
        return chosen(each, self._target[h.subtask.value.long()])

    def place_number(self, h: LongHandles) -> Tensor:
        """(n,) int64 number of the place that the rows' present subtask is about."""
        now = h.subtask.value.long()
        both = torch.where(self._to_goal[now][:, None], h.goal_place.value, h.start_place.value).long()
        return both.gather(1, self._target[now][:, None]).squeeze(1)

    def goal(self, h: LongHandles) -> Tensor:
        """(n, 3) [m] where the rows' present subtask leads: to the object's goal, or to the object."""
        to_goal = self._to_goal[h.subtask.value.long()][:, None]
        return torch.where(
            to_goal, self.of_target(h, h.goal.value.unbind(1)), self.of_target(h, [t.pos for t in h.things])
        )

    def seen(self, h: LongHandles) -> Seen:
        """What conditions ask of the rows."""
        grasped = self.of_target(h, [grasp.value for grasp in h.grasps])
        thing = self.of_target(h, [thing.pos for thing in h.things])
        return see(h.robot, thing, grasped, h.pressed.value, both_ways=self.config.both_ways)

    def done(self, h: LongHandles, seen: Seen) -> Tensor:
        """(n,) bool: the present subtask's conditions hold."""
        goal, arm = Goal(self.goal(h)), self.config.arm_counts
        each = [
            succeeds("navigate", seen, goal, arm_counts=arm),
            succeeds("navigate", seen, goal, arm_counts=arm, carrying=True),
            succeeds("pick", seen, goal),
            succeeds("place", seen, goal),
        ]
        return chosen(each, self._part[h.subtask.value.long()])

    def advance(self, h: LongHandles) -> None:
        press(h.pressed, h.robot)
        now, row, seen = h.subtask.value.long(), torch.arange(h.n), self.seen(h)
        h.steps.set(h.steps.value + 1)
        there = torch.stack([at_goal(t.pos, Goal(h.goal.value[:, k])) for k, t in enumerate(h.things)], 1)
        undone = (self._placed[now] & ~there).any(1)
        running = (now < len(self._steps)) & (h.failed.value == 0)
        on = running & self.done(h, seen) & ~undone
        over, much = h.steps.value >= self._horizon[now], h.pressed.value >= self._limit[now]
        why = torch.where(undone, 3.0, torch.where(much, 2.0, torch.where(over, 1.0, 0.0)))
        h.failed.set(torch.where(running & ~on, why, h.failed.value))
        self._judge(h, seen, there, on)
        # a robot that is at rest again without the object begins to pick once more
        idle = seen.rests(tight=False) & ~seen.grasped & (norm(seen.base_speeds) < constant(0.02))
        resting = torch.where(idle & (self._part[now] == 2) & ~on, h.resting.value + 1, 0.0)
        if self.config.navigation == "teleported":
            h.robot.scope.move(on & (now + 1 < len(self._steps)), lambda: self._teleport(h))
            seen = replace(
                seen,
                base=torch.where(on[:, None], h.spawns.value[row, (now + on).clamp_max(len(self._steps))], seen.base),
            )
        again = on | (resting >= _AGAIN)
        h.resting.set(torch.where(again, 0.0, resting))
        h.tries.set(h.tries.value + again)
        h.begun.set(torch.where(again[:, None], seen.base, h.begun.value))
        h.steps.set(torch.where(on, 0.0, h.steps.value))
        h.pressed.set(torch.where(on, 0.0, h.pressed.value))
        h.subtask.set(now + on)

    def _teleport(self, h: LongHandles) -> None:
        """Put the robots where their next subtask begins, arm and all that they hold as they are."""
        now, robot, before = h.subtask.value.long(), h.robot, h.robot.root_pose
        base = h.spawns.value[torch.arange(len(now)), now + 1]
        after = pose(torch.cat([base[:, :2], before[:, 2:3]], 1), quat_from_yaw(base[:, 2]))
        for k, thing in enumerate(h.things):
            carried = h.grasps[k].value & (self._target[now + 1] == k)
            moved = pose_mul(after, pose_mul(pose_inv(before), thing.pose))
            put = torch.where(carried[:, None], moved, thing.pose)
            thing.set_pose(put[:, :3], put[:, 3:])
        joints = torch.cat([robot.base_joints(base), robot.arm_qpos[:, 3:]], 1)
        robot.set_qpos(joints, opening=robot.opening)

    def _judge(self, h: LongHandles, seen: Seen, there: Tensor, done: Tensor) -> None:
        """Keep the flags of the subtask that this step belonged to."""
        h.held.set(torch.stack([seen.grasped.float(), h.held.value[:, 0]], 1))
        now = h.subtask.value
        released = ~seen.grasped & (h.held.value[:, 1] != 0)
        inside = self.of_target(h, there.unbind(1))
        touched = self.of_target(h, fingers_touch(h.grasps).any(-1).unbind(1))
        flags = (touched, seen.grasped, inside, released & inside, released & ~inside, done)
        h.judged.set(torch.stack([*(flag.float() for flag in flags), h.pressed.value, now], 1))

    def evaluate(self, h: LongHandles) -> dict[str, Tensor]:
        *flags, force, judged = h.judged.value.unbind(1)
        failed = h.failed.value
        return {
            "success": h.subtask.value >= len(self._steps),
            "fail": failed > 0,
            **{name: failed == k + 1 for k, name in enumerate(FAILURES)},
            **{name: flag > 0 for name, flag in zip(_FLAGS, flags, strict=True)},
            "robot_force": force,
            "subtask": judged,
        }

    def observe(self, h: LongHandles) -> dict[str, dict[str, Tensor]]:
        root = h.robot.root_pose
        picks = self._part[h.subtask.value.long()] == 2
        goal = quat_rotate_inv(root[:, 3:], self.goal(h) - root[:, :3])
        thing, grasped = (self.of_target(h, each) for each in ([t.pose for t in h.things], [g.value for g in h.grasps]))
        policy = numbers(h.robot, thing, torch.where(picks[:, None], 0.0, goal), grasped)
        return {"policy": policy, "privileged": {}}

    def reward(self, h: LongHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"progress": h.subtask.value * constant(1.0 / len(self._steps)), "success": ev["success"].float()}

    def instructions(self, h: LongHandles) -> Sequence[str]:
        return [self._steps[min(int(k), len(self._steps) - 1)].name for k in h.subtask.value.tolist()]

    # ---- the experts of the subtasks, one after the other ------------------------------------------------------------

    def expert_part(self, h: LongHandles) -> Tensor:
        return torch.stack([self._part[h.subtask.value.long()], h.tries.value.long()], 1)

    def expert(self, h: LongHandles) -> list[Waypoint]:
        robot, things = h.robot, h.things
        rest = robot.keyframe("rest").expand(h.n, -1)
        path, facing = paths_to(self.layout, self.place_number(h), h.begun.value)

        aside = rest.clone()  # so that a place that is only passed does not count as arrived
        aside[:, robot.groups["head"].start] += _ASIDE
        choice, thing = (self.of_target(h, each) for each in ([t.choice for t in things], [t.pose for t in things]))
        grip = self._grips.of(robot, choice, thing, facing)
        goal = self.of_target(h, h.goal.value.unbind(1))
        parts = [
            [drive("navigate", path, aside, gripper=1), back(robot, gripper=1)],
            [drive("navigate with the object", path, aside, gripper=-1), back(robot, gripper=-1)],
            [drive("drive to the object", path, rest, gripper=1), *picking(robot, grip)],
            [drive("drive to the goal", path, rest, gripper=-1), *placing(robot, thing, goal, facing)],
        ]
        return [replace(w, begins=k == 0) for part in parts for k, w in enumerate(part)]
