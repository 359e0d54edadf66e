"""Handles of sensors of touch: force-torque at the wrist, force on finger pads, tactile images of a gel fingertip.

Forces are those of the last substep. The builder declares the sensors (``b.force_torque``, ``b.touch``, ``b.tactile``).
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.math import quat_conj, quat_mul, quat_rotate, quat_rotate_inv
from manikin.scene.gel import SHAPES, Gel, entry, indent
from manikin.scene.handles.base import Handle, Scope
from manikin.scene.handles.part import Part
from manikin.scene.handles.robot import Robot

__all__ = [
    "ForceTorque",
    "Tactile",
    "Touch",
    "declare_force_torque",
    "declare_tactile",
    "declare_touch",
    "finger_number",
]

_S, _O = mujoco.mjtSensor, mujoco.mjtObj
_NET_FORCE = (2, 3, 1)  # data="force", reduce="netforce", num=1
_MARGIN = 0.002  # [m] a touch zone reaches beyond its pads: contacts lie between the surfaces


class ForceTorque(Handle):
    """What the gripper, and all it holds and touches, does to the flange, as a sensor between the two would say.

    Frame: the flange's, z out of it. The gripper's own weight is included (also where the arm's controller compensates
    it), so an arm at rest that points down reads the weight of gripper and load along +z.
    """

    def __init__(self, scope: Scope, robot: Robot) -> None:
        super().__init__(scope, f"wrist/{robot.name}")
        self.robot = robot

    def bind(self, model: mujoco.MjModel) -> None:
        world = self.scope.world
        force, torque = (int(model.sensor(f"{self.name}/{what}").adr[0]) for what in ("force", "torque"))
        self._value = world.channel([("sensordata", force, force + 3), ("sensordata", torque, torque + 3)])
        site = int(model.site(self.name).id)
        pieces = [("site_xpos", 3 * site, 3 * site + 3), ("site_xquat", 4 * site, 4 * site + 4)]
        self._pose = world.channel(pieces, quat_at=3)

    @property
    def value(self) -> Tensor:
        """(n, 6) force [N] and torque [N m] about the sensor's origin, on the arm, in the sensor frame."""
        return -self._get(self._value)  # MuJoCo gives what the arm does to the gripper

    @property
    def pose(self) -> Tensor:
        """(n, 7) the sensor frame in the world."""
        return self._get(self._pose)


class Touch(Handle):
    """Normal force on the pads of each finger."""

    def __init__(self, scope: Scope, robot: Robot) -> None:
        super().__init__(scope, f"touch/{robot.name}")
        self.robot = robot

    def bind(self, model: mujoco.MjModel) -> None:
        fingers = range(len(self.robot.model.finger_bodies))
        adr = [int(model.sensor(f"{self.name}/{k}").adr[0]) for k in fingers]
        self._value = self.scope.world.channel([("sensordata", a, a + 1) for a in adr])

    @property
    def value(self) -> Tensor:
        """(n, fingers) [N] sum of the normal forces of all contacts on the pads, >= 0."""
        return self._get(self._value)


class Tactile(Handle):
    """A gel fingertip seen from inside: where and how deep it is pressed, and how it is sheared.

    The image lies on the face of the finger's pad and looks out of it: rows from the fingertip (row 0) down to the
    palm, columns to the right of an eye in the finger with the tip up. Taxel (i, j) is a cell of a regular grid.

    Attributes:
        resolution: (H, W) taxels.
        size: (height, width) of the image on the pad [m].
        gel: the layer's thickness and stiffness.
    """

    def __init__(
        self,
        scope: Scope,
        robot: Robot,
        finger: int,
        parts: Sequence[Part],
        *,
        resolution: tuple[int, int],
        size: tuple[float, float] | None,
        gel: Gel,
    ) -> None:
        super().__init__(scope, f"tactile/{robot.name}/{finger}")
        self.robot, self.finger, self.parts = robot, finger, tuple(parts)
        self.resolution, self.gel, self._asked = resolution, gel, size
        self._seen = -1
        self._cache: tuple[Tensor, Tensor]

    def bind(self, model: mujoco.MjModel) -> None:
        world, robot = self.scope.world, self.robot
        spec = robot.gripper.fingers[self.finger]
        body = int(model.body(robot.prefix + spec.body).id)
        self._place_image(model, body, np.asarray(spec.closing, float))
        pos, quat = ("xpos", 3 * body, 3 * body + 3), ("xquat", 4 * body, 4 * body + 4)
        self._pose = world.channel([pos, quat], quat_at=3)
        adr = [int(model.sensor(f"{self.name}/{part.name}").adr[0]) for part in self.parts]
        self._force = world.channel([("sensordata", a, a + 3) for a in adr], (len(adr), 3))
        self._shapes = []
        for part in self.parts:
            for k, name in enumerate(part.geom_names):
                g = int(model.geom(name).id)
                kind = int(model.geom_type[g])
                if kind not in SHAPES:
                    raise SceneError(
                        f"tactile sensing of {part.name!r}: geom {name!r} is not one of {', '.join(SHAPES.values())}"
                    )
                b = int(model.geom_bodyid[g])  # Warp has no quaternions of geoms, so they follow from those of bodies
                pieces = [("geom_xpos", 3 * g, 3 * g + 3), ("xquat", 4 * b, 4 * b + 4)]
                size = torch.from_numpy(model.geom_size[g].astype(np.float32)).to(self.scope.device)
                turn = torch.from_numpy(model.geom_quat[g].copy()).to(self.scope.device)
                self._shapes.append((part, k, kind, world.channel(pieces, quat_at=3), size, turn))

    def _place_image(self, model: mujoco.MjModel, body: int, forward: np.ndarray) -> None:
        """The image's axes and taxels in the finger's frame."""
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        tcp = int(model.body(self.robot.prefix + self.robot.model.tcp_body).id)
        out = data.xmat[body].reshape(3, 3).T @ data.xmat[tcp].reshape(3, 3)[:, 2]  # out of the gripper, to the tips
        down = -(out - (out @ forward) * forward)
        down /= np.linalg.norm(down)
        axes = np.stack([np.cross(down, forward), down, forward])  # rows: right, down, forward
        pads = [int(model.geom(self.robot.prefix + name).id) for name in self.robot.model.pad_geoms]
        pads = [g for g in pads if int(model.geom_bodyid[g]) == body]
        # Makers' models back their flat pads with a mesh of the whole finger, which is no face.
        flat = [g for g in pads if int(model.geom_type[g]) == int(mujoco.mjtGeom.mjGEOM_BOX)]
        corners = [_corners(model, g) @ axes.T for g in flat or pads]
        face = max(c[:, 2].max() for c in corners)
        flush = np.concatenate([c for c in corners if c[:, 2].max() > face - 5e-4])
        low, high = flush[:, :2].min(0), flush[:, :2].max(0)
        pad = (float(high[1] - low[1]), float(high[0] - low[0]))
        self.size = pad if self._asked is None else self._asked
        if any(a > b + 1e-6 for a, b in zip(self.size, pad, strict=True)):
            raise ConfigError(
                f"a tactile image of {self.size[0] * 1e3:.1f} x {self.size[1] * 1e3:.1f} mm does not fit on the pad of "
                f"{self.robot.gripper.name}, {pad[0] * 1e3:.1f} x {pad[1] * 1e3:.1f} mm"
            )
        centre = (low + high) / 2
        h, w = self.resolution
        v = centre[1] + ((np.arange(h) + 0.5) / h - 0.5) * self.size[0]
        u = centre[0] + ((np.arange(w) + 0.5) / w - 0.5) * self.size[1]
        grid = np.stack(np.meshgrid(u, v), -1).reshape(-1, 2)
        points = np.concatenate([grid, np.full((len(grid), 1), face)], 1) @ axes
        device = self.scope.device
        self._axes, self._taxels = torch.from_numpy(axes).to(device), torch.from_numpy(points).to(device)
        self._area = self.size[0] * self.size[1] / (h * w)

    # ---- what it feels -----------------------------------------------------------------------------------------------

    @property
    def force(self) -> Tensor:
        """(n, 3) [N] net force of the parts on the gel: to the image's right, down, and pressing (>= 0)."""
        return self._feel()[1].float()

    @property
    def depth(self) -> Tensor:
        """(n, H, W) float32, how deep the gel is pressed in [m], 0 outside the print."""
        return self._feel()[0].float()

    @property
    def shear(self) -> Tensor:
        """(n, H, W, 2) float32, how far the gel's skin is dragged to the image's right and down [m].

        Traction is spread like pressure: shear_stiffness x taxel area x the sum of an image is the tangential force.
        """
        depth, force = self._feel()
        pressing = force[:, 2:].clamp(min=1e-9)
        scale = force[:, :2] / pressing * (self.gel.stiffness / self.gel.shear_stiffness)
        return (depth.unsqueeze(-1) * scale.view(-1, 1, 1, 2)).float()

    def _feel(self) -> tuple[Tensor, Tensor]:
        scope = self.scope
        if scope.rows is None and self._seen == scope.world.version:
            return self._cache
        pose = self._get(self._pose).double()
        each = quat_rotate_inv(pose[:, None, 3:], -self._get(self._force).double())
        each = torch.stack([(each * axis).sum(-1) for axis in self._axes], -1)  # force of each part, image axes
        total = each[:, 0]
        for k in range(1, each.shape[1]):
            total = total + each[:, k]
        total = torch.cat([total[:, :2], -total[:, 2:]], 1).clone()
        total[:, 2].clamp_(min=0)
        depth = indent(self._gap(pose), total[:, 2], self._area, self.gel).view(-1, *self.resolution)
        if scope.rows is None:
            self._cache, self._seen = (depth, total), scope.world.version
        return depth, total

    def _gap(self, pose: Tensor) -> Tensor:
        """(n, taxels) distance from the pad's face to the parts before it [m]; inf for nothing."""
        n, gap = len(pose), None
        forward = self._axes[2].expand(n, 3)
        for part, k, kind, channel, size, own in self._shapes:
            geom = self._get(channel).double()
            quat = quat_mul(geom[:, 3:], own.expand(n, 4))
            turn = quat_mul(quat_conj(quat), pose[:, 3:])  # finger's frame to geom's
            offset = quat_rotate_inv(quat, pose[:, :3] - geom[:, :3])
            origin = quat_rotate(turn.unsqueeze(1), self._taxels.unsqueeze(0)) + offset.unsqueeze(1)
            if part._size is not None:
                size = part.size if part.size.dim() == 2 else part.size[:, k]
            enter = entry(kind, size.double().expand(n, 3), origin, quat_rotate(turn, forward))
            # what lies behind the finger is not before its pad
            enter = torch.where(enter.abs() < 0.05, enter, torch.inf)
            gap = enter if gap is None else torch.minimum(gap, enter)
        assert gap is not None
        return gap


def _corners(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """(8, 3) corners of a geom's bounding box in its body's frame."""
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    box = model.geom_aabb[geom]
    return model.geom_pos[geom] + (box[:3] + signs * box[3:]) @ rotation.reshape(3, 3).T


# ---- what must be in the model before it is compiled -----------------------------------------------------------------


def declare_force_torque(spec: mujoco.MjSpec, handle: ForceTorque) -> None:
    """Add a site at the flange to the gripper's first body, and the two sensors."""
    robot = handle.robot
    if robot.gripper is None:
        raise SceneError(f"{robot.name} has no gripper, so nothing acts on its flange")
    if robot.gripper.links:
        root = robot.gripper.links[0]
        quat = torch.tensor(root.quat, dtype=torch.float64, device="cpu")
        back = quat_conj(quat)
        pos = -quat_rotate(back, torch.tensor(root.pos, dtype=torch.float64, device="cpu"))
        name, place = root.name, {"pos": pos.tolist(), "quat": back.tolist()}
    else:  # the gripper is part of the arm: its last joint's frame
        name, place = robot.gripper.tcp_body, {}
    spec.body(robot.prefix + name).add_site(name=handle.name, size=(0.002, 0.002, 0.002), group=4, **place)
    for what, kind in (("force", _S.mjSENS_FORCE), ("torque", _S.mjSENS_TORQUE)):
        spec.add_sensor(name=f"{handle.name}/{what}", type=kind, objtype=_O.mjOBJ_SITE, objname=handle.name)


def declare_touch(spec: mujoco.MjSpec, handle: Touch) -> None:
    """Add a zone round each finger's pads, and a sensor for each zone."""
    robot = handle.robot
    if robot.gripper is None or not robot.gripper.fingers:
        raise SceneError(f"{robot.name} has no gripper, so it has no finger pads")
    for k, name in enumerate(robot.model.finger_bodies):
        body = spec.body(robot.prefix + name)
        pads = [g for g in body.geoms if g.name.removeprefix(robot.prefix) in robot.model.pad_geoms]
        boxes = [_box(g) for g in pads]
        site = body.add_site(name=f"{handle.name}/{k}", group=4)
        if any(b is None for b in boxes):  # a mesh: its extent is known after compiling; every contact counts
            site.type, site.size = mujoco.mjtGeom.mjGEOM_SPHERE, (0.15, 0, 0)
        else:
            corners = np.concatenate([b for b in boxes if b is not None])
            low, high = corners.min(0), corners.max(0)
            site.type, site.pos = mujoco.mjtGeom.mjGEOM_BOX, (low + high) / 2
            site.size = (high - low) / 2 + _MARGIN
        spec.add_sensor(
            name=f"{handle.name}/{k}", type=_S.mjSENS_TOUCH, objtype=_O.mjOBJ_SITE, objname=f"{handle.name}/{k}"
        )


def _box(geom: mujoco.MjsGeom) -> np.ndarray | None:
    """(8, 3) corners round a primitive in its body's frame; None for a mesh."""
    kind, size = int(geom.type), np.nan_to_num(np.asarray(geom.size, float))
    if kind not in SHAPES:
        return None
    radius = size[0]
    half = {
        "box": size,
        "ellipsoid": size,
        "sphere": np.full(3, radius),
        "cylinder": np.array([radius, radius, size[1]]),
        "capsule": np.array([radius, radius, size[1] + radius]),
    }[SHAPES[kind]]
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, np.asarray(geom.quat, float))
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    corners: np.ndarray = np.asarray(geom.pos) + (signs * half) @ rotation.reshape(3, 3).T
    return corners


def declare_tactile(spec: mujoco.MjSpec, handle: Tactile) -> None:
    """Add a sensor of the net force of the finger on each part."""
    robot = handle.robot
    for part in handle.parts:
        spec.add_sensor(
            name=f"{handle.name}/{part.name}",
            type=_S.mjSENS_CONTACT,
            objtype=_O.mjOBJ_BODY,
            objname=robot.prefix + robot.model.finger_bodies[handle.finger],
            reftype=_O.mjOBJ_XBODY,
            refname=part.name,
            intprm=_NET_FORCE,
        )


def finger_number(robot: Robot, finger: int | str) -> int:
    """A finger by number or by its body's name. Raises :class:`UnknownNameError`, which lists both."""
    if robot.gripper is None or not robot.gripper.fingers:
        raise SceneError(f"{robot.name} has no gripper, so it has no fingers")
    names = robot.model.finger_bodies
    if finger in names:
        return names.index(finger)
    if isinstance(finger, int) and 0 <= finger < len(names):
        return finger
    raise UnknownNameError(f"finger of {robot.gripper.name}", finger, [*names, *map(str, range(len(names)))])
