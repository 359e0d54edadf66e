"""Trees of bodies that sleep until something touches them, and whose sleep is part of a row's state.

MuJoCo's sleeping saves nearly all the physics of what lies still. It wakes a tree that something touches or moves. But
who sleeps is not in MuJoCo's state, so that a row that goes on from a save would wake all. Here flags in the state's
user data say it. Nothing falls asleep by itself, which would depend on counters that are not in the state, either.
"""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from mujoco import batch

from manikin.compat.mujoco import columns_in_state

__all__ = ["SLEEP_FIELDS", "Sleepers", "sleeping"]

SLEEP_FIELDS = frozenset({"tree_sleep_policy", "qpos0"})
"""Model fields that rows have for themselves for a moment, while trees are put to sleep."""
_NEVER, _ALLOWED, _INIT = (
    int(getattr(mujoco.mjtSleepPolicy, f"mjSLEEP_{word}")) for word in ("NEVER", "ALLOWED", "INIT")
)
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


def sleeping(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy of the model with sleeping enabled, in which nothing falls asleep; the model itself where no tree is
    allowed to sleep. A scene allows it with :func:`manikin.scene.resting.let_rest`."""
    if not (model.tree_sleep_policy == _ALLOWED).any():
        return model
    model = copy.copy(model)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    model.opt.sleep_tolerance = 0.0
    model.tree_sleep_policy[:] = _NEVER
    return model


class Sleepers:
    """Who sleeps in the rows of a batch.

    Args:
        model: of the scene.
        rows: a persistent batch of :func:`sleeping`'s model.
    """

    def __init__(self, model: mujoco.MjModel, rows: batch.Batch) -> None:
        self._model, self._b, self._state = model, rows, rows.state
        self._trees = np.flatnonzero(model.tree_sleep_policy == _ALLOWED)
        self._actual, self._policy = rows.bind("tree_asleep"), rows.expand("tree_sleep_policy")
        flags = self._columns("userdata")
        self._flags = self._state[:, flags.start : flags.start + len(self._trees)]
        self._asked = np.zeros(self._flags.shape, bool)
        joints = [np.flatnonzero(model.body_treeid[model.jnt_bodyid] == tree) for tree in self._trees]
        wide = (7, 4, 1, 1)  # positions of a joint by its type
        self._places = [
            np.concatenate([model.jnt_qposadr[j] + np.arange(wide[model.jnt_type[j]]) for j in of]) for of in joints
        ]
        self._free = [bool((model.jnt_type[of] == _FREE).all()) for of in joints]
        self._speeds = [np.flatnonzero(model.dof_treeid == tree) for tree in self._trees]

    def _columns(self, field: str) -> slice:
        return columns_in_state(self._state, self._b.bind(field))

    def ask(self, body: int, rows: np.ndarray) -> None:
        """Let the tree of a body sleep in these rows from the next :meth:`settle` on."""
        number = np.flatnonzero(self._trees == self._model.body_treeid[body])
        self._asked[np.ix_(rows, number)] = True

    def note(self) -> None:
        """Write into the state who sleeps now. Who is awake may not fall asleep: that would depend on a counter."""
        asleep = self._actual[:, self._trees] >= 0
        self._flags[...] = asleep
        self._policy[:, self._trees] = np.where(asleep, _ALLOWED, _NEVER)

    def settle(self, rows: np.ndarray) -> None:
        """Make those sleep in these rows, sorted, who sleep by the state or are asked to, and no others.

        A tree sleeps where it is. One with joints sleeps only at their reference position, as doors do when they are
        closed, since nothing else can be told MuJoCo; one that touches somebody awake stays awake.
        """
        qpos, wanted = self._state[:, self._columns("qpos")], self._asked[rows] | (self._flags[rows] != 0)
        self._asked[rows] = False
        for k, places in enumerate(self._places):
            if not self._free[k]:
                wanted[:, k] &= (qpos[rows][:, places] == self._model.qpos0[places]).all(1)
        differ = (wanted != (self._actual[rows][:, self._trees] >= 0)).any(1)
        if not differ.any():
            return
        rows, wanted = rows[differ], wanted[differ]
        qvel, warm = (self._columns(field) for field in ("qvel", "qacc_warmstart"))
        home = self._b.expand("qpos0")
        for row, asleep in zip(rows, wanted, strict=True):
            for k in np.flatnonzero(asleep):
                self._policy[row, self._trees[k]] = _INIT
                home[row, self._places[k]] = qpos[row, self._places[k]]
                if self._actual[row, self._trees[k]] < 0 and not self._flags[row, k]:
                    for columns in (qvel, warm):
                        self._state[row, columns.start + self._speeds[k]] = 0.0
        state = self._state[rows].copy()
        self._b.reset(rows, stage=mujoco.mjtStage.mjSTAGE_NONE)
        home[rows] = self._model.qpos0
        self._policy[np.ix_(rows, self._trees)] = np.where(wanted, _ALLOWED, _NEVER)
        self._state[rows] = state
