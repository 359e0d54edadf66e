"""The World on MuJoCo Warp: the same protocol in float32 on a Warp device, tensors without copies.

``warp:cpu`` runs the very kernels of the GPU path on the processor; that is how tests hold this world to the CPU's.
All rows step together: rows left out of a call are put back exactly as they were.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.assets.paths import cache_root
from manikin.errors import AssetError, ClosedError, ConfigError, DataError, UnknownNameError
from manikin.sim.device import torch_device
from manikin.sim.health import Health
from manikin.sim.snapshot import Snapshot
from manikin.sim.variation import assignments
from manikin.sim.world import Piece
from manikin.spec.scene import CompiledScene

__all__ = ["WarpWorld", "modules"]

_STATE = "time qpos qvel act qacc_warmstart ctrl qfrc_applied xfrc_applied eq_active mocap_pos mocap_quat".split()
_FORCE = ("actuator_force", "qfrc_actuator", "qfrc_constraint", "qacc", "cfrc_ext", "cacc", "cfrc_int")
_CPU_ONLY = ("bvh_aabb",)  # bookkeeping of MuJoCo's own collision detection
_DERIVED = ("body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0")
_ACC = int(mujoco.mjtStage.mjSTAGE_ACC)


def modules() -> tuple[Any, Any]:
    """``(warp, mujoco_warp)``, imported on first use with kernels cached in manikin's folder.

    Raises:
        AssetError: they are not installed; says how to get them.
    """
    os.environ.setdefault("WARP_CACHE_PATH", str(cache_root() / "warp"))
    try:
        import warp

        warp.config.log_level = warp.LOG_ERROR  # every compiled kernel is a line of output otherwise
        warp.init()
        import mujoco_warp
    except ImportError as error:
        raise AssetError(f"MuJoCo Warp is not installed ({error}): pip install 'manikin[gpu]'") from None
    return warp, mujoco_warp


class _Channel:
    """See :class:`manikin.sim.world.Channel`. One run of columns is a view; several are gathered when read."""

    def __init__(self, world: WarpWorld, pieces: Sequence[Piece], shape: tuple[int, ...], quat_at: int | None) -> None:
        self._world, self._pieces, self._quat_at, self._version = world, tuple(pieces), quat_at, -1
        self._sources = [world._flat(field)[:, a:b] for field, a, b in pieces]
        self._direct = len(self._sources) == 1 and quat_at is None and self._sources[0].dtype == torch.float32
        self._shape = shape
        self._value: Tensor

    def _gather(self, rows: Tensor | None) -> Tensor:
        parts = self._sources if rows is None else [s[rows] for s in self._sources]
        flat = torch.cat([p.float() for p in parts], 1)
        if self._quat_at is not None:
            quat = flat[:, self._quat_at : self._quat_at + 4]
            quat *= torch.where(quat[:, :1] < 0, -1.0, 1.0)
        return flat.reshape(len(flat), *self._shape)

    def all(self) -> Tensor:
        if self._direct:
            return self._sources[0].reshape(self._world.num_worlds, *self._shape)
        if self._version != self._world.version:
            self._value, self._version = self._gather(None), self._world.version
        return self._value

    def rows(self, rows: np.ndarray) -> Tensor:
        return self._gather(self._world._index(rows))

    def write(self, value: Tensor | np.ndarray, rows: np.ndarray | None = None) -> None:
        if any(field not in _STATE for field, _, _ in self._pieces):
            raise ConfigError(f"only state fields can be written, not {[p[0] for p in self._pieces]}")
        width = sum(s.shape[1] for s in self._sources)
        flat = torch.as_tensor(value, dtype=torch.float32, device=self._world.device).reshape(-1, width)
        at = 0
        for source in self._sources:
            part = flat[:, at : at + source.shape[1]].to(source.dtype)
            if rows is None:
                source.copy_(part.expand_as(source))
            else:
                source[self._world._index(rows)] = part
            at += source.shape[1]
        self._world.version += 1


class WarpWorld:
    """N simulations of one scene on a Warp device.

    Args:
        scene: what to simulate.
        num_worlds: rows N >= 1.
        device: ``warp:cpu`` or ``cuda``, ``cuda:1``.
        nconmax, njmax, nccdmax: room for contacts and constraints, see :class:`manikin.spec.budget.Budget`.
        deterministic: the same bits in every run, through Warp's own option; slower.
    """

    poison = False

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
        self.scene, self.num_worlds, self.version = scene, num_worlds, 0
        self.device = torch_device(device)
        self._wp.init()
        self._wp_device = self._wp.device_from_torch(self.device)
        self._mjm = _supported(scene.model)
        self._budget = {"nconmax": nconmax, "njmax": njmax, "nccdmax": nccdmax}
        with self._wp.ScopedDevice(self._wp_device):
            self._m = self._mjw.put_model(self._mjm)
            self._m.opt.warn_overflow = False
            kind = self._mjw.DeterminismType
            self._m.opt.deterministic = int(kind.ALL if deterministic else kind.NONE)
            self._d = self._mjw.make_data(self._mjm, nworld=num_worlds, **self._budget)
        self._views: dict[str, Tensor] = {}
        self._reads: dict[str, _Channel] = {}
        self._varied: set[str] = set()
        per_world = (
            n for n, v in vars(self._m).items() if getattr(v, "shape", (0,))[:1] == (1,) and hasattr(self._mjm, n)
        )
        self._variable = frozenset((*per_world, *_CPU_ONLY))
        self._health = torch.zeros(num_worlds, dtype=torch.int32, device=self.device)
        acc = [i for i in range(self._mjm.nsensor) if int(self._mjm.sensor_needstage[i]) == _ACC]
        columns = [
            range(int(self._mjm.sensor_adr[i]), int(self._mjm.sensor_adr[i] + self._mjm.sensor_dim[i])) for i in acc
        ]
        self._acc = torch.tensor([c for run in columns for c in run], dtype=torch.long, device=self.device)
        self._closed = False
        self._run(self._mjw.forward)
        self.set_home()

    # ---- reading and writing -------------------------------------------------------------------------------------

    @property
    def timestep(self) -> float:
        return float(self._mjm.opt.timestep)

    def _run(self, function: Callable[..., None]) -> None:
        with self._wp.ScopedDevice(self._wp_device):
            function(self._m, self._d)

    def _index(self, rows: Any) -> Tensor:
        return torch.as_tensor(np.asarray(rows), dtype=torch.long, device=self.device)

    def _flat(self, field: str) -> Tensor:
        """(N, K) view of a Data field."""
        if field not in self._views:
            array = getattr(self._d, field, None)
            if array is None or not hasattr(array, "ptr") or array.shape[:1] != (self.num_worlds,):
                known = [
                    n for n in vars(self._d) if getattr(getattr(self._d, n), "shape", ())[:1] == (self.num_worlds,)
                ]
                raise UnknownNameError("physics field", field, known)
            self._views[field] = self._wp.to_torch(array).reshape(self.num_worlds, -1)
        return self._views[field]

    def channel(
        self, pieces: Sequence[Piece], shape: tuple[int, ...] | None = None, *, quat_at: int | None = None
    ) -> _Channel:
        """Columns of fields as one tensor (N, *shape); see :class:`manikin.sim.world.Channel`."""
        return _Channel(self, pieces, shape or (sum(b - a for _, a, b in pieces),), quat_at)

    def read(self, field: str) -> Tensor:
        """A whole field as float32 (N, ...), borrowed until the next step, forward, reset or load."""
        if field not in self._reads:
            columns = self._flat(field).shape[1]
            shape = tuple(self._wp.to_torch(getattr(self._d, field)).shape[1:]) or (1,)
            self._reads[field] = self.channel([(field, 0, columns)], shape)
        return self._reads[field].all()

    def write(self, field: str, value: Tensor | np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write a state field (n, ...)."""
        if field not in _STATE:
            raise UnknownNameError("writable physics field", field, _STATE)
        self.channel([(field, 0, self._flat(field).shape[1])]).write(value, rows)

    # ---- stepping ------------------------------------------------------------------------------------------------

    def _state(self) -> Tensor:
        """(N, nstate) float32, a copy."""
        return torch.cat([self._flat(f).float() for f in _STATE if self._flat(f).shape[1]], 1)

    def _put_state(self, state: Tensor, rows: Tensor | None = None) -> None:
        at = 0
        for field in _STATE:
            view = self._flat(field)
            part = state[:, at : at + view.shape[1]].to(view.dtype)
            if rows is None:
                view.copy_(part)
            else:
                view[rows] = part
            at += view.shape[1]

    def _served(self) -> dict[str, Tensor]:
        """Copies of what the force stage computed."""
        out = {f: self._flat(f).clone() for f in _FORCE if hasattr(self._d, f)}
        out["sensordata"] = self._flat("sensordata")[:, self._acc].clone()
        return out

    def _serve(self, forces: Mapping[str, Tensor], rows: Tensor | None = None) -> None:
        """Report these force-stage values for the rows until the next step."""
        for field, value in forces.items():
            view = self._flat(field)
            if field == "sensordata":
                if rows is None:
                    view[:, self._acc] = value
                else:
                    view[rows[:, None], self._acc] = value[rows]
            elif rows is None:
                view.copy_(value)
            else:
                view[rows] = value[rows]

    def step(
        self,
        substeps: int,
        active: np.ndarray | None = None,
        before_substep: Callable[[int], None] | None = None,
    ) -> np.ndarray | None:
        """Advance by some timesteps; see :meth:`manikin.sim.cpu.CpuWorld.step`.

        Each substep is Warp's step2 then step1, so that positions, velocities and their sensors are current after it.
        """
        if self._closed:
            raise ClosedError("this world is closed")
        state, forces = self._state(), self._served()
        for i in range(substeps):
            if before_substep is not None:
                before_substep(i)
            self._run(self._mjw.step2)
            sensors = self._flat("sensordata")[:, self._acc].clone()  # step1 clears them
            self._run(self._mjw.step1)
            self._flat("sensordata")[:, self._acc] = sensors
        bad = self._check_health()
        still = bad if active is None else bad | ~torch.as_tensor(active, device=self.device)
        if bool(still.any()):
            rows = torch.nonzero(still).squeeze(1)
            self._restore(rows, state[rows], forces)
        self.version += 1
        return bad.cpu().numpy() if bool(bad.any()) else None

    def _check_health(self) -> Tensor:
        """(N,) bool rows that diverged in this step; ORs overflow and divergence into health."""
        kinds = self._mjw.OverflowType
        overflow = self._wp.to_torch(self._d.overflow)
        limits = int(kinds.ITERATIONS | kinds.LS_ITERATIONS)
        bad = torch.zeros(self.num_worlds, dtype=torch.bool, device=self.device)
        for field in ("qpos", "qvel", "qacc", "qacc_smooth"):  # MuJoCo's own bound for each
            bad |= ~(self._flat(field).abs() <= 1e10).all(1)
        self._health |= torch.where((overflow & ~limits) != 0, int(Health.OVERFLOW), 0).int()
        self._health |= torch.where((overflow & int(kinds.ITERATIONS)) != 0, int(Health.SOLVER_LIMIT), 0).int()
        self._health |= torch.where(bad, int(Health.DIVERGED), 0).int()
        overflow.zero_()
        return bad

    def _restore(self, rows: Tensor, state: Tensor, forces: Mapping[str, Tensor]) -> None:
        """Put rows into a state with current positions and velocities, reporting these forces; others stay."""
        keep = self._served()
        for field, value in forces.items():
            keep[field][rows] = value[rows]
        self._put_state(state, rows)
        self._run(self._mjw.step1)
        self._serve(keep)

    def forward(self, rows: np.ndarray | None = None) -> None:
        """Make every output of the rows current for their present state, forces included."""
        forces, warm = self._served(), self._flat("qacc_warmstart").clone()
        self._run(self._mjw.forward)
        self._flat("qacc_warmstart").copy_(warm)
        if rows is not None:
            others = torch.ones(self.num_worlds, dtype=torch.bool, device=self.device)
            others[self._index(rows)] = False
            self._serve(forces, torch.nonzero(others).squeeze(1))
        self.version += 1

    def set_home(self) -> None:
        """Make the present state of row 0 the state that ``reset`` gives."""
        self._home = self._state()[:1]

    def reset(self, rows: np.ndarray | None = None) -> None:
        """Put rows at the home state, health cleared; follow with writes and ``forward``."""
        index = self._index(range(self.num_worlds) if rows is None else rows)
        self._put_state(self._home.expand(len(index), -1), index)
        self._health[index] = 0
        self.version += 1

    def health(self) -> np.ndarray:
        """(N,) int32 of :class:`Health` bits since each row's reset."""
        return self._health.cpu().numpy()

    def budget_advice(self) -> str:
        """What to raise when rows overflow."""
        needed = int(self._wp.to_torch(self._d.nefc).max())
        return f"raise nconmax (now {self._budget['nconmax']}) or njmax (now {self._budget['njmax']}, {needed} in use)"

    # ---- per-row model -------------------------------------------------------------------------------------------

    def _model_view(self, field: str) -> Tensor:
        """(N, ...) tensor of a model field, given a row of its own for each world on first use."""
        array = getattr(self._m, field)
        if field not in self._varied:
            shared = self._wp.to_torch(array)[:1]
            own = shared.expand(self.num_worlds, *shared.shape[1:]).contiguous()
            setattr(self._m, field, self._wp.from_torch(own, dtype=array.dtype))
            self._varied.add(field)
        return self._wp.to_torch(getattr(self._m, field))

    def set_model(self, values: Mapping[Any, Any], rows: np.ndarray | None = None) -> None:
        """Give rows their own model parameters; see :meth:`manikin.sim.cpu.CpuWorld.set_model`."""
        index = np.arange(self.num_worlds) if rows is None else np.asarray(rows)
        at = self._index(index)
        writes = assignments(self._mjm, values, index, self.model_field, self._variable)
        for field, ids, value in writes:
            if field in _CPU_ONLY:
                continue
            view = self._model_view(field)
            new = torch.as_tensor(value, dtype=view.dtype, device=self.device)
            view[at[:, None], self._index(ids)] = new.reshape(len(index), len(ids), *view.shape[2:])
        if any(field in mujoco.MjModel._setconst_inputs for field, _, _ in writes):
            for field in _DERIVED:
                self._model_view(field)
            overflow = self._flat("overflow").clone()
            state, forces = self._state(), self._served()
            self._run(self._mjw.set_const)
            self._restore(at, state[at], forces)
            self._flat("overflow").copy_(overflow)
        self.version += 1

    def model_field(self, field: str) -> np.ndarray:
        """A model field per row, (N, ...), a copy; what cannot vary here is the compiled model's."""
        known = field in self._variable and field not in _CPU_ONLY
        array = self._wp.to_torch(getattr(self._m, field)).cpu().numpy() if known else getattr(self._mjm, field)[None]
        return np.broadcast_to(array, (self.num_worlds, *array.shape[1:])).copy()

    def save(self, rows: np.ndarray | None = None) -> Snapshot:
        """Everything about the rows that later steps depend on, owned by the caller."""
        index = self._index(range(self.num_worlds) if rows is None else rows)
        return Snapshot(
            scene_hash=self.scene.hash,
            state=self._state()[index].cpu().numpy().astype(np.float64),
            model={f: self._model_view(f)[index].cpu().numpy() for f in sorted(self._varied)},
            served={f: v[index].cpu().numpy().astype(np.float64) for f, v in self._served().items()},
            health=self._health[index].cpu().numpy(),
        )

    def load(self, snapshot: Snapshot, rows: np.ndarray | None = None) -> None:
        """Put rows where the snapshot was: as many rows, or one snapshot row into all of them."""
        index = self._index(range(self.num_worlds) if rows is None else rows)
        which = snapshot.index_for(len(index), self.scene.hash)
        width = self._state().shape[1]
        if snapshot.state.shape[1] != width or "sensordata" not in snapshot.served:
            raise DataError(
                f"this snapshot was taken on another kind of device ({snapshot.state.shape[1]} numbers, not {width})"
            )
        for field, value in snapshot.model.items():
            self._model_view(field)[index] = torch.as_tensor(value[which], device=self.device)
        forces = self._served()
        for field, value in snapshot.served.items():
            forces[field][index] = torch.as_tensor(value[which], dtype=torch.float32, device=self.device)
        state = torch.as_tensor(snapshot.state[which], dtype=torch.float32, device=self.device)
        self._restore(index, state, forces)
        self._health[index] = torch.as_tensor(snapshot.health[which], device=self.device)
        self.version += 1

    def data(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One row as an ordinary (MjModel, MjData) pair with ``mj_forward`` run."""
        model = self.scene.model
        if self._varied:
            model = copy.copy(model)
            for field in self._varied:
                target = getattr(model, field)
                target[...] = self.model_field(field)[row].reshape(target.shape)
            mujoco.mj_setConst(model, mujoco.MjData(model))  # bounding volumes, which Warp does not keep
        data = mujoco.MjData(model)
        for field in ("qpos", "qvel", "ctrl", "qacc_warmstart", "mocap_pos", "mocap_quat"):
            target = getattr(data, field)
            target[...] = self._flat(field)[row].cpu().numpy().reshape(target.shape)
        mujoco.mj_forward(model, data)
        return model, data

    def state_hash(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(n,) uint64 hash of each row's integration state, exact to the bit."""
        state = self._state() if rows is None else self._state()[self._index(rows)]
        bits = state.cpu().numpy().view(np.uint32).astype(np.uint64)
        with np.errstate(over="ignore"):
            x: np.ndarray = bits + np.arange(1, bits.shape[1] + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            return (x ^ (x >> np.uint64(31))).sum(1, dtype=np.uint64)

    def memory_per_row(self) -> int:
        """Bytes of Data a row takes, and of the model fields that it has of its own."""
        held = (self._d, self._d.contact, self._d.efc)
        arrays = [array for part in held for array in vars(part).values() if hasattr(array, "ptr")]
        arrays += [getattr(self._m, field) for field in self._varied]
        return int(sum(array.capacity for array in arrays) / self.num_worlds)

    def close(self) -> None:
        """Free the simulations. Idempotent."""
        if not self._closed:
            self._closed = True
            self._views.clear()
            self._reads.clear()


def _supported(model: mujoco.MjModel) -> mujoco.MjModel:
    """A copy without what MuJoCo Warp refuses: it has no autoreset to switch off."""
    plain = copy.copy(model)
    plain.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
    return plain
