"""Finds how an object lies on a table: stable poses from its shape, each confirmed by a drop in MuJoCo."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from manikin.assets.meshes import package
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.spec.physics import Physics
from manikin.spec.prop import Prop, Shape

__all__ = ["Drop", "Pose", "drop", "stable_poses"]

_SAME = 15.0  # [deg] poses whose upward directions differ by less are one pose
_ROLLS = 35.0  # [deg] and those by less between which the centre of mass stays level: it rolls from one to the next
_LEVEL = 0.02  # of the centre of mass's height
_LIKELY = 0.02  # poses less probable than this are left out, unless none is more probable
_MOST = 8  # poses that are kept
_ABOVE = 0.002  # [m] between the object and the table before it falls
_SETTLE, _WATCH = 2.0, 1.0  # [s]
_TILT = 5.0  # [deg] a pose that it leaves by more is none
_SPEED, _SPIN = 0.005, 0.1  # [m/s], [rad/s] beyond which it trembles


@dataclass(frozen=True, eq=False)
class Pose:
    """``rotation`` (3, 3) that turns the object so that it rests, z up, and the pose's ``probability`` when the object
    is thrown at random."""

    rotation: np.ndarray
    probability: float

    @property
    def up(self) -> np.ndarray:
        """(3,) the world's vertical, in the object's frame."""
        return np.asarray(self.rotation[2])


@dataclass(frozen=True, eq=False)
class Drop:
    """What became of an object that was put down.

    Attributes:
        rotation: (3, 3) how it lies in the end.
        tilt: angle [deg] between its vertical at the start and at the end.
        speed: largest speed of its origin [m/s] in the last second.
        spin: largest angular speed [rad/s] in the last second.
    """

    rotation: np.ndarray
    tilt: float
    speed: float
    spin: float

    @property
    def still(self) -> bool:
        """Whether it lies without trembling."""
        return self.speed < _SPEED and self.spin < _SPIN

    @property
    def rests(self) -> bool:
        """Whether it lies still as it was put down."""
        return self.still and self.tilt < _TILT


def stable_poses(points: np.ndarray, com: np.ndarray) -> list[Pose]:
    """Poses in which the convex hull of ``points`` (n, 3) with centre of mass ``com`` (3,) lies still, the most
    probable first.

    They are trimesh's (Goldberg, Mirtich, Zhuang, Craig, Carlisle and Canny, "Part pose statistics: estimators and
    experiments", IEEE Transactions on Robotics and Automation 15, 1999). Poses within 15 degrees are one, as a scan's
    foot has many small faces, and so are those between which the object rolls. Less than 2 % is left out.
    """
    trimesh = package("trimesh", "the search for rest poses")
    hull = trimesh.convex.convex_hull(points)
    matrices, probabilities = trimesh.poses.compute_stable_poses(hull, center_mass=com, seed=0)
    order = np.argsort(-probabilities, kind="stable")
    ups, chances = matrices[order, 2, :3], probabilities[order]
    height = ups @ com - (ups @ hull.vertices.T).min(1)
    near = np.rad2deg(np.arccos(np.clip(ups @ ups.T, -1, 1)))
    level = np.abs(height[:, None] - height) < _LEVEL * height
    joined = (near < _SAME) | ((near < _ROLLS) & level)
    group = np.full(len(ups), -1)
    for first in range(len(ups)):  # in the order of probability: a group is named by its most probable pose
        if group[first] < 0:
            waiting = [first]
            while waiting:
                k = waiting.pop()
                if group[k] < 0:
                    group[k] = first
                    waiting += np.flatnonzero(joined[k] & (group < 0)).tolist()
    found = [Pose(upright(ups[k]), float(chances[group == k].sum())) for k in np.unique(group)]
    found.sort(key=lambda p: -p.probability)
    return [p for p in found if p.probability >= _LIKELY][:_MOST] or found[:1]


def upright(up: np.ndarray) -> np.ndarray:
    """(3, 3) the least rotation that turns the direction ``up`` (3,) to z."""
    up = np.asarray(up, float) / np.linalg.norm(up)
    axis = np.cross(up, (0, 0, 1))
    sine, cosine = float(np.linalg.norm(axis)), float(up[2])
    if sine < 1e-9:
        return np.eye(3) if cosine > 0 else np.diag((1.0, -1.0, -1.0))
    x, y, z = axis / sine
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + sine * cross + (1 - cosine) * cross @ cross


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Angle between two unit vectors [deg]."""
    return float(np.rad2deg(np.arccos(np.clip(np.dot(a, b), -1, 1))))


def to_quat(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """(w, x, y, z) of a rotation matrix (3, 3)."""
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(rotation, float).ravel())
    w, x, y, z = (quat if quat[0] >= 0 else -quat).round(9).tolist()
    return w, x, y, z


def to_matrix(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of (w, x, y, z)."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, np.asarray(quat, float))
    return out.reshape(3, 3)


def drop(prop: Prop, points: np.ndarray, rotations: list[np.ndarray], *, device: str = "cpu") -> list[Drop]:
    """Put the object onto a table in each of the given turns, all at once, and watch it for three seconds.

    Args:
        prop: the object.
        points: (n, 3) corners of what collides, in its frame.
        rotations: (3, 3) each.
        device: as for :func:`manikin.make`.
    """
    b = SceneBuilder([], Physics())
    b.fixture("table", Shape(type="box", size=(5.0, 5.0, 0.5), pos=(0, 0, -0.5)))
    thing = b.mesh("thing", choice=[prop])
    world = make_world(b.compile(), len(rotations), device=device)
    b.bind(world)
    world.reset()
    thing.set_choice(torch.zeros(len(rotations)))
    heights = [_ABOVE - float((points @ r.T)[:, 2].min()) for r in rotations]
    place = torch.tensor([[0.0, 0.0, h] for h in heights], dtype=torch.float32)
    thing.set_pose(place, torch.tensor([to_quat(r) for r in rotations], dtype=torch.float32))
    world.forward()
    world.step(round(_SETTLE / world.timestep))
    speed, spin = np.zeros(len(rotations)), np.zeros(len(rotations))
    for _ in range(round(_WATCH / world.timestep / 2)):
        world.step(2)
        speed = np.maximum(speed, thing.linvel.norm(dim=1).cpu().numpy())
        spin = np.maximum(spin, thing.angvel_body.norm(dim=1).cpu().numpy())
    ends = [to_matrix(q) for q in thing.quat.cpu().double().numpy()]
    return [
        Drop(end, angle(end[2], start[2]), float(s), float(w))
        for end, start, s, w in zip(ends, rotations, speed, spin, strict=True)
    ]
