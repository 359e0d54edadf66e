"""Where a robot may stand when an episode begins: poses from the map at which it touches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.homes.apartment import Apartment
from manikin.homes.free_space import FreeSpace
from manikin.homes.furnish import furnish
from manikin.scene.builder import SceneBuilder
from manikin.sim.cpu import CpuWorld
from manikin.spec.physics import Physics
from manikin.spec.robot import GripperSpec, RobotSpec

__all__ = ["Starts", "Touching"]


class Touching:
    """Says at which poses a robot touches something in one apartment, in a scene of its own without objects.

    Args:
        apartment: which.
        robot: the declaration, the gripper, and whether it is from the Menagerie: ``b.robots[0]`` in a task's scene.

    Attributes:
        home, robot: the apartment and the robot of that scene.

    Raises:
        SceneError: the robot's base does not drive.
    """

    def __init__(self, apartment: Apartment, robot: tuple[RobotSpec, GripperSpec | None, bool]) -> None:
        if robot[0].base.kind not in ("planar", "differential"):
            raise SceneError(
                f"{robot[0].name} has no base that drives, so it cannot start anywhere in {apartment.name}"
            )
        b = SceneBuilder([robot], Physics())
        self.home = furnish(b, apartment)
        self.robot = b.robot(pos=(0, 0, 0), quat=(1, 0, 0, 0))
        scene = b.compile()
        self._world = CpuWorld(scene, 1, threads=1)
        b.bind(self._world)
        model = scene.model
        self._data = mujoco.MjData(model)
        root = model.body(self.robot.prefix + self.robot.model.base_body).rootid[0]
        self._own = model.body_rootid[model.geom_bodyid] == root
        self._floor = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE

    def touches(self, joints: Tensor, opened: Mapping[str, Tensor] | None = None) -> np.ndarray:
        """(n,) bool, whether the robot with open gripper touches anything but the floor at joint positions
        (n, joints).

        Args:
            joints: of the robot.
            opened: where joints of mechanisms are (n, joints of each) [m or rad], by mechanism; others are closed.

        Raises:
            UnknownNameError: no such mechanism; lists them.
        """
        out = np.zeros(len(joints), bool)
        for i, one in enumerate(joints):
            self.robot.set_qpos(one)
            for name, positions in (opened or {}).items():
                self.home.mechanism(name).set_qpos(positions[i])
            self._world.batch.get_data(0, self._data)
            mujoco.mj_fwdPosition(self._world.scene.model, self._data)
            geoms = self._data.contact.geom
            own, floor = self._own[geoms], self._floor[geoms]
            out[i] = bool((own.any(1) & ~floor.any(1)).any())
        for name in opened or {}:
            self.home.mechanism(name).set_qpos(0.0)
        return out


class Starts(Touching):
    """Starts of one robot in one apartment, checked by MuJoCo.

    A map knows a robot as a cylinder. An arm that reaches out of it may touch a wall, so every pose is tried with the
    whole robot, with closed doors and drawers.

    Args:
        apartment: which.
        free: its map, for a cylinder around the base.
        robot: as for :class:`Touching`.

    Raises:
        SceneError: the robot's base does not drive.
    """

    def __init__(
        self, apartment: Apartment, free: FreeSpace, robot: tuple[RobotSpec, GripperSpec | None, bool]
    ) -> None:
        super().__init__(apartment, robot)
        self._free, self._name = free, apartment.name

    def draw(self, posture: Tensor, numbers: Tensor | np.ndarray, **where: Any) -> Tensor:
        """(n, joints) float32 joint positions: the posture, with the base where the robot touches nothing.

        Args:
            posture: (joints,) of the robot at rest; its first three are the base.
            numbers: (n, tries, 3) uniform in [0, 1); a row takes its first try that touches nothing.
            where: ``near``, ``within`` and ``facing`` of :meth:`manikin.homes.FreeSpace.sample`, the same for all rows.

        Raises:
            SceneError: a row has no such try; says how many there were.
        """
        numbers = np.asarray(numbers, float)
        out = posture.detach().cpu().float().expand(len(numbers), -1).clone()
        for row, tries in enumerate(numbers):
            for place in self._free.sample(tries, **where):
                out[row, :3] = torch.from_numpy(place).float()
                if not self.touches(out[row : row + 1])[0]:
                    break
            else:
                raise SceneError(f"the robot touches something in {self._name} in all {len(tries)} tries of row {row}")
        return out
