"""What a controller is: a pure function from carry, reading and action to commands and a new carry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from manikin.control.numerics.law import Array
from manikin.scene.handles import Scope
from manikin.spec.action import ActionCard
from manikin.spec.robot import RobotSpec

__all__ = ["Controller", "Drive", "Kinematics", "Limb", "OncePerStep", "Reading"]


class Reading(Protocol):
    """What a controller may look at, for n rows. A :class:`~manikin.scene.handles.Robot` is one."""

    @property
    def qpos(self) -> Tensor:
        """(n, joints) arm, then driven gripper joints [rad or m]."""

    @property
    def qvel(self) -> Tensor:
        """(n, joints) [rad/s or m/s] of the same."""

    @property
    def ctrl(self) -> Tensor:
        """(n, joints) positions commanded last; of joints driven by torque, that torque."""

    @property
    def tcp_pose(self) -> Tensor:
        """(n, 7) of the tool centre point in the world."""


class Limb(Reading, Protocol):
    """The joints that a controller moves: a whole :class:`~manikin.scene.handles.Robot`, or a group of its joints."""

    arm: RobotSpec
    gripper: Any
    drivers: tuple[str, ...]
    tools: Any  # name: what a controller may ask of a tool
    limits: Tensor  # (joints, 2)
    ranges: Tensor  # the same on the host
    base_pose: Tensor  # (7,)
    stands_straight: bool  # whether the base's axes are the world's
    scope: Scope
    prefix: str
    model: Any
    carriers: tuple[str, ...]  # joints of a base that drives, where it carries these joints and they are none of them


class Kinematics(Protocol):
    """Where the tool is. A :class:`~manikin.control.ik.Chain` is one."""

    @property
    def rest_pose(self) -> tuple[Tensor, Tensor]:
        """TCP position (3,) [m] and quaternion (4,) at rest, in the base frame."""

    def fk(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """TCP position (n, 3) [m] and quaternion (n, 4) in the base frame, float64, for q (n, joints)."""


class Drive:
    """A controller at work within one control step: called before each physics step, it commands torques or positions.

    Args:
        command: gives the commands (N, joints) of a physics step by its number.
        apply: writes them.
        carry: gives the carry (N, k) that the steps so far have led to.
    """

    def __init__(
        self, command: Callable[[int], Array], apply: Callable[[Array], None], carry: Callable[[], Tensor]
    ) -> None:
        self._command, self._apply, self._carry = command, apply, carry

    def __call__(self, substep: int) -> None:
        self._apply(self._command(substep))

    @property
    def carry(self) -> Tensor:
        """(N, k) after the last physics step."""
        return self._carry()


class Controller(Protocol):
    """Maps an action in [-1, 1]^size to what actuators are commanded.

    A position controller acts once per control step: its command stands, MuJoCo's servos do the rest. One with
    ``every_substep`` changes its command at each physics step: the call takes the action in, ``drive`` acts.

    ``start`` gives the carry of rows that begin an episode; the carry is part of saved state.

    Attributes:
        name: the word that makes it, options included.
        rate: [1/s] how fast a standing command is approached; a command's error shrinks by this share per second.
        every_substep: whether it needs ``drive``.
        torques: whether joints are driven by torque.
    """

    name: str
    card: ActionCard
    rate: float
    every_substep: bool
    torques: bool

    def start(self, reading: Reading) -> Tensor:
        """(n, k) carry at the start of an episode."""

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """Commands (n, joints) and the next carry, from an action (n, size) in [-1, 1]."""

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive | None:
        """What acts before each physics step of a control step, on ``rows`` (numbers) or all; None for nothing."""

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        """The action (n, size) that asks for ``qpos`` (n, arm joints), clipped to [-1, 1]; gripper dimensions are 0.

        With ``within`` [s] it is the action that, left standing, has the arm there after so long: the controller's own
        response is counted in, and beyond ``qpos`` is asked for. Without, ``qpos`` itself is the goal.
        """

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        """The action (n, size) that asks for nothing new; gripper dimensions are 0."""


class OncePerStep:
    """Of a controller whose commands stand for a control step."""

    every_substep = torques = False
    card: ActionCard
    _n: int  # joints of the arm

    def drive(self, carry: Tensor, rows: np.ndarray | None) -> Drive | None:
        return None

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor, *, within: float | None = None) -> Tensor:
        raise NotImplementedError

    def hold(self, carry: Tensor, reading: Reading) -> Tensor:
        """The position commanded last, or no displacement."""
        first = self.card.dims[0]
        if first.reference == "absolute" and not first.unit.endswith("/s"):
            return self.towards(carry, reading, reading.ctrl[:, : self._n])
        return reading.qpos.new_zeros(len(reading.qpos), self.card.size)
