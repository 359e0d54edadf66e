"""Handles of what a robot acts with and feels by: its tools and its inertial measurement units."""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakValueDictionary, proxy

import mujoco
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.moved import old_names
from manikin.scene.handles.base import Handle, Scope, declared
from manikin.scene.handles.part import Part
from manikin.scene.robot import ToolModel
from manikin.spec.robot import ImuSpec

__all__ = ["RobotImu", "Owner", "RobotTool", "equip"]


class Owner(Protocol):
    """What a tool needs of its robot, whose handle has handles of its tools."""

    scope: Scope
    name: str
    prefix: str
    model: Any
    arm: Any
    grasps: Any
    tools: dict[str, RobotTool]
    imus: dict[str, RobotImu]

    @property
    def tcp_pose(self) -> Tensor: ...

    @property
    def opening(self) -> Tensor: ...


class RobotTool(Handle):
    """One tool of a robot: where it is, how far its gripper is open, what it holds.

    Questions about contact take it where they take a robot with one gripper: ``b.grasp(robot.tools["left"], cube)``.

    Attributes:
        key: its name on the robot; ``name`` has the robot's before it.
        group: the joints that are declared to bring it to a place; "" where none are.
    """

    def __init__(self, robot: Owner, model: ToolModel) -> None:
        super().__init__(robot.scope, f"{robot.name}/{model.name}")
        self.robot: Owner = proxy(robot)  # which refers to its tools: a circle would keep both until a collection
        self.model, self.prefix, self.arm = model, robot.prefix, robot.arm
        self.key = model.name
        self.gripper: Any = model.gripper
        declared = robot.arm.tools.get(model.name)
        self.group = declared.group if declared is not None else ""
        self.drivers: tuple[str, ...] = self.gripper.drivers if self.gripper is not None else ()
        self._first = robot.model.tools[0] is model
        self.grasps: Any = robot.grasps if self._first else WeakValueDictionary()  # the builder keeps them

    def bind(self, model: mujoco.MjModel) -> None:
        if self._first:
            return  # the robot reads it already
        world, device = self.scope.world, self.scope.device
        tcp = int(model.body(self.prefix + self.model.tcp_body).id)
        self._tcp_pose = world.channel([("xpos", 3 * tcp, 3 * tcp + 3), ("xquat", 4 * tcp, 4 * tcp + 4)], quat_at=3)
        if self.gripper is not None and self.drivers:
            adr = int(model.jnt_qposadr[model.joint(self.prefix + self.drivers[0]).id])
            self._driver = world.channel([("qpos", adr, adr + 1)])
            self._closed = torch.tensor(self.gripper.closed_q[0], device=device)
            self._way = torch.tensor(self.gripper.open_q[0] - self.gripper.closed_q[0], device=device)

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) pose of the tool centre point in the world; z points out of the gripper, y along its opening."""
        return self.robot.tcp_pose if self._first else self._get(self._tcp_pose)

    @property
    def tcp_pos(self) -> Tensor:
        """(n, 3) [m]."""
        return self.tcp_pose[:, :3]

    @property
    def tcp_quat(self) -> Tensor:
        """(n, 4) wxyz."""
        return self.tcp_pose[:, 3:]

    @property
    def opening(self) -> Tensor:
        """(n,) how far the gripper is open: 0 commanded closed, 1 fully open."""
        if not self.drivers:
            raise SceneError(f"{self.name} has no gripper that opens")
        if self._first:
            return self.robot.opening
        return (self._get(self._driver)[:, 0] - self._closed) / self._way

    def is_grasping(self, part: Part) -> Tensor:
        """(n,) bool; see :class:`Grasp`. Raises with the line to add when the pair was not declared."""
        word = f'{self.robot.name}.tools["{self.key}"]'
        value: Tensor = declared(self.grasps, self.name, word, part.name).value
        return value


class RobotImu(Handle):
    """What an inertial measurement unit of a robot measures, without noise, in its own frame."""

    def __init__(self, scope: Scope, robot: str, imu: ImuSpec) -> None:
        super().__init__(scope, f"{robot}/{imu.name}")

    def bind(self, model: mujoco.MjModel) -> None:
        adr = int(model.sensor(f"{self.name}/gyro").adr[0])  # the others are declared right after it
        world = self.scope.world
        self._gyro = world.channel([("sensordata", adr, adr + 3)])
        self._accelerometer = world.channel([("sensordata", adr + 3, adr + 6)])
        self._quat = world.channel([("sensordata", adr + 6, adr + 10)])

    @property
    def gyro(self) -> Tensor:
        """(n, 3) [rad/s]."""
        return self._get(self._gyro)

    @property
    def acceleration(self) -> Tensor:
        """(n, 3) [m/s^2] of the last substep, with what carries its weight: +9.81 upwards at rest."""
        return self._get(self._accelerometer)

    @property
    def quat(self) -> Tensor:
        """(n, 4) wxyz, its orientation in the world."""
        return self._get(self._quat)


def equip(spec: mujoco.MjSpec, robot: Owner) -> list[Handle]:
    """Give a robot handles of its tools and IMUs, and the scene the sensors of these; returns the handles."""
    robot.tools = {tool.name: RobotTool(robot, tool) for tool in robot.model.tools if tool.name}
    robot.imus = {imu.name: _declare_imu(spec, robot, imu) for imu in robot.arm.sensors}
    return [*robot.tools.values(), *robot.imus.values()]


def _declare_imu(spec: mujoco.MjSpec, robot: Owner, imu: ImuSpec) -> RobotImu:
    """Add an IMU's sensors to a scene; its site is in the robot's model."""
    handle, kinds = RobotImu(robot.scope, robot.name, imu), mujoco.mjtSensor
    for what, kind in (
        ("gyro", kinds.mjSENS_GYRO),
        ("accelerometer", kinds.mjSENS_ACCELEROMETER),
        ("quat", kinds.mjSENS_FRAMEQUAT),
    ):
        spec.add_sensor(
            name=f"{handle.name}/{what}",
            type=kind,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=robot.prefix + imu.name,
        )
    return handle


__getattr__ = old_names(__name__)
