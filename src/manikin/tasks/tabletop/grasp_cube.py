"""GraspCube-v1: the scene that ManiSkill3's authors trained a policy for a real arm in."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import ContactForce, Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_rotate
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import CameraLook, Distractors, LightLook, Looks, Surface
from manikin.spec.physics import Physics
from manikin.spec.vary import Normal, Uniform
from manikin.toolkit import GRASP, above, closeness, finger_gap, full_turn, noisy_rest, per_step, top_down

__all__ = ["GraspCube"]


@dataclass
class GraspCubeHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cube: Part
    grasp: Grasp
    touch: ContactForce


class GraspCube(Task):
    """Grasp a small cube of any colour and bring it back to the arm's rest pose, with a hobby arm.

    The policy knows what the real arm knows: joint positions, commanded positions, and whether the jaw is held open by
    something. It does not know velocities and contact forces.

    Randomization: the cube's place, uniform in a square on the table, its turn, side, mass, friction and colour; the
    arm's joints, normal noise about rest. Where pictures are observed, also the camera (its place anew at every step),
    its field of view and the robot's colours; see ``looks``.
    Success: the fingers hold the cube, it is off the table, and the commanded arm joints are back at rest.

    Numbers: ManiSkill3's paper (Tao et al. 2024, arXiv:2410.00425, section VIII) and code 3.0.1, about the middle of
    the square. Chosen here: the range of masses, and the length of an episode in seconds, which is that of the code
    (75 steps at 15 Hz) at the paper's rate of 30 Hz. The reward is the paper's, with the absolute value that its
    second term lacks.
    """

    id = "GraspCube-v1"
    horizon_s = 5.0
    labels = GRASP
    instruction = "grasp the cube and lift it"
    robots = ("so101", "koch")
    robot_needs = ("arm", "gripper")
    # the Koch points straight down no farther than 17 cm from its base; its fingertips are 13 mm beyond the TCP
    robot_config = {"koch": {"spawn_x": -0.025, "grasp_height": 0.017}}
    control = "joint_target_delta_pos:step=0.05,gripper=0.2"
    control_hz = 30.0
    physics = Physics(hz=120.0)
    measures_velocity = False
    reward_max = 8.0
    observations = {
        "target_qpos": Quantity("rad", "joint", "positions commanded last"),
        "is_grasped": Quantity("0 or 1", note="the jaw stays behind its command, which asks it to close"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
        "cube_side": Quantity("m"),
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "tcp_to_cube": Quantity("m", "world"),
    }
    reward_terms = {
        "reach": "1 - tanh(15 d), d from TCP to cube",
        "level": "1 - |u g|, u up and g along the opening of the jaw",
        "close": "2 (1 - tanh(40 |w - c|)) while the TCP is in the cube, w between the pads, c the cube's side",
        "grasp": "1 + 3 (1 - tanh(4 d / pi)) while grasped, d of the arm's joints from rest",
        "touch": "-2 while a finger touches the table",
    }

    @dataclass(frozen=True)
    class Config:
        spawn_half_size: float = 0.05  # [m]
        spawn_x: float = 0.0  # [m] the middle of the square
        side: tuple[float, float] = (0.015, 0.0225)  # [m] least and most
        mass: tuple[float, float] = (0.003, 0.02)  # [kg] least and most
        friction: tuple[float, float] = (0.3, 0.025)  # cube on table: mean and standard deviation, cut to 0.1 .. 0.5
        finger_friction: tuple[float, float] = (0.575, 0.00625)  # times that of the fingers (of pads 2): mean and std
        darkest: tuple[float, float, float] = (0.0, 0.0, 0.0)  # the cube's colour, least of each channel
        brightest: tuple[float, float, float] = (1.0, 1.0, 1.0)  # and most
        rest_std: float = 0.02  # [rad] noise of the arm's joints at the start
        closed: float = 0.0  # share of the episodes that begin with the jaw closed
        servo_gain: float = 1.0  # times the stiffness of the arm's servos
        at_rest: float = 0.2  # [rad] norm of what the commanded arm joints may be off rest in success
        lifted: float = 0.001  # [m] the cube must be so far off the table
        felt: float = 0.02  # [rad] the jaw counts as held open so far behind its command ...
        felt_below: float = 0.24  # [rad] ... while the command is nearer than this to closed
        touch_force: float = 0.01  # [N]
        grasp_height: float = 0.0  # [m] the expert's TCP is no lower than this
        # where pictures are observed
        camera_shift: float = 0.025  # [m] per axis and step, to either side
        camera_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)  # [m]
        camera_turn: tuple[float, float, float] = (0.0, 0.0, 0.0)  # [rad] about right, down and forward
        camera_fovy: tuple[float, float] = (-0.035, 0.035)  # [rad] more than 52 degrees, least and most
        robot_tint: tuple[float, float, float] = (0.0, 0.0, 0.0)  # added to the robot's colours, mean ...
        robot_colour: float = 0.05  # ... and standard deviation of each channel,
        robot_range: float = 0.0  # or where this is not 0, a uniform range to either side in place of the normal law
        light: tuple[float, float] = (1.0, 1.0)  # times its intensity, least and most
        light_turn: tuple[float, float] = (0.0, 0.0)  # [rad] of its direction about each axis, least and most
        ambient: float = 0.35  # strength of light from everywhere
        table_low: tuple[float, float, float] = (0.66, 0.55, 0.44)  # the table's colour, least of each channel
        table_high: tuple[float, float, float] = (0.66, 0.55, 0.44)  # and most
        table_textures: tuple[str, ...] = ("plain",)  # one of these, see manikin.spec.looks.TEXTURES
        distractors: int = 0  # things that only cameras see

    def scene(self, b: SceneBuilder) -> GraspCubeHandles:
        c = self.config
        table(b, human_camera=((0.35, 0.4, 0.3), (-0.05, 0, 0.05)))
        b.camera(
            CameraSpec(name="base_camera", pos=(0.175, 0.26, 0.2), target=(-0.025, 0.0, 0.0), fovy=0.9076), replace=True
        )
        stiff = None if c.servo_gain == 1.0 else Uniform(c.servo_gain, c.servo_gain)
        mean, std = c.finger_friction
        robot = b.robot(gains=stiff, finger_friction=Normal(mean, std, low=0.0))
        cube = b.box(
            "cube",
            half_size=Uniform(c.side[0] / 2, c.side[1] / 2),
            mass=Uniform(*c.mass),
            friction=Normal(c.friction[0], c.friction[1], low=0.1, high=0.5),
            rgba=Uniform((*c.darkest, 1.0), (*c.brightest, 1.0)),
        )
        spec = robot.gripper
        self._closed, self._sign = spec.closed_q[0], 1.0 if spec.open_q[0] > spec.closed_q[0] else -1.0
        self._width = spec.max_width
        return GraspCubeHandles(
            robot=robot,
            cube=cube,
            grasp=b.grasp(robot, cube, max_angle=110.0),
            touch=b.contact_force(robot, None, link=spec.fingers[0].body),  # the other finger hangs on it
        )

    def looks(self) -> Looks:
        """As declared in the configuration."""
        c = self.config
        lights = None
        if c.light != (1.0, 1.0) or any(c.light_turn):
            lights = LightLook(turn=Uniform(*c.light_turn), intensity=Uniform(*c.light))
        table_look = Surface(colour=Uniform(c.table_low, c.table_high), textures=c.table_textures)
        tint: Normal | Uniform = Normal(c.robot_tint, c.robot_colour)
        if c.robot_range:
            low, high = (tuple(x + side * c.robot_range for x in c.robot_tint) for side in (-1, 1))
            tint = Uniform(low, high)
        still = not any((*c.camera_offset, *c.camera_turn))
        placed = CameraLook(
            shift=None if still else Uniform(c.camera_offset, c.camera_offset),
            turn=None if still else Uniform(c.camera_turn, c.camera_turn),
            fovy=Uniform(*c.camera_fovy),
        )
        shaken = CameraLook(shift=Uniform(-c.camera_shift, c.camera_shift), every="step")
        return Looks(
            cameras={"base_camera": (placed, shaken)},
            lights=lights,
            ambient=Uniform(c.ambient, c.ambient),
            surfaces={"robot": Surface(offset=tint), "table": table_look},
            distractors=self._distractors() if c.distractors else None,
        )

    def _distractors(self) -> Distractors:
        """In the picture, but neither where the cube begins nor at the arm."""
        free = self.config.spawn_half_size + 0.04
        keep_out = (-0.26, -free, self.config.spawn_x + free, free)
        return Distractors(
            count=self.config.distractors,
            size=Uniform(0.008, 0.02),
            low=(-0.2, -0.2),
            high=(0.15, 0.15),
            keep_out=(keep_out,),
        )

    def start(self, h: GraspCubeHandles, ep: Episode) -> None:
        half = self.config.spawn_half_size
        opening = (ep.rng.uniform("jaw", 0.0, 1.0) >= self.config.closed).float() if self.config.closed else 1.0
        noisy_rest(h.robot, ep, self.config.rest_std, opening=opening)
        spot = ep.rng.uniform("cube/xy", -half, half, (2,))
        spot = spot + torch.tensor([self.config.spawn_x, 0.0])
        h.cube.set_pose(torch.cat([spot, h.cube.size[:, 2:]], 1), full_turn(ep, "cube/yaw"))

    def measured(self, qpos: Tensor, target: Tensor) -> dict[str, Tensor]:
        c = self.config
        behind = (qpos[:, -1] - target[:, -1]) * self._sign
        closing = (target[:, -1] - self._closed) * self._sign
        return {"target_qpos": target, "is_grasped": (behind >= c.felt) & (closing < c.felt_below)}

    @per_step
    def tcp_to_cube(self, h: GraspCubeHandles) -> Tensor:
        return h.cube.pos - h.robot.tcp_pos

    def evaluate(self, h: GraspCubeHandles) -> dict[str, Tensor]:
        c, arm = self.config, h.robot.arm_joints
        is_lifted = h.cube.pos[:, 2] >= h.cube.size[:, 2] + c.lifted
        is_back = norm(h.robot.ctrl[:, :arm] - h.robot.keyframe()) < c.at_rest
        return {
            "success": is_lifted & is_back & h.grasp.value,
            "is_grasped": h.grasp.value,
            "is_lifted": is_lifted,
            "is_back": is_back,
            "is_touching": norm(h.touch.value) >= c.touch_force,
        }

    def observe(self, h: GraspCubeHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": self.measured(h.robot.qpos, h.robot.ctrl),
            "privileged": {
                "cube_pose": h.cube.pose,
                "cube_side": 2.0 * h.cube.size[:, 0],
                "tcp_pose": h.robot.tcp_pose,
                "tcp_to_cube": self.tcp_to_cube(h),
            },
        }

    def reward(self, h: GraspCubeHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        distance, half = norm(self.tcp_to_cube(h)), h.cube.size[:, 0]
        gap = self._width * finger_gap(h.robot)
        opening = quat_rotate(h.robot.tcp_quat, torch.tensor([[0.0, 1.0, 0.0]]).expand(h.n, 3))
        away = norm(h.robot.arm_qpos - h.robot.keyframe())
        return {
            "reach": closeness(distance, 15.0),
            "level": 1.0 - opening[:, 2].abs(),
            "close": 2.0 * (distance <= half) * closeness((gap - 2.0 * half).abs(), 40.0),
            "grasp": ev["is_grasped"] * (1.0 + 3.0 * closeness(away, 4.0 / torch.pi)),
            "touch": -2.0 * ev["is_touching"],
        }

    def expert(self, h: GraspCubeHandles) -> list[Waypoint]:
        down, tcp = top_down(h.cube.quat, h.robot), pose(h.robot.tcp_pos, h.robot.tcp_quat)
        pos, quat = (one.float().expand(h.n, -1) for one in h.robot.solver.chain.rest_pose)
        rest = torch.cat([pos + h.robot.base_pose[:3], quat], 1)  # the base is not turned
        # both arms sag under their own weight: ask for as much beyond the cube as the TCP is short of it
        goal = torch.cat([h.cube.pos[:, :2], h.cube.pos[:, 2:].clamp(min=self.config.grasp_height)], 1)
        at = pose(goal + (goal - h.robot.tcp_pos).clamp(-0.02, 0.02), down)
        return [
            Waypoint(
                name="above", pose=pose(above(h.cube.pos, 0.05), down), gripper=1, pos_tol=0.025, rot_tol=0.2, speed=0.4
            ),
            Waypoint(name="down", pose=at, gripper=1, pos_tol=0.012, rot_tol=0.2, speed=0.2, track=True),
            Waypoint(name="close", pose=at, gripper=-1, pos_tol=0.0, timeout_s=0.3),
            Waypoint(
                name="lift",
                pose=pose(above(tcp[:, :3], 0.03), tcp[:, 3:]),
                gripper=-1,
                pos_tol=0.02,
                rot_tol=0.2,
                speed=0.2,
            ),
            Waypoint(name="back", pose=rest, gripper=-1).hold(),
        ]
