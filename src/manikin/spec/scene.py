"""The compiled scene: one MuJoCo model layout that every row of a World shares."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import mujoco
import numpy as np

__all__ = ["COSMETIC", "CompiledScene", "model_hash"]


# What is only seen: arrays that begin with these. Names are apart; a camera's shifts the addresses of all others.
COSMETIC = (
    "cam_",
    "light_",
    "mat_",
    "tex_",
    "skin_",
    "geom_rgba",
    "geom_matid",
    "geom_group",
    "site_rgba",
    "site_matid",
)
_NAMED = (
    mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_JOINT, mujoco.mjtObj.mjOBJ_GEOM, mujoco.mjtObj.mjOBJ_ACTUATOR
)  # fmt: skip


def model_hash(model: mujoco.MjModel) -> str:
    """Hash of every numeric array of a compiled model, floats rounded to 1e-6 relative so that it survives
    another compiler's last bits. Names count, assets' file paths do not. 16 hex digits."""
    return _hashes(model)[0]


def _hashes(model: mujoco.MjModel) -> tuple[str, str]:
    """Of the whole model, and of what physics and state depend on: without cameras, lights, materials and colours."""
    digest, physics = hashlib.sha256(), hashlib.sha256()
    for name, value in _rounded(_arrays(model)).items():
        for each in (digest, physics) if not name.startswith((*COSMETIC, "name")) else (digest,):
            each.update(name.encode())
            each.update(str(value.shape).encode())
            each.update(np.ascontiguousarray(value).tobytes())
    for option in ("timestep", "impratio", "integrator", "cone", "iterations", "noslip_iterations", "disableflags"):
        for each in (digest, physics):
            each.update(f"{option}={getattr(model.opt, option)!r}".encode())
    digest.update(model.names)
    counts = (model.nbody, model.njnt, model.ngeom, model.nu)
    names = [mujoco.mj_id2name(model, kind, i) for kind, n in zip(_NAMED, counts, strict=True) for i in range(n)]
    physics.update(repr(names).encode())
    return digest.hexdigest()[:16], physics.hexdigest()[:16]


def _arrays(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """The model's numeric arrays that hold anything, by name, in order."""
    found: dict[str, np.ndarray] = {}
    for name in sorted(dir(model)):
        if name.startswith("_") or name in ("paths", "text_data", "bvh_aabb", "signature"):
            continue
        try:
            value = getattr(model, name)
        except Exception:  # a few views raise when empty
            continue
        if isinstance(value, np.ndarray) and value.size:
            found[name] = value
    return found


def _rounded(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Floats rounded to six digits, as float32; of all arrays of a type at once, which is ten times as fast. Each is
    rounded once, in the type that it has: a second time, as float32, would give other digits."""
    out = dict(arrays)
    for kind in {value.dtype for value in arrays.values() if value.dtype.kind == "f"}:
        same = {name: value for name, value in arrays.items() if value.dtype == kind}
        value = np.concatenate([value.ravel() for value in same.values()])
        value = np.where(np.abs(value) < 1e-9, 0.0, value)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 10.0 ** (6 - np.ceil(np.log10(np.abs(value))))
            rounded = np.where(value == 0, 0.0, np.round(value * scale) / scale).astype(np.float32)
        parts = np.split(rounded, np.cumsum([value.size for value in same.values()])[:-1])
        out |= {name: part.reshape(arrays[name].shape) for name, part in zip(same, parts, strict=True)}
    return out


@dataclass(frozen=True, eq=False)
class CompiledScene:
    """A compiled model and its hash. Rows of a World differ in state and in declared model fields, never in layout.

    Attributes:
        model: MjModel with MuJoCo's autoreset disabled (a divergence must show).
        hash: 16 hex digits over the compiled model.
        physics_hash: 16 hex digits over all of it but cameras, lights, materials and colours: states of scenes that
            have it in common fit each other.
    """

    model: mujoco.MjModel
    hash: str
    physics_hash: str

    @classmethod
    def from_model(cls, model: mujoco.MjModel) -> CompiledScene:
        """Wrap a compiled model; switches its autoreset off."""
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        return cls(model, *_hashes(model))
