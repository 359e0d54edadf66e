"""How far does what was made for another task, or another level, get at tasks that are not solved?

    python benchmarks/attempts.py --out benchmarks/results/attempts.json      # two minutes of two cores
    python benchmarks/attempts.py --pictures docs/images/failures             # eight moments of an episode of each

On the seeds 0, 1, 2, ... A policy is shown what it was trained with: what the task shows besides is left out. An
episode goes on to its end, also after a fall. The moments are those before an early fall, or, where nothing falls, of
the first seconds of an episode without success.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, parsed
from torch import Tensor

import manikin
from manikin.env.state.provenance import versions
from manikin.eval.stats import wilson
from manikin.policy.shipped import shipped_policies
from manikin.policy.trained import load_trained
from manikin.render import make_renderer, tile, write_png
from manikin.tasks.classic.humanoid import HumanoidWalk

OUT = Path(__file__).parent / "results" / "attempts.json"
ATTEMPTS = {  # task: who tries it, and what is to be said of that
    "TrackVelocityRough-v1": ("ppo-TrackVelocity-v1", "which does not see the ground"),
    "HopperHop-v1": ("ppo-HopperStand-v1", "which only stands"),
    "HumanoidRun-v1": ("expert of HumanoidWalk-v1", "which walks at 1 m/s"),
    **{f"RotateInHand-v1/level={k}": ("ppo-RotateInHand-v1", "which was trained at level 0") for k in (1, 2, 3)},
}
PLAYED: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "dense", "observe": "state"}
EVERY, SHOWN = 8, 8  # control steps between pictures, and how many


def made(name: str, seeds: int = 1) -> manikin.Env:
    """The environment of a task, or of a level of it: ``TASK/level=N``."""
    task, _, level = name.partition("/level=")
    return manikin.make(task, seeds, config={"level": int(level)} if level else None, **PLAYED)


def actions_in(env: manikin.Env, who: str) -> Callable[[Tensor], Tensor]:
    """Actions for what the environment shows."""
    if who.startswith("expert"):
        task: Any = env.task  # HumanoidRun's, which has all that HumanoidWalk's expert asks of its own
        return lambda observed: HumanoidWalk.expert(task, env.h)
    network, about = load_trained(shipped_policies()[who])
    names = list(env.observation_names)
    known = torch.tensor([names.index(name) for name in about["observation"]])

    @torch.no_grad()
    def act(observed: Tensor) -> Tensor:
        return network.distribution(network.scaling(observed[:, known]))[0].clamp(-1.0, 1.0)

    return act


def episodes(task: str, who: str, seeds: int, steps: int) -> tuple[dict[str, Any], Tensor, Tensor]:
    """What came of them; of each row the control step in which it fell, 0 for never, and whether it did well at the
    end."""
    env = made(task, seeds)
    act, fell, began = actions_in(env, who), torch.zeros(seeds, dtype=torch.int64), time.perf_counter()
    paid = torch.zeros(seeds)
    observed, _ = env.reset(seed=0)
    for step in range(min(steps, env.horizon)):
        observed, reward, _, _, info = env.step(act(observed))
        paid += reward
        if "fail" in info:
            fell[(fell == 0) & info["fail"]] = step + 1
    won = info["success"]
    interval = wilson(int(won.sum()), seeds)
    found = {
        "who": who,
        "seeds": seeds,
        "successes": int(won.sum()),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "fell": int((fell > 0).sum()),
        "return": round(float(paid.mean()), 1),
        "horizon": env.horizon,
        "seconds": round(time.perf_counter() - began, 1),
    }
    env.close()
    return found, fell, won


def moments(task: str, who: str, seed: int, last: int) -> np.ndarray:
    """Pictures of an episode up to a control step, side by side."""
    env, renderer, shown = made(task), make_renderer(samples=3, shadows=True), []
    act = actions_in(env, who)
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
    parser.add_argument("--task", nargs="+", default=list(ATTEMPTS), choices=list(ATTEMPTS))
    parser.add_argument("--seeds", type=int, default=64)
    parser.add_argument("--pictures", type=Path, help="folder for TASK.png, eight moments; not of levels")
    args = parsed(parser, OUT)
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": "python benchmarks/attempts.py", "versions": versions()}
    for task in args.task:
        who, said = ATTEMPTS[task]
        found, fell, won = episodes(task, who, 4 if args.quick else args.seeds, 8 if args.quick else 10**9)
        done.setdefault("tasks", {})[task] = {**found, "said": said}
        print(task, json.dumps(found), flush=True)
        if args.pictures and "/" not in task:
            late = fell > EVERY * SHOWN
            row = int(fell.where(late, fell.max() + 1).argmin()) if late.any() else int(won.int().argmin())
            write_png(args.pictures / f"{task}.png", moments(task, who, row, int(fell[row]) or EVERY * SHOWN))
    args.out.write_text(json.dumps(done, indent=2) + "\n")


if __name__ == "__main__":
    main()
