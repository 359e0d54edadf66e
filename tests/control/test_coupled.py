"""control/coupled.py: several tools at once, by joints that move more or less freely."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from manikin.control.coupled import CoupledIk, ToolFrames
from manikin.control.ik import Chain
from manikin.errors import ConfigError, UnknownNameError
from manikin.robots import robot
from manikin.scene.robot import assemble


def apart(a: np.ndarray, b: np.ndarray) -> float:
    return float((Rotation.from_quat(a[[1, 2, 3, 0]]) * Rotation.from_quat(b[[1, 2, 3, 0]]).inv()).magnitude())


def numbers(seed: int, frames: ToolFrames, spread: float = 0.5) -> np.ndarray:
    """Joint positions within a share of the ranges about their middle."""
    low, high = frames.limits.T
    return (low + high) / 2 + spread * (high - low) * np.random.default_rng(seed).uniform(-0.5, 0.5, len(low))


@pytest.mark.parametrize("word", ["panda", "baxter@planar", "h1_upper_body", "so101"])
def test_frames_are_those_of_the_batched_chain_and_jacobians_their_slopes(word: str) -> None:
    arm, gripper, _ = robot(word)
    frames = ToolFrames(arm, gripper)
    q = numbers(0, frames)
    pos, quat = frames.poses(q)
    jacobians = frames.jacobians(q)
    for k, tool in enumerate(frames.tools):
        chain = Chain(arm, gripper, tool=tool)
        at, turn, jac = (x[0].numpy() for x in chain.fk_jacobian(torch.from_numpy(q[None])))
        np.testing.assert_allclose(pos[k], at, atol=1e-12)
        assert apart(quat[k], turn) < 1e-9
        carries = jacobians[k].any(0)  # the chain also has columns of joints that do not carry its tool
        np.testing.assert_allclose(jacobians[k][:, carries], jac[:, carries], atol=1e-9)
    step = 1e-6
    for j in range(len(q)):
        there = q.copy()
        there[j] += step
        slope = (frames.poses(there)[0] - pos) / step
        np.testing.assert_allclose(jacobians[:, :3, j], slope, atol=1e-5)


def test_joints_that_follow_are_where_their_drivers_put_them() -> None:
    """Inspire's outer joints follow: against a simulation in which the equalities hold."""
    arm, gripper, _ = robot("inspire")
    frames = ToolFrames(arm, gripper)
    model = assemble(arm, gripper).spec.compile()
    model.opt.gravity[:] = 0
    data = mujoco.MjData(model)
    q = np.array([0.5, 0.2, 0.9, 0.4, 1.1, 0.6])
    for joint, value in zip(frames.joints, q, strict=True):
        data.qpos[model.joint(joint).qposadr[0]] = data.ctrl[model.actuator(joint).id] = value
    mujoco.mj_step(model, data, 3000)
    held = np.array([data.qpos[model.joint(joint).qposadr[0]] for joint in frames.joints])
    pos, _ = frames.poses(held)
    for tool, at in zip(frames.tools, pos, strict=True):
        name = "tcp" if tool == frames.tools[0] else f"{tool}_tcp"
        name = next(t.tcp_body for t in assemble(arm, gripper).tools if t.name == tool)
        np.testing.assert_allclose(at, data.body(name).xpos, atol=1e-3)


def test_two_hands_reach_together_what_only_a_turned_torso_lets_them() -> None:
    arm, gripper, _ = robot("g1_upper_body")
    frames = ToolFrames(arm, gripper)
    torso = list(arm.joints).index(arm.groups["torso"].joints[0])
    fingers = [k for k, joint in enumerate(arm.joints) if not any(joint in arm.groups[g].joints for g in arm.ik_groups)]
    start = np.clip(frames.rest, *frames.limits.T)
    there = start.copy()
    there[torso] += 0.6
    pos, quat = frames.poses(there)
    free = np.array([0.0 if k in fingers and k != torso else 1.0 for k in range(len(start))])
    free[torso] = 0.3
    found = CoupledIk(frames, weights=free, posture=0.0).solve(pos, quat, start, iterations=100)
    for k, tool in enumerate(frames.tools):
        at, turn = (x[0].numpy() for x in Chain(arm, gripper, tool=tool).fk(torch.from_numpy(found.q[None])))
        assert np.linalg.norm(at - pos[k]) < 1e-3 and apart(turn, quat[k]) < 1e-2
    stiff = free.copy()
    stiff[torso] = 0.0
    without = CoupledIk(frames, weights=stiff, posture=0.0).solve(pos, quat, start, iterations=100)
    assert without.q[torso] == start[torso]
    worst = (without.pos_error + 0.2 * without.rot_error).max()
    assert worst > 20 * (found.pos_error + 0.2 * found.rot_error).max() and worst > 0.01


def test_a_small_step_is_the_least_one_that_does_it_by_the_weights() -> None:
    """Of all joint motions that bring the tool there, that with the least sum of squares over weights."""
    arm, gripper, _ = robot("panda")
    frames = ToolFrames(arm, gripper)
    q = frames.rest
    pos, quat = frames.poses(q)
    way = np.array([2e-4, -1e-4, 1e-4])
    weights = np.array([1.0, 0.2, 0.5, 1.0, 0.1, 1.0, 0.7])
    found = CoupledIk(frames, weights=weights, rotation_weights=(0.0,), posture=0.0).solve(
        pos + way, quat, q, tolerance=1e-10, iterations=200
    )
    jac = frames.jacobians(q)[0][:3]
    scaled = jac * np.sqrt(weights)
    expected = np.sqrt(weights) * (np.linalg.pinv(scaled) @ way)
    np.testing.assert_allclose(found.q - q, expected, atol=0.02 * np.abs(expected).max())
    assert found.pos_error[0] < 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_a_reachable_pose_is_found_within_the_limits(seed: int) -> None:
    arm, gripper, _ = robot("panda")
    frames = ToolFrames(arm, gripper)
    goal = numbers(seed, frames, 0.3)
    pos, quat = frames.poses(goal)
    start = goal + np.random.default_rng(seed).uniform(-0.2, 0.2, 7)
    found = CoupledIk(frames, weights=np.ones(7)).solve(pos, quat, start, iterations=60)
    assert found.pos_error[0] < 1e-3 and found.rot_error[0] < 5e-3
    far = CoupledIk(frames, weights=np.ones(7)).solve(pos + np.array([3.0, 0, 0]), quat, start)
    low, high = frames.limits.T
    assert (far.q >= low).all() and (far.q <= high).all() and far.pos_error[0] > 1


def test_what_does_not_fit_is_refused() -> None:
    arm, gripper, _ = robot("panda")
    with pytest.raises(UnknownNameError, match="tool"):
        ToolFrames(arm, gripper, ["left"])
    frames = ToolFrames(arm, gripper)
    for weights in (np.ones(6), np.full(7, 1.5), np.full(7, np.nan)):
        with pytest.raises(ConfigError, match="soft mask"):
            CoupledIk(frames, weights=weights)
    with pytest.raises(ConfigError, match="rotation_weights"):
        CoupledIk(frames, weights=np.ones(7), rotation_weights=(0.2, 0.2))
