"""Sources of observations: a task's own groups, clouds, one's own through cameras, rows of several layouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

import manikin
from manikin.env.observe import Vision
from manikin.env.observe.views import Cloud, Pictures
from manikin.errors import ConfigError
from manikin.sense.imperfect import Delay, Imperfection
from manikin.sense.imu import Imu
from manikin.sense.pointcloud import PointCloudSpec
from manikin.sense.source import Group, Sight, Source
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec
from manikin.tasks.tabletop.pick_cube import PickCube

SMALL = Vision(
    cameras=(CameraSpec(name="small", pos=(0.4, 0.1, 0.5), target=(0, 0, 0.05), width=24, height=16),), renderer="rays"
)


class Feels(PickCube):
    """PickCube with a group of its own.

    Success: as PickCube.
    """

    id = "Feels-v0"

    def observe(self, h):
        seen = super().observe(h)
        return {**seen, "touch": {"height": h.robot.tcp_pos[:, 2:]}}


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_a_group_of_the_tasks_own_is_shown_where_it_is_asked_for(device: str) -> None:
    env = manikin.make(Feels, 2, observe=["policy", Group(name="touch"), Stack(2, "touch")], device=device)
    seen, _ = env.reset(seed=0)
    assert list(seen) == ["policy", "touch"]
    for _ in range(2):
        before, seen = seen, env.step(torch.full((2, 8), 0.3))[0]
        assert torch.equal(seen["touch"]["height"][:, 0], before["touch"]["height"][:, 1])
        assert torch.allclose(seen["touch"]["height"][:, 1], env.robot.tcp_pos[:, 2:])
    assert set(manikin.make(Feels, 2, observe="state_dict").reset(seed=0)[0]) == {"policy", "privileged"}
    with pytest.raises(ConfigError, match="observes policy, privileged, no group 'touhc'"):
        manikin.make("PickCube-v2", 1, observe=["policy", Group(name="touhc")])


def test_several_clouds_and_pictures_of_ones_own_names() -> None:
    near = Cloud(name="near", spec=PointCloudSpec(count=16, low=(-0.2, -0.2, 0.005), high=(0.2, 0.2, 0.3)))
    env = manikin.make("PickCube-v2", 2, observe=["pointcloud", near, Pictures(name="depths", outputs=("depth",))],
                       vision=SMALL)  # fmt: skip
    seen, _ = env.reset(seed=0)
    assert list(seen) == ["policy", "pointcloud", "near", "depths"]
    assert seen["near"]["xyz"].shape == (2, 16, 3) and seen["pointcloud"]["xyz"].shape == (2, 1024, 3)
    assert set(seen["depths"]["small"]) == {"depth", "K", "T"}
    assert manikin.make("PickCube-v2", 2, observe=env.observe, vision=SMALL).observe == env.observe


@dataclass(frozen=True, kw_only=True)
class Nearest(Source):
    """Distance of the nearest thing that the cameras see, late by a step."""

    name: str = "nearest"
    needs: ClassVar[tuple[str, ...]] = ("depth",)

    def observe(self, sight: Sight) -> Mapping[str, torch.Tensor]:
        depth = torch.cat([seen["depth"].flatten(1) for seen in sight.pictures.values()], 1)
        return {"distance": depth.where(depth > 0, torch.inf).amin(1, keepdim=True)}

    def imperfections(self) -> Mapping[str, list[Imperfection]]:
        return {"distance": [Delay(1)]}


def test_a_source_may_look_through_cameras_and_bring_its_imperfections() -> None:
    env = manikin.make("PickCube-v2", 2, observe=["policy", Nearest()], vision=SMALL)
    plain = manikin.make("PickCube-v2", 2, observe="depth", vision=SMALL)
    seen, truth = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    assert list(seen) == ["policy", "nearest"]
    for _ in range(3):
        action = torch.full((2, 8), 0.6)
        late, (seen, *_), (truth, *_) = truth, env.step(action), plain.step(action)
        depth = late["cameras"]["small"]["depth"].flatten(1)
        assert torch.equal(seen["nearest"]["distance"][:, 0], depth.where(depth > 0, torch.inf).amin(1))


def test_rows_of_several_layouts_have_further_sources_too() -> None:
    env = manikin.make("OpenCabinetDrawer-v2", 4, observe=["state", Imu(on="robot")])
    seen, _ = env.reset(seed=0)
    assert seen["imu"]["accelerometer"].shape == (4, 3) and torch.allclose(
        seen["imu"]["accelerometer"].norm(dim=1), torch.full((4,), 9.81), atol=0.05
    )
    assert {"policy", "privileged", "imu"} == set(seen)


@dataclass(frozen=True, kw_only=True)
class TooFew(Source):
    name: str = "few"

    def observe(self, sight: Sight) -> torch.Tensor:
        return torch.zeros(1, 2)


def test_a_source_of_the_wrong_shape_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"source 'few' observes tensors of 3 rows, got one of shape \(1, 2\)"):
        manikin.make("PickCube-v2", 3, observe=["policy", TooFew()])
