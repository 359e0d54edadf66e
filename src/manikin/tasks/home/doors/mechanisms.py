"""What Open and Close share: where a robot starts before a drawer or a door, what is seen, the parts of an expert."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from manikin import Articulation, Episode, Grasp, Handles, Quantity, Robot, SceneBuilder, Task, Variable, Waypoint
from manikin.errors import UnknownNameError
from manikin.homes import Home, furnish
from manikin.homes.episodes import home_of
from manikin.homes.starts import Touching
from manikin.math import atan2, norm, yaw_rotate
from manikin.rng import EpisodeRng
from manikin.robots import fetch_mshab
from manikin.sim.device import on_host
from manikin.spec.robot import GripperSpec, RobotSpec
from manikin.tasks.home.doors.fronts import KINDS, Fronts, fronts
from manikin.tasks.home.labels import subtask_labels
from manikin.tasks.home.numbers import STATE, from_rest, goal_from_base, numbers
from manikin.tasks.home.predicates import COMMON, Goal, Joint, Seen, closed, opened, slightly_closed, succeeds
from manikin.tasks.home.rules import ARTICULATIONS
from manikin.tasks.home.scene import LAYOUTS, needs_mobile, see
from manikin.toolkit import chosen, constant, per_step, press

__all__ = ["MechanismHandles", "MechanismTask", "mechanism_handles"]

_TRIES = 128  # starts that are tried of each drawer and door
_TOLD = {
    "open_share": Quantity("1", note="of the joint's range"),
    "opens_along": Quantity("1", "base", "the way that the handle goes when it is opened"),
}  # beside what policies see
T = TypeVar("T", Tensor, dict[str, Tensor])


@dataclass
class MechanismHandles(Handles):
    """What the scene consists of, and ``h`` in the methods of tasks."""

    robot: Robot
    home: Home
    pieces: tuple[Articulation, ...]  # of each drawer and door, what it belongs to
    grasps: tuple[Grasp, ...]  # of each
    target: Variable  # number of the drawer or door
    began: Variable  # [m, rad] where its joint was at the start
    pressed: Variable  # [N] added up over control steps
    pushed: Variable  # 1 once it was shut with the tool near its handle, until it is open again


def mechanism_handles(b: SceneBuilder, robot: Robot, home: Home, found: Fronts, name: str = "") -> MechanismHandles:
    """What Open and Close need of a scene with a robot in an apartment; their variables are named after ``name``."""
    return MechanismHandles(
        robot=robot,
        home=home,
        pieces=tuple(home.mechanism(one.mechanism) for one in found.each),
        grasps=tuple(
            b.grasp(
                robot,
                home.mechanism(one.mechanism),
                link=one.link,
                min_force=COMMON.grasp_force,
                max_angle=math.degrees(COMMON.grasp_angle),
            )
            for one in found.each
        ),
        target=b.variable(f"{name}target"),
        began=b.variable(f"{name}began"),
        pressed=b.variable(f"{name}pressed"),
        pushed=b.variable(f"{name}pushed"),
    )


class MechanismTask(Task):
    """A drawer or a fridge before a mobile robot: what Open and Close have in common.

    Randomization: that of the tasks.
    Success: that of the tasks.
    """

    subtask: ClassVar[str]
    _kinds: tuple[str, ...]
    robots = ("fetch_mshab",)
    robot_control: ClassVar[Mapping[str, str]] = {"fetch_mshab": fetch_mshab.CONTROL}
    layouts = LAYOUTS
    observations = {
        "joints_from_rest": Quantity("m, rad", "joint", "torso, head, arm, less where they rest"),
        "joint_speeds": Quantity("m/s, rad/s", "joint", "torso, head, arm"),
        "tcp_from_base": Quantity("m, quaternion wxyz", "base"),
        "goal_from_base": Quantity("m", "base", "the handle"),
        "is_grasped": Quantity("0 or 1", note="the drawer or the door"),
        **_TOLD,
    }

    @dataclass(frozen=True)
    class Config:
        mechanism: str = "drawer"  # or fridge, or either
        force_limit: float = 10000.0  # [N] added up over control steps, below which contacts must stay; as published
        both_ways: bool = False  # whether standing still counts negative velocities, too; as published it does not
        published_state: bool = False  # MS-HAB's 42 numbers are observed, with fingers and 0 for an object

    def __init__(self, config: Any = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        self.labels = subtask_labels(self.subtask, force_limit=self.config.force_limit)
        if self.config.mechanism in KINDS:
            told = self.instruction.replace("the drawer or the fridge", f"the {self.config.mechanism}")
            self.instruction = told  # type: ignore[misc]  # of this one, not of its class
        if self.config.published_state:
            self.observations = {**STATE, **_TOLD}  # type: ignore[misc]  # likewise

    def scene(self, b: SceneBuilder) -> MechanismHandles:
        word = self.config.mechanism
        if word not in (*KINDS, "either"):
            raise UnknownNameError(f"mechanism of {self.id}", word, (*KINDS, "either"))
        self._kinds = KINDS if word == "either" else (word,)
        self._fronts = found = fronts(self.layout, self._kinds)
        robot = b.robot(pos=(0, 0, 0))
        needs_mobile(self.id, robot, fingers=self.config.published_state)
        home = furnish(b, home_of(self.layout))
        with on_host(torch.zeros(0).device):  # another world tries them, on the host
            starts = _starts(self.layout, self._kinds, self.subtask, b.robots[0])
        self._starts = torch.tensor(starts)
        return mechanism_handles(b, robot, home, found)

    def about(self, found: Fronts, kinds: tuple[str, ...]) -> None:
        """In another task's scene: be about these drawers and doors of these kinds."""
        self._fronts, self._kinds = found, kinds

    def start(self, h: MechanismHandles, ep: Episode) -> None:
        slots = self._fronts.slots
        target = slots[ep.rng.integers("kind", 0, len(slots)), ep.rng.integers("which", 0, slots.shape[1])]
        start = self._starts[target, ep.rng.integers("start", 0, self._starts.shape[1])]
        h.target.set(target.float())
        h.began.set(start[:, -1])
        rest = h.robot.keyframe("rest")[3:].expand(h.n, -1)
        base = h.robot.base_joints(start[:, :3])
        h.robot.set_qpos(torch.cat([base, rest[:, :-7], rest[:, -7:] + start[:, 3:-1]], 1), opening=0.3)
        for piece in dict.fromkeys(h.pieces):
            mine = [k for k, other in enumerate(h.pieces) if other is piece]
            joints = [piece.joints.index(self._fronts.each[k].joint) for k in mine]
            qpos = torch.zeros(h.n, len(piece.joints))
            for k, joint in zip(mine, joints, strict=True):
                qpos[:, joint] = torch.where(target == k, start[:, -1], qpos[:, joint])
            piece.set_qpos(qpos)

    def advance(self, h: MechanismHandles) -> None:
        press(h.pressed, h.robot)
        joint = self.joint(h)
        near = norm(h.robot.tcp_pos - joint.handle) < constant(0.3)
        shut = closed(joint)
        h.pushed.set((shut & ((h.pushed.value > 0) | near)).float())

    def of_target(self, h: MechanismHandles, each: list[Tensor]) -> Tensor:
        """(n, ...) of the rows' own drawer or door, from those (n, ...) of each."""
        if len(each) == 1:
            return each[0]
        return chosen(each, h.target.value.long())

    @per_step
    def joint(self, h: MechanismHandles) -> Joint:
        """What conditions and rewards ask of the rows' drawer or door, by the rules of the first kind."""
        found, pairs = self._fronts, list(zip(h.pieces, self._fronts.each, strict=True))
        target = h.target.value.long()
        q = self.of_target(h, [piece.joint(one.joint) for piece, one in pairs])
        speeds = [piece.qvel[:, piece.joints.index(one.joint)] for piece, one in pairs]
        yaw, place = found.yaw[target], found.frame[target]
        out = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1) * q[:, None]
        place = torch.where(found.fridge[target][:, None], place, place + out)
        return Joint(
            kind=self._kinds[0],
            q=q,
            speed=self.of_target(h, speeds),
            limits=found.limits[target],
            start=h.began.value,
            frame=torch.cat([place, yaw[:, None]], 1),
            handle=self.of_target(h, [piece.handle_of(one.joint) for piece, one in pairs]),
        )

    def by_kind(self, h: MechanismHandles, value: Callable[[Joint], T]) -> T:
        """A value of the rows' drawer or door, each by the rules of its kind."""
        joint = self.joint(h)
        found = [value(replace(joint, kind=kind)) for kind in self._kinds]
        if len(found) == 1:
            return found[0]
        drawer, fridge = found
        cold = self.cold(h)
        if isinstance(drawer, dict) and isinstance(fridge, dict):
            return {name: torch.where(cold, fridge[name], drawer[name]) for name in drawer}
        assert isinstance(drawer, Tensor) and isinstance(fridge, Tensor)
        return torch.where(cold, fridge, drawer)

    @per_step
    def seen(self, h: MechanismHandles) -> Seen:
        """What conditions and rewards ask of the robot."""
        grasped = self.of_target(h, [grasp.value for grasp in h.grasps])
        return see(h.robot, self.joint(h).handle, grasped, h.pressed.value, both_ways=self.config.both_ways)

    def torso(self, h: MechanismHandles) -> tuple[float, float]:
        """Limits of the torso's joint [m]."""
        low, high = h.robot.ranges[h.robot.groups["torso"].start].tolist()
        return low, high

    def evaluate(self, h: MechanismHandles) -> dict[str, Tensor]:
        seen, limit = self.seen(h), self.config.force_limit
        force = self.of_target(h, [norm(grasp.force).amax(1) for grasp in h.grasps])
        rules = ARTICULATIONS[self._kinds[0]]  # these two numbers are those of every kind
        joint = self.joint(h)
        return {
            "success": self.by_kind(
                h, lambda one: succeeds(self.subtask, seen, Goal(one.handle), joint=one, force_limit=limit)
            ),
            "fail": seen.pressed >= constant(limit),
            "is_open": self.by_kind(h, opened),
            "is_slightly_open": joint.share(joint.q) > constant(rules.slightly_open),
            "is_closed": closed(joint),
            "is_slightly_closed": slightly_closed(joint),
            "contact": force > 0,
            "is_grasped": seen.grasped,
            "is_still": seen.still,
            "is_resting": seen.rests(tight=True),
            "robot_force": seen.pressed,
        }

    def observe(self, h: MechanismHandles) -> dict[str, dict[str, Tensor]]:
        seen, joint = self.seen(h), self.joint(h)
        goal = goal_from_base(h.robot, joint.handle)
        if self.config.published_state:
            policy = numbers(h.robot, self.thing(h), goal, seen.grasped)
        else:
            policy = {**from_rest(h.robot, seen, goal), "is_grasped": seen.grasped}
        along = yaw_rotate(self.opens_along(h), -seen.base[:, 2])
        return {
            "policy": policy,
            "privileged": {"open_share": joint.share(joint.q)[:, None], "opens_along": along},
        }

    def thing(self, h: MechanismHandles) -> Tensor | None:
        """(n, 7) pose in the world of what is in the drawer or the fridge, of MS-HAB's numbers; None without one."""
        return None

    def landmarks(self, h: MechanismHandles) -> dict[str, Tensor]:
        return {"handle": self.joint(h).handle}

    @property
    def fronts(self) -> Fronts:
        """What the rows' targets are numbers of."""
        return self._fronts

    @property
    def wide(self) -> bool:
        """Whether there is a door that counts as open only past a right angle: a robot that stands before it can then
        not pull it so far, and has to push it on."""
        return bool((self._fronts.fridge & (self._fronts.open_from > math.pi / 2)).any())

    @property
    def parted(self) -> bool:
        """Whether drawers and fridges have an expert each, of which a row has that of its kind."""
        return len(self._kinds) > 1

    def way(self, h: MechanismHandles, kind: str) -> list[Waypoint]:
        """The expert of a kind."""
        raise NotImplementedError

    def expert(self, h: MechanismHandles) -> list[Waypoint]:
        """Of each kind a part."""
        parts = [self.way(h, kind) for kind in self._kinds]
        return [replace(one, begins=k == 0) for part in parts for k, one in enumerate(part)]

    def expert_part(self, h: MechanismHandles) -> Tensor:
        cold = self.cold(h).long() * self.parted
        return torch.stack([cold, torch.zeros_like(cold)], 1)

    def rest_here(self, h: MechanismHandles) -> Tensor:
        """(n, joints) the robot at rest with its base where it is. All joints go each as far on their way as the
        others, so a base that is far from the keyframe's would make the arm slow."""
        at = h.robot.arm_qpos
        return torch.cat([at[:, :3], h.robot.keyframe("rest")[3:].expand(h.n, -1)], 1)

    def cold(self, h: MechanismHandles) -> Tensor:
        """(n,) bool, whether it is the fridge."""
        return self._fronts.fridge[h.target.value.long()]

    def handle_at(self, h: MechanismHandles, q: Tensor) -> Tensor:
        """(n, 3) [m] where the handle is when the joint is at q (n,)."""
        found, target = self._fronts, h.target.value.long()
        foot, yaw, hinge = found.handle[target], found.yaw[target], found.hinge[target]
        slid = q[:, None] * torch.stack([torch.cos(yaw), torch.sin(yaw)], 1) + foot[:, :2]
        swung = hinge + yaw_rotate(foot[:, :2] - hinge, q * found.sense[target])
        return torch.cat([torch.where(self.cold(h)[:, None], swung, slid), foot[:, 2:]], 1)

    def opens_along(self, h: MechanismHandles) -> Tensor:
        """(n, 2) unit vector in the world of the way that the handle goes when it is opened now."""
        found, target, joint = self._fronts, h.target.value.long(), self.joint(h)
        yaw, sense = found.yaw[target], found.sense[target]
        out = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
        to = joint.handle[:, :2] - found.hinge[target]
        turned = sense[:, None] * torch.stack([-to[:, 1], to[:, 0]], 1) / norm(to, keepdim=True).clamp_min(1e-6)
        return torch.where(found.fridge[target][:, None], turned, out)


_Robot = tuple[RobotSpec, GripperSpec | None, bool]
_tried: dict[tuple[str, tuple[str, ...], str], tuple[_Robot, list[Any]]] = {}  # of each the robot that came last


def _starts(layout: str, kinds: tuple[str, ...], subtask: str, robot: _Robot) -> list[Any]:
    """(T, S, 3 + 7 + 1) starts before each drawer and door in which the robot touches nothing: place of the base, noise
    of the arm, and where the joint is. They are the same in every scene of the layout."""
    known = _tried.get((layout, kinds, subtask))
    if known is None or any(one is not two for one, two in zip(known[0], robot, strict=True)):
        known = _tried[layout, kinds, subtask] = robot, _try_starts(layout, kinds, subtask, robot).tolist()
    return known[1]


def _try_starts(layout: str, kinds: tuple[str, ...], subtask: str, robot: _Robot) -> Tensor:
    """See :func:`_starts`."""
    home = home_of(layout)
    tries = Touching(home, robot)
    spec = robot[0]
    rest = torch.tensor(spec.keyframes["rest"])
    found = []
    for k, one in enumerate(fronts(layout, kinds).each):
        rng = EpisodeRng(torch.arange(_TRIES), torch.full((_TRIES,), k))
        rules = ARTICULATIONS[one.kind]
        low, high = one.limits
        q = torch.full((_TRIES,), low)
        if subtask == "close":
            q = low + (high - low) * rng.uniform("starts/open", rules.open_share, 1.0)
        yaw = torch.full((_TRIES,), one.yaw)
        frame = torch.tensor([one.frame]).expand(_TRIES, 2)
        if one.kind == "drawer":
            frame = frame + q[:, None] * torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
        (near, far), (right, left) = rules.front
        forth, aside = rng.uniform("starts/forth", near, far), rng.uniform("starts/aside", right, left)
        cut = COMMON.base_noise_cut
        place = frame + yaw_rotate(torch.stack([forth, aside], 1), yaw)
        place = place + rng.normal("starts/place", 0.0, COMMON.base_noise, (2,)).clamp(-cut, cut)
        to, cut = frame - place, COMMON.yaw_noise_cut
        heading = atan2(to[:, 1], to[:, 0]) + rng.normal("starts/yaw", 0.0, COMMON.yaw_noise).clamp(-cut, cut)
        cut = COMMON.arm_noise_cut
        arm = rng.normal("starts/arm", 0.0, COMMON.arm_noise, (7,)).clamp(-cut, cut)
        owner = next(piece for piece in home.mechanisms if piece.name == one.mechanism)
        opened_to = torch.zeros(_TRIES, len(owner.joints))
        opened_to[:, owner.joints.index(one.joint)] = q
        base = torch.cat([place, heading[:, None]], 1)
        posture = rest[3:].expand(_TRIES, -1)
        joints = torch.cat([base, posture[:, :-7], posture[:, -7:] + arm], 1)
        touches = torch.from_numpy(tries.touches(joints, {one.mechanism: opened_to}))
        found.append(torch.cat([base, arm, q[:, None]], 1)[~touches])
    most = max(map(len, found))
    return torch.stack([one[torch.arange(most) % len(one)] for one in found])
