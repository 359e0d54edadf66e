"""Robots put together from others: an arm on a base that drives, two arms on one body, a hand on an arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.spec.links import Joint, Link, Quat, Vec3, box, cylinder, renamed
from manikin.spec.robot import DRIVEN, Base, Gains, JointGroup, MotionLimits, Mounted, RobotSpec, Tool

__all__ = ["BASE_JOINTS", "base_joints", "on_base", "put_together", "team_on_base", "with_hand"]

BASE_JOINTS = ("base_x", "base_y", "base_yaw")
FLOOR = 0.9196  # [m] how far the floor is below the table top, where arms stand
_DECK = 0.3  # [m] height of the chassis
_AHEAD = 0.15  # [m] the arm stands so far ahead of the chassis' middle
_APART = 0.44  # [m] between arms that stand side by side
_DARK, _LIGHT = (0.16, 0.17, 0.19, 1), (0.75, 0.77, 0.8, 1)


def on_base(spec: RobotSpec, kind: str) -> RobotSpec:
    """A robot on a chassis that drives: ``panda@planar``, ``ur5e@differential``.

    The chassis is 0.6 m x 0.5 m and 80 kg, chosen, and stands on the floor before the table. The arm keeps the height
    that it has at the table. kd lets the base reach 1 m/s and 1.5 rad/s at its force.

    Raises:
        UnknownNameError: no such base.
        ConfigError: the robot stands on its own feet, or has a base that drives.
    """
    return _driven(spec.name, spec.title, [(spec, "")], kind)


def team_on_base(name: str, members: Sequence[RobotSpec], kind: str) -> RobotSpec:
    """Arms of one body as one robot on a chassis that drives: ``baxter@planar``. What belongs to ``baxter_left``, its
    joints, its group ``left_arm``, its tool ``left``, has its side in its name.

    Arms of one body keep their places on it. Arms that stand apart at the table (``aloha``) stand side by side, 0.44 m
    from one another, and look ahead; the distance is chosen.

    Raises as :func:`on_base` does.
    """
    sides = [(member, member.name.removeprefix(f"{name}_") + "_") for member in members]
    apart = len({(member.base_pos, member.base_quat) for member in members}) > 1
    return _driven(name, members[0].title.split(",")[0], sides, kind, _APART if apart else 0.0)


def _driven(
    name: str, title: str, carried: Sequence[tuple[RobotSpec, str]], kind: str, apart: float = 0.0
) -> RobotSpec:
    if kind not in DRIVEN:
        raise UnknownNameError("base", kind, DRIVEN, f"(in {name}@{kind})")
    spec = carried[0][0]
    if spec.base.kind != "fixed":
        raise ConfigError(
            f"{name!r} already has a {spec.base.kind} base and cannot stand on another; leave out @{kind}"
        )
    height = max(_DECK, FLOOR + spec.base_pos[2])
    chassis = _chassis(kind, height, apart * (len(carried) - 1))
    ahead = _turned((_AHEAD, 0, 0), spec.base_quat)
    ik = tuple(prefix + group for one, prefix in carried for group in one.ik_groups or one.groups)
    return put_together(
        f"{name}@{kind}",
        f"{title} on a {kind} base",
        [
            Mounted(spec=chassis),
            *(
                Mounted(
                    spec=one, on="chassis", pos=(_AHEAD, apart * ((len(carried) - 1) / 2 - k), height), prefix=prefix
                )
                for k, (one, prefix) in enumerate(carried)
            ),
        ],
        base=chassis.base,
        ik_groups=ik if len(carried) == 1 else ik[:1],
        base_pos=(spec.base_pos[0] - ahead[0], spec.base_pos[1] - ahead[1], spec.base_pos[2] - height),
        base_quat=spec.base_quat,
        table_edge=spec.base_pos[0] + 0.175,
    )


def with_hand(spec: RobotSpec, hand: RobotSpec) -> RobotSpec:
    """An arm whose flange carries a hand of several joints: ``panda+allegro``. The arm's tool is then the hand's.

    Raises:
        ConfigError: the robot has no flange, or several.
    """
    if len(spec.tools) != 1 or not spec.flange_body:
        raise ConfigError(
            f"{spec.name!r} needs exactly one flange to carry {hand.name!r}; it has "
            f"{0 if not spec.tools else len(spec.tools)} tools"
        )
    (label, tool), ((_, own), *tips) = next(iter(spec.tools.items())), hand.tools.items()
    return put_together(
        f"{spec.name}+{hand.name}",
        f"{spec.title} with {hand.title}",
        [Mounted(spec=spec), Mounted(spec=hand, on=tool.body, pos=tool.pos, quat=tool.quat)],
        tools={label: replace(own, group=tool.group or (spec.ik_groups or tuple(spec.groups))[-1]), **dict(tips)},
        ik_groups=spec.ik_groups or tuple(spec.groups),
        controllers=spec.controllers,
        base_pos=spec.base_pos,
        base_quat=spec.base_quat,
        table_edge=spec.table_edge,
        gravcomp=spec.gravcomp,
        ee_delta_pos=spec.ee_delta_pos,
        ee_delta_rot=spec.ee_delta_rot,
        reach=spec.reach,
        payload=spec.payload,
    )


def base_joints(x: str, y: str, yaw: str) -> tuple[Joint, Joint, Joint]:
    """Joints of these names for a base that drives: 20 m either way, and ten turns."""
    return (
        Joint(name=x, type="slide", axis=(1, 0, 0), range=(-20, 20)),
        Joint(name=y, type="slide", axis=(0, 1, 0), range=(-20, 20)),
        Joint(name=yaw, axis=(0, 0, 1), range=(-62.8, 62.8)),
    )


def _chassis(kind: str, height: float, width: float) -> RobotSpec:
    geoms = [
        box((0.3, 0.25, 0.115), (0, 0, 0.185), _LIGHT),
        box((0.302, 0.252, 0.03), (0, 0, 0.12), _DARK, collide=False),
        *(
            cylinder((x, 0.2 * s, 0.07), (x, 0.24 * s, 0.07), 0.07, _DARK, collide=False)
            for x in (-0.2, 0.2)
            for s in (-1, 1)
        ),
    ]
    if height > _DECK:
        geoms.append(cylinder((_AHEAD, 0, _DECK), (_AHEAD, 0, height), 0.09, _DARK))
    if width > 0:  # a beam that arms stand on side by side
        geoms.append(box((0.09, width / 2 + 0.09, 0.02), (_AHEAD, 0, height - 0.02), _DARK))
    x, y, z = (0.6, 0.5, 0.3)
    links = (
        Link(
            name="chassis",
            parent=None,
            joint=base_joints(*BASE_JOINTS),
            mass=80.0,
            com=(0, 0, 0.15),
            inertia=(80 / 12 * (y * y + z * z), 80 / 12 * (x * x + z * z), 80 / 12 * (x * x + y * y)),
            geoms=tuple(geoms),
        ),
    )
    group = JointGroup(
        joints=BASE_JOINTS,
        gains=Gains(kp=(12000, 12000, 1500), kd=(2500, 2500, 300), force=(2500, 2500, 450), source="chosen"),
        delta=(0.05, 0.05, 0.1),
        speed=1.0,
        motion=MotionLimits(velocity=(1.0,) * 3, acceleration=(2.0,) * 3, jerk=(20.0,) * 3),
    )
    return RobotSpec(
        name=f"{kind} base",
        title=f"{kind} base",
        links=links,
        base=Base(kind=kind, joints=BASE_JOINTS),
        groups={"base": group},
        keyframes={"rest": (0.0, 0.0, 0.0)},
    )


def put_together(name: str, title: str, parts: Sequence[Mounted], **fields: Any) -> RobotSpec:
    """One robot of several. Its groups, tools, keyframes, cameras and sensors are theirs; where a part has a prefix,
    names of groups and tools that more than one part has begin with it. Fields that are given win.

    Raises:
        ConfigError: two parts have a group or a tool of one name.
    """
    groups: dict[str, JointGroup] = {}
    tools: dict[str, Tool] = {}
    links: list[Link] = []
    for part in parts:
        spec, p = part.spec, part.prefix
        for key, group in spec.groups.items():
            _put(groups, p + key, replace(group, joints=tuple(p + joint for joint in group.joints)), name, "group")
        last = p + (spec.ik_groups or tuple(spec.groups))[-1]
        alone = len(spec.tools) == 1
        for key, tool in spec.tools.items():
            label = p.rstrip("_") if p and alone else p + key
            body = p + tool.body if tool.body else ""
            _put(tools, label, replace(tool, body=body, group=p + tool.group if tool.group else last), name, "tool")
        own = list(renamed(spec.links, p)) if p else list(spec.links)
        if part.on:
            pos, quat = _product(part.pos, part.quat, own[0].pos, own[0].quat)
            own[0] = replace(own[0], parent=part.on, pos=pos, quat=quat)
        links += own
    first, carried = parts[0].spec, parts[-1].spec
    made: dict[str, Any] = dict(
        parts=tuple(parts),
        links=tuple(links),
        groups=groups,
        tools=tools,
        feet=tuple(part.prefix + foot for part in parts for foot in part.spec.feet),
        foot_friction=first.foot_friction,
        stands=first.stands,
        touch=tuple(part.prefix + body for part in parts for body in part.spec.touch),
        followers={
            part.prefix + joint: (part.prefix + driver, ratio)
            for part in parts
            for joint, (driver, ratio) in part.spec.followers.items()
        },
        keyframes=_keyframes(parts),
        gravcomp=all(part.spec.gravcomp for part in parts),
        controllers=(*carried.controllers, *(["base_vel"] if first.base.drives else [])),
        excludes=tuple((p.prefix + a, p.prefix + b) for p in parts for a, b in p.spec.excludes),
        cameras=tuple(
            replace(camera, name=part.prefix + camera.name, on=part.prefix + camera.on)
            for part in parts
            for camera in part.spec.cameras
        ),
        sensors=tuple(
            replace(imu, name=part.prefix + imu.name, body=part.prefix + imu.body)
            for part in parts
            for imu in part.spec.sensors
        ),
        base=first.base,
        ee_delta_pos=carried.ee_delta_pos,
        ee_delta_rot=carried.ee_delta_rot,
        reach=carried.reach,
        payload=carried.payload,
        source="; ".join(dict.fromkeys(part.spec.source for part in parts if part.spec.source)),
    )
    return RobotSpec(name=name, title=title, **{**made, **fields})


def _put(into: dict[str, Any], key: str, value: Any, robot: str, what: str) -> None:
    if key in into:
        raise ConfigError(f"{robot!r}: two of its parts have a {what} {key!r}; give one of them a prefix")
    into[key] = value


def _keyframes(parts: Sequence[Mounted]) -> Mapping[str, tuple[float, ...]]:
    """Those of all parts; a part without one of that name stays at rest."""
    names = dict.fromkeys(key for part in parts for key in part.spec.keyframes)
    rest = [part.spec.keyframes.get("rest", (0.0,) * len(part.spec.joints)) for part in parts]
    return {
        key: tuple(value for part, own in zip(parts, rest, strict=True) for value in part.spec.keyframes.get(key, own))
        for key in names
    }


def _turned(vector: Vec3, quat: Quat) -> Vec3:
    out = np.zeros(3)
    mujoco.mju_rotVecQuat(out, np.array(vector, float), np.array(quat, float))
    return tuple(out.tolist())  # type: ignore[return-value]


def _product(pos: Vec3, quat: Quat, then: Vec3, turn: Quat) -> tuple[Vec3, Quat]:
    """The pose ``then``, ``turn`` of a frame at ``pos``, ``quat``."""
    both = np.zeros(4)
    mujoco.mju_mulQuat(both, np.array(quat, float), np.array(turn, float))
    moved = _turned(then, quat)
    return tuple(a + b for a, b in zip(pos, moved, strict=True)), tuple(both.tolist())  # type: ignore[return-value]
