"""The control step on a Warp device: bookkeeping in tensors, rows by mask, recorded as three CUDA graphs.

1. *move*: controller, physics, health, the task's memory. 2. *judge*: evaluate, reward, observe, what ended.
3. *start*: the next episode in the rows that ended. Between 2 and 3 the host reads four flags, the only time it waits
in a step: whether to start rows at all, which costs a pass of physics and happens in few steps as long as episodes end
together, and whether an action or a row was broken, which is put right call by call. Pictures are made after that, call
by call, since drawing waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from manikin.env import arguments
from manikin.env.loop.base import COUNTERS, Loop, Step
from manikin.env.loop.graph import Graph, owned
from manikin.env.task import Episode
from manikin.errors import SceneError
from manikin.rng import EpisodeRng
from manikin.sim.warp.channel import merged
from manikin.sim.warp.world import WarpWorld

if TYPE_CHECKING:
    from manikin.env.assemble import Assembly

__all__ = ["DeviceLoop", "step_together"]


class DeviceLoop(Loop):
    """See :class:`Loop`. On a Warp device; there it records CUDA graphs unless the options say otherwise."""

    world: WarpWorld
    masked = True

    def __init__(self, made: Assembly) -> None:
        super().__init__(made)
        n, device, graphs = self.num_envs, self.world.device, made.options.graphs
        self.seed, self.index = (torch.full((n,), v, dtype=torch.int64, device=device) for v in (0, -1))
        self.elapsed, self.clipped = (torch.zeros(n, dtype=torch.int64, device=device) for _ in range(2))
        self.done, self._going, self._starting, self._bad, self._wrong, self._still = (
            torch.zeros(n, dtype=torch.bool, device=device) for _ in range(6)
        )
        self._given = torch.zeros(n, self.controller.card.size, device=device)
        self._action = torch.zeros_like(self._given)
        self.carry = self.controller.start(self.robot).clone()
        self._memory = [*(v.data for v in self.variables), self.carry]  # goes back with a row that is put back
        self._before = owned(tuple(self._memory))
        self._absent = torch.zeros_like(self.done)  # which nobody looks at: they move along and never end
        self._undo = [self.elapsed, self.clipped, self.done, self.world.health_bits]
        self._undo_before = owned(tuple(self._undo))
        self._ctrl_before = self.robot.ctrl.clone()
        self._troubles: dict[str, Tensor] = {}  # what went wrong in start -> (N,) bool
        self._some_done = False
        steady, plain = not self.dresser.restless, not self.dresser.active  # looks are drawn on the host
        self._move = Graph(lambda: self._act(None), self.world, record=graphs and steady)
        self._move_some = Graph(lambda: self._act(self._going), self.world, record=graphs and steady)
        self._judge = Graph(self._look_at_step, self.world, record=graphs)
        self._start = Graph(self._begin, self.world, record=graphs and plain)

    @property
    def _pictures(self) -> bool:
        return self.observer.rig is not None

    # ---- what Env calls ----------------------------------------------------------------------------------------------

    def reset(self, mask: np.ndarray, seed: Any, index: Any, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        if options or self.options:
            self._start.forget()  # tasks may choose by them in Python
        self.options = options
        seeds, indices = self.seed.cpu().numpy(), self.index.cpu().numpy()
        self.assign(mask, seed, index, seeds, indices)
        self.seed.copy_(torch.from_numpy(seeds))
        self.index.copy_(torch.from_numpy(indices))
        self.started = bool((indices >= 0).all())
        if not mask.any():
            return self.look()
        self._starting.copy_(torch.from_numpy(mask))
        observation, info = self._begun(self._begin if options else self._start)
        self._raise_troubles()
        self._some_done = bool(self.done.any())
        return observation, info

    def step(self, actions: Any, active: Any) -> Step:
        return step_together([self], [actions], [active])[0]

    def close(self) -> None:
        for graph in (self._move, self._move_some, self._judge, self._start):
            graph.forget()

    def leave_out(self, rows: np.ndarray) -> None:
        """Of the rows in this mask (N,) nobody wants to know anything, until :meth:`leave_out` says otherwise."""
        self._absent.copy_(torch.from_numpy(rows))
        self.done &= ~self._absent

    def _launch(self, going: Tensor | None) -> dict[str, Any]:
        """Move and judge, without waiting for the device."""
        if going is None:
            self._move()
        else:
            self._going.copy_(going)
            self._move_some()
        judged: dict[str, Any] = self._judge()
        return judged

    def _finish(self, out: dict[str, Any], begun: Tensor | None, flags: list[bool]) -> Step:
        """What follows from the flags of a step without actions that are refused."""
        _, bad, trouble, done = flags
        if bad:
            self._put_back(self._bad)
            self._rewind()
            out = self._look_at_step()
        if trouble:
            self._raise_troubles()
        self._some_done |= done
        observation = self.observer(still=self._still) if self._pictures else out["observation"]
        info = self._with_entropy(out["info"])
        if begun is not None:
            self.index += begun
            self._starting.copy_(begun)
            fresh, info = self._restart(out)
            observation = _merged(begun, fresh, observation)
            self._some_done = done or bool(self.done.any())
        if done and self.autoreset == "same_step":
            ended = out["terminated"] | out["truncated"]
            self._starting.copy_(ended)
            fresh, new = self._restart(out)
            new |= {"final_obs": observation, "_final_obs": ended, "final_info": info, "_final_info": ended.clone()}
            observation, info = _merged(ended, fresh, observation), new
            self._some_done = False
        return observation, out["reward"], out["terminated"], out["truncated"], info

    # ---- recorded ----------------------------------------------------------------------------------------------------

    def _act(self, going: Tensor | None) -> None:
        """Controller and physics; rows where ``going`` is False stay as they are."""
        for kept, now in zip((*self._before, *self._undo_before), (*self._memory, *self._undo), strict=True):
            kept.copy_(now)
        self._ctrl_before.copy_(self.robot.ctrl)
        given, finite = self._given, torch.isfinite(self._given)
        self._wrong.copy_(~finite.all(1))
        beyond = finite & (given.abs() > 1)
        if self.refuse:
            self._wrong |= beyond.any(1)
        self.clipped += beyond.sum(1)
        self._action.copy_(torch.where(finite, given, 0.0).clamp_(-1.0, 1.0))
        ctrl, carry = self.controller(self.carry, self.robot, self._action)
        self.robot._ctrl.write(ctrl, going)
        self.dresser.step(going, self.seed, self.index, self.elapsed)
        drive = self.controller.drive(carry, None)
        counts = ~self._absent if going is None else going & ~self._absent
        self._bad.copy_(self.world.advance(self.substeps, drive, counts))
        self.carry.copy_(carry if drive is None else drive.carry)
        self.task.advance(self.h)
        if self.scope.moved is not None:
            moved, self.scope.moved = self.scope.moved, None
            self.carry.copy_(merged(moved, self.controller.start(self.robot), self.carry))
        if going is None:
            self.elapsed += 1
        else:
            self.elapsed += going
            self._put_back(self._bad | ~going)  # without asking whether there are any
        still = self._bad | self._absent
        self._still.copy_(still if going is None else still | ~going)

    def _look_at_step(self) -> dict[str, Any]:
        """What the step came to, the observation, and the four flags that the host reads."""
        ev = self.task.evaluate(self.h)
        reward, terms = self.reward(ev, self._action)
        still, success, fail = self._still, ev["success"], ev.get("fail")
        ended = (success if fail is None else success | fail) if self.terminates else torch.zeros_like(self.done)
        ended = ended & ~still
        over = (((self.elapsed >= self.horizon) & ~still) | self._bad) & ~ended
        observation = None if self._pictures else self.observer(still=still)
        done = ended | over
        self.done |= done
        troubles = torch.stack([self._bad.new_zeros(()), *(t.any() for t in self._troubles.values())]).any()
        return {
            "observation": observation,
            "reward": torch.where(still, 0.0, reward),
            "terminated": ended,
            "truncated": over,
            "info": self.info(ev, terms),
            "terms": terms,
            "flags": torch.stack([self._wrong.any(), self._bad.any(), troubles, done.any()]),
        }

    def _begin(self) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in the rows of ``_starting``, and look at all rows; others are not touched."""
        world, scope, mask = self.world, self.scope, self._starting
        world.reset(mask)
        troubles: dict[str, Tensor] = {}
        rows = np.arange(self.num_envs, dtype=np.int32)
        rng = EpisodeRng(self.seed, self.index)
        episode = Episode(rows, self.index.clone(), rng, self.options, self.seed, troubles)
        scope.mask = mask
        try:
            for variable in self.variables:
                variable.begin()
            with world.together():
                for variation in self.variations:
                    value = episode.draw(f"vary/{variation.part.name}/{variation.what}", variation.how)
                    variation.part.set_property(variation.what, value)
                self.place(episode)
                self.dresser.start(mask, rng)
            if self.settle:
                world.forward(mask)  # a step begins with what the last one computed
                held = self.controller.start(self.robot)  # a torque controller holds the arm meanwhile
                world.step(self.settle, mask, self.controller.drive(held, None))
            world.forward(mask)
            self.task.settled(self.h)
            self.carry.copy_(merged(mask, self.controller.start(self.robot), self.carry))
        finally:
            scope.mask = None
        for message, failed in troubles.items():
            if message not in self._troubles:
                self._troubles[message] = torch.zeros_like(mask)
                self._judge.forget()  # which reads them
            self._troubles[message].copy_(failed & mask)
        for counter in (self.elapsed, self.clipped, self.done):
            counter.masked_fill_(mask, 0)
        self.observer.begin(mask)
        observation = None if self._pictures else self.observer(still=~mask)
        return observation, self.info(self.task.evaluate(self.h))

    # ---- between -----------------------------------------------------------------------------------------------------

    def _take(self, actions: Any) -> None:
        """Put the actions where the graph reads them. On the host they are checked at once; those on the device within
        the step, which is undone when they are refused."""
        card = self.controller.card
        if not isinstance(actions, Tensor):
            actions = np.asarray(actions)
            arguments.actions(actions, self.num_envs, card, self.refuse)
            actions = torch.from_numpy(np.ascontiguousarray(actions, np.float32))
        arguments.action_shape(actions, self.num_envs, card)
        self._given.copy_(actions.detach())

    def _who_moves(self, active: Any) -> tuple[Tensor | None, Tensor | None]:
        """(N,) rows that step, None for all; and rows that begin instead (NEXT_STEP), None for none."""
        self.check_started()
        going = None if active is None else arguments.mask_on(active, self.num_envs, "active", self.done.device)
        if not self._some_done:
            return going, None
        ended = self.done.clone() if going is None else self.done & going
        if self.autoreset == "next_step":
            return ~self.done if going is None else going & ~self.done, ended
        if bool(ended.any()):
            raise self.ended_error(torch.nonzero(self.done)[:, 0].tolist())
        return going, None

    def _restart(self, out: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if self.autoreset == "same_step":
            self.index += self._starting
        observation, info = self._begun(self._start)
        if out["terms"]:
            info["reward_terms"] = out["terms"]
        return observation, info

    def _begun(self, begin: Callable[[], tuple[Any, dict[str, Any]]]) -> tuple[Any, dict[str, Any]]:
        """What is seen once the rows of ``_starting`` have begun."""
        observation, info = begin()
        if self._pictures:
            observation = self.observer(still=~self._starting)
        return observation, self._with_entropy(info)

    def _rewind(self) -> None:
        """The sensors forget what they saw of a step that is undone; pictures were not made yet."""
        if not self._pictures:
            self.observer.rewind()

    def _put_back(self, mask: Tensor) -> None:
        self.world.put_back(mask)
        for now, kept in zip(self._memory, self._before, strict=True):
            now.copy_(merged(mask, kept, now))

    def _take_back(self) -> None:
        """Undo the step: nothing has happened."""
        self._put_back(torch.ones_like(self.done))
        self.robot._ctrl.write(self._ctrl_before)
        for now, kept in zip(self._undo, self._undo_before, strict=True):
            now.copy_(kept)
        self._rewind()

    def _refuse(self) -> None:
        """Raise :class:`ActionError`: what the device refused, said by the host."""
        arguments.actions(self._given.cpu().numpy(), self.num_envs, self.controller.card, self.refuse)

    def _raise_troubles(self) -> None:
        for message, failed in self._troubles.items():
            if bool(failed.any()):
                rows = torch.nonzero(failed)[:, 0].tolist()
                failed.zero_()
                raise SceneError(f"{message}, rows {rows}")

    def info(self, ev: dict[str, Tensor], terms: dict[str, Tensor] | None = None) -> dict[str, Any]:
        info: dict[str, Any] = {
            **owned(ev),
            "elapsed": self.elapsed.clone(),
            "episode_seed": self.seed.clone(),
            "episode_index": self.index.clone(),
            "health": self.world.health_bits.clone(),
            "clipped": self.clipped.clone(),
        }
        if terms:
            info["reward_terms"] = terms
        return info

    def _with_entropy(self, info: dict[str, Any]) -> dict[str, Any]:
        return info if self.entropy is None else {**info, "entropy": self.entropy}

    def look(self, moved: np.ndarray | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().look(moved)
        return observation, self._with_entropy(info)

    def _stood(self, moved: np.ndarray | None) -> dict[str, Any]:
        return {k: torch.from_numpy(v).to(self.done.device) for k, v in super()._stood(moved).items()}

    def rng(self, rows: np.ndarray | None, present: bool) -> EpisodeRng:
        assert rows is None, "on a device all rows are looked at"
        rng = EpisodeRng(self.seed, self.index)
        return rng.derive(self.elapsed) if present else rng

    def counters(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: getattr(self, name).cpu().numpy()[rows].copy() for name in COUNTERS}

    def set_counters(self, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        at = torch.from_numpy(rows).to(self.seed.device)
        for name in COUNTERS:
            target = getattr(self, name)
            target[at] = torch.from_numpy(np.ascontiguousarray(values[name])).to(target)
        self.started, self._some_done = bool((self.index >= 0).all()), bool(self.done.any())


def step_together(loops: Sequence[DeviceLoop], actions: Sequence[Any], actives: Sequence[Any]) -> list[Step]:
    """One control step of several environments on a device, as :meth:`Loop.step` of each: all are launched before the
    host waits, once, for the flags of all.

    Raises:
        ActionError: one of them refuses its actions; then nothing has happened to any.
    """
    movers = []
    for loop, given, active in zip(loops, actions, actives, strict=True):
        loop._take(given)
        movers.append(loop._who_moves(active))
    judged = [loop._launch(going) for loop, (going, _) in zip(loops, movers, strict=True)]
    flags: list[list[bool]] = torch.stack([out["flags"] for out in judged]).tolist()
    wrong = [loop for loop, (refused, *_) in zip(loops, flags, strict=True) if refused]
    if wrong:
        for loop in loops:
            loop._take_back()
        wrong[0]._refuse()
    every = zip(loops, judged, movers, flags, strict=True)
    return [loop._finish(out, begun, said) for loop, out, (_, begun), said in every]


def _merged(mask: Tensor, new: Any, old: Any) -> Any:
    """``new`` where the mask (N,) is True, ``old`` elsewhere; nested dicts alike."""
    if isinstance(new, Mapping):
        return {k: _merged(mask, new[k], old[k]) for k in new}
    return merged(mask, new, old)
