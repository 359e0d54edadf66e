"""TriFingerRotateCube-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Event, Handles, Labels, Marker, Mode, Part, Quantity, Robot, SceneBuilder, Task, Variable
from manikin.arenas.ground import ground
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import norm, pose, quat_angle, quat_from_yaw, quat_normalize, quat_to_yaw, wrap_to_pi
from manikin.props.hands.painted_cube import painted_faces
from manikin.spec.prop import Shape
from manikin.tasks.hands.three_tips import tip_joints, tip_targets, tip_torques
from manikin.toolkit import closeness, constant, per_step

__all__ = ["TriFingerRotateCube"]

SIDE = 0.065  # [m] of the cube
ARENA = 0.195  # [m] radius of the bowl's floor
ROUND = SIDE * 3**0.5 / 2  # [m] from the cube's middle to a corner
HIGHEST = 0.1  # [m] of a goal
PUBLISHED_START = 0.032  # [m] height of the cube at the start, as ManiSkill3's reward has it
WALL, SEGMENTS = 0.06, 24  # [m] height of the rim; flat pieces that it is made of
TIPS = ("tip_0", "tip_120", "tip_240")
LEVELS = range(5)
TURNED = (1, 4)  # levels with a goal orientation


@dataclass
class TriFingerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    goal: Variable  # (7,) pose [m, wxyz]
    marker: Marker


class TriFingerRotateCube(Task):
    """Bring a cube to a goal with three fingers that hang over it.

    ``level`` says how hard it is: 0 a place on the table; 1 a place and a turn about the vertical; 2 a place 5 cm above
    the middle; 3 any place up to 10 cm high; 4 a place and any orientation.

    Randomization: the goal, as the level says, its place uniform in a disc; the fingers' joints, a little noise. The
    cube begins in the middle, unturned.
    Success: the cube is within ``goal_radius`` of the goal and, where the level has an orientation, within
    ``goal_angle`` of it.

    Numbers: ManiSkill3 3.0.1, after IsaacGymEnvs' Trifinger. It says that levels 0, 2 and 3 have no orientation and
    then asks for the unturned one, in reward and success; ``published_orientation`` does so, too. Its fingers begin
    straight, which needs their holder 5 cm higher; here they begin bent, and the holder is where the makers have it.
    Its cube falls from 5 mm; here it lies. The makers' rim is a mesh; here it is flat pieces around the same circle.
    Its normalized reward is R / 30 + 1/2 of the dense reward R and lies between 0 and 1; here it is R / 15, and a cube
    that is led astray costs. Its R has the start half a millimetre lower than the cube lies. ``published_reward`` does
    both: the dense reward then is R / 2 + 7.5, and the normalized one ManiSkill3's.
    """

    id = "TriFingerRotateCube-v1"
    horizon_s = 12.5
    instruction = "bring the cube to the green goal"
    robots = ("trifinger",)
    robot_needs = ("middle", "tip_0", "tip_120", "tip_240")
    labels = Labels(
        events=(Event("moved", "is_moved"), Event("near", "is_near"), Event("success", "success")),
        success=(Mode("success", "otherwise"),),
        failure=(
            Mode("not_moved", "not moved", "the cube lay where it began"),
            Mode("not_turned", "near", "it was at the goal's place, and not as turned"),
            Mode("not_there", "otherwise", "it was moved, and never to the goal"),
        ),
        source="tasks whose object is moved; flags is_moved and is_near",
    )
    reward_max = 15.0
    observations = {
        "goal_pose": Quantity("m, quaternion wxyz", "world"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "cube_velocity": Quantity("m/s", "world"),
        "cube_to_goal": Quantity("m", "world"),
        "cube_to_tips": Quantity("m", "world", "to the three tips"),
        "angle_left": Quantity("rad", "", "from the cube's orientation to the goal's; 0 where none is asked for"),
    }
    reward_terms = {
        "total": "5 (mean over the tips of r(d_tip) + r(d) - r(d_0) + 5 (r(z) - r(z_0)) - a), kept within 15 either "
        "way, r(x) = 1 - tanh(5 x): d_tip from tip to cube, d from cube to goal, z their difference in height, 0 at "
        "the start, a the angle to the goal's orientation where one is asked for; as published, half of it and 7.5",
        "success": "what is missing to 15, in success",
    }

    @dataclass(frozen=True)
    class Config:
        level: int = 0  # 0 to 4
        noise: float = 0.02  # [rad] of the joints
        goal_radius: float = 0.02  # [m]
        goal_angle: float = 0.1  # [rad]
        density: float = 1000.0  # [kg/m^3] of the cube
        friction: float = 1.0  # sliding, of the cube on the table
        moved: float = 0.01  # [m] it counts as moved beyond this
        published_orientation: bool = False  # every level asks for an orientation, as in ManiSkill3
        published_reward: bool = False  # whether the normalized reward is ManiSkill3's

    def __init__(self, config: object = None, *, arm: str = "", layout: str | None = None) -> None:
        super().__init__(config, arm=arm, layout=layout)
        if self.config.level not in LEVELS:
            raise UnknownNameError(f"level of {self.id}", self.config.level, map(str, LEVELS))
        self._turns = self.config.level in TURNED or self.config.published_orientation

    def scene(self, b: SceneBuilder) -> TriFingerHandles:
        c = self.config
        ground(b, height=0.0, base_camera=((0.7, 0, 0.7), (0, 0, 0)), human_camera=((0.45, 0.3, 0.4), (0, 0, 0.1)))
        half = (ARENA + 0.005) * math.tan(math.pi / SEGMENTS) + 0.002
        for k in range(SEGMENTS):
            angle = 2 * math.pi * k / SEGMENTS
            place = ((ARENA + 0.005) * math.cos(angle), (ARENA + 0.005) * math.sin(angle), WALL / 2)
            turn = (math.cos(angle / 2), 0, 0, math.sin(angle / 2))
            wall = Shape(type="box", size=(0.005, half, WALL / 2), pos=place, quat=turn, rgba=(0.5, 0.5, 0.52, 1))
            b.fixture(f"rim_{k}", wall)
        robot = b.robot()
        body = Shape(type="box", size=(SIDE / 2,) * 3)
        cube = b.part("cube", [body], looks=painted_faces(SIDE / 2), density=c.density, friction=c.friction)
        goal = b.marker("goal_marker", shape="box", size=(SIDE / 2,) * 3, rgba=(0.1, 0.8, 0.2, 0.35))
        self._reset = torch.tensor([0.0, 0.0, SIDE / 2])
        return TriFingerHandles(robot=robot, cube=cube, goal=b.variable("goal", (7,)), marker=goal)

    def start(self, h: TriFingerHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        h.robot.set_qpos(h.robot.keyframe() + ep.rng.normal("robot/qpos", 0.0, c.noise, (9,)))
        h.cube.set_pose(self._reset)
        goal = pose(self.drawn_place(ep, n), self.drawn_turn(ep, n))
        h.goal.set(goal)
        h.marker.set_pose(goal[:, :3], goal[:, 3:])

    def drawn_place(self, ep: Episode, n: int) -> Tensor:
        """(n, 3) [m] of the goal."""
        level = self.config.level
        if level == 2:
            return torch.tensor([0.0, 0.0, SIDE / 2 + 0.05]).expand(n, 3)
        least = 0.0 if level == 4 else 2 * self.config.goal_radius  # never where the cube is already
        far = ARENA - ROUND
        square = ep.rng.uniform("goal/radius", least**2, far**2, (1,))
        angle = ep.rng.uniform("goal/angle", -math.pi, math.pi, (1,))
        flat = torch.sqrt(square) * torch.cat([torch.cos(angle), torch.sin(angle)], 1)
        if level < 2:
            return torch.cat([flat, torch.full((n, 1), SIDE / 2)], 1)
        lowest = SIDE / 2 if level == 3 else ROUND
        return torch.cat([flat, ep.rng.uniform("goal/height", lowest, HIGHEST, (1,))], 1)

    def drawn_turn(self, ep: Episode, n: int) -> Tensor:
        """(n, 4) wxyz of the goal."""
        if self.config.level == 1:
            return quat_from_yaw(ep.rng.uniform("goal/turn", -math.pi, math.pi))
        if self.config.level == 4:  # uniform over all orientations
            return quat_normalize(ep.rng.normal("goal/turn", 0.0, 1.0, (4,)))
        return torch.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(n, 4)

    @per_step
    def to_goal(self, h: TriFingerHandles) -> Tensor:
        """(n, 3) [m] from the cube."""
        return h.goal.value[:, :3] - h.cube.pos

    @per_step
    def to_tips(self, h: TriFingerHandles) -> Tensor:
        """(n, 3, 3) [m] from the cube."""
        return torch.stack([h.robot.tools[tip].tcp_pos for tip in TIPS], 1) - h.cube.pos[:, None]

    @per_step
    def angle(self, h: TriFingerHandles) -> Tensor:
        """(n,) [rad] from the cube's orientation to the goal's; 0 where none is asked for."""
        if not self._turns:
            return torch.zeros(h.n)
        return quat_angle(h.cube.quat, h.goal.value[:, 3:])

    def evaluate(self, h: TriFingerHandles) -> dict[str, Tensor]:
        near = norm(self.to_goal(h)) < constant(self.config.goal_radius)
        return {
            "success": near & (self.angle(h) < constant(self.config.goal_angle)),
            "is_near": near,
            "is_moved": norm(h.cube.pos - self._reset) > constant(self.config.moved),
        }

    def observe(self, h: TriFingerHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"goal_pose": h.goal.value},
            "privileged": {
                "cube_pose": h.cube.pose,
                "cube_velocity": h.cube.linvel,
                "cube_to_goal": self.to_goal(h),
                "cube_to_tips": self.to_tips(h),
                "angle_left": self.angle(h)[:, None],
            },
        }

    def reward(self, h: TriFingerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        published = self.config.published_reward
        began = torch.tensor([0.0, 0.0, PUBLISHED_START]) if published else self._reset
        left, whole = self.to_goal(h), h.goal.value[:, :3] - began
        tips = closeness(norm(self.to_tips(h)), 5.0).mean(1)
        place = closeness(norm(left), 5.0) - closeness(norm(whole), 5.0)
        height = closeness(left[:, 2].abs(), 5.0) - closeness(whole[:, 2].abs(), 5.0)
        total = (5.0 * (tips + place + 5.0 * height - self.angle(h))).clamp(-15.0, 15.0)
        if published:
            total = 0.5 * total + 7.5
        return {"total": total, "success": torch.where(ev["success"], 15.0 - total, 0.0)}

    def expert(self, h: TriFingerHandles) -> Tensor:
        """Of levels 0 to 3: three tips press on the cube and carry it to the goal; see ``three_tips``."""
        if self.config.level == 4:
            raise ConfigError(f"the expert of {self.id} turns the cube about the vertical alone: levels 0 to 3")
        base, yaw = h.robot.base_pose[:3], quat_to_yaw(h.cube.quat)
        tips = self.to_tips(h) + (h.cube.pos - base)[:, None]
        turn = wrap_to_pi(quat_to_yaw(h.goal.value[:, 3:]) - yaw) if self._turns else torch.zeros(h.n)
        goal, forces = tip_targets(tips, h.cube.pos - base, h.goal.value[:, :3] - base, yaw, turn)
        # the servos go this share of the way within a step (kp / kd = 10/s), and an action of 1 asks for 0.1 rad
        share = 0.1 * (1.0 - math.exp(-10.0 / self.control_hz))
        action = ((tip_joints(goal) - h.robot.arm_qpos) / share).reshape(h.n, 3, 3)
        action = action / action.abs().amax(2, keepdim=True).clamp_min(1.0)  # each finger goes straight
        pushed = tip_torques(tips, forces) / (0.1 * torch.tensor(h.robot.arm.gains.kp))
        return (action.flatten(1) + pushed).clamp(-1.0, 1.0)
