"""The World on MuJoCo Warp: the same protocol in float32 on a Warp device, tensors without copies.

``warp:cpu`` runs the very kernels of the GPU path on the processor; that is how tests hold this world to the CPU's.
All rows step together: rows left out of a call are put back exactly as they were. With masks instead of row numbers
nothing here waits for the device, so that a control step can be recorded as a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ClosedError, ConfigError, UnknownNameError
from manikin.sim.device import torch_device
from manikin.sim.dots import show_dots
from manikin.sim.health import Health
from manikin.sim.snapshot import Snapshot
from manikin.sim.variation import assignments
from manikin.sim.warp.capacity import Capacity
from manikin.sim.warp.channel import Rows, WarpChannel, merged
from manikin.sim.warp.library import Scratch, in_torch_order, modules, supported, torch_stream, warp_device
from manikin.sim.warp.model import PLACING, RowModel, acceleration_columns
from manikin.sim.warp.order import determinism
from manikin.sim.world import PLACES, STATE, Piece, row_numbers
from manikin.spec.budget import Shortage
from manikin.spec.scene import CompiledScene

__all__ = ["WarpWorld"]

_FORCE = ("actuator_force", "qfrc_actuator", "qfrc_constraint", "qacc", "cfrc_ext", "cacc", "cfrc_int")


class WarpWorld:
    """N simulations of one scene on a Warp device.

    Args:
        scene: what to simulate.
        num_worlds: rows N >= 1.
        device: ``warp:cpu`` or ``cuda``, ``cuda:1``.
        nconmax, njmax, nccdmax: room for contacts and constraints, see :class:`manikin.spec.budget.Budget`.
        deterministic: the same bits in every run, through Warp's own option and :mod:`manikin.sim.warp.order`; slower.

    ``mjw_model`` and ``mjw_data`` are MuJoCo Warp's own, for code that launches kernels itself.
    """

    kind = "warp"
    poison = False
    _due: tuple[bool, bool] | None = None  # constants and places that wait for the end of ``together``

    def __init__(
        self,
        scene: CompiledScene,
        num_worlds: int,
        *,
        device: str = "warp:cpu",
        nconmax: int = 64,
        njmax: int = 256,
        nccdmax: int | None = None,
        deterministic: bool = False,
    ) -> None:
        if num_worlds < 1:
            raise ConfigError(f"num_envs must be at least 1, not {num_worlds}")
        self._wp, self._mjw = modules()
        from manikin.sim.warp.kernels import contacts, room  # which need Warp

        self._checked = contacts
        self.scene, self.num_worlds, self.version, self.device = scene, num_worlds, 0, torch_device(device)
        self._wp_device = warp_device(self.device)
        self._mjm = supported(scene.model)
        sizes = {"nconmax": nconmax, "njmax": njmax, "nccdmax": nconmax if nccdmax is None else nccdmax}
        self._size = {**sizes, "nworld": num_worlds}
        with self._wp.ScopedDevice(self._wp_device):
            self.mjw_model = self._mjw.put_model(self._mjm)
            self.mjw_model.opt.warn_overflow = False
            self.mjw_model.opt.deterministic = determinism(deterministic)
            self.mjw_data = self._mjw.make_data(self._mjm, **self._size)
            self._wanted = self._wp.to_torch(room.rows_wanted(self.mjw_data))
            self._counters = [self._wp.to_torch(counter) for counter in (self.mjw_data.nacon, self.mjw_data.ncollision)]
        if self._wp_device.is_cuda:
            self._wp.synchronize_device(self._wp_device)  # it was made on Warp's own stream
        self._views, self._reads, self.dots = dict[str, Tensor](), dict[str, WarpChannel](), dict[str, Tensor]()
        self._model = RowModel(self._wp, self.mjw_model, self._mjm, num_worlds, self.device)
        self._health = torch.zeros(num_worlds, dtype=torch.int32, device=self.device)
        self._room = Capacity(sizes, num_worlds, self.device, self._mjw.OverflowType)
        self._acc = torch.tensor(acceleration_columns(self._mjm), dtype=torch.long, device=self.device)
        self._closed = False
        self._run(self._checked.forward)
        self._before, self._before_forces = self._state(), self._served()  # where the last step began
        self._last = self._state()  # where rows go back to when they diverge
        self.set_home()

    # ---- reading and writing -------------------------------------------------------------------------------------

    @property
    def timestep(self) -> float:
        return float(self._mjm.opt.timestep)

    def _run(self, function: Callable[..., None]) -> None:
        with self._wp.ScopedDevice(self._wp_device), in_torch_order(self.device):
            function(self.mjw_model, self.mjw_data)

    @contextmanager
    def joined_capture(self) -> Iterator[list[Any]]:
        """Warp takes part in the recording of a CUDA graph that torch has begun on its present stream. The list is to
        be kept as long as the graph: what it will hold keeps Warp's kernels loaded."""
        stream, held = torch_stream(self.device), list[Any]()
        self._wp.capture_begin(stream=stream, external=True)
        try:
            yield held
        finally:
            held.append(self._wp.capture_end(stream=stream))

    def index(self, rows: Any) -> Tensor:
        """Row numbers on the device."""
        return torch.as_tensor(row_numbers(rows, self.num_worlds), dtype=torch.long, device=self.device)

    def spread(self, value: Tensor, rows: Rows) -> tuple[Tensor | None, Tensor]:
        """A mask (N,), None for all, and the values at their rows among all N."""
        if rows is None:
            return None, value.expand(self.num_worlds, *value.shape[1:])
        if isinstance(rows, Tensor):
            return rows, value
        whole, index = value.new_zeros(self.num_worlds, *value.shape[1:]), self.index(rows)
        whole[index] = value.expand(len(index), *value.shape[1:])
        return self._at(rows), whole

    def _mask(self, rows: Rows) -> Tensor | None:
        return rows if rows is None or isinstance(rows, Tensor) else self._at(rows)

    def _at(self, rows: np.ndarray) -> Tensor:
        none = torch.zeros(self.num_worlds, dtype=torch.bool, device=self.device)
        return none.index_fill_(0, self.index(rows), True)

    def flat(self, field: str) -> Tensor:
        """A whole field as the physics has it, (N, K) float32; see :class:`manikin.sim.world.World`."""
        if field not in self._views:
            array, one = getattr(self.mjw_data, field, None), (self.num_worlds,)
            if array is None or not hasattr(array, "ptr") or array.shape[:1] != one:
                known = [n for n, value in vars(self.mjw_data).items() if getattr(value, "shape", ())[:1] == one]
                raise UnknownNameError("physics field", field, known)
            self._views[field] = self._wp.to_torch(array).reshape(self.num_worlds, -1)
        return self._views[field]

    def channel(
        self, pieces: Sequence[Piece], shape: tuple[int, ...] | None = None, *, quat_at: int | None = None
    ) -> WarpChannel:
        """Columns of fields as one tensor (N, *shape); see :class:`manikin.sim.world.Channel`."""
        return WarpChannel(self, pieces, shape or (sum(b - a for _, a, b in pieces),), quat_at)

    def read(self, field: str) -> Tensor:
        """A whole field as float32 (N, ...), borrowed until the next step, forward, reset or load."""
        if field not in self._reads:
            columns = self.flat(field).shape[1]
            shape = tuple(self._wp.to_torch(getattr(self.mjw_data, field)).shape[1:]) or (1,)
            self._reads[field] = self.channel([(field, 0, columns)], shape)
        return self._reads[field].all()

    def write(self, field: str, value: Tensor | np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write a state field (n, ...)."""
        if field not in STATE:
            raise UnknownNameError("writable physics field", field, STATE)
        self.channel([(field, 0, self.flat(field).shape[1])]).write(value, rows)

    # ---- stepping ------------------------------------------------------------------------------------------------

    def _state(self) -> Tensor:
        """(N, nstate) float32, a copy."""
        return torch.cat([self.flat(f).float() for f in STATE if self.flat(f).shape[1]], 1)

    def _put_state(self, state: Tensor, mask: Tensor | None) -> None:
        """Write (N, nstate) where the mask is True."""
        at = 0
        for field in STATE:
            view = self.flat(field)
            view.copy_(merged(mask, state[:, at : at + view.shape[1]].to(view.dtype), view))
            at += view.shape[1]

    def _served(self) -> dict[str, Tensor]:
        """Copies of what the force stage computed."""
        out = {f: self.flat(f).clone() for f in _FORCE if hasattr(self.mjw_data, f)}
        out["sensordata"] = self.flat("sensordata")[:, self._acc]  # indexing copies
        return out

    def _serve(self, forces: Mapping[str, Tensor], mask: Tensor | None = None) -> None:
        """Report these force-stage values (N, ...) until the next step, in rows where the mask is True."""
        for field, value in forces.items():
            view = self.flat(field)
            if field == "sensordata":
                view[:, self._acc] = merged(mask, value, view[:, self._acc])
            else:
                view.copy_(merged(mask, value, view))

    def step(
        self,
        substeps: int,
        active: np.ndarray | Tensor | None = None,
        before_substep: Callable[[int], None] | None = None,
    ) -> np.ndarray | None:
        """Advance by some timesteps; see :meth:`manikin.sim.cpu.CpuWorld.step`.

        With ``active`` as a tensor nothing is waited for and nothing returned: rows that diverged are put back, and
        :meth:`health` tells.
        """
        if self._closed:
            raise ClosedError("this world is closed")
        going = None if active is None else torch.as_tensor(active, device=self.device)
        bad = self.advance(substeps, before_substep, going)
        if isinstance(active, Tensor):
            self.put_back(bad | ~active)
            return None
        still = bad if going is None else bad | ~going
        if bool(still.any()):
            self.put_back(still)
        return bad.cpu().numpy() if bool(bad.any()) else None

    def advance(
        self, substeps: int, before_substep: Callable[[int], None] | None = None, going: Tensor | None = None
    ) -> Tensor:
        """Step all rows without waiting for the device.

        Each substep is Warp's step2 then step1, so that positions, velocities and their sensors are current after it.

        Args:
            substeps: how many.
            before_substep: called with the substep's number before each.
            going: (N,) bool rows whose health counts, None for all; the others are to be :meth:`put_back`.

        Returns:
            (N,) bool rows among them that have left the finite numbers, and must be put back too.
        """
        self.flat("overflow").bitwise_and_(~self._limits)  # a solver's limit counts in steps, not in what comes between
        self._before.copy_(self._state())
        for field, value in self._served().items():
            self._before_forces[field].copy_(value)
        for i in range(substeps):
            if before_substep is not None:
                before_substep(i)
            self._room.mark(self._wanted, self.flat("overflow"))
            self._run(self._mjw.step2)
            sensors = self.flat("sensordata")[:, self._acc]  # step1 clears them
            self._run(self._checked.step1)
            self.flat("sensordata")[:, self._acc] = sensors
            self._room.need(self._wanted if going is None else self._wanted * going)
            self._room.pool(self._counters)
        self.version += 1
        bad = self._check_health(going)
        self._before.copy_(merged(bad, self._last, self._before))
        self._keep(~bad)
        return bad

    def put_back(self, mask: Tensor) -> None:
        """Rows where the mask (N,) is True return to where the last step began, and those that diverged in it to where
        the step, reset or load before it left them; forces included. Others stay."""
        self._restore(mask, self._before, self._before_forces)
        self._keep(mask)
        self.version += 1

    def _keep(self, mask: Tensor | None) -> None:
        """Rows go back to where they are now if they diverge, whatever is written to them before."""
        self._last.copy_(merged(mask, self._state(), self._last))

    @property
    def _limits(self) -> int:
        """Bits of Warp's that say that a solver stopped at its limit, not that something was dropped."""
        return int(self._mjw.OverflowType.ITERATIONS | self._mjw.OverflowType.LS_ITERATIONS)

    def _check_health(self, going: Tensor | None) -> Tensor:
        """(N,) bool rows that diverged in this step; ORs overflow and divergence into health."""
        overflow = self.flat("overflow")[:, 0]
        bad = torch.zeros(self.num_worlds, dtype=torch.bool, device=self.device)
        for field in ("qpos", "qvel", "qacc", "qacc_smooth"):  # MuJoCo's own bound for each
            bad |= ~(self.flat(field).abs() <= 1e10).all(1)
        lost = overflow & ~self._limits
        bits = torch.where(lost != 0, int(Health.OVERFLOW), 0)
        bits |= torch.where((overflow & int(self._mjw.OverflowType.ITERATIONS)) != 0, int(Health.SOLVER_LIMIT), 0)
        bits |= torch.where(bad, int(Health.DIVERGED), 0)
        if going is not None:
            lost, bits, bad = lost * going, bits * going, bad & going
        self._room.lose(lost)
        self._health |= bits.int()
        overflow.zero_()
        return bad

    def _restore(self, mask: Tensor | None, state: Tensor, forces: Mapping[str, Tensor]) -> None:
        """Put rows into a state with current positions and velocities, reporting these forces; others stay."""
        now = self._served()
        self._put_state(state, mask)
        self._run(self._checked.step1)
        self._serve({field: merged(mask, value, now[field]) for field, value in forces.items()})

    def forward(self, rows: Rows = None) -> None:
        """Make every output of the rows current for their present state, forces included."""
        mask = self._mask(rows)
        forces, warm = self._served(), self.flat("qacc_warmstart").clone()
        self._run(self._checked.forward)
        self.flat("qacc_warmstart").copy_(warm)
        if mask is not None:
            self._serve(forces, ~mask)
        self._keep(mask)
        self.version += 1

    def set_home(self) -> None:
        """Make the present state of row 0 the state that ``reset`` gives."""
        self._home = self._state()[:1]

    def reset(self, rows: Rows = None) -> None:
        """Put rows at the home state, health cleared; follow with writes and ``forward``."""
        mask = self._mask(rows)
        self._put_state(self._home.expand(self.num_worlds, -1), mask)
        self._keep(mask)
        for bits in (self._health, self.flat("overflow")[:, 0]):
            bits.copy_(merged(mask, torch.zeros_like(bits), bits))
        self.version += 1

    def health(self) -> np.ndarray:
        """(N,) int32 of :class:`Health` bits since each row's reset."""
        return self._health.cpu().numpy()

    @property
    def health_bits(self) -> Tensor:
        """(N,) int32 of :class:`Health` bits on the device, borrowed."""
        return self._health

    def usage(self) -> dict[str, int]:
        """The largest ``nconmax`` and ``njmax`` that were needed so far, whether or not there was room."""
        return self._room.usage()

    def shortages(self) -> dict[str, Shortage]:
        """See :class:`manikin.sim.world.World`."""
        return self._room.shortages()

    # ---- per-row model -------------------------------------------------------------------------------------------

    @property
    def layout(self) -> int:
        """Goes up when an array is replaced: what was recorded as a CUDA graph before must be recorded again."""
        return self._model.layout

    def set_model(self, values: Mapping[Any, Any], rows: Rows = None) -> None:
        """Give rows their own model parameters; see :meth:`manikin.sim.cpu.CpuWorld.set_model`."""
        index = None if rows is None or isinstance(rows, Tensor) else self.index(rows)
        n = self.num_worlds if index is None else len(index)
        present = lambda field: self._model.read(field) if index is None else self._model.read(field)[index]  # noqa: E731
        writes = assignments(self._mjm, values, n, present, self._model.variable, self.device)
        mask = self._mask(rows)
        stale = self._model.write([(field, ids, self.spread(value, rows)[1]) for field, ids, value in writes], mask)
        places = any(field in PLACING for field, _, _ in writes)
        if self._due is None:
            self._derive(stale, places)
        else:
            self._due = (self._due[0] or stale, self._due[1] or places)
        self.version += 1

    def _derive(self, constants: bool, places: bool) -> None:
        """Recompute what follows from the model."""
        if constants:
            overflow = self.flat("overflow").clone()
            state, forces = self._state(), self._served()
            self._run(self._mjw.set_const)
            self._restore(None, state, forces)
            self.flat("overflow").copy_(overflow)
        if places:
            self._place_fixed()

    @contextmanager
    def together(self) -> Iterator[None]:
        """See :meth:`manikin.sim.cpu.CpuWorld.together`."""
        self._due = (False, False)
        try:
            yield
        finally:
            due, self._due = self._due, None
            self._derive(*due)

    def _place_fixed(self) -> None:
        self._run(self._mjw.kinematics)  # bodies first
        self._model.place_fixed(self.mjw_data)

    def model_field(self, field: str) -> np.ndarray:
        """A model field per row, (N, ...), a copy; what cannot vary here is the compiled model's."""
        return self._model.numpy(field)

    @property
    def varied(self) -> frozenset[str]:
        """See :class:`manikin.sim.world.World`."""
        return frozenset(self._model.varied)

    def states(self, rows: np.ndarray) -> np.ndarray:
        """See :class:`manikin.sim.world.World`."""
        return self._state()[self.index(rows)].cpu().numpy().astype(np.float64)

    def save(self, rows: np.ndarray | None = None) -> Snapshot:
        """Everything about the rows that later steps depend on, owned by the caller."""
        index = self.index(rows)
        return Snapshot(
            scene_hash=self.scene.physics_hash,
            kind=self.kind,
            look_hash=self.scene.hash,
            state=self._state()[index].cpu().numpy().astype(np.float64),
            model={f: self._model.view(f)[index].cpu().numpy() for f in sorted(self._model.varied)},
            served={f: v[index].cpu().numpy().astype(np.float64) for f, v in self._served().items()},
            health=self._health[index].cpu().numpy(),
        )

    def load(self, snapshot: Snapshot, rows: np.ndarray | None = None) -> None:
        """Put rows where the snapshot was; see :meth:`manikin.sim.cpu.CpuWorld.load`."""
        at = row_numbers(rows, self.num_worlds, once=True)
        which = snapshot.index_for(len(at), self.scene.physics_hash, self.kind)

        def ours(value: np.ndarray, dtype: torch.dtype) -> Tensor:
            return self.spread(torch.as_tensor(value[which], dtype=dtype, device=self.device), at)[1]

        mask = self._at(at)
        fields = snapshot.fields_for(self.scene.hash)
        for field, value in fields.items():
            view = self._model.view(field)
            view.copy_(merged(mask, ours(value, view.dtype), view))
        before = self._model.varied - fields.keys()  # did not vary yet when it was taken
        self._model.restore(before, mask)
        if not PLACING.isdisjoint({*fields, *before}):
            self._place_fixed()
        forces = {field: ours(value, torch.float32) for field, value in snapshot.served.items()}
        self._restore(mask, ours(snapshot.state, torch.float32), forces)
        self._keep(mask)
        self._health.copy_(merged(mask, ours(snapshot.health, torch.int32), self._health))
        self.version += 1

    def places(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """See :class:`manikin.sim.world.World`."""
        index = self.index(rows)
        return {field: self.flat(field)[index].cpu().numpy() for field in PLACES}

    def posed(self) -> tuple[Any, Any]:
        """MuJoCo Warp's Model and Data, borrowed, with everything in sight posed for the present state."""
        for function in (self._mjw.kinematics, self._mjw.com_pos, self._mjw.camlight):
            self._run(function)
        return self.mjw_model, self.mjw_data

    def twin(self) -> tuple[Any, Any]:
        """MuJoCo Warp's Model, borrowed, and a new Data with as many rows and as much room: for physics alone."""
        with self._wp.ScopedDevice(self._wp_device):
            return self.mjw_model, self._mjw.make_data(self._mjm, **self._size)

    def data(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One row as an ordinary (MjModel, MjData) pair with ``mj_forward`` run."""
        model = self._model.of_row(self.scene.model, row, own=bool(self.dots))
        show_dots(model, {name: places[row].cpu() for name, places in self.dots.items()})
        data = mujoco.MjData(model)
        for field in ("qpos", "qvel", "ctrl", "qacc_warmstart", "mocap_pos", "mocap_quat"):
            target = getattr(data, field)
            target[...] = self.flat(field)[row].cpu().numpy().reshape(target.shape)
        mujoco.mj_forward(model, data)
        return model, data

    def state_hash(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(n,) uint64 hash of each row's integration state, exact to the bit."""
        bits = self._state()[self.index(rows)].cpu().numpy().view(np.uint32).astype(np.uint64)
        with np.errstate(over="ignore"):
            x: np.ndarray = bits + np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            return (x ^ (x >> np.uint64(31))).sum(1, dtype=np.uint64)

    def scratch_per_row(self) -> int:
        """Bytes a row takes only within a step, the most at once: what Warp allocates while it steps and gives back
        (torch's tensors are not in it). It makes a step to see, and undoes it."""
        state, forces, overflow = self._state(), self._served(), self.flat("overflow").clone()
        with Scratch() as scratch:
            self._run(self._mjw.step2)
            self._run(self._checked.step1)
        self._restore(None, state, forces)
        self.flat("overflow").copy_(overflow)
        self.version += 1
        return scratch.most // self.num_worlds

    def memory_per_row(self) -> int:
        """Bytes of Data a row takes, and of the model fields that it has of its own."""
        d = self.mjw_data
        held = (array for part in (d, d.contact, d.efc) for array in vars(part).values())
        own = (getattr(self.mjw_model, field) for field in self._model.varied)
        return int(sum(array.capacity for array in (*held, *own) if hasattr(array, "ptr")) / self.num_worlds)

    def __getattr__(self, name: str) -> Any:
        if name in ("mjw_model", "mjw_data", "_model") and self.__dict__.get("_closed"):
            raise ClosedError("this world is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def close(self) -> None:
        """Free the simulations: at once, not when Python collects what refers to itself. Idempotent."""
        if not self._closed:
            self._closed = True
            self._views.clear()
            self._reads.clear()
            del self.mjw_model, self.mjw_data, self._model
