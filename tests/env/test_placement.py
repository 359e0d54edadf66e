"""Samplers of places: nothing overlaps, rows are their own, what cannot be placed is said."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from manikin.env.placement import Place
from manikin.env.task import Episode
from manikin.errors import SceneError
from manikin.math import pose, pose_apply, pose_inv, quat_from_yaw, quat_to_yaw
from manikin.rng import EpisodeRng


def _episode(seeds: list[int]) -> Episode:
    seed = torch.tensor(seeds)
    return Episode(np.arange(len(seeds)), torch.zeros_like(seed), EpisodeRng(seed, torch.zeros_like(seed)))


def _gaps(poses: torch.Tensor, radii: torch.Tensor) -> torch.Tensor:
    """(n, pairs) distance between the circles of every pair, written with a loop."""
    k = poses.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i)]
    return torch.stack(
        [(poses[:, i, :2] - poses[:, j, :2]).norm(dim=1) - radii[:, i] - radii[:, j] for i, j in pairs], 1
    )


def test_things_of_different_sizes_keep_their_gap_and_use_the_whole_rectangle() -> None:
    radii = (0.02, 0.05, 0.035)
    places = [Place(low=(-0.2, -0.1), high=(0.2, 0.1), radius=r, z=r) for r in radii]
    poses = _episode(list(range(512))).scatter(places, gap=0.01)
    assert poses.shape == (512, 3, 7)
    assert _gaps(poses, torch.tensor(radii).expand(512, 3)).min() >= 0.01 - 1e-6
    assert (poses[:, :, 0].abs() <= 0.2).all() and (poses[:, :, 1].abs() <= 0.1).all()
    assert poses[:, :, 0].abs().max() > 0.19 and poses[:, :, 1].abs().max() > 0.095
    torch.testing.assert_close(poses[:, :, 2], torch.tensor(radii).expand(512, 3))
    turn = quat_to_yaw(poses[:, :, 3:])
    assert turn.min() < -3.0 and turn.max() > 3.0 and abs(turn.mean()) < 0.15


def test_turns_stay_in_their_range_and_inside_keeps_the_whole_thing_in() -> None:
    places = [
        Place(low=(-0.1, -0.1), high=(0.1, 0.1), radius=0.03, turn=(0.2, 0.5), inside=True),
        Place(low=(0.3, 0.0), high=(0.3, 0.0), turn=-1.0),
    ]
    poses = _episode(list(range(256))).scatter(places)
    turn = quat_to_yaw(poses[..., 3:])
    assert 0.2 <= turn[:, 0].min() < 0.22 and 0.48 < turn[:, 0].max() <= 0.5
    torch.testing.assert_close(turn[:, 1], torch.full((256,), -1.0))
    assert 0.06 < poses[:, 0, :2].abs().max() <= 0.07
    torch.testing.assert_close(poses[:, 1, :2], torch.tensor([0.3, 0.0]).expand(256, 2))


def test_each_row_may_have_its_own_sizes() -> None:
    n = 64
    radius = torch.linspace(0.01, 0.06, n)
    places = [Place(low=(-0.15, -0.15), high=(0.15, 0.15), radius=radius, z=radius, inside=True) for _ in range(2)]
    poses = _episode(list(range(n))).scatter(places)
    assert _gaps(poses, radius[:, None].expand(n, 2)).min() >= -1e-6
    assert (poses[..., :2].abs() <= (0.15 - radius + 1e-6)[:, None, None]).all()
    torch.testing.assert_close(poses[:, 1, 2], radius)


def test_a_frame_of_reference_moves_and_turns_everything() -> None:
    places = [Place(low=(0.1, -0.05), high=(0.2, 0.05), z=0.02, turn=0.3)] * 2
    plain = _episode([3, 4]).scatter(places)
    frame = pose(torch.tensor([1.0, 2.0, 0.5]), quat_from_yaw(torch.tensor(1.2)))
    moved = _episode([3, 4]).scatter(places, around=frame)
    back = pose_apply(pose_inv(frame).expand(2, 2, 7), moved[..., :3])
    torch.testing.assert_close(back, plain[..., :3], atol=1e-6, rtol=0)
    torch.testing.assert_close(quat_to_yaw(moved[..., 3:]), torch.full((2, 2), 1.5))


def test_what_is_there_already_is_kept_clear_of() -> None:
    places = [Place(low=(-0.1, -0.1), high=(0.1, 0.1), radius=0.02)]
    there = torch.zeros(128, 2, 2)
    there[:, 1] = 0.01  # these two overlap each other, which is nobody's fault
    poses = _episode(list(range(128))).scatter(places, taken=(there, torch.full((128, 2), 0.05)))
    assert (poses[:, 0, None, :2] - there).norm(dim=-1).min() >= 0.07 - 1e-6


def test_a_row_does_not_depend_on_others() -> None:
    places = [Place(low=(-0.1, -0.1), high=(0.1, 0.1), radius=r) for r in (0.03, 0.03, 0.04)]
    whole = _episode([5, 6, 7, 8]).scatter(places)
    assert torch.equal(_episode([7]).scatter(places)[0], whole[2])
    assert torch.equal(_episode([8, 5]).scatter(places), whole[[3, 0]])


def test_what_cannot_be_placed_is_an_error_that_says_so() -> None:
    crowd = [Place(low=(-0.1, -0.1), high=(0.1, 0.1), radius=0.09) for _ in range(3)]
    with pytest.raises(SceneError, match=r"cubes: no room for 3 things that may not overlap, rows \[0, 1\]"):
        _episode([0, 1]).scatter(crowd, name="cubes")
    wide = [Place(low=(-0.1, -0.1), high=(0.1, 0.1), radius=0.02), Place(low=(0, 0), high=(0.1, 0.1), radius=0.06)]
    with pytest.raises(SceneError, match=r"thing 1, 0.12 m wide"):
        _episode([0]).scatter([wide[0], dataclasses.replace(wide[1], inside=True)])
    own = Place(low=(0, 0), high=(0.1, 0.1), radius=torch.tensor([0.04, 0.06]), inside=True)
    with pytest.raises(SceneError, match=r"rows \[1\]"):
        _episode([0, 1]).scatter([own])
    with pytest.raises(SceneError, match="no room for 2 things"):
        _episode([0]).place(2, low=(0, 0), high=(0.01, 0.01), gap=math.sqrt(2))
