"""TurnFaucet-v1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from manikin import (
    Articulation,
    ContactForce,
    Episode,
    Event,
    Handles,
    Labels,
    Mode,
    Quantity,
    Robot,
    SceneBuilder,
    Task,
    Waypoint,
)
from manikin.arenas.table import table
from manikin.math import norm, pose, quat_from_yaw, quat_mul, quat_rotate, quat_rotate_inv
from manikin.props.faucet import FAUCETS
from manikin.toolkit import ONE, bonus, closeness, constant, noisy_rest, per_step, top_down

__all__ = ["TurnFaucet"]

_PITCH = math.radians(48)  # how far the gripper points below the horizontal at a switch in front
_CLEAR = 0.029  # [m] from the middle of the closed fingers to the middle of an arm that they do not touch yet
_ABOVE = 0.006  # [m] the TCP is so far before the plane of the arms, the fingers' ends a little behind it
_LEAD = 0.03  # [m] how far the fingers are led on along the circle


@dataclass
class TurnFaucetHandles(Handles):
    """What the scene consists of, and ``h`` in the methods below."""

    robot: Robot
    faucet: Articulation
    press: ContactForce


class TurnFaucet(Task):
    """Turn the switch of a faucet until it is open. Faucets differ in their switch, its axis, limits and sense.

    Randomization: which faucet (by the episode's seed, see ``layouts``), its place and its turn about the vertical, a
    little; the arm's joints, a little noise about a pose that looks at the switch. The switch is closed.
    Success: the switch is beyond ``open_share`` of its range; a quarter turn where it has no limits.

    After ManiSkill3 3.0.1, whose 60 faucets are scans of PartNet-Mobility; here they are a parametric family of 24 that
    stand on the table, not 1 cm above it. ManiSkill3's arm starts with its hand where the faucet is; here the arm
    starts above it. ManiSkill3 has no dense reward: this one is our own. Success, friction and damping of the switch,
    places, turns and time are published.
    """

    id = "TurnFaucet-v1"
    horizon_s = 10.0
    instruction = "turn the dark switch of the faucet until it is open"
    robots = ("panda",)
    robot_needs = ("arm", "tool", "keyframe forward", "keyframe raised")
    layouts = tuple(FAUCETS)
    labels = Labels(
        events=(
            Event("touched", "is_touched"),
            Event("turned", "is_turned"),
            Event("success", "success"),
            Event("lost", "success", "fall"),
        ),
        success=(
            Mode("success", "not lost"),
            Mode("success_then_lost", "last(lost) > last(success)", "it was turned back"),
            Mode("winding_success", "otherwise", "it was open, was turned back, and opened again"),
        ),
        failure=(
            Mode("never_touched", "not touched and not turned", "the robot never touched the faucet"),
            Mode("not_turned", "not turned", "touched it, and the switch stayed closed"),
            Mode("not_open", "otherwise", "turned it, and not far enough"),
        ),
        source="tasks that turn a switch; flags is_touched and is_turned",
    )
    reward_max = 5.0
    observations = {
        "tcp_pose": Quantity("m, quaternion wxyz", "world"),
        "switch_pos": Quantity("m", "world", "on the axis, in the plane of the arms"),
        "switch_axis": Quantity("1", "world", "unit vector about which it opens"),
        "turn_needed": Quantity("rad", note="from closed to open"),
        "handle_pos": Quantity("m", "world", "of the arm to push"),
        "tcp_to_handle": Quantity("m", "world"),
        "turn_left": Quantity("rad", note="from here to open"),
    }
    reward_terms = {
        "reach": "1 - tanh(5 d), d from TCP to the arm to push; 2 once the switch has turned",
        "turn": "2 times the share of the turn that is needed",
        "success": "what is missing to 5, in success",
    }

    @dataclass(frozen=True)
    class Config:
        spread: float = 0.05  # [m] its place varies by this, both ways
        yaw: float = math.pi / 12  # [rad] and by this about the vertical
        open_share: float = 0.9  # of the joint's range
        turned: float = 0.05  # [rad] it counts as turned beyond this

    def scene(self, b: SceneBuilder) -> TurnFaucetHandles:
        table(b, base_camera=((-0.4, 0, 0.3), (0, 0, 0.1)), human_camera=((-0.5, 0.6, 0.5), (-0.05, 0, 0.12)))
        self._spec = spec = FAUCETS[self.layout]
        robot, faucet = b.robot(), b.articulation("faucet", spec.build())
        self._quat, self._pivot = torch.tensor([spec.quat]), torch.tensor([spec.pivot])
        self._axis = torch.tensor([[0.0, 0.0, 1.0]])
        self._closed, self._opened = spec.closed, spec.opened(self.config.open_share)
        return TurnFaucetHandles(robot=robot, faucet=faucet, press=b.contact_force(robot, faucet))

    def start(self, h: TurnFaucetHandles, ep: Episode) -> None:
        c = self.config
        noisy_rest(h.robot, ep, keyframe="forward" if self._spec.front else "raised")
        spot = ep.rng.uniform("faucet/xy", -c.spread, c.spread, (2,))
        turn = quat_from_yaw(ep.rng.uniform("faucet/yaw", -c.yaw, c.yaw))
        h.faucet.set_base(torch.cat([spot, spot.new_zeros(h.n, 1)], 1), turn)
        h.faucet.set_qpos(self._closed)

    @per_step
    def frame(self, h: TurnFaucetHandles) -> Tensor:
        """(n, 7) the switch's place on its axis [m], in the plane of its arms, and its closed turn: z out."""
        body = h.faucet.link_pose("body")
        quat = quat_mul(body[:, 3:], self._quat.expand(len(body), 4))
        pivot = body[:, :3] + quat_rotate(body[:, 3:], self._pivot)
        return pose(pivot + constant(self._spec.plane) * quat_rotate(quat, self._axis), quat)

    @per_step
    def turned(self, h: TurnFaucetHandles) -> Tensor:
        """(n,) [rad] from the closed position."""
        return h.faucet.qpos[:, 0] - constant(self._closed)

    def evaluate(self, h: TurnFaucetHandles) -> dict[str, Tensor]:
        turned = self.turned(h)
        return {
            "success": turned > constant(self._opened - self._closed),
            "is_turned": turned > constant(self.config.turned),
            "is_touched": norm(h.press.value) > 0,
        }

    def observe(self, h: TurnFaucetHandles) -> dict[str, dict[str, Tensor]]:
        frame, handle = self.frame(h), h.faucet.handle_of("switch")
        needed = self._opened - self._closed
        return {
            "policy": {
                "tcp_pose": h.robot.tcp_pose,
                "switch_pos": frame[:, :3],
                "switch_axis": self._spec.sign * quat_rotate(frame[:, 3:], self._axis),
                "turn_needed": torch.full((h.n,), needed),
            },
            "privileged": {
                "handle_pos": handle,
                "tcp_to_handle": handle - h.robot.tcp_pos,
                "turn_left": constant(needed) - self.turned(h),
            },
        }

    def reward(self, h: TurnFaucetHandles, ev: dict[str, Tensor], action: Tensor) -> dict[str, Tensor]:
        away = norm(h.faucet.handle_of("switch") - h.robot.tcp_pos)
        share = self.turned(h) * (1.0 / (self._opened - self._closed))
        terms = {
            "reach": torch.where(ev["is_turned"], ONE + ONE, closeness(away, 5.0)),
            "turn": 2.0 * share.clamp(0.0, 1.0),
        }
        return bonus(terms, ev["success"], self.reward_max)

    def expert(self, h: TurnFaucetHandles) -> list[Waypoint]:
        # put the closed fingers beside an arm of the switch and lead them round its axis
        spec, frame, base = self._spec, self.frame(h), h.faucet.base_quat
        pitch = _PITCH if spec.front else math.pi / 2
        tilt = (math.pi / 2 - pitch) / 2
        facing = quat_mul(base, torch.tensor([[0.0, math.cos(tilt), 0.0, math.sin(tilt)]]).expand(h.n, 4))
        if not spec.front:  # push with a finger's outside, or an arm comes between the fingers
            middle = spec.start + spec.sign * (self._opened - self._closed) / 2
            facing = top_down(quat_mul(base, quat_from_yaw(torch.tensor([middle]))), h.robot, symmetry=2)
        ahead = quat_rotate(facing, self._axis)  # where the fingers point
        beside = math.asin(min(_CLEAR / spec.push_radius, 0.95))

        def at(turn: Tensor, back: float = 0.0) -> Tensor:
            """TCP pose behind the arm when the switch is turned by so much (n,) [rad], or drawn back [m]."""
            angle = spec.start + spec.sign * turn
            spot = torch.stack([torch.cos(angle), torch.sin(angle), torch.zeros(h.n)], 1) * spec.push_radius
            spot[:, 2] = _ABOVE
            return pose(frame[:, :3] + quat_rotate(frame[:, 3:], spot) - back * ahead, facing)

        now = self.turned(h)
        before, ready = at(now - beside, 0.08), at(now - beside)
        # on from where the fingers are, along the tangent and back to the circle: never at the arm from its end
        local = quat_rotate_inv(frame[:, 3:], h.robot.tcp_pos - frame[:, :3])
        out = torch.cat([local[:, :2], torch.zeros(h.n, 1)], 1)
        out = out / norm(out, keepdim=True).clamp_min(1e-6)
        along = spec.sign * torch.stack([-out[:, 1], out[:, 0], torch.zeros(h.n)], 1)
        there = spec.push_radius * out + _LEAD * along + _ABOVE * self._axis
        onward = pose(frame[:, :3] + quat_rotate(frame[:, 3:], there), facing)
        return [
            Waypoint(name="before", pose=before, gripper=-1, pos_tol=0.008, rot_tol=0.1, speed=0.8, timeout_s=3.0),
            Waypoint(name="beside", pose=ready, gripper=-1, pos_tol=0.006, rot_tol=0.1, speed=0.3, timeout_s=1.5),
            Waypoint(name="turn", pose=onward, gripper=-1, speed=0.15, track=True).hold(),
        ]
