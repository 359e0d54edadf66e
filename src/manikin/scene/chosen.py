"""The handle of a part that is another object in every row, or absent."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.scene.bank import Bank
from manikin.scene.handles import Part, Scope, Variable

__all__ = ["ChosenPart"]

_PARKED = -20.0  # [m] height of absent objects, far below every floor


class ChosenPart(Part):
    """One of several objects per row; see :meth:`manikin.scene.builder.SceneBuilder.mesh`.

    Attributes:
        props: the candidates, in the order in which :attr:`choice` counts them.
    """

    def __init__(
        self, scope: Scope, name: str, *, kind: str, bank: Bank, choice: Variable, absent: Variable, place: int
    ) -> None:
        super().__init__(scope, name, kind=kind, geoms=bank.geoms, size=None)
        self.bank, self.props = bank, bank.props
        self._choice, self._absent, self._place_no = choice, absent, place
        self._tables: dict[str, Tensor] = {}

    def bind(self, model: mujoco.MjModel) -> None:
        super().bind(model)
        self._of_geom, self._of_body = self.bank.table(model)
        device = self._choice.data.device
        for name in ("extents", "centres", "masses"):
            self._tables[name] = torch.tensor(getattr(self.bank, name), dtype=torch.float32, device=device)
        self._put(np.zeros(self.scope.n, np.int64))

    @property
    def choice(self) -> Tensor:
        """(n,) int64 which candidate each row has."""
        return self._choice.value.long()

    @property
    def present(self) -> Tensor:
        """(n,) bool."""
        return self._absent.value == 0

    @property
    def extents(self) -> Tensor:
        """(n, 3) half the size of the box around the row's object [m], in the part's frame."""
        return self._tables["extents"][self.choice]

    @property
    def centre(self) -> Tensor:
        """(n, 3) the middle of that box in the part's frame [m]."""
        return self._tables["centres"][self.choice]

    @property
    def masses(self) -> Tensor:
        """(n,) [kg]."""
        return self._tables["masses"][self.choice]

    def set_choice(self, choice: Tensor, present: Tensor | None = None) -> None:
        """Give the rows in view their object: ``choice`` (n,) counts the candidates, ``present`` (n,) bool.

        An absent object touches nothing, is not seen, and floats far away; leave it out of observations.
        """
        n, count = self.scope.n, len(self.props)
        numbers = np.asarray(choice.cpu(), np.int64).reshape(n)
        if n and not 0 <= numbers.min() <= numbers.max() < count:
            raise SceneError(f"{self.name} has {count} objects to choose from, numbered from 0; got {numbers.tolist()}")
        there = np.ones(n, bool) if present is None else np.asarray(present.cpu(), bool).reshape(n)
        self._choice.set(choice.float())
        self._absent.set(torch.from_numpy(~there).to(self._absent.data))
        self._put(np.where(there, numbers, count))
        if not there.all():
            pose = self.pose.clone()
            parked = pose.new_tensor([2.0 * self._place_no, 0.0, _PARKED, 1.0, 0.0, 0.0, 0.0])
            pose = torch.where(torch.from_numpy(there).to(pose.device)[:, None], pose, parked)
            self.set_pose(pose[:, :3], pose[:, 3:])

    def set_pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Put the rows at pos (n, 3) or (3,) and quat (n, 4) or (4,), at rest; absent objects stay where they are."""
        absent = self._absent.value != 0
        if bool(absent.any()):
            parked = torch.tensor([2.0 * self._place_no, 0.0, _PARKED], device=absent.device)
            pos = torch.where(absent[:, None], parked, torch.as_tensor(pos, dtype=torch.float32, device=absent.device))
        super().set_pose(pos, quat)

    def set_property(self, what: str, value: Tensor) -> None:
        if what == "choice":
            self.set_choice(value)
        else:
            super().set_property(what, value)

    def _put(self, index: np.ndarray) -> None:
        """Write the table's rows ``index`` (n,) into the model of the rows in view."""
        geoms, body = tuple(self.geom_ids), (self.body_id,)
        values: dict[Any, Any] = {(field, geoms): table[index] for field, table in self._of_geom.items()}
        values |= {(field, body): table[index][:, None] for field, table in self._of_body.items()}
        self.scope.world.set_model(values, self.scope.rows)
