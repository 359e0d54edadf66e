"""The line on which the base comes to a handle and back."""

from __future__ import annotations

import math

import pytest
import torch

from manikin.tasks.home.doors.approach import Approach, approach, floor
from manikin.tasks.home.doors.fronts import fronts

LAYOUT = "apartment0"


def found(*backs: float, wide: float = 0.4) -> Approach:
    """From 1.2 m before a drawer, straight."""
    one = fronts(LAYOUT, ("drawer",)).each[0]
    foot, out = torch.tensor([one.handle]).float(), torch.tensor([one.yaw]).float()
    ahead = torch.tensor([[math.cos(one.yaw), math.sin(one.yaw)]])
    base = torch.cat([foot[:, :2] + 1.2 * ahead, out[:, None] + math.pi], 1)
    ends = [torch.tensor([away]) for away in (0.9, *backs)]
    cold = torch.tensor([False])
    return approach(LAYOUT, cold, foot, out, base, torch.tensor([-wide]), torch.tensor([wide]), *ends)


def test_the_base_comes_back_as_far_as_it_has_room() -> None:
    line = found(1.2, 1.3)
    assert line.back.tolist() == pytest.approx([1.3])
    assert floor(LAYOUT).clearance_at(line.base(line.back)[:, :2].numpy())[0] > 0.3


def test_it_comes_back_less_far_where_something_stands_in_the_way() -> None:
    line = found(1.2)

    def room(away: float) -> float:
        return float(floor(LAYOUT).clearance_at(line.base(away)[:, :2].numpy())[0])

    tight = next(1.2 + 0.1 * k for k in range(1, 60) if room(1.2 + 0.1 * k) < 0.2)
    free = next(tight - 0.1 * k for k in range(1, 20) if room(tight - 0.1 * k) > 0.32)
    assert found(free, tight, wide=0.0).back.tolist() == pytest.approx([free])


def test_places_on_the_line() -> None:
    line = found(1.2)
    place = line.base(1.0)
    assert float((place[:, :2] - line.foot[:, :2]).norm()) == pytest.approx(1.0, abs=1e-5)
    to = line.foot[0, :2] - place[0, :2]
    assert math.atan2(to[1], to[0]) == pytest.approx(float(place[0, 2]), abs=1e-5)
    hand = line.hand(line.foot, 0.1)
    assert float((hand[0, :3] - line.foot[0]).norm()) == pytest.approx(0.1, abs=1e-5)
