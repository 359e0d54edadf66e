"""Which integrator, at which rate, holds what a gripper holds?

PickCube and PushCube in every setting, every task in its own and in the one before, on the CPU.

    python benchmarks/physics.py                          # all tasks; about an hour on two cores
    python benchmarks/physics.py --task PickCube-v2       # one task
    python docs/physics.py                                # then: the tables of docs/physics.md

What is measured, on the same seeds in every setting:

shake      the expert grasps and lifts; then the arm gets 30 random actions, uniform in [-s, s], the gripper closed.
           Of the rows that held the thing before (each finger pressing), and in which it met nothing but the robot
           while it was held: the share that still hold it, and the median way of the thing in the tool's frame (slip)
           [mm].
           ``met`` is how many met a table, a box or a peg; what they did to the grasp says nothing of the grasp.
push       PushCube: the expert's actions in the reference, played without feedback in the setting. Median difference of
           the cube's way [mm], of the rows that were pushed at least 2 cm.
settle     the thing stands for a second: how deep in the table, median [mm].
grip       force of a finger on the thing while it is held, median [N].
random     rows that diverged in 200 random actions of full size, for each controller.
speed      control steps per second at 256 rows, beside the former setting (``was``) in turns: the median ratio.

How often experts succeed is in benchmarks/experts.py.

The reference is the setting ``1000 Hz discrete``: a step so small that integrators agree. Contact stiffness follows the
step: ``Physics.solref`` of the setting.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import arguments, parsed
from torch import Tensor

import manikin
from manikin.env.registry import task_class, task_ids
from manikin.env.state.provenance import versions
from manikin.math import norm, pose_inv, pose_mul
from manikin.plan.executor import WaypointExecutor
from manikin.rng import EpisodeRng
from manikin.robots import arm
from manikin.scene.handles.grasp import Grasp
from manikin.sim.health import Health
from manikin.spec.physics import Physics

OUT = Path(__file__).parent / "results" / "physics.json"
SOFT = {"solref": (0.01, 1.0)}
SETTINGS: dict[str, dict[str, Any]] = {
    "implicitfast 100 Hz": {"integrator": "implicitfast", "hz": 100, **SOFT},
    "implicitfast 200 Hz": {"integrator": "implicitfast", "hz": 200, **SOFT},
    "implicitfast 500 Hz": {"integrator": "implicitfast", "hz": 500, **SOFT},
    "discrete 40 Hz": {"integrator": "discrete", "hz": 40},
    "discrete 60 Hz": {"integrator": "discrete", "hz": 60},
    "discrete 100 Hz": {"integrator": "discrete", "hz": 100},
    "discrete 200 Hz": {"integrator": "discrete", "hz": 200},
    "discrete 500 Hz": {"integrator": "discrete", "hz": 500},
    "discrete 1000 Hz": {"integrator": "discrete", "hz": 1000},
}
REFERENCE = "discrete 1000 Hz"
SPREADS = (0.2, 0.5, 1.0)
STIFF = ("joint_delta_pos", "osc_pose", "joint_torque")  # of the controllers, tried in every setting


def was(task: str) -> Physics:
    """The task's setting before ``discrete``: 200 Hz, and 500 Hz for the tasks after robosuite."""
    kind = task_class(task)
    hz = 500 if ".robosuite." in kind.__module__ else 200
    impratio = 20 if hz == 500 else kind.physics.impratio
    return Physics(hz=hz, integrator="implicitfast", impratio=impratio, **SOFT)


def setting(task: str, name: str) -> Physics:
    """The task's physics in a setting; its ``impratio`` stays."""
    return Physics(impratio=task_class(task).physics.impratio, **SETTINGS[name])


def make(task: str, physics: Physics, n: int, **more: Any) -> manikin.Env:
    """The task with other physics, in episodes that do not end; of a task with layouts the first."""
    own = task_class(task)
    differs: dict[str, Any] = {"physics": physics}
    if physics != own.physics:
        differs["pads"] = None  # a task's finger pads of their own belong to its own setting
    kind = type(own.__name__, (own,), differs)
    layout = next(iter(kind.layouts), None)
    chosen = kind(arm=kind.robots[0], layout=layout) if layout else kind
    options = {"autoreset": "disabled", "terminate": False, "reward": "none", "horizon": 10**6, **more}
    return manikin.Env(chosen, num_envs=n, **options)


def grasps(env: manikin.Env) -> list[Grasp]:
    """All questions of the scene whether a gripper holds a thing."""
    return [g for value in vars(env.h).values() for g in (value if isinstance(value, list) else [value])
            if isinstance(g, Grasp)]  # fmt: skip


def random_actions(rows: int, size: int, steps: int, spread: float) -> Iterator[Tensor]:
    """(rows, size) uniform in [-spread, spread], the same for every setting."""
    seeds = torch.arange(rows)
    moves = EpisodeRng(seeds, torch.zeros_like(seeds)).uniform("shake", -spread, spread, (steps, size))
    return iter(moves.transpose(0, 1))


def holding(env: manikin.Env, share: float = 0.9, most: int = 80) -> tuple[WaypointExecutor, Grasp] | None:
    """Play the expert until more than ``share`` of rows have held one thing for 8 steps; None where that never is."""
    env.reset(seed=0)
    asked = grasps(env)
    if not asked:
        return None
    expert = WaypointExecutor(env)
    counts = [torch.zeros(env.num_envs) for _ in asked]
    for _ in range(most):
        env.step(expert.act())
        for k, grasp in enumerate(asked):
            counts[k] = (counts[k] + 1) * held(grasp)
            if float((counts[k] >= 8).float().mean()) > share:
                return expert, grasp
    return None


def held(grasp: Grasp) -> Tensor:
    """(n,) bool, each finger presses on the thing, from whatever side; a task's own rule may ask for an angle."""
    return (norm(grasp.force) >= grasp.min_force).all(1)


def in_tool(grasp: Grasp) -> Tensor:
    """(n, 7) where the thing is in the tool's frame."""
    return pose_mul(pose_inv(grasp.robot.tcp_pose), grasp.part.pose)


@contextmanager
def meetings(env: manikin.Env, grasp: Grasp) -> Iterator[Tensor]:
    """(n,) bool, rows in which the thing has touched something that is not of the robot, in any physics step since and
    while the gripper held it; what it fell on does not count."""
    met, lost, step = torch.zeros(env.num_envs, dtype=torch.bool), ~held(grasp), env.world.step
    model, prefix = env.scene.model, grasp.robot.prefix
    thing = int(model.body(grasp.part.name).id)
    own = [body for body in range(model.nbody) if model.body(body).name.startswith(prefix)]

    def look() -> None:
        for row in (~met & ~lost).nonzero()[:, 0].tolist():
            contact = env.world.data(row)[1].contact
            bodies = model.geom_bodyid[contact.geom[contact.dist < 0]]
            met[row] = bool(((bodies == thing).any(1) & ~np.isin(bodies, own).any(1)).any())

    def watched(substeps: int, active: Any = None, before_substep: Any = None) -> Any:
        def before(substep: int) -> None:
            look()
            if before_substep is not None:
                before_substep(substep)

        lost.logical_or_(~held(grasp) & ~met)
        return step(substeps, active, before)

    env.world.step = watched  # type: ignore[method-assign]
    try:
        yield met
    finally:
        env.world.step = step  # type: ignore[method-assign]


def shake(
    task: str, physics: Physics, *, rows: int = 64, steps: int = 30, spreads: Sequence[float] = SPREADS
) -> dict[str, Any]:
    """Shares that are held afterwards and slips, by spread, and the force that held before."""
    out: dict[str, Any] = {}
    for spread in spreads:
        env = make(task, physics, rows)
        found = holding(env) or holding(env, share=0.5)  # where rows hold at different times, those that do
        if found is None:
            env.close()
            return {}
        grasp, card = found[1], env.controller.card
        had, before = held(grasp), in_tool(grasp).clone()
        out["grip_N"] = round(float(norm(grasp.force).mean(1)[had].median()), 3)
        gripper = [k for k, dim in enumerate(card.dims) if dim.name == "gripper"]
        with meetings(env, grasp) as met:
            for action in random_actions(rows, card.size, steps, spread):
                move = action.clone()
                move[:, gripper] = -1.0
                env.step(move)
        free = had & ~met
        slip = 1e3 * norm((in_tool(grasp) - before)[:, :3])[free]
        kept = float(held(grasp)[free].float().mean())
        out[f"{spread:g}"] = {
            "rows": int(free.sum()),
            "met": int((had & met).sum()),
            "kept": round(kept, 3),
            "slip_mm": round(float(slip.median()), 3),
        }
        env.close()
    return out


def push(physics: Physics, reference: Physics, *, rows: int = 64) -> dict[str, Any]:
    """How far the ways of pushed cubes part from the reference's, under the reference's actions."""
    ways, played = [], []
    for use in (reference, physics):
        env = make("PushCube-v2", use, rows)
        env.reset(seed=0)
        expert, start = WaypointExecutor(env), env.h.cube.pos.clone()
        for k in range(round(env.task.horizon_s * env.control_hz)):
            if use is reference and len(ways) == 0:
                played.append(expert.act().clone())
            env.step(played[k])
        ways.append(env.h.cube.pos - start)
        env.close()
    pushed = norm(ways[0]) > 0.02
    apart = 1e3 * norm(ways[1] - ways[0])[pushed]
    return {"rows": int(pushed.sum()), "median_mm": round(float(apart.median()), 3),
            "way_mm": round(1e3 * float(norm(ways[0])[pushed].median()), 1)}  # fmt: skip


def settle(physics: Physics, *, rows: int = 16) -> dict[str, Any]:
    """PickCube's cube after a second on the table: how deep it stands in it."""

    env = make("PickCube-v2", physics, rows)
    env.reset(seed=0)
    for _ in range(round(env.control_hz)):
        env.step(torch.zeros(rows, env.controller.card.size))
    depth = 1e3 * (env.task.config.cube_half_size - env.h.cube.pos[:, 2])
    env.close()
    return {"depth_mm": round(float(depth.median()), 4)}


def random(task: str, physics: Physics, control: str | None, *, rows: int = 64, steps: int = 200) -> int:
    """Rows that diverge under random actions of full size."""
    env = make(task, physics, rows, control=control)
    env.reset(seed=0)
    bad = torch.zeros(rows, dtype=torch.bool)
    for action in random_actions(rows, env.controller.card.size, steps, 1.0):
        bad |= (env.step(action)[4]["health"] & int(Health.DIVERGED)) != 0
    env.close()
    return int(bad.sum())


def speed(task: str, *, rows: int = 256, rounds: int = 7, steps: int = 12) -> dict[str, Any]:
    """Control steps per second in the task's own setting, and over the former one's: medians of rounds in turns."""
    settings = {"was": was(task), "own": task_class(task).physics}
    envs = {name: make(task, physics, rows, reward="dense") for name, physics in settings.items()}
    rates: dict[str, list[float]] = {name: [] for name in envs}
    for turn in range(rounds + 1):  # the first warms up
        for name, env in envs.items():
            env.reset(seed=0)
            moves = list(random_actions(rows, env.controller.card.size, steps, 1.0))
            began = time.perf_counter()
            for move in moves:
                env.step(move)
            if turn:
                rates[name].append(rows * steps / (time.perf_counter() - began))
    for env in envs.values():
        env.close()
    ratios = [own / before for own, before in zip(rates["own"], rates["was"], strict=True)]
    return {
        "steps_per_s": round(statistics.median(rates["own"])),
        "times_was": round(statistics.median(ratios), 2),
        "low": round(min(ratios), 2),
        "high": round(max(ratios), 2),
    }


def controllers(task: str) -> tuple[str, ...]:
    """The controllers of the task's first robot."""
    return arm(task_class(task).robots[0].partition("+")[0].partition(",")[0]).controllers


def described(physics: Physics) -> str:
    """The setting in a few words."""
    return f"{physics.integrator} {physics.hz:g} Hz, solref {physics.solref[0]:g}, impratio {physics.impratio:g}"


def measure(task: str, physics: Physics, *, rows: int, whole: bool) -> dict[str, Any]:
    """What a task does in one setting."""
    kind, out = task_class(task), {"setting": described(physics)}
    if kind.robot_count == 1:
        out |= shake(task, physics, rows=rows)
    if task == "PushCube-v2":
        out["push"] = push(physics, setting(task, REFERENCE), rows=rows)
    if task == "PickCube-v2":
        out["settle"] = settle(physics)
        out["diverged"] = {c: random(task, physics, c, rows=rows) for c in (controllers(task) if whole else STIFF)}
    return out


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", help="default all with the discrete integrator")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args = parsed(parser, OUT)
    names, rounds = list(SETTINGS), 7
    if args.quick:
        args.task, args.rows, names, rounds = ["PickCube-v2"], 2, ["discrete 100 Hz"], 1
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    done |= {"command": f"python benchmarks/physics.py --rows {args.rows}", "versions": versions()}
    done["machine"] = f"{platform.machine()}, {os.cpu_count()} cores"
    entries = done.setdefault("entries", {})
    for task in args.task or task_ids():
        kind = task_class(task)
        if kind.physics.integrator != "discrete":
            continue
        entry = entries.setdefault(task, {})
        todo = {"was": was(task), "own": kind.physics}
        if task in ("PickCube-v2", "PushCube-v2"):
            todo |= {name: setting(task, name) for name in names}
        for name, physics in todo.items():
            if name not in entry or args.again:
                entry[name] = measure(task, physics, rows=args.rows, whole=name == "own")
        if "speed" not in entry or args.again:
            entry["speed"] = speed(task, rounds=rounds)
        args.out.write_text(json.dumps(done, indent=1) + "\n")
        print(task, json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
