"""SIMPLER's Google Robot at several rates of the physics: does its expert lift the can, does the held can slip?

    python benchmarks/simpler_rate.py                # 25 trials of three orientations; minutes

slip      [mm] how far the can moves in the gripper from its first step 20 mm above its place to the end of the episode;
pushed    [mm] how far it was moved aside before the gripper held it;
settled   [mm] largest distance between where a can has settled and where it has at the first setting.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from common import arguments, command, write
from torch import Tensor

import manikin
from manikin import Physics
from manikin.math import norm, quat_conj, quat_rotate
from manikin.plan.executor import WaypointExecutor
from manikin.tasks.simpler.google_pick_coke_can import GooglePickCokeCan

SETTINGS = ((90.0, 100.0), (513.0, 100.0), (90.0, 10.0))  # rate [Hz], impratio


def measure(hz: float, impratio: float, orientation: str, trials: int, steps: int) -> tuple[dict[str, Any], Tensor]:
    """Figures of one setting, and where the cans had settled (trials, 3) [m]."""
    kind = type("AtRate", (GooglePickCokeCan,), {"physics": Physics(hz=hz, impratio=impratio)})
    config = {"trials": "grid", "orientation": orientation}
    env = manikin.make(kind, num_envs=trials, config=config, autoreset="disabled", reward="none")
    env.reset(seed=list(range(trials)))
    h, rest = env.h, env.h.thing.pos.clone()
    expert, began = WaypointExecutor(env), time.process_time()
    held, lifted = (torch.zeros(trials, dtype=torch.bool) for _ in range(2))
    pushed, before = torch.zeros(trials), torch.zeros(trials, 3)
    for _ in range(steps):
        info = env.step(expert.act())[-1]
        inside = quat_rotate(quat_conj(h.robot.tcp_quat), h.thing.pos - h.robot.tcp_pos)
        first = (h.held.value >= 1) & ~held
        pushed[first] = norm((h.thing.pos - rest)[:, :2])[first]
        high = (h.significant.value >= 1) & ~lifted
        before[high] = inside[high]
        held, lifted = held | first, lifted | high
    good = info["success"] & lifted
    figures: dict[str, Any] = {"hz": hz, "impratio": impratio, "orientation": orientation, "solved": int(good.sum())}
    for name, value in (("slip", norm(inside - before)), ("pushed", pushed)):
        if bool(good.any()):
            figures[name] = [round(1e3 * float(x), 1) for x in (value[good].median(), value[good].max())]
    env.close()
    return {**figures, "cpu_s": round(time.process_time() - began, 1)}, rest


def main() -> None:
    options = arguments(__doc__).parse_args()
    torch.set_num_threads(1)
    trials, steps = (2, 3) if options.quick else (25, 80)
    rows = []
    for orientation in ("horizontal", "vertical", "standing")[: 1 if options.quick else None]:
        at: Tensor | None = None
        for hz, impratio in SETTINGS[: 1 if options.quick else None]:
            figures, rest = measure(hz, impratio, orientation, trials, steps)
            at = rest if at is None else at
            rows.append({**figures, "settled": round(1e3 * float(norm(rest - at).max()), 3)})
    write({"command": command(), "trials": trials, "rows": rows}, options.out)


if __name__ == "__main__":
    main()
