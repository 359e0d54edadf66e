"""Torque controllers against MuJoCo's own matrices, closed-form responses and the published table of dimensions."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.author.card import FreeArm, hold_action
from manikin.control import Chain, Composite, GroupController, controller, torque_joints
from manikin.control.dynamics import Dynamics
from manikin.control.numerics import law
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import norm, quat_angle, quat_conj, quat_mul, quat_rotate, quat_to_rotvec
from manikin.plan.executor import WaypointExecutor
from manikin.robots import robot as robot_choice
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.spec.control import ALIASES, Control, Whole, parse_control, parse_controls
from manikin.spec.physics import Physics


class Fast(FreeArm):
    """A robot alone, physics at 500 Hz."""

    physics = Physics(hz=500.0)


def env_of(control: str, n: int = 1, robot: str = "panda", **options) -> manikin.Env:
    env = manikin.make(Fast, num_envs=n, robot=robot, control=control, reward="none", **options)
    env.reset(seed=0)
    return env


def matrices(env: manikin.Env, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix (m, m) and Jacobian (6, m) of the arm, from MuJoCo's own functions."""
    model, data = env.world.data(row)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    jacp, jacr = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacBody(model, data, jacp, jacr, model.body("robot/tcp").id)
    dofs = [int(model.joint(f"robot/{j}").dofadr[0]) for j in env.robot.arm.joints]
    return full[np.ix_(dofs, dofs)], np.concatenate([jacp, jacr])[:, dofs]


# ---- words and dimensions --------------------------------------------------------------------------------------------

TABLE = [  # robosuite's table of controllers: values of an action without the gripper, for a 7-joint arm
    ("osc_pose", 6),
    ("osc_pose:impedance=variable_kp", 12),
    ("osc_pose:impedance=variable", 18),
    ("osc_position", 3),
    ("osc_position:impedance=variable_kp", 9),
    ("osc_position:impedance=variable", 15),
    ("ik_pose", 6),
    ("joint_impedance", 7),
    ("joint_impedance:impedance=variable_kp", 14),
    ("joint_impedance:impedance=variable", 21),
    ("joint_vel_pid", 7),
    ("joint_torque", 7),
]


def test_controllers_of_groups_are_read_from_one_word():
    base, arm = Control.of("base_vel"), Control.of("osc_pose", frame="tcp", kp=300.0)
    whole = Whole(parts=(("left_arm", arm), ("base", base), ("torso", Control.of("joint_pos"))))
    assert whole.word == "left_arm: osc_pose:kp=300,frame=tcp, base: base_vel, torso: joint_pos"
    for word in (
        whole.word,
        "left_arm:osc_pose:kp=300 , frame = tcp,base :base_vel,torso: joint_pos",
        "left_arm=osc_pose:frame=tcp,kp=300|base=base_vel|torso=joint_pos",  # as recordings hold it
        {"left_arm": "osc_pose:frame=tcp,kp=300", "base": base, "torso": "joint_pos"},
    ):
        assert parse_control(word) == whole, word
    assert parse_control("left_arm: JOINT_POSITION") == Whole(parts=(("left_arm", Control.of("joint_impedance")),))
    assert parse_controls(f"{whole.word} & joint_pos", 2) == (whole, Control.of("joint_pos"))
    assert parse_control("osc_pose: kp=300, frame=tcp") == arm
    with pytest.raises(UnknownNameError, match=r"controller of the group 'arm' 'osc_poze'. Did you mean 'osc_pose'"):
        parse_control("base: base_vel, arm: osc_poze")
    with pytest.raises(ConfigError, match=r"'base' in 'arm: osc_pose, base' must read GROUP: CONTROLLER"):
        parse_control("arm: osc_pose, base")
    with pytest.raises(UnknownNameError, match="unknown controller 'osc_poze'"):
        parse_control("osc_poze:frame=tcp")
    wrong = r"group of fetch 'leg'.*Valid: arm, base, gripper, torso\. Each may have one of the controllers joint_pos, "
    with pytest.raises(UnknownNameError, match=wrong):
        env_of("leg: joint_pos", robot="fetch")


@pytest.mark.parametrize(("control", "size"), TABLE)
def test_dimensions_are_those_of_the_table_and_a_word_makes_them(control, size):
    env = env_of(control)
    assert env.single_action_space.shape == (size + 1,)
    assert env.controller.name == control and parse_control(control).word == control
    names = [d.name for d in env.controller.card.dims]
    assert names[-1] == "gripper" and len(set(names)) == len(names)


def test_ranges_are_robosuites():
    card = env_of("osc_pose:impedance=variable").controller.card
    kinds = {d.name: d.range for d in card.dims}
    assert kinds["damping_x"] == (0, 10) and kinds["kp_rz"] == (0, 300)
    assert kinds["x"] == (-0.05, 0.05) and kinds["rz"] == (-0.5, 0.5)
    assert [d.name.split("_")[0] for d in card.dims[:18:6]] == ["damping", "kp", "x"]  # [damping ratio, kp, goal]
    ranges = {c: env_of(c).controller.card.dims[0].range[1] for c in ("ik_pose", "joint_impedance", "joint_torque")}
    assert ranges == pytest.approx({"ik_pose": 0.02, "joint_impedance": 0.05, "joint_torque": 0.1})


def test_robosuites_names_and_options_are_understood_and_wrong_ones_refused():
    assert {parse_control(name).word for name in ALIASES} == {*ALIASES.values()}
    control = parse_control("osc_pose:frame=tcp,kp=300,uncouple=false,refresh=5")
    assert isinstance(control, Control)
    assert (control.frame, control.kp, control.uncouple, control.refresh) == ("tcp", 300.0, False, 5)
    assert parse_control(control.word) == control
    for word, kind in (
        ("osc", UnknownNameError),
        ("osc_pose:stiff=1", UnknownNameError),
        ("osc_pose:frame=hand", UnknownNameError),
        ("joint_torque:kp=3", UnknownNameError),
        ("osc_pose:kp=many", ConfigError),
        ("osc_pose:kp", ConfigError),
        ("osc_pose:goal=absolute,frame=tcp", ConfigError),
        ("osc_pose:refresh=0", ConfigError),
    ):
        with pytest.raises(kind):
            parse_control(word)


# ---- dynamics --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ["panda", "ur5e", "xarm7"])
def test_mass_matrix_and_jacobian_are_mujocos(robot):
    env = env_of("osc_pose", 8, robot)
    rng = np.random.default_rng(0)
    limits = env.robot.limits[: len(env.robot.arm.joints)].numpy().clip(-3, 3)
    env.robot.set_qpos(torch.from_numpy(rng.uniform(limits[:, 0], limits[:, 1], (8, len(limits))).astype(np.float32)))
    env.world.forward()
    dynamics = Dynamics(env.robot, env.robot.arm.joints, operational=True)
    inertia, jacobian = dynamics.inertia(), dynamics.jacobian()
    for row in range(8):
        mass, jac = matrices(env, row)
        np.testing.assert_allclose(inertia[row], mass, atol=1e-12)
        np.testing.assert_allclose(jacobian[row], jac, atol=1e-12)


def test_operators_are_the_textbooks_formulas_and_alike_in_numpy_and_torch():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(5, 7, 7))
    inertia, jacobian = half @ half.swapaxes(1, 2) + np.eye(7), rng.normal(size=(5, 6, 7))
    eye = np.tile(np.eye(6), (5, 1, 1))
    light = jacobian @ np.linalg.inv(inertia) @ jacobian.swapaxes(1, 2) + law.LIGHTEST * eye
    whole = np.linalg.inv(light)
    apart = np.zeros_like(whole)
    apart[:, :3, :3], apart[:, 3:, 3:] = np.linalg.inv(light[:, :3, :3]), np.linalg.inv(light[:, 3:, 3:])
    for uncouple, inverse in ((True, apart), (False, whole)):
        to_torque, null = law.operational(jacobian, inertia, eye, uncouple=uncouple)
        np.testing.assert_allclose(to_torque, jacobian.swapaxes(1, 2) @ inverse, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(null, inertia - jacobian.swapaxes(1, 2) @ whole @ jacobian, atol=1e-9)
        single = [torch.from_numpy(a).float() for a in (jacobian, inertia, eye)]
        for mine, torchs in zip((to_torque, null), law.operational(*single, uncouple=uncouple), strict=True):
            np.testing.assert_allclose(torchs.numpy(), mine, rtol=2e-3, atol=2e-3)


def test_posture_torques_do_not_accelerate_the_tool():
    env = env_of("osc_pose")
    dynamics = env.controller.dynamics
    _, null = law.operational(dynamics.jacobian(), dynamics.inertia(), np.eye(6)[None], uncouple=True)
    mass, jac = matrices(env, 0)
    wish = np.random.default_rng(0).normal(size=7)
    assert np.abs(mass @ wish).max() > 0.1 and np.abs(null[0] @ wish).max() > 0.01
    assert np.abs(jac @ np.linalg.solve(mass, null[0] @ wish)).max() < 5e-3 * np.abs(jac @ wish).max()


def test_orientation_error_is_the_sine_about_the_worlds_axes():
    for axis in range(3):
        turn = np.zeros(3)
        turn[axis] = 0.4
        goal, start = np.zeros(9), np.zeros(9)
        quat, other = np.zeros(4), np.array([0.5, 0.5, 0.5, 0.5])
        mujoco.mju_axisAngle2Quat(quat, np.eye(3)[axis], 0.4)
        mujoco.mju_quat2Mat(start, other)
        turned = np.zeros(4)
        mujoco.mju_mulQuat(turned, quat, other)
        mujoco.mju_quat2Mat(goal, turned)
        error = law.orientation_error(start.reshape(1, 3, 3), goal.reshape(1, 3, 3))[0]
        np.testing.assert_allclose(error, np.eye(3)[axis] * math.sin(0.4), atol=1e-12)


# ---- closed loop -----------------------------------------------------------------------------------------------------


def response(t: np.ndarray, kp: float, ratio: float) -> np.ndarray:
    """Share of a unit step covered by x'' = kp (1 - x) - 2 ratio sqrt(kp) x' from rest."""
    w = math.sqrt(kp)
    if ratio == 1.0:
        return 1 - (1 + w * t) * np.exp(-w * t)
    d = w * math.sqrt(1 - ratio**2)
    return 1 - np.exp(-ratio * w * t) * (np.cos(d * t) + ratio * w / d * np.sin(d * t))


@pytest.mark.parametrize(
    ("control", "dim", "kp", "ratio"),
    [
        ("osc_pose:uncouple=false", 0, 150.0, 1.0),
        ("osc_pose:damping_ratio=0.5,kp=100,uncouple=false", 2, 100.0, 0.5),
        ("osc_pose:refresh=5,uncouple=false,goal=commanded", 1, 150.0, 1.0),
        ("osc_pose:rot=0.1,uncouple=false", 5, 150.0, 1.0),
        ("joint_impedance", 3, 50.0, 1.0),
        ("joint_impedance:kp=200,damping_ratio=0.7", 6, 200.0, 0.7),
    ],
)
def test_step_response_is_that_of_a_unit_mass_on_spring_and_damper(control, dim, kp, ratio):
    env = env_of(control)
    action = hold_action(env)
    action[0, dim] = 1.0
    with torch.no_grad():
        _, carry = env.controller(env.carry, env.robot, action)
    joint = control.startswith("joint")
    drive, moved = env.controller.drive(carry, None), []
    start, turn = env.robot.arm_qpos.clone() if joint else env.robot.tcp_pos.clone(), env.robot.tcp_quat.clone()
    for step in range(250):
        env.world.step(1, None, lambda _, step=step: drive(step))
        if joint:
            moved.append(float((env.robot.arm_qpos - start)[0, dim]))
        elif dim < 3:
            moved.append(float((env.robot.tcp_pos - start)[0, dim]))
        else:
            moved.append(float(quat_to_rotvec(quat_mul(env.robot.tcp_quat, quat_conj(turn)))[0, dim - 3]))
    wanted = response(0.002 * np.arange(1, 251), kp, ratio)
    share = np.array(moved) / env.controller.card.dims[dim].scale
    assert np.abs(share - wanted).max() < 0.025


@pytest.mark.parametrize("impedance", ["fixed", "variable"])
def test_apparent_stiffness_under_a_known_force_is_within_three_percent(impedance):
    """At rest the spring balances the force: kp Lambda_pos e = f, with Lambda from MuJoCo's own matrices."""
    env = env_of(f"osc_pose:impedance={impedance},goal=commanded")
    action, kp = hold_action(env), 150.0
    if impedance == "variable":
        kp = 270.0
        action[0, 6:12] = kp / 150.0 - 1.0
    start = env.robot.tcp_pos.clone()
    body = env.scene.model.body("robot/tcp").id
    push = torch.zeros(1, env.scene.model.nbody, 6)
    force = np.array([4.0, -6.0, 5.0])
    push[0, body, :3] = torch.from_numpy(force)
    env.world.write("xfrc_applied", push.reshape(1, -1, 6))
    for _ in range(60):
        env.step(action)
    assert norm(env.robot.arm_qvel) < 1e-3
    mass, jac = matrices(env, 0)
    expected = jac[:3] @ np.linalg.solve(mass, jac[:3].T) @ force / kp
    moved = (env.robot.tcp_pos - start)[0].numpy()
    assert np.linalg.norm(moved - expected) < 0.03 * np.linalg.norm(expected)
    assert np.linalg.norm(expected) > 0.01


@pytest.mark.parametrize("control", [*[c for c, _ in TABLE if "osc" in c or "joint" in c][::2], "joint_torque"])
def test_no_energy_is_put_in_at_rest(control):
    env = env_of(control, robot="ur5e")
    start = env.robot.arm_qpos.clone()
    for _ in range(40):
        env.step(hold_action(env))
    assert norm(env.robot.arm_qvel) < 1e-4 and norm(env.robot.arm_qpos - start) < 1e-4


def test_joint_velocity_is_reached_and_joint_torque_accelerates_as_newton_says():
    env = env_of("joint_vel_pid")
    action = hold_action(env)
    action[0, 0], action[0, 3] = 1.0, -1.0
    for _ in range(40):
        env.step(action)
    wanted = 0.5 * action[0, :7]
    assert (env.robot.arm_qvel[0] - wanted).abs().max() < 0.02
    env = env_of("joint_torque:step=5")
    action = hold_action(env)
    action[0, 0] = 0.2
    mass, _ = matrices(env, 0)
    env.step(action)
    speed, friction = np.zeros(7), env.scene.model.dof_damping[:7].mean()
    for _ in range(25):  # one newton metre for a twentieth of a second, braked by the joints' own friction
        speed = np.linalg.solve(mass + 0.002 * friction * np.eye(7), mass @ speed + 0.002 * np.eye(7)[0])
    assert np.abs(env.robot.arm_qvel[0].numpy() - speed).max() < 0.02 * speed[0]


def test_torques_stop_at_the_motors_limits():
    env = env_of("joint_impedance:kp=100000,step=1")
    env.step(torch.ones(1, 8))
    limit = torch.tensor(env.robot.arm.effort)
    assert (env.robot.ctrl[0, :7].abs() <= limit).all() and (env.robot.ctrl[0, :7].abs() == limit).any()
    assert env.scene.model.dof_damping[0] == 1.0  # the joint's own, not the servo's


# ---- goals and frames ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "control", ["osc_pose:goal=absolute", "osc_pose:goal=absolute,frame=world", "joint_impedance:goal=absolute"]
)
def test_commanding_the_present_pose_does_not_move_the_arm(control):
    env = env_of(control)
    start = env.robot.arm_qpos.clone()
    action = env.controller.towards(env.carry, env.robot, env.robot.arm_qpos)
    for _ in range(10):
        env.step(action)
    assert norm(env.robot.arm_qpos - start) < 2e-4


@pytest.mark.parametrize("control", ["osc_pose", "ik_pose", "ee_delta_pose"])
@pytest.mark.parametrize("frame", ["base", "world", "tcp"])
def test_axes_are_those_of_the_frame(control, frame):
    class Turned(Fast):
        def scene(self, b):
            return {"robot": b.robot(quat=(math.cos(0.4), 0, 0, math.sin(0.4)))}

    goal = ",goal=commanded" if control == "osc_pose" else ""
    env = manikin.make(Turned, num_envs=2, control=f"{control}:frame={frame}{goal}", reward="none")
    env.reset(seed=0)
    assert env.controller.card.dims[0].frame == frame
    start = env.robot.tcp_pose.clone()
    move = hold_action(env)
    move[0, 0], move[1, 5] = 0.5, 0.5
    env.step(move)
    for _ in range(40 if goal else 0):
        env.step(hold_action(env))
    if not goal:
        env.world.step(500)  # the command stands
    axes = {"base": env.robot.base_pose[3:], "world": torch.tensor([1.0, 0, 0, 0]), "tcp": start[0, 3:]}[frame]
    along = quat_rotate(axes, torch.tensor([1.0, 0.0, 0.0]))
    about = quat_rotate(axes, torch.tensor([0.0, 0.0, 1.0]))
    shift = env.robot.tcp_pos[0] - start[0, :3]
    turn = quat_to_rotvec(quat_mul(env.robot.tcp_quat, quat_conj(start[:, 3:])))[1]
    assert (shift / norm(shift)) @ along > 0.99 and (turn / norm(turn)) @ about > 0.99


def test_position_only_keeps_the_orientation_and_no_rotation_keeps_its_goal():
    for control, size in (("osc_position", 4), ("osc_pose", 7)):
        env = env_of(f"{control}:uncouple=false")
        start = env.robot.tcp_pose.clone()
        action = torch.zeros(1, size)
        action[0, :3] = torch.tensor([0.6, -1.0, 0.4])
        for _ in range(15):
            env.step(action)
        assert norm(env.robot.tcp_pos - start[:, :3]) > 0.1
        assert quat_angle(env.robot.tcp_quat, start[:, 3:]) < 0.02


def test_a_ramp_moves_the_goal_in_equal_parts():
    env = env_of("osc_pose:ramp=0.2")
    action = hold_action(env)
    action[0, 0], action[0, 5] = 1.0, 1.0
    with torch.no_grad():
        start = env.carry[:, 7:10]
        _, carry = env.controller(env.carry, env.robot, action)
        goals = env.controller.goals_between(env.controller.part(carry, "from"), env.controller.part(carry, "goal"))
    assert len(goals) == 5  # a fifth of 25
    steps = [float(pos[0, 0] - start[0, 0]) for pos, _ in goals]
    np.testing.assert_allclose(steps, 0.01 * np.arange(1, 6), atol=1e-6)
    angles = [law.orientation_error(goals[k][1], goals[k + 1][1])[0] for k in range(4)]
    np.testing.assert_allclose(angles, np.tile([0, 0, math.sin(0.1)], (4, 1)), atol=1e-5)


# ---- in an environment -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["osc_pose:impedance=variable", "joint_vel_pid"])
def test_a_row_does_not_depend_on_the_others_and_a_frozen_row_stays(control):
    moves = torch.rand(6, 5, env_of(control).controller.card.size, generator=torch.Generator().manual_seed(0)) * 2 - 1
    moves[:, :, :12] *= 0.3
    many, one = env_of(control, 5), env_of(control)
    one.reset(seed=[3])
    for k in range(6):
        many.step(moves[k])
        one.step(moves[k, 3:4])
    assert many.state_hash()[3] == one.state_hash()[0]
    kept = many.state_hash()[1]
    saved = many.save()
    active = torch.tensor([True, False, True, True, True])
    many.step(moves[0], active=active)
    assert many.state_hash()[1] == kept and many.state_hash()[0] != one.state_hash()[0]
    many.step(moves[1])
    after = many.state_hash()
    many.load(saved)
    many.step(moves[0], active=active)
    many.step(moves[1])
    assert torch.equal(many.state_hash(), after)


def test_the_same_law_on_a_device():
    """Warp on the processor in float32, torch all the way, against the CPU's NumPy."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    control = "osc_pose:impedance=variable_kp"
    cpu, warp = env_of(control, 2), env_of(control, 2, device="warp:cpu")
    moves = torch.rand(2, 2, 13, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for move in moves:
        cpu.step(move)
        warp.step(move)
    assert (cpu.robot.arm_qpos - cpu.robot.keyframe()).abs().max() > 0.01
    assert torch.allclose(cpu.robot.arm_qpos, warp.robot.arm_qpos.cpu(), atol=2e-4)


def test_a_long_way_by_velocities_does_not_give_the_integral_free_rein():
    """In the range that is left beside the integral's share the motion has the direction it has without."""
    env = env_of("joint_vel_pid", 1)
    way = torch.tensor([[0.4, -0.3, 0.2, 0.1, -0.2, 0.3, -0.1]])
    carry, goal = env.controller.start(env.robot), env.robot.arm_qpos + way
    summed = torch.tensor([[0.05, -0.02, 0.03, 0.0, 0.04, -0.06, 0.01]])  # [rad]
    wound = torch.cat([carry[:, :7], summed], 1)
    free, action = (env.controller.towards(one, env.robot, goal, within=0.1)[:, :7] for one in (carry, wound))
    assert free.abs().max() == action.abs().max() == 1.0
    asked = action * env.controller.control.step + 2.5 * summed  # [rad/s]
    share = asked / (free * env.controller.control.step)
    assert share.min() > 0.2 and torch.allclose(share, share[:, :1].expand_as(share), atol=1e-4)


@pytest.mark.parametrize("control", ["osc_pose", "joint_torque:step=20"])
def test_the_expert_picks_a_cube_up_by_torques_in_the_time_of_an_episode(control):
    env = manikin.make("PickCube-v2", num_envs=16, control=control, autoreset="disabled", reward="none")
    env.reset(seed=0)
    expert, success = WaypointExecutor(env), torch.zeros(16, dtype=torch.bool)
    active = ~success
    while active.any():
        _, _, terminated, truncated, info = env.step(expert.act(), active=active)
        active = active & ~(terminated | truncated)
        success |= info["success"]
    assert success.float().mean() >= 0.9


# ---- parts of a robot ------------------------------------------------------------------------------------------------


@pytest.fixture
def grouped(monkeypatch):
    """A Panda whose joints are in two groups."""
    joints = robot_choice("panda").arm.joints

    def chosen(word):
        choice = robot_choice(word)
        arm = choice.arm.regrouped({"shoulder": joints[:1], "arm": joints[1:]})
        return choice._replace(arm=arm)

    monkeypatch.setattr("manikin.env.arguments.robot", chosen)


def test_groups_have_a_controller_each_in_one_action(grouped):
    env = env_of("arm: joint_impedance:goal=commanded, shoulder: joint_target_delta_pos", 2)
    names = [d.name for d in env.controller.card.dims]
    assert names == [*(f"arm/joint{k}" for k in range(2, 8)), "shoulder/joint1", "gripper"]
    assert parse_control(env.controller.name).word == env.controller.name
    kinds = env.scene.model.actuator_biastype[:7]
    servo, motor = int(mujoco.mjtBias.mjBIAS_AFFINE), int(mujoco.mjtBias.mjBIAS_NONE)
    assert kinds.tolist() == [servo, *[motor] * 6]
    start, action = env.robot.arm_qpos.clone(), hold_action(env)
    action[0, 0], action[0, 6], action[1, 7] = 1.0, -1.0, -1.0
    env.step(action)
    for _ in range(40):
        env.step(torch.where(action.bool() & (torch.arange(8) < 7), torch.zeros(()), action))
    moved = env.robot.arm_qpos - start
    expected = torch.zeros(2, 7)
    expected[0, 1], expected[0, 0] = 0.05, -env.controller.card.dims[6].scale
    assert torch.allclose(moved, expected, atol=2e-3)
    assert env.robot.opening[0] > 0.9 and env.robot.opening[1] < 0.25
    saved, move = env.save(), torch.full((2, 8), 0.3)
    env.step(move)
    after = env.state_hash()
    env.load(saved)
    env.step(move)
    assert torch.equal(env.state_hash(), after)


def test_operational_space_works_on_a_group_and_wrong_groups_are_refused(grouped):
    env = env_of("shoulder: joint_pos, arm: osc_position:goal=commanded")
    start, action = env.robot.tcp_pose.clone(), hold_action(env)
    other = env.robot.arm_qpos[:, 0].clone()
    action[0, 3] = 1.0  # along z
    env.step(action)
    for _ in range(40):
        env.step(hold_action(env))
    assert abs(float(env.robot.tcp_pos[0, 2] - start[0, 2]) - 0.05) < 2e-3
    assert (env.robot.arm_qpos[:, 0] - other).abs().max() < 5e-3
    twice = "arm: osc_pose, arm: joint_pos"
    for word, kind in (("leg=joint_pos", UnknownNameError), ("shoulder=ee_pose", ConfigError), (twice, ConfigError)):
        with pytest.raises(kind):
            env_of(word)


def test_fetch_drives_lifts_and_reaches_in_one_action():
    env = env_of("base: joint_vel, torso: joint_target_delta_pos, arm: osc_pose:goal=commanded", 3, robot="fetch")
    dims = env.controller.card.dims
    assert [d.name for d in dims] == [
        *("base/base_x", "base/base_y", "base/base_yaw", "torso/torso_lift_joint"),
        *(f"arm/{name}" for name in ("x", "y", "z", "rx", "ry", "rz")),
        "gripper",
    ]
    assert [d.unit for d in dims[:5]] == ["m/s", "m/s", "rad/s", "m", "m"]
    start, tcp, action = env.robot.arm_qpos.clone(), env.robot.tcp_pose.clone(), hold_action(env)
    action[0, 0], action[0, 2], action[1, 3], action[2, 6] = -0.2, 0.3, 1.0, 1.0
    for k in range(50):
        env.step(action)
        if k == 0:
            action[1:, 3:10] = 0  # one step of torso and arm, then they hold
        if k == 19:
            action[0, :3] = 0  # a second of driving
    moved = env.robot.arm_qpos - start
    assert torch.allclose(moved[0, :3], torch.tensor([-0.2, 0.0, 0.3]), atol=5e-3)
    assert torch.allclose(moved[1, :4], torch.tensor([0.0, 0.0, 0.0, 0.02]), atol=2e-3)
    assert torch.allclose(moved[2, :4], torch.zeros(4), atol=2e-3)
    assert torch.allclose(env.robot.tcp_pos[2] - tcp[2, :3], torch.tensor([0.0, 0.0, 0.05]), atol=4e-3)


def test_two_robots_have_one_action():
    """One controller per handle, side by side."""

    class Pair(Fast):
        def scene(self, b):
            return {"left": b.robot(name="left"), "right": b.robot(name="right", pos=(0.6, 0.0, 0.0))}

    chosen = robot_choice("panda")
    control = parse_control("osc_pose")
    builder = SceneBuilder([chosen, chosen], Fast.physics, [torque_joints(control, chosen.arm)] * 2)
    Pair().scene(builder)
    world = make_world(builder.compile(), 1)
    builder.bind(world)
    left, right = builder.robot_handles
    chain = Chain(chosen.arm, chosen.gripper)
    for handle in (left, right):
        handle.set_qpos(handle.keyframe())
    world.forward()
    parts = [
        GroupController(r.name, controller(control, r, chain, 20.0), r, range(9 * k, 9 * k + 9))
        for k, r in enumerate((left, right))
    ]
    both = Composite("pair", "panda panda", parts, None)
    assert both.card.size == 14 and both.card.dims[7].name == "right/x"

    class Both:
        ctrl = torch.zeros(1, 18)

    starts = left.tcp_pos.clone(), right.tcp_pos.clone()
    carry = both.start(Both)
    for _ in range(10):
        action = torch.zeros(1, 14)
        action[0, 2], action[0, 9] = 0.5, -0.5
        _, carry = both(carry, Both, action)
        drive = both.drive(carry, None)
        world.step(25, None, drive)
        carry = drive.carry
    assert left.tcp_pos[0, 2] - starts[0][0, 2] > 0.02 and right.tcp_pos[0, 2] - starts[1][0, 2] < -0.02
