"""Physics alone: the ceiling that an environment's speed is measured against."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol, cast

import mujoco
import numpy as np
import torch
from torch import Tensor

from manikin.env.env import Env
from manikin.sim.cpu import CpuWorld
from manikin.sim.warp import WarpWorld, modules, supported
from manikin.sim.warp_channel import STATE
from manikin.spec.budget import Budget

__all__ = ["Raw", "raw_physics"]


class Raw(Protocol):
    """Physics of an environment without the environment."""

    def mark(self) -> None:
        """Remember the environment's present state: the next run begins there."""

    def controls(self) -> Any:
        """A copy of what the environment commands at present."""

    def run(self, controls: Sequence[Any]) -> float:
        """Step with these controls, one per control step, and return how long it took [s]."""


def raw_physics(env: Env) -> Raw:
    """Physics alone for an environment, on its device."""
    return _RawCpu(env) if isinstance(env.world, CpuWorld) else _RawWarp(env)


class _RawCpu:
    """MuJoCo's batch of the environment itself, stepped directly: it ends in the very bits of the environment."""

    def __init__(self, env: Env) -> None:
        world: Any = env.world
        self._step, self._substeps = world._b.step, env.substeps
        self._state, self._ctrl = world._state, world._source("ctrl")
        self.mark()

    def mark(self) -> None:
        self._first = self._state.copy()

    def controls(self) -> np.ndarray:
        return self._ctrl.copy()

    def run(self, controls: Sequence[np.ndarray]) -> float:
        self._state[...] = self._first
        spent, stage = 0.0, int(mujoco.mjtStage.mjSTAGE_VEL)
        for control in controls:
            begin = time.perf_counter()
            self._ctrl[...] = control
            self._step(None, self._substeps, stage)
            spent += time.perf_counter() - begin
        return spent


class _RawWarp:
    """MuJoCo Warp on a model and data of its own: ``step`` per substep, then one pass of positions and velocities. On a
    GPU the whole control step is one graph."""

    def __init__(self, env: Env) -> None:
        wp, mjw = self._wp, self._mjw = modules()
        self._world, self._substeps = cast(WarpWorld, env.world), env.substeps
        self._device = wp.get_device(env.device_word.removeprefix("warp:"))
        model = supported(env.scene.model)
        with wp.ScopedDevice(self._device):
            self._m = mjw.put_model(model)
            self._m.opt.warn_overflow = False
            self._m.opt.deterministic = self._world._m.opt.deterministic  # as the environment's
            self._d = mjw.make_data(model, nworld=env.num_envs, **asdict(env.budget or Budget()))
            self._control_step()  # kernels are loaded before anything is captured or timed
            self._graph = None
            if self._device.is_cuda:
                with wp.ScopedCapture() as capture:
                    self._control_step()
                self._graph = capture.graph
        self.mark()

    def _control_step(self) -> None:
        for _ in range(self._substeps):
            self._mjw.step(self._m, self._d)
        self._mjw.fwd_position(self._m, self._d)
        self._mjw.fwd_velocity(self._m, self._d)

    def _view(self, data: Any, field: str) -> Tensor:
        view: Tensor = self._wp.to_torch(getattr(data, field))
        return view

    def mark(self) -> None:
        self._first = {f: self._view(self._world._d, f).clone() for f in STATE}

    def controls(self) -> Tensor:
        return self._view(self._world._d, "ctrl").clone()

    def run(self, controls: Sequence[Tensor]) -> float:
        for field, value in self._first.items():
            self._view(self._d, field).copy_(value)
        target = self._view(self._d, "ctrl")
        self._wp.synchronize_device(self._device)
        begin = time.perf_counter()
        with self._wp.ScopedDevice(self._device):
            for control in controls:
                target.copy_(control)
                if self._graph is None:
                    self._control_step()
                else:
                    if target.is_cuda:  # torch and Warp may be on different streams
                        torch.cuda.current_stream(target.device).synchronize()
                    self._wp.capture_launch(self._graph)
        self._wp.synchronize_device(self._device)
        return time.perf_counter() - begin
