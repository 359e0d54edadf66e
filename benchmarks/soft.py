"""What soft things cost: processor time of one physics step while the expert plays (docs/families.md).

    python benchmarks/soft.py [--task Hang-v1] [--quick]

Processor time of one row on one core and not time on a clock, so that other programs on the machine hardly matter; with
everything that a control step does besides physics. Grains have their own script, grains.py.
"""

from __future__ import annotations

import argparse
import time

from manikin.env.env import Env
from manikin.env.registry import task_class
from manikin.plan.executor import WaypointExecutor

TASKS = ("Hang-v1", "RouteCable-v1", "FoldCloth-v1", "Pinch-v1", "Write-v1")


def measure(task: str, steps: int | None) -> tuple[int, float, int, int]:
    """Degrees of freedom, [ms] of a physics step, most contacts, most iterations of the solver in the first episode, or
    in its first control steps."""
    env = Env(task_class(task), autoreset="disabled", terminate=False, reward="none")
    env.reset(seed=0)
    expert, spent, seen, played = WaypointExecutor(env), 0.0, [0, 0], steps or env.horizon
    for _ in range(played):
        action = expert.act()
        begin = time.process_time()
        env.step(action)
        spent += time.process_time() - begin
        seen = [max(a, int(env.world.read(b).max())) for a, b in zip(seen, ("ncon", "solver_niter"), strict=True)]
    physics = played * env.physics_hz / env.control_hz
    freedoms = env.scene.model.nv
    env.close()
    return freedoms, 1e3 * spent / physics, seen[0], seen[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it runs")
    parser.add_argument("--task", nargs="+", default=TASKS, help="which tasks")
    options = parser.parse_args()
    print("| task | degrees of freedom, robot included | ms per physics step | most contacts | most iterations |")
    print("|---|---|---|---|---|")
    for task in options.task:
        freedoms, took, contacts, iterations = measure(task, 5 if options.quick else None)
        print(f"| `{task}` | {freedoms} | {took:.2f} | {contacts} | {iterations} |", flush=True)


if __name__ == "__main__":
    main()
