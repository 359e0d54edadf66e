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

from manikin import Episode, Grasp, Handles, Quantity, Robot, SceneBuilder, Task, Variable, VariantPart, Waypoint
from manikin.errors import ConfigError, UnknownNameError
from manikin.homes import Home, furnish
from manikin.homes.episodes import home_of
from manikin.homes.objects import OBJECT_SETS, home_objects
from manikin.math import atan2, norm, pose, pose_inv, pose_mul, quat_from_yaw
from manikin.robots import fetch_mshab
from manikin.spec.labels import Event, Labels, Mode
from manikin.tasks.home.doors.mechanisms import MechanismHandles
from manikin.tasks.home.from_front import reaching, stowing, turned
from manikin.tasks.home.handling import SIZE, back, drive, fitting, half_ready
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.long.doors import DOOR_FLAGS, Doors
from manikin.tasks.home.long.places import LongPlaces, long_places
from manikin.tasks.home.long.steps import Errand, Step, steps_of
from manikin.tasks.home.numbers import STATE, goal_from_base, numbers
from manikin.tasks.home.objects_at import Grips, places
from manikin.tasks.home.pick import picking
from manikin.tasks.home.place import placing
from manikin.tasks.home.predicates import COMMON, SHAPES, Goal, Seen, at_goal, succeeds
from manikin.tasks.home.rules import RULES, SEQUENCES
from manikin.tasks.home.scene import LAYOUTS, about_rest, needs_mobile, see
from manikin.toolkit import above, chosen, constant, fingers_touch, full_turn, per_step, press

__all__ = ["FAILURES", "SKILLS", "LongHandles", "LongTask"]

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
SKILLS = {kind: f"Home{kind.title()}-v1" for kind in ("navigate", "open", "pick", "place", "close")}
"""First word of what a row is asked to do -> the task that has it alone, on which policies for it are trained."""
_PARTS = ("drive", "carry", "pick", "place", "reach", "stow")  # of the expert, as they follow one another
_FLAGS = ("contact", "is_grasped", "at_goal", "released_at_goal", "released_outside_goal", "subtask_done")
_NAVIGATION = ("driven", "teleported")
_ASIDE = 0.7  # [rad] that the head is turned while the robot drives, more than counts as rest
_TURN = 3.0  # [rad/s] of the base on its way to what is taken from the front, which takes long
_AGAIN = 40  # control steps after which a robot that stands at rest with empty hands tries again to pick


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
    doors: dict[str, MechanismHandles]  # of the drawer and the fridge that are opened and closed


class LongTask(Task):
    """A sequence of subtasks with several objects in an apartment.

    Randomization: that of the tasks.
    Success: that of the tasks.
    """

    sequence: ClassVar[str]
    errands: ClassVar[tuple[Errand, ...]]
    opened: ClassVar[str] = ""  # what is open all the time
    labels = _LABELS
    skills: ClassVar[Mapping[str, str]] = {name: SKILLS[name] for name in ("navigate", "pick", "place")}
    robots = ("fetch_mshab",)
    robot_control: ClassVar[Mapping[str, str]] = {"fetch_mshab": fetch_mshab.CONTROL}
    layouts = LAYOUTS
    observations = {
        **STATE,
        "object_size": SIZE,
        "joints_from_rest": Quantity("m, rad", "joint", "torso, head, arm, less where they rest"),
    }
    reward_max = 2.0
    reward_terms: ClassVar = {"progress": "the share of the subtasks that are done", "success": "1 in success"}

    @dataclass(frozen=True)
    class Config:
        targets: int = 0  # how many of the objects, the first ones; 0 for all
        objects: tuple[str, ...] = OBJECT_SETS["tidy_house"].targets  # names of manikin.homes.objects
        arm_counts: bool = True  # whether Navigate asks for an arm at rest; the published evaluation does not
        navigation: str = "driven"  # or teleported: without Navigate; the robot is put where each subtask may begin
        both_ways: bool = False  # whether standing still counts negative velocities, too; as published it does not
        goal_shape: str = "sphere"  # of each object's goal: sphere, cylinder, or zone: anywhere on the surface
        force_limit: float | None = None  # [N] of each subtask but Navigate, which has none; None for the published

    def steps(self) -> tuple[Step, ...]:
        """The subtasks in their order.

        Raises:
            ConfigError: there are not so many targets; the limit of force is none.
            UnknownNameError: another word for the navigation or the shape of goals.
        """
        if self.config.navigation not in _NAVIGATION:
            raise UnknownNameError("navigation", self.config.navigation, _NAVIGATION)
        if self.config.goal_shape not in SHAPES:
            raise UnknownNameError("goal_shape", self.config.goal_shape, SHAPES)
        count, wanted = len(self.errands), self.config.targets or len(self.errands)
        if not 1 <= wanted <= count:
            raise ConfigError(f"{self.id} has 1 to {count} targets, not {wanted}")
        found = steps_of(SEQUENCES[self.sequence], self.errands[:wanted], self.opened)
        if self.config.navigation == "teleported":
            found = tuple(step for step in found if step.kind != "navigate")
        for kind in dict.fromkeys(step.kind for step in found):
            subtask_labels(kind, force_limit=self.force_limit(kind))  # which refuse what is no limit
        return found

    def force_limit(self, kind: str) -> float:
        """[N] of a kind of subtask, added up over its control steps."""
        own, published = self.config.force_limit, RULES[kind].force_limit
        return published if own is None or kind == "navigate" else float(own)

    def objects_of(self, target: int) -> tuple[str, ...]:
        """Names of the objects of which a target is one. Raises as :meth:`handled`."""
        return self.handled(target, self.config.objects)

    def handled(self, target: int, names: tuple[str, ...]) -> tuple[str, ...]:
        """These objects, if a target can be one of them.

        Raises:
            ConfigError: one is too wide to be taken from the front, as in the fridge.
        """
        return fitting("fridge", names) if names and self.errands[target].from_front else names

    def scene(self, b: SceneBuilder) -> LongHandles:
        self._steps = steps = self.steps()
        self._count = count = 1 + max(step.target for step in steps)
        seen = (*steps, steps[-1])  # once all are done, rows are seen as in the last
        self._target = torch.tensor([s.target for s in seen])
        self._to_goal = torch.tensor([s.to_goal or s.kind == "place" for s in seen])
        self._picks = torch.tensor([s.kind == "pick" for s in seen])
        self._horizon = torch.tensor([RULES[s.kind].horizon for s in seen])
        self._limit = torch.tensor([self.force_limit(s.kind) for s in seen])
        before = [steps[:k] for k in range(len(seen))]
        placed = [[any(s.kind == "place" and s.target == k for s in some) for k in range(count)] for some in before]
        self._placed = torch.tensor(placed)  # (subtasks + 1, targets)
        self._conditions = list(dict.fromkeys((s.kind, s.carrying, s.door) for s in seen))
        self._condition = torch.tensor([self._conditions.index((s.kind, s.carrying, s.door)) for s in seen])
        self._find_places(seen)
        each = [self.objects_of(k) for k in range(count)]
        names = list(dict.fromkeys(name for some in each for name in some))
        objects = home_objects(tuple(names))
        self._grips, self._sizes = Grips(objects), torch.tensor([one.size for one in objects])
        self._which = [torch.tensor([names.index(name) for name in some]) for some in each]
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot, fingers=True)
        home = furnish(b, home_of(self.layout))
        props = [[one.prop for one in home_objects(some)] for some in each]
        things = [b.mesh(f"object{k}", choice=props[k]) for k in range(count)]
        angle = math.degrees(COMMON.grasp_angle)
        self._doors = Doors(self.layout, steps)
        self._part = torch.tensor([self._number_of_part(s) for s in seen])
        self._flags = (*_FLAGS, *DOOR_FLAGS) if self._doors.kinds else _FLAGS
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
            judged=b.variable("judged", (len(self._flags) + 2,)),
            doors=self._doors.declare(b, robot, home),
        )

    def _find_places(self, seen: Sequence[Step]) -> None:
        """Where objects may lie and be brought to, and at which of these places each subtask is."""
        errands = self.errands[: self._count]
        states = tuple(dict.fromkeys(s.opened for s in seen))
        kinds = tuple(dict.fromkeys(kind for one in errands for kind in (one.start, one.goal)))
        self._places = found = self.find_places(states, kinds)
        arrays = (found.points, found.corners, found.starts)
        self._points, self._corners, self._starts = map(torch.tensor, arrays)
        self._state = torch.tensor([states.index(s.opened) for s in seen])
        self._handle = torch.tensor([found.handle(s.door, states.index(s.opened)) if s.door else -1 for s in seen])
        fronts = [one.from_front for one in errands]
        self._from_front = torch.tensor(fronts)
        self._front = torch.tensor([fronts[s.target] and not s.door for s in seen])
        anywhere = places(self.layout)
        self._anywhere = torch.tensor(anywhere.starts)

    def find_places(self, states: tuple[str, ...], kinds: tuple[str, ...]) -> LongPlaces:
        """The places of this layout at which the targets can lie, or are brought to; see :func:`long_places`."""
        found, errands = long_places(self.layout, states, kinds), self.errands[: self._count]
        self._slots = [found.of_kind(kind) for kind in (*(e.start for e in errands), *(e.goal for e in errands))]
        self._close_by = found.close_by
        return found

    def _number_of_part(self, step: Step) -> int:
        """Of the expert's part that does a subtask."""
        if step.kind in ("open", "close"):
            return len(_PARTS) + self._doors.number(step)
        if step.kind == "navigate":
            return _PARTS.index("carry" if step.carrying else "drive")
        front = {"pick": "reach", "place": "stow"}
        return _PARTS.index(front[step.kind] if self.errands[step.target].from_front else step.kind)

    # ---- how an episode begins ---------------------------------------------------------------------------------------

    def start(self, h: LongHandles, ep: Episode) -> None:
        count = len(h.things)
        number = self.lay(h, ep)
        h.start_place.set(number[:, :count].float())
        h.goal_place.set(number[:, count:].float())
        h.spawns.set(self._spawns(number, ep))
        if self.config.navigation == "teleported" or self.opened:
            begun = h.spawns.value[:, 0]
        else:
            near = ep.rng.integers("base/near", 0, len(self._anywhere))  # anywhere: the start of another place
            place = self._anywhere[near, ep.rng.integers("base/place", 0, self._anywhere.shape[1])]
            begun = torch.cat([place, ep.rng.uniform("base/yaw", -torch.pi, torch.pi)[:, None]], 1)
        h.begun.set(begun)
        h.robot.set_qpos(about_rest(h.robot, ep, begun), opening=0.3)
        self.open_up(h)

    def lay(self, h: LongHandles, ep: Episode) -> Tensor:
        """Put the targets down and set their goals; (n, 2 T) int64 numbers of the places where they lie, and of their
        goals."""
        count, number = len(h.things), self._drawn(ep)
        height = torch.stack([self._grips.height(self._choice(h, k)) for k in range(count)], 1)
        starts, goals = self._points[number[:, :count]], self._points[number[:, count:]]
        h.goal.set(torch.cat([goals[..., :2], goals[..., 2:] + height[..., None]], 2))
        for k, thing in enumerate(h.things):
            point = above(starts[:, k] - self._doors.drawn_in(self.errands[k]), height[:, k])
            thing.set_pose(point, self._turned(h, k, ep))
        return number

    def open_up(self, h: LongHandles) -> None:
        """Open what is open when the episode begins."""
        self._doors.begin(h.home, self.opened)

    def _choice(self, h: LongHandles, k: int) -> Tensor:
        """(n,) which of all objects the k-th target is."""
        return self._which[k][h.things[k].choice]

    def _object(self, h: LongHandles) -> Tensor:
        """(n,) which of all objects the rows' present subtask is about."""
        return self.of_target(h, torch.stack([self._choice(h, k) for k in range(len(h.things))], 1))

    def _drawn(self, ep: Episode) -> Tensor:
        """(n, 2 T) numbers of the places where the targets lie, and of their goals; near an earlier one only where
        nothing else is left, as for what is brought into the fridge when the others are out."""
        order, found = ep.rng.uniform("places", 0.0, 1.0, (len(self._points),)), []
        for slot in self._slots:
            number = torch.where(slot, order, constant(math.inf)).argmin(1)
            order = order + self._close_by[number].float()
            found.append(number)
        return torch.stack(found, 1)

    def _turned(self, h: LongHandles, k: int, ep: Episode) -> Tensor:
        """(n, 4) how a target lies: anyhow, or so that it can be taken from the front."""
        if not self.errands[k].from_front:
            return full_turn(ep, f"object{k}/yaw")
        return turned(ep, f"object{k}/yaw", self._places.ahead, self._grips.own(self._choice(h, k)))

    def _places_of(self, start: Tensor, goal: Tensor) -> Tensor:
        """(n, S + 1) int64 numbers of the places of all subtasks, from those (n, T) of the targets."""
        number = torch.where(self._to_goal, goal[:, self._target], start[:, self._target])
        return torch.where(self._handle >= 0, self._handle, number)

    def _spawns(self, number: Tensor, ep: Episode) -> Tensor:
        """(n, S + 1, 3) of each subtask a place within 2 m of what it is about, and a heading that about faces it."""
        place = self._places_of(*number.split(self._count, 1))
        starts = ep.rng.integers("spawns/place", 0, self._starts.shape[2], (len(self._target),))
        spot, point = self._starts[self._state, place, starts], self._points[place]
        cut = COMMON.yaw_noise_cut
        noise = ep.rng.normal("spawns/yaw", 0.0, COMMON.yaw_noise, (len(self._target),)).clamp(-cut, cut)
        to = point[..., :2] - spot
        return torch.cat([spot, (atan2(to[..., 1], to[..., 0]) + noise)[..., None]], 2)

    # ---- how it goes on ----------------------------------------------------------------------------------------------

    def of_target(self, h: LongHandles, each: Tensor) -> Tensor:
        """(n, ...) of the object that the rows' present subtask is about, from those (n, targets, ...) of all."""
        return chosen(each, self._target[h.subtask.value.long()])

    @per_step
    def poses(self, h: LongHandles) -> Tensor:
        """(n, targets, 7) of the objects."""
        return torch.stack([thing.pose for thing in h.things], 1)

    @per_step
    def grasped(self, h: LongHandles) -> Tensor:
        """(n, targets) bool: which of them the robot holds."""
        return torch.stack([grasp.value for grasp in h.grasps], 1)

    def place_number(self, h: LongHandles) -> Tensor:
        """(n,) int64 number of the place that the rows' present subtask is about."""
        each = self._places_of(h.start_place.value.long(), h.goal_place.value.long())
        return each.gather(1, h.subtask.value.long()[:, None]).squeeze(1)

    def goal(self, h: LongHandles) -> Tensor:
        """(n, 3) [m] where the rows' present subtask leads: to the object's goal, to the object, or to a handle."""
        now = h.subtask.value.long()
        to_goal = self._to_goal[now][:, None, None]
        place = self.of_target(h, torch.where(to_goal, h.goal.value, self.poses(h)[..., :3]))
        return self._doors.goal(h.doors, now, place)

    def seen(self, h: LongHandles) -> Seen:
        """What conditions ask of the rows."""
        thing, grasped = self.of_target(h, self.poses(h))[:, :3], self.of_target(h, self.grasped(h))
        return see(h.robot, thing, grasped, h.pressed.value, both_ways=self.config.both_ways)

    def done(self, h: LongHandles, seen: Seen) -> Tensor:
        """(n,) bool: the present subtask's conditions hold."""
        c = self.config
        goal = Goal(self.goal(h), self._corners[self.place_number(h)] if c.goal_shape == "zone" else None)
        each = [
            succeeds(
                kind,
                seen,
                goal,
                joint=self._doors.joint(h.doors, door) if door else None,
                carrying=carrying,
                shape=c.goal_shape,
                force_limit=self.force_limit(kind),
                arm_counts=c.arm_counts,
            )
            for kind, carrying, door in self._conditions
        ]
        return chosen(each, self._condition[h.subtask.value.long()])

    def _there(self, h: LongHandles) -> Tensor:
        """(n, targets) bool: the objects are at their goals."""
        shape = self.config.goal_shape
        corners = self._corners[h.goal_place.value.long().flatten()] if shape == "zone" else None
        goal = Goal(h.goal.value.flatten(0, 1), corners)
        return at_goal(self.poses(h)[..., :3].flatten(0, 1), goal, shape).view(h.n, -1)

    def advance(self, h: LongHandles) -> None:
        press(h.pressed, h.robot)
        now, row, seen = h.subtask.value.long(), torch.arange(h.n), self.seen(h)
        h.steps.set(h.steps.value + 1)
        there = self._there(h)
        undone = (self._placed[now] & ~there).any(1)
        running = (now < len(self._steps)) & (h.failed.value == 0)
        on = running & self.done(h, seen) & ~undone
        over, much = h.steps.value >= self._horizon[now], h.pressed.value >= self._limit[now]
        why = torch.where(undone, 3.0, torch.where(much, 2.0, torch.where(over, 1.0, 0.0)))
        h.failed.set(torch.where(running & ~on, why, h.failed.value))
        self._judge(h, seen, there, on)
        # a robot that is at rest again without the object begins to pick once more
        idle = seen.rests(tight=False) & ~seen.grasped & (norm(seen.base_speeds) < constant(0.02))
        resting = torch.where(idle & self._picks[now] & ~on, h.resting.value + 1, 0.0)
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
        self._doors.begun(h.doors, on)
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
        inside, touched = self.of_target(h, there), self.of_target(h, fingers_touch(h.grasps).any(-1))
        flags = [touched, seen.grasped, inside, released & inside, released & ~inside, done]
        flags = self._doors.flags(h.doors, now.long(), flags)
        h.judged.set(torch.stack([*(flag.float() for flag in flags), h.pressed.value, now], 1))

    def evaluate(self, h: LongHandles) -> dict[str, Tensor]:
        *flags, force, judged = h.judged.value.unbind(1)
        failed = h.failed.value
        return {
            "success": h.subtask.value >= len(self._steps),
            "fail": failed > 0,
            **{name: failed == k + 1 for k, name in enumerate(FAILURES)},
            **{name: flag > 0 for name, flag in zip(self._flags, flags, strict=True)},
            "robot_force": force,
            "subtask": judged,
        }

    def observe(self, h: LongHandles) -> dict[str, dict[str, Tensor]]:
        now = h.subtask.value.long()
        to, held = self._doors.aims(h.doors, now, self.goal(h), self.of_target(h, self.grasped(h)))
        goal = torch.where(self._picks[now][:, None], 0.0, goal_from_base(h.robot, to))
        also = {"object_size": self._sizes[self._object(h)], "joints_from_rest": self.seen(h).joints}
        return {
            "policy": numbers(h.robot, self.of_target(h, self.poses(h)), goal, held),
            "privileged": {**also, **self._doors.told(h.doors, now, self.seen(h).base[:, 2])},
        }

    def reward(self, h: LongHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        return {"progress": h.subtask.value * constant(1.0 / len(self._steps)), "success": ev["success"].float()}

    def landmarks(self, h: LongHandles) -> dict[str, Tensor]:
        thing, goal = (self.of_target(h, each) for each in (self.poses(h), h.goal.value))
        return {"target": self.goal(h), "object": thing[:, :3], "goal": goal}

    def instructions(self, h: LongHandles) -> Sequence[str]:
        return [self._steps[min(int(k), len(self._steps) - 1)].name for k in h.subtask.value.tolist()]

    # ---- the experts of the subtasks, one after the other ------------------------------------------------------------

    def expert_part(self, h: LongHandles) -> Tensor:
        return torch.stack([self._part[h.subtask.value.long()], h.tries.value.long()], 1)

    def expert(self, h: LongHandles) -> list[Waypoint]:
        robot = h.robot
        rest = robot.keyframe("rest").expand(h.n, -1)
        now = h.subtask.value.long()
        path, facing = self._places.paths(
            self._state[now].tolist(), self.place_number(h), self._front[now].tolist(), h.begun.value
        )
        aside = rest.clone()  # so that a place that is only passed does not count as arrived
        aside[:, robot.groups["head"].start] += _ASIDE
        choice = self._object(h)
        thing = self.of_target(h, self.poses(h))
        grip = self._grips.of(robot, choice, thing, facing)
        goal = self.of_target(h, h.goal.value)
        to_object, to_goal = (
            drive("drive to the object", path, rest, gripper=1),
            drive("drive to the goal", path, rest, gripper=-1),
        )
        parts = [
            [drive("navigate", path, aside, gripper=1), back(robot, gripper=1)],
            [drive("navigate with the object", path, aside, gripper=-1), back(robot, gripper=-1)],
            [to_object, *picking(robot, grip)],
            [to_goal, *placing(robot, thing, goal, facing, self._grips.let_go(robot, choice, thing))],
        ]
        if self._from_front.any():
            grip = self._grips.from_front(choice, thing, facing)
            stand, joints = path[:, -1], half_ready(robot, h.n)
            to_object = replace(to_object, joints=joints, turn=_TURN)
            to_goal = replace(to_goal, joints=joints)
            parts += [[to_object, *reaching(robot, grip, stand)], [to_goal, *stowing(robot, thing, goal, stand)]]
        else:
            parts += [[back(robot, gripper=1)]] * 2
        parts += self._doors.experts(h.doors)
        return [replace(w, begins=k == 0) for part in parts for k, w in enumerate(part)]
