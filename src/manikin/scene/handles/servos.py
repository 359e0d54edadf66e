"""Servos, fingers, feet and trunks that differ between rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from manikin.errors import ConfigError, UnknownNameError
from manikin.scene.handles.base import Scope

__all__ = ["Servos"]


class Servos:
    """The driven joints of a robot, its fingers, feet and trunk, as far as rows can differ in them.

    Args:
        name: the robot's.
        dofs: each joint's degree of freedom.
        actuators: each joint's actuator, None where it is driven by torque.
        fingers: geoms of the fingers that collide, pads and what is beside them.
        feet: geoms of the feet that collide.
        trunk: the heaviest body.
    """

    def __init__(
        self,
        name: str,
        dofs: Sequence[int],
        actuators: Sequence[int | None],
        fingers: Sequence[int],
        feet: Sequence[int],
        trunk: int,
    ) -> None:
        self._name = name
        self._counts = {
            "gains": len(dofs),
            "damping": len(dofs),
            "finger_friction": len(fingers),
            "foot_friction": len(feet),
            "trunk_mass": 1,
        }
        servos = {k: a for k, a in enumerate(actuators) if a is not None}
        gains = {"actuator_gainprm": servos, "actuator_biasprm": servos} if servos else {}
        # property: {model field: {joint, geom or body: its id there}}
        self._fields = {
            "gains": gains,
            "damping": {"dof_damping": dict(enumerate(dofs))},
            "finger_friction": _friction(fingers),
            "foot_friction": _friction(feet),
            "trunk_mass": {"body_mass": {0: trunk}},
        }

    def set(self, scope: Scope, what: str, factor: Tensor) -> None:
        """Give the rows in view a property so many times the compiled one, (n,) for all joints or geoms, or (n, joints)
        and (n, geoms)."""
        if what not in self._fields:
            raise UnknownNameError("varying property", what, self._fields)
        n, device, count = scope.n, scope.device, self._counts[what]
        if not isinstance(factor, Tensor) or tuple(factor.shape) not in ((n,), (n, 1), (n, count)):
            got = tuple(factor.shape) if isinstance(factor, Tensor) else repr(factor)
            raise ConfigError(f"{what} of {self._name}: factors must be a tensor ({n},) or ({n}, {count}), not {got}")
        each = factor.double().reshape(n, -1).expand(n, count).unbind(1)
        values: dict[Any, Any] = {}
        for field, ids in self._fields[what].items():
            own = getattr(scope.world.scene.model, field)[list(ids.values())]
            compiled = torch.tensor(own.tolist(), dtype=torch.float64, device=device)
            times = torch.stack([each[k] for k in ids], 1)
            values[field, tuple(ids.values())] = times.reshape(n, len(ids), *[1] * (own.ndim - 1)) * compiled
        scope.world.set_model(values, scope.target)


def _friction(geoms: Sequence[int]) -> dict[str, dict[int, int]]:
    return {"geom_friction": dict(enumerate(geoms))} if geoms else {}
