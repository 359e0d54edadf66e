"""Measured action cards: what a controller really does on a robot, in free space."""

from __future__ import annotations

import dataclasses
import math
from functools import lru_cache
from typing import Any

import torch

from manikin.arenas.ground import ground
from manikin.control import Composite
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.math import norm, quat_conj, quat_mul, quat_rotate, quat_rotate_inv, quat_to_rotvec
from manikin.robots import members
from manikin.spec.action import ActionCard

__all__ = ["FreeArm", "displacement", "hold_action", "measured", "measured_card", "where"]


class FreeArm(Task):
    """A robot alone in free space, on a floor if it stands on its feet: for measuring controllers."""

    id = "FreeArm-v0"
    horizon_s = 60.0
    instruction = "hold still"

    def scene(self, b: Any) -> Any:
        if b.robots[0][0].base.loose:
            view = ((2.0, 2.0, 1.5), (0.0, 0.0, 0.5))
            ground(b, height=0.0, base_camera=view, human_camera=view)
        return {"robot": b.robot()}

    def start(self, h: Any, ep: Any) -> None:
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h: Any) -> Any:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> Any:
        return {"policy": {"tcp_pose": h.robot.tcp_pose}}


def hold_action(env: Env) -> torch.Tensor:
    """(N, A) the action that asks for nothing: no displacement, or the present command again; gripper open."""
    with torch.no_grad():
        action = env.hold()
    action[:, list(env.controller.card.grippers)] = 1.0
    return action


def measured(card: ActionCard, robot: str, control_hz: float) -> ActionCard:
    """The card of a controller on a robot word with what was measured; of several robots their mean and largest."""
    found = [measured_card(word, card.controller, control_hz) for word in members(robot)]
    shares = [one.realised for one in found if one.realised is not None]
    drifts = [one.hold_drift for one in found if one.hold_drift is not None]
    realised = sum(shares) / len(shares) if shares else None
    return dataclasses.replace(card, realised=realised, hold_drift=max(drifts, default=None))


@lru_cache(maxsize=64)
def measured_card(robot: str, control: str, control_hz: float = 20.0) -> ActionCard:
    """The controller's card with ``realised`` and ``hold_drift`` measured on the robot at rest in free space.

    ``realised``: mean over the relative arm dimensions of the share of a +1 command covered one control step later;
    None where groups have controllers of their own.
    ``hold_drift``: TCP speed [m/s] under a hold action, between 1 s and 3 s.
    """
    hz = control_hz * math.ceil(FreeArm.physics.hz / control_hz)
    rates: dict[str, Any] = {"control_hz": control_hz, "physics_hz": hz}
    one = Env(FreeArm, robot=robot, control=control, reward="none", **rates)
    card = one.controller.card
    one.close()
    moving = list(card.moving)
    k = len(moving)
    env = Env(FreeArm, num_envs=k + 1, robot=robot, control=control, reward="none", **rates)
    env.reset(seed=0)
    realised = None
    if moving and not isinstance(env.controller, Composite):  # whose dimensions move different things
        for _ in range(20):  # let the servos settle where they hold
            env.step(hold_action(env))
        before = where(env)
        action = hold_action(env)
        action[:k, moving] += torch.eye(k)
        env.step(action.clamp(-1, 1))
        change = displacement(env, before)[:, :k]
        change = change[:k] - change[k:]  # less what holding does by itself
        scale = torch.tensor([card.dims[i].scale for i in moving])
        realised = float((change.diagonal() / scale).mean())
    env.reset(seed=0)
    for step in range(60):
        if step == 20:
            early = env.robot.tcp_pos.clone()
        env.step(hold_action(env))
    drift = float(norm(env.robot.tcp_pos - early).max()) / 2.0
    env.close()
    return dataclasses.replace(card, realised=realised, hold_drift=drift)


def where(env: Env) -> torch.Tensor:
    """What the controller moves: joint positions (N, joints), or the TCP's pose in the base frame (N, 7)."""
    if env.controller.name.startswith("joint"):
        return env.robot.arm_qpos.clone()
    return torch.cat(env.robot.solver.chain.fk(env.robot.arm_qpos), 1)


def displacement(env: Env, before: torch.Tensor) -> torch.Tensor:
    """(N, joints) or (N, 6) how far it has moved since ``before``: [rad], or [m] and a rotation vector [rad] about the
    axes of the card."""
    now = where(env)
    if now.shape[1] != 7 or env.controller.name.startswith("joint"):
        return now - before
    turn = quat_to_rotvec(quat_mul(now[:, 3:], quat_conj(before[:, 3:])))
    moved = [now[:, :3] - before[:, :3], turn]
    frame = next(d.frame for d in env.controller.card.dims if d.name == "x")
    if frame != "base":
        base = env.robot.base_pose[3:].to(before).expand(len(before), 4)
        moved = [quat_rotate_inv(before[:, 3:], m) if frame == "tcp" else quat_rotate(base, m) for m in moved]
    return torch.cat(moved, 1).float()
