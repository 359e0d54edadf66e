"""robosuite's benchmark: the return of SAC on nine tasks, with two robots and two controllers.

    python benchmarks/robosuite.py --list                  # the 36 cells, which of them are measured
    python benchmarks/robosuite.py                         # all of them: days of processor time
    python benchmarks/robosuite.py --tasks Lift-v2 Door-v2 --robots panda --controllers osc_pose --seeds 1

Each cell is the command ``manikin train sac``, with the recipe of the task or, where it has none, with Lift's. Episodes
have 500 control steps at 20 Hz, and a step pays 1 at most. ``final`` is the mean return in validation over the last
tenth of the run; the published numbers are those of the last 20 of 500 epochs. ``tested`` is the checkpoint that
validated best, on episodes that nothing has seen. A cell whose recipe is the task's own is a run of
``benchmarks/learning.py``; if that has it (``--learning``), it is taken from there. The file is written after every
cell; what it has already is not run again, unless ``--again``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import arguments, parsed
from learning import OUT as LEARNING
from learning import final_return, train

from manikin.env.state.provenance import versions
from manikin.learn.run.recipe import Recipe, recipe_for
from manikin.machine import machine

OUT = Path(__file__).parent / "results" / "robosuite.json"
STEPS = 1_250_000  # of training, as published: 500 epochs of 2,500
ROBOTS = ("panda", "sawyer")
CONTROLLERS = ("osc_pose", "joint_vel_pid")  # robosuite's OSC_POSE and JOINT_VELOCITY
# mean and standard deviation over 5 seeds of the mean return in epochs 481 to 500, computed from the logs in
# github.com/ARISE-Initiative/robosuite-benchmark; (robot, controller) in the order of CELLS, None: no log
PUBLISHED: dict[str, Sequence[tuple[float, float | None] | None]] = {
    "Lift-v2": ((425, 25), (291, 42), (363, 50), (71, 25)),
    "Stack-v2": ((56, None), (37, None), (43, None), (19, None)),
    "PickPlaceCan-v2": ((23, None), None, (51, None), None),
    "NutAssemblyRound-v4": ((80, None), None, (108, None), None),
    "Door-v2": ((452, 4), (199, 123), (299, 182), (133, 96)),
    "Wipe-v2": ((64, None), (-20, None), (46, None), (-21, None)),
    "TwoArmLift-v3": ((107, None), None, (138, None), None),
    "TwoArmPegInHole-v2": ((442, 42), None, (442, 18), None),
    "TwoArmHandover-v2": ((84, None), None, (64, None), None),
}
TASKS = tuple(PUBLISHED)
TOOLS = {"Wipe-v2": "+eraser"}  # in place of the robot's gripper
CELLS = tuple((robot, control) for robot in ROBOTS for control in CONTROLLERS)


def recipe(task: str, robot: str, control: str, steps: int) -> Recipe:
    """How a cell is trained."""
    made, own = recipe_for("sac", task)
    if not own:
        made = recipe_for("sac", "Lift-v2")[0].replace(task=task, description="")
    robots = ",".join([robot] * 2) if task.startswith("TwoArm") else robot + TOOLS.get(task, "")
    most = min(steps, made.steps) if own else steps  # a task's own recipe may need fewer
    return made.replace(env={"robot": robots, "control": control}, steps=most, minutes=0)


def known(task: str, robot: str, control: str, steps: int, seed: int, learning: Path) -> dict[str, Any] | None:
    """A cell that ``benchmarks/learning.py`` has measured with the same recipe; None where it has not."""
    own = recipe_for("sac", task)
    same = own[1] and robot == ROBOTS[0] and own[0].env["control"] == control and own[0].steps <= steps
    if not same or not learning.exists():
        return None
    runs: dict[str, Any] = json.loads(learning.read_text())["runs"]
    return runs.get(f"sac:{task}", {}).get(str(seed))


def table(result: dict[str, Any]) -> str:
    """A line for each task; in each cell what was measured, and what was published."""
    lines = [f"| task | {' | '.join(f'{robot} `{control}` | published' for robot, control in CELLS)} |"]
    lines.append("|---|" + "---:|---:|" * len(CELLS))
    for task, published in PUBLISHED.items():
        cells = [task]
        for (robot, control), theirs in zip(CELLS, published, strict=True):
            seeds = result.get("cells", {}).get(task, {}).get(robot, {}).get(control, {})
            cells.append("<br>".join(map(_said, seeds.values())) or "not measured")
            cells.append("-" if theirs is None else f"{theirs[0]}" + ("" if theirs[1] is None else f" ± {theirs[1]}"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _said(one: dict[str, Any]) -> str:
    part = "" if one["steps"] >= STEPS else f" after {one['steps'] / 1e6:.2f} M"
    return f"{one['final']:.0f}{part}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS), choices=ROBOTS)
    parser.add_argument("--controllers", nargs="+", default=list(CONTROLLERS), choices=CONTROLLERS)
    parser.add_argument("--steps", type=int, default=STEPS, help="control steps of training")
    parser.add_argument("--seeds", nargs="+", type=int, default=[9351])
    parser.add_argument("--threads", type=int, default=0, help="of the physics; never changes a result")
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    parser.add_argument("--learning", type=Path, default=LEARNING, help="results of benchmarks/learning.py")
    parser.add_argument("--list", action="store_true", help="print the table of cells, and run nothing")
    args = parsed(parser, OUT)
    more = ["--threads", str(args.threads)] if args.threads else []
    if args.quick:
        args.tasks, args.robots, args.controllers, args.seeds = ["Lift-v2"], ["panda"], ["osc_pose"], [1]
        args.steps = 64
        more += ["--set", "env.num_envs=4", "env.horizon=8", "start_steps=32", "hidden=[8]", "critic_hidden=[8]"]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    if args.list:
        print(table(done))
        return
    done |= {"command": "python benchmarks/robosuite.py", "versions": versions()}
    done["machine"] = {**machine(), "cores": os.cpu_count()}
    cells = done.setdefault("cells", {})
    for task in args.tasks:
        for robot in args.robots:
            for control in args.controllers:
                for seed in args.seeds:
                    of = cells.setdefault(task, {}).setdefault(robot, {}).setdefault(control, {})
                    if str(seed) in of and not args.again:
                        continue
                    keep = None if args.keep is None else args.keep / f"{robot}-{control}"
                    given = {"loaded": args.loaded, "keep": keep, "quick": args.quick}
                    found = known(task, robot, control, args.steps, seed, args.learning)
                    if found is None:
                        made = recipe(task, robot, control, args.steps)
                        found = train(f"sac:{task}", seed, more, recipe=made, **given)
                    of[str(seed)] = {**found, "final": final_return(found["curve"])}
                    args.out.write_text(json.dumps(done, indent=1) + "\n")
                    brief = {k: v for k, v in of[str(seed)].items() if k != "curve"}
                    print(task, robot, control, seed, json.dumps(brief), flush=True)


if __name__ == "__main__":
    main()
