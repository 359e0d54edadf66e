"""``ee_delta_pose_planned``: its motions are Ruckig's and keep their limits; the rest is what SIMPLER's code does."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

import manikin
from manikin.author.card import FreeArm
from manikin.control.numerics.jerk import to_rest
from manikin.math import norm, quat_angle, quat_from_rotvec, quat_mul
from manikin.robots.google_robot_rt1 import ARM

VELOCITY, ACCELERATION, JERK = np.array([1.5, 1.0, 0.4]), np.array([2.0, 7.0, 2.0]), np.array([50.0, 50.0, 10.0])
LIMITS = {"velocity": VELOCITY, "acceleration": ACCELERATION, "jerk": JERK}
ROBOT = {"robot": "google_robot_rt1", "control_hz": 3, "physics_hz": 150, "reward": "none"}
OPEN = torch.tensor([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])


def problems(n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, velocities and goals: near and far, at rest, towards the goal and away from it."""
    rng = np.random.default_rng(7)
    q = rng.uniform(-1, 1, (n, 3))
    v = rng.uniform(-1, 1, (n, 3)) * VELOCITY * rng.choice([0.0, 0.1, 1.0], (n, 3))
    return q, v, q + rng.normal(size=(n, 3)) * rng.choice([1e-4, 0.01, 0.1, 1.0], (n, 3))


@pytest.mark.skipif(importlib.util.find_spec("ruckig") is None, reason="needs ruckig: pip install 'manikin[plan]'")
def test_motions_are_ruckigs() -> None:
    import ruckig

    q, v, goal = problems()
    found = to_rest(q, v, goal, **LIMITS)
    times = np.linspace(0, found.duration.max(), 60)
    at, speed = found.sample(times)
    for k in range(len(q)):
        given = ruckig.InputParameter(3)
        given.current_position, given.current_velocity, given.current_acceleration = q[k], v[k], [0.0] * 3
        given.target_position, given.max_velocity = goal[k], VELOCITY
        given.max_acceleration, given.max_jerk = ACCELERATION, JERK
        other = ruckig.Trajectory(3)
        assert ruckig.Ruckig(3).calculate(given, other) == ruckig.Result.Working
        assert found.duration[k] == pytest.approx(other.duration, abs=1e-9)
        theirs = [other.at_time(min(t, other.duration))[:2] for t in times]
        assert np.abs(at[k] - [one[0] for one in theirs]).max() < 1e-6
        assert np.abs(speed[k] - [one[1] for one in theirs]).max() < 1e-5


def test_motions_keep_their_limits_and_arrive() -> None:
    """Differences of a fine sampling are means of the next derivative, so they cannot exceed its limit."""
    q, v, goal = problems()
    found = to_rest(q, v, goal, **LIMITS)
    times = np.linspace(0, found.duration.max() + 0.1, 3000)
    at, speed = found.sample(times)
    dt = times[1]
    slope = np.diff(speed, axis=1) / dt
    assert (np.abs(speed) <= VELOCITY + 1e-9).all() and (np.abs(slope) <= ACCELERATION + 1e-8).all()
    assert (np.abs(np.diff(slope, axis=1)) / dt <= JERK + 1e-5).all()
    assert np.abs(np.diff(at, axis=1) / dt - (speed[:, 1:] + speed[:, :-1]) / 2).max() < 50 * dt * dt
    assert (at[:, 0] == q).all() and (at[:, -1] == goal).all() and not speed[:, -1].any()
    just_before, _ = to_rest(q[:1], v[:1], goal[:1], **LIMITS).sample(found.duration[0, :1] - 1e-9)
    assert np.abs(just_before[0, 0] - goal[0]).max() < 1e-8  # it arrives, it does not jump


def test_durations_of_simple_motions_and_of_groups() -> None:
    """From rest: 4 cbrt(d / 2j) where no other limit counts; d / v + v / a + a / j where all do."""
    zero = np.zeros((1, 2))
    tight = {"velocity": np.full(2, 1.5), "acceleration": np.full(2, 2.0), "jerk": np.full(2, 50.0)}
    goal = np.array([[0.001, 6.0]])
    short, long = 4 * (0.001 / 100) ** (1 / 3), 6 / 1.5 + 1.5 / 2 + 2 / 50
    assert to_rest(zero, zero, goal, **tight).duration == pytest.approx(long, abs=1e-9)
    apart = to_rest(zero, zero, goal, **tight, groups=(slice(0, 1), slice(1, 2))).duration
    assert apart == pytest.approx(np.array([[short, long]]), abs=1e-9)
    assert not to_rest(zero, zero, zero, **tight).duration.any()


def test_motions_between_two_ways_to_slow_down_arrive_too() -> None:
    """A joint that is slowing down anyway cannot take a little longer by cruising: no cruise gives such a way."""
    v = np.array([[1.0, 0.0]])
    limits = {"velocity": np.full(2, 1.5), "acceleration": np.full(2, 2.0), "jerk": np.full(2, 50.0)}
    stop = 0.5 * (1.0 / 2.0 + 2.0 / 50.0)  # way of the fastest stop
    for extra in (1e-4, 1e-3, 4e-3):
        for other in (0.04, 0.05, 0.06, 0.08):
            goal = np.array([[stop + extra, other]])
            found = to_rest(np.zeros((1, 2)), v, goal, **limits)
            end = found.duration.max()
            at, speed = found.sample(np.array([end - 1e-9]))
            assert np.abs(at[0, 0] - goal).max() < 1e-8 and np.abs(speed).max() < 1e-6


def test_torch_gives_the_same_and_a_row_depends_on_no_other() -> None:
    q, v, goal = problems(20)
    times = np.arange(1, 51) / 150
    at, _ = to_rest(q, v, goal, **LIMITS).sample(times)
    of_torch = {name: torch.from_numpy(value) for name, value in LIMITS.items()}
    again, _ = to_rest(*map(torch.from_numpy, (q, v, goal)), **of_torch).sample(torch.from_numpy(times))
    assert np.abs(again.numpy() - at).max() < 1e-13
    alone, _ = to_rest(q[3:4], v[3:4], goal[3:4], **LIMITS).sample(times)
    assert (alone[0] == at[3]).all()


def made(word: str, n: int = 1, **options: object) -> manikin.Env:
    env = manikin.make(FreeArm, num_envs=n, control=word, **{**ROBOT, **options})
    env.reset(seed=0)
    return env


def test_the_goal_is_the_measured_pose_moved_about_the_bases_axes() -> None:
    env = made("ee_delta_pose_planned")
    action = torch.tensor([[0.04, -0.02, 0.03, 0.05, -0.1, 0.02, 0.0]])
    pos, quat = env.robot.solver.chain.fk(env.robot.arm_qpos)
    wanted, turned = pos + action[:, :3], quat_mul(quat_from_rotvec(action[:, 3:6].double()), quat)
    env.step(action)
    for _ in range(15):  # the plan goes on while nothing new is asked for
        env.world.step(50)
    goal, orientation = env.robot.solver.chain.fk(env.carry[:, -11:-2])
    assert norm(goal - wanted).max() < 1e-4 and quat_angle(orientation, turned).max() < 2e-4
    assert (env.carry[:, -4:-2] - torch.tensor(ARM.keyframes["rest"][7:])).abs().max() < 1e-6  # the head stays


def test_setpoints_change_at_every_physics_step_and_are_those_of_the_plan() -> None:
    env = made("ee_delta_pose_planned")
    rest = env.robot.qpos.double().numpy()
    seen = []
    step = env.world.step

    def watch(substeps, active=None, before=None):
        def each(k):
            before(k)
            seen.append(env.world.flat("ctrl")[0].copy())

        return step(substeps, active, each)

    env.world.step = watch
    env.step(torch.tensor([[0.03, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0]]))
    goal = env.carry[:, -11:].double().numpy()
    arm, _ = to_rest(
        *(rest[:, :9], 0 * rest[:, :9], goal[:, :9]),
        velocity=np.full(9, 1.5),
        acceleration=np.full(9, 2.0),
        jerk=np.full(9, 50.0),
    ).sample(np.arange(1, 51) / 150)
    hand, speed = to_rest(
        *(rest[:, 9:], 0 * rest[:, 9:], goal[:, 9:]),
        velocity=np.full(2, 1.0),
        acceleration=np.full(2, 7.0),
        jerk=np.full(2, 50.0),
    ).sample(np.arange(1, 51) / 150)
    order = [env.world.scene.model.actuator(f"robot/{name}").id for name in env.robot.joints]
    commanded = np.array(seen)[:, order]
    assert len(np.unique(commanded[:, 1])) == 50
    assert np.abs(commanded[:, :9] - arm[0]).max() < 1e-6
    assert np.abs(commanded[:, 9:] - (hand + 8 / 200 * speed)[0]).max() < 1e-6  # velocity targets of the gripper
    assert goal[0, 9:] == pytest.approx(1.31)


def test_the_servo_and_its_damping_together_keep_the_force_limit() -> None:
    """A joint that is far from its plan, here because it was put elsewhere, is pushed with no more than the limit."""
    env = made("ee_delta_pose_planned")
    model, most = env.world.scene.model, 0.0
    ids = [model.actuator(f"robot/{name}").id for name in ARM.joints]
    joints = [int(model.joint(f"robot/{name}").qposadr[0]) for name in ARM.joints]  # all turn: dofs are the same
    limit, stiffness = np.array(ARM.effort), np.array(ARM.gains.kp)
    step = env.world.step

    def watch(substeps, active=None, before=None):
        def each(k):
            nonlocal most
            before(k)
            q, v = env.world.flat("qpos")[0, joints], env.world.flat("qvel")[0, joints]
            force = stiffness * (env.world.flat("ctrl")[0, ids] - q) - np.array(ARM.gains.kd) * v
            most = max(most, float((np.abs(force) / limit).max()))

        return step(substeps, active, each)

    env.world.step = watch
    env.world.flat("qpos")[0, joints[1]] += 1.0  # 1737 N m of its spring, and the limit is 300 N m
    for _ in range(3):
        env.step(0.0 * OPEN)
    assert 0.99 < most < 1.001


@pytest.mark.parametrize(
    ("word", "small"), [("ee_delta_pose_planned", 7e-4), ("ee_delta_pose_planned:start=measured", 9e-3)]
)
def test_a_small_move_of_the_gripper_keeps_its_last_goal(word: str, small: float) -> None:
    env = made(word)
    env.step(-0.5 * OPEN)
    half = env.carry[:, -1].clone()
    assert half == pytest.approx(0.655, abs=1e-5)
    for move in (0.0, -small, small):
        env.step(move * OPEN)
        assert env.carry[:, -1] == half
    for _ in range(6):
        env.step(0.0 * OPEN)
    assert env.robot.qpos[0, -1] == pytest.approx(0.655, abs=2e-3)
    env.step(-2 * small * OPEN)
    assert env.carry[0, -1] == pytest.approx(0.655 + 2.62 / 2 * 2 * small, abs=1e-5)


def test_where_a_motion_begins_is_an_option() -> None:
    """In the code the arm goes on from its plan, ahead of a lagging arm; in the paper from where the arm is."""
    ends = {}
    for word in ("ee_delta_pose_planned", "ee_delta_pose_planned:start=measured"):
        env = made(word)
        for _ in range(3):
            env.step(torch.tensor([[0.05, 0.0, 0.0, 0.0, 0.0, 0.0, -0.2]]))
        before = env.robot.qpos.clone()
        carry = env.carry
        _, begun = env.controller(carry, env.robot, torch.tensor([[0.05, 0.0, 0.0, 0.0, 0.0, 0.0, -0.2]]))
        planned, measured = carry[:, :11], before
        arm, hand = (planned, measured) if word.endswith("planned") else (measured, planned)
        assert torch.equal(begun[:, :9], arm[:, :9]) and torch.equal(begun[:, 9:11], hand[:, 9:])
        assert norm(planned[:, :7] - measured[:, :7]) > 0.02
        ends[word] = env.robot.tcp_pos.clone()
    assert len({tuple(end[0].tolist()) for end in ends.values()}) == 2


def test_a_pose_out_of_reach_asks_the_arm_to_stay() -> None:
    env = made("ee_delta_pose_planned")
    q = env.robot.arm_qpos.clone()
    env.step(torch.tensor([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]]))
    assert torch.equal(env.carry[:, -11:-2], q)


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_a_snapshot_in_the_middle_goes_on_to_the_same_bits(device: str) -> None:
    env = made("ee_delta_pose_planned", n=2, device=device)
    moves = torch.rand(6, 2, 7, generator=torch.Generator().manual_seed(3)) * 0.1 - 0.05
    moves[:, :, 6] *= 10
    for move in moves[:3]:
        env.step(move.to(env.robot.scope.device))
    saved = env.save()
    ends = []
    for _ in range(2):
        env.load(saved)
        for move in moves[3:]:
            env.step(move.to(env.robot.scope.device))
        ends.append((env.robot.qpos.clone(), env.carry.clone()))
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_the_cpu_and_warp_go_the_same_way() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    ends = []
    for device in ("cpu", "warp:cpu"):
        env = made("ee_delta_pose_planned", device=device)
        for _ in range(3):
            env.step(torch.tensor([[0.03, 0.02, -0.02, 0.0, 0.1, 0.0, -0.3]]))
        ends.append(env.robot.qpos.clone().cpu())
    assert (ends[0] - ends[1]).abs().max() < 1e-4
