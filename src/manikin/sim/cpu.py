"""The World on the CPU: ``mujoco.batch.Batch``, any number of rows, all cores, bit-identical at any thread count."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import batch

from manikin.compat.mujoco import DERIVED_FIELDS, SET_CONST_INPUTS, columns_in_state
from manikin.errors import ClosedError, ConfigError, UnknownNameError
from manikin.sim.cpu_channel import CpuChannel
from manikin.sim.device import processors
from manikin.sim.dots import show_dots
from manikin.sim.forked import abandon_when_forked
from manikin.sim.health import Health, install_log_hook, warning_bits
from manikin.sim.sleepers import SLEEP_FIELDS, Sleepers, sleeping
from manikin.sim.snapshot import Snapshot
from manikin.sim.variation import assignments, compiled
from manikin.sim.world import PLACES, STATE, Piece, row_numbers
from manikin.spec.budget import Shortage
from manikin.spec.scene import CompiledScene

__all__ = ["CpuWorld"]

_NONE, _VEL = int(mujoco.mjtStage.mjSTAGE_NONE), int(mujoco.mjtStage.mjSTAGE_VEL)
_ALLOWED = int(mujoco.mjtSleepPolicy.mjSLEEP_ALLOWED)
# Outputs of the force stage: what was computed in the last substep is served until the next step, also after a load.
_FORCE = frozenset("sensordata actuator_force qfrc_actuator qfrc_constraint qacc cfrc_ext cacc cfrc_int".split())
_PERSISTENT_BYTES = (
    256e6  # keep one MjData per row while they fit here (0.44 MB each, measured): velocity stage is free
)
_BYTES_PER_ROW = 0.44e6


class CpuWorld:
    """N simulations of one scene on CPU threads.

    Args:
        scene: what to simulate.
        num_worlds: rows N >= 1.
        threads: 0 for all cores, or as many as ``MANIKIN_CORES`` says. Never changes results.
        persistent: keep one MjData per row; None chooses by size. Never changes results.
        poison: overwrite borrowed tensors with NaN once they are out of date, to find code that keeps one.
    """

    kind = "cpu"
    device = torch.device("cpu")

    def __init__(
        self,
        scene: CompiledScene,
        num_worlds: int,
        *,
        threads: int = 0,
        persistent: bool | None = None,
        poison: bool = False,
    ) -> None:
        if num_worlds < 1:
            raise ConfigError(f"num_envs must be at least 1, not {num_worlds}")
        install_log_hook()
        model = sleeping(scene.model)
        if persistent is None:
            persistent = num_worlds * _BYTES_PER_ROW < _PERSISTENT_BYTES or model.nplugin > 0
        persistent |= model is not scene.model
        self.scene, self.num_worlds, self.version, self.poison = scene, num_worlds, 0, poison
        self.dots: dict[str, torch.Tensor] = {}
        self._b = batch.Batch(model, num_worlds, threads or processors(), persistent)
        self._state = self._b.state
        self._sources: dict[str, np.ndarray] = {}
        self._served: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # field -> (bound output, what is reported)
        self._unread: list[str] = []  # outputs bound since, which are zero until the next call on the batch
        self._begun = False  # whether rows have been looked at or stepped
        self._reads: dict[str, CpuChannel] = {}
        self._health = np.zeros(num_worlds, np.int32)
        self._counts = self._b.warning[:, :, 1]
        self._niter = self._b.bind("solver_niter").reshape(num_worlds, -1)
        self._varied: set[str] = set()
        self._constants = {f for f in DERIVED_FIELDS if getattr(model, f).size}
        self._max_iterations = int(model.opt.iterations)
        self._due: list[np.ndarray] | None = None  # rows whose constants wait for the end of ``together``
        self._shown: mujoco.MjModel | None = None  # what data() fills with a row's own fields
        self._closed = False
        if model is scene.model:  # rows are alike: one goes through the physics, which warms up its solver, for all
            self._b.reset(stage=_NONE)
            self._b.forward(np.zeros(1, np.int32))
            self._state[...] = self._state[0]
        else:
            self._b.reset()
        self._sleepers = None if model is scene.model else Sleepers(scene.model, self._b)
        self.kept_awake = False  # whether nothing is to sleep, as on a Warp device
        self._home = self._state[0].copy()
        abandon_when_forked(self)
        self._last = self._state.copy()  # where rows were when they were last looked at, before anything was written

    # ---- reading and writing -------------------------------------------------------------------------------------

    @property
    def timestep(self) -> float:
        return float(self.scene.model.opt.timestep)

    @property
    def nstate(self) -> int:
        return int(self._state.shape[1])

    def _source(self, field: str) -> np.ndarray:
        """(N, K) array that is current after every call on the batch. What is bound before the first one is current
        once the world is :meth:`ready`, so that binding many fields costs one pass of physics."""
        if field not in self._sources:
            if field not in batch.DATA_FIELDS:
                raise UnknownNameError("physics field", field, batch.DATA_FIELDS)
            bound = self._b.bind(field)
            if field in STATE:
                flat = self._state[:, columns_in_state(self._state, bound)]
            else:
                flat = bound.reshape(self.num_worlds, -1)
                if field in _FORCE:
                    self._served[field] = (flat, flat.copy())
                    flat = self._served[field][1]
                self._unread.append(field)
            self._sources[field] = flat
            if self._begun:
                self.ready()
        return self._sources[field]

    def ready(self) -> None:
        """Make newly bound outputs current, by a call on the batch that leaves the state as it is."""
        if not self._unread:
            return
        state = self._state.copy()
        self._b.forward()
        self._state[...] = state
        for bound, served in (self._served[field] for field in self._unread if field in self._served):
            served[...] = bound
        self._unread.clear()

    @property
    def batch(self) -> batch.Batch:
        """MuJoCo's own simulations of the rows, borrowed: for measuring physics alone."""
        return self._b

    def flat(self, field: str) -> np.ndarray:
        """A whole field as the physics has it, (N, K) float64; see :class:`manikin.sim.world.World`."""
        source = self._source(field)
        self.ready()
        return source

    def columns(self, field: str, columns: slice = slice(None)) -> np.ndarray:
        """(N, k) columns of a field as the physics has it, by default all, to be read when the world is
        :meth:`ready`."""
        return self._source(field)[:, columns]

    def channel(
        self, pieces: Sequence[Piece], shape: tuple[int, ...] | None = None, *, quat_at: int | None = None
    ) -> CpuChannel:
        """Gather columns of fields into one tensor (N, *shape); see :class:`manikin.sim.world.Channel`."""
        return CpuChannel(self, pieces, shape or (sum(b - a for _, a, b in pieces),), quat_at)

    def read(self, field: str) -> torch.Tensor:
        """A whole field as float32 (N, ...), borrowed until the next step, forward, reset or load."""
        if field not in self._reads:
            width = self._source(field).shape[1]
            shape = self._b.bind(field).shape[1:] or (1,)
            self._reads[field] = self.channel([(field, 0, width)], shape)
        return self._reads[field].all()

    def write(self, field: str, value: torch.Tensor | np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write a state field (n, ...). Elements equal to what ``read`` returns keep their float64 value."""
        if field not in STATE:
            raise UnknownNameError("writable physics field", field, STATE)
        source = self._source(field)
        index: Any = slice(None) if rows is None else rows
        old = source[index]
        new = np.asarray(value).reshape(old.shape)
        source[index] = np.where(new.astype(np.float32) == old.astype(np.float32), old, new)
        self.version += 1

    # ---- stepping ------------------------------------------------------------------------------------------------

    def step(
        self,
        substeps: int,
        active: np.ndarray | None = None,
        before_substep: Callable[[int], None] | None = None,
    ) -> np.ndarray | None:
        """Advance by some timesteps.

        Args:
            substeps: how many.
            active: (N,) bool; rows outside it stay exactly as they are. None means all.
            before_substep: called with the substep's number before each; for controllers that act every substep.

        Returns:
            (N,) bool rows that diverged and were put back where the last step, reset or load left them, or None when
            none did.
        """
        if self._closed:
            raise ClosedError("this world is closed")
        self.ready()
        self._begun = True
        if self._sleepers is not None:
            self._sleepers.refresh()
        if before_substep is None:
            self._b.step(active, substeps, _VEL)
        else:
            for i in range(substeps):
                before_substep(i)
                self._b.step(active, 1, _VEL)
        if self._sleepers is not None:
            self._sleepers.note()
        # count_nonzero: at one row .any() and .max() cost ten times as much
        troubled = np.count_nonzero(self._counts) or np.count_nonzero(self._niter >= self._max_iterations)
        bad = self._check_health() if troubled else None
        for bound, served in self._served.values():
            if bad is None and active is None:
                served[...] = bound
            else:
                keep = np.ones(self.num_worlds, bool) if active is None else np.asarray(active).copy()
                if bad is not None:
                    keep[bad] = False
                served[keep] = bound[keep]
        self.version += 1
        if bad is not None and len(bad):
            self._restore(bad, self._last[bad])
        if active is None:
            self._last[...] = self._state
        else:
            self._last[active] = self._state[active]
        if bad is None or not len(bad):
            return None
        diverged = np.zeros(self.num_worlds, bool)
        diverged[bad] = True
        return diverged

    def _check_health(self) -> np.ndarray:
        """OR warnings into health; returns the rows that diverged in this step."""
        self._health |= np.where(self._niter.max(1) >= self._max_iterations, Health.SOLVER_LIMIT, 0).astype(np.int32)
        bits = warning_bits(self._counts)
        self._health |= bits
        self._b.warning[...] = 0
        return np.flatnonzero(bits & Health.DIVERGED).astype(np.int32)

    def _restore(self, rows: np.ndarray, state: np.ndarray) -> None:
        """Put rows into a state and make their outputs current, leaving served force outputs alone."""
        self._state[rows] = state
        self._forward(rows)
        self._state[rows] = state  # forward refreshes the warm start

    def _forward(self, rows: np.ndarray | None) -> None:
        if self._sleepers is not None:
            self._sleepers.settle(np.arange(self.num_worlds) if rows is None else np.sort(rows))
        self._b.forward(None if rows is None else np.sort(rows))  # MuJoCo takes rows in their order
        if self._sleepers is not None:
            self._sleepers.note()

    def rest(self, body: int, rows: np.ndarray | None = None) -> None:
        """Let the tree of a body sleep from the next ``forward`` on, until something touches it.

        Raises:
            ConfigError: the scene does not allow it to.
        """
        if self._sleepers is None or self.scene.model.tree_sleep_policy[self.scene.model.body_treeid[body]] != _ALLOWED:
            raise ConfigError(f"{self.scene.model.body(body).name} may not sleep: declare it with let_rest")
        if not self.kept_awake:
            self._sleepers.ask(body, row_numbers(rows, self.num_worlds))

    def forward(self, rows: np.ndarray | None = None) -> None:
        """Make every output of the rows current for their present state, forces included."""
        if rows is None:
            self._unread.clear()
        self.ready()
        self._begun = True
        self._forward(rows)
        index: Any = slice(None) if rows is None else rows
        for bound, served in self._served.values():
            served[index] = bound[index]
        self._last[index] = self._state[index]
        self.version += 1

    def set_home(self) -> None:
        """Make the present state of row 0 the state that ``reset`` gives."""
        self._home = self._state[0].copy()

    def reset(self, rows: np.ndarray | None = None) -> None:
        """Put rows at the home state (at first the model's defaults), health cleared; follow with writes and
        ``forward``."""
        index: Any = slice(None) if rows is None else rows
        self._state[index] = self._last[index] = self._home
        self._health[index] = 0
        self._b.warning[index] = 0
        self.version += 1

    def health(self) -> np.ndarray:
        """(N,) int32 of :class:`Health` bits since each row's reset, borrowed."""
        return self._health

    def shortages(self) -> dict[str, Shortage]:
        """See :class:`manikin.sim.world.World`."""
        return {}

    # ---- per-row model -------------------------------------------------------------------------------------------

    def model_field(self, field: str) -> np.ndarray:
        """A model field per row, (N, ...) float64, read-only."""
        values = self._b.expanded(field) if field in self._varied else None
        if values is None:
            one = compiled(self.scene.model, field)
            values = np.broadcast_to(one, (self.num_worlds, *one.shape))
        return values

    def set_model(self, values: Mapping[Any, Any], rows: np.ndarray | None = None) -> None:
        """Give rows their own model parameters; constants that follow from them are recomputed.

        Args:
            values: field -> (n, ...) for all objects, or (field, ids) -> (n, len(ids), ...) for some. ``geom_size``
                also updates bounds and, for a body with one geom, mass and inertia at constant density unless
                ``body_mass`` is given too; ``body_mass`` scales the inertia unless ``body_inertia`` is given.
            rows: the n rows; None for all.

        Raises:
            UnknownNameError: a field that cannot differ between rows.
            ConfigError: rows that are not there, values of the wrong shape or that cannot be; see
                :mod:`manikin.sim.variation`.
            SceneError: a size of a mesh, or of a moving body with several geoms.
        """
        index = row_numbers(rows, self.num_worlds, once=True)
        present = lambda field: self.model_field(field)[index]  # noqa: E731
        writes = assignments(self.scene.model, values, len(index), present, batch.MODEL_FIELDS)
        for field, ids, value in writes:
            target = self._b.expand(field)
            self._varied.add(field)
            if field.startswith("opt."):
                target[index] = value
            else:
                target[np.ix_(index, ids)] = value.reshape(len(index), len(ids), *target.shape[2:])
        if any(field in SET_CONST_INPUTS for field, _, _ in writes):
            if self._due is None:
                self._derive(index)
            else:
                self._due.append(index)
        if self._sleepers is not None:
            self._sleepers.changed(index)
        self.version += 1

    def _derive(self, index: np.ndarray) -> None:
        """Recompute the constants of these rows."""
        self._b.set_const(np.sort(index))
        for field in self._constants - self._varied:
            self._b.expand(field)
        fields = batch.MODEL_FIELDS if self._sleepers is None else batch.MODEL_FIELDS - SLEEP_FIELDS
        self._varied.update(f for f in fields if self._b.expanded(f) is not None)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Several calls of ``set_model`` whose constants are recomputed once, at the end of the ``with`` block."""
        self._due = []
        try:
            yield
        finally:
            due, self._due = self._due, None
            if due:
                self._derive(np.unique(np.concatenate(due)))

    @property
    def varied(self) -> frozenset[str]:
        """See :class:`manikin.sim.world.World`."""
        return frozenset(self._varied)

    # ---- saving and looking --------------------------------------------------------------------------------------

    def states(self, rows: np.ndarray) -> np.ndarray:
        """See :class:`manikin.sim.world.World`."""
        return self._state[rows].copy()

    def save(self, rows: np.ndarray | None = None) -> Snapshot:
        """Everything about the rows that later steps depend on, owned by the caller."""
        self.ready()
        index = row_numbers(rows, self.num_worlds)
        return Snapshot(
            scene_hash=self.scene.physics_hash,
            kind=self.kind,
            look_hash=self.scene.hash,
            state=self._state[index].copy(),
            model={f: np.array(self._b.expanded(f)[index]) for f in sorted(self._varied)},
            served={f: served[index].copy() for f, (_, served) in self._served.items()},
            health=self._health[index].copy(),
        )

    def load(self, snapshot: Snapshot, rows: np.ndarray | None = None) -> None:
        """Put rows where the snapshot was: as many rows, or one snapshot row into all of them.

        Model fields that did not vary when it was taken are the compiled ones again.

        Raises:
            DataError: of another scene or kind of world, or another number of rows; nothing has been written then.
        """
        index = row_numbers(rows, self.num_worlds, once=True)
        which = snapshot.index_for(len(index), self.scene.physics_hash, self.kind)
        fields = snapshot.fields_for(self.scene.hash)
        for field in {*fields, *self._varied}:
            target = self._b.expand(field)
            self._varied.add(field)
            target[index] = fields[field][which] if field in fields else compiled(self.scene.model, field)
        for field in snapshot.served:
            self._source(field)
        self.ready()
        self._begun = True
        self._b.warning[index] = 0
        if self._sleepers is not None:
            self._sleepers.changed(index)
        self._restore(index, snapshot.state[which])
        self._last[index] = self._state[index]
        for field, (bound, served) in self._served.items():
            served[index] = snapshot.served[field][which] if field in snapshot.served else bound[index]
        self._health[index] = snapshot.health[which]
        self.version += 1

    def places(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """See :class:`manikin.sim.world.World`."""
        return {field: self.flat(field)[rows] for field in PLACES}

    def data(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One row as an ordinary (MjModel, MjData) pair with ``mj_forward`` run: for rendering or any mj_ function.

        Where rows have their own model the model is borrowed until the next call: textures make copies expensive.
        """
        model = self.scene.model
        if self._varied or self.dots:
            if self._shown is None:
                self._shown = copy.copy(model)
            model = self._shown
            for field in self._varied:
                value, (owner, _, name) = self._b.expanded(field)[row], field.rpartition(".")
                target = model.opt if owner else model
                if np.ndim(value):
                    getattr(target, name)[: len(value)] = value  # bvh_aabb is a prefix of the model's
                else:
                    setattr(target, name, value)
            show_dots(model, {name: places[row] for name, places in self.dots.items()})
        data = mujoco.MjData(model)
        self._b.get_data(row, data)
        mujoco.mj_forward(model, data)
        return model, data

    def state_hash(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(n,) uint64 hash of each row's integration state, exact to the bit."""
        bits = np.ascontiguousarray(self._state if rows is None else self._state[rows]).view(np.uint64)
        with np.errstate(over="ignore"):
            x: np.ndarray = bits + np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            return (x ^ (x >> np.uint64(31))).sum(1, dtype=np.uint64)

    def memory_per_row(self) -> int:
        """Bytes a row takes: its state, outputs, own model fields and, when persistent, its MjData (estimated)."""
        rows = self._state[0].nbytes * 2 + sum(a[0].nbytes for a in self._sources.values())
        fields = sum(self._b.expanded(f)[0].nbytes for f in self._varied)
        return int(rows + fields + (_BYTES_PER_ROW if self._b.persistent else 0))

    def __getattr__(self, name: str) -> Any:
        if name == "_b" and self.__dict__.get("_closed"):
            raise ClosedError(
                "this world belongs to another process and cannot be used after a fork; make a new environment in "
                "this process"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def close(self) -> None:
        """Free the simulations. Idempotent."""
        if not self._closed:
            self._closed = True
            self._reads.clear()
            self._sources.clear()
            self._served.clear()
