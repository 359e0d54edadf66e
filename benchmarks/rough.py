"""How far does the policy of flat ground get on rough ground, of which it sees nothing?

    python benchmarks/rough.py --out benchmarks/results/rough.json      # a minute of two cores

``--picture FILE`` also draws eight moments before an early fall, which docs/images/failures/ has.

It is ``ppo-TrackVelocity-v1`` on TrackVelocityRough-v1, on the seeds 0, 1, 2, ... What it was not trained with, the
heights of the ground around it, is left out of what it is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, write
from torch import Tensor

import manikin
from manikin.env.state.provenance import versions
from manikin.eval.stats import wilson
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import load_trained
from manikin.render import make_renderer, tile, write_png

TASK, POLICY = "TrackVelocityRough-v1", "ppo-TrackVelocity-v1"
PLAYED: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "none", "observe": "state"}
EVERY, SHOWN = 8, 8  # control steps between pictures, and how many


def policy_in(env: manikin.Env) -> Callable[[Tensor], Tensor]:
    """Actions for what the environment shows, less what the policy does not know."""
    network, about = load_trained(shipped_policies()[POLICY])
    names = list(env.observation_names)
    known = torch.tensor([names.index(name) for name in about["observation"]])

    @torch.no_grad()
    def act(observed: Tensor) -> Tensor:
        return network.distribution(network.scaling(observed[:, known]))[0].clamp(-1.0, 1.0)

    return act


def episodes(seeds: int, steps: int) -> tuple[dict[str, Any], Tensor]:
    """What came of them, and the control step in which each fell, 0 for never."""
    env = manikin.make(TASK, seeds, **PLAYED)
    act, fell, began = policy_in(env), torch.zeros(seeds, dtype=torch.int64), time.perf_counter()
    observed, _ = env.reset(seed=0)
    for step in range(steps):
        observed, *_, info = env.step(act(observed))
        fell[(fell == 0) & info["fail"]] = step + 1
    won = int(info["success"].sum())
    interval = wilson(won, seeds)
    found = {
        "task": TASK,
        "policy": POLICY,
        "seeds": seeds,
        "successes": won,
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "fell": int((fell > 0).sum()),
        "velocity_error": round(float(info["velocity_error"].mean()), 3),
        "seconds": round(time.perf_counter() - began, 1),
    }
    env.close()
    return found, fell


def moments(seed: int, last: int) -> np.ndarray:
    """Pictures of an episode up to a control step, side by side."""
    env, renderer, shown = manikin.make(TASK, **PLAYED), make_renderer(samples=3, shadows=True), []
    act = policy_in(env)
    observed, _ = env.reset(seed=[seed])
    for step in range(last):
        if (last - step) % EVERY == 0 and last - step <= EVERY * SHOWN:
            shown.append(renderer.rgb(*env.model_data(0), "human_camera", width=320, height=240))
        observed = env.step(act(observed))[0]
    renderer.close()
    env.close()
    return tile(shown, columns=4)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--picture", type=Path, help="PNG file for eight moments before the first fall")
    args = parser.parse_args()
    torch.set_num_threads(1)
    found, fell = episodes(4 if args.quick else args.seeds, 8 if args.quick else 1000)
    late = fell > EVERY * SHOWN
    if args.picture and late.any():
        row = int(fell.where(late, fell.max() + 1).argmin())
        write_png(args.picture, moments(row, int(fell[row])))
    write({"command": "python benchmarks/rough.py", "versions": versions(), **found}, args.out)


if __name__ == "__main__":
    main()
