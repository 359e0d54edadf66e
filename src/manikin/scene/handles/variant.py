"""The handle of a part that is another object in every row, or absent."""

from __future__ import annotations

from typing import Any

import mujoco
import torch
from torch import Tensor

from manikin.errors import SceneError
from manikin.math import quat_rotate
from manikin.scene.candidates import Candidates
from manikin.scene.handles.base import Scope, Variable
from manikin.scene.handles.part import Part

__all__ = ["VariantPart"]

_PARKED = -20.0  # [m] height of absent objects, far below every floor


class VariantPart(Part):
    """One of several objects per row; see :meth:`manikin.scene.builder.SceneBuilder.mesh`.

    Attributes:
        props: the candidates, in the order in which :attr:`choice` counts them.
    """

    def __init__(
        self, scope: Scope, name: str, *, kind: str, bank: Candidates, choice: Variable, absent: Variable, place: int
    ) -> None:
        super().__init__(scope, name, kind=kind, geoms=bank.geoms, size=None)
        self.bank, self.props = bank, bank.props
        self._choice, self._absent, self._place_no = choice, absent, place
        self._tables: dict[str, Tensor] = {}

    def bind(self, model: mujoco.MjModel) -> None:
        super().bind(model)
        device = self._choice.data.device
        self._of_geom, self._of_body = (
            {field: torch.as_tensor(table, dtype=torch.float64, device=device) for field, table in tables.items()}
            for tables in self.bank.table(model)
        )
        for name in ("extents", "centres", "masses"):
            self._tables[name] = torch.tensor(getattr(self.bank, name), dtype=torch.float32, device=device)
        self._put(torch.zeros(self.scope.n, dtype=torch.int64, device=device))

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

    @property
    def com(self) -> Tensor:
        """(n, 3) [m] the centre of mass of the row's object in the world."""
        return self.pos + quat_rotate(self.quat, self._of_body["body_ipos"][self.choice].to(self.pos))

    def set_choice(self, choice: Tensor, present: Tensor | None = None) -> None:
        """Give the rows in view their object: ``choice`` (n,) counts the candidates, ``present`` (n,) bool.

        An absent object touches nothing, is not seen, and floats far away; leave it out of observations. Call it before
        :meth:`set_pose`: with ``present`` it puts present objects where they were when the episode began.
        """
        n, count, device = self.scope.n, len(self.props), self.scope.device
        numbers = choice.reshape(n).to(device, torch.int64)
        waits = self.scope.mask is None  # with a mask nothing may wait for the device
        if waits and bool(((numbers < 0) | (numbers >= count)).any()):
            raise SceneError(f"{self.name} has {count} objects to choose from, numbered from 0; got {numbers.tolist()}")
        there = torch.ones_like(numbers, dtype=torch.bool) if present is None else present.reshape(n).to(device)
        self._choice.set(numbers.float())
        self._absent.set((~there).float())
        self._put(torch.where(there, numbers, count))
        if present is not None:
            pose = torch.where(there[:, None], self.pose, torch.tensor([*self._parked, 1.0, 0, 0, 0], device=device))
            self.set_pose(pose[:, :3], pose[:, 3:])

    def set_pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Put the rows at pos (n, 3) or (3,) and quat (n, 4) or (4,), at rest; absent objects stay where they are."""
        absent, device = self._absent.value != 0, self.scope.device
        pos = torch.as_tensor(pos, dtype=torch.float32, device=device)
        super().set_pose(torch.where(absent[:, None], torch.tensor(self._parked, device=device), pos), quat)

    def set_property(self, what: str, value: Tensor) -> None:
        if what == "choice":
            self.set_choice(value)
        else:
            super().set_property(what, value)

    @property
    def _parked(self) -> tuple[float, float, float]:
        """Where it is when absent [m]."""
        return 2.0 * self._place_no, 0.0, _PARKED

    def _put(self, index: Tensor) -> None:
        """Write the table's rows ``index`` (n,) into the model of the rows in view."""
        geoms, body = tuple(self.geom_ids), (self.body_id,)
        values: dict[Any, Any] = {(field, geoms): table[index] for field, table in self._of_geom.items()}
        values |= {(field, body): table[index][:, None] for field, table in self._of_body.items()}
        self.scope.world.set_model(values, self.scope.target)
