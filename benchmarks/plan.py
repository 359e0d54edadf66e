"""Planning on a cluttered table: success, rates against OMPL alone, and whether what is executed touches anything.

    python benchmarks/plan.py                       # 256 problems, of which 200 are the set; OMPL where it is installed
    python benchmarks/plan.py --out benchmarks/results/plan.json

A Panda stands at a table with 6 to 12 boxes and cylinders and a shelf, all drawn from the problem's number. Start and
goal are TCP poses between and above them, pointing down more or less, reachable and free with a margin of 1 cm. Both
planners get the same joint goals and the same collision model, and shorten what they find. OMPL (RRT-Connect and its
path simplifier) plans one problem after the other on one core, asking MuJoCo through Python; the batched planner plans
all at once on all cores. The batched planner's paths, corners rounded, are then timed within the arm's limits and
driven in the simulator with joint position control; every 10 ms the arm as it is then is checked for contact.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import time

import numpy as np
import torch
from common import arguments, command, write

from manikin.arenas.table import table
from manikin.env.env import Env
from manikin.env.task import Quantity, Task
from manikin.math import quat_from_axis_angle, quat_mul
from manikin.plan.collision import CollisionChecker
from manikin.plan.planner import Plan, Planner
from manikin.plan.timing import time_path
from manikin.rng import EpisodeRng
from manikin.spec.prop import Shape

THINGS, CELLS = 12, (4, 6)
SHELF = (  # two walls and a board, 30 cm high
    Shape(type="box", size=(0.1, 0.01, 0.15), pos=(0, -0.12, 0.15)),
    Shape(type="box", size=(0.1, 0.01, 0.15), pos=(0, 0.12, 0.15)),
    Shape(type="box", size=(0.1, 0.13, 0.01), pos=(0, 0, 0.31)),
)


class Clutter(Task):
    """Things stand about on a table.

    Randomization: 6 to 12 boxes and cylinders of random size in random places, a shelf on one side.
    Success: never; this is a place to plan in.
    """

    id = "Clutter-v0"
    horizon_s = 1000.0
    instruction = "go there"
    robots = ("panda",)
    control_hz = 100.0
    observations = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}

    def scene(self, b):
        table(b)
        handles = {"robot": b.robot(), "shelf": b.part("shelf", SHELF, kind="kinematic", rgba=(0.75, 0.6, 0.4, 1))}
        for k in range(THINGS):
            options = {"kind": "kinematic", "resizable": True, "rgba": (0.25 + 0.05 * k, 0.5, 0.8 - 0.05 * k, 1)}
            if k % 2:
                handles[f"thing{k}"] = b.cylinder(f"thing{k}", size=(0.03, 0.1), **options)
            else:
                handles[f"thing{k}"] = b.box(f"thing{k}", half_size=(0.03, 0.03, 0.1), **options)
        return handles

    def start(self, h, ep):
        rng, n = ep.rng, h.n
        h.robot.set_qpos(h.robot.keyframe())
        cells = rng.permutation("cells", CELLS[0] * CELLS[1])[:, :THINGS]
        x = -0.33 + 0.15 * (cells // CELLS[1]) + rng.uniform("x", -0.02, 0.02, (THINGS,))
        y = -0.40 + 0.16 * (cells % CELLS[1]) + rng.uniform("y", -0.02, 0.02, (THINGS,))
        count = rng.integers("count", 6, THINGS + 1)
        size = rng.uniform("size", shape=(THINGS, 3)) * torch.tensor([0.03, 0.03, 0.1]) + torch.tensor(
            [0.02, 0.02, 0.05]
        )
        turn = rng.uniform("turn", 0.0, torch.pi, (THINGS,))
        up = torch.tensor([0.0, 0.0, 1.0]).expand(n, 3)
        side = 2.0 * rng.integers("side", 0, 2) - 1
        shelf = torch.stack([rng.uniform("shelf", -0.2, 0.15), 0.62 * side, torch.zeros(n)], 1)
        h.shelf.set_pose(shelf)
        for k in range(THINGS):
            part = getattr(h, f"thing{k}")
            part.set_size(size[:, k, 1:] if k % 2 else size[:, k])
            there = (k < count)[:, None]
            at = torch.stack([x[:, k], y[:, k], size[:, k, 2] + 0.001], 1)
            part.set_pose(
                torch.where(there, at, torch.tensor([3.0 + k, 3.0, 0.5])), quat_from_axis_angle(up, turn[:, k])
            )

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": {}}


def poses(rng: EpisodeRng, name: str, tries: int) -> torch.Tensor:
    """Candidates (n, tries, 7): the gripper points down within 0.4 rad, turned any way."""
    n = rng.n
    low, high = torch.tensor([-0.35, -0.5, 0.08]), torch.tensor([0.2, 0.5, 0.35])
    at = low + rng.uniform(f"{name}/at", shape=(tries, 3)) * (high - low)
    yaw = rng.uniform(f"{name}/yaw", -torch.pi, torch.pi, (tries,)).reshape(-1)
    tilt = rng.uniform(f"{name}/tilt", -0.4, 0.4, (tries,)).reshape(-1)
    axes = torch.eye(3)
    turn = quat_from_axis_angle(axes[2].expand(n * tries, 3), yaw)
    turn = quat_mul(turn, quat_from_axis_angle(axes[0].expand(n * tries, 3), torch.pi + tilt))
    return torch.cat([at, turn.view(n, tries, 4)], 2)


def problems(planner: Planner, tries: int = 24) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Start (n, 7), goal (n, 7) joints and the goal's pose: the first candidates that are free and 25 cm apart."""
    n = planner.env.num_envs
    rng = EpisodeRng(torch.arange(n), torch.zeros(n, dtype=torch.int64))
    chosen: list[torch.Tensor] = []
    places: list[torch.Tensor] = []
    for name in ("start", "goal"):
        candidates = poses(rng, name, tries)
        q, at = torch.full((n, 7), torch.nan, dtype=torch.float64), torch.zeros(n, 7)
        for k in range(tries):
            rows = np.flatnonzero(q[:, 0].isnan().numpy())
            if not len(rows):
                break
            found = planner.goals(candidates[rows, k], rows=rows, count=6)
            for i, r in enumerate(rows):
                far = not places or float((candidates[r, k, :3] - places[0][r, :3]).norm()) > 0.25
                if len(found.q[i]) and far:
                    q[r], at[r] = found.q[i][0], candidates[r, k]
        assert not q.isnan().any(), f"no free {name} in problems {q[:, 0].isnan().nonzero().ravel().tolist()}"
        chosen.append(q)
        places.append(at)
    return chosen[0], chosen[1], places[1]


def execute(env: Env, trajectory, found: np.ndarray) -> dict[str, float]:
    """Drive all rows at once; contacts of the executed motion, and how far the arm is from where it should be."""
    checker = CollisionChecker(env.world, env.robot, margin=0.0)
    checker.look(np.arange(env.num_envs))
    gains = env.robot.arm.gains
    lag = torch.tensor([kd / kp for kp, kd in zip(gains.kp, gains.kd, strict=True)], dtype=torch.float64)
    dt, worst = 1.0 / env.control_hz, 0.0
    touched = np.zeros(env.num_envs, bool)
    env.robot.set_qpos(trajectory.points[:, 0].float())
    env.world.forward()
    rest = 0.3
    steps = int((float(trajectory.duration.max()) + rest) / dt) + 1
    for k in range(steps):
        q, qd, _ = trajectory.sample((k + 1) * dt)
        env.step(env.towards((q + lag * qd).float()))
        at = env.robot.arm_qpos.double()
        touched |= ~checker.free(at[:, None].numpy(), np.arange(env.num_envs))[:, 0]
        worst = max(worst, float((at - q).abs().max()))
    end = (env.robot.arm_qpos.double() - trajectory.points[:, -1]).abs().amax(1).numpy()
    return {
        "executed": int(found.sum()),
        "touched_anything": int((touched & found).sum()),
        "rows_that_touched": np.flatnonzero(touched & found).tolist(),
        "largest_tracking_error_rad": round(worst, 4),
        "largest_end_error_rad": round(float(end[found].max()), 5),
    }


def times(plan: Plan) -> dict[str, object]:
    """How long the motions take, with rounded corners and stopping at each, and how many are rounded."""
    ours, stops = plan.timed().duration, time_path(plan.paths, plan.limits).duration
    bent = torch.tensor([len(path) > 2 for path in plan.paths])
    interior = [r[1:-1] for r, b in zip(plan.reach, bent.tolist(), strict=True) if b]
    reach = torch.cat(interior) if interior else torch.zeros(0)
    return {
        "motion_s_median": round(float(ours[plan.found].median()), 2),
        "with_corners": int(bent.sum()),
        "corners": len(reach),
        "corners_rounded": int((reach > 0).sum()),
        "with_corners_s_median": round(float(ours[bent].median()), 2),
        "with_corners_s_median_stopping": round(float(stops[bent].median()), 2),
        "with_corners_share_of_stopping_median": round(float((ours[bent] / stops[bent]).median()), 3),
        "with_corners_share_of_stopping_largest": round(float((ours[bent] / stops[bent]).max()), 3),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--problems", type=int, default=256, help="planned for at once; the first 200 are the set")
    parser.add_argument("--singles", type=int, default=32, help="problems also planned one by one")
    parser.add_argument("--note", default="", help="about the machine, for the record")
    options = parser.parse_args()
    if options.quick:
        options.problems, options.singles = 4, 1
    torch.set_num_threads(1)
    n = options.problems
    env = Env(Clutter, num_envs=n, control="joint_pos", autoreset="disabled", reward="none")
    env.reset(seed=0)
    planner = Planner(env)
    start, goal, pose = problems(planner)
    q0 = start.float()
    env.robot.set_qpos(q0)
    env.world.forward()
    report: dict[str, object] = {
        "command": command(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "note": options.note,
        "versions": {p: importlib.metadata.version(p) for p in ("mujoco", "torch", "numpy")},
        "problems": n,
        "margin_m": planner.margin,
        "step_rad": planner.effort.step,
    }
    planner.plan(qpos=start)  # make the checker

    begin, cpu = time.perf_counter(), time.process_time()
    plan = planner.plan(qpos=goal, start=start)
    spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
    found = plan.found.numpy()
    direct = np.array([len(p) == 2 for p in plan.paths]) & found
    report["batched"] = {
        "plans_per_s": round(n / spent, 1),
        "cpu_ms_per_plan": round(1e3 * cpu / n, 1),  # of all cores; what a busy machine does not change much
        "success_of_200": int(found[:200].sum()),
        "success_rate_of_200": round(float(found[:200].mean()), 4),
        "success_rate": round(float(found.mean()), 4),
        "straight_paths": int(direct.sum()),
        "length_rad_median": round(float(plan.length[plan.found].median()), 3),
        "failed": {str(r): plan.reasons[r] for r in np.flatnonzero(~found)},
    }
    print(json.dumps(report["batched"], indent=1))

    begin = time.perf_counter()
    whole = planner.plan(pose=pose, start=start)
    report["batched_from_poses"] = {  # inverse kinematics included, any of its solutions may be the goal
        "plans_per_s": round(n / (time.perf_counter() - begin), 1),
        "success_rate_of_200": round(float(whole.found[:200].float().mean()), 4),
        "length_rad_median": round(float(whole.length[whole.found].median()), 3),
    }
    print(json.dumps(report["batched_from_poses"], indent=1))

    singles = []
    for r in range(min(options.singles, n)):
        begin = time.perf_counter()
        one = planner.plan(qpos=goal[r : r + 1], start=start[r : r + 1], rows=[r])
        singles.append(time.perf_counter() - begin)
        assert torch.equal(one.paths[0], plan.paths[r]), f"problem {r}: alone another path than in the batch"
    report["one_at_a_time"] = {
        "plans_per_s": round(len(singles) / sum(singles), 1),
        "ms_median": round(1e3 * statistics.median(singles), 1),
    }
    planner.plan(qpos=goal, start=start)

    try:
        begin, cpu = time.perf_counter(), time.process_time()
        other = planner.plan(qpos=goal, start=start, method="ompl")
        spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
        both = plan.found & other.found
        report["ompl"] = {
            "version": importlib.metadata.version("ompl"),
            "planner": "RRTConnect, simplifySolution",
            "plans_per_s": round(n / spent, 1),
            "cpu_ms_per_plan": round(1e3 * cpu / n, 1),
            "success_rate_of_200": round(float(other.found[:200].float().mean()), 4),
            "length_rad_median": round(float(other.length[other.found].median()), 3),
            "batched_length_over_ompl_median": round(float((plan.length[both] / other.length[both]).median()), 3),
        }
        report["batched_over_ompl_plans_per_s"] = round(
            report["batched"]["plans_per_s"] / report["ompl"]["plans_per_s"], 2
        )
        print(json.dumps(report["ompl"], indent=1))
    except Exception as error:  # not installed: say so in the record
        if "not installed" not in str(error):
            raise
        report["ompl"] = str(error)

    report["motions"] = {"corner_rad": planner.corner, **times(plan)}
    report["executed"] = execute(env, plan.timed(), found)
    write(report, options.out)


if __name__ == "__main__":
    main()
