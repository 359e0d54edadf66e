"""From the numbers that RT-1 and Octo answer with to metres, radians and a gripper's command.

An answer is (N, 7): a displacement (3), a rotation (3), a gripper number. A pose is returned as metres and an
axis-angle vector in radians. The gripper of a WidowX is absolute: +1 is open and -1 closed. That of the Google robot is
relative: +1 closes and -1 opens, the opposite of manikin's controllers, so whoever commands it reads the action card.

Source: the policy wrappers of SimplerEnv (Li et al., SIMPLER, 2024, arXiv:2405.05941).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.math import quat_from_euler, quat_to_rotvec

__all__ = ["REPEATS", "StickyGripper", "octo_bridge", "octo_google", "rt1_bridge", "rt1_google", "unnormalized"]

REPEATS = 15  # control steps that a Google robot's gripper goes on opening or closing


def _linear(value: Tensor, answered: float, meant: float) -> Tensor:
    """From [-answered, answered] to [-meant, meant], clipped."""
    return (value * (meant / answered)).clamp(-meant, meant)


def _axis_angle(rpy: Tensor) -> Tensor:
    """Roll, pitch, yaw about fixed axes x, y, z as an axis-angle vector [rad]."""
    return quat_to_rotvec(quat_from_euler(rpy))


def _sign(above: Tensor) -> Tensor:
    return torch.where(above, 1.0, -1.0)


def rt1_google(answer: Tensor) -> Tensor:
    """RT-1 on the Google robot: metres, an axis-angle vector, a relative gripper; small numbers count as none."""
    turn, gripper = answer[:, 3:6], answer[:, 6:7]
    turn = torch.where(turn.norm(dim=1, keepdim=True) <= 1e-6, torch.zeros_like(turn), turn)
    return torch.cat([answer[:, :3], turn, torch.where(gripper.abs() < 1e-2, 0.0, gripper)], 1)


def rt1_bridge(answer: Tensor) -> Tensor:
    """RT-1-X on a WidowX: [-1.75, 1.75] is 5 cm to each side, and [-1.4, 1.4] a quarter of a radian of roll, pitch and
    yaw. Its gripper number is of closing, above 0 closed."""
    turn = _axis_angle(_linear(answer[:, 3:6], 1.4, 0.25))
    return torch.cat([_linear(answer[:, :3], 1.75, 0.05), turn, _sign(-answer[:, 6:7] > 0)], 1)


def octo_bridge(answer: Tensor) -> Tensor:
    """Octo on a WidowX: metres, roll, pitch and yaw, and the gripper's opening, above one half open."""
    return torch.cat([answer[:, :3], _axis_angle(answer[:, 3:6]), _sign(answer[:, 6:7] > 0.5)], 1)


def octo_google(answer: Tensor) -> Tensor:
    """Octo on the Google robot: metres, roll, pitch and yaw; the gripper's opening stays for :class:`StickyGripper`."""
    return torch.cat([answer[:, :3], _axis_angle(answer[:, 3:6]), answer[:, 6:7]], 1)


def unnormalized(answer: Tensor, statistics: Mapping[str, Sequence[float]]) -> Tensor:
    """Answers (N, 7) of a network that was trained on (action - mean) / std.

    Raises:
        ConfigError: the statistics lack ``mean`` and ``std`` of as many numbers.
    """
    try:
        mean, std = (torch.tensor(statistics[key], dtype=answer.dtype) for key in ("mean", "std"))
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            f"statistics of actions need mean and std, lists of numbers; got {statistics!r:.80}"
        ) from None
    if mean.shape != (answer.shape[1],) or std.shape != mean.shape:
        raise ConfigError(f"statistics of {len(mean)} numbers do not fit actions of {answer.shape[1]}")
    return answer * std + mean


class StickyGripper:
    """From an absolute opening to a relative command that lasts.

    A change of the opening by more than one half from one step to the next begins a command: the change, + for closing.
    It is repeated for 15 control steps, in which no other begins. Without one, the small change itself is commanded.

    Args:
        rows: N.
        repeats: control steps that a command lasts.
    """

    def __init__(self, rows: int, repeats: int = REPEATS) -> None:
        self._repeats = repeats
        self._before = torch.full((rows,), torch.nan)
        self._command = torch.zeros(rows)
        self._count = torch.zeros(rows, dtype=torch.int64)  # steps of the command so far; 0 for none

    def reset(self, rows: Any) -> None:
        """The rows begin a new episode."""
        self._before[rows], self._count[rows] = torch.nan, 0

    def __call__(self, opening: Tensor) -> Tensor:
        """(N,) commands for openings (N,) from 0 to 1."""
        change = torch.where(self._before.isnan(), torch.zeros_like(opening), self._before - opening)
        self._before = opening.clone()
        begins = (change.abs() > 0.5) & (self._count == 0)
        self._command = torch.where(begins, change, self._command)
        lasting = begins | (self._count > 0)
        self._count = torch.where(lasting, self._count + 1, self._count)
        self._count = torch.where(self._count == self._repeats, 0, self._count)
        return torch.where(lasting, self._command, change)
