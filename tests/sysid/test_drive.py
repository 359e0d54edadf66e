"""SIMPLER's robots follow the drive law that SIMPLER published, as an independent integration of it has it."""

from __future__ import annotations

import numpy as np
import pytest

from drive_law import DriveLaw, motions_of
from manikin.robots import robot
from manikin.spec.links import Joint, Link
from manikin.sysid import parse_parameter
from manikin.sysid.rollout import Rollout


def pendulum(links: int, *, stiffness: float, damping: float, limit: float = np.inf) -> DriveLaw:
    """Rods of 2 kg and 0.5 m about parallel axes, each at the end of the one before."""
    chain, names = [], tuple(f"joint {k}" for k in range(links))
    for k, name in enumerate(names):
        chain.append(
            Link(
                name=f"rod {k}",
                parent=None if k == 0 else f"rod {k - 1}",
                pos=(0.5 * (k > 0), 0, 0),
                joint=Joint(name=name, axis=(0, 0, 1)),
                mass=2.0,
                com=(0.25, 0, 0),
                inertia=(0.001, 0.04, 0.04),
            )
        )
    each = [np.full(links, value) for value in (stiffness, damping, limit)]
    return DriveLaw(links=tuple(chain), joints=names, stiffness=each[0], damping=each[1], limit=each[2])


def test_the_mass_matrix_is_that_of_the_textbook() -> None:
    """Two rods in a plane: Siciliano et al., Robotics (2009), section 7.3.2, without rotors."""
    m, length, centre, inertia, angle = 2.0, 0.5, 0.25, 0.04, 0.7
    found = pendulum(2, stiffness=1, damping=1).mass_matrix(np.array([0.3, angle]))
    both = inertia + m * (centre**2 + length * centre * np.cos(angle))
    last = inertia + m * centre**2
    first = inertia + m * centre**2 + inertia + m * (length**2 + centre**2 + 2 * length * centre * np.cos(angle))
    assert found == pytest.approx(np.array([[first, both], [both, last]]), rel=1e-12)


def test_a_joint_moves_as_the_linear_equation_says() -> None:
    M, k, d, size, hz = 0.04 + 2.0 * 0.25**2, 100.0, 40.0, 0.2, 20.0
    found = pendulum(1, stiffness=k, damping=d).follow([0.0], np.full((12, 1), size), hz)[:, 0]
    fast, slow = (np.roots([M, d, k])).real
    time = np.arange(12) / hz
    way = size * (1 - (fast * np.exp(slow * time) - slow * np.exp(fast * time)) / (fast - slow))
    assert found == pytest.approx(way, abs=2e-5)


def test_the_limit_bounds_stiffness_and_damping_together() -> None:
    """Far from its target a joint first gains speed under the limit alone, then keeps that at which both parts cancel:
    the speed is not bounded by limit / damping."""
    M, k, d, limit = 0.04 + 2.0 * 0.25**2, 100.0, 40.0, 5.0
    law = pendulum(1, stiffness=k, damping=d, limit=limit)
    start = law.follow([0.0], np.full((3, 1), 1.0), 100.0)[:, 0]
    assert start == pytest.approx(0.5 * limit / M * (np.arange(3) / 100.0) ** 2, abs=1e-6)
    later = law.follow([0.0], np.full((40, 1), 1.0), 100.0)[:, 0]
    assert np.diff(later).max() * 100 > 5 * limit / d


@pytest.mark.parametrize(
    ("word", "keyframe", "joint", "hz", "physics_hz", "missed"),
    [
        ("widowx_bridge", "table", "wrist_angle", 5.0, 500.0, 30e-3),
        ("google_robot_rt1", "rest", "joint_wrist", 3, 90, 0),
    ],
)
def test_a_robot_follows_the_law(
    word: str, keyframe: str, joint: str, hz: float, physics_hz: float, missed: float
) -> None:
    """Within 1.5 mrad on the way to a target 0.3 rad away. With the published limit on what stiffness gives alone, as
    MuJoCo's servos have limits, the WidowX would be far behind."""
    arm = robot(word).arm
    law, number = DriveLaw.of(arm), arm.joints.index(joint)
    recorded = motions_of(law, word, arm.keyframes[keyframe], hz, seconds=1.2, joints=[joint])
    rollout = Rollout(recorded, [parse_parameter("force=10:4000")], physics_hz=physics_hz, batch=2)
    tracks = rollout(np.array([arm.gains.force, law.limit]))
    rollout.close()
    off = [np.abs(q.numpy()[:, :, number] - [one.qpos[:, number] for one in recorded.items]) for q in tracks.qpos]
    assert off[0].max() < 1.5e-3 and off[1].max() >= missed
    assert max(np.ptp(one.qpos[:, number]) for one in recorded.items) > 0.1
