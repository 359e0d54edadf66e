"""Replay: the steps of an environment's rows, and batches drawn from them with n-step returns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.rollout import flat_size
from manikin.learn.common.tree import mapped, row_bytes

__all__ = ["Replay", "drawn_together", "free_memory", "free_of_group", "replay_bytes"]

_KEPT = ("seen", "actions", "rewards", "following", "ended", "kept")
_RESERVE = 0.9  # of the free memory, the share that a replay may take
_UNKNOWN = 1 << 62  # bytes: what is too much fails when it is taken


class Replay:
    """The last ``steps`` steps of each of N rows, in the order in which they were made.

    A step keeps the observation before it and the one after it, of the same episode: where a row began anew, the one
    after it is the final observation of the episode that ended. An episode that ended is cut there, so no return
    reaches into the next one.

    Args:
        rows: N, rows of the environment.
        steps: kept of each row; older ones are overwritten.
        observations: columns of a flat observation; or, of one with pictures, a row of each tensor (1, ...) that a
            network's ``scaling.take`` gives, by name. Below, (N, D) then stands for such tensors.
        actions: dimensions of an action.
        gamma: discount per step.
        n_step: rewards in a return.
        device: where the tensors are.

    Raises:
        ConfigError: there is too little memory; says how much is needed, and how much is free.
    """

    def __init__(
        self,
        *,
        rows: int,
        steps: int,
        observations: int | Mapping[str, Tensor],
        actions: int,
        gamma: float,
        n_step: int = 1,
        device: torch.device | str = "cpu",
    ) -> None:
        if rows < 1 or steps < 1 or n_step < 1:
            raise ConfigError(f"a replay needs at least one row, step and reward; got {rows}, {steps} and {n_step}")
        self.rows, self.steps, self.gamma, self.n_step = rows, steps, gamma, n_step
        self.device = torch.device(device)
        needed, free = replay_bytes(rows, steps, observations, actions), free_memory(self.device)
        if needed > _RESERVE * free:
            raise ConfigError(
                f"the replay of {rows * steps:,} steps needs {needed / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free "
                f"on {self.device}: keep at most {int(rows * steps * _RESERVE * free / needed):,} steps"
            )
        shape = (steps, rows)
        example = torch.empty((1, observations)) if isinstance(observations, int) else observations
        self.seen, self.following = (
            mapped(lambda one: torch.empty((*shape, *one.shape[1:]), dtype=one.dtype, device=self.device), example)
            for _ in range(2)
        )
        self.actions = torch.empty((*shape, actions), device=self.device)
        self.rewards = torch.empty(shape, device=self.device)
        self.ended = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self.kept = torch.zeros(shape, dtype=torch.bool, device=self.device)
        self.made = 0  # steps of each row since the beginning, overwritten ones too

    @classmethod
    def of(
        cls,
        env: BatchEnv,
        steps: int,
        *,
        gamma: float,
        n_step: int = 1,
        observations: Mapping[str, Tensor] | None = None,
    ) -> Replay:
        """A replay of ``steps`` steps of all rows of an environment, on its device; of ``observations`` as above, where
        these are not flat.

        Raises:
            ConfigError: its observations are not flat and none are given, or there is too little memory.
        """
        return cls(
            rows=env.num_envs,
            steps=-(-steps // env.num_envs),
            observations=flat_size(env) if observations is None else observations,
            actions=int(env.single_action_space.shape[0]),
            gamma=gamma,
            n_step=n_step,
            device=env.device,
        )

    def __len__(self) -> int:
        """Steps that can be drawn, of all rows."""
        return min(self.made, self.steps) * self.rows

    def add(self, *, seen: Any, actions: Tensor, rewards: Tensor, following: Any, ended: Tensor, kept: Tensor) -> None:
        """A step of all rows.

        Args:
            seen: (N, D) before the step.
            actions: (N, A).
            rewards: (N,).
            following: (N, D) after the step, of the same episode.
            ended: (N,) bool, whether the episode ended here, or was cut, for whatever reason.
            kept: (N,) bool, whether what comes after ``following`` counts. True within an episode and where time ran
                out, False where the task ended it; see :func:`manikin.learn.common.rollout.worth_after`.
        """
        at = self.made % self.steps
        self.actions[at], self.rewards[at], self.ended[at], self.kept[at] = actions, rewards, ended, kept
        for held, new in ((self.seen, seen), (self.following, following)):
            mapped(lambda all_steps, now: all_steps[at].copy_(now), held, new)
        self.made += 1

    def sample(self, count: int, generator: torch.Generator) -> dict[str, Any]:
        """Steps drawn with equal chance, with replacement.

        Returns:
            ``seen`` (B, D) and ``actions`` (B, A); ``returns`` (B,), the discounted sum of the rewards of up to
            ``n_step`` steps; ``following`` (B, D), the observation after the last of them; ``discounts`` (B,), by which
            its value counts: gamma to the number of those steps, or 0 where the task ended the episode. A return has
            fewer steps where the episode ends, or where the newest step is reached.
        """
        if not self.made:
            raise ConfigError("nothing can be drawn from an empty replay")
        drawn = torch.randint(len(self), (count,), generator=generator, device=self.device)
        return self.take(drawn)

    def take(self, places: Tensor) -> dict[str, Any]:
        """As :meth:`sample`, of the steps at ``places`` (B,): 0 is the oldest step's first row, 1 its second."""
        rows = places % self.rows
        left = min(self.made, self.steps) - 1 - places // self.rows  # steps of the row after this one
        at = (self.made - 1 - left) % self.steps
        first = at * self.rows + rows
        seen, actions = (mapped(lambda one: one.flatten(0, 1)[first], held) for held in (self.seen, self.actions))
        rewards, ended = self.rewards.flatten(), self.ended.flatten()
        last, returns = first, rewards[first]
        discounts = torch.full_like(returns, self.gamma)
        for k in range(1, self.n_step):
            going = ~ended[last] & (left >= k)
            last = torch.where(going, (at + k) % self.steps * self.rows + rows, last)
            returns = torch.where(going, returns + discounts * rewards[last], returns)
            discounts = torch.where(going, discounts * self.gamma, discounts)
        return {
            "seen": seen,
            "actions": actions,
            "returns": returns,
            "following": mapped(lambda one: one.flatten(0, 1)[last], self.following),
            "discounts": discounts * self.kept.flatten()[last],
        }

    def windows(self, count: int, length: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Windows of ``length`` steps of a row, which begin at steps drawn with equal chance, with replacement.

        Returns:
            ``seen`` and ``following`` (L, B, D), ``actions`` (L, B, A), ``rewards`` (L, B), ``kept`` (L, B), and
            ``weights`` (L, B): 1 while the episode in which the window began goes on, then 0. Behind its end the last
            step is repeated.

        Raises:
            ConfigError: nothing was added yet.
        """
        if not self.made:
            raise ConfigError("nothing can be drawn from an empty replay")
        places = torch.randint(len(self), (count,), generator=generator, device=self.device)
        rows = places % self.rows
        left = min(self.made, self.steps) - 1 - places // self.rows  # steps of the row after this one
        at = (self.made - 1 - left) % self.steps
        ended, last = self.ended.flatten(), at * self.rows + rows
        going = torch.ones_like(rows, dtype=torch.bool)
        index, weights = [last], [going]
        for k in range(1, length):
            going = going & ~ended[last] & (left >= k)
            last = torch.where(going, (at + k) % self.steps * self.rows + rows, last)
            index.append(last)
            weights.append(going)
        of = torch.stack(index)
        names = ("seen", "following", "actions", "rewards", "kept")
        found = {name: getattr(self, name).flatten(0, 1)[of] for name in names}
        return {**found, "kept": found["kept"].float(), "weights": torch.stack(weights).float()}

    def state_dict(self) -> dict[str, Any]:
        """What was added and is still there."""
        filled = min(self.made, self.steps)
        return {"made": self.made, **{n: mapped(lambda one: one[:filled], getattr(self, n)) for n in _KEPT}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        self.made = int(state["made"])
        for name in _KEPT:
            mapped(lambda held, kept: held[: len(kept)].copy_(kept), getattr(self, name), state[name])


def drawn_together(
    shares: Sequence[tuple[Replay | None, int]], batches: int, generator: torch.Generator
) -> dict[str, Any]:
    """Several batches (K, B, ...), drawn at once; of each batch so many steps come from each replay.

    Args:
        shares: replays, and steps of a batch from each. One with 0 is not asked.
        batches: K.
        generator: as of :meth:`Replay.sample`.
    """
    parts = []
    for replay, count in shares:
        if replay is not None and count:
            drawn = replay.sample(batches * count, generator)
            parts.append(mapped(lambda one: one.unflatten(0, (batches, count)), drawn))  # noqa: B023
    joined: dict[str, Any] = mapped(lambda *ones: torch.cat(ones, 1), *parts)
    return joined


def replay_bytes(rows: int, steps: int, observations: int | Mapping[str, Tensor], actions: int) -> int:
    """Memory of a :class:`Replay` [bytes]: two observations, an action and a reward of 4 bytes a number, two flags."""
    seen = 4 * observations if isinstance(observations, int) else row_bytes(observations)
    return rows * steps * (2 * seen + 4 * (actions + 1) + 2)


def free_memory(device: torch.device) -> int:
    """Memory that can still be taken on a device [bytes], the file system's cache included; in a container no more than
    its limit leaves."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_free_of_machine(), free_of_group())


def free_of_group(folder: Path = Path("/sys/fs/cgroup")) -> int:
    """What the limit of this process's control group (version 2) leaves [bytes]: what containers are held to."""
    try:
        most, used = ((folder / name).read_text().strip() for name in ("memory.max", "memory.current"))
        cache = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return _UNKNOWN
    given_back = int(cache.get("file", 0)) - int(cache.get("shmem", 0))
    return _UNKNOWN if most == "max" else max(0, int(most) - int(used) + given_back)


def _free_of_machine() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN
