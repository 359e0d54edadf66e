"""Planning by trying, beside rollouts on plain MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch

import manikin
from manikin import Episode, SceneBuilder
from manikin.plan.sampling import sampling
from manikin.tasks.classic.cartpole_swing_up import CartpoleSwingUp


def upside_down(qpos: np.ndarray, qvel: np.ndarray, action: np.ndarray) -> np.ndarray:
    """How far the pole is from upright and the cart from the middle, and how fast both are."""
    return np.asarray(
        1.0 - np.cos(qpos[..., 1]) + 0.1 * qpos[..., 0] ** 2 + 0.01 * (qvel**2).sum(-1) + 0.01 * action[..., 0] ** 2
    )


class Planned(CartpoleSwingUp):
    """CartpoleSwingUp whose expert plans, at 25 Hz.

    Randomization: as there.
    Success: as there.
    """

    id = "PlannedSwingUp-v0"
    control_hz = 25.0
    cost: Callable[..., np.ndarray] = staticmethod(upside_down)

    def scene(self, b: SceneBuilder) -> Any:
        made, scale = super().scene(b), np.array([10.0])
        how = {"control_hz": 25.0, "horizon_s": 1.2, "samples": 32}
        self.planner = sampling(b, made.robot, type(self).cost, scale=scale, **how)
        return made

    def start(self, h: Any, ep: Episode) -> None:
        super().start(h, ep)
        h.robot.set_qpos(torch.tensor([0.0]))  # the same in each row

    def expert(self, h: Any) -> torch.Tensor:
        return self.planner.actions(torch.ones(h.n, dtype=torch.bool))


def made(num_envs: int) -> manikin.Env:
    env = manikin.make(Planned, num_envs, autoreset="disabled", reward="none")
    env.reset(seed=list(range(num_envs)))
    return env


def test_it_swings_a_pole_up() -> None:
    env = made(1)
    lowest = 2.0
    for _ in range(125):
        env.step(env.task.expert(env.h))
        lowest = min(lowest, 1.0 - float(torch.cos(env.h.pole.qpos[0, 0])))
    assert lowest < 0.02
    env.close()


def test_a_plan_costs_no_more_than_doing_nothing_on_plain_mujoco() -> None:
    env = made(1)
    for _ in range(3):
        env.task.expert(env.h)  # the state stays; the plan gets better
    model, data = env.model_data(0)
    model.opt.timestep = 0.01
    costs = []
    for plan in (env.task.planner.plan.value[0].numpy(), np.zeros((30, 1))):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = env.world.data(0)[1].qpos, env.world.data(0)[1].qvel
        total = 0.0
        for action in plan:
            data.ctrl[:] = 10.0 * action
            for _ in range(4):
                mujoco.mj_step(model, data)
            total += float(upside_down(data.qpos, data.qvel, action))
        costs.append(total)
    assert costs[0] < 0.95 * costs[1]
    env.close()


def test_a_row_plans_as_it_would_alone_and_forgets_when_it_is_not_asked() -> None:
    three, one = made(3), made(1)
    for _ in range(4):
        together, alone = three.task.expert(three.h), one.task.expert(one.h)
        assert torch.equal(together[:1], alone) and not torch.equal(together[1], together[0])
        three.step(together)
        one.step(alone)
    asked = three.task.planner.actions(torch.tensor([True, False, True]))
    assert asked[1].abs().max() == 0 and asked[0].abs().max() > 0
    assert three.task.planner.actions(torch.tensor([True] * 3)).shape == (3, 1)
    three.close()
    one.close()


def test_what_is_not_finite_is_never_chosen() -> None:
    class Wild(Planned):
        """Planned, with a cost that is no number where the action is large.

        Randomization: as there.
        Success: as there.
        """

        id = "WildSwingUp-v0"

        @staticmethod
        def cost(qpos: np.ndarray, qvel: np.ndarray, action: np.ndarray) -> np.ndarray:
            return np.where(np.abs(action[..., 0]) > 0.5, np.nan, upside_down(qpos, qvel, action))

    env = manikin.make(Wild, 1, autoreset="disabled", reward="none")
    env.reset(seed=0)
    for _ in range(3):
        action = env.task.expert(env.h)
        assert action.isfinite().all() and action.abs().max() <= 0.5
        env.step(action)
    env.close()


def test_the_hopper_gets_up_and_stands() -> None:
    env = manikin.make("HopperStand-v1", 1, autoreset="disabled", reward="dense")
    env.reset(seed=2)
    paid = 0.0
    for _ in range(60):
        action = env.task.expert(env.h).clamp(-1, 1)
        paid += float(env.step(action)[1])
    assert env.task.evaluate(env.h)["success"].item() and paid > 35
    env.close()
