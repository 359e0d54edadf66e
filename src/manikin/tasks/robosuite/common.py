"""What the tasks after robosuite share: rates, observed quantities, and the pose in which episodes begin.

Sizes, placements, reward coefficients and success rules are those of robosuite 1.0. Heights are measured from the
surface on which things stand. Episodes last 500 control steps at 20 Hz and do not end on success. The differences are
in ``docs/robosuite.md``.
"""

from __future__ import annotations

from typing import ClassVar

from manikin import Episode, Physics, Quantity, Robot, Task
from manikin.moved import old_names
from manikin.toolkit import noisy_rest

__all__ = ["DROP", "TCP", "StagedTask", "ready"]

TCP = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}
POSE = Quantity("m, quaternion wxyz", "world")
OFFSET = Quantity("m", "world")
DROP = 0.01  # [m] cubes start this far above the table


class StagedTask(Task):
    """A task with robosuite's rates."""

    horizon_s = 25.0
    control_hz = 20.0
    physics = Physics(impratio=20)
    terminate = False
    robots: ClassVar[tuple[str, ...]] = ("panda",)


def ready(robot: Robot, ep: Episode) -> None:
    """Put the arm at its keyframe ``ready``, or ``rest``, with normal noise of 0.02 rad per joint; gripper open."""
    noisy_rest(robot, ep, keyframe="ready" if "ready" in robot.arm.keyframes else "rest")


__getattr__ = old_names(__name__)
