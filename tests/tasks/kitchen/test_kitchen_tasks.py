"""Tasks in a kitchen: where they begin, RoboCasa's rules of success at their edges, rewards, and experts."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import manikin
from manikin.env.registry import task_class
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.kitchen.common import across

# id -> joint positions that do not count, and that do [rad, m, or share of the range where it is said]; the figures are
# those of RoboCasa's code: its tasks of doors, drawers, stove and sink
RULES: dict[str, tuple[tuple[float, ...], tuple[float, ...], bool]] = {
    "KitchenTurnOnStove-v1": ((0.0, 0.349), (0.351, 2.5), False),
    "KitchenTurnOnSinkFaucet-v1": ((0.0, 0.399), (0.401, 1.2), False),
    "KitchenOpenCabinet-v1": ((0.0, 0.89 * math.pi / 2), (0.91 * math.pi / 2,), False),
    "KitchenCloseDrawer-v1": ((1.0, 0.051), (0.049, 0.0), True),
    "KitchenCloseMicrowave-v1": ((0.5, 0.0051), (0.0049, 0.0), True),
}
TASKS = (*RULES, "KitchenTurnOnMicrowave-v1")


def made(task: str, num_envs: int = 1, **options: Any) -> Any:
    options = {"autoreset": "disabled", "terminate": False, "observe": "state_dict", "reward": "dense", **options}
    return manikin.make(task, num_envs, **options)


def put(inner: Any, position: float) -> None:
    """Bring the joint that is meant to a position."""
    h, task = inner.h, inner.task
    number = int(h.target.value[0])
    one, joint = [(m, j) for m, j in targets(inner)][number]
    piece = h.home.mechanism(one)
    q = piece.qpos.clone()
    q[:, piece.joints.index(joint)] = position
    piece.set_qpos(q)
    inner.world.forward()
    assert float(task.joint(h)[0]) == pytest.approx(position, abs=1e-6)


def targets(inner: Any) -> list[tuple[str, str]]:
    """Which joints may be meant: by the task's public words."""
    task, home = inner.task, inner.h.home
    return [
        (one.name, joint) for one in home.apartment.mechanisms if one.kind in task.kinds for joint in task.joints(one)
    ]


@pytest.mark.parametrize("word", RULES)
def test_success_is_robocasas_rule_at_its_edges(word: str) -> None:
    wrong, right, shares = RULES[word]
    env = made(word)
    env.reset(seed=0)
    inner = env.parts()[0].env
    limit = float(inner.task.limit(inner.h)[0])
    for values, expected in ((wrong, False), (right, True)):
        for value in values:
            put(inner, value * limit if shares else value)
            assert bool(inner.task.evaluate(inner.h)["success"][0]) is expected, value
    env.close()


def test_a_microwave_runs_once_its_button_was_pressed_and_counts_when_the_hand_is_away() -> None:
    env = made("KitchenTurnOnMicrowave-v1")
    env.reset(seed=0)
    inner = env.parts()[0].env
    h, task = inner.h, inner.task
    away = h.robot.arm_qpos.clone()
    assert float(task.far(h)[0]) > 0.15
    put(inner, 0.004)
    task.advance(h)
    assert float(h.on.value[0]) == 0  # something else pressed it
    put(inner, 0.0)
    h.robot.set_qpos(h.robot.ik(task.tool(h, task.handle(h), across(0.0), back=0.03)).q.float())
    inner.world.forward()
    assert float(task.far(h)[0]) < 0.05
    for pressed, runs in ((0.0029, 0), (0.0031, 1), (0.0, 1)):  # let go, it runs on
        put(inner, pressed)
        task.advance(h)
        assert float(h.on.value[0]) == runs and not bool(task.evaluate(h)["success"][0])
    h.robot.set_qpos(away)
    inner.world.forward()
    assert float(task.far(h)[0]) > 0.15 and bool(task.evaluate(h)["success"][0])
    env.close()


@pytest.mark.parametrize("word", TASKS)
def test_an_episode_begins_before_the_handle_and_touches_nothing(word: str) -> None:
    env = made(word, 8)
    env.reset(seed=list(range(8)))
    kind = task_class(word)
    for part in env.parts():
        inner = part.env
        h, task = inner.h, inner.task
        assert not task.evaluate(h)["success"].any()
        assert (h.robot.forces.total == 0).all()
        _, data = inner.world.data(0)
        assert not [c for c in data.contact if c.dist < -1e-4]
        low, high = kind.opened
        share = task.joint(h) / task.limit(h)
        assert ((share >= low - 1e-6) & (share <= high + 1e-6)).all()
    env.close()


def test_the_reward_is_its_formula() -> None:
    env = made("KitchenTurnOnStove-v1")
    env.reset(seed=0)
    inner = env.parts()[0].env
    put(inner, 0.2)
    h, task = inner.h, inner.task
    terms = task.reward(h, task.evaluate(h), torch.zeros(1, 1))
    away = float(torch.linalg.vector_norm(task.handle(h) - h.robot.tcp_pos))
    assert float(terms["reach"][0]) == pytest.approx(1 - math.tanh(5 * away), abs=1e-5)
    assert float(terms["move"][0]) == pytest.approx(3 * 0.2 / 0.35, abs=1e-5)
    assert float(terms["success"][0]) == 0
    put(inner, 0.5)
    terms = task.reward(h, task.evaluate(h), torch.zeros(1, 1))
    assert float(sum(terms.values())[0]) == pytest.approx(task.reward_max)
    env.close()


@pytest.mark.parametrize("word", ["KitchenTurnOnMicrowave-v1", "KitchenTurnOnSinkFaucet-v1"])
def test_an_expert_succeeds(word: str) -> None:
    env = made(word, 2)
    env.reset(seed=[0, 4])  # of one kitchen
    expert = WaypointExecutor(env)
    done = torch.zeros(2, dtype=torch.bool)
    for _ in range(120):
        done |= env.step(expert.act())[-1]["success"]
        if done.all():
            break
    env.close()
    assert done.all()


def test_a_robot_that_does_not_drive_is_refused() -> None:
    with pytest.raises(ConfigError, match="base that drives"):
        made("KitchenTurnOnStove-v1", robot="panda", control="joint_delta_pos")
