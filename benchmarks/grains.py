"""What grains cost: processor time of one physics step of Pour, by the number of grains (docs/families.md).

    python benchmarks/grains.py [--count 200] [--quick]

Processor time and not time on a clock, so that other programs on the machine hardly matter. ``stands`` is the first
second of the episode, in which the cup stands; ``pours`` is the second from when the expert begins to tip it.
"""

from __future__ import annotations

import argparse
import time

from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.plan.executor import WaypointExecutor


def measure(count: int, seconds: float) -> tuple[float, float, int, int]:
    """[ms] of a physics step while the cup stands and while it pours, most contacts, most iterations of the solver."""
    env = Env(task_class("Pour-v1"), config={"count": count}, autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert, steps = WaypointExecutor(env), round(seconds * env.control_hz)
    physics, spent, seen = env.physics_hz / env.control_hz, [0.0, 0.0], [0, 0]
    left = [steps, steps]
    while sum(left):
        action, pours = expert.act(), expert.waypoint[0] == "pour"
        begin = time.process_time()
        env.step(action)
        took = time.process_time() - begin
        if left[pours]:
            spent[pours], left[pours] = spent[pours] + took, left[pours] - 1
        seen = [max(a, int(env.world.read(b).max())) for a, b in zip(seen, ("ncon", "solver_niter"), strict=True)]
        if bool(env.elapsed >= env.horizon):
            break
    env.close()
    stands, pours_ms = (1e3 * t / steps / physics for t in spent)
    return stands, pours_ms, seen[0], seen[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few grains, to see that it runs")
    parser.add_argument("--count", type=int, nargs="+", default=[200, 500, 1000], help="numbers of grains")
    options = parser.parse_args()
    print("| grains | ms per physics step: stands | pours | most contacts | most iterations |")
    print("|---|---|---|---|---|")
    for count in [20] if options.quick else options.count:
        stands, pours, contacts, iterations = measure(count, 0.2 if options.quick else 1.0)
        print(f"| {count} | {stands:.1f} | {pours:.1f} | {contacts} | {iterations} |", flush=True)


if __name__ == "__main__":
    main()
