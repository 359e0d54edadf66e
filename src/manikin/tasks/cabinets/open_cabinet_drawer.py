"""OpenCabinetDrawer-v2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from manikin import (
    Articulation,
    ContactForce,
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
from manikin.arenas.table import table
from manikin.math import Constant, atan2, norm, pose, quat_from_yaw, quat_mul, quat_rotate
from manikin.props.cabinet import CABINETS, Cabinet
from manikin.toolkit import ONE, bonus, closeness, constant, noisy_rest, per_step

__all__ = ["OpenCabinetDrawer", "OpenCabinetDrawerHandles", "forward", "most_joints", "opening"]

_AWAY, _BEARING, _HEADING = (1.6, 1.8), math.pi / 10, math.pi / 20  # [m], [rad] where a robot that drives begins


def _forward(pitch: float) -> Constant:
    """The TCP of an arm that reaches forward and ``pitch`` [degrees] down, opening sideways: around an upright bar."""
    tilt = (math.pi / 2 - math.radians(pitch)) / 2
    return Constant(((0.0, math.cos(tilt), 0.0, math.sin(tilt)),))


_FIXED, _DRIVEN = _forward(50), _forward(45)  # of an arm that stands on the table, and of one that drives


def forward(robot: Robot, turn: Tensor) -> Tensor:
    """(n, 4) how the gripper of a robot takes the handle of a cabinet that is turned by ``turn`` (n, 4)."""
    ahead = (_DRIVEN if robot.arm.base.drives else _FIXED).like(turn)
    return quat_mul(turn, ahead.expand_as(turn))


def most_joints(cabinets: Mapping[str, Cabinet]) -> int:
    """How many drawers and doors the largest cabinet has."""
    return max(sum(map(len, cabinet.columns)) for cabinet in cabinets.values())


def opening(front: str) -> Labels:
    """MS-HAB's labels of opening a ``front``, which is a drawer or a door."""
    return Labels(
        events=(
            Event("contact", "contact"),
            Event("moved", "is_moved"),
            Event("opened", "is_open"),
            Event("closed", "is_open", "fall"),
            Event("success", "success"),
            Event("lost", "success", "fall"),
            Event("excessive_collisions", "robot_force", at_least=10_000.0),
        ),
        success=(
            Mode("success_then_excessive_collisions", "excessive_collisions"),
            Mode("open_success", "count(opened) <= 1 and not lost", "opened once, and still"),
            Mode("success_then_lost", "last(lost) > last(success)", "it did not stay so"),
            Mode("winding_success", "otherwise", "it took several tries"),
        ),
        failure=(
            Mode("excessive_collisions", "excessive_collisions", "pressed too much on the cabinet"),
            Mode("cant_reach", "not contact and not moved and not opened", "never touched the cabinet"),
            Mode("cant_open", "not moved and not opened", f"touched it, and the {front} stayed shut"),
            Mode("closed_after_open", "last(closed) > last(opened)", "it was open and went back"),
            Mode("not_still", "opened", "open, and never at rest"),
            Mode("slightly_opened", "otherwise", "moved, and not far enough"),
        ),
        source="MS-HAB's events of opening, with the limit of its code",
    )


@dataclass
class OpenCabinetDrawerHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    cabinet: Articulation
    target: Variable  # which of the cabinet's drawers
    press: ContactForce
    pressed: Variable  # [N] added up over control steps, as MS-HAB does
    marker: Marker


class OpenCabinetDrawer(Task):
    """Open a drawer of a cabinet by its handle. Cabinets differ in how many drawers and doors they have.

    Randomization: which cabinet (by the episode's seed, see ``layouts``) and which of its drawers; the cabinet's place
    and turn; the arm's joints, a little noise about a pose that points forward. A robot that drives begins 1.6 to 1.8 m
    from the cabinet, within 18 degrees of its front, and faces it to 9 degrees.
    Success: the drawer is open by ``open_share`` of its travel and stands still.

    After ManiSkill3 3.0.1, which has scanned cabinets on the floor, takes Fetch alone, accepts 75 % and calls it 90 %;
    here it is 90 %, the cabinets are parametric and stand on a table, and an arm may stand there, too. Fetch has the
    starts of there. Its base may also move sideways, with ``base_vel``, and its head stands still. Reward terms are
    smaller than there before success, so that only success is worth the whole.
    """

    id = "OpenCabinetDrawer-v2"
    horizon_s = 5.0
    instruction = "open the marked drawer of the cabinet"
    robots = ("panda", "fetch")
    robot_needs = ("arm", "tool", "keyframe forward")
    robot_control: ClassVar[Mapping[str, str]] = {
        "fetch": "base: base_vel, torso: joint_delta_pos, arm: joint_delta_pos"
    }
    layouts = tuple(CABINETS)
    labels = opening("drawer")
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "handle_pos": Quantity("m", "world", "of the drawer that is to be opened"),
        "tcp_to_handle": Quantity("m", "world"),
        "cabinet_quat": Quantity("quaternion wxyz", "world"),
        "open_share": Quantity("1", note="of the drawer's travel"),
        "joint_positions": Quantity(
            "m for drawers, rad for doors",
            note="of all drawers and doors of the cabinet",
            padded_to=(most_joints(CABINETS),),
        ),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to handle; 2 once the drawer has moved",
        "open": "2 times the share of its travel",
        "success": "what is missing to 5, in success",
    }

    cabinets: ClassVar[Mapping[str, Cabinet]] = CABINETS
    gap: ClassVar[float] = 0.97  # [m] from the middle of a base that drives to its tool, when the expert works

    @dataclass(frozen=True)
    class Config:
        distance: float = 0.745  # [m] from the robot's base to the cabinet's front
        spread: tuple[float, float] = (0.03, 0.05)  # [m] its place varies by this, forwards and sideways
        turn: float = 0.15  # [rad] and by this about the vertical
        open_share: float = 0.9  # share of the travel that counts as open
        still_speed: float = 0.1  # [m/s]

    def scene(self, b: SceneBuilder) -> OpenCabinetDrawerHandles:
        # both see the fronts
        table(b, base_camera=((-0.45, 0.45, 0.5), (0, 0, 0.15)), human_camera=((-0.8, 0.85, 0.6), (-0.12, 0, 0.2)))
        spec = self.cabinets[self.layout]
        robot = b.robot()
        model, names = spec.build(), self.fronts(spec)
        links = [model.body(name) for name in names]
        self._place = torch.tensor([link.pos.tolist() for link in links])
        self._closed = torch.tensor([(link.pos + link.sites[0].pos).tolist() for link in links])  # handles
        self._middle = math.hypot(*links[0].ipos[:2])  # [m] from the joint's place to the centre of mass
        cabinet = b.articulation("cabinet", model)
        joints = [cabinet.joints.index(name) for name in names]
        handles = [cabinet.frames.index(f"handle/{name}") for name in names]
        self._joints, self._handles, self._first = torch.tensor(joints), torch.tensor(handles), joints[0]
        self._depth = spec.half_size[0]
        return OpenCabinetDrawerHandles(
            robot=robot,
            cabinet=cabinet,
            target=b.variable("target"),
            press=b.contact_force(robot, cabinet),
            pressed=b.variable("pressed"),
            marker=b.marker("handle_marker", size=(0.012,), rgba=(0.1, 0.8, 0.2, 0.8)),
        )

    def fronts(self, cabinet: Cabinet) -> tuple[str, ...]:
        """Names of the joints of which one is to be opened."""
        return cabinet.drawers

    def still(self, speed: Tensor) -> Tensor:
        """(n,) bool: what is opened is at rest; ``speed`` (n,) is its joint's."""
        return speed <= constant(self.config.still_speed)

    def start(self, h: OpenCabinetDrawerHandles, ep: Episode) -> None:
        c, n = self.config, h.n
        h.target.set(ep.rng.integers("target", 0, len(self._joints)).float())
        forth, aside = c.spread
        spot = ep.rng.uniform("cabinet/xy", -1.0, 1.0, (2,)) * torch.tensor([forth, aside])
        spot[:, 0] += h.robot.base_pose[0] + c.distance + self._depth
        turn = quat_from_yaw(ep.rng.uniform("cabinet/yaw", -c.turn, c.turn))
        place = torch.cat([spot, spot.new_zeros(n, 1)], 1)
        h.cabinet.set_base(place, turn)
        h.marker.set_pose(place + quat_rotate(turn, self._closed[h.target.value.long()]))
        h.cabinet.set_qpos(torch.zeros(len(h.cabinet.joints)))
        if h.robot.arm.base.drives:
            self._drive_up(h, ep, spot)
        else:
            noisy_rest(h.robot, ep, keyframe="forward")

    def _drive_up(self, h: OpenCabinetDrawerHandles, ep: Episode, cabinet: Tensor) -> None:
        """Put a robot that drives away from ``cabinet`` (n, 2) [m], facing it about."""
        away = ep.rng.uniform("base/away", *_AWAY)
        side = ep.rng.uniform("base/bearing", -_BEARING, _BEARING)
        turn = side + ep.rng.uniform("base/turn", -_HEADING, _HEADING)
        place = cabinet - away[:, None] * torch.stack([torch.cos(side), torch.sin(side)], 1)
        base = h.robot.base_joints(torch.cat([place, turn[:, None]], 1))
        arm = h.robot.keyframe("forward")[3:] + ep.rng.normal("arm", 0.0, 0.02, (len(h.robot.arm.joints) - 3,))
        h.robot.set_qpos(torch.cat([base, arm], 1))

    def _handle(self, h: OpenCabinetDrawerHandles) -> Tensor:
        """(n, 3) the handle to open by [m]."""
        places = h.cabinet.places[:, self._handles]
        return places.gather(1, h.target.value.long()[:, None, None].expand(-1, 1, 3)).squeeze(1)

    @per_step
    def _geometry(self, h: OpenCabinetDrawerHandles) -> tuple[Tensor, ...]:
        """Handle (n, 3) [m], offset from the TCP (n, 3), its length, share open, joint's speed [m/s, rad/s] (n,)."""
        target = h.target.value.long()[:, None]
        q = h.cabinet.qpos[:, self._joints].gather(1, target)[:, 0]
        v = h.cabinet.qvel[:, self._joints].gather(1, target)[:, 0]
        handle = self._handle(h)
        reach = handle - h.robot.tcp_pos
        return handle, reach, norm(reach), q / h.cabinet.limits[self._first, 1], v.abs()

    def advance(self, h: OpenCabinetDrawerHandles) -> None:
        h.pressed.set(h.pressed.value + norm(h.press.value))

    def evaluate(self, h: OpenCabinetDrawerHandles) -> dict[str, Tensor]:
        _, _, _, share, speed = self._geometry(h)
        opened = share >= constant(self.config.open_share)
        return {
            "success": opened & self.still(speed),
            "is_open": opened,
            "is_moved": share > constant(0.001),
            "contact": norm(h.press.value) > 0,
            "robot_force": h.pressed.value,
        }

    def observe(self, h: OpenCabinetDrawerHandles) -> dict[str, dict[str, Tensor]]:
        handle, reach, _, share, _ = self._geometry(h)
        return {
            "policy": {"tcp_pose": h.robot.tcp_pose},
            "privileged": {
                "handle_pos": handle,
                "tcp_to_handle": reach,
                "cabinet_quat": h.cabinet.base_quat,
                "open_share": share,
                "joint_positions": h.cabinet.qpos,
            },
        }

    def reward(self, h: OpenCabinetDrawerHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        _, _, distance, share, _ = self._geometry(h)
        terms = {
            "reach": torch.where(ev["is_moved"], ONE + ONE, closeness(distance, 5.0)),
            "open": 2.0 * share.clamp(0.0, 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: OpenCabinetDrawerHandles) -> list[Waypoint]:
        handle, turn = self._geometry(h)[0], h.cabinet.base_quat
        facing = forward(h.robot, turn)
        ahead = quat_rotate(facing, torch.tensor([[0.0, 0.0, 1.0]]))  # where the fingers point
        out = quat_rotate(turn, torch.tensor([[-1.0, 0.0, 0.0]]))
        pull = 0.45 if h.robot.arm.base.drives else 0.25  # [m/s]; who has to drive has less time
        stages = [
            Waypoint(name="before", pose=pose(handle - 0.1 * ahead, facing), gripper=1, pos_tol=0.015, speed=0.8),
            Waypoint(name="around", pose=pose(handle, facing), gripper=1, pos_tol=0.006, speed=0.3),
            Waypoint(name="close", pose=pose(handle, facing), gripper=-1, pos_tol=0.02),
            Waypoint(name="pull", pose=pose(handle + 0.205 * out, facing), gripper=-1, speed=pull).hold(),
        ]
        return self.from_base(h, stages)

    def from_base(self, h: OpenCabinetDrawerHandles, stages: list[Waypoint]) -> list[Waypoint]:
        """The same stages, in which a robot that drives keeps behind its tool and faces as that does."""
        if not h.robot.arm.base.drives:
            return stages
        found = []
        for stage in stages:
            ahead = quat_rotate(stage.at[:, 3:], torch.tensor([[0.0, 0.0, 1.0]]))
            yaw = atan2(ahead[:, 1], ahead[:, 0])
            way = torch.stack([torch.cos(yaw), torch.sin(yaw)], 1)
            base = torch.cat([stage.at[:, :2] - self.gap * way, yaw[:, None]], 1)
            found.append(replace(stage, base=base))
        return found
