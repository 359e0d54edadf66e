"""The compiled scene: one MuJoCo model layout that every row of a World shares."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import mujoco
import numpy as np

__all__ = ["CompiledScene", "model_hash"]


def model_hash(model: mujoco.MjModel) -> str:
    """Hash of every numeric array of a compiled model, floats rounded to 1e-6 relative so that it survives
    another compiler's last bits. Names count, assets' file paths do not. 16 hex digits."""
    digest = hashlib.sha256()
    for name in sorted(dir(model)):
        if name.startswith("_") or name in ("paths", "text_data", "bvh_aabb", "signature"):
            continue
        try:
            value = getattr(model, name)
        except Exception:  # a few views raise when empty
            continue
        if not isinstance(value, np.ndarray) or not value.size:
            continue
        if value.dtype.kind == "f":
            value = np.where(np.abs(value) < 1e-9, 0.0, value)
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = 10.0 ** (6 - np.ceil(np.log10(np.abs(value))))
                rounded = np.where(value == 0, 0.0, np.round(value * scale) / scale)
            value = rounded.astype(np.float32)
        digest.update(name.encode())
        digest.update(str(value.shape).encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    for option in ("timestep", "impratio", "integrator", "cone", "iterations", "noslip_iterations", "disableflags"):
        digest.update(f"{option}={getattr(model.opt, option)!r}".encode())
    digest.update(model.names)
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class CompiledScene:
    """A compiled model and its hash. Rows of a World differ in state and in declared model fields, never in layout.

    Attributes:
        model: MjModel with MuJoCo's autoreset disabled (a divergence must show).
        hash: 16 hex digits over the compiled model.
    """

    model: mujoco.MjModel
    hash: str

    @classmethod
    def from_model(cls, model: mujoco.MjModel) -> CompiledScene:
        """Wrap a compiled model; switches its autoreset off."""
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        return cls(model, model_hash(model))
