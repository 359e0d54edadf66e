"""What the tasks in a kitchen share: which joint is meant, where the robot stands before it, rewards, tool poses."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin import (
    CameraSpec,
    Episode,
    Event,
    Handles,
    Labels,
    Marker,
    Mode,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Variable,
    Waypoint,
)
from manikin.errors import ConfigError
from manikin.homes import Apartment, Fixture, Home, Mechanism, furnish
from manikin.homes.kitchens import KITCHENS, boxes, kitchen, robocasa_kitchen
from manikin.math import (
    Constant,
    atan2,
    norm,
    pose,
    quat_from_axis_angle,
    quat_from_yaw,
    quat_mul,
    quat_rotate,
    wrap_to_pi,
)
from manikin.toolkit import ONE, bonus, chosen, closeness, constant, per_step

__all__ = ["KitchenHandles", "KitchenTask", "across", "hinge", "moving"]

_BESIDE = 0.35  # [m] either side of a handle, what stands there is in the robot's way
_FAR = 0.6  # [m] beyond it, things stand on the other side of the room
_UP = Constant((0.0, 0.0, 1.0))
_INTO = Constant((-1.0, 0.0, 0.0))


def across(pitch: float) -> Constant:
    """The tool's orientation before a front that faces x: it points at it, ``pitch`` [rad] down, and its fingers open
    sideways."""
    half = math.pi / 4 + pitch / 2
    return Constant((math.cos(half), 0.0, -math.sin(half), 0.0))


def moving(what: str) -> Labels:
    """Ways to succeed and fail of a task that moves ``what``, one joint."""
    return Labels(
        events=(
            Event("moved", "is_moved"),
            Event("success", "success"),
            Event("lost", "success", "fall"),
        ),
        success=(
            Mode("straightforward_success", "not lost", f"the {what} is where it should be, and stays"),
            Mode("success_then_lost", "last(lost) > last(success)", "it did not stay so"),
            Mode("winding_success", "otherwise", "it took several tries"),
        ),
        failure=(
            Mode("never_moved", "not moved", f"the {what} did not move"),
            Mode("not_far_enough", "otherwise", f"the {what} moved, and not far enough"),
        ),
        source="tasks that move one joint of a kitchen",
    )


@dataclass
class KitchenHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    home: Home
    target: Variable  # number of the joint that is meant
    marker: Marker


@functools.lru_cache(maxsize=16)
def _kitchen(layout: str) -> Apartment:
    name, _, style = layout.partition("/")
    return kitchen(layout) if layout in KITCHENS else robocasa_kitchen(name, style or "style001")


@functools.lru_cache(maxsize=16)
def _standing(layout: str) -> np.ndarray:
    """(k, 2, 3) corners of the boxes of all that stands in a kitchen [m]."""
    place = _kitchen(layout)
    pieces: tuple[Fixture | Mechanism, ...] = (*place.fixtures, *place.mechanisms)
    return np.concatenate([boxes(piece) for piece in pieces])


class KitchenTask(Task):
    """One joint of a kitchen is to be moved. Layouts are built-in kitchens; a subclass may name others, and those of
    RoboCasa where the data are: ``layout001/style001``."""

    horizon_s = 15.0
    robots = ("panda@planar",)
    robot_control: ClassVar[Mapping[str, str]] = {"panda@planar": "base: base_vel, arm: joint_delta_pos"}
    layouts = KITCHENS
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "base_pose": Quantity("m, quaternion wxyz", "world"),
        "handle_pos": Quantity("m", "world", "of what is to be moved"),
        "tcp_to_handle": Quantity("m", "world"),
        "front_quat": Quantity("quaternion wxyz", "world", "x points out of the front"),
        "joint": Quantity("rad, m", note="position of the joint"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to handle; 1 in success",
        "move": "3 times the share of the way that the joint has moved",
        "success": "what is missing to 5, in success",
    }

    kinds: ClassVar[tuple[str, ...]] = ()  # of the furniture that has such joints
    opened: ClassVar[tuple[float, float]] = (0.0, 0.0)  # share of the range at which the joint begins
    keyframe: ClassVar[str] = "rest"  # of the arm, at the start
    backs: ClassVar[float] = 0.0  # [m] the robot starts further away by this

    @dataclass(frozen=True)
    class Config:
        distance: float = 0.7  # [m] from what stands before the handle to the middle of the base
        spread: tuple[float, float] = (0.05, 0.15)  # [m] it varies by this, forwards and sideways
        noise: float = 0.02  # [rad] of the arm's joints

    # ---- what a task says ------------------------------------------------------------------------------------------

    def joints(self, one: Mechanism) -> Sequence[str]:
        """Names of the joints of a piece of furniture that may be meant."""
        return one.joints

    def done(self, h: Any) -> Tensor:
        """(n,) bool: the rule of success."""
        raise NotImplementedError

    def share(self, h: Any) -> Tensor:
        """(n,) of the way that the joint has moved, 0 to 1."""
        raise NotImplementedError

    # ---- scene and start -------------------------------------------------------------------------------------------

    def scene(self, b: SceneBuilder) -> KitchenHandles:
        robot = b.robot(pos=(0, 0, 0))
        if not robot.arm.base.drives or not robot.tools:
            raise ConfigError(f"{self.id} needs an arm with a gripper on a base that drives, like panda@planar")
        place = _kitchen(self.layout)
        self._targets = found = [
            (one, joint) for one in place.mechanisms if one.kind in self.kinds for joint in self.joints(one)
        ]
        if not found:
            raise ConfigError(f"{self.id}: {place.name} has no such {' or '.join(self.kinds)}")
        self._yaw = torch.tensor([2 * math.atan2(one.quat[3], one.quat[0]) for one, _ in found])
        self._first = torch.tensor([_handle(one, joint) for one, joint in found])
        self._edge = torch.tensor([_edge(_standing(self.layout), one, joint) for one, joint in found])
        limits = [one.model.joint(joint).range.tolist() for one, joint in found]
        self._limits = torch.tensor(limits)
        home = furnish(b, place)
        (x0, y0), (x1, y1) = place.low, place.high
        eye, seen = ((x0 + x1) / 2, y0 + 0.2, 2.5), ((x0 + x1) / 2, y1 - 0.3, 0.8)
        b.camera(CameraSpec(name="human_camera", pos=eye, target=seen, fovy=1.2, width=512, height=512), replace=True)
        return KitchenHandles(
            robot=robot,
            home=home,
            target=b.variable("target"),
            marker=b.marker("handle_marker", size=(0.015,), rgba=(0.1, 0.8, 0.2, 0.8)),
        )

    def start(self, h: Any, ep: Episode) -> None:
        c = self.config
        number = ep.rng.integers("target", 0, len(self._targets))
        h.target.set(number.float())
        share = ep.rng.uniform("opened", *self.opened) if self.opened[1] > 0 else torch.zeros(h.n)
        for name, piece in h.home.mechanisms.items():
            q = torch.zeros(h.n, len(piece.joints))
            for k, (one, joint) in enumerate(self._targets):
                if one.name == name:
                    at = piece.joints.index(joint)
                    q[:, at] = torch.where(number == k, share * self._limits[k, 1], q[:, at])
            piece.set_qpos(q)
        h.marker.set_pose(self._first[number])
        forth, aside = c.spread
        vary = ep.rng.uniform("base/place", -1.0, 1.0, (2,)) * torch.tensor([forth, aside])
        yaw = self._yaw[number]
        away = self._edge[number] + c.distance + self.backs + vary[:, 0]
        spot = torch.stack([away, vary[:, 1], torch.zeros(h.n)], 1)
        spot = self._first[number] + quat_rotate(quat_from_yaw(yaw), spot)
        base = h.robot.base_joints(torch.cat([spot[:, :2], (yaw + math.pi)[:, None]], 1))
        many = h.robot.arm_joints - 3
        arm = h.robot.keyframe(self.keyframe)[3:] + ep.rng.normal("arm", 0.0, c.noise, (many,))
        h.robot.set_qpos(torch.cat([base, arm], 1))

    # ---- what is seen ----------------------------------------------------------------------------------------------

    def _chosen(self, h: KitchenHandles, values: Sequence[Tensor]) -> Tensor:
        """(n, ...) of the values of all targets those of the rows' own."""
        return chosen(values, h.target.value.long())

    @per_step
    def joint(self, h: KitchenHandles) -> Tensor:
        """(n,) [rad or m] position of the joint that is meant."""
        return self._chosen(h, [h.home.mechanism(one.name).joint(joint) for one, joint in self._targets])

    @per_step
    def handle(self, h: KitchenHandles) -> Tensor:
        """(n, 3) [m] where its handle is."""
        return self._chosen(h, [h.home.mechanism(one.name).handle_of(joint) for one, joint in self._targets])

    def limit(self, h: KitchenHandles) -> Tensor:
        """(n,) [rad or m] the joint's upper limit."""
        return self._limits[h.target.value.long(), 1]

    def front(self, h: KitchenHandles) -> Tensor:
        """(n, 4) the frame of the furniture: x points out of the front."""
        return quat_from_yaw(self._yaw[h.target.value.long()])

    def evaluate(self, h: KitchenHandles) -> dict[str, Tensor]:
        return {"success": self.done(h), "is_moved": self.share(h) > constant(0.05)}

    def landmarks(self, h: Any) -> dict[str, Tensor]:
        return {"handle": self.handle(h)}

    def observe(self, h: Any) -> dict[str, dict[str, Tensor]]:
        handle = self.handle(h)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose, "base_pose": h.robot.root_pose},
            "privileged": {
                "handle_pos": handle,
                "tcp_to_handle": handle - h.robot.tcp_pos,
                "front_quat": self.front(h),
                "joint": self.joint(h)[:, None],
            },
        }

    def reward(self, h: Any, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        near = closeness(norm(self.handle(h) - h.robot.tcp_pos), 5.0)
        terms = {
            "reach": torch.where(ev["success"], ONE, near),
            "move": 3.0 * self.share(h).clamp(0.0, 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    # ---- for experts -----------------------------------------------------------------------------------------------

    def tool(self, h: KitchenHandles, at: Tensor, facing: Constant, *, back: float = 0.0, roll: float = 0.0,
             turn: Tensor | None = None) -> Tensor:  # fmt: skip
        """(n, 7) pose of the tool at points (n, 3) before a front, which is turned by ``turn`` (n,) [rad] about the
        vertical; drawn ``back`` [m] and rolled by ``roll`` [rad], clockwise seen from the robot."""
        front = self.front(h)
        if turn is not None:
            front = quat_mul(front, quat_from_yaw(turn))
        quat = quat_mul(front, facing.like(at).expand(len(at), 4))
        if roll:
            into = quat_rotate(front, _INTO.like(at).expand_as(at))
            quat = quat_mul(quat_from_axis_angle(into, torch.full((len(at),), roll)), quat)
        return pose(at - back * quat_rotate(quat, _UP.like(at).expand_as(at)), quat)

    def behind(self, h: KitchenHandles, tool: Tensor, away: float, aside: float = 0.0) -> Tensor:
        """(n, 3) where the base stands, ``away`` [m] behind a tool (n, 7), facing as that points, ``aside`` [m] to its
        left."""
        ahead = quat_rotate(tool[:, 3:], _UP.like(tool).expand(len(tool), 3))
        before = self._yaw[h.target.value.long()] + math.pi  # as at the start, so that it never turns a whole turn
        yaw = before + wrap_to_pi(atan2(ahead[:, 1], ahead[:, 0]) - before)
        cos, sin = torch.cos(yaw), torch.sin(yaw)
        x = tool[:, 0] - away * cos - aside * sin
        y = tool[:, 1] - away * sin + aside * cos
        return torch.stack([x, y, yaw], 1)

    def stand(self, h: KitchenHandles, tool: Tensor, away: float, aside: float = 0.0) -> Waypoint:
        """The base drives to where the tool's first pose (n, 7) is in reach."""
        base = self.behind(h, tool, away, aside)
        return Waypoint(name="drive", base=base, gripper=1, pos_tol=0.02, rot_tol=0.05, speed=0.5, timeout_s=1.0)


def _at_rest(one: Mechanism) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """A piece of furniture alone in its place, closed."""
    spec = mujoco.MjSpec()
    spec.attach(one.model.copy(), frame=spec.worldbody.add_frame(pos=one.pos, quat=one.quat), prefix="it/")
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def hinge(one: Mechanism, joint: str) -> list[float]:
    """[m] a point on a joint's axis at the height of its handle, while it is closed."""
    model, data = _at_rest(one)
    x, y, _ = data.xanchor[model.joint(f"it/{joint}").id].tolist()
    return [x, y, _handle(one, joint)[2]]


def _handle(one: Mechanism, joint: str) -> list[float]:
    """[m] where a joint's handle is while it is closed."""
    found: list[float] = _at_rest(one)[1].site(f"it/handle/{joint}").xpos.tolist()
    return found


def _edge(standing: np.ndarray, one: Mechanism, joint: str) -> float:
    """[m] how far beyond the handle the foremost thing is that stands before or under it."""
    yaw = 2 * math.atan2(one.quat[3], one.quat[0])
    out, side = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    at = np.array(_handle(one, joint))[:2]
    x, y = standing[:, :, 0], standing[:, :, 1]
    corners = np.stack([np.stack([x[:, i], y[:, j]], -1) for i in (0, 1) for j in (0, 1)], 1) - at
    along, ahead = corners @ side, (corners @ out).max(1)
    near = (along.min(1) < _BESIDE) & (along.max(1) > -_BESIDE) & (ahead < _FAR)
    return float(max(0.0, ahead[near].max()))
