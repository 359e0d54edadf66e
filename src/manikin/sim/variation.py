"""What follows from giving rows their own model parameters, the same for every world.

A caller names a few fields; this module adds those that must change with them: a size changes the geom's bounds, its
body's mass, inertia and bounding volumes; a mass scales the inertia. A caller that gives a body's mass, inertia and
inertial frame describes it whole, bounds of its geoms included; only the bounding volumes are added then. The world
then writes all of them and recomputes MuJoCo's derived constants. Mistakes here are silent in simulation, so tests
compare with compiling the same scene.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np
import torch

from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.sim import bounds

__all__ = ["Assignment", "assignments", "compiled"]

_NOT_NEGATIVE = ("body_mass", "body_inertia", "geom_size", "dof_damping")

Assignment = tuple[str, np.ndarray, Any]
"""(field, object ids (k,), values (n, k, ...), NumPy or torch); ids is empty for a field of the options."""


def assignments(
    model: mujoco.MjModel,
    values: Mapping[Any, Any],
    n: int,
    present: Callable[[str], Any],
    valid: frozenset[str],
    device: torch.device | None = None,
) -> list[Assignment]:
    """Everything to write, in order.

    Args:
        model: the compiled model.
        values: field -> (n, ...) for all objects, or (field, ids) -> (n, len(ids), ...) for some.
        n: how many rows get them.
        present: a field's values in these rows, (n, ...).
        valid: the fields a world can vary; bounding volumes are left out of a world that has none.
        device: where to work, in torch and without waiting for results; None for NumPy.

    Raises:
        UnknownNameError: a field that cannot differ between rows.
        ConfigError: values of the wrong shape, for an object that is not there, not finite or, of masses, inertias,
            sizes and damping, negative. What is on a GPU is not looked at, for that would wait for it: there NaN ends
            as a row that diverged.
        SceneError: a size of a mesh, or of a moving body with several geoms.
    """
    out: list[Assignment] = []
    asked: dict[str, list[tuple[np.ndarray, Any]]] = {}
    for key, value in values.items():
        field, chosen = (key, None) if isinstance(key, str) else key
        if field not in valid:
            raise UnknownNameError("model field", field, valid)
        count = 0 if field.startswith("opt.") else getattr(model, field).shape[0]
        ids = np.arange(count) if chosen is None else np.asarray(chosen)
        if len(ids) and not 0 <= ids.min() <= ids.max() < count:
            raise ConfigError(f"model field {field!r} has objects 0 to {count - 1}, not {ids.tolist()}")
        _check_values(model, field, n, len(ids), value)
        asked.setdefault(field, []).append((ids, _float64(value, device)))
    # of these bodies the caller says everything
    inertial = [
        {int(b) for ids, _ in asked.get(f, []) for b in ids} for f in ("body_mass", "body_inertia", "body_ipos")
    ]
    whole = set.intersection(*inertial)
    sized: dict[int, tuple[Any, Any]] = {}  # body -> mass and inertia at its new size
    moved: set[int] = set()
    for field in ("geom_size", "geom_pos", "geom_quat"):
        for ids, value in asked.pop(field, []):
            value = value.reshape(n, len(ids), -1)
            known = [int(model.geom_bodyid[g]) in whole for g in ids]
            for geom, given in zip(ids, known, strict=True):
                if not given:
                    _check_geometry(model, int(geom), field)
            out.append((field, ids, value))
            moved.update(int(b) for b in model.geom_bodyid[ids])
            if field != "geom_size":
                continue
            for k, geom in enumerate(ids):
                if known[k]:
                    continue
                kind, body = int(model.geom_type[geom]), int(model.geom_bodyid[geom])
                rbound, half = bounds.primitive_bounds(kind, value[:, k])
                out.append(("geom_rbound", ids[k : k + 1], rbound[:, None]))
                out.append(
                    ("geom_aabb", ids[k : k + 1], bounds.library(half).concatenate([0 * half, half], 1)[:, None])
                )
                if _moves(model, body):
                    sized[body] = _at_size(model, body, int(geom), value[:, k])
    for body, (mass, inertia) in sized.items():
        if body not in inertial[0]:
            out.append(("body_mass", np.array([body]), mass[:, None]))
            out.append(("body_inertia", np.array([body]), inertia[:, None]))
    explicit = inertial[1]
    for ids, value in asked.pop("body_mass", []):
        mass = value.reshape(n, len(ids))
        out.append(("body_mass", ids, mass))
        for k, body in enumerate(int(b) for b in ids):
            if body not in explicit and model.body_mass[body] > 0:
                old_mass, old = sized.get(body) or _at_present(model, body, mass[:, k], present)
                out.append(("body_inertia", ids[k : k + 1], (old * (mass[:, k] / old_mass)[:, None])[:, None]))
    for field, parts in asked.items():
        out += [(field, ids, value) for ids, value in parts]
    if moved and "bvh_aabb" in valid:
        out += _volumes(model, sorted(moved), out, n, present)
    return out


def compiled(model: mujoco.MjModel, field: str) -> np.ndarray:
    """A field as the model has it, one of its options by ``opt.NAME``; the bodies' volumes come first in ``bvh_aabb``,
    and only theirs can vary."""
    owner, _, name = field.rpartition(".")
    value = np.asarray(getattr(model.opt if owner else model, name))
    return value[: int(model.body_bvhnum.sum())] if field == "bvh_aabb" else value


def _float64(value: Any, device: torch.device | None) -> Any:
    if device is None:
        return np.asarray(value, np.float64)
    return torch.as_tensor(value, dtype=torch.float64, device=device)


def _check_values(model: mujoco.MjModel, field: str, n: int, count: int, value: Any) -> None:
    """Values for n rows and so many objects have their shape and can be."""
    option = field.startswith("opt.")
    each = np.shape(getattr(model.opt, field[4:])) if option else getattr(model, field).shape[1:]
    wanted = (n, *each) if option else (n, count, *each)
    there = isinstance(value, torch.Tensor) and value.device.type != "cpu"
    value = value if there else np.asarray(value, np.float64)
    shape = tuple(value.shape)
    if shape[:1] != (n,) or math.prod(shape) != math.prod(wanted):
        raise ConfigError(f"model field {field!r}: values of {n} rows must be {wanted}, got {shape}")
    if there:
        return
    least = 0.0 if field in _NOT_NEGATIVE else -np.inf
    bad = ~(np.isfinite(value) & (value >= least))
    if bad.any():
        rows = np.flatnonzero(bad.reshape(n, -1).any(1)).tolist()
        words = "finite" if least < 0 else "finite and not negative"
        raise ConfigError(f"model field {field!r}: values must be {words}; those of the rows {rows[:10]} given are not")


def _moves(model: mujoco.MjModel, body: int) -> bool:
    return bool(model.body_weldid[body] != 0 and model.body_mocapid[model.body_rootid[body]] < 0)


def _check_geometry(model: mujoco.MjModel, geom: int, field: str) -> None:
    body = int(model.geom_bodyid[geom])
    if _moves(model, body) and (model.body_geomnum[body] > 1 or field != "geom_size"):
        raise SceneError(
            f"geom {model.geom(geom).name!r}: {field} can differ per row only on a body that does not move by physics, "
            "or that has this one geom; give the others a body of their own"
        )


def _at_size(model: mujoco.MjModel, body: int, geom: int, size: Any) -> tuple[Any, Any]:
    """Mass (n,) and principal inertia (n, 3) of a body with one geom of the given size, at the compiled density."""
    kind, inertia = int(model.geom_type[geom]), model.body_inertia[body]
    volume0, unit0 = bounds.primitive_inertia(kind, model.geom_size[geom][None])
    volume, unit = bounds.primitive_inertia(kind, size)
    mass = float(model.body_mass[body]) * volume / float(volume0[0])
    if not np.allclose(inertia, float(model.body_mass[body]) * unit0[0], rtol=1e-6):
        # the compiler has permuted the principal axes: keep its order
        order = np.argsort(np.argsort(inertia, kind="stable"), kind="stable")
        ascending = np.sort(unit, 1) if isinstance(unit, np.ndarray) else unit.sort(1).values
        unit = bounds.library(unit).stack([ascending[:, int(k)] for k in order], 1)
    return mass, mass[:, None] * unit


def _at_present(model: mujoco.MjModel, body: int, like: Any, present: Callable[[str], Any]) -> tuple[Any, Any]:
    """Mass and inertia of the rows' body at the compiled density and its present size; arrays like ``like`` (n,)."""
    if model.body_geomnum[body] == 1:
        geom = int(model.body_geomadr[body])
        if int(model.geom_type[geom]) in bounds.PRIMITIVES:
            return _at_size(model, body, geom, present("geom_size")[:, geom])
    zero = 0 * like
    inertia = bounds.library(like).stack([zero + float(i) for i in model.body_inertia[body]], 1)
    return zero + float(model.body_mass[body]), inertia


def _volumes(
    model: mujoco.MjModel,
    bodies: list[int],
    writes: list[Assignment],
    n: int,
    present: Callable[[str], np.ndarray],
) -> list[Assignment]:
    """New bounding volumes of the bodies. (Whether a geom shares its body's frame is worked out by ``set_const``.)"""
    names = ("geom_aabb", "geom_pos", "geom_quat", "bvh_aabb", "body_ipos", "body_iquat")
    fields = {f: np.array(present(f), np.float64) for f in names}
    fields["geom_aabb"] = fields["geom_aabb"].reshape(n, -1, 6)
    for field, ids, value in writes:
        if field in fields:
            fields[field][:, ids] = value.reshape(n, len(ids), -1)
    for body in bodies:
        bounds.body_volumes(
            model,
            body,
            (fields["body_ipos"][:, body], fields["body_iquat"][:, body]),
            fields["geom_aabb"],
            fields["geom_pos"],
            fields["geom_quat"],
            fields["bvh_aabb"],
        )
    nodes = [
        k for b in bodies for k in range(int(model.body_bvhadr[b]), int(model.body_bvhadr[b] + model.body_bvhnum[b]))
    ]
    return [("bvh_aabb", np.array(nodes), fields["bvh_aabb"][:, nodes])]
