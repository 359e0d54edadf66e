"""The rules about starts and steps. Each function checks one rule on a task. It returns a summary, or raises
:class:`~manikin.author.under_test.Broken` with what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manikin.author.compare import first_difference, owned, unlike
from manikin.author.under_test import Broken, TaskUnderTest
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
    """The observation of all rows now, without starting any."""
    return env.reset(options={"reset_mask": np.zeros(env.num_envs, bool)})[0]


def start_again(t: TaskUnderTest) -> str:
    """The same seed gives the same start in the same row, whatever came before."""
    env = t.begun()
    first = env.save()
    for action in t.actions(env, 3):
        env.step(action)
    env.reset(seed=t.rows)
    different = first_difference(env.scene.model, first, env.save())
    if different:
        raise Broken(
            f"start() gives two different states for one seed ({different}). Draw random numbers only from ep.rng, "
            "not from np.random, torch.rand or random, and read nothing from the previous episode"
        )
    return f"{len({row.tobytes() for row in first.state})} different starts for {t.n} seeds"


def start_anywhere(t: TaskUnderTest) -> str:
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
                    f"({different}). In start() use only ep.rng and the row's own state, not ep.rows, h.n, other rows "
                    "or other randomness"
                )
    return "the same bits in another row, and in batches of 1 and 3"


def partial_reset(t: TaskUnderTest) -> str:
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
                f"restarting row 1 changed row {row} ({different}). In start() write only through handles: they reach "
                "only the starting rows. Do not write to the world or to a variable's data"
            )
    if not torch.equal(seen[others], seen_after[others]):
        raise Broken(
            "restarting row 1 changed what other rows observe: observe() mixes rows, or self stores values between "
            "steps. Compute each row alone, and store memory in b.variable(...)"
        )
    different = first_difference(env.scene.model, t.begun().save(), after, 1, 1)
    if different:
        raise Broken(
            f"a row that restarts alone starts differently from one that restarts with all others ({different}). In "
            "start() use only ep.rng and the row's own state"
        )
    return "one row restarts, the others keep every bit"


def _as_tensors(expert: Any) -> Any:
    """What an expert returned, as tensors to compare."""
    return expert if isinstance(expert, Tensor) else [[vars(w) for w in each_robot(stage)] for stage in expert]


def pure_functions(t: TaskUnderTest) -> str:
    """evaluate, observe, reward and expert only read."""
    env = t.begun(4)
    task, h, action = env.task, env.h, torch.zeros(t.n, env.controller.card.size)
    functions: dict[str, Callable[[], Any]] = {"evaluate": lambda: task.evaluate(h), "observe": lambda: task.observe(h)}
    if t.has_reward:
        functions["reward"] = lambda: task.reward(h, task.evaluate(h), action)
    if t.has_expert:
        functions["expert"] = lambda: _as_tensors(task.expert(h))
    for name, function in functions.items():
        env.world.forward()  # a write that an earlier call made shows when it is made again from here
        before = env.save()
        first = owned(function())
        different = first_difference(env.scene.model, before, env.save())
        if different:
            raise Broken(
                f"{name}() changes {different}. It must only read; write in advance(), and store memory in "
                "b.variable(...)"
            )
        changed = unlike(first, function())
        if changed:
            raise Broken(
                f"{name}() returns a different {changed} in a second call. It must only read, and draw no random "
                "numbers"
            )
    return ", ".join(functions)


def no_hidden_memory(t: TaskUnderTest) -> str:
    """The task and its handles store nothing between steps, because it would be neither saved nor reset."""
    env = t.make()
    kept = {"self": owned(vars(env.task)), "h": owned(vars(env.h))}
    env.reset(seed=t.rows)
    for action in t.actions(env, 3):
        env.step(action)
    for owner, now in (("self", vars(env.task)), ("h", vars(env.h))):
        for name, value in now.items():
            if name not in kept[owner] or unlike(kept[owner][name], value):
                raise Broken(
                    f"{owner}.{name} changes during episodes, but it is neither saved nor reset. Declare it in "
                    f'scene() as b.variable("{name.strip("_")}", shape), and use .set(...) and .value'
                )
    return "task and handles do not change after scene()"


def nothing_borrowed(t: TaskUnderTest) -> str:
    """No tensor from a handle is used after its step."""
    plain, poisoned = t.begun(), t.begun(poison=True)
    for k, action in enumerate(t.actions(plain, 12)):
        if k == 6:
            for env in (plain, poisoned):
                env.reset(options={"reset_mask": np.arange(t.n) % 2 == 0})
        results = zip(("observation", "reward"), plain.step(action), poisoned.step(action), strict=False)
        for name, one, two in results:
            if unlike(one, two):
                raise Broken(
                    f"the {name} uses a tensor from a handle after the step it belongs to. Read it again in each "
                    "step, or store a copy in b.variable(...)"
                )
    return "the same with out-of-date tensors overwritten by NaN"


def any_batch_size(t: TaskUnderTest) -> str:
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
                        f"the {name}{_column(env, many[rows], few)} differs between batches of {len(rows)} and {t.n} "
                        f"rows (step {k + 1}). Do not mix rows; use manikin.math.atan2, integer powers, and no "
                        "sigmoid"
                    )
    return f"the same bits in batches of 1, 3 and {t.n}"


def _column(env: Env, one: Tensor, two: Tensor) -> str:
    """The first column of a flat observation that differs, by name."""
    if one.ndim < 2:
        return ""
    return f" {env.observation_names[int(torch.nonzero((one != two).any(0))[0])]}"


def save_and_load(t: TaskUnderTest) -> str:
    """An episode continues from a snapshot as it did before, in any row."""
    env = t.begun(4)
    moves, snapshot = t.actions(env, 14)[4:], env.save()
    course = [owned(env.step(action)[:4]) for action in moves]
    env.load(snapshot)
    for k, action in enumerate(moves):
        if unlike(course[k], env.step(action)[:4]):
            raise Broken(
                f"{k + 1} steps after load() the episode continues differently: some memory is not saved. Store it in "
                "b.variable(...), not in self or h"
            )
    other = t.make(3)
    other.reset(seed=t.rows[:3])
    seen, _ = other.load(env.save([t.n - 1]))
    if not torch.equal(seen, _seen(env)[-1].expand_as(seen)):
        raise Broken(
            "a row loaded into another row observes something else: some memory is not saved, or rows are mixed. "
            "Store memory in b.variable(...), and compute each row alone"
        )
    return f"{len(moves)} steps after loading have the same bits; loads into other rows"


def autoreset(t: TaskUnderTest) -> str:
    """After autoreset, ``final_obs`` shows the end of the old episode, and the new one starts as after ``reset``."""
    env, plain = t.begun(autoreset="same_step", horizon=3), t.begun(horizon=3)
    for action in t.actions(env, 3):
        seen, *_, info = env.step(action)
        last = plain.step(action)[0]
    if "final_obs" not in info or not bool(info["_final_obs"].all()):
        raise Broken("not every row ended after 3 steps, although horizon=3")
    if not torch.equal(info["final_obs"], last):
        raise Broken(
            "final_obs differs from the last observation of the episode: observe() depends on more than the state. "
            "Store memory in b.variable(...)"
        )
    if not torch.equal(seen, plain.reset()[0]):
        raise Broken(
            "a row starts differently after autoreset than after reset(). In start() use only ep.rng and the row's "
            "own state"
        )
    return "final_obs belongs to the old episode, the observation to the next"
