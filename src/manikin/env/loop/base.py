"""What the two ways through a control step share.

On the CPU (:mod:`manikin.env.loop.rows`) bookkeeping is NumPy and rows that start are named by their numbers: at one
environment torch's calls are the cost. On a Warp device (:mod:`manikin.env.loop.device`) bookkeeping lives on the
device and rows are chosen by masks, so that nothing waits for results and all can be recorded as CUDA graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.observe import ObservationBuilder
from manikin.errors import ClosedError, ConfigError, ManikinError, SceneError
from manikin.rng import EpisodeRng, episode_seed_from_entropy

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly
    from manikin.env.task import Episode

__all__ = ["COUNTERS", "Loop", "Step"]

COUNTERS = ("seed", "index", "elapsed", "done", "clipped")

Step = tuple[Any, Tensor, Tensor, Tensor, dict[str, Any]]
"""observation, reward (N,), terminated (N,), truncated (N,), info."""


class Loop:
    """Episodes of an environment: when rows start, move and end, and what is reported.

    Attributes:
        seed, index: of each row's episode, (N,) int64; index -1 has never started.
        elapsed: control steps since its start, (N,) int64. clipped: numbers of actions clipped since then.
        done: (N,) bool, ended and not restarted.
        carry: (N, k) the controller's.
    """

    seed: Any
    index: Any
    elapsed: Any
    done: Any
    clipped: Any
    carry: Tensor
    masked = False  # whether rows that start are chosen by masks
    no_grad: Callable[[], AbstractContextManager[Any]] = torch.no_grad  # what its methods are called in

    def __init__(self, made: Assembly) -> None:
        options, builder, task = made.options, made.builder, made.task
        self.task, self.h, self.world, self.robot = task, made.h, made.world, made.driven
        self.robot_word = made.robot_word
        self.controller, self.scope, self.dresser = made.controller, builder.scope, made.dresser
        self.variables, self.variations = builder.variables, builder.variations
        self.num_envs, self.substeps, self.horizon = options.num_envs, made.substeps, made.horizon
        self.autoreset, self.terminates, self.reward_mode = options.autoreset, made.terminates, options.reward
        self.refuse = options.out_of_range == "refuse"
        self.settle = round(task.settle_s * made.physics_hz)
        self.entropy: int | None = None
        self.options: Mapping[str, Any] = {}
        self.started = False
        self._per_reward = torch.tensor(
            1.0 / (task.reward_norm or task.reward_max), device="cpu"
        )  # a number, good on any device
        self.observer = ObservationBuilder(
            made.observation,
            task,
            made.h,
            made.robots,
            vision=made.vision,
            rig=made.vision.rig(made.observation.needs, made.world, builder.cameras),
            rng=self.rng,
            control_hz=made.control_hz,
            declared=made.declared,
            sensors=made.sensors,
            masks=self.masked,
        )

    # ---- of either kind ----------------------------------------------------------------------------------------------

    def reset(self, mask: np.ndarray, seed: Any, index: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Start the rows in the mask (N,); see :meth:`manikin.Env.reset`."""
        raise NotImplementedError

    def step(self, actions: Any, active: Any) -> Step:
        """See :meth:`manikin.Env.step`."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what was recorded."""

    def place(self, episode: Episode) -> None:
        """The task puts the starting rows in place.

        Raises:
            SceneError: what it was told to draw cannot be drawn, such as from a range whose ends are swapped.
        """
        try:
            with arguments.naming_robots(self.task, self.robot_word):
                self.task.start(self.h, episode)
        except ManikinError:
            raise
        except ValueError as error:
            raise SceneError(f"{self.task.id} cannot start an episode: {error}") from error

    def look(self, moved: np.ndarray | None = None) -> tuple[Any, dict[str, Any]]:
        """Observation and info of all rows as they are; the rows ``moved`` are where a step has led them."""
        return self.observer(**self._stood(moved)), self.info(self.task.evaluate(self.h))

    def _stood(self, moved: np.ndarray | None) -> dict[str, Any]:
        """For the observer, the rows that did not move; by default none did."""
        if moved is None:
            return {}
        still = np.ones(self.num_envs, bool)
        still[moved] = False
        return {"still": still}

    def rng(self, rows: np.ndarray | None, present: bool) -> EpisodeRng:
        """The random streams of rows' episodes; with ``present`` those of their present step."""
        raise NotImplementedError

    def counters(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Bookkeeping of the rows, copies, by the names of ``COUNTERS``."""
        raise NotImplementedError

    def set_counters(self, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """Put back what :meth:`counters` gave."""
        raise NotImplementedError

    def info(self, ev: dict[str, Tensor], terms: dict[str, Tensor] | None = None) -> dict[str, Any]:
        """What the caller is told. What ``evaluate`` said is copied: it may be what handles keep for the step."""
        raise NotImplementedError

    def reward(self, ev: dict[str, Tensor], action: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """(N,) and its named terms, owned by the receiver."""
        mode = self.reward_mode
        if mode in ("normalized_dense", "dense"):
            terms = self.task.reward(self.h, ev, action)
            if not terms:
                raise ConfigError(f"{self.task.id} has no dense reward; use reward='sparse' or 'none'")
            each = torch.stack(list(terms.values()), -1)
            total = each.sum(-1)
            terms = dict(zip(terms, each.unbind(-1), strict=True))  # a term may be a tensor that a handle keeps
            return (total.mul_(self._per_reward) if mode == "normalized_dense" else total), terms
        if mode == "sparse":
            sparse = ev["success"].float()
            return (sparse - ev["fail"].float() if "fail" in ev else sparse), {}
        return torch.zeros(self.num_envs, device=self.world.device), {}

    def assign(self, mask: np.ndarray, given: Any, number: Any, seed: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Write seeds and indices of the rows about to start into ``seed`` and ``index`` (N,); the rows' numbers."""
        rows = np.flatnonzero(mask).astype(np.int32)
        seeds = arguments.seeds(given, rows, self.num_envs)
        numbers = None if number is None else arguments.indices(number, rows, self.num_envs)
        for row, value in zip(rows, seeds, strict=True):
            if value is not None:
                seed[row], index[row] = value, 0
            elif index[row] < 0:
                if self.entropy is None:
                    self.entropy = episode_seed_from_entropy()
                seed[row], index[row] = self.entropy + int(row), 0
            else:
                index[row] += 1
        if numbers is not None:
            index[rows] = numbers
        return rows

    def ended_error(self, rows: list[int]) -> ClosedError:
        return ClosedError(
            f"rows {rows[:10]} have ended; with autoreset='disabled' restart them with "
            "reset(options={'reset_mask': mask}) or leave them out with step(..., active=mask)"
        )

    def check_started(self) -> None:
        if not self.started:
            raise ClosedError("call reset() before the first step")
