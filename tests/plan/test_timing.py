"""Timing of motions: limits by finite differences, durations against Ruckig and the textbook."""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
import torch
from torch import Tensor

from manikin.errors import ConfigError
from manikin.plan.corners import MOST, cuts, longest_cuts
from manikin.plan.timing import Limits, Timing, from_motion, limits_of, time_path
from manikin.robots import arm

LIMITS = Limits(
    torch.tensor([1.0, 2.0, 0.7]).double(),
    torch.tensor([4.0, 3.0, 9.0]).double(),
    torch.tensor([40.0, 90.0, 20.0]).double(),
)


def paths() -> Tensor:
    """Long pieces, short ones that reach neither full speed nor full acceleration, and one of no length."""
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(6, 5, 3, generator=generator, dtype=torch.float64)
    points[1] *= 0.05
    points[2] *= 1e-3
    points[3, 2] = points[3, 1]
    points[4] = points[4, :1]
    points[5, :, :2] = 0.0
    return points


def test_sampled_motion_keeps_every_limit_by_finite_differences_and_stays_on_its_path() -> None:
    points = paths()
    motion = time_path(points, LIMITS)
    dt = 1e-3
    t = torch.arange(0, float(motion.duration.max()) + 0.1, dt, dtype=torch.float64).expand(6, -1)
    q, qd, qdd = motion.sample(t)
    for value, slope, limit in (
        (q, qd, LIMITS.velocity),
        (qd, qdd, LIMITS.acceleration),
        (qdd, None, LIMITS.jerk),
    ):
        measured = value.diff(dim=1) / dt
        assert (measured.abs() <= limit * (1 + 1e-6) + 1e-9).all()
        if slope is not None:  # and what is called a velocity is one
            middle = (slope[:, 1:] + slope[:, :-1]) / 2
            assert (measured - middle).abs().max() < 2e-2
    torch.testing.assert_close(q[:, 0], points[:, 0], atol=1e-9, rtol=0)
    torch.testing.assert_close(q[:, -1], points[:, -1], atol=1e-9, rtol=0)
    assert qd[:, -1].abs().max() < 1e-9 and qdd[:, -1].abs().max() < 1e-6
    # every sample lies between two corners: the two distances add up to the piece's length
    a, b = points[:, None, :-1], points[:, None, 1:]
    norm = torch.linalg.vector_norm
    excess = norm(q[:, :, None] - a, dim=-1) + norm(q[:, :, None] - b, dim=-1) - norm(b - a, dim=-1)
    assert excess.amin(2).max() < 1e-8
    assert (motion.duration[4] == 0).all()


def rounded(points: Tensor, deviation: float) -> list[Tensor]:
    """As far as the pieces and the deviation let the corners be cut; nothing is in the way."""
    return [torch.from_numpy(longest_cuts(p.numpy(), deviation)) for p in points]


@pytest.mark.parametrize("deviation", [0.02, 10.0])
def test_rounded_corners_keep_every_limit_and_the_stated_deviation_and_save_time(deviation: float) -> None:
    points = torch.cat([paths(), torch.tensor([[[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 0], [0, 1, 0]]])])
    motion = time_path(points, LIMITS, rounded(points, deviation))
    dt = 1e-3
    t = torch.arange(0, float(motion.duration.max()) + 0.1, dt, dtype=torch.float64).expand(7, -1)
    q, qd, qdd = motion.sample(t)
    for value, slope, limit in ((q, qd, LIMITS.velocity), (qd, qdd, LIMITS.acceleration), (qdd, None, LIMITS.jerk)):
        measured = value.diff(dim=1) / dt
        assert (measured.abs() <= limit * (1 + 1e-6) + 1e-9).all()
        if slope is not None:  # no jump in position or velocity: the slope between two samples is that in the middle
            assert (measured - (slope[:, 1:] + slope[:, :-1]) / 2).abs().max() < 2e-2
    torch.testing.assert_close(q[:, 0], points[:, 0], atol=1e-9, rtol=0)
    torch.testing.assert_close(q[:, -1], points[:, -1], atol=1e-9, rtol=0)
    assert qd[:, -1].abs().max() < 1e-9
    # to the nearest place of the nearest piece, in the joint that is farthest away
    a, d = points[:, None, :-1], points.diff(dim=1)[:, None]
    share = torch.linspace(0, 1, 2001, dtype=torch.float64)
    for row in range(7):
        some = q[row, :: max(1, len(t[0]) // 150)]
        dense = (a[row] + share[:, None, None] * d[row]).flatten(0, 1)
        away = (some[:, None] - dense).abs().amax(2).amin(1)
        assert away.max() <= deviation + 2e-3
    stops = time_path(points, LIMITS).duration
    assert (motion.duration <= 1.005 * stops).all()  # a corner cut too little to be worth it is not cut
    if deviation > 1:
        assert (motion.duration[:3] < 0.95 * stops[:3]).all()


def test_straight_on_through_a_corner_takes_hardly_longer_than_in_one_piece() -> None:
    bent = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [3, 0, 0]]]).double()
    plain = bent[:, ::2]
    motion, whole = time_path(bent, LIMITS, rounded(bent, 0.1)), time_path(plain, LIMITS)
    torch.testing.assert_close(motion.duration, whole.duration, atol=1e-9, rtol=0)
    assert time_path(bent, LIMITS).duration > whole.duration + 0.2


def test_between_two_speeds_a_straight_part_takes_as_long_as_ruckig_says() -> None:
    ruckig = pytest.importorskip("ruckig", reason="the extra 'plan' is not installed")
    points = paths()[:3]
    both = [cuts(p.numpy(), r.numpy()) for p, r in zip(points, rounded(points, 0.2), strict=True)]
    into, out = (torch.from_numpy(np.stack([pair[k] for pair in both])) for k in (0, 1))
    timing = Timing(points, into, out, LIMITS)
    one, two = timing.speeds()
    parts = timing.trajectory().ends.diff(dim=1, prepend=torch.zeros(3, 1)).view(3, 4, 10)[:, :, 3:].sum(2)
    for row, piece in itertools.product(range(3), range(4)):
        given = ruckig.InputParameter(1)
        given.current_position, given.target_position = [0.0], [float((timing.end - timing.begin)[row, piece])]
        given.current_velocity, given.target_velocity = (
            [min(float(x[row, piece]), float(timing.v[row, piece]))]
            for x in (one, two)  # to the last bit
        )
        given.max_velocity, given.max_acceleration, given.max_jerk = (
            [float(x[row, piece])] for x in (timing.v, timing.a, timing.j)
        )
        found = ruckig.Trajectory(1)
        ruckig.Ruckig(1).calculate(given, found)
        assert float(parts[row, piece]) == pytest.approx(found.duration, rel=1e-6)


def test_a_corner_cut_too_far_is_refused() -> None:
    points = paths()[:1]
    for reach in (torch.tensor([0, 9.0, 0, 0, 0]), torch.tensor([0.1, 0, 0, 0, 0]), torch.zeros(3)):
        with pytest.raises(ConfigError, match=f"may take {MOST}"):
            time_path(points, LIMITS, [reach])


def test_a_cut_is_as_long_as_its_reach_in_the_joint_that_moves_most() -> None:
    path = paths()[0].numpy()
    into, out = cuts(path, np.array([0, 0.1, 0, 0.02, 0]))
    assert np.abs(into).max(1).tolist() == pytest.approx([0, 0.1, 0, 0.02, 0])
    assert np.abs(out).max(1).tolist() == pytest.approx([0, 0.1, 0, 0.02, 0])
    turned = (path[1] - path[0]) / np.linalg.norm(path[1] - path[0])
    assert into[1] / np.linalg.norm(into[1]) == pytest.approx(turned)


def test_with_endless_jerk_it_is_the_textbook_trapezoid() -> None:
    limits = Limits(torch.tensor([2.0]).double(), torch.tensor([4.0]).double(), torch.tensor([1e9]).double())
    motion = time_path(torch.tensor([[[0.0], [3.0]], [[0.0], [0.5]]]), limits)
    torch.testing.assert_close(
        motion.duration, torch.tensor([3 / 2 + 2 / 4, 2 * math.sqrt(0.5 / 4)]).double(), atol=1e-6, rtol=0
    )


def test_a_piece_takes_as_long_as_ruckig_says_with_the_joints_kept_in_step() -> None:
    ruckig = pytest.importorskip("ruckig", reason="the extra 'plan' is not installed")
    points = paths()
    motion = time_path(points, LIMITS)
    for row, path in enumerate(points):
        total = 0.0
        for a, b in itertools.pairwise(path):
            along = (b - a).abs()
            if not along.max():
                continue
            given = ruckig.InputParameter(1)  # the way along the piece, from 0 to 1
            given.current_position, given.target_position = [0.0], [1.0]
            given.max_velocity = [float((LIMITS.velocity / along).min())]
            given.max_acceleration = [float((LIMITS.acceleration / along).min())]
            given.max_jerk = [float((LIMITS.jerk / along).min())]
            found = ruckig.Trajectory(1)
            ruckig.Ruckig(1).calculate(given, found)
            total += found.duration
        assert float(motion.duration[row]) == pytest.approx(total, rel=1e-6, abs=1e-9)


def test_from_motion_begins_at_speed_and_keeps_the_limits() -> None:
    pytest.importorskip("ruckig", reason="the extra 'plan' is not installed")
    q, qd, goal = (
        torch.zeros(2, 3),
        torch.tensor([[0.5, -1.0, 0.0], [0.0, 0.0, 0.3]]),
        torch.tensor([[1.0, 0.2, -0.4]]).expand(2, 3),
    )
    dt = 1e-3
    made = from_motion(q, qd, torch.zeros(2, 3), goal, LIMITS, dt=dt)
    for row, samples in enumerate(made):
        torch.testing.assert_close(samples[-1], goal[row].double(), atol=1e-6, rtol=0)
        speed = torch.cat([q[row : row + 1].double(), samples]).diff(dim=0) / dt
        assert (speed[0] - qd[row].double()).abs().max() < 0.02
        assert (speed[:-1].abs() <= LIMITS.velocity * (1 + 1e-6)).all()
        assert (speed[:-1].diff(dim=0).abs() / dt <= LIMITS.acceleration * (1 + 1e-4) + 1e-6).all()


def test_bad_limits_and_shapes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="3 positive numbers"):
        Limits(torch.ones(3), torch.ones(3), torch.zeros(3))
    with pytest.raises(ConfigError, match=r"must be \(n, points, 3\)"):
        time_path(torch.zeros(2, 4, 7), LIMITS)
    with pytest.raises(ConfigError, match="share"):
        limits_of(arm("panda"), share=1.5)
    monkeypatch.setitem(sys.modules, "ruckig", None)
    with pytest.raises(ConfigError, match=r"manikin\[plan\]"):
        from_motion(torch.zeros(1, 3), torch.zeros(1, 3), torch.zeros(1, 3), torch.ones(1, 3), LIMITS, dt=0.1)


def test_limits_of_the_panda_are_franka_s_or_what_its_servos_follow() -> None:
    limits = limits_of(arm("panda"), share=1.0)
    assert limits.acceleration.tolist() == [15, 7.5, 10, 12.5, 15, 20, 20]
    assert limits.jerk.tolist() == [7500, 3750, 5000, 6250, 7500, 10000, 10000]
    assert limits.velocity.tolist() == pytest.approx([0.8] * 7)  # 100 N m against 100 N m s/rad
    assert limits_of(arm("panda"), share=0.2).velocity.tolist() == pytest.approx([0.435] * 4 + [0.522] * 3)
