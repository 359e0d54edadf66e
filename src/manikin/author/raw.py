"""Measures the speed of physics alone, the upper limit for the speed of an environment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import mujoco
import numpy as np
from torch import Tensor

from manikin.env.interface import BatchEnv, SceneEnv
from manikin.sim.cpu import CpuWorld
from manikin.sim.warp.library import in_torch_order, modules, warp_device
from manikin.sim.warp.world import WarpWorld
from manikin.sim.world import STATE

__all__ = ["Raw", "raw_physics"]

_PLACED = ("geom_xpos", "geom_xmat")  # of what stands still, which a step does not compute


class Raw(Protocol):
    """Physics of an environment without the environment."""

    def mark(self) -> None:
        """Remember the environment's present state: the next run begins there."""

    def controls(self) -> Any:
        """A copy of what the environment commands at present."""

    def run(self, controls: Sequence[Any]) -> float:
        """Step with these controls, one per control step, and return how long it took [s]."""


def raw_physics(env: BatchEnv) -> Raw:
    """Physics alone for an environment, on its device; with rows of different joints, of each layout that has rows."""
    each = [_raw(part.env) for part in env.parts()]
    return each[0] if len(each) == 1 else _RawLayouts(each)


def _raw(env: SceneEnv) -> Raw:
    world = env.world
    if isinstance(world, CpuWorld):
        return _RawCpu(world, env.substeps)
    assert isinstance(world, WarpWorld)
    return _RawWarp(world, env.substeps)


class _RawCpu:
    """MuJoCo's batch of the environment itself, stepped directly: it ends in the very bits of the environment."""

    def __init__(self, world: CpuWorld, substeps: int) -> None:
        self._batch, self._substeps = world.batch, substeps
        self._ctrl = world.flat("ctrl")
        self.mark()

    def mark(self) -> None:
        self._first = self._batch.state.copy()

    def controls(self) -> np.ndarray:
        return self._ctrl.copy()

    def run(self, controls: Sequence[np.ndarray]) -> float:
        self._batch.state[...] = self._first
        spent, stage = 0.0, int(mujoco.mjtStage.mjSTAGE_VEL)
        for control in controls:
            begin = time.perf_counter()
            self._ctrl[...] = control
            self._batch.step(None, self._substeps, stage)
            spent += time.perf_counter() - begin
        return spent


class _RawWarp:
    """MuJoCo Warp on the model of the environment and data of its own: ``step`` per substep, then one pass of positions
    and velocities. On a GPU the whole control step is one graph."""

    def __init__(self, world: WarpWorld, substeps: int) -> None:
        self._wp, self._mjw = modules()
        self._world, self._substeps = world, substeps
        self._device = warp_device(self._world.device)
        self._m, self._d = self._world.twin()
        self._graph, self._layout = None, -1
        self.mark()

    def _control_step(self) -> None:
        option = self._m.opt.deterministic
        self._m.opt.deterministic = option & int(self._mjw.DeterminismType.ATOMICS)  # the sorts are manikin's
        try:
            for _ in range(self._substeps):
                self._mjw.step(self._m, self._d)
            self._mjw.fwd_position(self._m, self._d)
            self._mjw.fwd_velocity(self._m, self._d)
        finally:
            self._m.opt.deterministic = option

    def _view(self, field: str) -> Tensor:
        view: Tensor = self._wp.to_torch(getattr(self._d, field))
        return view.reshape(self._world.num_worlds, -1)

    def _ready(self) -> None:
        """Kernels are loaded, the graph is recorded and launched before anything is timed; anew for a model of other
        arrays. It moves the data, which ``run`` puts back."""
        if self._layout == self._world.layout:
            return
        self._layout = self._world.layout
        with self._wp.ScopedDevice(self._device):
            self._control_step()
            if self._device.is_cuda:
                with self._wp.ScopedCapture() as capture:
                    self._control_step()
                self._graph = capture.graph
                self._wp.synchronize_device(self._device)  # the step before the recording ran on Warp's own stream
                with in_torch_order(self._world.device):
                    self._wp.capture_launch(self._graph)  # the first launch makes it ready to run and uploads it

    def mark(self) -> None:
        self._ready()
        self._first = {f: self._world.flat(f).clone() for f in (*STATE, *_PLACED)}

    def controls(self) -> Tensor:
        return self._world.flat("ctrl").clone()

    def run(self, controls: Sequence[Tensor]) -> float:
        for field, value in self._first.items():
            self._view(field).copy_(value)
        target = self._view("ctrl")
        self._wp.synchronize_device(self._device)
        begin = time.perf_counter()
        with self._wp.ScopedDevice(self._device), in_torch_order(self._world.device):
            for control in controls:  # the host goes ahead and waits once, at the end
                target.copy_(control)
                if self._graph is None:
                    self._control_step()
                else:
                    self._wp.capture_launch(self._graph)
        self._wp.synchronize_device(self._device)
        return time.perf_counter() - begin


class _RawLayouts:
    """One layout after the other, as the environment steps them."""

    def __init__(self, parts: Sequence[Raw]) -> None:
        self._parts = parts

    def mark(self) -> None:
        for part in self._parts:
            part.mark()

    def controls(self) -> list[Any]:
        return [part.controls() for part in self._parts]

    def run(self, controls: Sequence[list[Any]]) -> float:
        return sum(part.run([each[k] for each in controls]) for k, part in enumerate(self._parts))
