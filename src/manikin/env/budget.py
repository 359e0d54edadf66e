"""How much room a task needs on a Warp device, found by playing it for a while on the CPU and kept on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import torch
from torch import Tensor

from manikin.assets.paths import cache_root, keep
from manikin.env.task import Task
from manikin.errors import ConfigError, ManikinError
from manikin.plan.executor import WaypointExecutor
from manikin.rng import EpisodeRng
from manikin.sim.budget import Meter
from manikin.sim.cpu import CpuWorld
from manikin.spec.budget import Budget
from manikin.spec.scene import CompiledScene

if TYPE_CHECKING:
    from manikin.env.interface import SceneEnv

__all__ = ["probe", "task_budget"]

_VERSION = 4  # of the probe; raised when it changes, so that what older ones found is not used
_ROWS, STEPS, _HELD = 8, 200, 8


def task_budget(task: Task, scene: CompiledScene, play: Callable[..., SceneEnv], **options: Any) -> Budget:
    """The budget of a task, from disk when it was found before for this physics, configuration and controller: cameras,
    lights, materials and colours make no difference.

    Args:
        task: what is played.
        scene: its compiled scene.
        play: makes an environment of a task: :class:`manikin.Env`.
        options: ``robot``, ``control``, ``control_hz``, ``physics_hz``, as for :class:`manikin.Env`.
    """
    about = [task.id, repr(task.config), scene.physics_hash, sorted(options.items()), mujoco.__version__, _VERSION]
    about += [task.layout] if task.layout else []
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:24]
    path = cache_root() / "budgets" / f"{task.id}-{key}.json"
    try:
        return Budget(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, ConfigError):  # not there, or damaged: found again
        pass
    found = probe(task, play, **options)
    _keep(path, found)
    return found


def probe(task: Task, play: Callable[..., SceneEnv], **options: Any) -> Budget:
    """Play random actions and the task's expert on a few rows of the CPU world; what they needed, with headroom."""
    env = play(
        type(task)(task.config, layout=task.layout or None),
        num_envs=_ROWS,
        autoreset="disabled",
        terminate=False,
        reward="none",
        observe="state",
        **options,
    )
    assert isinstance(env.world, CpuWorld)
    env.world.kept_awake = True  # on a Warp device nothing sleeps
    meter = Meter(env.world)
    try:
        for actions in (_random(env), _expert(env)):
            env.reset(seed=0)
            meter.look()
            done = torch.zeros(_ROWS, dtype=torch.bool)
            for action in actions:
                _, _, _, truncated, info = env.step(action)
                meter.look()
                done |= info["success"]
                if bool(truncated.any() or done.all()):
                    break
    finally:
        env.close()
    return meter.budget()


def _random(env: SceneEnv) -> Iterator[Tensor]:
    """Noise in half of the rows; in the others each action is held for a while, which takes the arm far."""
    seeds = torch.arange(_ROWS)
    rng = EpisodeRng(seeds, torch.zeros_like(seeds))
    size = env.controller.card.size
    noise = rng.uniform("budget/noise", -1.0, 1.0, (STEPS, size)).transpose(0, 1)
    held = rng.uniform("budget/held", -1.0, 1.0, (-(-STEPS // _HELD), size)).transpose(0, 1)
    for k in range(STEPS):
        yield torch.where(seeds[:, None] % 2 == 0, noise[k], held[k // _HELD])


def _expert(env: SceneEnv) -> Iterator[Tensor]:
    if type(env.task).expert is Task.expert:
        return
    executor = WaypointExecutor(env)
    for _ in range(STEPS):
        try:
            yield executor.act()
        except ManikinError:  # this controller cannot follow waypoints: random actions have to do
            return


def _keep(path: Path, budget: Budget) -> None:
    """Write it whole or not at all; a cache that cannot be written is no error."""
    try:
        keep(path, lambda partial: partial.write_text(json.dumps(dataclasses.asdict(budget)), encoding="utf-8"))
    except OSError:
        return
