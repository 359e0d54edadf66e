"""PullCubeTool-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import Episode, Grasp, Handles, Part, Quantity, Robot, SceneBuilder, Task, Waypoint
from manikin.arenas.table import table
from manikin.math import norm, pose, pose_apply, pose_inv, pose_mul, quat_from_yaw
from manikin.spec.prop import Shape
from manikin.toolkit import GRASP, above, bearing, bonus, closeness, constant, first_valid, noisy_rest, per_step, tilted

__all__ = ["PullCubeTool"]


@dataclass
class PullCubeToolHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    tool: Part
    cube: Part
    grasp: Grasp


class PullCubeTool(Task):
    """Pull a cube that lies far away to the robot with an L-shaped tool.

    Randomization: the tool's place, uniform in a square on the table near the robot, always pointing away from it; the
    cube's place, uniform in a rectangle farther away and never in the tool, and its turn about the vertical; the arm's
    joints, a little noise about rest.
    Success: the cube's centre is less than ``near`` from the robot's base, along the table.

    Numbers: ManiSkill3 3.0.1, but 150 control steps instead of 100, for cubes near the end of the arm's reach.
    ManiSkill3's cube may start inside the tool, and it starts 5 mm above the table. The reward differs. ManiSkill3 asks
    for the hook 6 cm behind the cube, so that it pays nothing for pulling while the hook touches the cube, and it does
    not turn that place with the tool. It divides a reward that can exceed 10 by 5. ``published_reward`` gives its dense
    reward. Friction is 1.
    """

    id = "PullCubeTool-v1"
    horizon_s = 7.5
    labels = GRASP
    instruction = "pull the blue cube nearer with the red tool"
    robots = ("panda",)
    reward_max = 10.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "is_grasped": Quantity("0 or 1", "", "whether the gripper holds the tool"),
        "tool_pose": Quantity("m, quaternion wxyz", "world", "x along the handle to the hook, y along the hook"),
        "cube_pose": Quantity("m, quaternion wxyz", "world"),
    }
    reward_terms = {
        "reach": "2 (1 - tanh(5 d)), d from TCP to the place to hold the tool",
        "grasp": "2 while grasped, the fingers' forces within 20 degrees of their closing direction",
        "hook": "while grasped, 1.5 (1 - tanh(3 d)), d from the cube to where the hook catches it",
        "pull": "while grasped and d < 0.05 m, 3 times the share of the way that the cube has come to the robot",
        "away": "-2 once the cube is pushed out of reach",
        "success": "what is missing to 10, in success; as published, 5",
    }

    @dataclass(frozen=True)
    class Config:
        handle_length: float = 0.2  # [m]
        hook_length: float = 0.05  # [m] along the handle, of which it is the end
        width: float = 0.05  # [m] of the handle, and its height; the hook is twice as long across
        handle_density: float = 500.0  # [kg/m^3]; the hook's is 1000
        cube_half_size: float = 0.02  # [m]
        tool_low: tuple[float, float] = (-0.3, -0.3)  # [m] place of the handle's near end
        tool_high: tuple[float, float] = (-0.1, -0.1)  # [m]
        cube_low: tuple[float, float] = (0.05, -0.25)  # [m] place of the cube
        cube_high: tuple[float, float] = (0.25, 0.05)  # [m]
        cube_turn: float = math.pi / 6  # [rad] either way
        near: float = 0.6  # [m] from the robot's base
        far: float = 0.5  # [m] a cube beyond this x is out of reach
        hold_at: float = 0.02  # [m] from the handle's near end, where to hold it
        hook_tol: float = 0.05  # [m] the cube counts as caught within this
        grasp_angle: float = 20.0  # [deg]
        published_reward: bool = False  # whether the dense reward is ManiSkill3's

    def scene(self, b: SceneBuilder) -> PullCubeToolHandles:
        c = self.config
        table(b, base_camera=((0.3, 0, 0.5), (-0.1, 0, 0.1)), human_camera=((0.75, 0.6, 0.6), (-0.1, -0.1, 0.0)))
        long, hook, half = c.handle_length, c.hook_length, c.width / 2
        # the middle of a cube that the hook touches, with a centimetre to spare
        self._caught = torch.tensor([long - hook - c.cube_half_size - 0.01, half + (2 * c.width - half) / 2, 0.0])
        catch = torch.tensor([hook + c.cube_half_size, 0.067, 0.0]) if c.published_reward else self._caught
        self._points = torch.stack([torch.tensor([c.hold_at, 0.0, 0.0]), catch])  # as the reward has them
        robot = b.robot()
        shapes = [
            Shape(type="box", size=(long / 2, half, half), pos=(long / 2, 0, 0), density=c.handle_density),
            Shape(type="box", size=(hook / 2, c.width, half), pos=(long - hook / 2, c.width, 0)),
        ]
        tool = b.part("tool", shapes, rgba=(0.85, 0.1, 0.1, 1))
        cube = b.box("cube", half_size=(c.cube_half_size,) * 3, rgba=(0.05, 0.16, 0.63, 1))
        grasp = b.grasp(robot, tool, max_angle=c.grasp_angle)
        return PullCubeToolHandles(robot=robot, tool=tool, cube=cube, grasp=grasp)

    def start(self, h: PullCubeToolHandles, ep: Episode) -> None:
        c, rng = self.config, ep.rng
        noisy_rest(h.robot, ep)
        tool = rng.uniform("tool/xy", torch.tensor(c.tool_low), torch.tensor(c.tool_high), (2,))
        h.tool.set_pose(torch.cat([tool, torch.full((h.n, 1), c.width / 2)], 1))
        # of a few places the first in which the cube, however turned, is not in the tool
        spots = rng.uniform("cube/xy", torch.tensor(c.cube_low), torch.tensor(c.cube_high), (16, 2))
        room = math.sqrt(2) * c.cube_half_size
        low = torch.tensor([-room, -c.width / 2 - room])
        high = torch.tensor([c.handle_length + room, 2 * c.width + room])
        apart = spots - tool[:, None]
        cube = first_valid(spots, ((apart < low) | (apart > high)).any(2))
        turn = quat_from_yaw(rng.uniform("cube/yaw", -c.cube_turn, c.cube_turn))
        h.cube.set_pose(torch.cat([cube, torch.full((h.n, 1), c.cube_half_size)], 1), turn)

    @per_step
    def places(self, h: PullCubeToolHandles) -> Tensor:
        """(n, 2, 3) [m] where to hold the tool, and where its hook catches the cube."""
        if self.config.published_reward:
            return h.tool.pos[:, None] + self._points
        return pose_apply(h.tool.pose[:, None], self._points[None])

    def evaluate(self, h: PullCubeToolHandles) -> dict[str, Tensor]:
        away = norm((h.cube.pos - h.robot.base_pose[:3])[:, :2])
        return {"success": away < constant(self.config.near), "is_grasped": h.grasp.value}

    def observe(self, h: PullCubeToolHandles) -> dict[str, dict[str, Tensor]]:
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "is_grasped": h.grasp.value},
            "privileged": {"tool_pose": h.tool.pose, "cube_pose": h.cube.pose},
        }

    def reward(self, h: PullCubeToolHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        c, cube, grasped = self.config, h.cube.pos, ev["is_grasped"]
        hold, catch = self.places(h).unbind(1)
        off = norm(catch - cube)
        home = h.robot.base_pose[:3] + torch.tensor([0.05, 0.0, 0.0])
        whole = norm(torch.tensor([0.45, 0.0, 0.01]) - home)
        come = (whole - norm(cube - home)) / whole
        terms = {
            "reach": 2.0 * closeness(norm(hold - h.robot.tcp_pos), 5.0),
            "grasp": 2.0 * grasped,
            "hook": 1.5 * grasped * closeness(off, 3.0),
            "pull": 3.0 * (grasped & (off < c.hook_tol)) * come,
            "away": -2.0 * (cube[:, 0] > c.far),
        }
        if c.published_reward:
            return {**terms, "success": 5.0 * ev["success"]}
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: PullCubeToolHandles) -> list[Waypoint]:
        # lift the tool over the cube, set it down so that the hook is behind, and pull straight to the base
        c, tool, tcp, cube = self.config, h.tool.pose, h.robot.tcp_pos, h.cube.pos
        down = tilted(h.robot, 0.2)
        hold = pose_apply(tool, torch.tensor([0.05, 0.0, 0.0]).expand(h.n, 3))
        in_hand = pose_mul(pose_inv(tool), h.robot.tcp_pose)
        turn = quat_from_yaw(bearing(h.robot, cube))

        def caught_at(point: Tensor, height: float, behind: float = 0.0) -> Tensor:
            """TCP pose with the tool's bottom at a height [m] that has the hook around the point, or behind it."""
            catch = self._caught - torch.tensor([behind, 0.0, 0.0])
            at = pose_apply(pose(point, turn), -catch.expand(h.n, 3))
            at[:, 2] = height + c.width / 2
            return pose_mul(pose(at, turn), in_hand)

        base = h.robot.base_pose[:3]
        goal = base + (cube - base) * ((c.near - 0.03) / norm((cube - base)[:, :2]))[:, None]
        up = pose(above(tcp, 0.09), h.robot.tcp_quat)
        over, behind = caught_at(cube, 0.08, 0.02), caught_at(cube, 0.01, 0.02)
        return [
            Waypoint(name="above", pose=pose(above(hold, 0.06), down), gripper=1, pos_tol=0.03, rot_tol=0.2, speed=1.0),
            Waypoint(name="down", pose=pose(hold, down), gripper=1, pos_tol=0.008, rot_tol=0.05),
            Waypoint(name="close", pose=pose(hold, down), gripper=-1, pos_tol=0.01, dwell_s=0.2),
            Waypoint(name="lift", pose=up, gripper=-1, pos_tol=0.02, timeout_s=1.0),
            Waypoint(name="over", pose=over, gripper=-1, pos_tol=0.02, rot_tol=0.1, speed=1.0, timeout_s=3.0),
            Waypoint(name="lower", pose=behind, gripper=-1, pos_tol=0.01, dwell_s=0.15, timeout_s=1.5),
            Waypoint(name="pull", pose=caught_at(goal, 0.016), gripper=-1, speed=0.6).hold(),
        ]
