"""A robot: its joints, its tool, its base."""

from __future__ import annotations

from itertools import accumulate
from typing import Any
from weakref import WeakValueDictionary

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError, UnknownNameError
from manikin.math import atan2, pose, pose_inv, pose_mul, quat_from_yaw, quat_to_yaw
from manikin.scene.handles.base import Handle, Scope, declared, expand, runs
from manikin.scene.handles.grasp import Grasp
from manikin.scene.handles.part import Part
from manikin.scene.handles.servos import Servos
from manikin.scene.handles.tool import RobotImu, RobotTool
from manikin.scene.robot import CENTRE, FAR, FREE

__all__ = ["Robot"]


class Robot(Handle):
    """A robot. Joint vectors have the joints of its groups first, then the driven joints of its grippers.

    Attributes:
        arm: how it is declared.
        groups: name: where its joints are in those vectors.
        tools: name: a handle of each tool. What is said here of a TCP or a gripper is the first tool's.
        imus: name: a handle of each inertial measurement unit.
        carriers: joints that carry it and are none of its own; a whole robot has none.
    """

    carriers: tuple[str, ...] = ()

    def __init__(self, scope: Scope, name: str, model: Any, prefix: str, base_pos: Any, base_quat: Any) -> None:
        super().__init__(scope, name)
        self.model, self.prefix = model, prefix
        self.arm, self.gripper = model.arm, model.gripper
        self.base_pose = torch.tensor([*base_pos, *base_quat], dtype=torch.float32)
        self.stands_straight = tuple(base_quat) == (1, 0, 0, 0)
        self.solver: Any  # inverse kinematics, given by the environment
        self.drivers: tuple[str, ...] = model.gripper_actuators
        self.joints: tuple[str, ...] = (*self.arm.joints, *self.drivers)
        at = accumulate(self.arm.groups.values(), lambda end, group: end + len(group.joints), initial=0)
        self.groups = {
            name: slice(start, start + len(group.joints))
            for (name, group), start in zip(self.arm.groups.items(), at, strict=False)
        }
        self.tools: dict[str, RobotTool] = {}  # given by the builder, as what follows
        self.imus: dict[str, RobotImu] = {}
        self.grasps: WeakValueDictionary[str, Grasp] = WeakValueDictionary()  # the builder keeps them
        self.forces: Any  # LinkForces, given by the builder

    def bind(self, model: mujoco.MjModel) -> None:
        world, p = self.scope.world, self.prefix
        ids = [model.joint(p + j).id for j in self.joints]
        qadr = [int(model.jnt_qposadr[i]) for i in ids]
        vadr = [int(model.jnt_dofadr[i]) for i in ids]
        na = len(self.arm.joints)
        device = self.scope.device
        self.base_pose = self.base_pose.to(device)
        far = np.array([FAR[int(t)] for t in model.jnt_type[ids]])[:, None] * (-1.0, 1.0)
        limits = np.where(model.jnt_limited[ids].astype(bool)[:, None], model.jnt_range[ids], far).astype(np.float32)
        self.ranges = torch.from_numpy(limits)  # (joints, 2), on the host
        self.limits = self.ranges.to(device)  # the same where the world is
        self._qpos, self._qvel = world.channel(runs("qpos", qadr)), world.channel(runs("qvel", vadr))
        self._arm_qpos = world.channel(runs("qpos", qadr[:na]))
        self._arm_qvel = world.channel(runs("qvel", vadr[:na]))
        self._gripper_qpos = world.channel(runs("qpos", qadr[na:])) if self.drivers else None
        actuators = [int(model.actuator(p + a).id) for a in self.model.actuators]
        self.ctrl_pieces = runs("ctrl", actuators)
        self._ctrl = world.channel(self.ctrl_pieces)
        at = [
            (k, int(model.actuator_historyadr[a]), int(model.actuator_history[a, 0])) for k, a in enumerate(actuators)
        ]
        late = [(k, adr + 2 + n + i) for k, adr, n in at if n for i in range(n)]  # after 2 numbers come n times
        self._late = [k for k, _ in late]
        self._history = world.channel(runs("history", [adr for _, adr in late])) if late else None
        tcp = int(model.body(p + self.model.tcp_body).id)
        pos, quat = ("xpos", 3 * tcp, 3 * tcp + 3), ("xquat", 4 * tcp, 4 * tcp + 4)
        self._tcp_pose, self._tcp_pos = world.channel([pos, quat], quat_at=3), world.channel([pos])
        self._tcp_quat = world.channel([quat], quat_at=0)
        every = [int(model.joint(p + j).id) for j in self.model.joints]  # driven or following
        adr = [int(model.jnt_qposadr[j]) for j in every]
        self._place = world.channel(runs("qpos", adr))
        self._place_vel = world.channel(runs("qvel", [int(model.jnt_dofadr[j]) for j in every]))
        self._command = [adr.index(a) for a in qadr]
        self._by_torque = {k for k, j in enumerate(self.joints) if j in self.model.torque_joints}
        servos = [None if k in self._by_torque else a for k, a in enumerate(actuators)]
        bodies = [int(model.body(p + name).id) for tool in self.model.tools for name in tool.finger_bodies]
        collides = (model.geom_contype | model.geom_conaffinity) > 0
        own = [int(model.body(p + name).id) for name in self.model.bodies]
        feet = [int(model.body(p + name).id) for name in self.arm.feet]
        fingers, on_feet = (np.flatnonzero(np.isin(model.geom_bodyid, k) & collides).tolist() for k in (bodies, feet))
        trunk = max(own, key=lambda body: float(model.body_mass[body]))
        self._servos = Servos(self.name, vadr, servos, fingers, on_feet, trunk)
        if self.gripper is not None and self.gripper.drivers:
            self._open = torch.tensor(self.gripper.open_q, device=device)
            self._closed = torch.tensor(self.gripper.closed_q, device=device)
        if self.arm.base.kind != "fixed":
            root = int(model.body(p + self.model.base_body).id)
            pos, quat = ("xpos", 3 * root, 3 * root + 3), ("xquat", 4 * root, 4 * root + 4)
            self._root_pose = world.channel([pos, quat], quat_at=3)
        if self.arm.base.kind == "free":
            free = int(model.joint(p + FREE).id)
            q, v = int(model.jnt_qposadr[free]), int(model.jnt_dofadr[free])
            self._root = world.channel([("qpos", q, q + 7)])
            self._root_velocity = world.channel([("qvel", v, v + 6)])
            self._time = world.channel([("time", 0, 1)])
            self._push = world.channel([("xfrc_applied", 6 * root, 6 * root + 3)])
        elif self.arm.base.loose:
            plane = [int(model.joint(p + j).id) for j in self.arm.base.joints]
            self._root = world.channel(runs("qpos", [int(model.jnt_qposadr[j]) for j in plane]))
            self._root_velocity = world.channel(runs("qvel", [int(model.jnt_dofadr[j]) for j in plane]))
        if self.arm.measures_centre:
            sensor = int(model.sensor(p + CENTRE).adr[0])
            self._centre_velocity = world.channel([("sensordata", sensor, sensor + 3)])

    @property
    def qpos(self) -> Tensor:
        """(n, joints) [rad or m]: arm, then driven gripper joints."""
        return self._get(self._qpos)

    @property
    def qvel(self) -> Tensor:
        """(n, joints) [rad/s or m/s]."""
        return self._get(self._qvel)

    @property
    def arm_joints(self) -> int:
        """How many joints the arm has."""
        return len(self.arm.joints)

    @property
    def arm_qpos(self) -> Tensor:
        """(n, arm joints) [rad]."""
        return self._get(self._arm_qpos)

    @property
    def arm_qvel(self) -> Tensor:
        """(n, arm joints) [rad/s]."""
        return self._get(self._arm_qvel)

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) pose of the tool centre point in the world; z points out of the gripper, y along its opening."""
        return self._get(self._tcp_pose)

    @property
    def tcp_pos(self) -> Tensor:
        """(n, 3) [m]."""
        return self._get(self._tcp_pos)

    @property
    def tcp_quat(self) -> Tensor:
        """(n, 4) wxyz."""
        return self._get(self._tcp_quat)

    @property
    def opening(self) -> Tensor:
        """(n,) how far the gripper is open: 0 commanded closed, 1 fully open."""
        if self._gripper_qpos is None or not self.gripper.drivers:
            raise SceneError(f"{self.name} has no gripper that opens")
        q = self._get(self._gripper_qpos)[:, 0]
        return (q - self._closed[0]) / (self._open[0] - self._closed[0])

    @property
    def ctrl(self) -> Tensor:
        """(n, actuators) commanded joint positions, arm then gripper; torques of joints driven by torque."""
        return self._get(self._ctrl)

    def keyframe(self, name: str = "rest") -> Tensor:
        """(arm joints,) [rad] of a named keyframe."""
        if name not in self.arm.keyframes:
            raise UnknownNameError(f"keyframe of {self.arm.name}", name, self.arm.keyframes)
        return torch.tensor(self.arm.keyframes[name], device=self.scope.device)

    def set_qpos(self, arm: Any, opening: float | Tensor = 1.0, *, qvel: Any = 0.0) -> None:
        """Put the robot at joint positions (n, joints) or (joints,), clipped to the limits, its grippers at ``opening``
        (1 open, 0 closed; one for all rows or (n,)), holding there; at rest, or the joints with velocities ``qvel``
        like the positions. A free or vertical base goes to where the scene put it; ``set_root`` moves it after
        that."""
        n, na, device, target = self.scope.n, len(self.arm.joints), self.scope.device, self.scope.target
        arm = torch.minimum(torch.maximum(expand(arm, n, na, device), self.limits[:na, 0]), self.limits[:na, 1])
        fingers = self._fingers(opening).expand(n, -1)
        whole = torch.cat([arm, self._follow(arm), fingers], 1)
        self._place.write(whole, target)
        moving = torch.as_tensor(qvel, dtype=torch.float32, device=device).expand(n, na)
        still = torch.zeros_like(fingers)
        self._place_vel.write(torch.cat([moving, self._follow(moving), still], 1), target)
        none = torch.zeros_like(whole[:, 0])
        command = [none if k in self._by_torque else whole[:, c] for k, c in enumerate(self._command)]
        self._ctrl.write(torch.stack(command, 1), target)
        if self._history is not None:  # what was commanded before an episode is what is commanded at its start
            self._history.write(torch.stack([command[k] for k in self._late], 1), target)
        if self.arm.base.loose:
            self.set_root(self.base_pose)

    def _fingers(self, opening: float | Tensor) -> Tensor:
        """(1 or n, gripper joints) where the grippers' joints are."""
        if not isinstance(opening, Tensor):
            found = torch.tensor(self.model.gripper_qpos(opening).tolist(), dtype=torch.float32)
            return found.unsqueeze(0).to(self.scope.device)
        closed, opened = self._fingers(0.0), self._fingers(1.0)
        return torch.lerp(closed, opened, opening.to(closed).unsqueeze(1))

    def _follow(self, arm: Tensor) -> Tensor:
        """(n, followers) where joints that follow others are, or how fast, given those (n, arm joints)."""
        at, ratio = self.model.following
        if not at:
            return arm[:, :0]
        return torch.stack([arm[:, k] * times for k, times in zip(at, ratio, strict=True)], 1)  # a list would upload

    @property
    def root_pose(self) -> Tensor:
        """(n, 7) pose of the robot's first body in the world: of a base that moves where it is now."""
        return self.base_pose.expand(self.scope.n, 7) if self.arm.base.kind == "fixed" else self._get(self._root_pose)

    @property
    def root_velocity(self) -> Tensor:
        """(n, 6) of a free or vertical base: linear [m/s] in the world, angular [rad/s] in its own frame."""
        if not self.arm.base.loose:
            raise SceneError(f"{self.name} has no free base; the speeds of one that drives are those of its joints")
        velocity = self._get(self._root_velocity)
        if self.arm.base.kind == "free":
            return velocity
        x, z, pitch = velocity.unbind(1)
        none = torch.zeros_like(x)
        return torch.stack([x, none, z, none, pitch, none], 1)

    def set_root(self, pose: Any, velocity: Any = (0.0,) * 6) -> None:
        """Put a free base at poses (n, 7) or (7,) in the world, with velocities as :attr:`root_velocity` has them. A
        vertical one keeps to its plane: of both only x, z and the turn about y count."""
        if not self.arm.base.loose:
            raise SceneError(f"{self.name} has no free base; one that drives is put in place with set_qpos")
        n, device, target = self.scope.n, self.scope.device, self.scope.target
        pose, velocity = expand(pose, n, 7, device), expand(velocity, n, 6, device)
        if self.arm.base.kind == "vertical":
            place = pose[:, :3] - self.base_pose[:3]
            pitch = 2.0 * atan2(pose[:, 5], pose[:, 3])
            pose = torch.stack([place[:, 0], place[:, 2], pitch], 1)
            velocity = torch.stack([velocity[:, 0], velocity[:, 2], velocity[:, 4]], 1)
        self._root.write(pose, target)
        self._root_velocity.write(velocity, target)

    def push(self, force: Tensor) -> None:
        """From now on push the free base with forces (n, 3) [N] in the world, at its centre of mass; 0 ends it."""
        if self.arm.base.kind != "free":
            raise SceneError(f"{self.name} has no free base that could be pushed")
        self._push.write(expand(force, self.scope.n, 3, self.scope.device), self.scope.target)

    @property
    def time(self) -> Tensor:
        """(n,) [s] that a robot with a free base has been simulated since its episode began, ``settle_s`` included."""
        if self.arm.base.kind != "free":
            raise SceneError(f"{self.name} has no free base; only robots with one keep time")
        return self._get(self._time)[:, 0]

    def base_joints(self, place: Tensor) -> Tensor:
        """(n, 3) where the joints of a base that drives are when it stands at ``place`` (n, 3): x and y in the world
        [m] and its turn about z [rad]."""
        if not self.arm.base.drives:
            raise SceneError(f"{self.name} has no base that drives")
        flat = torch.cat([place[:, :2], self.base_pose[2:3].expand(len(place), 1)], 1)
        local = pose_mul(pose_inv(self.base_pose).expand(len(place), 7), pose(flat, quat_from_yaw(place[:, 2])))
        return torch.cat([local[:, :2], quat_to_yaw(local[:, 3:])[:, None]], 1)

    def base_place(self, joints: Tensor) -> Tensor:
        """(n, 3) where a base that drives stands when its joints are at (n, 3): x and y in the world [m] and its turn
        about z [rad]. What :meth:`base_joints` takes."""
        if not self.arm.base.drives:
            raise SceneError(f"{self.name} has no base that drives")
        local = pose(torch.cat([joints[:, :2], torch.zeros_like(joints[:, 2:])], 1), quat_from_yaw(joints[:, 2]))
        world = pose_mul(self.base_pose.expand(len(joints), 7), local)
        return torch.cat([world[:, :2], quat_to_yaw(world[:, 3:])[:, None]], 1)

    @property
    def centre_velocity(self) -> Tensor:
        """(n, 3) [m/s] of the centre of mass of all its links, in the world."""
        if not self.arm.measures_centre:
            raise SceneError(f"{self.name} does not measure it; its RobotSpec needs measures_centre=True")
        return self._get(self._centre_velocity)

    @property
    def foot_forces(self) -> Tensor:
        """(n, feet) [N] net contact force on each foot in the last substep."""
        return self._forces_on(self.arm.feet)

    @property
    def touch_forces(self) -> Tensor:
        """(n, bodies) [N] net contact force on each body of the robot's ``touch`` in the last substep."""
        return self._forces_on(self.arm.touch)

    def _forces_on(self, bodies: tuple[str, ...]) -> Tensor:
        links, value = self.forces.links, self.forces.value
        if not bodies:
            return value[:, :0]
        return torch.stack([value[:, 1 + links.index(body)] for body in bodies], 1)  # a list would be uploaded

    def set_property(self, what: str, value: Tensor) -> None:
        """Give the rows ``gains`` (stiffness of the position servos), ``damping`` (of their joints),
        ``finger_friction`` or ``foot_friction`` (of all shapes of the fingers or feet) or ``trunk_mass`` (of the
        heaviest body, and its inertia) that are so many times the robot's own: (n,); of joints also (n, joints).
        Joints driven by torque have no gains. What touches a pad has the pad's friction, and what touches
        another shape of a finger the larger of the two."""
        self._servos.set(self.scope, what, value)

    def ik(self, pose: Tensor, start: Tensor | None = None) -> Any:
        """Joint positions for TCP poses (n, 7) in the world, from ``start`` (n, joints) or where the arm is.

        Returns an :class:`~manikin.control.ik.IkResult`; rows out of reach say so and hold the nearest found.
        """
        local = pose_mul(pose_inv(self.base_pose).expand_as(pose), pose)
        return self.solver.solve(local[:, :3], local[:, 3:], self.arm_qpos if start is None else start, restarts=8)

    def is_grasping(self, part: Part) -> Tensor:
        """(n,) bool; see :class:`Grasp`. Raises with the line to add when the pair was not declared."""
        value: Tensor = declared(self.grasps, self.name, self.name, part.name).value
        return value
