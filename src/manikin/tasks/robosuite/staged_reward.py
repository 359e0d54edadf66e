"""The staged reward of PickPlace and NutAssembly: 1 per thing in its place, and the best of four stages otherwise."""

from __future__ import annotations

import torch
from torch import Tensor

from manikin.toolkit import ONE, ZERO, closeness, constant

__all__ = ["TERMS", "staged_reward", "still_near"]

_REACH, _GRASP, _LIFT, _HOVER = 0.1, 0.35, 0.5, 0.7  # what each stage is worth at most
_FAR = torch.tensor(1e3)

TERMS = {
    "done": "1 per thing in its place",
    "stage": "the largest, over things not yet in place, of: reach 0.1 (1 - tanh(10 d)), d from TCP; grasp 0.35 while "
    "both fingers touch one; lift, while grasped, 0.35 to 0.5 as 1 - tanh(15 z), z still to rise; hover, lift plus up "
    "to 0.2 as 1 - tanh(10 d), d to its place from above",
}


def still_near(distance: Tensor) -> Tensor:
    """bool, like ``distance`` [m]: the gripper is too near to have released the thing, 1 - tanh(10 d) >= 0.6."""
    return closeness(distance, 10.0) >= constant(0.6)


def staged_reward(
    done: Tensor, reach: Tensor, held: Tensor, rise: Tensor, away: Tensor, above: Tensor | None = None
) -> dict[str, Tensor]:
    """The reward terms ``done`` and ``stage``, each (n,), of k things.

    Args:
        done: (n, k) bool, whether the thing is in its place.
        reach: (n, k) distance from the TCP [m].
        held: (n, k) bool, whether the gripper holds it.
        rise: (n, k) height that is missing for a complete lift [m].
        away: (n, k) horizontal distance to its place [m].
        above: (n, k) bool, whether it is over its place, where hovering counts from 0.5, held or not. None: nowhere.
    """
    reaching = constant(_REACH) * closeness(torch.where(done, _FAR, reach).amin(1), 10.0)
    grasped = (held & ~done).any(1)
    still = torch.where(done, _FAR, rise.clamp_min(0.0)).amin(1)
    lift = torch.where(grasped, constant(_GRASP) + constant(_LIFT - _GRASP) * closeness(still, 15.0), ZERO)
    base = lift[:, None]
    if above is not None:
        base = torch.where(above, constant(_LIFT), base)
    hover = torch.where(done, ZERO, base + constant(_HOVER - _LIFT) * closeness(away, 10.0)).amax(1)
    best = torch.stack([reaching, grasped * constant(_GRASP), lift, hover], 1).amax(1)
    open_ = ONE - done.all(1).float()
    return {"done": done.sum(1).float(), "stage": best * open_}
