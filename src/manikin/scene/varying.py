"""What is drawn anew for each episode, and a robot whose servos differ between rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.spec.vary import Choice, Normal, Uniform, Vary

if TYPE_CHECKING:
    from manikin.scene.handles import Part, Robot, Scope

__all__ = ["Servos", "Variation", "factors"]


@dataclass(frozen=True)
class Variation:
    """A property of a part or a robot that is drawn anew for each episode."""

    part: Part | Robot
    what: str
    how: Vary


def factors(robot: Robot, **how: Vary | None) -> list[Variation]:
    """Those of a robot's properties that vary. Raises :class:`SceneError` for what is nothing to draw from, and for
    factors that may be negative."""
    given = {what: vary for what, vary in how.items() if vary is not None}
    for what, vary in given.items():
        if not isinstance(vary, Vary):
            raise SceneError(f"{what} of {robot.name} must be a Uniform, Normal or Choice of factors, not {vary!r}")
        if min(np.min(least) for least in _least(vary)) < 0:
            hint = "; give the Normal low=0" if isinstance(vary, Normal) else ""
            raise SceneError(f"{what} of {robot.name}: factors must not be negative, and {vary!r} can be{hint}")
    return [Variation(robot, what, vary) for what, vary in given.items()]


def _least(vary: Vary) -> Sequence[Any]:
    """Numbers below which nothing is drawn."""
    if isinstance(vary, Choice):
        return vary.options
    return (vary.low, vary.high) if isinstance(vary, Uniform) else (vary.low,)


class Servos:
    """The driven joints of a robot, as far as rows can differ in them.

    Args:
        name: the robot's.
        dofs: each joint's degree of freedom.
        actuators: each joint's actuator, None where it is driven by torque.
    """

    def __init__(self, name: str, dofs: Sequence[int], actuators: Sequence[int | None]) -> None:
        self._name, self._count = name, len(dofs)
        servos = {k: a for k, a in enumerate(actuators) if a is not None}
        gains = {"actuator_gainprm": servos, "actuator_biasprm": servos} if servos else {}
        # property: {model field: {joint: its id there}}
        self._fields = {"gains": gains, "damping": {"dof_damping": dict(enumerate(dofs))}}

    def set(self, scope: Scope, what: str, factor: Tensor) -> None:
        """Give the rows in view a property so many times the compiled one, (n,) for all joints or (n, joints)."""
        if what not in self._fields:
            raise UnknownNameError("varying property", what, self._fields)
        n, device = scope.n, scope.device
        if not isinstance(factor, Tensor) or tuple(factor.shape) not in ((n,), (n, 1), (n, self._count)):
            got = tuple(factor.shape) if isinstance(factor, Tensor) else repr(factor)
            raise ConfigError(
                f"{what} of {self._name}: factors must be a tensor ({n},) or ({n}, {self._count}), not {got}"
            )
        each = factor.double().reshape(n, -1).expand(n, self._count).unbind(1)
        values: dict[Any, Any] = {}
        for field, ids in self._fields[what].items():
            own = getattr(scope.world.scene.model, field)[list(ids.values())]
            compiled = torch.tensor(own.tolist(), dtype=torch.float64, device=device)
            times = torch.stack([each[k] for k in ids], 1)
            values[field, tuple(ids.values())] = times.reshape(n, len(ids), *[1] * (own.ndim - 1)) * compiled
        scope.world.set_model(values, scope.target)
