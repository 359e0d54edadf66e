"""The WidowX controller of SIMPLER against a second derivation of Algorithm 2, with its own forward kinematics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import manikin
from manikin.author.card import FreeArm
from manikin.errors import ConfigError, UnknownNameError
from manikin.robots import arm

# The arm's chain as the maker's URDF has it: origin [m] of each joint in its parent, and its axis.
JOINTS = (
    ((0, 0, 0.072), "z"),
    ((0, 0, 0.03865), "y"),
    ((0.04975, 0, 0.25), "y"),
    ((0.175, 0, 0), "x"),
    ((0.075, 0, 0), "y"),
    ((0.065, 0, 0), "x"),
)
TOOL = (0.093575, 0, 0)  # ee_gripper_link in gripper_link, x forward
FORWARD = Rotation.from_quat([np.sqrt(0.5), 0, np.sqrt(0.5), 0])  # of the tool with z forward, in ee_gripper_link


def by_hand(q: np.ndarray) -> tuple[np.ndarray, Rotation]:
    """Pose of ee_gripper_link in the base frame for joints q (6,) [rad]."""
    pos, turn = np.zeros(3), Rotation.identity()
    for (origin, axis), angle in zip(JOINTS, q, strict=True):
        pos = pos + turn.apply(origin)
        turn = turn * Rotation.from_euler(axis, angle)
    return pos + turn.apply(TOOL), turn


def scipy(quat: torch.Tensor) -> Rotation:
    return Rotation.from_quat(np.roll(quat.double().numpy(), -1, axis=-1))


def env_of(n: int, pivot: str = "measured", device: str = "cpu") -> manikin.Env:
    control = "ee_target_delta_pose" + (":pivot=target" if pivot == "target" else "")
    env = manikin.make(
        FreeArm,
        num_envs=n,
        robot="widowx_bridge",
        control=control,
        control_hz=5,
        physics_hz=500,
        reward="none",
        device=device,
    )
    env.reset(seed=0)
    return env


def actions(n: int, steps: int) -> torch.Tensor:
    """As Bridge's policies give them: up to 3 cm and 0.15 rad a step."""
    rng = np.random.default_rng(3)
    moves = np.concatenate([rng.uniform(-0.03, 0.03, (steps, n, 3)), rng.uniform(-0.15, 0.15, (steps, n, 3))], 2)
    return torch.from_numpy(np.concatenate([moves, rng.uniform(-1, 1, (steps, n, 1))], 2)).float()


@pytest.mark.parametrize("pivot", ["measured", "target"])
def test_targets_are_those_of_algorithm_2(pivot: str) -> None:
    """The target after each step, by scipy; and what is commanded reaches it."""
    n, steps = 3, 8
    env = env_of(n, pivot)
    start = [by_hand(q) for q in env.robot.arm_qpos.double().numpy()]
    pos, turn = [p for p, _ in start], [r for _, r in start]
    lagged = 0.0
    for action in actions(n, steps):
        measured = [by_hand(q)[0] for q in env.robot.arm_qpos.double().numpy()]
        for row in range(n):
            p = measured[row] if pivot == "measured" else pos[row]
            a = action[row].double().numpy()
            by = Rotation.from_rotvec(a[3:6])
            lagged = max(lagged, np.linalg.norm(p - pos[row]))
            pos[row], turn[row] = p + a[:3] + by.apply(pos[row] - p), by * turn[row]
        env.step(action)
        carry, ctrl = env.carry, env.robot.ctrl.double().numpy()
        for row in range(n):
            assert np.allclose(carry[row, :3], pos[row], atol=2e-6)
            assert (turn[row] * FORWARD * scipy(carry[row, 3:]).inv()).magnitude() < 1e-5
            at, rot = by_hand(ctrl[row, :6])
            assert np.linalg.norm(at - pos[row]) < 2e-4 and (rot * turn[row].inv()).magnitude() < 2e-4
        assert np.allclose(ctrl[:, 6], 0.026 + 0.012 * action[:, 6], atol=1e-7)
        assert np.allclose(ctrl[:, 7], -ctrl[:, 6], atol=1e-7)
    assert pivot == "target" or lagged > 0.005  # the two variants have something to differ in


def test_pivots_differ_by_the_turn_of_the_lag() -> None:
    envs = [env_of(1, pivot) for pivot in ("measured", "target")]
    push = torch.tensor([[0.03, 0, 0.02, 0, 0, 0, 1.0]])
    both = torch.tensor([[0.0, 0, 0, 0, 0, 0.3, 1.0]])
    for env in envs:
        env.step(push)
    before = envs[0].carry[0, :3].double().numpy()
    measured = by_hand(envs[0].robot.arm_qpos[0].double().numpy())[0]
    for env in envs:
        env.step(both)
    one, two = (env.carry[0, :3].double().numpy() for env in envs)
    lag = before - measured
    assert np.linalg.norm(lag) > 0.01
    assert np.allclose(two, before, atol=1e-6)  # about itself the target only turns
    assert np.allclose(one - two, Rotation.from_rotvec([0, 0, 0.3]).apply(lag) - lag, atol=2e-6)


def test_a_target_out_of_reach_holds_the_arm_and_moves_on() -> None:
    env = env_of(2)
    far = torch.tensor([[0.9, 0, 0, 0, 0, 0, 1.0], [0.01, 0, 0, 0, 0, 0, 1.0]])
    q, target = env.robot.arm_qpos.clone(), env.carry.clone()
    env.step(far)
    assert torch.equal(env.robot.ctrl[0, :6], q[0])
    assert torch.allclose(env.carry[:, 0], target[:, 0] + far[:, 0], atol=1e-6)
    assert not torch.equal(env.robot.ctrl[1, :6], q[1])
    q = env.robot.arm_qpos.clone()
    env.step(-far * torch.tensor([1, 1, 1, 1, 1, 1, -1.0]))  # back within reach: it goes on from the target
    assert torch.allclose(env.carry[0, :3], target[0, :3], atol=1e-6)
    at, _ = by_hand(env.robot.ctrl[0, :6].double().numpy())
    assert np.allclose(at, target[0, :3], atol=2e-4)


def test_a_loaded_snapshot_goes_on_to_the_same_bits() -> None:
    env, moves = env_of(3), actions(3, 6)
    for action in moves[:3]:
        env.step(action)
    saved = env.save()

    def rest() -> list[torch.Tensor]:
        found = []
        for action in moves[3:]:
            env.step(action)
            found += [env.robot.qpos.clone(), env.robot.ctrl.clone(), env.carry.clone()]
        return found

    first = rest()
    env.reset(seed=7)
    env.load(saved)
    assert all(torch.equal(a, b) for a, b in zip(first, rest(), strict=True))


def test_the_warp_device_has_the_same_targets() -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    one, two = env_of(2), env_of(2, device="warp:cpu")
    for action in actions(2, 3):
        one.step(action)
        two.step(action)
        assert torch.allclose(one.carry, two.carry.cpu(), atol=2e-5)
        assert torch.allclose(one.robot.ctrl, two.robot.ctrl.cpu(), atol=1e-3)


def test_a_row_does_not_depend_on_the_others() -> None:
    many, moves = env_of(3), actions(3, 4)
    alone = env_of(1)
    for action in moves:
        many.step(action)
        alone.step(action[1:2])
    assert torch.equal(many.carry[1], alone.carry[0])
    assert torch.equal(many.robot.qpos[1], alone.robot.qpos[0])


@pytest.mark.parametrize("pivot", ["measured", "target"])
def test_towards_asks_for_the_joints(pivot: str) -> None:
    env = env_of(2, pivot)
    env.step(actions(2, 1)[0])  # a lag, so that target and tool are apart
    goal = env.robot.arm_qpos + 0.05
    env.step(env.towards(goal))
    pos, quat = env.robot.solver.chain.fk(goal)
    assert torch.allclose(env.carry, torch.cat([pos, quat], 1).float(), atol=1e-5)
    assert torch.allclose(env.robot.ctrl[:, :6], goal, atol=1e-3)


def test_wrong_options_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"pivot of ee_target_delta_pose 'tool'.*Valid: measured, target"):
        manikin.make(FreeArm, robot="widowx_bridge", control="ee_target_delta_pose:pivot=tool")
    with pytest.raises(ConfigError, match="pos and rot must be positive"):
        manikin.make(FreeArm, robot="widowx_bridge", control="ee_target_delta_pose:pos=0")
    assert "ee_target_delta_pose" not in arm("panda").controllers
