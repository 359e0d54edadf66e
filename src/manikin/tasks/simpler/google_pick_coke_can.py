"""GooglePickCokeCan-v1 and GooglePickObject-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from manikin import (
    ContactForce,
    Episode,
    Grasp,
    Handles,
    Quantity,
    Robot,
    SceneBuilder,
    Variable,
    VariantPart,
)
from manikin.errors import UnknownNameError
from manikin.math import norm, quat_rotate
from manikin.props.simpler import simpler_prop
from manikin.tasks.simpler.common import COUNTER, LEAST_FORCE, longest, resting_height, touched
from manikin.tasks.simpler.google import GoogleTask, counter, grasping, longest_axis, motion, spoken
from manikin.toolkit import bonus, closeness, constant

__all__ = ["GooglePickCokeCan", "GooglePickObject"]

_X, _Y = (-0.35, -0.2925, -0.235, -0.1775, -0.12), (-0.02, 0.09, 0.20, 0.31, 0.42)  # [m]
H = 0.5**0.5
_TURNS = {"horizontal": (0.0, 0.0, 0.0, 1.0), "vertical": (H, 0.0, 0.0, H), "standing": (H, H, 0.0, 0.0)}
_ANY = "random"


@dataclass
class PickHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    thing: VariantPart
    grasp: Grasp
    others: tuple[ContactForce, ...]  # of the object with what it stands on
    rest: Variable  # [m] height of the object's origin once it had settled
    held: Variable  # steps in a row
    lifted: Variable  # 0 or 1
    significant: Variable  # steps


class GooglePickCokeCan(GoogleTask):
    """Pick up a can of cola from the counter and lift it, as in SIMPLER's evaluation of the Google Robot.

    Randomization: the can's place, uniform over a rectangle of 0.23 x 0.44 m; with ``orientation="random"`` how it lies
    or stands. With ``trials="grid"`` the episode's seed is the number of the trial, 0 to 24: five places away from the
    robot times five across its view.
    Success: the can is lifted at the last step: held by both fingers it came more than 0.01 m above its place while it
    touched nothing but the robot, and it is still held; or for 5 steps it was lifted by more than 0.02 m.

    After SIMPLER (Li et al. 2024), ``GraspSingleOpenedCokeCanInScene``: 25 trials in each of three orientations, 80
    steps at 3 Hz. Objects are the original's meshes where ``MANIKIN_DATA/simpler`` has them, else primitives of their
    size and mass; the counter is a box.
    """

    id = "GooglePickCokeCan-v1"
    horizon_s = 80 / 3
    settle_s = 0.4
    instruction = "pick coke can"
    trial_count = 25
    photograph = "google_coke_can_real_eval_1.png"
    drawn = ("robot", "object")
    things: ClassVar[tuple[str, ...]] = ("opened_coke_can",)
    reward_max = 4.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1"),
        "object_pose": Quantity("m, quaternion wxyz", "world", "its origin"),
        "tcp_to_object": Quantity("m", "world", "to the middle of the object"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the middle of the object",
        "grasp": "1 while grasped",
        "lift": "1 while lifted",
        "success": "what is missing to 4, in success",
    }

    @dataclass(frozen=True)
    class Config(GoogleTask.Config):
        orientation: str = _ANY  # of the object: horizontal, vertical (both lying), standing or random

    def scene(self, b: SceneBuilder) -> PickHandles:
        if self.config.orientation not in (*_TURNS, _ANY):
            raise UnknownNameError(f"orientation of {self.id}", self.config.orientation, (*_TURNS, _ANY))
        table = counter(b, self.lights[self.config.light])
        robot = self.stand(b, (0.35, 0.20))
        props = [simpler_prop(name) for name in self.things]
        thing = b.mesh("object", choice=props)
        self._turns = torch.tensor(list(_TURNS.values()))
        self._heights = torch.tensor([[resting_height(prop, turn) for turn in _TURNS.values()] for prop in props])
        self._places = torch.tensor([(x, y) for x in _X for y in _Y])
        return PickHandles(
            robot=robot,
            thing=thing,
            grasp=b.grasp(robot, thing, min_force=LEAST_FORCE, max_angle=80.0),
            others=(b.contact_force(thing, table),),
            rest=b.variable("rest"),
            held=b.variable("held"),
            lifted=b.variable("lifted"),
            significant=b.variable("significant"),
        )

    def start(self, h: PickHandles, ep: Episode) -> None:
        h.robot.set_qpos(h.robot.keyframe().expand(h.n, -1))
        place = self._places[ep.trial(self.trial_count, self.config.trials)]
        if self.config.trials == "random":
            place = ep.rng.uniform("object/xy", torch.tensor([_X[0], _Y[0]]), torch.tensor([_X[-1], _Y[-1]]), (2,))
        turn = ep.rng.integers("object/orientation", 0, len(_TURNS)).long()
        if self.config.orientation != _ANY:
            turn = torch.full_like(turn, list(_TURNS).index(self.config.orientation))
        height = COUNTER + self._heights[h.thing.choice, turn]
        h.thing.set_pose(torch.cat([place, height[:, None]], 1), self._turns[turn])

    def settled(self, h: PickHandles) -> None:
        h.rest.set(h.thing.pos[:, 2])

    def middle(self, h: PickHandles) -> Tensor:
        """(n, 3) [m] the middle of the object."""
        return h.thing.pos + quat_rotate(h.thing.quat, h.thing.centre)

    def rise(self, h: PickHandles) -> Tensor:
        """(n,) [m] above its place once it had settled."""
        return h.thing.pos[:, 2] - h.rest.value

    def advance(self, h: PickHandles) -> None:
        grasped, rise = h.grasp.value, self.rise(h)
        lifted = grasped & ((h.lifted.value > 0) | (~touched(h.others) & (rise > 0.01)))
        h.held.set(longest(h.held.value, grasped))
        h.lifted.set(lifted.float())
        h.significant.set(h.significant.value + (lifted & (rise > 0.02)).float())

    def evaluate(self, h: PickHandles) -> dict[str, Tensor]:
        lifted, rise = h.lifted.value > 0, self.rise(h)
        return {
            "success": lifted | (h.significant.value >= 5),
            "is_grasped": h.grasp.value,
            "consecutive_grasp": h.held.value >= 5,
            "lifted": lifted,
            "lifted_significantly": lifted & (rise > 0.02),
            "n_lift_significant": h.significant.value.long(),
        }

    def observe(self, h: PickHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {"object_pose": h.thing.pose, "tcp_to_object": self.middle(h) - h.robot.tcp_pos},
        }

    def reward(self, h: PickHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        reach = closeness(norm(self.middle(h) - h.robot.tcp_pos), 5.0)
        terms = {"reach": reach, "grasp": ev["is_grasped"].float(), "lift": ev["lifted"].float()}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PickHandles) -> Tensor:
        """Over the object, down, close, up; what comes next follows from where things are now."""
        robot, at = h.robot, self.middle(h)
        axis, half = longest_axis(h.thing)
        goal, down, closes = grasping(robot, at, axis, half, h.grasp.value)
        held = h.held.value >= 2
        up = torch.where(held, (constant(0.1) - self.rise(h)).clamp(0.0, 0.06), constant(0.0))
        goal = torch.where(held[:, None], robot.tcp_pos, goal)
        goal = torch.cat([goal[:, :2], (goal[:, 2] + up)[:, None]], 1)
        return motion(robot, goal, down, torch.where(closes, -constant(1.0), constant(1.0)))


class GooglePickObject(GooglePickCokeCan):
    """Pick up one of fourteen objects from the counter and lift it.

    Randomization: which object, how it lies or stands, and its place, uniform over a rectangle of 0.23 x 0.44 m.
    Success: as in GooglePickCokeCan-v1: at the last step the object is held and was lifted by more than 0.01 m clear of
    the counter, or for 5 steps it was lifted by more than 0.02 m.

    After SIMPLER's ``GraspSingleRandomObjectInScene``, which its paper does not evaluate. With ``trials="grid"`` places
    are those of the can.
    """

    id = "GooglePickObject-v1"
    instruction = "pick the object"
    things = (
        *("opened_pepsi_can", "opened_coke_can", "opened_sprite_can", "opened_fanta_can", "opened_redbull_can"),
        *("blue_plastic_bottle", "apple", "orange", "sponge", "bridge_spoon_generated_modified"),
        *("bridge_carrot_generated_modified", "green_cube_3cm", "yellow_cube_3cm", "eggplant"),
    )

    def instructions(self, h: PickHandles) -> list[str]:
        return [f"pick {spoken(self.things[number])}" for number in h.thing.choice.tolist()]
