"""Where things are in pictures, against the pinhole formula, the renderer's segmentation and sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manikin import make
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.learn.common.pictures import PictureConfig, augmented_with_places
from manikin.learn.common.places import Locator, place_loss, projected
from manikin.policy.networks.cloned import Cloned
from manikin.sense.stack import Stack
from manikin.spec.camera import CameraSpec

NEAR = CameraSpec(name="near", pos=(0.6, 0.1, 0.4), target=(0.08, 0.0, 0.0), fovy=0.8)
PATH = "cameras/near/rgb"


def test_a_point_is_where_a_pinhole_camera_sees_it():
    """One metre above, looking down, the picture's x along the world's x and its y along the world's -y."""
    T = torch.tensor([[1.0, 0, 0, 0.2], [0, -1, 0, 0.1], [0, 0, -1, 1.0], [0, 0, 0, 1]])[None]
    K = torch.tensor([[50.0, 0, 15.5], [0, 40.0, 11.5], [0, 0, 1]])[None]
    points = torch.tensor([[[0.2, 0.1, 0.0], [0.3, 0.1, 0.5], [0.2, 0.3, 0.0], [0.2, 0.1, 1.5]]])
    found = projected(points, K, T, width=32, height=24)[0]
    pixels = [(15.5, 11.5), (15.5 + 50 * 0.1 / 0.5, 11.5), (15.5, 11.5 - 40 * 0.2)]
    for place, (u, v) in zip(found, pixels, strict=False):
        assert place.tolist() == pytest.approx([2 * u / 31 - 1, 2 * v / 23 - 1], abs=1e-6)
    assert found[3].isnan().all()  # behind the camera


@pytest.mark.parametrize("stack", [(), (Stack(2),)])
def test_the_cube_is_in_the_middle_of_its_pixels(stack):
    vision = Vision(cameras=[NEAR], size=(64, 48))
    env = make("PushCube-v2", num_envs=3, observe=["rgb+segmentation+state", *stack], vision=vision)
    observation, _ = env.reset(seed=5)
    observation, *_ = env.step(torch.full(env.action_space.shape, 0.3))
    found = Locator(env, ["cube", "robot"], [PATH])(observation)[PATH]
    camera = observation["cameras"]["near"]
    segmentation = camera["segmentation"]
    segmentation = segmentation[:, -1] if stack else segmentation
    (number,) = env.segmentation_table.ids(thing="cube")
    for row in range(3):
        v, u = np.nonzero((segmentation[row] == int(number)).numpy())
        height, width = segmentation.shape[1:]
        assert found[row, 0, 0].item() == pytest.approx(2 * u.mean() / (width - 1) - 1, abs=2.5 / width)
        assert found[row, 0, 1].item() == pytest.approx(2 * v.mean() / (height - 1) - 1, abs=2.5 / height)
        K, T = ((value[row, -1] if stack else value[row]).double().numpy() for value in (camera["K"], camera["T"]))
        x, y, z = K @ (np.linalg.inv(T) @ [*env.h.robot.tcp_pos[row].double(), 1.0])[:3]
        tool = [2 * x / z / (width - 1) - 1, 2 * y / z / (height - 1) - 1]
        assert found[row, 1].tolist() == pytest.approx(tool, abs=1e-4)


def test_the_loss_is_the_mean_of_minus_the_logarithm_at_the_places():
    torch.manual_seed(0)
    chances = torch.randn(2, 3, 4, 5).flatten(2).log_softmax(-1).reshape(2, 3, 4, 5)
    cells = [[(1.25, 2.0), (4.0, 3.0)], [(0.0, 0.5), None]]  # x and y in cells; None is outside
    places = torch.full((2, 2, 2), 1.5)
    expected = []
    for b, row in enumerate(cells):
        for k, at in enumerate(row):
            if at is None:
                continue
            places[b, k] = torch.tensor([2 * at[0] / 4 - 1, 2 * at[1] / 3 - 1])
            total = 0.0
            for i in range(4):
                for j in range(5):
                    share = max(0.0, 1 - abs(i - at[1])) * max(0.0, 1 - abs(j - at[0]))
                    total -= share * float(chances[b, k, i, j])
            expected.append(total)
    assert place_loss(chances, places).item() == pytest.approx(sum(expected) / 3, rel=1e-5)
    places[1, 1] = math.nan
    assert place_loss(chances, places).item() == pytest.approx(sum(expected) / 3, rel=1e-5)
    outside = place_loss(chances.requires_grad_(), torch.full((2, 2, 2), math.nan))
    outside.backward()
    assert outside.item() == 0 and not chances.grad.any()


def test_the_probabilities_are_those_behind_the_features():
    torch.manual_seed(0)
    sees = {"numbers": {"policy/qpos": 2}, "pictures": {PATH: [12, 16]}, "channels": [4, 3]}
    network = Cloned(observations=sees, actions=2, window=2)
    observation = {"policy": {"qpos": torch.randn(5, 2, 2)}}
    observation["cameras"] = {"near": {"rgb": torch.randint(0, 256, (5, 2, 12, 16, 3), dtype=torch.uint8)}}
    features, chances = network.located(observation)
    assert torch.equal(features, network.features(observation))
    chance = chances[PATH].exp()
    assert chance.shape == (5, 2, 3, 3, 4) and torch.allclose(chance.sum((-1, -2)), torch.ones(5, 2, 3))
    x = (chance.sum(-2) * torch.linspace(-1, 1, 4)).sum(-1)  # (5, 2, 3) the mean place of each channel
    torch.testing.assert_close(features.reshape(5, 2, 8)[..., 2:5], x)
    with pytest.raises(ConfigError, match="sees no pictures"):
        Cloned(observations=3, actions=2).located(torch.zeros(1, 3))
    nature = Cloned(
        observations={**sees, "pictures": {PATH: [36, 36]}, "channels": [2, 2, 2], "encoder": "nature"}, actions=2
    )
    with pytest.raises(ConfigError, match="only the encoder 'keypoints'"):
        nature.located({"policy": {"qpos": torch.zeros(1, 2)}, "cameras": {"near": {"rgb": torch.zeros(1, 36, 36, 3)}}})


def test_places_move_with_their_pictures():
    torch.manual_seed(0)
    pictures, places = torch.zeros(6, 20, 30, 3, dtype=torch.uint8), torch.zeros(6, 1, 2)
    for k in range(6):
        x, y = 8 + 2 * k, 6 + k
        pictures[k, y, x] = 255
        places[k, 0] = torch.tensor([2 * x / 29 - 1, 2 * y / 19 - 1])
    config, generator = PictureConfig(shift=4, jitter=0.2), torch.Generator().manual_seed(1)
    seen, moved = augmented_with_places({PATH: pictures}, {PATH: places}, config, generator)
    assert not torch.equal(moved[PATH], places)
    for k in range(6):
        y, x = np.unravel_index(int(seen[PATH][k].sum(-1).argmax()), (20, 30))
        assert moved[PATH][k, 0].tolist() == pytest.approx([2 * x / 29 - 1, 2 * y / 19 - 1], abs=1e-6)
    still, same = augmented_with_places({PATH: pictures}, {PATH: places}, PictureConfig(), generator)
    assert torch.equal(still[PATH], pictures) and torch.equal(same[PATH], places)
