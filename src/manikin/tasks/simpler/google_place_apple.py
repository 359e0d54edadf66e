"""GooglePlaceAppleInDrawer-v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin import ContactForce, Episode, Grasp, Part, Quantity, SceneBuilder, Variable
from manikin.math import Constant, norm, quat_mul, quat_rotate
from manikin.props.station import DRAWERS
from manikin.tasks.simpler.common import LEAST_FORCE, add_object, resting_height, touched
from manikin.tasks.simpler.google import grasping, motion
from manikin.tasks.simpler.google_cabinet import ANY, OUT, TOP, CabinetTask, DrawerHandles, inwards
from manikin.toolkit import bonus, closeness, constant

__all__ = ["GooglePlaceAppleInDrawer"]

_ABOVE = Constant(inwards(1.1))  # the expert's tool points down at the apple, its fingers as at the handle
_OPEN = 0.2  # [m] the expert opens the drawer
_INSIDE = 0.11  # [m] from the handle inwards to where it lets go
_FIRST = 100.0  # control steps of the first instruction
_CLEAR = 0.98  # [m] height of its tool on the way to the apple


@dataclass
class AppleHandles(DrawerHandles):
    """Beside the cabinet an apple."""

    apple: Part
    grasp: Grasp
    inside: ContactForce  # of the apple with the bottom of the top drawer
    steps: Variable  # of the episode so far; as many as the first part may have, once a policy has finished with it
    was_open: Variable
    touched: Variable  # control steps in which the apple touched the drawer's bottom


class GooglePlaceAppleInDrawer(CabinetTask):
    """Open the top drawer, then place the apple from the cabinet's top into it, as in SIMPLER's evaluation.

    Randomization: the apple's place, uniform over a rectangle of 0.05 x 0.10 m, and from which of three poses the robot
    looks at the cabinet. With ``trials="grid"`` the episode's seed is the number of the trial, 0 to 26: three poses,
    three places away from the cabinet's back, three across; with one ``pose`` 0 to 8.
    Success: at the last step the second instruction holds, the drawer is open by 0.05 m or more, and the apple has
    touched its bottom in some control step. It need not be released.

    After SIMPLER (Li et al. 2024): 200 steps at 3 Hz. The instruction changes after 100 steps, or when the policy says
    that it has finished; said once more, this ends the episode.
    """

    id = "GooglePlaceAppleInDrawer-v1"
    horizon_s = 200 / 3
    settle_s = 0.4
    instruction = "open top drawer"
    poses = ("a0", "b0", "c0")
    trial_count = 27
    drawn = ("robot", "cabinet", "apple")
    observations = {
        **CabinetTask.observations,
        "apple_pose": Quantity("m, quaternion wxyz", "world"),
        "subtask": Quantity("0 or 1"),
    }
    reward_terms = {
        "open": "share of 0.15 m that the top drawer is open",
        "place": "1 - tanh(5 d), d from the apple to the drawer's bottom, in the second half of the episode",
        "success": "what is missing to 3, in success",
    }

    @dataclass(frozen=True)
    class Config(CabinetTask.Config):
        pose: str = ANY  # of the robot: a0, b0, c0 or random

    def scene(self, b: SceneBuilder) -> AppleHandles:
        robot, cabinet = self.room(b)
        apple, made = add_object(b, "apple", "baked_apple_v2")
        self._height = TOP + resting_height(made)
        self._places = torch.tensor([(x, y) for x in (-0.08, -0.05, -0.02) for y in (-0.02, 0.03, 0.08)])
        return AppleHandles(
            robot=robot,
            cabinet=cabinet,
            drawer=b.variable("drawer"),
            pose=b.variable("pose"),
            apple=apple,
            grasp=b.grasp(robot, apple, min_force=LEAST_FORCE, max_angle=80.0),
            inside=b.contact_force(apple, cabinet, link="top_floor"),
            steps=b.variable("steps"),
            was_open=b.variable("was_open"),
            touched=b.variable("touched"),
        )

    def start(self, h: AppleHandles, ep: Episode) -> None:
        places = len(self._places)
        number = ep.trial(len(self.chosen) * places, self.config.trials)
        pose = self.begin(h, torch.zeros_like(number), number // places)
        spot = self._places[number % places]
        if self.config.trials == "random":
            spot = ep.rng.uniform("apple/xy", torch.tensor([-0.10, 0.0]), torch.tensor([-0.05, 0.1]), (2,))
        place, turn = self.seen(pose, torch.cat([spot, torch.full_like(spot[:, :1], self._height)], 1))
        h.apple.set_pose(place, turn)
        h.cabinet.set_qpos(torch.zeros(len(DRAWERS)))

    def advance(self, h: AppleHandles) -> None:
        h.steps.set(h.steps.value + 1.0)
        h.was_open.set(torch.maximum(h.was_open.value, (self.opening(h) >= 0.15).float()))
        h.touched.set(h.touched.value + touched((h.inside,)).float())

    def second(self, h: AppleHandles) -> Tensor:
        """(n,) bool: the second instruction holds."""
        return h.steps.value >= _FIRST

    def finished(self, h: AppleHandles, said: Tensor) -> Tensor:
        ends = said & self.second(h)
        h.steps.set(torch.where(said, h.steps.value.clamp_min(_FIRST), h.steps.value))
        return ends

    def instructions(self, h: AppleHandles) -> list[str]:
        return ["place apple into top drawer" if late else "open top drawer" for late in self.second(h).tolist()]

    def evaluate(self, h: AppleHandles) -> dict[str, Tensor]:
        second = self.second(h)
        return {
            "success": second & (self.opening(h) >= 0.05) & (h.touched.value >= 1),
            "is_drawer_open": h.was_open.value > 0,
            "q": self.opening(h),
            "has_contact": h.touched.value.long(),
            "subtask": second,
        }

    def observe(self, h: Any) -> dict[str, dict[str, Tensor]]:
        seen = super().observe(h)
        seen["privileged"] |= {"apple_pose": h.apple.pose, "subtask": self.second(h)}
        return seen

    def reward(self, h: AppleHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        bottom = h.cabinet.link_pose("top_floor")[:, :3]
        place = closeness(norm(h.apple.pos - bottom), 5.0) * ev["subtask"]
        terms = {"open": (self.opening(h) / 0.15).clamp(0.0, 1.0), "place": place}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: AppleHandles) -> Tensor:
        """Open the drawer, let go of its handle, grasp the apple, lift it, carry it over the drawer, let go."""
        robot, apple, one = h.robot, h.apple.pos, constant(1.0)
        outwards = quat_rotate(h.cabinet.base_quat, OUT.like(apple).expand_as(apple))
        held, inside = h.grasp.value, apple[:, 2] < TOP - 0.05
        opened = (self.opening(h) > _OPEN - 0.03) | held | inside

        spot = self.handle(h) - _INSIDE * outwards
        high, aside = apple[:, 2] - TOP, (spot - apple)[:, :2]
        there = norm(aside) < 0.03
        across = torch.where((high > 0.07)[:, None], aside, torch.zeros_like(aside))
        rise = (torch.where(there, constant(0.0), constant(0.1)) - high).clamp(-0.06, 0.08)
        turn = quat_mul(h.cabinet.base_quat, _ABOVE.like(apple).expand(h.n, 4))
        round_one = torch.zeros_like(apple), torch.zeros_like(high)
        goal, turn, closes = grasping(robot, apple, *round_one, held, clear=_CLEAR, turn=turn)
        goal = torch.where(held[:, None], robot.tcp_pos + torch.cat([across, rise[:, None]], 1), goal)
        leaves = (held & there & (high < 0.04)) | inside
        closes = closes & ~leaves
        goal = torch.where(inside[:, None], robot.tcp_pos, goal)

        # away from the handle before anything else, then up
        outside = ((robot.tcp_pos - self.handle(h)) * outwards).sum(1)
        low = (robot.tcp_pos[:, 2] < TOP + 0.05) & ~held & ~inside & (outside > -0.05)
        back = low & (norm(robot.tcp_pos - self.handle(h)) < 0.07)
        free = (robot.opening > 0.5).float()[:, None]
        beside = self.handle(h) + 0.09 * outwards - robot.tcp_pos
        up = torch.cat([beside[:, :2], torch.full_like(high, 0.1)[:, None]], 1)
        goal = torch.where(low[:, None], robot.tcp_pos + up, goal)
        goal = torch.where(back[:, None], robot.tcp_pos + 0.06 * free * outwards, goal)
        turn = torch.where(back[:, None], robot.tcp_quat, turn)
        closes = closes & ~low
        placed = motion(robot, goal, turn, torch.where(closes, -one, one))
        return torch.where(opened[:, None], placed, self.pull(h, to=_OPEN))
