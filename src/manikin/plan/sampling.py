"""Planning by trying: sequences of commands are rolled out with the scene's own physics, and the good ones averaged.

This is model predictive path integral control (Williams et al. 2017). What is left of a plan is where the next one
begins.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
from mujoco import rollout
from torch import Tensor

from manikin.rng import EpisodeRng
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles.base import Handle, Variable
from manikin.scene.handles.robot import Robot

__all__ = ["Sampling", "sampling"]

_SETS = 16  # of disturbances, which take turns
_HOLD = 4  # control steps between the disturbances that others lie between
_WIDTHS = (0.3, 1.5)  # [1] of the disturbances, of every other sequence
_GREED = 0.1  # [1] of the median's excess over the best cost: sequences that cost so much more count less by e

Cost = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From positions (s, t, nq), velocities (s, t, nv) and actions (s, t, k) of s sequences of t control steps to what each
of these steps costs (s, t)."""


class Sampling(Handle):
    """Actions that are planned by trying. Made by :func:`sampling`.

    Attributes:
        plan: (n, t, k) what is left of the rows' last plans, with its last step twice.
    """

    def __init__(self, name: str, robot: Robot, plan: Variable, asked: Variable, **how: Any) -> None:
        super().__init__(robot.scope, name)
        self._robot, self.plan, self._asked, self._how = robot, plan, asked, how

    def bind(self, model: mujoco.MjModel) -> None:
        hz, self._model = self._how["control_hz"], copy.copy(model)
        self._steps = max(1, round(1.0 / hz / self._how["timestep"]))
        self._model.opt.timestep = 1.0 / hz / self._steps
        self._rolls = rollout.Rollout(nthread=0)
        self._data = mujoco.MjData(self._model)
        names = [self._robot.prefix + name for name in self._robot.model.actuators]
        self._actuators = [int(model.actuator(name).id) for name in names]
        (steps, size), samples = self.plan.shape, self._how["samples"]
        knots = -(-steps // _HOLD) + 1
        which = torch.arange(_SETS, device="cpu")
        drawn = EpisodeRng(which, torch.zeros_like(which)).normal("plan", shape=(samples, knots, size)).double().numpy()
        at = np.arange(steps) / _HOLD
        before, share = at.astype(int), (at % 1.0)[:, None]
        width = np.resize(_WIDTHS, samples)[:, None, None]
        self._noise = width * (drawn[:, :, before] * (1.0 - share) + drawn[:, :, before + 1] * share)

    def actions(self, rows: Tensor) -> Tensor:
        """(n, k) actions in [-1, 1], planned anew in ``rows`` (n,) bool; 0 in others, whose plans are forgotten."""
        plan, asked = self.plan.value.clone(), self._asked.value.clone()
        found = torch.zeros_like(plan[:, 0])
        for row in range(len(rows)):
            if not bool(rows[row]):
                plan[row], asked[row] = 0.0, 0.0
                continue
            better = torch.from_numpy(self._better(row, plan[row].numpy(force=True), int(asked[row]))).to(plan)
            found[row] = better[0]
            plan[row] = torch.cat([better[1:], better[-1:]])
            asked[row] += 1.0
        self.plan.set(plan)
        self._asked.set(asked)
        return found

    def _better(self, row: int, plan: np.ndarray, asked: int) -> np.ndarray:
        """(t, k) the plan for a row after a round of trying."""
        model, physics = self._model, mujoco.mjtState.mjSTATE_FULLPHYSICS
        now, data = self.scope.world.data(row)
        state = np.zeros(mujoco.mj_stateSize(model, physics))
        mujoco.mj_getState(now, data, state, physics)
        tried = plan + self._noise[asked % _SETS]
        tried[0], tried[1] = plan, 0.0
        tried = np.clip(tried, -1.0, 1.0)
        ctrl = np.zeros((*tried.shape[:2], model.nu))
        ctrl[..., self._actuators] = tried * self._how["scale"]
        ctrl = np.repeat(ctrl, self._steps, axis=1)
        states, _ = self._rolls.rollout([model], [self._data], np.tile(state, (len(tried), 1)), ctrl)
        states = states[:, self._steps - 1 :: self._steps]
        qpos, qvel = states[..., 1 : 1 + model.nq], states[..., 1 + model.nq : 1 + model.nq + model.nv]
        cost = self._how["cost"](qpos, qvel, tried).sum(1)
        good = np.isfinite(cost)
        if not good.any():
            return plan
        excess = cost[good] - cost[good].min()
        weight = np.exp(-excess / max(_GREED * float(np.median(excess)), 1e-9))
        return np.asarray(np.einsum("s,stk->tk", weight / weight.sum(), tried[good]))


def sampling(
    b: SceneBuilder,
    robot: Robot,
    cost: Cost,
    *,
    scale: np.ndarray,
    control_hz: float,
    horizon_s: float,
    samples: int = 48,
    timestep: float = 0.01,
) -> Sampling:
    """What plans a robot's actions by trying.

    Args:
        b: the scene.
        robot: whose actuators act.
        cost: see :data:`Cost`.
        scale: (k,) what an action of 1 commands.
        control_hz: [Hz] of the actions.
        horizon_s: [s] that a plan reaches ahead.
        samples: sequences that are tried in each control step.
        timestep: [s] of the physics in which they are.
    """
    steps = max(2, round(horizon_s * control_hz))
    plan = b.variable(f"plan of {robot.name}", (steps, len(scale)))
    asked = b.variable(f"plans of {robot.name} so far")
    how = {"cost": cost, "scale": scale, "control_hz": control_hz, "samples": samples, "timestep": timestep}
    handle = Sampling(f"sampling of {robot.name}", robot, plan, asked, **how)
    b.handles.append(handle)
    return handle
