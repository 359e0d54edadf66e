"""Point clouds and voxels against closed forms, imperfections against their statistics, forces against weights."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from gripped import Gripped, closed, gripped
from manikin.author.card import hold_action
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.math import quat_rotate, quat_rotate_inv
from manikin.render.rig import CameraRig
from manikin.rng import EpisodeRng
from manikin.sense import pointcloud as pc
from manikin.sense.imperfect import Delay, Dropout, Noise, Rate, SensorModel, SensorSuite
from manikin.sense.voxel import VoxelSpec, voxelize
from manikin.spec.camera import CameraSpec, look_at

# ---- depth images in closed form -----------------------------------------------------------------------------------


def camera(pos, target, width, height, fovy=0.87):
    """K and T as numpy float64."""
    f = height / 2 / math.tan(fovy / 2)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = look_at(pos, target), pos
    return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]]), T


def rays(K, T, width, height):
    """Directions (H, W, 3) in the world whose component along the optical axis is 1, so that length is depth."""
    u, v = np.meshgrid(np.arange(width), np.arange(height))
    d = np.stack([(u - K[0, 2]) / K[0, 0], (v - K[1, 2]) / K[1, 1], np.ones_like(u, float)], -1)
    return d @ T[:3, :3].T


def sphere_depth(K, T, width, height, centre, radius):
    d, o = rays(K, T, width, height), T[:3, 3] - centre
    a, b, c = (d * d).sum(-1), d @ o, o @ o - radius**2
    inside = b * b - a * c
    return np.where(inside > 0, (-b - np.sqrt(np.maximum(inside, 0))) / a, 0)


def box_depth(K, T, width, height, half):
    d, o = rays(K, T, width, height), T[:3, 3]
    with np.errstate(divide="ignore"):
        one, two = (-half - o) / d, (half - o) / d
    near, far = np.minimum(one, two).max(-1), np.maximum(one, two).min(-1)
    return np.where((near < far) & (near > 0), near, 0)


def tensors(depth, K, T):
    return tuple(torch.from_numpy(np.asarray(a)).float()[None] for a in (depth, K, T))


VIEWS = [
    ((1.0, 0.2, 0.6), (0, 0, 0), 96, 64),
    ((-0.3, -0.9, 0.4), (0.05, 0, 0), 48, 80),
    ((0.01, 0, 1.0), (0, 0, 0), 64, 64),
]


@pytest.mark.parametrize("view", VIEWS)
def test_cloud_of_a_sphere_lies_on_it(view):
    pos, target, w, h = view
    K, T = camera(pos, target, w, h)
    centre, radius = np.array([0.03, -0.02, 0.05]), 0.2
    depth = sphere_depth(K, T, w, h, centre, radius)
    cloud = pc.from_depth(*tensors(depth, K, T))
    assert torch.equal(cloud.valid[0], torch.from_numpy(depth.reshape(-1) > 0)) and 100 < cloud.valid.sum() < w * h
    distance = (cloud.xyz[cloud.valid].double() - torch.from_numpy(centre)).norm(dim=-1)
    assert (distance - radius).abs().max() < 2e-6
    facing = (cloud.xyz[cloud.valid].double() - torch.from_numpy(centre)) @ torch.tensor(np.array(pos) - centre)
    assert (facing > 0).all()  # the side towards the camera: no mirroring


def test_cloud_of_a_box_and_of_a_plane():
    half = np.array([0.1, 0.2, 0.15])
    for pos, target, w, h in VIEWS:
        K, T = camera(pos, target, w, h)
        cloud = pc.from_depth(*tensors(box_depth(K, T, w, h, half), K, T))
        outside = (cloud.xyz[cloud.valid].abs() - torch.from_numpy(half)).max(-1).values
        assert len(outside) > 50 and outside.abs().max() < 2e-6
    K, T = camera((0.4, 0.1, 0.8), (0, 0, 0), 40, 30)
    d = rays(K, T, 40, 30)
    depth = 0.8 / -d[..., 2]  # the plane z = 0; every ray looks down
    cloud = pc.from_depth(*tensors(depth, K, T))
    assert cloud.valid.all() and cloud.xyz[..., 2].abs().max() < 1e-6
    expected = T[:3, 3] + d.reshape(-1, 3) * depth.reshape(-1, 1)  # pixel order as well
    assert np.abs(cloud.xyz[0].numpy() - expected).max() < 1e-6


def test_what_is_not_there_is_invalid():
    K, T = camera((0, -1, 0), (0, 0, 0), 4, 3)
    depth = torch.tensor([[[1.0, 0.0, torch.inf, torch.nan]] * 3])
    xyz, valid = pc.deproject(depth, torch.from_numpy(K), torch.from_numpy(T))
    assert valid[0].tolist() == [True, False, False, False] * 3 and xyz.isfinite().all()
    rgb = torch.full((1, 3, 4, 3), 9, dtype=torch.uint8)
    plain = pc.from_depth(depth, torch.from_numpy(K), torch.from_numpy(T), rgb=rgb).as_dict()
    assert set(plain) == {"xyz", "valid", "rgb"}
    assert (plain["xyz"][~plain["valid"]] == 0).all() and (plain["rgb"][~plain["valid"]] == 0).all()
    with pytest.raises(ConfigError, match=r"depth \(n, H, W\)"):
        pc.deproject(depth[0], torch.from_numpy(K), torch.from_numpy(T))


def test_two_cameras_align():
    centre, radius = np.array([0.0, 0.0, 0.1]), 0.15
    images = {}
    for k, (pos, target, w, h) in enumerate(VIEWS[:2]):
        K, T = camera(pos, target, w, h)
        depth, K, T = tensors(sphere_depth(K, T, w, h, centre, radius), K, T)
        rgb = torch.full((*depth.shape, 3), 100 + k, dtype=torch.uint8)
        images[f"camera{k}"] = {"depth": depth, "K": K, "T": T, "rgb": rgb, "segmentation": (depth > 0).int() * 7}
    both = pc.from_cameras(images, pc.PointCloudSpec(count=None))
    one, two = (pc.from_cameras(images, pc.PointCloudSpec(count=None, cameras=(c,))) for c in images)
    assert both.xyz.shape[1] == one.xyz.shape[1] + two.xyz.shape[1]
    assert ((both.xyz[both.valid] - torch.from_numpy(centre)).norm(dim=-1) - radius).abs().max() < 2e-6
    a, b = one.xyz[one.valid], two.xyz[two.valid]
    nearest = torch.cdist(a, b).min(1).values
    assert nearest.min() < 0.004 and (nearest < 0.01).sum() > 30  # where both see, they see the same places
    assert set(both.rgb[both.valid].unique().tolist()) == {100, 101} and (both.segmentation[both.valid] == 7).all()
    with pytest.raises(UnknownNameError, match="camera1"):
        pc.from_cameras(images, pc.PointCloudSpec(cameras=("camera2",)))
    del images["camera1"]["depth"]
    with pytest.raises(ConfigError, match="needs depth of camera 'camera1'"):
        pc.from_cameras(images, pc.PointCloudSpec())


def test_crop_box_per_row():
    xyz = torch.tensor([[[0.0, 0, 0], [0.1, 0, 0], [0.2, 0, 0]]]).expand(2, 3, 3)
    cloud = pc.PointCloud(xyz, torch.ones(2, 3, dtype=torch.bool))
    same = pc.crop(cloud, (-0.1, -1, -1), (0.1, 1, 1))
    assert same.valid.tolist() == [[True, True, False]] * 2
    high = torch.tensor([[0.05, 1, 1], [0.5, 1, 1]])
    assert pc.crop(cloud, (-0.1, -1, -1), high).valid.tolist() == [[True, False, False], [True, True, True]]


# ---- fixed counts --------------------------------------------------------------------------------------------------


def scattered(n, points, seed=0):
    rng = EpisodeRng(torch.arange(n) + seed, torch.zeros(n, dtype=torch.int64))
    xyz = rng.uniform("xyz", -1, 1, (points, 3))
    valid = rng.uniform("valid", 0, 1, (points,)) < 0.6
    rgb = rng.integers("rgb", 0, 256, (points, 3)).to(torch.uint8)
    return pc.PointCloud(xyz, valid, rgb, rng.integers("seg", 0, 9, (points,)).int()), rng


def fps_reference(points, count):
    """All distances, in float64, point by point."""
    distances = ((points[:, None].astype(np.float64) - points[None]) ** 2).sum(-1)
    taken = [0]
    while len(taken) < count:
        nearest = distances[taken].min(0)
        nearest[taken] = -1
        taken.append(int(nearest.argmax()))
    return np.array(taken)


def test_farthest_points_are_those_of_the_definition():
    cloud, _ = scattered(3, 500)
    out = pc.farthest(cloud, 64)
    for row in range(3):
        seen = cloud.valid[row].nonzero().squeeze(1)
        index = seen[torch.from_numpy(fps_reference(cloud.xyz[row][seen].numpy(), 64))]
        assert torch.equal(out.xyz[row], cloud.xyz[row][index])
        assert torch.equal(out.rgb[row], cloud.rgb[row][index])
        assert torch.equal(out.segmentation[row], cloud.segmentation[row][index])
    assert out.valid.all() and torch.equal(out.xyz[:, :10], pc.farthest(cloud, 10).xyz)


def test_both_ways_to_the_farthest_points_are_one():
    cloud, _ = scattered(4, 300)
    index = pc.farthest_batched(cloud.xyz, cloud.valid, 50)
    assert torch.equal(cloud.take(index, torch.ones(4, 50, dtype=torch.bool)).xyz, pc.farthest(cloud, 50).xyz)


def test_too_few_points_are_padded():
    cloud, rng = scattered(2, 30)
    cloud.valid[0] = False
    cloud.valid[0, [3, 20]] = True
    cloud.valid[1] = False
    cloud.xyz[0, 20] = cloud.xyz[0, 3]  # a duplicate counts as a point of its own
    for out in (pc.farthest(cloud, 5), pc.random_subset(cloud, 5, rng), pc.random_subset(cloud, 40, rng, name="b")):
        assert out.valid.sum(1).tolist() == [2, 0] and out.valid[0, :2].all()
        assert torch.equal(out.xyz[0, :2], cloud.xyz[0, [3, 3]])
    with pytest.raises(ConfigError, match="at least one point"):
        pc.PointCloudSpec(count=0)


def test_random_subset_is_fair_and_of_the_episode():
    n, points, count = 2000, 20, 5
    rng = EpisodeRng(torch.arange(n), torch.zeros(n, dtype=torch.int64))
    xyz = torch.arange(points).float().view(1, points, 1).expand(n, points, 3).contiguous()
    valid = torch.arange(points).expand(n, points) % 4 != 0  # 15 valid
    out = pc.random_subset(pc.PointCloud(xyz, valid), count, rng)
    chosen = out.xyz[..., 0].long()
    assert all(len(set(row)) == count for row in chosen.tolist())
    share = torch.bincount(chosen.flatten(), minlength=points) / n
    assert (share[::4] == 0).all()
    sigma = math.sqrt((1 / 3) * (2 / 3) / n)
    assert (share[valid[0]] - 1 / 3).abs().max() < 4.5 * sigma
    first = torch.bincount(chosen[:, 0], minlength=points) / n  # the order is random as well
    assert (first[valid[0]] - 1 / 15).abs().max() < 4.5 * math.sqrt(1 / 15 / n)
    again = pc.random_subset(pc.PointCloud(xyz, valid), count, EpisodeRng(torch.arange(n), torch.zeros(n).long()))
    assert torch.equal(again.xyz, out.xyz)


def test_clouds_and_grids_do_not_depend_on_the_batch():
    """Every row alone, bit for bit what it is among others, through the whole chain."""
    n = 5
    images = {}
    for k, (pos, target, w, h) in enumerate(VIEWS):
        made = []
        for row in range(n):
            K, T = camera(np.array(pos) + 0.013 * row, target, w, h)
            made.append(tensors(box_depth(K, T, w, h, np.array([0.1, 0.2, 0.15])), K, T))
        depth, K, T = (torch.cat(x) for x in zip(*made, strict=True))
        rgb = torch.arange(depth.numel() * 3).mul(2654435761).remainder(256).to(torch.uint8).view(*depth.shape, 3)
        images[f"c{k}"] = {"depth": depth, "K": K, "T": T, "rgb": rgb}
    seeds, zero = torch.arange(n), torch.zeros(n, dtype=torch.int64)
    grid = VoxelSpec(low=(-0.2, -0.2, -0.2), high=(0.2, 0.2, 0.2), resolution=(16, 20, 24))
    for sampling in ("farthest", "random"):
        spec = pc.PointCloudSpec(count=128, sampling=sampling, low=(-0.15, -0.3, -0.3), high=(0.15, 0.3, 0.3))
        whole = pc.from_cameras(images, spec, EpisodeRng(seeds, zero)).as_dict()
        cells = voxelize(pc.from_cameras(images, spec, EpisodeRng(seeds, zero)), grid).as_dict()
        for row in range(n):
            part = {c: {k: v[row : row + 1] for k, v in image.items()} for c, image in images.items()}
            alone = pc.from_cameras(part, spec, EpisodeRng(seeds[row : row + 1], zero[:1]))
            assert all(torch.equal(v, whole[k][row : row + 1]) for k, v in alone.as_dict().items())
            assert all(torch.equal(v, cells[k][row : row + 1]) for k, v in voxelize(alone, grid).as_dict().items())


# ---- voxels --------------------------------------------------------------------------------------------------------


def test_voxels_by_hand():
    xyz = torch.tensor([[[0.0, 0, 0], [0.04, 0.01, 0], [0.05, 0, 0], [0.1, 0, 0], [-1e-4, 0, 0], [0.0, 0, 0]]])
    rgb = torch.tensor([[[10, 0, 255], [21, 0, 255], [7, 8, 9], [1, 1, 1], [1, 1, 1], [99, 99, 99]]], dtype=torch.uint8)
    valid = torch.tensor([[True] * 5 + [False]])
    spec = VoxelSpec(low=(0, 0, 0), high=(0.1, 0.1, 0.1), resolution=(2, 2, 1))
    grid = voxelize(pc.PointCloud(xyz, valid, rgb), spec)
    expected = torch.zeros(1, 2, 2, 1, dtype=torch.int32)
    expected[0, 0, 0, 0], expected[0, 1, 0, 0] = 2, 1  # the upper face is outside, so is what is below
    assert torch.equal(grid.count, expected) and torch.equal(grid.occupancy, expected > 0)
    assert grid.rgb[0, 0, 0, 0].tolist() == [16, 0, 255] and grid.rgb[0, 1, 0, 0].tolist() == [7, 8, 9]
    assert (grid.rgb[~grid.occupancy] == 0).all() and spec.cell == (0.05, 0.05, 0.1)
    assert torch.allclose(spec.centres()[1, 0, 0], torch.tensor([0.075, 0.025, 0.05]))
    with pytest.raises(ConfigError, match="empty"):
        VoxelSpec(low=(0, 0, 0), high=(1, 0, 1))


def test_occupied_cells_are_those_the_surface_crosses():
    centre, radius = np.array([0.0, 0.0, 0.0]), 0.2
    clouds = []
    for pos in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0.01, 1), (0, 0.01, -1)):
        K, T = camera(pos, (0, 0, 0), 160, 160, math.radians(30))
        clouds.append(pc.from_depth(*tensors(sphere_depth(K, T, 160, 160, centre, radius), K, T)))
    spec = VoxelSpec(low=(-0.25, -0.25, -0.25), high=(0.25, 0.25, 0.25), resolution=(25, 25, 25))
    grid = voxelize(pc.merge(clouds), spec)
    corner = spec.centres().abs() + 0.01, (spec.centres().abs() - 0.01).clamp(min=0)
    crossed = (corner[0].norm(dim=-1) >= radius) & (corner[1].norm(dim=-1) <= radius)
    assert not (grid.occupancy[0] & ~crossed).any()
    deep = (corner[0].norm(dim=-1) > radius + 0.004) & (corner[1].norm(dim=-1) < radius - 0.004)  # well crossed
    assert deep.sum() > 500 and grid.occupancy[0][deep].all()
    assert grid.count.sum() == sum(int(c.valid.sum()) for c in clouds)


# ---- imperfections -------------------------------------------------------------------------------------------------


def episodes(n, first=0):
    return EpisodeRng(torch.arange(first, first + n), torch.zeros(n, dtype=torch.int64))


def run(model, values, rng, active=None):
    """What a sensor says of true values (steps, n, ...)."""
    n, carry, out = values.shape[1], model.start(values[0], rng), []
    for t, value in enumerate(values):
        mask = None if active is None else active[t]
        seen, carry = model(carry, value, rng.derive(torch.full((n,), t)), mask)
        assert torch.equal(model.read(carry), seen)
        out.append(seen)
    return torch.stack(out), carry


def ramp(steps, n, shape=()):
    """The value of step t is t everywhere."""
    return torch.arange(steps).float().view(steps, 1, *[1] * len(shape)).expand(steps, n, *shape).contiguous()


def test_noise_has_its_width_and_its_bias_lasts_an_episode():
    n, steps = 400, 60
    model = SensorModel([Noise((0.1, 0.5), bias_std=(0.3, 0.0))], control_hz=20)
    out, _ = run(model, torch.full((steps, n, 2), 3.0), episodes(n))
    error = out - 3.0
    mean = error.mean(0)  # per episode
    within = (error - mean).std((0, 1))
    assert torch.allclose(within, torch.tensor([0.1, 0.5]), rtol=0.03)
    bias = mean.std(0)
    assert bias[0].item() == pytest.approx(math.sqrt(0.3**2 + 0.1**2 / steps), rel=0.1)
    assert bias[1].item() == pytest.approx(0.5 / math.sqrt(steps), rel=0.12)
    assert abs(error.mean()) < 0.03
    lag = ((error - mean)[1:] * (error - mean)[:-1]).mean() / (error - mean).square().mean()
    assert abs(lag + 1 / steps) < 0.03  # white


def test_noise_of_images():
    picture = torch.full((1, 50, 8, 8, 3), 254, dtype=torch.uint8)
    out, _ = run(SensorModel([Noise(5.0)], control_hz=20), picture, episodes(50))
    assert out.dtype == torch.uint8 and 0.3 < (out == 255).float().mean() < 0.5 and (out < 254).any()
    depth = torch.zeros(1, 50, 8, 8)
    depth[..., :4] = 1.0
    out, _ = run(SensorModel([Noise(0.01, keep_zero=True)], control_hz=20), depth, episodes(50))
    assert (out[..., 4:] == 0).all() and out[..., :4].std().item() == pytest.approx(0.01, rel=0.05)


def test_delay_is_exact():
    out, _ = run(SensorModel([Delay(3)], control_hz=20), ramp(8, 2, (4,)), episodes(2))
    assert out[:, 0, 0].tolist() == [0, 0, 0, 0, 1, 2, 3, 4]
    out, _ = run(SensorModel([Delay(0)], control_hz=20), ramp(8, 2), episodes(2))
    assert torch.equal(out, ramp(8, 2))
    out, _ = run(SensorModel([Delay((1, 3))], control_hz=20), ramp(9, 300), episodes(300))
    late = 8 - out[8]
    assert torch.equal(out, (ramp(9, 300) - late).clamp(min=0))  # one delay for the whole episode
    share = torch.bincount(late.long(), minlength=4) / 300
    assert share[0] == 0 and (share[1:] - 1 / 3).abs().max() < 4 * math.sqrt(2 / 9 / 300)


def test_dropout_holds_the_last_value():
    n, steps, p = 200, 100, 0.3
    out, _ = run(SensorModel([Dropout(p)], control_hz=20), ramp(steps, n), episodes(n))
    assert (out[0] == 0).all()
    fresh = out == ramp(steps, n)
    held = out[1:] == out[:-1]
    assert torch.equal(fresh[1:], ~held)  # either the true value or the one before
    lost = 1 - fresh[1:].float().mean()
    assert abs(lost - p) < 4.5 * math.sqrt(p * (1 - p) / (n * (steps - 1)))


@pytest.mark.parametrize(
    ("hz", "control_hz", "expected"),
    [
        (10, 20, [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 10]),
        (15, 20, [0, 0, 2, 3, 4, 4, 6, 7, 8, 8, 10]),
        (20, 20, list(range(11))),
        (100, 20, list(range(11))),
        (3, 10, [0, 0, 0, 0, 4, 4, 4, 7, 7, 7, 10]),
    ],
)
def test_rate_holds_between_samples(hz, control_hz, expected):
    out, _ = run(SensorModel([Rate(hz)], control_hz=control_hz), ramp(11, 2), episodes(2))
    assert out[:, 0].tolist() == expected
    long, _ = run(SensorModel([Rate(hz)], control_hz=control_hz), ramp(2001, 1), episodes(1))
    samples = long[1:].diff(dim=0).ne(0).sum() + 1
    assert abs(samples - 2000 * min(hz / control_hz, 1)) <= 1


CHAIN = (Noise(0.1, bias_std=0.2), Rate(15), Delay((0, 2)), Dropout(0.2))


def test_chain_is_the_same_in_any_batch_and_after_loading():
    n, steps = 6, 30
    values = episodes(n).uniform("true", -1, 1, (steps, 3)).transpose(0, 1).contiguous()
    model = SensorModel(CHAIN, control_hz=20, name="tcp")
    whole, last = run(model, values, episodes(n))
    assert not torch.equal(whole[:, 0], whole[:, 1])
    for row in range(n):
        alone, carry = run(model, values[:, row : row + 1], episodes(1, first=row))
        assert torch.equal(alone, whole[:, row : row + 1])
        assert all(torch.equal(v, last[k][row : row + 1]) for k, v in carry.items())
    other, _ = run(SensorModel(CHAIN, control_hz=20, name="joints"), values, episodes(n))
    assert not torch.equal(other, whole)

    carry = model.start(values[0], episodes(n))
    for t in range(12):
        _, carry = model(carry, values[t], episodes(n).derive(torch.full((n,), t)))
    kept = {k: v.clone() for k, v in carry.items()}
    first, _ = model(carry, values[12], episodes(n).derive(torch.full((n,), 12)))
    assert all(torch.equal(v, kept[k]) for k, v in carry.items())  # arguments stay as they are
    order = torch.tensor([4, 1])
    rows = {k: v[order] for k, v in kept.items()}  # into other rows of a smaller batch
    rng = EpisodeRng(order, torch.zeros(2, dtype=torch.int64)).derive(torch.full((2,), 12))
    again, _ = model(rows, values[12, order], rng)
    assert torch.equal(again, first[order]) and torch.equal(first, whole[12])


def test_rows_left_out_keep_what_they_say():
    active = torch.tensor([[True, True], [True, False], [True, True], [True, False]])
    out, _ = run(SensorModel([Delay(1)], control_hz=20), ramp(4, 2), episodes(2), active)
    assert out[:, 0].tolist() == [0, 0, 1, 2] and out[:, 1].tolist() == [0, 0, 0, 0]
    out, _ = run(SensorModel([Noise(0.1)], control_hz=20), ramp(4, 2), episodes(2), active)
    assert out[1, 1] == out[0, 1] and out[1, 0] != out[0, 0]


def test_suite_of_a_whole_observation():
    n, steps = 3, 10
    suite = SensorSuite({"policy/qpos": [Delay(2)], "cameras/hand/depth": CHAIN}, control_hz=20)
    single = SensorModel(CHAIN, control_hz=20, name="cameras/hand/depth")
    depth = ramp(steps, n, (4, 4))

    def observation(t):
        qpos = torch.full((n, 7), float(t))
        return {"policy": {"qpos": qpos, "qvel": qpos}, "cameras": {"hand": {"depth": depth[t], "rgb": depth[t]}}}

    alone, _ = run(single, depth, episodes(n))
    carry = suite.start(observation(0), episodes(n))
    for t in range(steps):
        seen, carry = suite(carry, observation(t), episodes(n).derive(torch.full((n,), t)))
        assert (seen["policy"]["qpos"] == max(t - 2, 0)).all() and (seen["policy"]["qvel"] == t).all()
        assert torch.equal(seen["cameras"]["hand"]["depth"], alone[t])
        assert (seen["cameras"]["hand"]["rgb"] == t).all()
    again = suite.read(carry, observation(9))
    assert torch.equal(again["cameras"]["hand"]["depth"], alone[9]) and (again["policy"]["qpos"] == 7).all()
    assert all(v.shape[0] == n for v in carry.values())
    with pytest.raises(UnknownNameError, match="policy/qpos"):
        SensorSuite({"policy/qpo": [Delay(1)]}, control_hz=20).start(observation(0), episodes(n))


def test_imperfections_that_cannot_be_are_refused():
    for make in (
        lambda: Noise(-1),
        lambda: Delay(-1),
        lambda: Delay(0.5),
        lambda: Delay((2, 1)),
        lambda: Dropout(1.0),
        lambda: Rate(0),
    ):
        with pytest.raises(ConfigError):
            make()
    model = SensorModel([Noise((0.1, 0.2))], control_hz=20)
    with pytest.raises(ConfigError, match="2 widths"):
        model.start(torch.zeros(3, 4), episodes(3))
    with pytest.raises(ConfigError, match="3 values but random streams of 2"):
        model.start(torch.zeros(3, 2), episodes(2))
    for given in (Noise(0.1), [0.1], "noise"):
        with pytest.raises(ConfigError, match="sensor 'qpos' takes a list of imperfections"):
            SensorModel(given, control_hz=20, name="qpos")


# ---- forces --------------------------------------------------------------------------------------------------------

GRAVITY = 9.81
ROBOTS = (
    *("aloha_right", "google_robot", "iiwa14", "jaco", "koch", "panda", "sawyer", "so101", "ur5e", "widowx", "xarm7"),
)  # the others are like one of these, but Fetch: the ground of this scene would cut through it
SMALL = ("koch", "so101")


def below_flange(env):
    """Mass [kg] and centre of mass [m] of what the flange carries, from MuJoCo's own figures for row 0."""
    model, data = env.world.data(0)
    site = model.site(env.h.wrist.name)
    root = int(model.site_bodyid[site.id])
    return float(model.body_subtreemass[root]), data.subtree_com[root].copy(), data.site_xpos[site.id].copy()


@pytest.mark.parametrize("name", ROBOTS)
def test_wrist_feels_the_weight_of_the_gripper(name):
    """An arm at rest: in the world the force is the weight, the torque that of the centre of mass."""
    env = gripped(2, robot=name, steps=1, tactile=False)
    env.h.thing.set_pose((0.3, 0.3, 0.05))
    for _ in range(20):
        env.step(hold_action(env))
    mass, com, origin = below_flange(env)
    value, pose = env.h.wrist.value, env.h.wrist.pose
    force, torque = (quat_rotate(pose[:, 3:], v) for v in (value[:, :3], value[:, 3:]))
    weight = torch.tensor([0, 0, -mass * GRAVITY])
    assert mass > 0.03 and torch.allclose(force, weight.expand(2, 3), atol=0.02)
    expected = torch.linalg.cross(torch.from_numpy(com - origin).float(), weight)
    assert torch.allclose(torque, expected.expand(2, 3), atol=0.005)
    assert torch.allclose(pose[0, :3], torch.from_numpy(origin).float(), atol=1e-6)


def test_wrist_feels_what_is_held_and_what_pulls():
    env = gripped(2, thing="box", size=(0.02, 0.02, 0.02), mass=0.3)
    mass, _, _ = below_flange(env)
    assert env.h.robot.is_grasping(env.h.thing).all()
    still = env.h.wrist.value.clone()
    weight = (mass + 0.3) * GRAVITY
    down = torch.tensor([0, 0, -weight]).expand(2, 3)
    assert torch.allclose(quat_rotate(env.h.wrist.pose[:, 3:], still[:, :3]), down, atol=0.005)
    assert (still[:, 2] - weight).abs().max() < 0.01  # the hand points down: its load pulls out of the flange, +z
    model = env.world.scene.model
    hand, push = int(model.body("robot/hand").id), torch.tensor([4.0, -3.0, 2.0])
    applied = torch.zeros(2, model.nbody, 6)
    applied[1, hand, :3] = push  # at the hand's centre of mass, in the world
    env.world.write("xfrc_applied", applied)
    for _ in range(60):
        env.step(closed(env))
    more = env.h.wrist.value - still
    quat = env.h.wrist.pose[1:, 3:]
    assert more[0].abs().max() < 0.02
    assert torch.allclose(more[1:, :3], quat_rotate_inv(quat, push[None]), atol=0.1)
    _, data = env.world.data(1)
    arm = torch.from_numpy(data.xipos[hand] - data.site_xpos[model.site(env.h.wrist.name).id]).float()
    expected = quat_rotate_inv(quat, torch.linalg.cross(arm, push)[None])
    assert torch.allclose(more[1:, 3:], expected, atol=0.03)


def normal_forces(env) -> torch.Tensor:
    """(fingers,) [N] of row 0: the sum over the contacts of each finger and what hangs on it."""
    model, data = env.world.data(0)
    fingers = [int(model.body(env.robot.prefix + finger.body).id) for finger in env.robot.gripper.fingers]
    thing = int(model.body("thing").id)
    total, force = [0.0] * len(fingers), np.zeros(6)
    for k, contact in enumerate(data.contact):
        bodies = [int(model.geom_bodyid[g]) for g in contact.geom]
        if thing not in bodies:
            continue
        at = next(body for body in bodies if body != thing)
        while at and at not in fingers:
            at = int(model.body_parentid[at])
        if at:
            mujoco.mj_contactForce(model, data, k, force)
            total[fingers.index(at)] += force[0]
    return torch.tensor(total, dtype=torch.float32)


@pytest.mark.parametrize("name", ROBOTS)
def test_touch_is_the_grip(name):
    half = 0.0125 if name in SMALL else 0.015
    env = gripped(2, robot=name, thing="box", size=(half,) * 3, mass=0.05, tactile=False)
    touch, force = env.h.touch.value, env.h.grasp.force
    assert touch.shape == (2, len(env.robot.gripper.fingers)) and env.h.robot.is_grasping(env.h.thing).all()
    # the pads' pressure is the normal part of the contact force, which MuJoCo gives contact by contact
    assert (touch > 1).all() and (touch <= force.norm(dim=-1) * 1.001).all()
    assert torch.allclose(touch[0], normal_forces(env), rtol=0.01)
    if name == "panda":  # its fingers slide: the pads feel what the drive pushes with
        drive = env.world.read("actuator_force")[:, -2:].abs()
        assert torch.allclose(touch, drive, rtol=0.005)
    opened = hold_action(env)
    for _ in range(20):
        env.step(opened)
    assert (env.h.touch.value == 0).all()


def test_sensors_are_saved_with_the_state():
    env = gripped(3, thing="box", size=(0.02, 0.02, 0.02), mass=0.3, steps=30)
    push = closed(env)
    push[:, 0] += torch.tensor([0.0, 0.05, -0.05])
    for _ in range(3):
        env.step(push)
    kept = [v.clone() for v in (env.h.wrist.value, env.h.touch.value, env.h.tactile0.depth, env.h.tactile0.shear)]
    saved = env.save()
    for _ in range(3):
        env.step(hold_action(env))
    assert not torch.equal(env.h.wrist.value, kept[0])
    env.load(saved)
    now = (env.h.wrist.value, env.h.touch.value, env.h.tactile0.depth, env.h.tactile0.shear)
    assert all(torch.equal(a, b) for a, b in zip(now, kept, strict=True))


def test_questions_that_a_robot_cannot_answer():
    class Wrong(Gripped):
        def scene(self, b):
            robot = b.robot()
            wrist = b.force_torque(robot)
            b.force_torque(robot)
            return {"robot": robot, "wrist": wrist}

    with pytest.raises(SceneError, match="two things in the scene are named 'wrist/robot'"):
        manikin.make(Wrong)


def test_clouds_of_rendered_cameras_lie_on_the_box_and_move_with_it():
    """Depth as the library renders it: two cameras, rows with the box in different places, within 1 mm."""
    half = torch.tensor([0.03, 0.04, 0.05])
    env = manikin.make(
        Gripped,
        num_envs=2,
        autoreset="disabled",
        reward="none",
        config={"tactile": False, "thing": "box", "size": tuple(half.tolist())},
    )
    env.reset(seed=0)
    pose = torch.tensor([[0.3, 0.2, 0.05, 1, 0, 0, 0], [0.2, -0.3, 0.05, 0.9, 0, 0, 0.4359]])
    env.h.thing.set_pose(pose[:, :3], pose[:, 3:])
    env.world.forward()
    eyes = [
        CameraSpec(name="left", pos=(0.7, 0.5, 0.5), target=(0.25, 0, 0.05), fovy=0.9, width=96, height=72),
        CameraSpec(name="right", pos=(0.6, -0.7, 0.4), target=(0.25, 0, 0.05), fovy=1.0, width=64, height=96),
    ]
    rig = CameraRig(env.world, eyes, ("rgb", "depth", "segmentation"), backend="rays")
    images = rig.render()
    ids = [int(env.world.scene.model.geom(g).id) + 1 for g in env.h.thing.geom_names]
    for cameras in (("left",), ("right",), None):
        cloud = pc.from_cameras(images, pc.PointCloudSpec(count=None, cameras=cameras))
        for row in range(2):
            mine = cloud.valid[row] & torch.isin(cloud.segmentation[row], torch.tensor(ids))
            assert mine.sum() > 30
            local = quat_rotate_inv(env.h.thing.quat[row : row + 1], cloud.xyz[row][mine] - env.h.thing.pos[row])
            outside = (local.abs() - half).amax(-1)
            assert outside.abs().max() < 1e-3
    low, high = (0.0, 0.0, 0.003), (0.5, 0.5, 0.15)
    cropped = pc.from_cameras(images, pc.PointCloudSpec(count=64, low=low, high=high))
    assert cropped.valid.sum(1).tolist() == [64, 0]  # only the first row has its box there
    assert torch.isin(cropped.segmentation[0], torch.tensor(ids)).all()
    rig.close()
    env.close()
