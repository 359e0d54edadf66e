"""How a robot from a file stands: bolted down, on a base that drives, or on its feet."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.robots.compose import BASE_JOINTS, base_joints
from manikin.spec.links import Joint, Vec3
from manikin.spec.robot import DRIVEN, ArmSpec, Base, Gains, RobotSpec

__all__ = ["Stand", "gains_under", "grouped", "stands_on", "without_tool"]

_LOW = 0.03  # [m] bodies that reach down to so far above the lowest point may be feet


@dataclass(frozen=True)
class Stand:
    """Its base, the joints to put under its first body, and where that body is by default."""

    base: Base
    added: tuple[Joint, ...] = ()
    place: Vec3 = (0.0, 0.0, 0.0)


def stands_on(
    spec: mujoco.MjSpec,
    top: mujoco.MjsBody,
    bodies: Sequence[mujoco.MjsBody],
    base: Base | str,
    feet: Sequence[str],
    file: str,
) -> Stand:
    """How a file's robot stands. Raises as :func:`manikin.robots.from_file` does."""
    brings = isinstance(base, str)  # joints of its own
    if isinstance(base, str):
        base = Base(kind=base, joints=BASE_JOINTS if base in DRIVEN else ())
    names = [body.name for body in bodies]
    if base.kind == "fixed" and any(int(joint.type) == int(mujoco.mjtJoint.mjJNT_FREE) for joint in top.joints):
        low, _ = _lowest(spec, bodies)
        raise SceneError(
            f"{file}: {top.name!r} floats, it has a free joint. For a robot that stands on its feet write "
            f'from_file({file!r}, base="free", feet={_listed(low)}); for one that drives, base="planar"; of an arm '
            "that is bolted down, take the joint out of the file"
        )
    if base.kind == "free":
        low, height = _lowest(spec, bodies)
        if not feet:
            raise ConfigError(f"{file}: a free base stands on feet; its lowest bodies would be feet={_listed(low)}")
        for foot in feet:
            if foot not in names:
                raise UnknownNameError(f"body of {file}", foot, names)
        return Stand(base, place=(0.0, 0.0, height))
    if not base.drives:
        return Stand(base)
    if not brings:
        known = [joint.name for body in bodies for joint in body.joints]
        for joint in base.joints:
            if joint not in known:
                hint = f'base="{base.kind}" puts joints of its own under the robot.'
                raise UnknownNameError(f"joint of {file}", joint, known, hint)
        return Stand(base)
    return Stand(base, base_joints(*base.joints))


def gains_under(base: Base, mass: float, gains: Gains) -> Gains:
    """Gains of the joints put under a robot of this mass [kg], then its own: it follows within 0.2 s, and its force
    takes it to 1 m/s and 1.5 rad/s."""
    kd = (12.0 * mass, 12.0 * mass, 1.5 * mass)
    force = (kd[0], kd[1], 1.5 * kd[2])
    return Gains(
        kp=(*(5 * k for k in kd), *gains.kp),
        kd=(*kd, *gains.kd),
        force=(*force, *gains.force),
        source=f"{gains.source}; {base.kind} base: from the mass of {mass:.3g} kg",
    )


def grouped(
    groups: Mapping[str, Sequence[str]] | None, base: Base, joints: tuple[str, ...], file: str
) -> dict[str, tuple[str, ...]]:
    """The joints of each group. Raises :class:`ConfigError` when they are not all joints in order."""
    if groups is None:
        others = tuple(joint for joint in joints if joint not in base.joints)
        whole = {"legs" if base.kind == "free" else "arm": others} if others else {}
        return {"base": base.joints, **whole} if base.drives else whole
    named = {"base": base.joints, **groups} if base.drives and "base" not in groups else dict(groups)
    flat = tuple(joint for group in named.values() for joint in group)
    if missing := [joint for joint in joints if joint not in flat]:
        raise ConfigError(
            f'{file}: joints that are in no group; write groups={{..., "other": {_listed(missing)}}}, or leave them '
            "out of joints=, then they stand still"
        )
    if flat != joints:
        raise ConfigError(f"{file}: the groups name {', '.join(flat)}; its joints in order are {', '.join(joints)}")
    return {name: tuple(group) for name, group in named.items()}


def without_tool(spec: ArmSpec) -> RobotSpec:
    """The same robot without a tool; the controllers left are those of joints."""
    fields = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
    joints = tuple(word for word in spec.controllers if word.startswith("joint"))
    return RobotSpec(**{**fields, "tools": {}, "controllers": joints})


def _listed(names: Sequence[str]) -> str:
    """As a tuple is written."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"({quoted},)" if len(names) == 1 else f"({quoted})"


def _lowest(spec: mujoco.MjSpec, bodies: Sequence[mujoco.MjsBody]) -> tuple[list[str], float]:
    """Bodies that may be feet, and how high the first body is [m] when they touch the floor: at the file's first
    keyframe, else as it is drawn."""
    model = spec.compile()
    data = mujoco.MjData(model)
    if model.nkey:
        data.qpos[:] = model.key_qpos[0]
    mujoco.mj_kinematics(model, data)
    reach = {}
    for body in bodies:
        first, count = int(model.body(body.name).geomadr[0]), int(model.body(body.name).geomnum[0])
        touching = [g for g in range(first, first + count) if model.geom_contype[g] or model.geom_conaffinity[g]]
        if touching:
            reach[body.name] = min(_bottom(model, data, g) for g in touching)
    height = float(data.body(bodies[0].name).xpos[2])
    low = min(reach.values(), default=height)
    return [name for name, z in reach.items() if z < low + _LOW], height - low


def _bottom(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """[m] height of a geom's lowest point; of a cylinder, an ellipsoid or a mesh that of its box."""
    kind, size, up = int(model.geom_type[geom]), model.geom_size[geom], data.geom_xmat[geom].reshape(3, 3)[2]
    z = float(data.geom_xpos[geom, 2])
    if kind == int(mujoco.mjtGeom.mjGEOM_SPHERE):
        return z - float(size[0])
    if kind == int(mujoco.mjtGeom.mjGEOM_CAPSULE):
        return z - float(abs(up[2]) * size[1] + size[0])
    centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
    return z + float(up @ centre - np.abs(up) @ half)
