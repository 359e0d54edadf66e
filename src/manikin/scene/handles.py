"""Typed handles: what a task reads and writes. Made by :class:`~manikin.scene.builder.SceneBuilder`, bound to a World.

Every value has a leading row dimension ``h.n``: all rows during a step, only the rows being started inside
``Task.start``. Values read are borrowed (valid until the next step); clone to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.math import pose_inv, pose_mul, quat_rotate
from manikin.scene.robot import FAR
from manikin.scene.varying import Servos
from manikin.sim.world import Channel, Piece, World

__all__ = ["ContactForce", "Grasp", "Handle", "Marker", "Part", "Robot", "Scope", "Variable", "View"]


class Scope:
    """What all handles of one environment share: the world, and which rows are being looked at.

    Attributes:
        rows: (k,) numbers of the rows in view; None for all.
        mask: (N,) bool. With a mask, all rows are in view and what is written reaches only those where it is True: on a
            GPU, where the number of rows that start is not known to the host, shapes stay the same.
    """

    def __init__(self) -> None:
        self.world: World
        self.rows: np.ndarray | None = None
        self.mask: Tensor | None = None

    @property
    def n(self) -> int:
        return self.world.num_worlds if self.rows is None else len(self.rows)

    @property
    def device(self) -> torch.device:
        return self.world.device

    @property
    def target(self) -> Any:
        """Where writes go: row numbers, a mask, or None for all rows."""
        return self.rows if self.mask is None else self.mask


class View:
    """The handles a task declared, as attributes, and ``n``, the number of rows in view."""

    def __init__(self, handles: Any, scope: Scope) -> None:
        self.__dict__.update(vars(handles))
        self._scope = scope

    @property
    def n(self) -> int:
        """Rows in view: all during a step, those being started inside ``Task.start``."""
        return self._scope.n


class Handle:
    """A named thing of the scene. ``bind`` is called once, when the world exists."""

    def __init__(self, scope: Scope, name: str) -> None:
        self.scope, self.name = scope, name

    def bind(self, model: mujoco.MjModel) -> None:
        """Look up ids in the compiled model and register what will be read."""

    def _get(self, channel: Channel) -> Tensor:
        return channel.all() if self.scope.rows is None else channel.rows(self.scope.rows)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _expand(value: Any, n: int, width: int, device: torch.device) -> Tensor:
    tensor = torch.as_tensor(value, dtype=torch.float32, device=device)
    if tensor.ndim > 2 or (tensor.shape and tensor.shape[-1] != width):
        raise ConfigError(f"expected shape ({n}, {width}) or ({width},), got {tuple(tensor.shape)}")
    return tensor.expand(n, width)


class Variable(Handle):
    """A per-row float32 tensor the task owns, for example a goal. Saved in snapshots.

    Reset to ``initial`` when a row starts, unless ``persist``.
    """

    def __init__(self, scope: Scope, name: str, shape: tuple[int, ...], *, persist: bool, initial: float) -> None:
        super().__init__(scope, name)
        self.shape, self.persist, self.initial = shape, persist, initial

    def bind(self, model: mujoco.MjModel) -> None:
        self.data = torch.full((self.scope.world.num_worlds, *self.shape), self.initial, device=self.scope.device)

    @property
    def value(self) -> Tensor:
        """(n, *shape) float32."""
        return self.data if self.scope.rows is None else self.data[torch.from_numpy(self.scope.rows)]

    def set(self, value: Tensor | float) -> None:
        """Set the rows in view to (n, *shape), or to one value."""
        scope = self.scope
        value = torch.as_tensor(value, dtype=torch.float32, device=scope.device).expand(scope.n, *self.shape)
        if scope.rows is not None:
            self.data[torch.from_numpy(scope.rows)] = value
        elif scope.mask is not None:
            self.data.copy_(torch.where(scope.mask.view(-1, *[1] * len(self.shape)), value, self.data))
        else:
            self.data.copy_(value)

    def begin(self) -> None:
        """An episode begins in the rows in view."""
        if not self.persist:
            self.set(self.initial)


class Part(Handle):
    """An object: dynamic (moves by physics), kinematic (moved by the task) or fixed."""

    def __init__(
        self,
        scope: Scope,
        name: str,
        *,
        kind: str,
        geoms: Sequence[str],
        size: Variable | None,
        mass: float | None = None,
    ) -> None:
        super().__init__(scope, name)
        self.kind, self.geom_names, self._size, self.mass = kind, tuple(geoms), size, mass

    def bind(self, model: mujoco.MjModel) -> None:
        world, body = self.scope.world, model.body(self.name)
        self.body_id, self.geom_ids = int(body.id), [int(model.geom(g).id) for g in self.geom_names]
        b = self.body_id
        pos, quat = ("xpos", 3 * b, 3 * b + 3), ("xquat", 4 * b, 4 * b + 4)
        self._pose, self._pos = world.channel([pos, quat], quat_at=3), world.channel([pos])
        self._quat = world.channel([quat], quat_at=0)
        self._write: Channel | None = None
        if self.kind == "dynamic":
            q, v = int(body.jntadr[0]), int(body.dofadr[0])
            q = int(model.jnt_qposadr[q])
            self._write = world.channel([("qpos", q, q + 7)])
            self._velocity = world.channel([("qvel", v, v + 6)])
            self._linvel, self._angvel = world.channel([("qvel", v, v + 3)]), world.channel([("qvel", v + 3, v + 6)])
        elif self.kind == "kinematic":
            m = int(body.mocapid[0])
            self._write = world.channel([("mocap_pos", 3 * m, 3 * m + 3), ("mocap_quat", 4 * m, 4 * m + 4)])
        if self._size is not None:
            sizes = torch.from_numpy(model.geom_size[self.geom_ids].astype(np.float32)).squeeze(0)
            self._size.data[:] = sizes.to(self.scope.device)

    @property
    def pose(self) -> Tensor:
        """(n, 7) position [m] and quaternion wxyz in the world."""
        return self._get(self._pose)

    @property
    def pos(self) -> Tensor:
        """(n, 3) [m] in the world."""
        return self._get(self._pos)

    @property
    def quat(self) -> Tensor:
        """(n, 4) wxyz."""
        return self._get(self._quat)

    @property
    def linvel(self) -> Tensor:
        """(n, 3) [m/s] in the world."""
        return self._get(self._linvel)

    @property
    def angvel_body(self) -> Tensor:
        """(n, 3) [rad/s] in the body's own frame; costs nothing."""
        return self._get(self._angvel)

    @property
    def angvel(self) -> Tensor:
        """(n, 3) [rad/s] in the world."""
        return quat_rotate(self.quat, self.angvel_body)

    @property
    def size(self) -> Tensor:
        """(n, 3) or (n, geoms, 3) sizes as in MJCF [m]; for parts declared ``resizable`` or with a varying size."""
        if self._size is None:
            raise SceneError(f"{self.name}: declare it with resizable=True or a varying size to read its size per row")
        return self._size.value

    def set_pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Put the rows at pos (n, 3) or (3,) and quat (n, 4) or (4,), at rest."""
        if self._write is None:
            raise SceneError(f"{self.name} is fixed; declare it with kind='kinematic' or 'dynamic' to move it")
        n, device, target = self.scope.n, self.scope.device, self.scope.target
        pose = torch.cat([_expand(pos, n, 3, device), _expand(quat, n, 4, device)], 1)
        self._write.write(pose, target)
        if self.kind == "dynamic":
            self._velocity.write(torch.zeros(n, 6, device=device), target)

    def set_velocity(self, linear: Any, angular: Any = (0.0, 0.0, 0.0)) -> None:
        """Linear velocity [m/s] in the world, angular [rad/s] in the body frame; each (n, 3) or (3,)."""
        n, device = self.scope.n, self.scope.device
        both = torch.cat([_expand(linear, n, 3, device), _expand(angular, n, 3, device)], 1)
        self._velocity.write(both, self.scope.target)

    def set_size(self, size: Tensor) -> None:
        """Sizes of the rows in view, (n, up to 3) for one geom or (n, geoms, 3) [m]. Mass follows at constant density
        unless it was declared."""
        if self._size is None:
            raise SceneError(f"{self.name}: declare it with resizable=True to change its size per row")
        n, k = self.scope.n, len(self.geom_ids)
        if k == 1:  # a ball has one number, a cylinder two; MJCF keeps three
            size = size.reshape(n, -1)
            size = torch.cat([size, size.new_zeros(n, 3 - size.shape[1])], 1)
        values: dict[Any, Any] = {("geom_size", tuple(self.geom_ids)): size.reshape(n, k, 3)}
        if self.mass is not None:
            values["body_mass", (self.body_id,)] = size.new_full((n, 1), self.mass, dtype=torch.float64)
        self.scope.world.set_model(values, self.scope.target)
        self._size.set(size)

    def set_offsets(self, pos: Tensor) -> None:
        """Places of the geoms in the part's frame, (n, geoms, 3) [m]; for fixed and kinematic parts."""
        n, k = self.scope.n, len(self.geom_ids)
        self.scope.world.set_model({("geom_pos", tuple(self.geom_ids)): pos.reshape(n, k, 3)}, self.scope.target)

    def set_property(self, what: str, value: Tensor) -> None:
        """Give the rows their own mass (n,) [kg], friction (n,) (sliding), size (n, 3) or rgba (n, 4)."""
        n, k = self.scope.n, len(self.geom_ids)
        world, target, model = self.scope.world, self.scope.target, self.scope.world.scene.model
        geoms = tuple(self.geom_ids)
        if what == "size":
            self.set_size(value)
        elif what == "mass":
            world.set_model({("body_mass", (self.body_id,)): value.reshape(n, 1)}, target)
        elif what == "friction":
            compiled = model.geom_friction[self.geom_ids, 1:].tolist()
            rest = torch.tensor(compiled, dtype=torch.float64, device=self.scope.device)
            friction = torch.cat([value.double().reshape(n, 1, 1).expand(n, k, 1), rest.expand(n, k, 2)], 2)
            world.set_model({("geom_friction", geoms): friction}, target)
        elif what == "rgba":
            world.set_model({("geom_rgba", geoms): value.reshape(n, 1, 4).expand(n, k, 4)}, target)
        else:
            raise UnknownNameError("varying property", what, ("size", "mass", "friction", "rgba"))


class Marker(Part):
    """A shape that only people see: never in observations, never in contact."""

    def __init__(self, scope: Scope, name: str) -> None:
        super().__init__(scope, name, kind="kinematic", geoms=(), size=None)


class Robot(Handle):
    """An arm with or without a gripper. Joint vectors are ordered arm first, then the gripper's driven joints."""

    def __init__(self, scope: Scope, name: str, model: Any, prefix: str, base_pos: Any, base_quat: Any) -> None:
        super().__init__(scope, name)
        self.model, self.prefix = model, prefix
        self.arm, self.gripper = model.arm, model.gripper
        self.base_pose = torch.tensor([*base_pos, *base_quat], dtype=torch.float32)
        self.stands_straight = tuple(base_quat) == (1, 0, 0, 0)
        self.solver: Any  # inverse kinematics, given by the environment
        self.drivers: tuple[str, ...] = self.gripper.drivers if self.gripper else ()
        self.joints: tuple[str, ...] = (*self.arm.joints, *self.drivers)
        self.grasps: dict[str, Grasp] = {}
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
        self._qpos, self._qvel = world.channel(_runs("qpos", qadr)), world.channel(_runs("qvel", vadr))
        self._arm_qpos = world.channel(_runs("qpos", qadr[:na]))
        self._arm_qvel = world.channel(_runs("qvel", vadr[:na]))
        self._gripper_qpos = world.channel(_runs("qpos", qadr[na:])) if self.drivers else None
        actuators = [int(model.actuator(p + a).id) for a in self.model.actuators]
        self.ctrl_pieces = _runs("ctrl", actuators)
        self._ctrl = world.channel(self.ctrl_pieces)
        tcp = int(model.body(p + self.model.tcp_body).id)
        pos, quat = ("xpos", 3 * tcp, 3 * tcp + 3), ("xquat", 4 * tcp, 4 * tcp + 4)
        self._tcp_pose, self._tcp_pos = world.channel([pos, quat], quat_at=3), world.channel([pos])
        self._tcp_quat = world.channel([quat], quat_at=0)
        every = [int(model.joint(p + j).id) for j in self.model.joints]  # driven or following
        adr = [int(model.jnt_qposadr[j]) for j in every]
        self._place = world.channel(_runs("qpos", adr))
        self._place_vel = world.channel(_runs("qvel", [int(model.jnt_dofadr[j]) for j in every]))
        self._command = [adr.index(a) for a in qadr]
        self._by_torque = {k for k, j in enumerate(self.joints) if j in self.model.torque_joints}
        self._servos = Servos(self.name, vadr, [None if k in self._by_torque else a for k, a in enumerate(actuators)])
        if self.drivers:
            self._open = torch.tensor(self.gripper.open_q, device=device)
            self._closed = torch.tensor(self.gripper.closed_q, device=device)

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
        if self._gripper_qpos is None:
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

    def set_qpos(self, arm: Any, opening: float = 1.0, *, qvel: Any = 0.0) -> None:
        """Put the arm at joint positions (n, joints) or (joints,), clipped to the limits, the gripper at ``opening``
        (1 open, 0 closed), holding there; at rest, or the arm's joints with velocities ``qvel`` like the positions."""
        n, na, device, target = self.scope.n, len(self.arm.joints), self.scope.device, self.scope.target
        arm = torch.minimum(torch.maximum(_expand(arm, n, na, device), self.limits[:na, 0]), self.limits[:na, 1])
        fingers = torch.tensor(self.model.gripper_qpos(opening).tolist(), dtype=torch.float32, device=device)
        whole = torch.cat([arm, fingers.expand(n, len(fingers))], 1)
        self._place.write(whole, target)
        moving = torch.as_tensor(qvel, dtype=torch.float32, device=device).expand(n, na)
        self._place_vel.write(torch.cat([moving, torch.zeros(n, len(fingers), device=device)], 1), target)
        still = torch.zeros_like(whole[:, 0])
        command = [still if k in self._by_torque else whole[:, c] for k, c in enumerate(self._command)]
        self._ctrl.write(torch.stack(command, 1), target)

    def set_property(self, what: str, value: Tensor) -> None:
        """Give the rows ``gains`` (stiffness of the position servos) or ``damping`` (of their joints) that are so many
        times the robot's own: (n,) for all driven joints, or (n, joints). Joints driven by torque have no gains."""
        self._servos.set(self.scope, what, value)

    def ik(self, pose: Tensor, start: Tensor | None = None) -> Any:
        """Joint positions for TCP poses (n, 7) in the world, from ``start`` (n, joints) or where the arm is.

        Returns an :class:`~manikin.control.ik.IkResult`; rows out of reach say so and hold the nearest found.
        """
        local = pose_mul(pose_inv(self.base_pose).expand_as(pose), pose)
        return self.solver.solve(local[:, :3], local[:, 3:], self.arm_qpos if start is None else start, restarts=8)

    def is_grasping(self, part: Part) -> Tensor:
        """(n,) bool; see :class:`Grasp`. Raises with the line to add when the pair was not declared."""
        if part.name not in self.grasps:
            raise SceneError(
                f"contacts between {self.name} and {part.name} were not declared; in scene() add: "
                f"b.grasp({self.name}, {part.name})"
            )
        return self.grasps[part.name].value


class Grasp(Handle):
    """Does the gripper hold the part? A finger on each side presses with at least ``min_force`` [N], within
    ``max_angle`` [deg] of its closing direction; a gripper with two fingers has one on each side. Forces are those of
    the last substep. With ``geoms`` only contacts with these geoms of the part count."""

    def __init__(
        self, scope: Scope, robot: Robot, part: Part, min_force: float, max_angle: float, geoms: Sequence[str] = ()
    ) -> None:
        super().__init__(scope, "/".join(["grasp", robot.name, geoms[0] if geoms else part.name]))
        self.robot, self.part, self.min_force, self.geoms = robot, part, min_force, tuple(geoms)
        self._cos = torch.tensor(float(np.cos(np.deg2rad(max_angle))), device="cpu")  # a number, good on any device
        self._least = torch.tensor(float(min_force), device="cpu")
        self._sides = robot.gripper.sides
        self._seen = -1
        self._value: Tensor

    def sensors(self) -> list[tuple[str, str, str]]:
        """(sensor name, finger body, body or geom of the part) of the contact sensors this question needs."""
        fingers = [self.robot.prefix + f.body for f in self.robot.gripper.fingers]
        if not self.geoms:
            return [(f"{self.name}/{i}", finger, self.part.name) for i, finger in enumerate(fingers)]
        pairs = [(i, k) for i in range(len(fingers)) for k in range(len(self.geoms))]
        return [(f"{self.name}/{i}/{k}", fingers[i], self.geoms[k]) for i, k in pairs]

    def bind(self, model: mujoco.MjModel) -> None:
        world, forces, closing = self.scope.world, [], []
        for sensor, *_ in self.sensors():
            adr = int(model.sensor(sensor).adr[0])
            forces.append(("sensordata", adr, adr + 3))
        for site in self.robot.model.finger_sites:
            s = int(model.site(self.robot.prefix + site).id)
            closing += [("site_xmat", 9 * s + k, 9 * s + k + 1) for k in (2, 5, 8)]  # z axis
        fingers = len(self.robot.model.finger_sites)
        shape = (fingers, len(self.geoms), 3) if self.geoms else (fingers, 3)
        self._force, self._closing = world.channel(forces, shape), world.channel(closing, (fingers, 3))

    @property
    def force(self) -> Tensor:
        """(n, fingers, 3) [N] force of each finger on the part, in the world."""
        force = self._get(self._force)
        return force.sum(2) if self.geoms else force

    @property
    def touches(self) -> Tensor:
        """(n,) bool, whether any finger presses on the part, in whatever direction."""
        return (torch.linalg.vector_norm(self.force, dim=-1) >= self._least).any(-1)

    @property
    def value(self) -> Tensor:
        """(n,) bool."""
        scope = self.scope
        if scope.rows is None and self._seen == scope.world.version:
            return self._value
        force = self.force
        along = (force * self._get(self._closing)).sum(-1)
        size = torch.linalg.vector_norm(force, dim=-1)
        presses = (size >= self._least) & (along >= size * self._cos)
        if self._sides:  # one finger of each is enough
            each = presses.unbind(-1)
            presses = torch.stack([torch.stack([each[i] for i in side]).any(0) for side in self._sides], -1)
        value = presses.all(-1)
        if scope.rows is None:
            self._value, self._seen = value, scope.world.version
        return value


class ContactForce(Handle):
    """Net contact force of one body (with what hangs on it) on another, in the world [N]."""

    def __init__(self, scope: Scope, name: str, first: str, second: str) -> None:
        super().__init__(scope, name)
        self.first, self.second = first, second

    def bind(self, model: mujoco.MjModel) -> None:
        adr = int(model.sensor(self.name).adr[0])
        self._force = self.scope.world.channel([("sensordata", adr, adr + 3)])

    @property
    def value(self) -> Tensor:
        """(n, 3) [N]."""
        return self._get(self._force)


def _runs(field: str, addresses: Sequence[int]) -> list[Piece]:
    """Contiguous runs of addresses, in order."""
    pieces: list[Piece] = []
    for a in addresses:
        if pieces and pieces[-1][2] == a:
            pieces[-1] = (field, pieces[-1][1], a + 1)
        else:
            pieces.append((field, a, a + 1))
    return pieces
