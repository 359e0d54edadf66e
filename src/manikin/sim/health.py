"""Health bits of a row, and MuJoCo's warnings as Python log records."""

from __future__ import annotations

import enum
import logging

import mujoco
import numpy as np

__all__ = ["Health", "describe", "install_log_hook", "warning_bits"]

log = logging.getLogger("manikin.physics")


class Health(enum.IntFlag):
    """What went wrong in a row since its episode began. 0 is healthy."""

    OK = 0
    OVERFLOW = 1  # contacts or constraints were dropped
    DIVERGED = 2  # position, velocity or acceleration not finite or absurdly large
    SOLVER_LIMIT = 4  # the constraint solver stopped at its iteration limit
    INERTIA = 8  # the mass matrix was singular


_BITS = np.zeros(int(mujoco.mjtWarning.mjNWARNING), np.int32)
_BITS[int(mujoco.mjtWarning.mjWARN_CONTACTFULL)] = Health.OVERFLOW
_BITS[int(mujoco.mjtWarning.mjWARN_CNSTRFULL)] = Health.OVERFLOW
_BITS[int(mujoco.mjtWarning.mjWARN_INERTIA)] = Health.INERTIA
for _name in ("BADQPOS", "BADQVEL", "BADQACC", "BADCTRL"):
    _BITS[int(getattr(mujoco.mjtWarning, f"mjWARN_{_name}"))] = Health.DIVERGED


def warning_bits(counts: np.ndarray) -> np.ndarray:
    """Health bits (n,) from MuJoCo's warning counts (n, mjNWARNING)."""
    return np.bitwise_or.reduce(np.where(counts > 0, _BITS, 0), axis=1).astype(np.int32)


def describe(bits: int) -> str:
    """Words for a health bitmask: ``"diverged, overflow"`` or ``"ok"``."""
    return ", ".join(flag.name.lower() for flag in Health if flag & bits and flag.name) or "ok"


def install_log_hook() -> None:
    """Send MuJoCo's warnings to the logger ``manikin.physics`` instead of standard error and MUJOCO_LOG.TXT.

    Does nothing when the application has installed a hook of its own.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda message: log.warning("%s", message))
