"""Action cards say what happens: sign, size, drift; inverse kinematics reaches what can be reached."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from manikin.author.card import FreeArm, displacement, hold_action, measured_card, where
from manikin.control import Chain, IkSolver
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import norm, pose_inv, pose_mul, quat_angle, quat_conj, quat_mul, quat_to_rotvec
from manikin.robots import arm, arms, robot
from manikin.spec.control import Control

FIRST = ("panda", "so101", "ur5e", "xarm7")  # every controller on these; the others share their code: one of each kind
FEW = ("joint_delta_pos", "ee_delta_pose", "ee_delta_pos")
CASES = [
    (name, control)
    for name in arms()
    for control in (
        robot(name).arm.controllers if name in FIRST else FEW[:2] if len(arm(name).joints) > 5 else FEW[::2]
    )
    if not name.startswith("aloha_")
    and not Control.of(control).every_substep
    and control != "ik_pose"  # those: test_torque_control
]


def env_of(name: str, control: str, n: int) -> manikin.Env:
    env = manikin.make(FreeArm, num_envs=n, robot=name, control=control, reward="none")
    env.reset(seed=0)
    for _ in range(20):
        env.step(hold_action(env))
    return env


@pytest.mark.parametrize(("name", "control"), CASES)
def test_plus_one_commands_what_the_card_says_and_the_arm_goes_there(name, control):
    """Row d gets +1 on dimension d once, the last row nothing; then the target is held for 2 s."""
    card = measured_card(name, control)
    arm_dims = [d for d in card.dims if d.name != "gripper"]
    k, size = len(arm_dims), card.size
    env = env_of(name, control, k + 1)
    before, held = where(env), env.robot.ctrl.clone()
    reading = env.driven
    action = hold_action(env)
    absolute = card.dims[0].reference == "absolute" and card.dims[0].unit != "rad/s"
    # absolute dimensions span the whole range: a tenth of a radian or 5 cm of it is a move that a test can make
    unit = torch.tensor([(0.1 if d.unit == "rad" else 0.05) / d.scale if absolute else 1.0 for d in arm_dims])
    action[:k, :k] += torch.diag(unit)
    action = action.clamp(-1, 1)
    expected = torch.zeros(k + 1, k)
    expected[:k] = torch.diag(unit * torch.tensor([d.scale for d in arm_dims]))
    if arm_dims[0].unit == "rad/s":
        expected /= env.control_hz  # a velocity commands this much in one step

    # the commanded target, exactly
    if control.startswith("joint"):
        ctrl, _ = env.controller(env.carry, reading, action)
        base = held if control in ("joint_target_delta_pos", "joint_vel") else reading.qpos
        moved = (ctrl - base)[:, :k]
        limits = env.robot.limits[:k]
        inside = (ctrl[:, :k] > limits[:, 0]) & (ctrl[:, :k] < limits[:, 1])
        if absolute:  # position itself
            moved = ctrl[:, :k] - torch.tensor([d.offset for d in arm_dims])
            wanted = action[:, :k] * torch.tensor([d.scale for d in arm_dims])
            assert torch.allclose(moved[inside], wanted[inside], atol=1e-5)
        else:
            assert torch.allclose(moved[inside], expected[inside], atol=2e-6)
    else:
        pos, quat = env.controller.goal(reading, action)
        pos0, quat0 = env.controller.goal(reading, hold_action(env))
        moved = torch.cat([pos - pos0, quat_to_rotvec(quat_mul(quat, quat_conj(quat0)))], 1)[:, :k].float()
        if control == "ee_pose":  # turns are about the base's axes at rest, where holding asks for none
            assert torch.allclose(moved[:3], expected[:3], atol=1e-5)
            assert torch.allclose(norm(moved[3:k]), norm(expected[3:k]), atol=1e-3)
        else:
            assert torch.allclose(moved, expected, atol=1e-5)

    # the arm settles there, against the row that did nothing
    env.step(action)
    env.world.step(round(2 * env.physics_hz))  # the target held
    change = displacement(env, before)[:, :k]
    change = change - change[k]
    size = expected[:k].diagonal()
    along = change[:k].diagonal()
    assert (along - size).abs().le(0.05 * size).all(), (along / size).tolist()


@pytest.mark.parametrize(("name", "control"), CASES)
def test_holding_does_not_drift(name, control):
    card = measured_card(name, control)
    assert card.hold_drift is not None
    if robot(name).arm.gravcomp:
        assert card.hold_drift < 1e-3
    else:  # printed, not promised: a measured-relative hold sinks under the arm's own weight
        assert f"{card.hold_drift * 1000:.1f}" in card.summary()


@pytest.mark.parametrize("name", arms())
def test_gripper_dimension_opens_and_closes(name):
    env = env_of(name, "joint_pos", 2)
    action = hold_action(env)
    action[0, -1], action[1, -1] = 1.0, -1.0
    for _ in range(20):
        env.step(action)
    opening = env.robot.opening
    meet = 0.35 if name in ("google_robot", "widowx") else 0.25  # their fingers meet before they are where commanded
    least = 0.95 if name == "widowx_bridge" else 0.97  # whose open command lies 1 mm beyond the fingers' limit
    assert opening[0] > least and opening[1] < meet
    gripper = env.robot.gripper
    ctrl = env.robot.ctrl[:, -len(gripper.drivers) :]
    assert torch.allclose(ctrl[0], torch.tensor(gripper.open_q)) and torch.allclose(
        ctrl[1], torch.tensor(gripper.closed_q)
    )


def test_rotation_has_the_mathematical_sign():
    """+rz turns the gripper counter-clockwise seen from above: x towards y."""
    env = env_of("panda", "ee_delta_pose", 1)
    start = env.robot.tcp_quat.clone()
    action = torch.zeros(1, 7)
    action[0, 5] = 1.0
    env.step(action)
    env.world.step(400)
    turn = quat_to_rotvec(quat_mul(env.robot.tcp_quat, quat_conj(start)))[0]
    assert turn[2] > 0.09 and turn[:2].abs().max() < 0.005


def test_a_delta_out_of_reach_goes_as_near_as_it_can_and_does_not_freeze():
    env = env_of("panda", "ee_delta_pos", 1)
    out = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    reach = []
    for _ in range(60):
        env.step(out)
        reach.append(float(env.robot.tcp_pos[0, 0] - env.robot.base_pose[0]))
    assert reach[-1] > 0.72  # stretched out; it was at 0.615
    back = -out
    back[0, -1] = 1.0
    for _ in range(5):
        env.step(back)
    assert env.robot.tcp_pos[0, 0] - env.robot.base_pose[0] < reach[-1] - 0.05


@pytest.mark.parametrize("name", arms())
def test_inverse_kinematics_reaches_500_poses(name):
    """Reachable poses (forward kinematics of random joints) within 0.3 m and 60 degrees of rest."""
    spec, gripper, _ = robot(name)
    chain = Chain(spec, gripper)
    solver, rest = IkSolver(chain), chain.rest[None]
    pos0, quat0 = chain.fk(rest)
    rng, poses = np.random.default_rng(0), []
    low, high = chain.limits.T
    while sum(len(p) for p, _ in poses) < 500:
        q = low + (high - low) * torch.from_numpy(rng.random((4000, chain.size)))
        q = rest + (q - rest) * torch.from_numpy(rng.random((4000, 1))) * chain.moved
        pos, quat = chain.fk(q)
        good = (norm(pos - pos0) < 0.3) & (quat_angle(quat, quat0.expand_as(quat)) < np.deg2rad(60))
        poses.append((pos[good], quat[good]))
    pos, quat = (torch.cat(part)[:500] for part in zip(*poses, strict=True))
    found = solver.solve(pos, quat, rest.expand(500, -1), restarts=8)
    at, rot = chain.fk(found.q)  # checked by forward kinematics, not by what the solver says
    reached = (norm(at - pos) < 1e-3) & (quat_angle(rot, quat) < np.deg2rad(0.5))
    assert reached.double().mean() >= 0.99
    assert (found.reached == reached).all()
    assert (found.q >= low).all() and (found.q <= high).all()


def test_inverse_kinematics_says_what_it_did_not_reach():
    chain = Chain(*robot("panda")[:2])
    rest = chain.rest[None]
    pos, quat = chain.fk(rest)
    far = torch.cat([pos, pos + torch.tensor([[2.0, 0, 0]])])
    found = IkSolver(chain).solve(far, quat.expand(2, -1), rest.expand(2, -1), restarts=2)
    assert found.reached.tolist() == [True, False]
    assert found.pos_error[1] > 1.0
    at, _ = chain.fk(found.q)
    assert at[1, 0] > at[0, 0] + 0.1  # it went the right way


def test_inverse_kinematics_does_not_depend_on_the_batch():
    chain = Chain(*robot("ur5e")[:2])
    rest = chain.rest[None]
    pos, quat = chain.fk(rest)
    goals = pos + torch.from_numpy(np.random.default_rng(1).uniform(-0.2, 0.2, (40, 3)))
    solver = IkSolver(chain)
    whole = solver.solve(goals, quat.expand(40, -1), rest.expand(40, -1), restarts=3)
    for row in (0, 17, 39):
        alone = solver.solve(goals[row : row + 1], quat, rest, restarts=3)
        assert torch.equal(alone.q[0], whole.q[row])


@pytest.mark.parametrize("name", ["so101", "panda"])
def test_out_of_reach_comes_as_near_as_it_can(name):
    """No nearer than what was found is any of many configurations."""
    chain = Chain(*robot(name)[:2])
    pos, quat = chain.rest_pose
    goal = pos * torch.tensor([3.0, 3.0, 1.0], dtype=torch.float64)
    solver = IkSolver(chain, rotation_weight=0.0)
    found = solver.solve(goal[None], quat[None], chain.rest[None], restarts=4)
    at, _ = chain.fk(found.q)
    assert not found.reached.any() and torch.allclose(found.pos_error, (goal - at).norm(dim=1))
    low, high = chain.limits.unbind(1)
    share = torch.from_numpy(np.random.default_rng(0).uniform(size=(20_000, chain.size)))
    anywhere, _ = chain.fk(low + share * (high - low))
    assert found.pos_error[0] <= (goal - anywhere).norm(dim=1).min() + 1e-3


def test_jacobian_against_finite_differences():
    chain = Chain(*robot("xarm7")[:2])
    q = chain.rest[None] + 0.2
    _pos, _quat, jac = chain.fk_jacobian(q)
    for joint in range(chain.size):
        step = torch.zeros_like(q)
        step[0, joint] = 1e-6
        (p1, r1), (p0, r0) = chain.fk(q + step), chain.fk(q - step)
        turn = quat_to_rotvec(quat_mul(r1, quat_conj(r0)))[0] / 2e-6
        assert torch.allclose(jac[0, :3, joint], (p1 - p0)[0] / 2e-6, atol=1e-6)
        assert torch.allclose(jac[0, 3:, joint], turn, atol=1e-6)


def test_robot_ik_speaks_world_frame():
    env = manikin.make("PickCube-v2", num_envs=2)
    env.reset(seed=0)
    goal = env.robot.tcp_pose.clone()
    goal[:, 2] += 0.05
    found = env.robot.ik(goal)
    pos, _quat = env.robot.solver.chain.fk(found.q)
    local = pose_mul(pose_inv(env.robot.base_pose).expand(2, -1), goal)
    assert found.reached.all() and torch.allclose(pos.float(), local[:, :3], atol=1e-3)


SLOW = [("so101", "joint_target_delta_pos", 30.0), ("ur5e", "joint_pos", 3.0)]


@pytest.mark.parametrize(("name", "control", "hz"), SLOW)
def test_a_card_is_measured_at_rates_that_do_not_divide_the_usual_rate_of_physics(name, control, hz):
    """100 Hz is no multiple of 30 or 3 Hz. A slower step leaves the servos more time."""
    assert FreeArm.physics.hz % hz
    card = measured_card(name, control, hz)
    assert card.realised is None or 0.2 < card.realised < 1.2
    assert card.hold_drift < 1e-3


def test_joint_positions_about_a_keyframe() -> None:
    """0 is the keyframe and 1 is so far beside it, but never beyond the joint's limits."""
    env = env_of("panda", "joint_pos:about=rest,step=1.5", 3)
    rest, limits = env.robot.keyframe(), env.robot.limits[:7]
    assert [d.offset for d in env.controller.card.dims[:7]] == pytest.approx(rest.tolist())
    assert [d.scale for d in env.controller.card.dims[:7]] == pytest.approx([1.5] * 7)
    env.step(torch.tensor([[0.0] * 8, [1.0] * 8, [-0.5] * 8]))
    wanted = rest + torch.tensor([[0.0], [1.5], [-0.75]])
    torch.testing.assert_close(env.robot.ctrl[:, :7], torch.clamp(wanted, limits[:, 0], limits[:, 1]))
    assert (env.robot.ctrl[1, :7] < rest + 1.49).any()  # one joint is at its limit
    action = env.towards((rest + 0.3).expand(3, 7))
    torch.testing.assert_close(action[:, :7], torch.full((3, 7), 0.3 / 1.5), atol=1e-5, rtol=0)
    own = env_of("panda", "joint_pos:about=rest", 1).controller.card.dims[:7]
    assert [d.scale for d in own] == pytest.approx(arm("panda").joint_delta or [0.1] * 7)


def test_a_keyframe_that_is_not_there_and_a_step_without_one_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown keyframe of panda 'sitting'.*rest"):
        env_of("panda", "joint_pos:about=sitting", 1)
    with pytest.raises(ConfigError, match=r"step is how far .* about=rest"):
        Control.of("joint_pos", step=0.5)
    assert Control.of("joint_pos", about="rest", step=0.5).word == "joint_pos:about=rest,step=0.5"
