"""From a motion to an action: which of the controller's dimensions it moves, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manikin.errors import ConfigError
from manikin.math import norm, quat_conj, quat_from_rotvec, quat_mul, quat_rotate, quat_rotate_inv, quat_to_rotvec
from manikin.teleop.device import Motion

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["CONTROLS", "Pilot"]

CONTROLS = ("ee_delta_pose", "osc_pose", "ik_pose", "ee_delta_pos", "osc_position")
"""Controllers that a person can steer by, the best first."""

_WAYS = ("x", "y", "z", "rx", "ry", "rz")
LINEAR, ANGULAR = 0.25, 1.0  # of the goal at full deflection and speed 1 [m/s], [rad/s]
LEAD = (0.06, 0.3)  # how far the goal may be ahead of the tool [m], [rad]
SLOWEST, FASTEST = 0.05, 2.0
CHANGE = 1.25  # of speed, per press


class Pilot:
    """Turns motions into actions of an environment's controller. Remembers the speed, the grippers and which arm moves.

    The motion moves a goal, and the action is the way from the tool to it. Asking again and again for a step from where
    the tool is would not do: an arm covers a third of a step in a control step, and not the same share of each
    direction, so that it would leave the line and sink. A goal that gets ahead, since something is in the way, is held
    back; where the person lets go, the tool is to stay. A controller that keeps such a goal itself is only given steps.

    Args:
        env: with one row, and a controller that moves the tool by amounts relative to where it is.
        speed: share of full speed.
        joints: how many joints a leader arm says the places of; any controller will do then.

    Attributes:
        limbs: names of the arms that can be moved; "" for the only one.

    Raises:
        ConfigError: the controller moves joints, or to absolute poses; says which can be used. Or the robot has not as
            many joints as the leader arm.
    """

    def __init__(self, env: BatchEnv, *, speed: float = 0.5, joints: int = 0) -> None:
        if not SLOWEST <= speed <= FASTEST:
            raise ConfigError(f"speed must be from {SLOWEST} to {FASTEST}; got {speed}")
        self.env, self.speed = env, speed
        dims = env.controller.card.dims
        ways: dict[str, dict[int, tuple[int, float]]] = {}
        for i, dim in enumerate(dims):
            limb, _, name = dim.name.rpartition("/")
            if name in _WAYS and dim.reference != "absolute":
                ways.setdefault(limb, {})[_WAYS.index(name)] = (i, dim.scale)
        self._ways = {limb: found for limb, found in ways.items() if {0, 1, 2} <= found.keys()}
        if joints:
            arm = env.robot.arm
            if len(env.robots) > 1 or len(arm.joints) != joints:
                raise ConfigError(
                    f"the leader arm has {joints} joints, but {'+'.join(r.arm.name for r in env.robots)} has "
                    f"{sum(len(r.arm.joints) for r in env.robots)}; choose its follower with --robot"
                )
            self._range = env.robot.ranges[:joints]
            self._most = torch.tensor(arm.joint_delta or (0.1,) * joints)
            self._ways = {"": {}}
        if not self._ways:
            valid = [c for c in CONTROLS if c in env.robot.arm.controllers]
            raise ConfigError(
                f"{env.controller.name} cannot be driven by hand, because it does not move the tool by small steps; "
                f"valid for {env.robot.arm.name}: {', '.join(valid) or 'none'}"
            )
        self.limbs = tuple(self._ways)
        self._grippers: dict[int, str] = {}
        for i, dim in enumerate(dims):
            limb, _, name = dim.name.rpartition("/")
            if name == "gripper":
                self._grippers[i] = limb if limb in self._ways else self.limbs[0]
        if not joints:
            first = dims[self._ways[self.limbs[0]][0][0]]
            self._frame, self._follows = first.frame, self.limbs == ("",) and first.reference == "measured"
        self._closed: set[str] = set()
        self.reset()

    @property
    def closed(self) -> bool:
        """Whether the gripper of the arm that moves is to be closed."""
        return self.limb in self._closed

    def reset(self) -> None:
        """Open all grippers, move the first arm, and forget the goal; the speed stays."""
        self.limb = self.limbs[0]
        self._closed.clear()
        self._goal: tuple[torch.Tensor, torch.Tensor] | None = None
        self._moved = (False, False)

    def begins(self, motion: Motion) -> bool:
        """Whether a motion begins an episode that waits."""
        return motion.moves

    def press(self, button: str, motion: Motion | None = None) -> None:
        """A button has gone down; those that are not for the pilot do nothing."""
        if button == "gripper":
            self._closed ^= {self.limb}
        elif button in ("faster", "slower"):
            change = CHANGE if button == "faster" else 1 / CHANGE
            self.speed = min(FASTEST, max(SLOWEST, self.speed * change))
        elif button == "switch":
            self.limb = self.limbs[(self.limbs.index(self.limb) + 1) % len(self.limbs)]

    def action(self, motion: Motion) -> torch.Tensor:
        """(1, A) for a motion, from the state as it is. With the clutch held, the arm is to stay."""
        env = self.env
        if motion.joints is not None:
            return self._copy(motion.joints, motion.grip)
        with torch.no_grad():
            action = env.hold()
        held = "clutch" in motion.buttons
        step = self.speed / env.control_hz
        linear = torch.tensor([[0.0 if held else LINEAR * step * v for v in motion.linear]])
        angular = torch.tensor([[0.0 if held else ANGULAR * step * v for v in motion.angular]])
        asked = torch.cat(self._way(linear, angular) if self._follows else (linear, angular), 1)
        for way, (i, scale) in self._ways[self.limb].items():
            action[:, i] += asked[:, way] / scale
        for i, limb in self._grippers.items():
            action[:, i] = -1.0 if limb in self._closed else 1.0
        return action.clamp(-1.0, 1.0)

    def _copy(self, joints: tuple[float, ...], grip: float) -> torch.Tensor:
        """(1, A) that brings the joints to those of a leader arm, as fast as the servos follow."""
        env = self.env
        with torch.no_grad():
            q = env.arm_qpos.cpu()
            way = torch.tensor([joints]).clamp(self._range[:, 0], self._range[:, 1]) - q
            want = q + way / (way.abs() / self._most).amax(1, keepdim=True).clamp_min(1.0)
            action = env.towards(want.to(env.device))
        for i in self._grippers:
            action[:, i] = grip
        return action.clamp(-1.0, 1.0)

    def _way(self, linear: torch.Tensor, angular: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(1, 3) and (1, 3) [m], [rad] from the tool to the goal, which moves by these, all along the card's axes."""
        tool = self.env.tcp_poses[:, 0].cpu()
        pos, quat = tool[:, :3], tool[:, 3:]
        base = self.env.part(0)[0].robots[0].base_pose
        turned = {"base": base[None, 3:].to(tool), "tcp": quat}.get(self._frame)
        if turned is None:
            turned = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
        goal_pos, goal_quat = (pos, quat) if self._goal is None else self._goal
        moves = bool(linear.any()), bool(angular.any())
        if self._moved[0] and not moves[0]:
            goal_pos = pos
        if self._moved[1] and not moves[1]:
            goal_quat = quat
        self._moved = moves
        ahead = _short(goal_pos + quat_rotate(turned, linear) - pos, LEAD[0])
        goal_quat = quat_mul(quat_from_rotvec(quat_rotate(turned, angular)), goal_quat)
        twist = _short(quat_to_rotvec(quat_mul(goal_quat, quat_conj(quat))), LEAD[1])
        self._goal = pos + ahead, quat_mul(quat_from_rotvec(twist), quat)
        return quat_rotate_inv(turned, ahead), quat_rotate_inv(turned, twist)


def _short(vector: torch.Tensor, most: float) -> torch.Tensor:
    """The vector (1, 3), at most so long."""
    return vector * (most / norm(vector).clamp_min(most))[:, None]
