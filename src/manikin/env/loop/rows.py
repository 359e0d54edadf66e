"""The control step on the CPU: NumPy bookkeeping, rows by number, nothing done that the step does not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.compat.torch import WithoutGradients
from manikin.env import arguments
from manikin.env.loop.base import COUNTERS, Loop, Step
from manikin.env.observe import merge
from manikin.env.task import Episode
from manikin.rng import EpisodeRng

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly

__all__ = ["RowLoop"]


class RowLoop(Loop):
    """See :class:`Loop`."""

    no_grad = WithoutGradients

    def __init__(self, made: Assembly) -> None:
        super().__init__(made)
        n = self.num_envs
        self.seed = np.zeros(n, np.int64)
        self.index = np.full(n, -1, np.int64)
        self.elapsed = np.zeros(n, np.int64)
        self.done = np.zeros(n, bool)
        self.clipped = np.zeros(n, np.int64)
        self.carry = self.controller.start(self.robot)
        self._watched: np.ndarray | None = None
        self._shown: Any = None  # by the last step in which only some rows were watched

    def watch(self, rows: np.ndarray | None) -> None:
        """See :meth:`manikin.env.interface.BatchEnv.watch`."""
        self._watched = rows if self.observer.skips else None
        self._shown = None if self._watched is None else self._shown

    def _observe_watched(self) -> Any:
        """Observe the rows that are watched; the others show again what they showed."""
        assert self._watched is not None
        rows = np.flatnonzero(self._watched).astype(np.int32)
        if self._shown is None or len(rows) == self.num_envs:
            self._shown = self.observer(still=None)
        elif len(rows):
            self.scope.rows = rows
            try:
                part = self.observer(rows, still=None)
            finally:
                self.scope.rows = None
            self._shown = merge(self._shown, part, torch.from_numpy(rows))
        return self._shown

    def reset(self, mask: np.ndarray, seed: Any, index: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        self.options = options
        rows = self.assign(mask, seed, index, self.seed, self.index)
        if len(rows):
            self._start(rows)
        self.started = bool((self.index >= 0).all())
        return self.look()

    def step(self, actions: Any, active: Any) -> Step:
        action, clipped = arguments.actions(actions, self.num_envs, self.controller.card, self.refuse)
        going, begun = self._who_moves(active)
        if clipped is not None:
            self.clipped += clipped
        before = None if going is None else [v.data.clone() for v in self.variables]
        ctrl, carry = self.controller(self.carry, self.robot, action)
        self._write_ctrl(ctrl, going)
        self.dresser.step(going, self.seed, self.index, self.elapsed)
        drive = self.controller.drive(carry, None if going is None else np.flatnonzero(going))
        diverged = self.world.step(self.substeps, going, drive)
        carry = carry if drive is None else drive.carry
        old_carry, self.carry = (
            self.carry,
            carry if going is None else torch.where(_column(going), carry, self.carry),
        )
        still = None if going is None else ~going  # rows that did not move
        if diverged is not None:
            still = diverged if still is None else diverged | still
            before = before or [v.data.clone() for v in self.variables]
        self.task.advance(self.h)
        if self.scope.moved is not None:
            self.scope.rows, self.scope.moved = self.scope.moved, None
            self._begin_control(self.scope.rows)
            self.scope.rows = None
        if still is not None and before is not None:  # they keep their memory
            at = torch.from_numpy(still)
            for variable, value in zip(self.variables, before, strict=True):
                variable.data[at] = value[at]
            if diverged is not None:
                self.carry = torch.where(_column(diverged), old_carry, self.carry)
        self.elapsed += 1 if going is None else going

        ev = self.task.evaluate(self.h)
        reward, terms = self.reward(ev, action)
        success, fail = ev["success"], ev.get("fail")
        ended = (success if fail is None else success | fail).numpy() if self.terminates else np.zeros_like(self.done)
        over = self.elapsed >= self.horizon
        if still is not None:
            reward[torch.from_numpy(still)] = 0.0
            ended, over = ended & ~still, over & ~still
            over = over if diverged is None else over | diverged
        done = ended | over
        info = self.info(ev, terms)
        if begun is not None:
            self._start(begun)
            info = self.info(self.task.evaluate(self.h), terms)
        observation = self.observer(still=still) if self._watched is None else self._observe_watched()
        terminated = torch.from_numpy(ended.copy())
        if np.count_nonzero(done):
            over &= ~ended
            self.done |= done
            if self.autoreset == "same_step":
                observation, info = self._restart(np.flatnonzero(done).astype(np.int32), done, observation, info, terms)
        return observation, reward, terminated, torch.from_numpy(over), info

    def _start(self, rows: np.ndarray) -> None:
        """Begin an episode in these rows; others are not touched."""
        world, scope = self.world, self.scope
        world.reset(rows)
        seed, index = torch.from_numpy(self.seed[rows]), torch.from_numpy(self.index[rows])
        episode = Episode(rows, index, EpisodeRng(seed, index), self.options, seed)
        scope.rows = rows
        try:
            for variable in self.variables:
                variable.begin()
            with world.together():
                for variation in self.variations:
                    value = episode.draw(f"vary/{variation.part.name}/{variation.what}", variation.how)
                    variation.part.set_property(variation.what, value)
                self.place(episode)
                self.dresser.start(rows, episode.rng)
            if self.settle:
                active = np.zeros(self.num_envs, bool)
                active[rows] = True
                self._begin_control(rows)  # a torque controller holds the arm meanwhile
                world.step(self.settle, active, self.controller.drive(self.carry, rows))
            world.forward(rows)
            self.task.settled(self.h)
            self._begin_control(rows)
        finally:
            scope.rows = None
        self.elapsed[rows], self.done[rows], self.clipped[rows] = 0, False, 0
        self.observer.begin(rows)

    def _begin_control(self, rows: np.ndarray) -> None:
        """Start the controller of these rows, which are in view, from where they are."""
        carry = self.controller.start(self.robot)
        if len(rows) == self.num_envs:
            self.carry = carry
        else:
            self.carry = self.carry.clone()
            self.carry[torch.from_numpy(rows)] = carry

    def _restart(
        self, rows: np.ndarray, done: np.ndarray, observation: Any, info: dict[str, Any], terms: dict[str, Tensor]
    ) -> tuple[Any, dict[str, Any]]:
        """SAME_STEP: keep what ended in ``final_obs`` and ``final_info``, start the next episode in those rows."""
        mask = torch.from_numpy(done.copy())
        self.index[rows] += 1
        self._start(rows)
        if len(rows) == self.num_envs:
            fresh = self.observer()
            new_info = self.info(self.task.evaluate(self.h), terms)
        else:
            at = torch.from_numpy(rows)
            self.scope.rows = rows
            try:
                part, ev = self.observer(rows), self.task.evaluate(self.h)
            finally:
                self.scope.rows = None
            fresh = merge(observation, part, at)
            new_info = self.info({k: merge(info[k], ev[k], at) for k in ev}, terms)
        new_info |= {"final_obs": observation, "_final_obs": mask, "final_info": info, "_final_info": mask}
        return fresh, new_info

    def _who_moves(self, active: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """(N,) rows that step, None for all; and rows that begin instead (NEXT_STEP)."""
        self.check_started()
        going = None if active is None else arguments.mask(active, self.num_envs, "active")
        begun = None
        if np.count_nonzero(self.done):
            if self.autoreset == "next_step":
                begun = np.flatnonzero(self.done if going is None else self.done & going).astype(np.int32)
                going = ~self.done if going is None else going & ~self.done
                self.index[begun] += 1
                begun = begun if len(begun) else None
            elif (self.done if going is None else self.done & going).any():
                raise self.ended_error(np.flatnonzero(self.done).tolist())
        return going, begun

    def _write_ctrl(self, ctrl: Tensor, going: np.ndarray | None) -> None:
        channel = self.robot._ctrl
        if going is None:
            channel.write(ctrl)
        else:
            rows = np.flatnonzero(going)
            channel.write(ctrl[torch.from_numpy(rows)], rows)

    def info(self, ev: dict[str, Tensor], terms: dict[str, Tensor] | None = None) -> dict[str, Any]:
        info: dict[str, Any] = {
            **{name: value.clone() for name, value in ev.items()},
            "elapsed": torch.from_numpy(self.elapsed.copy()),
            "episode_seed": torch.from_numpy(self.seed.copy()),
            "episode_index": torch.from_numpy(self.index.copy()),
            "health": torch.from_numpy(self.world.health().copy()),
            "clipped": torch.from_numpy(self.clipped.copy()),
        }
        if terms:
            info["reward_terms"] = terms
        if self.entropy is not None:
            info["entropy"] = self.entropy
        return info

    def rng(self, rows: np.ndarray | None, present: bool) -> EpisodeRng:
        index = slice(None) if rows is None else rows
        seed, number, step = (torch.from_numpy(a[index].copy()) for a in (self.seed, self.index, self.elapsed))
        rng = EpisodeRng(seed, number)
        return rng.derive(step) if present else rng

    def counters(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: getattr(self, name)[rows].copy() for name in COUNTERS}

    def set_counters(self, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        for name in COUNTERS:
            getattr(self, name)[rows] = values[name]
        self.started = bool((self.index >= 0).all())


def _column(mask: np.ndarray) -> Tensor:
    return torch.from_numpy(mask)[:, None]
