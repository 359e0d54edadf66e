"""Does MuJoCo Warp do what the CPU does? Every task, with its controllers, on both worlds.

    python benchmarks/parity.py                                        # all tasks; an hour on two cores
    python benchmarks/parity.py --task PickCube-v2 --control all       # one task, all of its controllers
    python benchmarks/parity.py --device cuda                          # a GPU instead of Warp's CPU device
    python docs/devices.py                                             # then: the table of docs/devices.md

What is compared, on the same seeds and with the same actions:

free      the arm's joints after one control step, and over fifty, in rows where nothing has touched the arm yet;
force     constraint forces and contact sensors when both worlds are put into the same state, taken from the expert's
          episode on the CPU: the difference as a share of the largest force in that row (of 1 N, if smaller), its
          median, what 95 of 100 states keep, and the largest; the bound is on the second, since single precision finds
          the direction in which cylinders and meshes press less well;
rows      share of these states in which both have the same number of constraint rows; only there forces are compared,
          since surfaces that just touch in double precision may just not touch in single;
jacobian  of the TCP: from the world's ``cdof`` and ``subtree_com`` against ``mj_jac`` [m, rad per unit];
success   of the task's expert, with Wilson's 95 % intervals. Each rate should lie within the other's interval; where
          one world has no failure at all, a single one in the other would break that, so what has to hold is that the
          95 % interval of the difference on the same seeds (Newcombe, paired) contains 0;
health    bits of all rows of these episodes, counted by kind.

The file is written after every task, so that a run that was stopped goes on where it was, and a run with --seeds 0
--no-forces for the first two columns can be followed by one for the rest.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from common import arguments, command, parsed

import manikin
from manikin.env.registry import task_class, task_family, task_ids
from manikin.env.state.provenance import versions
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.eval.stats import compare_paired, wilson
from manikin.machine import processor
from manikin.plan.executor import WaypointExecutor
from manikin.rng import EpisodeRng
from manikin.robots import arm
from manikin.sim.health import Health
from manikin.spec.action import ActionCard
from manikin.spec.budget import Budget

OUT = Path(__file__).parent / "results" / "parity.json"
PENDING = (
    "CleanSurface-v1",
    "GoogleCloseDrawer-v1",
    "GoogleMoveNear-v1",
    "GoogleOpenDrawer-v1",
    "GooglePickCokeCan-v1",
    "GooglePickObject-v1",
    "GooglePlaceAppleInDrawer-v1",
    "InsertNISTPeg-v1",
    "OpenCabinetDoor-v1",
    "TactileLock-v1",
    "TactilePeg-v1",
    "TransportBox-v1",
    "TurnFaucet-v1",
    "WidowXSpoonOnTowel-v2",
    "WidowXStackCube-v2",
)  # tasks that nobody has measured yet; at 500 Hz of physics, or for many layouts, that takes minutes each
ONE_STEP, FREE, FORCE, JACOBIAN = 1e-5, 1e-3, 0.01, 1e-5  # bounds that every entry has to keep
SHARE_FREE, SAME_ROWS = 0.25, 0.6  # of how much at least they have to be true
AMPLE = Budget(nconmax=128, njmax=512)  # where little touches; saves the probe
MOVE = 0.4  # [1] the largest number of an action
LARGEST = {"m": 0.05, "rad": 0.15}  # of a move, where the numbers of an action are metres and radians
MOVED = 1e-5  # [rad or m] an arm that stays where it is says nothing
STATE = ("qpos", "qvel", "act", "qacc_warmstart", "ctrl", "mocap_pos", "mocap_quat")


def make(task: str, control: str | None, device: str, n: int, **more: Any) -> manikin.Env:
    """An environment that ends nothing; ``task`` may be ``ID/LAYOUT``, else of a task with layouts the first."""
    task, _, name = task.partition("/")
    kind = task_class(task)
    options: dict[str, Any] = {"autoreset": "disabled", "terminate": False, "reward": "none", "horizon": 10**6, **more}
    layouts = {str(layout): layout for layout in kind.layouts}
    layout = layouts[name] if name else next(iter(kind.layouts), None)
    chosen = kind(arm=kind.robots[0], layout=layout) if layout else kind
    return manikin.Env(chosen, num_envs=n, control=control, device=device, **options)


def free(task: str, control: str | None, device: str, *, rows: int = 8, steps: int = 50) -> dict[str, Any]:
    """Errors after one control step and over all, while nothing begins or ends to touch in a row."""
    both = [make(task, control, where, rows, budget=AMPLE) for where in ("cpu", device)]
    moves = random_moves(both[0].controller.card, rows, -(-steps // 5))
    for env in both:
        env.reset(seed=0)
    start = both[0].arm_qpos.clone()
    model = both[0].scene.model
    joints = [model.joint(robot.prefix + name) for robot in both[0].robots for name in robot.arm.joints]
    dofs = [int(joint.dofadr[0]) for joint in joints]
    dry = torch.as_tensor(model.dof_frictionloss[dofs])  # the joints' own friction is a constraint, too
    same, compared = torch.ones(rows, dtype=torch.bool), 0
    one = worst = moved = 0.0
    for k in range(steps):
        seen = []
        for env in both:
            health = env.step(moves[k // 5].to(env.device))[4]["health"]
            if bool((health.cpu() & int(Health.OVERFLOW)).any()):
                raise SystemExit(f"{task}: {AMPLE} is too small")
            constraint = env.world.read("qfrc_constraint").cpu()[:, dofs].abs()
            same &= (constraint < dry + 1e-3).all(1)  # [N m]
            seen.append(env.arm_qpos.cpu().clone())
        error = (seen[0] - seen[1]).abs().amax(1)
        if bool(same.any()):
            worst = max(worst, float(error[same].max()))
            moved = max(moved, float((seen[0] - start)[same].abs().max()))
        if k == 0:
            one = worst
        compared += int(same.sum())
    for env in both:
        env.close()
    if moved < MOVED:  # also if nothing was compared
        one = worst = float("nan")  # which keeps no bound
    return {"one_step": one, "free": worst, "share_free": round(compared / (rows * steps), 3)}


def random_moves(card: ActionCard, rows: int, count: int) -> torch.Tensor:
    """(count, rows, A) actions. One that goes on from where the arm is stays within its reach."""
    seeds = torch.arange(rows)
    moves = EpisodeRng(seeds, torch.zeros_like(seeds)).uniform("parity", -MOVE, MOVE, (count, card.size))
    for k, dim in enumerate(card.dims):
        if dim.reference != "absolute" and MOVE * dim.scale > LARGEST.get(dim.unit, math.inf):
            moves[..., k] *= LARGEST[dim.unit] / (MOVE * dim.scale)
    return moves.transpose(0, 1)


def touching(task: str, control: str | None, device: str, *, rows: int = 8, every: int = 7) -> dict[str, Any]:
    """Forces, constraint rows and Jacobians in states of the expert's episode, the same on both worlds."""
    cpu, other = (make(task, control, where, rows) for where in ("cpu", device))
    for env in (cpu, other):
        env.reset(seed=0)
    expert = WaypointExecutor(cpu)
    forces: list[float] = []
    jacobian, equal, count = 0.0, 0, 0
    with torch.no_grad():
        for k in range(round(cpu.task.horizon_s * cpu.control_hz)):
            cpu.step(expert.act())
            if k % every:
                continue
            state = {f: cpu.world.read(f).clone() for f in STATE if cpu.world.read(f).numel()}
            for env in (cpu, other):
                for field, value in state.items():
                    env.world.write(field, value.to(env.device))
                env.world.forward()
            a, b = (env.world.read("nefc").cpu().ravel() for env in (cpu, other))
            alike = a == b
            equal, count = equal + int(alike.sum()), count + rows
            for field in ("qfrc_constraint", "sensordata"):
                a, b = (env.world.read(field).cpu()[alike] for env in (cpu, other))
                if a.numel():
                    share = (a - b).abs().amax(1) / a.abs().amax(1).clamp_min(1.0)
                    forces += share.tolist()
            jacobian = max(jacobian, float(np.abs(exact_jacobian(cpu) - world_jacobian(other)[0]).max()))
    for env in (cpu, other):
        env.close()
    shares = [float(share) for share in np.percentile(forces or [0.0], (50, 95, 100))]
    found: dict[str, Any] = dict(zip(("force_median", "force", "force_largest"), shares, strict=True))
    return {**found, "same_rows": round(equal / count, 4), "jacobian": jacobian, "states": count}


def exact_jacobian(env: manikin.Env) -> np.ndarray:
    """(6, nv) Jacobian of row 0's TCP, by MuJoCo in double precision."""
    model, data = env.world.data(0)
    out = np.zeros((6, model.nv))
    body = model.body(env.robot.prefix + env.robot.model.tcp_body).id
    mujoco.mj_jac(model, data, out[:3], out[3:], data.xpos[body], body)
    return out


def world_jacobian(env: manikin.Env) -> np.ndarray:
    """(N, 6, nv) the same from what the world computes: motion of the dofs that carry the TCP, about its place."""
    model, world = env.scene.model, env.world
    body = int(model.body(env.robot.prefix + env.robot.model.tcp_body).id)
    root, at = int(model.body_rootid[body]), body
    carried = np.zeros(model.nv, bool)
    while at:
        first = int(model.body_dofadr[at])
        carried[first : first + int(model.body_dofnum[at])] = first >= 0
        at = int(model.body_parentid[at])
    cdof = world.read("cdof").cpu().numpy().reshape(env.num_envs, model.nv, 6)
    arm_of = world.read("xpos").cpu().numpy().reshape(env.num_envs, -1, 3)[:, body]
    arm_of = arm_of - world.read("subtree_com").cpu().numpy().reshape(env.num_envs, -1, 3)[:, root]
    turn, move = cdof[..., :3], cdof[..., 3:]
    move = move + np.cross(turn, arm_of[:, None])
    return np.concatenate([move, turn], -1).transpose(0, 2, 1) * carried


def play_expert(env: manikin.Env, seeds: int) -> tuple[list[int], list[int]]:
    """Of each of the seeds 0, 1, ... the control step after which the expert had succeeded first, 0 for never, and what
    health said. A batch ends when all of it has succeeded."""
    steps: list[int] = []
    health: list[int] = []
    for first in range(0, seeds, env.num_envs):
        env.reset(seed=first)
        expert = WaypointExecutor(env)
        at, bits = torch.zeros(env.num_envs, dtype=torch.int64), torch.zeros(env.num_envs, dtype=torch.int32)
        for k in range(round(env.task.horizon_s * env.control_hz)):
            info = env.step(expert.act())[4]
            at[(at == 0) & info["success"].cpu()] = k + 1
            bits |= info["health"].cpu()
            if bool((at > 0).all()):
                break
        steps, health = steps + at.tolist(), health + bits.tolist()
    return steps[:seeds], health[:seeds]


def success(task: str, control: str | None, device: str, *, seeds: int = 256, batch: int = 128) -> dict[str, Any]:
    """The expert's successes on both, with intervals, and what health said."""
    result: dict[str, Any] = {"seeds": seeds}
    won: dict[str, list[bool]] = {}
    for name, where in (("cpu", "cpu"), ("warp", device)):
        health: dict[str, int] = {}
        config = {"config": {"trials": "grid"}} if trials_of(task) else {}
        env = make(task, control, where, min(batch, seeds), **config)
        first_success, bits = play_expert(env, seeds)
        won[name] = [step > 0 for step in first_success]
        for flag in Health:
            if flag:
                health[flag.name.lower()] = sum(bool(bit & int(flag)) for bit in bits)
        if where != "cpu":
            result["budget"] = asdict(env.budget)
        env.close()
        wins = sum(won[name])
        interval = wilson(wins, seeds)
        result[name] = {"successes": wins, "low": interval.low, "high": interval.high, "health": health}
    a, b = result["cpu"], result["warp"]
    inside = [x["low"] <= y["successes"] / seeds <= x["high"] for x, y in ((a, b), (b, a))]
    paired = compare_paired(won["cpu"], won["warp"])
    result["difference"] = [paired.difference.low, paired.difference.high]
    result["only_cpu"], result["only_warp"] = paired.only_first, paired.only_second
    return {**result, "within": all(inside)}


def has_expert(task: str, control: str | None) -> bool:
    """Whether the task has one that can be played through this controller."""
    env = make(task, control, "cpu", 1)
    env.reset(seed=0)
    try:
        if type(env.task).expert is not Task.expert:
            WaypointExecutor(env).act()
            return True
    except ConfigError:
        pass
    finally:
        env.close()
    return False


def compare(
    task: str,
    control: str | None,
    device: str,
    *,
    seeds: int = 256,
    rows: int = 8,
    forces: bool = True,
    known: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """All of it for a task with a controller; what is ``known`` is kept."""
    began, entry = time.perf_counter(), dict(known or {})
    entry["control"] = control or task_class(task.partition("/")[0]).control
    if "free" not in entry:
        entry |= free(task, control, device, rows=rows)
    seeds = min(seeds, trials_of(task) or seeds)
    if (forces or seeds) and has_expert(task, control):
        if forces and "force" not in entry:
            entry |= touching(task, control, device, rows=rows)
        if entry.get("success", {}).get("seeds", 0) < seeds:
            entry["success"] = success(task, control, device, seeds=seeds)
    if entry == (known or {}):
        return entry
    spent = time.perf_counter() - began + entry.get("seconds", 0.0)
    return {**entry, "seconds": round(spent, 1)}


def trials_of(task: str) -> int | None:
    """How many different episodes a task of trials has; None of others."""
    return task_class(task.partition("/")[0]).trial_count or None


def broken(entry: dict[str, Any]) -> list[str]:
    """Which bounds an entry does not keep, in words."""
    bounds = {"one_step": ONE_STEP, "free": FREE, "force": FORCE, "jacobian": JACOBIAN}
    out = [f"{k} {entry[k]:.2g} > {most:g}" for k, most in bounds.items() if k in entry and not entry[k] <= most]
    shares = {"share_free": SHARE_FREE, "same_rows": SAME_ROWS}
    out += [f"{k} {entry[k]:.2g} < {least:g}" for k, least in shares.items() if k in entry and not entry[k] >= least]
    rates = entry.get("success")
    if rates and not rates["difference"][0] <= 0 <= rates["difference"][1]:
        out.append(f"success {rates['cpu']['successes']} and {rates['warp']['successes']} of {rates['seeds']}")
    if rates and rates["warp"]["health"] != rates["cpu"]["health"]:
        out.append(f"health {rates['cpu']['health']} and {rates['warp']['health']}")
    return out


def with_layouts(most: int | None = None) -> list[str]:
    """All tasks; one with layouts once for each, as ID/LAYOUT, or for ``most`` of them, evenly apart in their order.
    Robots on feet are left out, which touch the ground all the time, palms on which something lies, soft things, and
    Fetch at home, whose torso rests at its limit. Tests compare them, in tests/tasks/classic, tests/tasks/locomotion,
    tests/tasks/hands, tests/props/soft and tests/tasks/home; of Hang's rope the first steps alone."""
    kinds = {task: task_class(task) for task in task_ids() if task_family(task) not in ("soft", "homes")}
    layouts = {task: kind.layouts for task, kind in kinds.items() if not {"feet", "palm"} & set(kind.robot_needs)}
    chosen = {task: of[:: -(-len(of) // most)] if most and of else of for task, of in layouts.items()}
    return [f"{task}/{layout}" if layout else task for task, of in chosen.items() for layout in of or (None,)]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--task", nargs="+", help="default all")
    parser.add_argument("--control", nargs="+", help="names, or all; default each task's own")
    parser.add_argument("--device", default="warp:cpu")
    parser.add_argument("--seeds", type=int, default=256, help="of the expert's episodes; 0 for none")
    parser.add_argument("--no-forces", action="store_true", help="leave out force, rows and jacobian, the slow half")
    parser.add_argument("--again", action="store_true", help="also what the file has already")
    args, rows = parsed(parser, OUT), 8
    if args.quick:
        args.task, args.control, args.seeds, rows = ["PickCube-v2"], None, 1, 1
    torch.set_num_threads(1)
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    if done.get("device", args.device) != args.device:
        parser.error(f"{args.out} is of {done['device']}; name another file with --out")
    done |= {"command": command(), "device": args.device, "processor": processor(args.device), "versions": versions()}
    entries = done.setdefault("entries", {})
    failed = 0
    for task in args.task or with_layouts():
        kind = task_class(task.partition("/")[0])
        controls = args.control or [kind.control]
        controls = arm(kind.robots[0].partition("+")[0]).controllers if controls == ["all"] else controls
        for control in controls:
            name = f"{task} {control}"
            old = None if args.again else entries.get(name)
            forces = not args.no_forces
            entry = compare(task, control, args.device, seeds=args.seeds, rows=rows, forces=forces, known=old)
            if entry != old:
                entries[name] = entry
                args.out.parent.mkdir(parents=True, exist_ok=True)
                args.out.write_text(json.dumps(done, indent=2) + "\n")
            wrong = broken(entries[name])
            failed += bool(wrong)
            print(f"{name}: {'; '.join(wrong) or 'ok'}", json.dumps(entries[name]), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
