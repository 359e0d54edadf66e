"""Actions of a Panda in ManiSkill's numbers and in manikin's, both ways. Controllers: ManiSkill3 3.0.1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.errors import DataError
from manikin.math import (
    quat_conj,
    quat_from_euler,
    quat_from_rotvec,
    quat_mul,
    quat_to_euler,
    quat_to_rotvec,
)
from manikin.moved import old_names

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["MODES", "ActionMode", "mode_named", "same"]


@dataclass(frozen=True, kw_only=True)
class ActionMode:
    """A controller of ManiSkill's Panda.

    Attributes:
        name: of the controller there.
        theirs: manikin's actions (T, A) for an environment -> the same in ManiSkill's numbers.
        ours: the inverse.
    """

    name: str
    theirs: Callable[[np.ndarray, Any], np.ndarray]
    ours: Callable[[np.ndarray, Any], np.ndarray]


def same(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    """The same numbers."""
    return actions


def _range(env: BatchEnv) -> tuple[np.ndarray, np.ndarray]:
    """Offset and scale of an action's numbers; the gripper's number stays."""
    dims = env.controller.card.dims
    offset = np.array([0.0 if d.frame == "gripper" else d.offset for d in dims])
    return offset, np.array([1.0 if d.frame == "gripper" else d.scale for d in dims])


def _absolute(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    """Joint positions in rad instead of shares of the range."""
    offset, scale = _range(env)
    return offset + scale * actions.clip(-1.0, 1.0)


def _share(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    offset, scale = _range(env)
    return (actions - offset) / scale


def _turning(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    """ManiSkill 3.0.1 reads a rotation as Euler angles about x, then the turned y, then the turned z, with the sign
    reversed."""
    scale = env.controller.card.dims[3].scale
    turn = quat_from_rotvec(torch.from_numpy(actions[:, 3:6].clip(-1.0, 1.0)).double() * scale)
    return np.concatenate([actions[:, :3], -_euler(turn) / scale, actions[:, 6:]], 1)


def _turned(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    scale, turn = env.controller.card.dims[3].scale, actions[:, 3:6]
    turn = turn / np.maximum(np.linalg.norm(turn, axis=1, keepdims=True), 1.0)  # ManiSkill turns no farther
    vector = quat_to_rotvec(_from_euler(-scale * turn)).numpy() / scale
    return np.concatenate([actions[:, :3], vector, actions[:, 6:]], 1)


def _placing(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    """Position [m] and Euler angles [rad] of the tool in the robot's frame; manikin's turn is from the rest pose."""
    dims, rest = env.controller.card.dims, _rest(env)
    numbers = torch.from_numpy(actions[:, :6].clip(-1.0, 1.0)).double()
    quat = quat_mul(quat_from_rotvec(numbers[:, 3:] * dims[3].scale), rest.expand(len(numbers), 4))
    return np.concatenate([numbers[:, :3].numpy() * dims[0].scale, _euler(quat), actions[:, 6:]], 1)


def _placed(actions: np.ndarray, env: BatchEnv) -> np.ndarray:
    dims, rest = env.controller.card.dims, _rest(env)
    turn = quat_mul(_from_euler(actions[:, 3:6]), quat_conj(rest).expand(len(actions), 4))
    vector = quat_to_rotvec(turn).numpy() / dims[3].scale
    return np.concatenate([actions[:, :3] / dims[0].scale, vector, actions[:, 6:]], 1)


def _rest(env: BatchEnv) -> torch.Tensor:
    quat: torch.Tensor = env.robot.solver.chain.rest_pose[1].double().cpu()
    return quat


def _euler(quat: torch.Tensor) -> np.ndarray:
    """About x, then the turned y, then the turned z."""
    return (-quat_to_euler(quat_conj(quat))).numpy()


def _from_euler(angles: np.ndarray) -> torch.Tensor:
    return quat_conj(quat_from_euler(-torch.from_numpy(np.asarray(angles, np.float64))))


MODES = {
    "joint_pos": ActionMode(name="pd_joint_pos", theirs=_absolute, ours=_share),
    "joint_delta_pos": ActionMode(name="pd_joint_delta_pos", theirs=same, ours=same),
    "joint_target_delta_pos": ActionMode(name="pd_joint_target_delta_pos", theirs=same, ours=same),
    "joint_vel": ActionMode(name="pd_joint_vel", theirs=same, ours=same),
    "ee_delta_pos": ActionMode(name="pd_ee_delta_pos", theirs=same, ours=same),
    "ee_delta_pose": ActionMode(name="pd_ee_delta_pose", theirs=_turning, ours=_turned),
    "ee_pose": ActionMode(name="pd_ee_pose", theirs=_placing, ours=_placed),
}
"""manikin's controller of a Panda -> ManiSkill's."""


def mode_named(theirs: str, where: str) -> str:
    """Manikin's controller for ManiSkill's.

    Raises:
        DataError: there is none.
    """
    found = [own for own, mode in MODES.items() if mode.name == theirs]
    if not found:
        known = ", ".join(mode.name for mode in MODES.values())
        raise DataError(f"{where}: cannot play actions of {theirs!r}; valid: {known}")
    return found[0]


__getattr__ = old_names(__name__)
