"""How fast an environment steps here, beside MuJoCo alone on the same model."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import torch

from manikin.author.raw import Raw, raw_physics
from manikin.env.interface import BatchEnv
from manikin.env.layouts.env import batched
from manikin.env.options import EnvKeywords, EnvOptions
from manikin.env.registry import task_class
from manikin.env.task import Task
from manikin.rng import EpisodeRng
from manikin.sim import torch_device
from manikin.sim.warp.library import trim_graphs
from manikin.sim.warp.world import WarpWorld

__all__ = ["Speed", "bytes_per_env", "free_memory", "measure_speed", "renderer_per_env", "scratch_per_env"]

_BLOCK_S = 0.2


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What was measured; rates in control steps per second, all rows together.

    Attributes:
        env: with action, observation, reward and success.
        raw: physics alone: the same model, rows, substeps and controls.
        create_s: to make the environment and take its first step [s]; on Warp devices kernels are compiled in it.
        reset_one_row_ms: to restart one row [ms], median.
        bytes_per_env: memory of one more row.
        scratch_per_env: memory that one more row takes within a step and gives back; 0 on the CPU.
        card_bytes: of a GPU, what all took by the time when everything had run once; 0 elsewhere. The first in a
            process takes the kernels' too.
    """

    num_envs: int
    env: float
    raw: float
    create_s: float
    reset_one_row_ms: float
    bytes_per_env: int
    scratch_per_env: int
    card_bytes: int

    @property
    def share(self) -> float:
        """Of raw physics' speed."""
        return self.env / self.raw


def measure_speed(
    task: str | type[Task],
    num_envs: int,
    *,
    seconds: float = 2.0,
    options: EnvOptions | None = None,
    **given: Unpack[EnvKeywords],
) -> Speed:
    """Step with random actions for some seconds, then raw physics with the controls that were commanded.

    Sets torch to one thread while it measures, as large batches of small tensors are fastest.

    Args:
        task: a class, or a word as for :func:`manikin.make`.
        num_envs: rows.
        seconds: of stepping.
        options: as for :func:`manikin.make`; unless they say so, no episode ends.
        **given: fields of these by name, which win.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure(task_class(task), num_envs, seconds, EnvOptions.of(options, given))
    finally:
        torch.set_num_threads(threads)


def _measure(task: type[Task], num_envs: int, seconds: float, options: EnvOptions) -> Speed:
    free = free_memory(options.device, tidy=True)
    began = time.perf_counter()
    endless = replace(options, horizon=options.horizon or 10**9, terminate=bool(options.terminate))
    env = batched(task, options=endless, num_envs=num_envs)
    env.reset(seed=0)
    seeds = torch.arange(num_envs)
    actions = EpisodeRng(seeds, torch.zeros_like(seeds)).uniform("bench", -1.0, 1.0, (32, env.controller.card.size))
    moves = actions.transpose(0, 1).contiguous().to(env.device)
    env.step(moves[0])
    wait_for(env.device)
    create = time.perf_counter() - began
    for k in range(max(2, 200 // num_envs) if env.device_word == "cpu" else 2):  # warm
        env.step(moves[k % 32])
    resets = []
    for k in range(20 if env.device_word == "cpu" else 5):
        begin = time.perf_counter()
        env.reset(seed=[k * max(1, len(task.layouts))], options={"reset_mask": np.arange(num_envs) == 0})
        wait_for(env.device)
        resets.append(time.perf_counter() - begin)
    for move in moves[:2]:  # if the resets replaced arrays, a GPU records the second of them anew
        env.step(move)
    card = free - free_memory(env.device_word)  # pools keep what they once needed: this is the most that was in use
    memory, scratch = bytes_per_env(env), scratch_per_env(env)
    physics = raw_physics(env)  # which takes memory of its own
    spent, raw, steps = 0.0, 0.0, 0
    while spent < seconds:  # the two take turns, so that a slow moment of the machine meets both
        block = _block(env, physics, moves, min(_BLOCK_S, seconds - spent))
        spent, raw, steps = spent + block[0], raw + block[1], steps + block[2] * num_envs
    env.close()
    return Speed(
        num_envs=num_envs,
        env=steps / spent,
        raw=steps / raw,
        create_s=create,
        reset_one_row_ms=1e3 * statistics.median(resets),
        bytes_per_env=memory,
        scratch_per_env=scratch,
        card_bytes=card,
    )


def bytes_per_env(env: BatchEnv) -> int:
    """Memory of the physics of one more row; with rows of different joints, what their layouts take over the rows."""
    return sum(one.world.memory_per_row() * one.num_envs for one in (part.env for part in env.parts())) // env.num_envs


def scratch_per_env(env: BatchEnv) -> int:
    """As :func:`bytes_per_env`, of what Warp takes within a step and gives back."""
    worlds = [(one.world, one.num_envs) for one in (part.env for part in env.parts())]
    return sum(world.scratch_per_row() * n for world, n in worlds if isinstance(world, WarpWorld)) // env.num_envs


def renderer_per_env(env: BatchEnv) -> int:
    """As :func:`bytes_per_env`, of the buffers that Warp's ray tracer draws into; 0 without cameras, and for other
    renderers, which draw all rows into the same ones."""
    rigs = [(one._observer.rig, one.num_envs) for one in (part.env for part in env.parts())]
    return sum(rig.memory_per_row() * n for rig, n in rigs if rig is not None) // env.num_envs


def free_memory(device: str, *, tidy: bool = False) -> int:
    """Bytes of a GPU that nobody has taken, once torch has set itself up there; 0 for other devices.

    Args:
        device: a word as for :func:`manikin.make`.
        tidy: first give back what environments that are gone have left: garbage, and what pools keep for others. What
            is freed later would seem to be less that was taken since.
    """
    at = torch_device(device)
    if tidy:
        gc.collect()
    if at.type != "cuda":
        return 0
    torch.zeros(1, device=at)
    wait_for(at)
    if tidy:
        torch.cuda.empty_cache()
        trim_graphs(at)
    return int(torch.cuda.mem_get_info(at)[0])


def wait_for(device: torch.device) -> None:
    """Until the device has done what was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _block(env: BatchEnv, physics: Raw, moves: torch.Tensor, seconds: float) -> tuple[float, float, int]:
    """Step for some seconds, then physics alone from the same state with the same controls.

    Returns:
        Time of the environment [s], time of raw physics [s], number of steps.
    """
    physics.mark()
    controls: list[Any] = []
    spent = 0.0
    while spent < seconds:
        begin = time.perf_counter()
        env.step(moves[len(controls) % len(moves)])
        wait_for(env.device)
        spent += time.perf_counter() - begin
        controls.append(physics.controls())
    return spent, physics.run(controls), len(controls)
