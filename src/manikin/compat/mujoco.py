"""Private parts and undocumented behaviour of MuJoCo's Python package."""

from __future__ import annotations

import ctypes
from typing import Any

import mujoco
import numpy as np

__all__ = [
    "CYLINDER_LIST",
    "DERIVED_FIELDS",
    "SET_CONST_INPUTS",
    "SPEC_NOT_CONTENT",
    "SPEC_NUMBERS",
    "SPEC_SEQUENCES",
    "SPEC_STRUCTS",
    "TUBE_LIST",
    "builtin_list",
    "columns_in_state",
    "forget_authored",
    "leak",
    "load_filament",
]

SET_CONST_INPUTS: frozenset[str] = frozenset(mujoco.MjModel._setconst_inputs)
"""Fields of the model from which ``mj_setConst`` computes constants."""

# Once constants are recomputed, a row has all of these for its own. Which of them come out unlike the compiled ones
# depends on what was drawn, and a snapshot's fields must not.
DERIVED_FIELDS = tuple(
    (
        "actuator_acc0 actuator_length0 body_invweight0 body_margin body_sameframe body_subtreemass cam_mat0 cam_pos0 "
        "cam_poscom0 dof_M0 dof_invweight0 dof_length eq_data geom_sameframe jnt_actuatorid light_dir0 light_pos0 "
        "light_poscom0 site_sameframe tendon_actuatorid tendon_invweight0 tendon_length0 tendon_lengthspring "
        "tree_sleep_policy"
    ).split()
)
"""Fields of the model that ``Batch.set_const`` computes and no caller writes."""

# How the elements of an MjSpec are typed, for code that reads everything a spec says (manikin.assets.compiled).
SPEC_STRUCTS = ("MjSpec", "MjLROpt", "MjOption", "MjStatistic")
SPEC_SEQUENCES = ("MjStringVec", "MjCharVec", "MjsTendonPath")
SPEC_NUMBERS = ("MjFloatVec", "MjDoubleVec", "MjIntVec", "MjByteVec")
SPEC_NOT_CONTENT = frozenset(
    (
        "id info signature classname default parent bodies frames _address comment copy_during_attach timer authored"
    ).split()
)
"""Properties of a spec's elements that do not describe the model."""

_BUILTIN_LISTS = 8
CYLINDER_LIST, TUBE_LIST = 3, 4  # with and without lids


def columns_in_state(state: np.ndarray, bound: np.ndarray) -> slice:
    """The columns of a batch's ``state`` (N, nstate) that a state field, as ``Batch.bind`` returns it, is a view of."""
    offset = (bound.__array_interface__["data"][0] - state.__array_interface__["data"][0]) // state.itemsize
    return slice(offset, offset + int(np.prod(bound.shape[1:], dtype=int)))


def leak(batch: Any) -> None:
    """Never free a batch: freeing one joins its threads, which a forked process does not have.

    A reference from a module would not do, since Python frees modules at exit.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(batch))


def builtin_list(drawer: mujoco.MjrContext, number: int) -> int | None:
    """OpenGL's display list of a standard shape, ``CYLINDER_LIST`` or ``TUBE_LIST``; None where MuJoCo has another set
    of shapes than the one whose order is known."""
    return drawer.baseBuiltin + number if drawer.rangeBuiltin == _BUILTIN_LISTS else None


def forget_authored(spec: mujoco.MjSpec) -> None:
    """Clear the marks of which options a spec sets; with them, attaching it to another spec warns."""
    for field in dir(spec.authored):
        if not field.startswith("_"):
            setattr(spec.authored, field, 0)


def load_filament() -> Any:
    """The module ``mujoco.mjrf``. Importing ``mujoco.studio`` first tells MuJoCo where Filament's assets are."""
    import mujoco.studio  # noqa: F401
    from mujoco import mjrf

    return mjrf
