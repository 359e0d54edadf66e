"""Checks that a task class follows the rules for all tasks. ``manikin check`` prints the result."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.author import contracts
from manikin.author.under_test import Broken, Expert, TaskUnderTest, WatchedEpisodes, calls_of_a_step
from manikin.env.registry import task_class
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.robots import parse_robots
from manikin.sim.health import describe

__all__ = ["Check", "check_task"]

RANDOM_MAY_SUCCEED, EXPERT_MUST_SUCCEED = 0.05, 0.8
CALLS_BUDGET = 90  # torch calls per control step of the built-in tasks
_NEED_FRAME = {"m", "m/s", "m/s^2", "N", "Nm", "quaternion", "rotvec"}  # vectors of these say nothing without one


@dataclass(frozen=True)
class Check:
    """One promise and whether the task keeps it; ``detail`` is what was found, or what to change."""

    name: str
    passed: bool
    detail: str


def check_task(
    task: str | type[Task],
    *,
    robot: str | None = None,
    control: str | None = None,
    config: Any = None,
    num_envs: int = 8,
    seeds: Sequence[int] = range(64),
    expert: Expert | None = None,
    on_check: Callable[[Check], None] | None = None,
) -> list[Check]:
    """Try every promise on a task. Takes seconds.

    Args:
        task: a class, an id, ``module:Class`` or ``file.py:Class``.
        robot: as in :func:`manikin.make`; default: the task's first for everything, the others must run.
        control: as in :func:`manikin.make`.
        config: as in :func:`manikin.make`.
        num_envs: batch size of most checks, at least 3.
        seeds: episodes, at least ``num_envs``; random actions play all, the expert the first 20.
        expert: executes ``Task.expert``, for example ``lambda env: WaypointExecutor(env).act``; None leaves it out.
        on_check: told about each check as soon as it is done.

    Returns:
        One :class:`Check` per promise. When the task does not run at all, the last one says why.

    Raises:
        ConfigError: ``num_envs`` or ``seeds`` is too small.
        UnknownNameError: no such task or robot.
    """
    if num_envs < 3 or len(seeds) < num_envs:
        raise ConfigError(f"a check needs num_envs >= 3 and as many seeds; got {num_envs}, and {len(seeds)} seeds")
    if robot is not None:
        parse_robots(robot)
    trial = TaskUnderTest(
        task_class(task), {"robot": robot, "control": control, "config": config}, num_envs, seeds, expert
    )
    checks = []
    for name, promise in PROMISES.items():
        try:
            check = Check(name, True, promise(trial))
        except Broken as broken:
            check = Check(name, False, str(broken))
        except Exception as error:  # the task's own code may raise anything
            check = Check(name, False, trial.blame(error))
        checks.append(check)
        if on_check is not None:
            on_check(check)
        if promise is _runs and not check.passed:
            break
    return checks


# ---- what the class declares ---------------------------------------------------------------------------------------


def _identity(t: TaskUnderTest) -> str:
    task_id = getattr(t.task, "id", None)
    if not isinstance(task_id, str) or not re.fullmatch(r"[A-Za-z]\w*-v\d+", task_id):
        raise Broken(f"id must be a name with a version, like 'StackBlocks-v1', not {task_id!r}")
    return task_id


def _description(t: TaskUnderTest) -> str:
    if not t.task.instruction.strip():
        raise Broken("instruction is empty: say what the robot is asked to do, like 'put the ball into the bowl'")
    if not (t.task.__doc__ or "").strip() or t.task.__doc__ == Task.__doc__:
        raise Broken(
            "the class has no docstring, from which its page is made; write what to do, Randomization: and Success:"
        )
    return t.task.instruction


def _runs(t: TaskUnderTest) -> str:
    if not getattr(t.task, "horizon_s", 0) > 0:
        raise Broken("horizon_s is missing: give the episode's length in seconds")
    env = t.make()
    env.reset(seed=t.rows)
    flags = env.task.evaluate(env.h)
    for name in dict.fromkeys(("success", *flags)):
        flag = flags.get(name)
        if not isinstance(flag, Tensor) or flag.shape != (t.n,):
            got = tuple(flag.shape) if isinstance(flag, Tensor) else type(flag).__name__
            raise Broken(f"evaluate() must return {name!r} of shape (n,), got {got}: reduce over the other dimensions")
        if name in ("success", "fail") and flag.dtype != torch.bool:
            raise Broken(f"evaluate() must return {name!r} as bool, got {flag.dtype}: compare instead of multiplying")
    for action in t.actions(env, 3):
        env.step(action)
    return f"{t.n} rows, {env.horizon} control steps at {env.control_hz:g} Hz, model {env.scene.hash}"


def _labels(t: TaskUnderTest) -> str:
    labels, env = t.task.labels, t.make()
    env.reset(seed=t.rows)
    flags = {"fail", *env.task.evaluate(env.h)}
    for event in labels.events:
        if event.flag not in flags:
            raise Broken(
                f"event {event.name!r} reads the flag {event.flag!r}, which evaluate() does not return; it returns: "
                f"{', '.join(sorted(flags))}"
            )
    return f"{len(labels.modes)} modes; exactly one holds for each of {labels.check()} kinds of stories"


def _robots(t: TaskUnderTest) -> str:
    words = [t.options["robot"]] if t.options["robot"] else list(t.task.robots)
    for word in words:
        try:
            env = t.make(1, robot=word)
            env.reset(seed=t.rows[0])
            env.step(torch.zeros(1, env.controller.card.size))
        except Exception as error:
            raise Broken(f"does not run with {word!r}, which its robots name: {t.blame(error)}") from error
    return ", ".join(words)


def _layouts(t: TaskUnderTest) -> str:
    layouts = t.task.layouts
    if not layouts:
        return "one"
    seeds = range(2 * len(layouts))
    env, alone = t.whole(len(seeds)), t.whole(1)
    _fits(env.reset(seed=seeds)[0], env.observation_space, "state")
    start = env.state_hash()
    for seed in seeds:
        word = f"layout {layouts[seed % len(layouts)]!r}"
        alone.reset(seed=[seed])
        if alone.state_hash()[0] != start[seed]:
            raise Broken(f"{word} starts differently alone and beside other rows; draw random numbers only from ep.rng")
    for action in t.actions(env, 3, seeds):
        _fits(env.step(action)[0], env.observation_space, "state")
    return ", ".join(layouts)


# ---- what it observes ----------------------------------------------------------------------------------------------


def _spaces(t: TaskUnderTest) -> str:
    for word in ("policy", "state_dict", "state"):
        env = t.make(observe=word)
        _fits(env.reset(seed=t.rows)[0], env.observation_space, word)
        seen, reward, *_ = env.step(t.actions(env, 1)[0])
        _fits(seen, env.observation_space, word)
    if reward.shape != (t.n,) or reward.dtype != torch.float32:
        raise Broken(f"the reward has shape {tuple(reward.shape)} and {reward.dtype}: every term must be (n,) float32")
    return f"{len(env.observation_names)} numbers observed, {env.controller.card.size} numbers of action"


def _fits(seen: Any, space: Any, word: str, name: str = "observation") -> None:
    """Raise unless tensors are float32, finite and of the space's shape."""
    if isinstance(seen, Mapping):
        for key, value in seen.items():
            _fits(value, space[key], word, key)
    elif tuple(seen.shape) != space.shape or seen.dtype != torch.float32:
        raise Broken(
            f"{name} ({word}) has shape {tuple(seen.shape)} and {seen.dtype}, its space {space.shape} and float32: "
            "observe() must return (n, ...) tensors of the same shapes at any time"
        )
    elif not bool(torch.isfinite(seen).all()):
        raise Broken(f"{name} ({word}) is not finite: guard divisions in observe(), set every variable in start()")


def _observations(t: TaskUnderTest) -> str:
    env = t.begun(2)
    seen = env.task.observe(env.h)
    odd = set(seen) - {"policy", "privileged"}
    if odd:
        raise Broken(f"observe() returns the groups {sorted(odd)}; valid groups are 'policy' and 'privileged'")
    named: dict[str, Tensor] = {}
    for group in seen.values():
        for name, value in group.items():
            if name in named:
                raise Broken(f"{name!r} is in both groups of observe(); give each observation its own name")
            named[name] = value
    for name, value in named.items():
        quantity = env.task.observations.get(name)
        if quantity is None:
            raise Broken(f"observe() returns {name!r} undeclared: add to observations {name!r}: Quantity(unit, frame)")
        words = set(re.split(r"[\s,]+", quantity.unit))
        if not quantity.unit or (words & _NEED_FRAME and value[0].numel() > 1 and not quantity.frame):
            raise Broken(f"observations[{name!r}] must say unit and frame, like Quantity('m', 'world')")
    spare = set(env.task.observations) - set(named)
    if spare:
        raise Broken(f"observations declares {sorted(spare)}, which observe() does not return: return or remove them")
    return ", ".join(named)


# ---- whole episodes ------------------------------------------------------------------------------------------------


def _rewards(t: TaskUnderTest) -> str:
    if not t.has_reward:
        return "no dense reward (optional); reward='sparse' is there"
    biggest, runs = t.task.reward_max, {"random actions": t.random_run, "the expert": t.expert_run}
    largest = -float("inf")
    for who, run in runs.items():
        if run is None:
            continue
        infinite = [name for name, finite in run.finite.items() if not finite]
        if infinite:
            raise Broken(f"the reward term {infinite[0]!r} is not finite under {who}: guard divisions and logarithms")
        odd = sorted(set(run.finite) ^ set(t.task.reward_terms))
        if odd:
            raise Broken(f"reward_terms must describe exactly what reward() returns; they differ in {odd}")
        if run.sum_error > 1e-5 * max(1.0, biggest):
            raise Broken(f"the reward is not the sum of its terms (off by {run.sum_error:.2g})")
        if run.largest > biggest * (1 + 1e-5):
            raise Broken(
                f"the reward reached {run.largest:.4g} under {who}, above reward_max = {biggest:g}: bound the terms "
                "(1 - tanh(k d) is at most 1) or declare the true maximum"
            )
        largest = max(largest, run.largest)
    return f"{len(t.task.reward_terms)} terms, finite; the largest sum seen is {largest:.3g} of {biggest:g}"


def _start_unsolved(t: TaskUnderTest) -> str:
    env = t.whole(len(t.seeds))
    _, info = env.reset(seed=t.seeds)
    for name in ("success", "fail"):
        flags = info.get(name)
        if flags is not None and bool(flags.any()):
            bad = [t.seeds[i] for i in torch.nonzero(flags).flatten().tolist()[:5]]
            raise Broken(
                f"{int(flags.sum())} of {len(t.seeds)} episodes begin with {name} (seeds {bad}): place things so that "
                "nothing is decided yet, or ask for more in evaluate()"
            )
    return f"none of {len(t.seeds)} seeds"


def _random_policy(t: TaskUnderTest) -> str:
    run = t.random_run
    if run.health:
        raise Broken(f"random actions break the physics ({describe(run.health)}): raise physics hz or soften contacts")
    wins, of = int(run.succeeded.sum()), len(run.succeeded)
    if wins >= RANDOM_MAY_SUCCEED * of:
        raise Broken(f"random actions succeed in {wins} of {of} episodes; make the success condition stricter")
    return f"succeeds in {wins} of {of}"


def _expert(t: TaskUnderTest) -> str:
    run = t.expert_run
    if run is None:
        return "not tried" if t.has_expert else "none (optional): expert() returns waypoints"
    if run.health:
        raise Broken(f"the expert breaks the physics ({describe(run.health)}); slow its waypoints down")
    wins, of = int(run.succeeded.sum()), len(run.succeeded)
    if wins < EXPERT_MUST_SUCCEED * of:
        failed = [s for s, won in zip(t.seeds, run.succeeded.tolist(), strict=False) if not won][:5]
        raise Broken(
            f"succeeds in {wins} of {of}, wanted {EXPERT_MUST_SUCCEED:.0%} (fails first on seeds {failed}): change its "
            f"waypoints, or give the episode more time (horizon_s){_where_it_failed(run)}"
        )
    return f"succeeds in {wins} of {of}, after {run.first:.1f} s on average"


def _where_it_failed(run: WatchedEpisodes) -> str:
    """The waypoints that timed out in failed episodes, or at which these ended; "" of an expert without waypoints."""
    failed = [row for row, won in enumerate(run.succeeded.tolist()) if not won and row < len(run.waypoint)]
    first = [run.timeouts[row][0] for row in failed if run.timeouts[row]]
    said = []
    for name, count in Counter(one.waypoint for one in first).most_common(3):
        worst = max((one for one in first if one.waypoint == name), key=lambda one: one.away)
        said.append(
            f"waypoint {name!r} timed out first in {count}, up to {1e3 * worst.away:.1f} mm and {worst.turned:.2g} rad "
            f"from its pose ({worst.limits})"
        )
    ends = Counter(run.waypoint[row] for row in failed if not run.timeouts[row])
    said += [f"{count} ended at {name!r}, with none timed out" for name, count in ends.most_common(3)]
    return f". Of {len(failed)} failures: {'; '.join(said)}" if said else ""


def _cost(t: TaskUnderTest) -> str:
    calls = calls_of_a_step(t.make(1), t.rows[0])
    much = f"; the built-in tasks stay within {CALLS_BUDGET}" if calls.count > CALLS_BUDGET else ""
    return f"{calls.count} torch calls per control step{much}"


PROMISES: dict[str, Callable[[TaskUnderTest], str]] = {
    "id": _identity,
    "description": _description,
    "runs": _runs,
    "labels": _labels,
    "robots": _robots,
    "layouts": _layouts,
    "spaces": _spaces,
    "observations": _observations,
    "start is repeatable": contracts.start_again,
    "start in any row": contracts.start_anywhere,
    "partial reset": contracts.partial_reset,
    "pure functions": contracts.pure_functions,
    "no hidden memory": contracts.no_hidden_memory,
    "nothing borrowed": contracts.nothing_borrowed,
    "any batch size": contracts.any_batch_size,
    "save and load": contracts.save_and_load,
    "autoreset": contracts.autoreset,
    "rewards": _rewards,
    "no success at start": _start_unsolved,
    "random policy": _random_policy,
    "expert": _expert,
    "cost": _cost,
}
