"""What torque controllers read of the physics at every step: the arrays of a World, not copies of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.control.base import Limb
from manikin.control.numerics.law import Array, task_jacobian
from manikin.sim.cpu import CpuWorld

__all__ = ["Dynamics"]


class Dynamics:
    """Motion and inertia of some joints of a robot, for all rows: NumPy float64 on the CPU, torch float32 on a device.

    Args:
        robot: whose.
        joints: their names; the others count as held still.
        operational: whether the tool's Jacobian will be asked for.
    """

    def __init__(self, robot: Limb, joints: Sequence[str], *, operational: bool) -> None:
        world = robot.scope.world
        model = world.scene.model
        names = [robot.prefix + joint for joint in joints]
        ids = [int(model.joint(name).id) for name in names]
        dofs = [int(model.jnt_dofadr[i]) for i in ids]
        self.size, self.n, self.device = len(ids), world.num_worlds, world.device
        # what is bound here is read in steps, when the world is ready
        flat: Callable[[str], Any] = world.columns if isinstance(world, CpuWorld) else world.flat
        self.numpy = isinstance(flat("ctrl"), np.ndarray)
        self._qpos = _columns(flat("qpos"), [int(model.jnt_qposadr[i]) for i in ids])
        self._qvel = _columns(flat("qvel"), dofs)
        self._ctrl, self._actuators = flat("ctrl"), _run([int(model.actuator(name).id) for name in names])
        if not self.numpy and not isinstance(self._actuators, slice):  # uploaded now: a list would be at every step
            self._actuators = torch.as_tensor(self._actuators, device=self.device)
        self._bias, self._passive = _columns(flat("qfrc_bias"), dofs), _columns(flat("qfrc_passive"), dofs)
        self._lift = _columns(flat("qfrc_gravcomp"), dofs)
        self._inertia = flat("M")
        self._carried = self._carriers(model, robot, dofs)
        self._shove = _columns(flat("qacc_warmstart"), self._carried[0]) if self._carried[0] else None
        self._entries, self._present = self._pattern(model, dofs)
        if operational:
            tcp = int(model.body(robot.prefix + robot.model.tcp_body).id)
            root = int(model.body_rootid[tcp])
            self._tcp = flat("xpos")[:, 3 * tcp : 3 * tcp + 3]
            self._turn = flat("xmat")[:, 9 * tcp : 9 * tcp + 9]
            self._centre = flat("subtree_com")[:, 3 * root : 3 * root + 3]
            self._motion = _columns(flat("cdof"), [6 * d + k for d in dofs for k in range(6)])
            carries = _ancestors(model, tcp)
            moved = np.array([d in carries for d in dofs], float)
            self._moves = None if moved.all() else self.array(moved.repeat(6))
        forces = model.actuator_forcerange[[int(model.actuator(name).id) for name in names]]
        self.low, self.high = self.array(forces[:, 0]), self.array(forces[:, 1])

    def array(self, value: Any) -> Array:
        """A constant, or a tensor of the environment, as this kind of array."""
        if self.numpy:
            return np.asarray(value, np.float64)
        return torch.as_tensor(value, dtype=torch.float32, device=self.device)

    def _pattern(self, model: mujoco.MjModel, dofs: list[int]) -> tuple[Array, Array | None]:
        """Where in the sparse inertia matrix each (row, column) is, and (m, m) zeros where it has none."""
        where = np.zeros((self.size, self.size), int)
        present = np.zeros((self.size, self.size))
        for a, row in enumerate(dofs):
            for b, column in enumerate(dofs):
                low, high = min(row, column), max(row, column)
                start = int(model.M_rowadr[high])
                columns = model.M_colind[start : start + int(model.M_rownnz[high])]
                found = np.flatnonzero(columns == low)
                if len(found):
                    where[a, b], present[a, b] = start + int(found[0]), 1.0
        lower = np.tril_indices(self.size)
        self._half, self._half_present = where[lower], None if present[lower].all() else present[lower]
        entries = where.ravel() if self.numpy else torch.as_tensor(where.ravel(), device=self.device)
        return entries, None if present.all() else self.array(present)

    def _carriers(self, model: mujoco.MjModel, robot: Limb, dofs: list[int]) -> tuple[list[int], Any]:
        """Degrees of freedom of the driven base that carries these joints, and where in the sparse inertia matrix
        (joint, base) is, joint by joint."""
        base = [int(model.joint(robot.prefix + name).dofadr[0]) for name in robot.carriers]
        where = []
        for row in dofs:  # of a joint that the base carries, the base's degrees of freedom come before its own
            start = int(model.M_rowadr[row])
            columns = model.M_colind[start : start + int(model.M_rownnz[row])].tolist()
            where += [start + columns.index(column) for column in base]
        return base, where if self.numpy or not where else torch.as_tensor(where, device=self.device)

    def _moved(self, held: Array) -> Array:
        """``held`` (n, m) and the torques that the base's acceleration in the last physics step asks for: without them
        each start and stop of the base would throw the arm out of its posture."""
        if self._shove is None:
            return held
        flat, where = self._inertia, self._carried[1]
        flat = flat.take(where, 1) if self.numpy else flat.index_select(1, where)
        return held + (flat.reshape(self.n, self.size, -1) * self._shove()[:, None]).sum(2)

    @property
    def qpos(self) -> Array:
        """(n, m) [rad or m]."""
        return self._qpos()

    @property
    def qvel(self) -> Array:
        """(n, m) [rad/s or m/s]."""
        return self._qvel()

    @property
    def tcp_pos(self) -> Array:
        """(n, 3) [m] in the world."""
        return self._tcp

    @property
    def tcp_rotation(self) -> Array:
        """(n, 3, 3) tool to world."""
        return self._turn.reshape(self.n, 3, 3)

    @property
    def motion(self) -> Array:
        """(n, 6 m) motion axes of the joints, angular then linear, at the robot's centre of mass; see ``offset``."""
        motion = self._motion()
        return motion if self._moves is None else motion * self._moves

    @property
    def offset(self) -> Array:
        """(n, 3) [m] from the robot's centre of mass to the tool."""
        return self._tcp - self._centre

    @property
    def state_parts(self) -> tuple[np.ndarray, ...]:
        """Side by side (n, 3 m + 12): positions, velocities, compensation, the tool's position, its rotation matrix row
        by row."""
        return self._qpos(), self._qvel(), self.compensation(), self._tcp, self._turn

    @property
    def inertia_half(self) -> np.ndarray:
        """(n, m (m + 1) / 2) lower half of the mass matrix, row by row."""
        flat = self._inertia.take(self._half, 1)
        return flat if self._half_present is None else flat * self._half_present

    def jacobian(self) -> Array:
        """(n, 6, m) of the tool centre point, linear above angular, in the world."""
        return task_jacobian(self.motion.reshape(self.n, self.size, 6), self.offset)

    def inertia(self) -> Array:
        """(n, m, m) mass matrix of these joints, motors included."""
        flat = self._inertia
        flat = flat.take(self._entries, 1) if self.numpy else flat.index_select(1, self._entries)
        matrix = flat.reshape(self.n, self.size, self.size)
        return matrix if self._present is None else matrix * self._present

    def gravity(self) -> Array:
        """(n, m) torques that hold the arm against gravity and Coriolis forces, less what the model's own gravity
        compensation gives."""
        return self._moved(self._bias() - self._lift())

    def compensation(self) -> Array:
        """(n, m) torques that leave nothing but inertia: gravity, Coriolis forces and the joints' own friction."""
        return self._moved(self._bias() - self._passive())

    def apply(self, torque: Array, rows: np.ndarray | None) -> None:
        """Command torques (n, m), limited to what the motors can; ``rows`` (numbers) or all."""
        if rows is None:
            self._ctrl[:, self._actuators] = torque
        elif self.numpy:
            self._ctrl[rows[:, None], np.arange(self._ctrl.shape[1])[self._actuators]] = torque[rows]
        else:  # a device steps all rows and puts the others back
            self._ctrl[:, self._actuators] = torque


def _run(columns: Sequence[int]) -> Any:
    """A slice where the columns follow each other."""
    first, last = columns[0], columns[-1]
    return slice(first, last + 1) if list(columns) == list(range(first, last + 1)) else list(columns)


class _columns:
    """Columns of a live array: a view where they follow each other, else gathered at each call."""

    def __init__(self, source: Array, columns: Sequence[int]) -> None:
        run = _run(columns)
        self._view = source[:, run] if isinstance(run, slice) else None
        self._source, self._index = source, run
        if self._view is None and isinstance(source, Tensor):
            self._index = torch.as_tensor(columns, device=source.device)

    def __call__(self) -> Array:
        return self._view if self._view is not None else self._source[:, self._index]


def _ancestors(model: mujoco.MjModel, body: int) -> set[int]:
    """Degrees of freedom that move a body."""
    found: set[int] = set()
    while body:
        first, count = int(model.body_dofadr[body]), int(model.body_dofnum[body])
        found.update(range(first, first + count))
        body = int(model.body_parentid[body])
    return found
