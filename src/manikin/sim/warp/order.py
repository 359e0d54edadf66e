"""Contacts and rows of constraints in an order that does not depend on which GPU thread was first.

MuJoCo Warp 4.0 has an option for it and leaves both sorts empty. A world with ``deterministic=True`` puts these in
their place, unless an installed version has its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mujoco
import torch
from torch import Tensor

from manikin.compat.warp import fill_empty_sorts
from manikin.sim.warp.library import modules

__all__ = ["contact_order", "determinism", "move_contacts", "move_rows", "row_order"]

# per row of constraints (worlds, rows, ...); J only where it is dense
_ROWS = ("type", "id", "pos", "margin", "D", "vel", "aref", "frictionloss", "Jqvel")
_SPARSE_ROWS = ("J_rownnz", "J_rowadr")


def determinism(wanted: bool) -> int:
    """What a model's ``opt.deterministic`` has to be, once there is what it asks for."""
    kinds = modules()[1].DeterminismType
    if not wanted:
        return int(kinds.NONE)
    fill_empty_sorts(
        contacts=lambda m, d: move_contacts(d, contact_order(m, d)),
        constraints=lambda m, d: move_rows(m, d, row_order(m, d)),
    )
    return int(kinds.ALL)


def _tensor(array: Any) -> Tensor:
    import warp

    return warp.to_torch(array)


def _sorted_by(keys: Iterable[Tensor]) -> Tensor:
    """The order (..., n) that sorts by the last of the keys (..., n), by the one before where that is equal, ..."""
    order: Tensor | None = None
    for key in keys:
        found = torch.argsort(key if order is None else key.gather(-1, order), dim=-1, stable=True)
        order = found if order is None else order.gather(-1, found)
    assert order is not None
    return order


def contact_order(m: Any, d: Any) -> Tensor:
    """The order (contacts,) by world, pair of shapes, number within the pair, depth and place; unused room comes
    last. Only kinds of contacts that MuJoCo Warp does not number go by depth and place."""
    contact, most = d.contact, m.ngeom + 1
    world, geom, nth = (_tensor(field).long() for field in (contact.worldid, contact.geom, contact.geomcollisionid))
    pair = (world * most + geom[:, 0] + 1) * most + geom[:, 1] + 1
    unused = torch.arange(len(world), device=world.device) >= _tensor(d.nacon)
    keys = [*_tensor(contact.pos).unbind(1), _tensor(contact.dist), nth]
    keys.append(pair.masked_fill(unused, torch.iinfo(torch.int64).max))
    if m.nflex:
        of_flex = torch.cat([_tensor(field) for field in (contact.vert, contact.elem, contact.flex)], 1)
        keys[-2:-2] = of_flex.unbind(1)
    return _sorted_by(keys)


def move_contacts(d: Any, order: Tensor) -> None:
    """Put contact ``order[i]`` at place i, before there are constraints."""
    for field in vars(d.contact).values():
        if field.shape and field.shape[0] == len(order):
            value = _tensor(field)
            value.copy_(value[order])


def row_order(m: Any, d: Any) -> Tensor:
    """The order (worlds, rows) by kind of constraint and what it is about; unused room comes last. Of equalities their
    own kinds count first, which is the order that MuJoCo Warp reads them in."""
    kind, about = _tensor(d.efc.type), _tensor(d.efc.id).long()
    if m.neq:
        own = _tensor(m.eq_type).long()[about.clamp(0, m.neq - 1)] * m.neq + about
        about = torch.where(kind == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY), own, about)
    unused = torch.arange(kind.shape[1], device=kind.device) >= _tensor(d.nefc)[:, None]
    return _sorted_by([about, kind.masked_fill(unused, torch.iinfo(torch.int32).max)])


def move_rows(m: Any, d: Any, order: Tensor) -> None:
    """Put row ``order[w, i]`` of world w at place i, once all are there. Rows of one contact stay together."""
    worlds, rows = order.shape
    for name in (*_ROWS, *(_SPARSE_ROWS if m.is_sparse else ("J",))):
        value = _tensor(getattr(d.efc, name))
        if value.numel():
            part = value[:, :rows]
            at = order.reshape(worlds, rows, *[1] * (part.dim() - 2)).expand_as(part)
            part.copy_(part.gather(1, at))
    place = torch.argsort(order, dim=1)  # where each row went
    if (dry := _tensor(d.dof_frictionadr)).numel():
        dry.copy_(torch.where(dry >= 0, place.gather(1, dry.clamp(0, rows - 1).long()).int(), dry))
    address, world = _tensor(d.contact.efc_address), _tensor(d.contact.worldid).long()
    used = (torch.arange(len(world), device=world.device) < _tensor(d.nacon))[:, None] & (address >= 0)
    world = world.clamp(0, worlds - 1)[:, None].expand_as(address)
    moved = place[world, address.clamp(0, rows - 1).long()]
    address.copy_(torch.where(used, moved.int(), address))
    if m.is_sparse and d.efc.jtdaj_adr.shape[1]:
        first, count = _tensor(d.efc.jtdaj_adr), _tensor(d.efc.jtdaj_nrow)
        there = torch.arange(rows, device=place.device) < _tensor(d.efc.jtdaj_nblock)[:, None]
        moved = place.gather(1, first.clamp(0, rows - 1).long()).masked_fill(~there, rows)
        blocks = torch.argsort(moved, dim=1, stable=True)
        first.copy_(torch.where(there, moved.gather(1, blocks).int(), first))
        count.copy_(torch.where(there, count.gather(1, blocks), count))
