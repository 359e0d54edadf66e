"""How hard robots press on things: the net contact force on each of their links.

The accounting of MS-HAB (Shukla et al. 2024): the force of a link is the norm of the vector sum of all its contacts, so
that forces which balance each other on one link cancel; the total of a robot is the sum over its links, fingers left
out, because fingers are there to press. Forces are those of the last substep.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import torch
from torch import Tensor

from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.robot import Robot
from manikin.scene.robot import RobotModel

__all__ = ["FINGERS", "TOTAL", "LinkForces", "declare_link_forces", "force_names", "forces_of"]

TOTAL, FINGERS = "total", "fingers/"


class LinkForces(Handle):
    """Contact forces on a robot's links that can touch something and move, or are to feel touch.

    What moves of a gripper, and what its pads are on, is called ``fingers/NAME`` and is not in the total.

    Attributes:
        links: their names.
    """

    def __init__(self, scope: Scope, robot: Robot, links: Sequence[str]) -> None:
        super().__init__(scope, f"forces/{robot.name}")
        self.links = tuple(links)
        self._counted = [k for k, name in enumerate(links) if not name.startswith(FINGERS)]
        self._seen = -1
        self._value: Tensor

    def bind(self, model: mujoco.MjModel) -> None:
        adr = [int(model.sensor(f"{self.name}/{link}").adr[0]) for link in self.links]
        # declared one after the other, so they lie side by side
        self._force = self.scope.world.channel([("sensordata", adr[0], adr[-1] + 3)], (len(adr), 3)) if adr else None

    @property
    def value(self) -> Tensor:
        """(n, 1 + links) [N]: the total, then each link."""
        scope = self.scope
        if scope.rows is None and self._seen == scope.world.version:
            return self._value
        if self._force is None:  # nothing of it can touch anything
            return torch.zeros(scope.n, 1, device=scope.device)
        x, y, z = self._get(self._force).unbind(-1)
        each = torch.sqrt(x * x + y * y + z * z)
        total = torch.zeros_like(each[:, 0])
        for k in self._counted:  # in this order at any number of rows
            total = total + each[:, k]
        value = torch.cat([total.unsqueeze(1), each], 1)
        if scope.rows is None:
            self._value, self._seen = value, scope.world.version
        return value

    @property
    def total(self) -> Tensor:
        """(n,) [N] sum over the links, without the fingers. Added up over an episode it is MS-HAB's cumulative force:
        ``pressed.set(pressed.value + h.robot.forces.total)`` in ``Task.advance``."""
        return self.value[:, 0]


def declare_link_forces(spec: mujoco.MjSpec, robot: Robot) -> LinkForces:
    """Add a sensor of the net contact force on each link."""
    model = robot.model
    links = [link for body in model.spec.worldbody.bodies for link in _links(body, model, False, False)]
    handle = LinkForces(robot.scope, robot, [name for _, name in links])
    for body_name, name in links:
        spec.add_sensor(
            name=f"{handle.name}/{name}",
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=robot.prefix + body_name,
            intprm=(2, 3, 1),  # data="force", reduce="netforce", num=1; with anything
        )
    return handle


def _links(body: mujoco.MjsBody, model: RobotModel, moves: bool, finger: bool) -> list[tuple[str, str]]:
    """(body, link) of a body and what hangs on it, of those that can touch something and move, or feel touch."""
    joints = [joint.name for joint in body.joints]
    moves = moves or bool(joints) or body.name in model.arm.touch
    finger = finger or body.name in model.finger_bodies or not set(model.gripper_joints).isdisjoint(joints)
    own = moves and any(geom.contype or geom.conaffinity for geom in body.geoms)
    here = [(body.name, FINGERS + body.name if finger else body.name)] if own else []
    return here + [link for child in body.bodies for link in _links(child, model, moves, finger)]


def force_names(robots: Sequence[Robot]) -> tuple[str, ...]:
    """Names of the columns of :func:`forces_of`: ``total``, then links; of several robots ``ROBOT/LINK``."""
    several = len(robots) > 1
    return (TOTAL, *(f"{r.name}/{link}" if several else link for r in robots for link in r.forces.links))


def forces_of(robots: Sequence[Robot]) -> Tensor:
    """(n, 1 + links of all robots) [N]: the sum of their totals, then each link. Owned by the caller."""
    values = [robot.forces.value for robot in robots]
    total = values[0][:, :1].clone()
    for value in values[1:]:
        total += value[:, :1]
    return torch.cat([total, *(value[:, 1:] for value in values)], 1)
