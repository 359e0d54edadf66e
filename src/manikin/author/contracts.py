"""Promises about starts and steps. Each function tries one on a task: returns what it found, or raises
:class:`~manikin.author.trial.Broken` with what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.author.compare import first_difference, owned, unlike
from manikin.author.trial import Broken, Trial
from manikin.env.env import Env
from manikin.spec.plan import each_robot

__all__ = [
    "any_batch_size",
    "autoreset",
    "no_hidden_memory",
    "nothing_borrowed",
    "partial_reset",
    "pure_functions",
    "save_and_load",
    "start_again",
    "start_anywhere",
]


def _seen(env: Env) -> Any:
    """What all rows observe now; nothing is started."""
    return env.reset(options={"reset_mask": np.zeros(env.num_envs, bool)})[0]


def start_again(t: Trial) -> str:
    """The same seed gives the same start in the same row, whatever came before."""
    env = t.begun()
    first = env.save()
    for action in t.actions(env, 3):
        env.step(action)
    env.reset(seed=t.rows)
    different = first_difference(env.scene.model, first, env.save())
    if different:
        raise Broken(
            f"start() of the same seed came out differently the second time ({different}): draw from ep.rng, never "
            "from np.random, torch.rand or random, and use nothing from the episode before"
        )
    return f"{len({row.tobytes() for row in first.state})} different starts for {t.n} seeds"


def start_anywhere(t: Trial) -> str:
    """A seed starts the same in any row of any batch."""
    env = t.begun()
    known = env.save()
    for rows in ([0], [2, 0, 1], list(range(t.n))[::-1]):
        other = t.make(len(rows))
        other.reset(seed=[t.rows[r] for r in rows])
        for at, row in enumerate(rows):
            different = first_difference(env.scene.model, known, other.save(), row, at)
            if different:
                raise Broken(
                    f"seed {t.rows[row]} starts differently in row {row} of {t.n} and in row {at} of {len(rows)} "
                    f"({different}): start() may use ep.rng and the row's own state, not ep.rows, h.n, other rows or "
                    "randomness from elsewhere"
                )
    return "the same bits in another row, and in batches of 1 and 3"


def partial_reset(t: Trial) -> str:
    """Restarting one row leaves the others as they are, and starts like a full reset."""
    env = t.begun(3)
    mask = np.arange(t.n) == 1
    before, seen = env.save(), _seen(env)
    seen_after, _ = env.reset(seed=[t.rows[1]], options={"reset_mask": mask})
    after = env.save()
    others = np.flatnonzero(~mask).tolist()
    for row in others:
        different = first_difference(env.scene.model, before, after, row, row)
        if different:
            raise Broken(
                f"restarting row 1 changed row {row} ({different}): in start() set values through handles, which see "
                "only the starting rows; do not write to the world or into a variable's data"
            )
    if not torch.equal(seen[others], seen_after[others]):
        raise Broken(
            "restarting row 1 changed what other rows observe: observe() mixes rows, or memory is kept in self"
        )
    different = first_difference(env.scene.model, t.begun().save(), after, 1, 1)
    if different:
        raise Broken(
            f"a row that restarts alone starts differently than with all ({different}): see 'start in any row'"
        )
    return "one row restarts, the others keep every bit"


def _said(expert: Any) -> Any:
    """What an expert said, as tensors to compare."""
    return expert if isinstance(expert, Tensor) else [[vars(w) for w in each_robot(stage)] for stage in expert]


def pure_functions(t: Trial) -> str:
    """evaluate, observe, reward and expert only look."""
    env = t.begun(4)
    task, h, action = env.task, env.h, torch.zeros(t.n, env.controller.card.size)
    functions: dict[str, Callable[[], Any]] = {"evaluate": lambda: task.evaluate(h), "observe": lambda: task.observe(h)}
    if t.has_reward:
        functions["reward"] = lambda: task.reward(h, task.evaluate(h), action)
    if t.has_expert:
        functions["expert"] = lambda: _said(task.expert(h))
    for name, function in functions.items():
        env.world.forward()  # a write that an earlier call made shows when it is made again from here
        before = env.save()
        first = owned(function())
        different = first_difference(env.scene.model, before, env.save())
        if different:
            raise Broken(f"{name}() changes {different}: it must only look; memory is for advance() and b.variable")
        changed = unlike(first, function())
        if changed:
            raise Broken(f"{name}() gives another {changed} when asked twice: it must only look, and draw no numbers")
    return ", ".join(functions)


def no_hidden_memory(t: Trial) -> str:
    """Nothing is remembered on the task or its handles, where it would be neither saved nor restarted."""
    env = t.make()
    kept = {"self": owned(vars(env.task)), "h": owned(vars(env.h))}
    env.reset(seed=t.rows)
    for action in t.actions(env, 3):
        env.step(action)
    for owner, now in (("self", vars(env.task)), ("h", vars(env.h))):
        for name, value in now.items():
            if name not in kept[owner] or unlike(kept[owner][name], value):
                raise Broken(
                    f"{owner}.{name} changes while episodes run, and is neither saved nor restarted with its row: "
                    f'declare it in scene() as b.variable("{name.strip("_")}", shape) and use .set(...) and .value'
                )
    return "task and handles are as scene() left them"


def nothing_borrowed(t: Trial) -> str:
    """No tensor that was read from a handle is used after its step."""
    plain, poisoned = t.begun(), t.begun(poison=True)
    for k, action in enumerate(t.actions(plain, 12)):
        if k == 6:
            for env in (plain, poisoned):
                env.reset(options={"reset_mask": np.arange(t.n) % 2 == 0})
        results = zip(("observation", "reward"), plain.step(action), poisoned.step(action), strict=False)
        for name, one, two in results:
            if unlike(one, two):
                raise Broken(
                    f"the {name} changes when tensors that are out of date are overwritten: something read from a "
                    "handle is kept beyond its step. Read it again, or keep a copy in b.variable(...)"
                )
    return "the same with out-of-date tensors overwritten by NaN"


def any_batch_size(t: Trial) -> str:
    """Observations and rewards of an episode have the same bits in any batch."""
    env = t.begun()
    moves = t.actions(env, 8)
    course = [env.step(action)[:2] for action in moves]
    for rows in ([1], [2, 0, 1]):
        other = t.make(len(rows))
        other.reset(seed=[t.rows[r] for r in rows])
        for k, whole in enumerate(course):
            for name, many, few in zip(("observation", "reward"), whole, other.step(moves[k][rows]), strict=False):
                if not torch.equal(many[rows], few):
                    raise Broken(
                        f"the {name}{_column(env, many[rows], few)} has other bits in a batch of {len(rows)} than of "
                        f"{t.n} (step {k + 1}): mix no rows; use manikin.math.atan2, whole powers, no sigmoid"
                    )
    return f"the same bits in batches of 1, 3 and {t.n}"


def _column(env: Env, one: Tensor, two: Tensor) -> str:
    """The first column of a flat observation that differs, by name."""
    if one.ndim < 2:
        return ""
    return f" {env.observation_names[int(torch.nonzero((one != two).any(0))[0])]}"


def save_and_load(t: Trial) -> str:
    """From a loaded snapshot the episode goes on as it did, in any row."""
    env = t.begun(4)
    moves, snapshot = t.actions(env, 14)[4:], env.save()
    course = [owned(env.step(action)[:4]) for action in moves]
    env.load(snapshot)
    for k, action in enumerate(moves):
        if unlike(course[k], env.step(action)[:4]):
            raise Broken(
                f"{k + 1} steps after loading a snapshot the episode goes on differently: some memory is not saved. "
                "Keep it in b.variable(...), not in self or h"
            )
    other = t.make(3)
    other.reset(seed=t.rows[:3])
    seen, _ = other.load(env.save([t.n - 1]))
    if not torch.equal(seen, _seen(env)[-1].expand_as(seen)):
        raise Broken(
            "a row loaded into another row observes something else: some memory is not saved, or rows are mixed"
        )
    return f"{len(moves)} steps after loading have the same bits; loads into other rows"


def autoreset(t: Trial) -> str:
    """A row that restarts by itself shows its end in ``final_obs`` and begins as after ``reset``."""
    env, plain = t.begun(autoreset="same_step", horizon=3), t.begun(horizon=3)
    for action in t.actions(env, 3):
        seen, *_, info = env.step(action)
        last = plain.step(action)[0]
    if "final_obs" not in info or not bool(info["_final_obs"].all()):
        raise Broken("not every row ended after 3 steps with horizon=3")
    if not torch.equal(info["final_obs"], last):
        raise Broken("final_obs is not what the episode ended with: observe() depends on more than the state")
    if not torch.equal(seen, plain.reset()[0]):
        raise Broken("a row that restarts by itself starts differently than by reset(): see 'start in any row'")
    return "final_obs is the end of the old episode, the observation the start of the next"
