"""The Mico's kinematics and masses. References: the maker's Denavit-Hartenberg table, and the released description."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.fidelity.arm import wrist_pose
from manikin.fidelity.protocol import BASE_HEIGHT
from manikin.robots import robot
from test_robots import PREFIX, compiled

D1, D2, D3, D4, D5, D6, E2 = 0.2755, 0.2900, 0.1233, 0.0741, 0.0741, 0.1600, 0.0070
"""[m] Kinova's parameters of the Mico."""
BEND = np.radians(30)


def denavit_hartenberg(q: np.ndarray) -> np.ndarray:
    """(4, 4) from the base to the tool, of Kinova's joint angles (6,) [rad]: Kinova's classic table."""
    share = np.sin(BEND) / np.sin(2 * BEND)
    far = D3 + share * D4, share * (D4 + D5), share * D5 + D6
    alpha = np.array([0.5 * np.pi, np.pi, 0.5 * np.pi, 2 * BEND, 2 * BEND, np.pi])
    a, d = (0, D2, 0, 0, 0, 0), (D1, 0, -E2, -far[0], -far[1], -far[2])
    theta = np.array([-1, 1, 1, 1, 1, 1]) * q + np.radians([0, -90, 90, 0, -180, 90])
    found = np.eye(4)
    for al, x, z, th in zip(alpha, a, d, theta, strict=True):
        (ca, sa), (ct, st) = (np.cos(al), np.sin(al)), (np.cos(th), np.sin(th))
        found = found @ np.array(
            [[ct, -ca * st, sa * st, x * ct], [st, ca * ct, -sa * ct, x * st], [0, sa, ca, z], [0, 0, 0, 1]]
        )
    return found


def place(body: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position and rotation of a body in the base's frame."""
    built, model = compiled("kinova_mico")
    data = mujoco.MjData(model)
    for name, angle in zip(built.arm_joints, q, strict=True):
        data.qpos[model.joint(PREFIX + name).qposadr[0]] = angle
    mujoco.mj_kinematics(model, data)
    here = data.body(PREFIX + body)
    return here.xpos - built.arm.base_pos, here.xmat.reshape(3, 3).copy()


@pytest.mark.parametrize("seed", range(5))
def test_the_arm_is_kinovas_table_and_the_released_description(seed: int) -> None:
    q = np.random.default_rng(seed).uniform(-2, 2, 6)
    pos, turn = place("gripper_mount", q)
    wrist, frame = wrist_pose(q)
    np.testing.assert_allclose(pos, wrist - [0, 0, BASE_HEIGHT], atol=1e-5)
    np.testing.assert_allclose(turn[:, 2], frame[:, 0], atol=1e-5)  # the tracked frame has x out of the sensor
    # Kinova's table ends at the tool on the last axis, 180 degrees off in joints 2 and 3; links are rounded to 0.1 mm
    table = denavit_hartenberg(q + np.radians([0, 180, 180, 0, 0, 0]))
    joint, last = place("ft_mount", q)
    np.testing.assert_allclose(joint - last[:, 2] * D6, table[:3, 3], atol=4e-4)
    np.testing.assert_allclose(-last[:, 2], table[:3, 2], atol=1e-5)


def test_masses_are_those_of_the_description() -> None:
    _, model = compiled("kinova_mico")
    arm = 0.46784 + 0.7477 + 0.85968 + 0.606 + 2 * 0.1785 + 0.0431 + 0.65
    hand = 0.04 + 0.727 + 6 * 0.01
    assert model.body_mass.sum() == pytest.approx(arm + hand, abs=1e-9)
    assert model.body(PREFIX + "gripper_mount").subtreemass[0] == pytest.approx(hand, abs=1e-9)
    assert robot("kinova_mico").gripper.name == "kinova_kg3"
