"""PlaceAppleInBowl-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.ground import ground
from manikin.math import norm
from manikin.props.soft.vessel import vessel
from manikin.spec.prop import Shape
from manikin.toolkit import Palm, bonus, closeness, constant, full_turn, per_step, transport

__all__ = ["PlaceAppleInBowl"]

COUNTER = (0.375, 0.9, 0.35)  # [m] half size of the block that stands in for a kitchen's counter
STAND = (-0.3, 0.0, 0.755)  # [m] where the pelvis is held
BOWL = (0.08, 0.1, 0.008)  # [m] inner radius, height, and thickness of its walls
EYE, FOCUS = (0.279, 0.303, 1.348), (-0.05, -0.2, 0.75)
OVER = 0.15  # [m] over the bowl's middle the apple is to be let go
MIDDLE = 0.053  # [m] height of the bowl's middle over its bottom
_SIDE = "right"
_WAY = (-0.417, 0.763, -0.5)  # the palm faces left and down when it comes to the apple
_NEAR, _FAR = 0.02, 0.11  # [m] from the TCP to the apple's middle when it grasps, and before
_LIFT, _DROP = 0.14, 0.17  # [m] how high it lifts the apple, and how high over the bowl's middle the TCP lets go
_ARM = (0.06, 0.13, -0.13, 0.15, -0.66)  # [rad] the right arm before the apple
_OPEN = (0.0, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0)  # [rad] the hand's three joints of the thumb, then those of its fingers
_SHUT = (0.0, -0.3, -0.9, 1.0, 1.0, 1.0, 1.0)


@dataclass
class AppleBowlHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    apple: Part
    bowl: Part
    grasp: Grasp


class PlaceAppleInBowl(Task):
    """Take an apple with the right hand and let it fall into a bowl.

    Randomization: the places of the apple and of the bowl, each uniform in a square of 5 cm; the apple's turn. The
    robot always begins the same, its forearms ahead.
    Success: the apple is within ``place_tol`` of the bowl's middle, and the right TCP is more than ``clearance`` above
    that.

    Numbers: ManiSkill3 3.0.1 (UnitreeG1PlaceAppleInBowl). There a kitchen's counter, an apple and a bowl are scans.
    Here the counter is a block, its top where the published height of the apple puts it; the apple is a ball that
    resists rolling a little, and the bowl has eight flat walls. Their sizes are chosen, friction is 1, of the hands 2.
    The reward in success is all of 10 here; there it is 8, and how near the apple is to 0.15 m over the bowl, and how
    far the hand is open. The camera in the robot's head is ``head_camera``.
    """

    id = "PlaceAppleInBowl-v1"
    horizon_s = 5.0
    instruction = "put the apple into the bowl with your right hand"
    robots = ("g1_upper_body",)
    robot_needs = ("torso", "left_hand", "right_hand", "gripper")
    labels = transport()
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world", "of the right hand"),
        "is_grasped": Quantity("0 or 1"),
        "bowl_pos": Quantity("m", "world"),
        "apple_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_apple": Quantity("m", "world"),
        "apple_to_bowl": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from the right TCP to the apple",
        "grasp": "1 while the right hand holds the apple",
        "place": "1 - tanh(5 d) while it holds the apple, d from the apple to 0.15 m over the bowl's middle",
        "release": "6 - tanh(5 d) - tanh(f) instead of these three where d < 0.025 m, f the mean of |q| of the right "
        "hand's joints [rad]",
        "success": "what is missing to 10, in success",
    }

    @dataclass(frozen=True)
    class Config:
        radius: float = 0.0335  # [m] of the apple
        density: float = 1000.0  # [kg/m^3]
        spread: float = 0.025  # [m] half size of the squares in which apple and bowl start
        bowl_y: float = -0.4  # [m] middle of the bowl's square; the apple's is 0
        place_tol: float = 0.05  # [m] from the apple to the bowl's middle
        clearance: float = 0.125  # [m] how high over the bowl's middle the hand must be

    def scene(self, b: SceneBuilder) -> AppleBowlHandles:
        c, top = self.config, 2 * COUNTER[2]
        b.fixture("counter", Shape(type="box", size=COUNTER, pos=(0.205, 0, COUNTER[2]), rgba=(0.66, 0.55, 0.44, 1)))
        ground(b, height=0.0, base_camera=(EYE, FOCUS), human_camera=((0.75, -0.95, 1.35), (-0.1, -0.15, 0.85)))
        robot = b.robot(pos=STAND)
        apple = b.sphere("apple", radius=c.radius, density=c.density, rgba=(0.75, 0.1, 0.08, 1))
        rolls = b.spec.geom("apple/0")  # resists rolling
        rolls.condim, rolls.friction[2] = 6, 0.001
        inner, height, wall = BOWL
        bowl = b.part("bowl", vessel(inner, height, wall=wall, floor=wall), kind="kinematic", rgba=(0.9, 0.9, 0.92, 1))
        self._hand = robot.groups[f"{_SIDE}_hand"]
        self._tool = robot.tools[_SIDE]
        self._heights = top + c.radius, top
        self._up, self._over = torch.tensor([0.0, 0.0, MIDDLE]), torch.tensor([0.0, 0.0, OVER])
        self._palm = Palm(robot, _SIDE)
        self._way, self._down = torch.tensor(_WAY) / math.hypot(*_WAY), torch.tensor([0.0, 0.0, -1.0])
        self._lift, self._drop = torch.tensor([0.0, 0.0, _LIFT]), torch.tensor([0.0, 0.0, _DROP])
        self._open, self._shut = torch.tensor(_OPEN), torch.tensor(_SHUT)
        # where the searches for joints begin: the torso turned to the apple, and nearly ahead
        self._guess, self._ahead = torch.zeros(robot.arm_joints), torch.zeros(robot.arm_joints)
        torso = robot.groups["torso"]
        self._guess[torso], self._ahead[torso] = 0.5, -0.1
        for guess in (self._guess, self._ahead):
            guess[self._palm.columns] = torch.tensor(_ARM)
        return AppleBowlHandles(robot=robot, apple=apple, bowl=bowl, grasp=b.grasp(self._tool, apple, max_angle=110.0))

    def start(self, h: AppleBowlHandles, ep: Episode) -> None:
        c = self.config
        h.robot.set_qpos(h.robot.keyframe())
        for part, y, height in ((h.apple, 0.0, self._heights[0]), (h.bowl, c.bowl_y, self._heights[1])):
            spot = torch.tensor([0.0, y]) + ep.rng.uniform(f"{part.name}/xy", -c.spread, c.spread, (2,))
            place = torch.cat([spot, torch.full((h.n, 1), height)], 1)
            part.set_pose(place, full_turn(ep, "apple/yaw") if part is h.apple else (1.0, 0.0, 0.0, 0.0))

    @per_step
    def middle(self, h: AppleBowlHandles) -> Tensor:
        """(n, 3) [m] the bowl's middle."""
        return h.bowl.pos + self._up

    @per_step
    def way(self, h: AppleBowlHandles) -> Tensor:
        """(n, 3) [m] from the apple to the bowl's middle."""
        return self.middle(h) - h.apple.pos

    def evaluate(self, h: AppleBowlHandles) -> dict[str, Tensor]:
        c = self.config
        placed = norm(self.way(h)) <= constant(c.place_tol)
        outside = self._tool.tcp_pos[:, 2] > self.middle(h)[:, 2] + constant(c.clearance)
        return {"success": placed & outside, "is_placed": placed, "is_outside": outside, "is_grasped": h.grasp.value}

    def observe(self, h: AppleBowlHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": self._tool.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {
                "bowl_pos": self.middle(h),
                "apple_pose": h.apple.pose,
                "tcp_to_apple": h.apple.pos - self._tool.tcp_pos,
                "apple_to_bowl": self.way(h),
            },
        }

    def reward(self, h: AppleBowlHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        held, away = ev["is_grasped"], norm(self.way(h) + self._over)
        there = away < constant(0.025)
        place, before = closeness(away, 5.0), ~there
        fingers = h.robot.arm_qpos[:, self._hand].abs().mean(1)
        terms = {
            "reach": closeness(norm(h.apple.pos - self._tool.tcp_pos), 5.0) * before,
            "grasp": (held & before).float(),
            "place": place * (held & before),
            "release": (constant(4.0) + place + closeness(fingers, 1.0)) * there,
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: AppleBowlHandles) -> list[Waypoint]:
        apple, bowl = h.apple.pos, self.middle(h)
        onto = self._at(apple - _NEAR * self._way, self._way, self._guess.expand(h.n, -1))
        beside = self._at(apple - _FAR * self._way, self._way, onto)
        lift = self._at(apple - _NEAR * self._way + self._lift, self._way, onto)
        over = self._at(bowl + self._drop, self._down, self._ahead.expand(h.n, -1))

        def go(name: str, joints: Tensor, fingers: Tensor, *, tol: float = 0.1, timeout: float = 1.5) -> Waypoint:
            joints = joints.clone()
            joints[:, self._hand] = fingers
            return Waypoint(name=name, joints=joints, gripper=1, rot_tol=tol, timeout_s=timeout)

        return [
            go("beside", beside, self._open, tol=0.15),
            go("onto", onto, self._open, tol=0.05),
            go("close", onto, self._shut).hold(0.6),
            go("lift", lift, self._shut).hold(0.4),
            go("over", over, self._shut).hold(1.6),
            go("open", over, self._open).hold(),
        ]

    def _at(self, place: Tensor, way: Tensor, start: Tensor) -> Tensor:
        """(n, joints) [rad] with which the palm is at ``place`` (n, 3) and faces along ``way`` (3,)."""
        return self._palm.at(place, way.expand(len(place), 3), start)[0]
