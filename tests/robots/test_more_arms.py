"""UR10e, xArm6, SO-100 and two SO-101: the makers' own tables of lengths, and ManiSkill3's description."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import manikin
from beside_warp import ends_on_both
from manikin.robots import arm, parse_robots, stand_together
from test_robots import PREFIX, compiled

PI = np.pi

# rows of theta offset [rad], d [m], a [m] and alpha [rad], as the makers publish them
UFACTORY = (  # xArm6's standard parameters, in UFACTORY's manual
    (0, 0.267, 0, -PI / 2),
    (-1.3849179, 0, 0.28948866, 0),
    (1.3849179, 0, 0.0775, -PI / 2),
    (0, 0.3425, 0, PI / 2),
    (0, 0, 0.076, -PI / 2),
    (0, 0.097, 0, 0),
)
UNIVERSAL = (  # UR10e's parameters, on Universal Robots' pages
    (0, 0.1807, 0, PI / 2),
    (0, 0, -0.6127, 0),
    (0, 0, -0.57155, 0),
    (0, 0.17415, 0, PI / 2),
    (0, 0.11985, 0, -PI / 2),
    (0, 0.11655, 0, 0),
)


def denavit_hartenberg(table: tuple[tuple[float, ...], ...], q: np.ndarray) -> np.ndarray:
    """(4, 4) from the base to the flange."""
    found = np.eye(4)
    for (offset, d, a, alpha), angle in zip(table, q, strict=True):
        (ct, st), (ca, sa) = (np.cos(offset + angle), np.sin(offset + angle)), (np.cos(alpha), np.sin(alpha))
        row = [[ct, -st * ca, st * sa, a * ct], [st, ct * ca, -ct * sa, a * st], [0, sa, ca, d], [0, 0, 0, 1]]
        found = found @ np.array(row)
    return found


def flange(word: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position [m] and rotation of the bare flange in the base's frame."""
    built, model = compiled(f"{word}+none")
    data = mujoco.MjData(model)
    for name, angle in zip(built.arm_joints, q, strict=True):
        data.joint(PREFIX + name).qpos[0] = angle
    mujoco.mj_kinematics(model, data)
    tcp = data.body(PREFIX + "tcp")
    return tcp.xpos - built.arm.base_pos, tcp.xmat.reshape(3, 3).copy()


@pytest.mark.parametrize("seed", range(5))
def test_the_xarm6_is_ufactorys_table(seed: int) -> None:
    q = np.random.default_rng(seed).uniform(-2, 2, 6)
    pos, turn = flange("xarm6", q)
    table = denavit_hartenberg(UFACTORY, q)
    assert np.allclose(pos, table[:3, 3], atol=1e-5) and np.allclose(turn, table[:3, :3], atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_ur10e_is_universal_robots_table_to_a_few_millimetres(seed: int) -> None:
    """Menagerie rounds lengths to a millimetre, and its flange is 17 mm nearer to the wrist."""
    q = np.random.default_rng(seed).uniform(-2, 2, 6)
    pos, turn = flange("ur10e", q)
    table = denavit_hartenberg(UNIVERSAL, q)
    half = np.diag([-1, -1, 1])  # UR's base frame is turned by half a turn
    wrist = half @ (table[:3, 3] - 0.11655 * table[:3, 2])
    assert np.linalg.norm(pos - 0.1 * turn[:, 2] - wrist) < 2e-3
    assert np.allclose(turn[:, 2], half @ table[:3, 2], atol=1e-5)


def test_masses_are_those_of_the_descriptions() -> None:
    """By hand from xarm_ros' xarm6_type6_HT_BR2.yaml and mujoco_menagerie's ur10e.xml."""
    for word, masses in (
        ("xarm6", (2.7, 2.3814, 2.2675, 1.875, 1.3192, 1.33854, 0.17)),
        ("ur10e", (4.0, 7.778, 12.93, 3.87, 1.96, 1.96, 0.202)),
    ):
        assert compiled(f"{word}+none")[1].body_mass.sum() == pytest.approx(sum(masses), rel=1e-9)


def test_limits_and_forces_are_those_of_the_descriptions() -> None:
    """By hand from xarm_ros' xarm6.urdf.xacro and Universal Robots' maximum joint torques."""
    _, xarm6 = compiled("xarm6+none")
    low, high = xarm6.jnt_range.T
    assert np.allclose(low, (-2 * PI, -2.059, -3.927, -2 * PI, -1.69297, -2 * PI))
    assert np.allclose(high, (2 * PI, 2.0944, 0.19198, 2 * PI, PI, 2 * PI))
    assert np.allclose(xarm6.actuator_forcerange[:, 1], (50, 50, 32, 32, 32, 20))
    _, ur10e = compiled("ur10e+none")
    assert np.allclose(ur10e.actuator_forcerange[:, 1], (330, 330, 150, 56, 56, 56))


def test_so100_has_maniskills_gains_steps_and_rest() -> None:
    """By hand from ManiSkill3 3.0.1's so_100.py."""
    env = manikin.make("PickCube-v2", robot="so100", control="joint_target_delta_pos")
    env.reset(seed=0)
    steps = {dim.name: dim.scale for dim in env.controller.card.dims}
    assert [steps[joint] for joint in env.robot.arm.joints] == pytest.approx([0.05] * 5)
    rest = (0, -1.5708 - PI / 2, 1.5708 + PI / 2, 0.66, 0)  # ManiSkill3 counts shoulder and elbow from elsewhere
    assert np.allclose(env.robot.arm.keyframes["maniskill"], rest, atol=2e-3)  # the elbow ends at 3.14
    gains = env.robot.arm.gains
    assert gains.kp == (1000,) * 5 and gains.kd == (100,) * 5 and gains.force == (100,) * 5


def test_two_so101_are_one_word() -> None:
    left, right = parse_robots("bi_so101")
    assert [left.arm.name, right.arm.name] == ["bi_so101_left", "bi_so101_right"]
    assert stand_together((left, right)) and left.arm.keyframes == right.arm.keyframes == arm("so101").keyframes
    env = manikin.make("TwoRobotPickCube-v2", robot="bi_so101", control="joint_target_delta_pos")
    env.reset(seed=0)
    names = [dim.name for dim in env.controller.card.dims]
    assert len(names) == 12 and names[0] == "robot0/shoulder_pan" and names[-1] == "robot1/gripper"
    apart = env.robots[0].tcp_pos - env.robots[1].tcp_pos
    assert apart[0, 1] == pytest.approx(0.3, abs=0.02)
    for _ in range(20):  # they sag a little
        env.step(env.hold())
    action = env.hold()
    action[0, names.index("robot1/shoulder_lift")] = -1.0
    before = [one.tcp_pos.clone() for one in env.robots]
    for _ in range(10):
        env.step(action)
    moved = [(one.tcp_pos - start).norm() for one, start in zip(env.robots, before, strict=True)]
    assert moved[1] > 0.025 and moved[0] < 0.002


@pytest.mark.xdist_group("warp")
@pytest.mark.parametrize("word", ["ur10e", "xarm6", "so100", "panda+stick", "bi_so101_right"])
def test_an_arm_moves_on_warp_as_on_the_cpu(word: str) -> None:
    """Ten control steps in the air, within 1e-4 rad: float32 against float64."""
    here, there = ends_on_both(word, -0.6, 0.8)
    assert torch.allclose(here, there, atol=1e-4, rtol=0)
