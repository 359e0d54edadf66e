"""What a controller is: a pure function from carry, reading and action to commanded joint positions and a new carry."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from manikin.spec.action import ActionCard

__all__ = ["Controller", "Reading"]


class Reading(Protocol):
    """What a controller may look at, for n rows. A :class:`~manikin.scene.handles.Robot` is one."""

    @property
    def qpos(self) -> Tensor:
        """(n, joints) arm, then driven gripper joints [rad or m]."""

    @property
    def ctrl(self) -> Tensor:
        """(n, joints) positions commanded last."""


class Controller(Protocol):
    """Maps an action in [-1, 1]^size to commanded joint positions, once per control step.

    ``start`` gives the carry of rows that begin an episode; the carry is part of saved state. ``command`` is what the
    action asks for in the card's units, before any joint limit: the sign test and conversion read it.
    """

    name: str
    card: ActionCard

    def start(self, reading: Reading) -> Tensor:
        """(n, k) carry at the start of an episode."""

    def __call__(self, carry: Tensor, reading: Reading, action: Tensor) -> tuple[Tensor, Tensor]:
        """Commanded positions (n, joints) and the next carry, from an action (n, size) in [-1, 1]."""

    def towards(self, carry: Tensor, reading: Reading, qpos: Tensor) -> Tensor:
        """The action (n, size) that brings the arm closest to ``qpos`` (n, arm joints) in one step, clipped to
        [-1, 1]; gripper dimensions are 0."""
