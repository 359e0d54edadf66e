"""Planning: collisions against MuJoCo, paths checked densely, what is executed, and where it is worked out."""

from __future__ import annotations

import inspect
import itertools
import sys
from contextlib import nullcontext

import mujoco
import numpy as np
import pytest
import torch
from torch import Tensor

import manikin
from card import on_card
from manikin.arenas.table import table
from manikin.control.ik import Chain, IkSolver
from manikin.env.env import Env
from manikin.env.task import Quantity, Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.plan.batched import Search
from manikin.plan.collision import CollisionChecker
from manikin.plan.corners import round_corners
from manikin.plan.executor import Planned, WaypointExecutor
from manikin.plan.planner import Planner
from manikin.sim.device import OnDevice
from manikin.spec.plan import Waypoint

META = torch.device("meta")
DOWN = (0.0, 1.0, 0.0, 0.0)
HERE, THERE = (0.0, -0.25, 0.12), (0.0, 0.25, 0.12)


def at(*places: tuple[float, float, float]) -> Tensor:
    return torch.tensor([(*p, *DOWN) for p in places])


class Wall(Task):
    """A wall between two places.

    Randomization: the wall's height and place.
    Success: the TCP is on the other side.
    """

    id = "Wall-v0"
    horizon_s = 8.0
    instruction = "to the other side"
    robots = ("panda",)
    observations = {"tcp_pose": Quantity("m, quaternion wxyz", "world")}
    avoid = True

    def scene(self, b):
        table(b)
        wall = b.box("wall", half_size=(0.2, 0.01, 0.1), kind="kinematic", resizable=True)
        rod = b.box("rod", half_size=(0.015, 0.015, 0.05))
        robot = b.robot()
        return {"robot": robot, "wall": wall, "rod": rod, "hit": b.contact_force(robot, wall)}

    def start(self, h, ep):
        n = h.n
        height = ep.rng.uniform("height", 0.08, 0.14)
        x = ep.rng.uniform("x", -0.05, 0.05)
        h.wall.set_size(torch.stack([torch.full((n,), 0.25), torch.full((n,), 0.015), height], 1))
        h.wall.set_pose(torch.stack([x, torch.zeros(n), height], 1))
        h.rod.set_pose((0.3, 0.5, 0.05))
        h.robot.set_qpos(h.robot.ik(at(HERE).expand(n, 7), h.robot.keyframe().expand(n, 7)).q.float())

    def evaluate(self, h):
        return {"success": (h.robot.tcp_pos - torch.tensor(THERE)).abs().amax(1) < 0.01}

    def observe(self, h):
        return {"policy": {"tcp_pose": h.robot.tcp_pose}, "privileged": {}}

    def expert(self, h):
        return [Waypoint(pose=at(THERE).expand(h.n, 7), gripper=1, avoid=self.avoid)]


@pytest.fixture(scope="module")
def env() -> Env:
    env = Env(Wall, num_envs=5, control="joint_pos", autoreset="disabled", reward="none")
    env.reset(seed=0)
    return env


@pytest.fixture(scope="module")
def planner(env: Env) -> Planner:
    return Planner(env)


# ---- collisions ------------------------------------------------------------------------------------------------------


def reference(env: Env, row: int, margin: float, rod_held: bool = False):
    """Is one configuration free, from MuJoCo on the row's own model: robot against others by mj_geomDistance, the arm
    against itself by mj_collision's contacts."""
    model, data = env.model_data(row)
    model.geom_margin[:] = 0
    names = [model.body(int(b)).name for b in model.geom_bodyid]
    links = {f"robot/link{k}" for k in range(8)}
    collides = (model.geom_contype | model.geom_conaffinity) != 0
    robot = [g for g, n in enumerate(names) if (n.startswith("robot/") or (rod_held and n == "rod")) and collides[g]]
    other = [g for g, n in enumerate(names) if g not in robot and collides[g]]
    static = {g for g in robot if not model.body_weldid[model.geom_bodyid[g]]}
    adr = [int(model.joint(f"robot/joint{k}").qposadr[0]) for k in range(1, 8)]

    def free(q: np.ndarray, rod: np.ndarray | None = None) -> bool:
        data.qpos[adr] = q
        if rod is not None:
            a = int(model.joint("rod").qposadr[0])
            data.qpos[a : a + 7] = rod
        mujoco.mj_forward(model, data)
        for contact in data.contact[: data.ncon]:
            pair = [names[g] for g in contact.geom]
            if all(g in robot for g in contact.geom) and any(n in links for n in pair) and contact.dist < 0:
                return False
        for g in robot:
            for o in other:
                if g in static and not model.body_weldid[model.geom_bodyid[o]]:
                    continue
                if mujoco.mj_geomDistance(model, data, g, o, 0.5, None) < margin:
                    return False
        return True

    return free


@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_checker_says_what_mujoco_says_on_single_configurations(env: Env, margin: float) -> None:
    checker = CollisionChecker(env.world, env.robot, margin=margin)
    rows = np.array([1, 3])
    checker.look(rows)
    limits = env.robot.solver.chain.limits.numpy()
    drawn = torch.rand(2, 40, 7, generator=torch.Generator().manual_seed(1)).double().numpy()
    near = env.robot.arm_qpos[1].double().numpy()
    q = np.clip(near + 1.2 * (2 * drawn - 1), limits[:, 0], limits[:, 1])  # about half of them touch something
    said = checker.free(q, np.arange(2))
    true = np.array(
        [[reference_of(x) for x in q[k]] for k, reference_of in enumerate(reference(env, r, margin) for r in rows)]
    )
    assert 10 < true.sum() < 70
    assert (said == true).all()
    one_by_one = [checker.single(1)(x) for x in q[1]]
    assert one_by_one == said[1].tolist()


def test_touching_names_the_pair_and_the_depth(env: Env) -> None:
    checker = CollisionChecker(env.world, env.robot)
    checker.look(np.array([0]))
    q = env.robot.ik(at(*[(0.0, 0.0, 0.05)] * 5), env.robot.arm_qpos).q[0].numpy()
    one, other, distance = checker.touching(q, 0)[0]
    assert one.startswith("robot/") and other == "wall" and distance < 0
    wall, table_too = env.h.wall, CollisionChecker(env.world, env.robot, ignore=[env.h.wall])
    table_too.look(np.array([0]))
    assert all(pair[1] != wall.name for pair in table_too.touching(q, 0))


def test_checker_refuses_what_cannot_be(env: Env) -> None:
    with pytest.raises(ConfigError, match="margin"):
        CollisionChecker(env.world, env.robot, margin=-0.01)
    with pytest.raises(ConfigError, match="only a dynamic part can be held"):
        CollisionChecker(env.world, env.robot, held=env.h.wall)


# ---- inverse kinematics with a margin --------------------------------------------------------------------------------


def test_goals_are_within_limits_reach_the_pose_and_keep_the_margin(env: Env, planner: Planner) -> None:
    pose = at(*[THERE] * 5)
    goals = planner.goals(pose)
    assert goals.found.all() and goals.reasons == [""] * 5
    chain, base = env.robot.solver.chain, env.robot.base_pose
    for row, q in enumerate(goals.q):
        assert ((q >= chain.limits[:, 0]) & (q <= chain.limits[:, 1])).all()
        torch.testing.assert_close(
            chain.fk(q)[0] + base[:3], pose[row, :3].double().expand(len(q), 3), atol=2e-4, rtol=0
        )
        free = reference(env, row, planner.margin)
        assert all(free(x.numpy()) for x in q)
        away = (q - env.robot.arm_qpos[row]).abs().amax(1)
        assert (away.diff() >= 0).all()  # the nearest first


# ---- paths -----------------------------------------------------------------------------------------------------------


def assert_free(env: Env, paths: list[Tensor], margin: float, rows: list[int]) -> None:
    for row in rows:
        free, path = reference(env, row, margin), paths[row].numpy()
        for a, b in itertools.pairwise(path):
            for share in np.linspace(0, 1, max(2, int(np.abs(b - a).max() / 0.03))):
                assert free(a + share * (b - a)), f"row {row}"


def test_paths_go_round_the_wall_with_the_margin(env: Env, planner: Planner) -> None:
    plan = planner.plan(pose=at(*[THERE] * 5))
    assert plan.found.all(), plan.reasons
    for row, path in enumerate(plan.paths):
        torch.testing.assert_close(path[0], env.robot.arm_qpos[row].double(), atol=1e-6, rtol=0)
        end = env.robot.solver.chain.fk(path[-1:])[0] + env.robot.base_pose[:3]
        torch.testing.assert_close(end[0], torch.tensor(THERE).double(), atol=2e-4, rtol=0)
    near = [q[0] for q in planner.goals(at(*[THERE] * 5)).q]
    straight = [torch.stack([env.robot.arm_qpos[r].double(), q]) for r, q in enumerate(near)]
    with pytest.raises(AssertionError):  # straight on, the arm would touch the wall
        assert_free(env, straight, 0.0, [0, 3])
    # at what was looked at the margin is kept, in between nearly so
    assert_free(env, plan.paths, planner.margin / 2, [0, 3])


def test_what_is_executed_goes_through_corners_without_stopping_and_keeps_the_margin(
    env: Env, planner: Planner
) -> None:
    plan = planner.plan(pose=at(*[THERE] * 5))
    motion = plan.timed()
    t = torch.arange(0, float(motion.duration.max()), 0.02, dtype=torch.float64).expand(5, -1)
    q, qd, _ = motion.sample(t)
    for row in (0, 3):
        assert len(plan.paths[row]) > 2 and (plan.reach[row][1:-1] > 0).all()
        driven = q[row, t[row] < motion.duration[row]]
        assert_free(env, [driven] * 5, planner.margin / 2, [row])
        between = (t[row] > 0.1) & (t[row] < motion.duration[row] - 0.1)
        assert qd[row, between].abs().amax(1).min() > 0.05  # [rad/s]
    stops = Planner(env, corner=0).plan(pose=at(*[THERE] * 5)).timed()
    assert len(plan.paths[2]) == 2  # here it goes straight to another elbow
    assert (motion.duration[[0, 1, 3, 4]] < 0.9 * stops.duration[[0, 1, 3, 4]]).all()
    corner = plan.paths[0][plan.reach[0].argmax()]
    assert 5e-3 < (q[0] - corner).abs().amax(1).min() <= planner.corner


def test_a_corner_is_cut_no_farther_than_there_is_room() -> None:
    class Around:
        """Configurations in a plane; what is inside the square at the corner's inner side is occupied."""

        of_row = 8

        def free(self, q: np.ndarray, which: np.ndarray, mask: np.ndarray) -> np.ndarray:
            inside = (q[..., 0] < 1 - self.room) & (q[..., 1] > self.room)
            return ~(inside & mask)

    path, checker = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]), Around()
    found = {}
    for checker.room in (0.2, 0.02, 0.0):
        found[checker.room] = round_corners(checker, {3: path}, 0.1, 0.05)[3][1]
    assert 0.3 < found[0.2] <= 0.4 and found[0.0] == 0
    assert found[0.02] in [found[0.2] / 2**k for k in (1, 2, 3, 4)]


def test_a_row_s_path_depends_on_its_problem_and_seed_alone(env: Env, planner: Planner) -> None:
    whole = planner.plan(pose=at(*[THERE] * 5), seed=torch.tensor([7, 7, 8, 9, 7]))
    some = planner.plan(pose=at(*[THERE] * 2), rows=[1, 3], seed=torch.tensor([7, 9]))
    assert torch.equal(some.paths[0], whole.paths[1]) and torch.equal(some.paths[1], whole.paths[3])
    other = planner.plan(pose=at(THERE), rows=[1], seed=8)
    assert not torch.equal(other.paths[0], whole.paths[1])


def test_what_cannot_be_planned_is_said_per_row(env: Env, planner: Planner) -> None:
    begin = env.robot.arm_qpos.clone()
    begin[2] = env.robot.ik(at(*[(0.0, 0.0, 0.05)] * 5), begin).q[2].float()
    plan = planner.plan(pose=at((0.0, 0.0, 0.05), (2.0, 0, 0.2), THERE, THERE, (0.1, 0.3, -0.05)), start=begin)
    assert plan.found.tolist() == [False, False, False, True, False]
    assert "the goal is in collision: robot/" in plan.reasons[0] and "wall" in plan.reasons[0]
    assert "out of reach" in plan.reasons[1]
    assert "the start is in collision: robot/" in plan.reasons[2]
    assert "table" in plan.reasons[4]
    assert all(len(plan.paths[r]) == 1 for r in (0, 1, 2, 4))
    motion = plan.timed()
    assert motion.duration[[0, 1, 2, 4]].tolist() == [0] * 4 and motion.duration[3] > 0.5
    beyond = torch.full((1, 7), 3.0)
    assert "beyond the joint limits" in planner.plan(qpos=beyond, rows=[0]).reasons[0]
    hopeless = Planner(env, effort=Search(rounds=1)).plan(pose=at(THERE), rows=[0])
    assert hopeless.reasons == ["no path was found; give it more rounds, another seed or a smaller margin"]


def test_wrong_arguments_are_refused(env: Env, planner: Planner) -> None:
    with pytest.raises(ConfigError, match="either pose="):
        planner.plan()
    with pytest.raises(ConfigError, match=r"must be \(5, 7\)"):
        planner.plan(pose=at(THERE))
    with pytest.raises(ConfigError, match="ascending"):
        planner.plan(pose=at(THERE, THERE), rows=[3, 1])
    with pytest.raises(UnknownNameError, match="ompl"):
        planner.plan(pose=at(*[THERE] * 5), method="omlp")


def test_what_is_held_comes_along_and_keeps_the_margin(env: Env, planner: Planner) -> None:
    kept = env.save()
    tcp = env.robot.tcp_pose.clone()
    grip = tcp.clone()
    grip[:, 2] -= 0.03  # most of the rod hangs below the fingers
    env.h.rod.set_pose(grip[:, :3], grip[:, 3:])
    env.world.forward()
    plan = planner.plan(pose=at(*[THERE] * 5), held=env.h.rod)
    assert plan.found.all(), plan.reasons
    chain = env.robot.solver.chain

    def rod_at(q: np.ndarray) -> np.ndarray:
        pos, quat = (x[0].numpy() for x in chain.fk(torch.from_numpy(q[None])))
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, quat)
        return np.concatenate([pos + env.robot.base_pose[:3].numpy() + turn.reshape(3, 3) @ [0, 0, 0.03], quat])

    def all_free(path: np.ndarray, row: int) -> bool:
        free = reference(env, row, planner.margin - 1e-4, rod_held=True)
        shares = [(a, b, s) for a, b in itertools.pairwise(path) for s in np.linspace(0, 1, 25)]
        return all(free(q, rod_at(q)) for q in (a + s * (b - a) for a, b, s in shares))

    assert all_free(plan.paths[2].numpy(), 2)
    alone = planner.plan(pose=at(*[THERE] * 5))  # as if the rod stayed where it is
    assert not all(all_free(path.numpy(), row) for row, path in enumerate(alone.paths))
    env.load(kept)


def test_ompl_finds_paths_too(env: Env, planner: Planner) -> None:
    pytest.importorskip("ompl", reason="the extra 'plan' is not installed")
    plan = planner.plan(pose=at(THERE, THERE), rows=[0, 3], method="ompl")
    assert plan.found.all()
    assert_free(env, [plan.paths[0], *[plan.paths[1]] * 3], planner.margin / 2, [0, 3])


def test_without_ompl_it_says_what_to_install(env: Env, planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ompl", None)
    with pytest.raises(ConfigError, match=r"pip install 'manikin\[plan\]'"):
        planner.plan(pose=at(THERE), rows=[0], method="ompl")


# ---- the executor ----------------------------------------------------------------------------------------------------


class Straight(Wall):
    """As Wall, but the expert does not look.

    Randomization: as in Wall.
    Success: as in Wall.
    """

    avoid = False


@pytest.mark.parametrize("control", ["joint_pos", "ee_delta_pose"])
def test_an_expert_that_avoids_gets_there_without_touching(control: str) -> None:
    touched, reached = {}, {}
    for kind in (Wall, Straight):
        env = Env(kind, num_envs=3, control=control, autoreset="disabled", reward="none", terminate=False)
        env.reset(seed=5)
        expert, hit, done = WaypointExecutor(env), torch.zeros(3), torch.zeros(3, dtype=torch.bool)
        for _ in range(env.horizon if kind is Wall else 40):
            *_, info = env.step(expert.act())
            hit = torch.maximum(hit, env.h.hit.value.abs().amax(1))
            done |= info["success"]
            if done.all():
                break
        touched[kind], reached[kind] = hit > 0, done
        assert not expert.unplanned.any()
    assert reached[Wall].all() and not touched[Wall].any()
    assert touched[Straight].all()  # so there was something to avoid


class Twice(Straight):
    """As Straight, in two waypoints.

    Randomization: as in Wall.
    Success: as in Wall.
    """

    def expert(self, h):
        there = Waypoint(pose=at(THERE).expand(h.n, 7), gripper=1)
        return [there, there.hold()]


def test_an_executor_that_avoids_plans_the_way_to_all_waypoints_but_the_last() -> None:
    for kind, avoid, free in ((Twice, True, True), (Twice, False, False), (Straight, True, False)):
        env = Env(kind, num_envs=3, control="joint_pos", autoreset="disabled", reward="none", terminate=False)
        env.reset(seed=5)
        expert, hit = WaypointExecutor(env, avoid=avoid), torch.zeros(3)
        for _ in range(60):
            env.step(expert.act())
            hit = torch.maximum(hit, env.h.hit.value.abs().amax(1))
        assert (hit == 0).all() if free else (hit > 0).all()


def test_an_expert_without_waypoints_has_no_way_to_plan() -> None:
    env = manikin.make("CartpoleBalance-v1")
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="CartpoleBalance-v1 gives actions, no waypoints to plan a way between"):
        WaypointExecutor(env, avoid=True).act()


def test_where_no_path_is_found_the_executor_goes_straight_and_says_so() -> None:
    env = Env(Wall, num_envs=2, control="joint_pos", autoreset="disabled", reward="none")
    env.reset(seed=5)
    env.h.wall.set_pose(torch.tensor([THERE, (0.0, 0.0, 0.1)]))  # in row 0 where the goal is
    env.world.forward()
    expert = WaypointExecutor(env)
    before = env.robot.tcp_pos[:, 1].clone()
    for _ in range(5):
        env.step(expert.act())
    assert expert.unplanned.tolist() == [True, False]
    assert env.robot.tcp_pos[0, 1] > before[0] + 0.02


@pytest.mark.parametrize("task", ["PickCube-v2", "HomeNavigate-v1"])
def test_a_row_that_does_not_move_waits_in_its_stage_and_the_others_act_as_before(task: str) -> None:
    steps, rest = 30, range(5, 15)

    def acts(active: list[list[bool]]) -> list[Tensor]:
        env = manikin.make(task, 3, autoreset="disabled", reward="none", terminate=False)
        env.reset(seed=[0, 8, 16])
        expert, out = WaypointExecutor(env), []
        for one in active:
            out.append(expert.act(None if all(one) else one))
            env.step(out[-1], active=one)
        return out

    whole = acts([[True] * 3] * steps)
    partly = acts([[True, k not in rest, True] for k in range(steps)])
    for k, (all_move, one_rests) in enumerate(zip(whole, partly, strict=True)):
        assert torch.equal(one_rests[[0, 2]], all_move[[0, 2]])
        before = torch.zeros_like(all_move) if k in rest else whole[k if k < rest.start else k - len(rest)]
        assert torch.equal(one_rests[1], before[1])
    assert not torch.equal(whole[5][1], whole[15][1])  # or it would not show


def test_an_expert_that_gives_actions_gives_none_to_rows_that_do_not_move() -> None:
    env = manikin.make("LeggedStand-v1", 2, autoreset="disabled", reward="none")
    env.reset(seed=[1, 2])
    expert = WaypointExecutor(env)
    for _ in range(2):  # also in the call that first learns of it
        actions = expert.act([True, False])
        assert actions[0].any() and not actions[1].any()
    assert torch.equal(expert.act()[0], actions[0])


# ---- on a device ---------------------------------------------------------------------------------------------------


def carried(card: bool, monkeypatch) -> list[Tensor]:
    """What planning gives for an environment on a card, or on the CPU: a plan with something held, and steps of a
    planned stage. On the card poses are :class:`Card`s, the device's kinematics and all that is made without naming a
    device have no numbers, and mixing is an error."""
    env = Env(Wall, num_envs=3, control="joint_pos", autoreset="disabled", reward="none")
    env.reset(seed=0)
    goal, most, there = at(THERE).expand(3, 7).clone(), torch.ones(7), nullcontext()
    if card:
        robot = env.robot
        monkeypatch.setattr(robot, "solver", IkSolver(Chain(robot.arm, robot.gripper, META)))
        monkeypatch.setattr(robot, "base_pose", on_card(robot.base_pose))
        for kind, name in ((type(robot), "tcp_pose"), (type(robot), "arm_qpos"), (type(env.h.rod), "pose")):
            plain = inspect.getattr_static(kind, name).fget
            monkeypatch.setattr(kind, name, property(lambda self, plain=plain: on_card(plain(self))))
        monkeypatch.setattr(env, "device", META)
        monkeypatch.setattr(env.world, "device", META)
        goal, most, there = on_card(goal), on_card(most), OnDevice(META)
    out = []
    with there:
        planner = Planner(env)
        held = planner.plan(pose=goal[:2], held=env.h.rod, rows=[0, 2], seed=7)
        out += [*held.paths, *held.reach, *planner.goals(goal).q]
        paths = Planned(env, env.robot, 0.01, most=most)
        out.append(torch.from_numpy(paths.begin(np.array([0, 2]), goal, None)))
        for _ in range(3):
            out += paths.next(env.robot.tcp_pose, 0.05)
        out.append(paths.tool(out[-1]))
        monkeypatch.undo()
    return out


def test_planning_is_done_on_the_cpu_wherever_the_environment_is(monkeypatch) -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    here, there = carried(False, monkeypatch), carried(True, monkeypatch)
    assert here[4 + 3].all() and len(here[-2]) == 2  # both rows are on their way
    for ours, theirs in zip(here, there, strict=True):
        assert type(theirs) is Tensor and theirs.device.type == "cpu" and torch.equal(ours, theirs)
