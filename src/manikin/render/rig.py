"""The cameras of all rows of a World.

A world on MuJoCo Warp is drawn by Warp's ray tracer where it lies, all rows in one launch. Otherwise rows are drawn one
by one by a few threads: each has a renderer, a copy of the model and an MjData of its own, where a row is posed from
the world's state (positions of joints and mocap bodies) by kinematics alone. Either way pictures show the state as it
is now, never a step ago, and what they show depends neither on threads nor on which rows are drawn together.
"""

from __future__ import annotations

import atexit
import copy
import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.errors import ClosedError, ConfigError, DivergedError, UnknownNameError
from manikin.render.api import make_renderer
from manikin.render.renderer import OUTPUTS, Renderer, check_outputs
from manikin.render.segmentation import SegmentationTable
from manikin.render.view import View, view_of
from manikin.sim.device import processors
from manikin.sim.dots import show_dots
from manikin.sim.world import World
from manikin.spec.camera import CameraSpec

if TYPE_CHECKING:
    from manikin.render.backends.traced import TracedCameras

__all__ = ["CameraRig"]

_MOST_THREADS = 8
_KINDS: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
    "rgb": ((3,), torch.uint8),
    "depth": ((), torch.float32),
    "segmentation": ((), torch.int32),
    "normals": ((3,), torch.float32),
}
# Of what differs between rows, this is seen; forces and the like are not.
_SEEN = (
    *("geom_", "site_", "cam_", "light_", "mat_", "tendon_", "body_pos", "body_quat", "jnt_pos", "jnt_axis", "qpos0"),
    "bvh_aabb",
)
_SHAPES = ("geom_size", "geom_pos", "geom_quat", "geom_dataid")
_FIXED_MODES = 1  # camera and light modes up to this follow their body; others need centres of mass


class CameraRig:
    """Cameras that look into every row of a world.

    Args:
        world: the rows.
        cameras: what to draw; names must differ. A camera whose name is in the model is taken from there, so that rows
            may have their own pose and lens (``cam_pos``, ``cam_quat``, ``cam_fovy``, ``cam_intrinsic``).
        outputs: any of ``rgb``, ``depth``, ``segmentation``, ``normals``.
        backend: see :func:`manikin.render.make_renderer`. On a world of MuJoCo Warp, ``auto`` is its ray tracer and the
            pictures stay on its device; the others, and normals, draw copies of its rows on the processor.
        threads: that draw; 0 chooses: for OpenGL on the processor, which is bound by vertices and computes a context's
            on one core, as many as there are cores, otherwise one. Never changes results.
        samples, shadows: see :func:`manikin.render.make_renderer`.

    Raises:
        UnknownNameError: for an output, a backend or a mount that does not exist.
        ConfigError: if the backend does not work here, or two cameras have one name.
    """

    def __init__(
        self,
        world: World,
        cameras: Sequence[CameraSpec],
        outputs: Iterable[str] = ("rgb",),
        *,
        backend: str = "auto",
        threads: int = 0,
        samples: int = 1,
        shadows: bool = False,
    ) -> None:
        self.cameras, self.outputs = tuple(cameras), tuple(dict.fromkeys(outputs))
        names = [camera.name for camera in self.cameras]
        if len(set(names)) < len(names) or not names:
            raise ConfigError(f"a rig needs cameras with different names; got {names}")
        check_outputs("auto", self.outputs, OUTPUTS)
        if threads < 0:
            raise ConfigError(f"threads must be 0 (automatic) or positive, not {threads}")
        self._world = world
        model = world.scene.model
        self.table = SegmentationTable.of(model)
        in_model = {model.camera(i).name for i in range(model.ncam)}
        self._looks: list[str | CameraSpec] = [c.name if c.name in in_model else c for c in self.cameras]
        self._check_mounts(model)
        self._traced, self.workers = self._tracer(backend, samples, shadows), list[_Worker]()
        if self._traced is not None:
            self.backend = self._traced.name
        else:
            pixels = max(camera.width * camera.height for camera in self.cameras)

            def make(word: str) -> Renderer:
                return make_renderer(word, outputs=self.outputs, samples=samples, shadows=shadows, pixels=pixels)

            first = _Worker(model, lambda: make(backend))
            self.backend = first.name
            word = first.name.split()[0]
            most = min(threads or _chosen(word), _MOST_THREADS, world.num_worlds * len(names))
            self.workers = [first, *(_Worker(model, lambda: make(word)) for _ in range(most - 1))]
        self._drawn: _Drawn | None = None
        self._finalizer = weakref.finalize(self, _stop, self.workers)
        # Before the renderers' own clean-up and the platform's, which were registered earlier.
        self._finalizer.atexit = False
        atexit.register(self._finalizer)

    @property
    def threads(self) -> int:
        """How many draw; 0 where Warp does."""
        return len(self.workers)

    def _tracer(self, backend: str, samples: int, shadows: bool) -> TracedCameras | None:
        """Warp's ray tracer for a world that lies there, unless something else is wanted."""
        from manikin.sim.warp.world import WarpWorld

        if not isinstance(self._world, WarpWorld) or backend not in ("auto", "warp"):
            return None
        if backend == "auto" and "normals" in self.outputs:
            return None
        from manikin.render.backends.traced import TracedCameras

        looks = list(zip(self.cameras, self._looks, strict=True))
        return TracedCameras(self._world, looks, self.outputs, samples=samples, shadows=shadows)

    def render(self, rows: np.ndarray | Tensor | None = None) -> dict[str, dict[str, Tensor]]:
        """Draw rows, by default all, as they are now.

        Returns:
            Per camera: each output as (n, height, width, ...), ``K`` (n, 3, 3) float32 and ``T`` (n, 4, 4) float32,
            camera to world, OpenCV axes; n rows in the order given, on the world's device, owned by the receiver. See
            :class:`manikin.render.renderer.Renderer` for what the numbers are.

        Raises:
            DivergedError: if a row's state is not finite.
            ClosedError: after :meth:`close`.
        """
        if not self._finalizer.alive:
            raise ClosedError("this rig of cameras is closed")
        which = np.arange(self._world.num_worlds) if rows is None else _numpy(rows)
        if which.dtype == bool:
            which = np.flatnonzero(which)
        if len(which) and not 0 <= which.min() <= which.max() < self._world.num_worlds:
            raise UnknownNameError("row", which.tolist(), (f"0..{self._world.num_worlds - 1}",))
        if self._traced is None:
            out = self._draw_rows(which)
            return {name: {k: v.to(self._world.device) for k, v in images.items()} for name, images in out.items()}
        out = self._traced.render()
        if rows is None:
            return out
        index = torch.as_tensor(which, dtype=torch.long, device=self._world.device)
        return {name: {k: v[index] for k, v in images.items()} for name, images in out.items()}

    def memory_per_row(self) -> int:
        """Bytes that one more row takes here, so far; 0 where threads draw: a row has nothing there of its own."""
        return 0 if self._traced is None else self._traced.memory_per_row()

    def _draw_rows(self, which: np.ndarray) -> dict[str, dict[str, Tensor]]:
        """Rows one by one, on the processor."""
        state = _State(self._world, which)
        if self._drawn is None or not state.has_fields_of(self._drawn):
            self._drawn = _Drawn(self._world.num_worlds, state, {c.name: self._empty(c, 1) for c in self.cameras})
        missing = self._drawn.missing(which, state)
        arrays = self._drawn.arrays
        every = list(zip(self.cameras, self._looks, strict=True))
        apart = len(missing) < len(self.workers)
        jobs = [(i, part) for i in missing for part in ([[e] for e in every] if apart else [every])]
        turn = iter(jobs)  # one job at a time to whoever is free

        def work(worker: _Worker) -> None:
            while True:
                try:
                    i, part = next(turn)
                except StopIteration:
                    return
                state.pose(i, worker)
                for camera, look in part:
                    self._draw(worker, camera, look, {k: v[which[i]] for k, v in arrays[camera.name].items()})

        if jobs:
            _together(self.workers[: len(jobs)], work)
            self._drawn.keep(which, missing, state)
        return self._drawn.pictures(which)

    def close(self) -> None:
        """End the threads and free what they hold. Idempotent."""
        atexit.unregister(self._finalizer)
        self._finalizer()
        self._traced = None

    def _empty(self, camera: CameraSpec, n: int) -> dict[str, Tensor]:
        size = (n, camera.height, camera.width)
        out = {word: torch.empty((*size, *_KINDS[word][0]), dtype=_KINDS[word][1]) for word in self.outputs}
        return out | {"K": torch.empty((n, 3, 3)), "T": torch.empty((n, 4, 4))}

    def _draw(self, worker: _Worker, camera: CameraSpec, look: str | CameraSpec, out: dict[str, np.ndarray]) -> None:
        view: View = view_of(worker.model, worker.data, look, camera.width, camera.height)
        out["K"][...], out["T"][...] = view.K, view.T
        if self.outputs:
            for word, image in worker.renderer.images(worker.model, worker.data, view, self.outputs).items():
                out[word][...] = image

    def _check_mounts(self, model: mujoco.MjModel) -> None:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        for camera, look in zip(self.cameras, self._looks, strict=True):
            view_of(model, data, look, camera.width, camera.height)


class _State:
    """What a picture depends on, of some rows of a world; each is put into a worker's model and data."""

    def __init__(self, world: World, rows: np.ndarray) -> None:
        self._state = world.places(rows)
        varied = sorted(name for name in world.varied if name.startswith(_SEEN))
        self._fields = {name: world.model_field(name)[rows] for name in varied}
        # A world that keeps no bounding volumes has MuJoCo's own made anew where shapes differ.
        self._bounds = "bvh_aabb" not in self._fields and any(name.startswith(_SHAPES) for name in varied)
        self._dots = {name: places.cpu().numpy()[rows] for name, places in world.dots.items()}
        good = [np.isfinite(values).all(1) for values in self._state.values()]
        bad = [int(r) for r in rows[~np.logical_and.reduce(good)]]
        if bad:
            raise DivergedError(f"rows {bad[:10]} cannot be drawn: their state is not finite")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it by name, (n, ...): two rows of equal bits give the same pictures."""
        return {**self._state, **self._fields, **{f"dots/{name}": v for name, v in self._dots.items()}}

    def has_fields_of(self, drawn: _Drawn) -> bool:
        return drawn.state.keys() == self.arrays.keys()

    def pose(self, i: int, worker: _Worker) -> None:
        """Put the i-th row into the worker's model and data, and pose everything that is drawn."""
        model, data = worker.model, worker.data
        for name, values in self._fields.items():
            target, value = getattr(model, name), values[i]
            target[: len(value)] = value.reshape(len(value), *target.shape[1:])  # bvh_aabb is a prefix of the model's
        if self._bounds:
            mujoco.mj_setConst(model, data)
        show_dots(model, {name: places[i] for name, places in self._dots.items()})
        for name, source in self._state.items():
            target = getattr(data, name)
            target[...] = source[i].reshape(target.shape)
        mujoco.mj_kinematics(model, data)
        if worker.needs_com:
            mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        if model.nflex:
            mujoco.mj_flex(model, data)
        if model.ntendon:
            mujoco.mj_tendon(model, data)


class _Drawn:
    """The last pictures of every row, and the states that they show: a row that has not moved is not drawn again.

    So rows whose episode is over cost nothing, and neither do the others where some begin anew.

    Args:
        n: rows of the world.
        state: of any rows, for shapes. empty: pictures of one row, for shapes.

    Attributes:
        arrays: camera -> output -> its last pictures (n, ...), to be drawn into.
    """

    def __init__(self, n: int, state: _State, empty: dict[str, dict[str, Tensor]]) -> None:
        self.state = {name: np.zeros((n, *v.shape[1:]), v.dtype) for name, v in state.arrays.items()}
        self._has = np.zeros(n, bool)
        self._kept = {
            camera: {k: v.new_empty((n, *v.shape[1:])) for k, v in images.items()} for camera, images in empty.items()
        }
        self.arrays = {camera: {k: v.numpy() for k, v in images.items()} for camera, images in self._kept.items()}

    def pictures(self, rows: np.ndarray) -> dict[str, dict[str, Tensor]]:
        """Those of rows, as they were drawn last; the caller's own."""
        at = torch.from_numpy(rows.astype(np.int64))
        return {camera: {k: v[at] for k, v in images.items()} for camera, images in self._kept.items()}

    def missing(self, rows: np.ndarray, state: _State) -> list[int]:
        """Which of the rows, by place, are not as they were drawn last. They are to be drawn into ``arrays``."""
        same = self._has[rows]
        for name, values in state.arrays.items():
            same = same & (self.state[name][rows] == values).reshape(len(rows), -1).all(1)
        self._has[rows[~same]] = False  # until they are drawn: an error may come between
        return np.flatnonzero(~same).tolist()

    def keep(self, rows: np.ndarray, places: list[int], state: _State) -> None:
        """``arrays`` show some places of rows as they are now."""
        at = rows[places]
        for name, values in state.arrays.items():
            self.state[name][at] = values[places]
        self._has[at] = True


class _Worker:
    """A thread with a renderer, which is made, used and closed there: OpenGL contexts belong to threads."""

    def __init__(self, model: mujoco.MjModel, make: Callable[[], Renderer]) -> None:
        self.model = copy.copy(model)
        self.data = mujoco.MjData(self.model)
        modes = np.concatenate([model.cam_mode, model.light_mode])
        self.needs_com = bool((modes > _FIXED_MODES).any() or model.nflex or model.ntendon)
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.made: list[Renderer] = []
        self._thread = threading.Thread(target=_run, args=(self._jobs, self.made), daemon=True, name="manikin-camera")
        self._thread.start()
        self.do(lambda: self.made.append(make()))()

    @property
    def renderer(self) -> Renderer:
        return self.made[0]

    @property
    def name(self) -> str:
        return self.renderer.name

    def do(self, job: Callable[[], Any]) -> Callable[[], None]:
        """Start a job in the thread; call what is returned to wait for it, and for its exception."""
        done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._jobs.put((job, done))

        def wait() -> None:
            error = done.get()
            if error is not None:
                raise error

        return wait

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join(timeout=10)


def _chosen(renderer: str) -> int:
    """How many threads are worth while; OpenGL on two cores draws 1.4 to 1.5 times as much with two."""
    if renderer != "gl":
        return 1
    from manikin.render.backends.gl import software

    return processors() if software() else 1


def _numpy(rows: np.ndarray | Tensor) -> np.ndarray:
    return np.asarray(rows.cpu() if isinstance(rows, Tensor) else rows)


def _run(jobs: queue.SimpleQueue[Any], made: list[Renderer]) -> None:
    while (task := jobs.get()) is not None:
        job, done = task
        try:
            job()
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)
        del task, job, done
    for renderer in made:
        renderer.close()


def _together(workers: Sequence[_Worker], work: Callable[[_Worker], None]) -> None:
    """Run ``work`` in all threads at once; wait for all of them even if one fails."""
    waits = [worker.do(lambda worker=worker: work(worker)) for worker in workers]  # type: ignore[misc]
    failed: BaseException | None = None
    for wait in waits:
        try:
            wait()
        except BaseException as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _stop(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.stop()
