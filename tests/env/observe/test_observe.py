"""Observations with cameras, through the environment: what is seen, when, and that it is the episode's own."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.empty import empty
from manikin.arenas.pegs import pegs
from manikin.arenas.square_table import square_table
from manikin.arenas.table import table
from manikin.arenas.two_bins import two_bins
from manikin.arenas.wall import wall
from manikin.env.observe import Vision
from manikin.errors import ConfigError, DivergedError, UnknownNameError
from manikin.sense.imperfect import Delay, Dropout, Noise
from manikin.sense.pointcloud import PointCloudSpec
from manikin.sense.voxel import VoxelSpec
from manikin.spec.camera import CameraSpec
from states import states

TASK = "PickCube-v2"
SMALL = CameraSpec(name="small", pos=(0.4, 0.1, 0.5), target=(0, 0, 0.05), fovy=0.9, width=48, height=32)


def make(observe, n=3, cameras=(SMALL,), **options):
    vision = Vision(cameras=cameras, renderer="rays", **options.pop("vision", {}))
    return manikin.make(TASK, num_envs=n, observe=observe, vision=vision, **options)


def flat(observation, prefix=""):
    for key, value in observation.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def test_words_choose_what_is_seen():
    env = make("rgb+depth+segmentation")
    observation, _ = env.reset(seed=0)
    assert set(observation) == {"policy", "cameras"}  # privileged state only when asked for
    seen = observation["cameras"]["small"]
    assert set(seen) == {"rgb", "depth", "segmentation", "K", "T"}
    assert seen["rgb"].shape == (3, 32, 48, 3) and seen["rgb"].dtype == torch.uint8
    assert seen["depth"].shape == (3, 32, 48) and seen["depth"].dtype == torch.float32
    assert set(make("rgb+state").reset(seed=0)[0]) == {"policy", "privileged", "cameras"}
    assert set(make("pointcloud").reset(seed=0)[0]) == {"policy", "pointcloud"}
    for name, value in flat(env.single_observation_space.sample()):
        assert dict(flat(observation))[name].shape[1:] == value.shape, name
    one = dict(flat(observation))
    single = gymnasium.make(f"manikin/{TASK}", observe="rgb+depth+segmentation", vision=env.vision)
    alone = dict(flat(single.reset(seed=0)[0]))
    assert single.observation_space.contains(single.reset(seed=0)[0])
    for name, value in one.items():
        assert np.array_equal(alone[name], value[0].numpy()), name


def test_the_picture_shows_the_state_of_this_step():
    """The cube's pixels deproject to where the cube is, in every row, after steps and after a partial reset."""
    env = make("depth+segmentation+state", autoreset="disabled")
    env.reset(seed=0)
    ids = torch.as_tensor(env.segmentation_table.ids(thing="cube"))
    for k in range(4):
        if k == 2:
            observation, _ = env.reset(seed=7, options={"reset_mask": np.array([False, True, False])})
        else:
            observation = env.step(torch.rand(3, 8) * 2 - 1)[0]
        seen = observation["cameras"]["small"]
        for row in range(3):
            v, u = torch.nonzero(torch.isin(seen["segmentation"][row], ids), as_tuple=True)
            if len(v) < 3:
                continue  # hidden behind the arm
            z = seen["depth"][row, v, u]
            K, T = seen["K"][row], seen["T"][row]
            ray = torch.stack([(u - K[0, 2]) / K[0, 0], (v - K[1, 2]) / K[1, 1], torch.ones_like(z)], 1)
            points = (ray * z[:, None]) @ T[:3, :3].T + T[:3, 3]
            offset = points - observation["privileged"]["cube_pose"][row, :3]
            assert offset.norm(dim=1).max() < 0.02 * 3**0.5 + 2e-3  # on the cube's surface


def test_hand_camera_follows_the_hand_without_lag():
    env = make("rgb", cameras=("hand_camera",))
    env.reset(seed=0)
    seen = []
    for _ in range(5):
        observation = env.step(torch.ones(3, 8))[0]
        T = observation["cameras"]["hand_camera"]["T"]
        tcp = env.robot.tcp_pos
        local = torch.einsum("nji,nj->ni", T[:, :3, :3], tcp - T[:, :3, 3])
        seen.append(local)
    spread = torch.stack(seen).amax((0, 1)) - torch.stack(seen).amin((0, 1))
    assert spread.max() < 1e-4  # the TCP stays where it is in the camera's own frame
    assert (observation["policy"]["qpos"][0] - env.reset(seed=0)[0]["policy"]["qpos"][0]).abs().max() > 0.1


def test_goal_markers_are_for_people_only():
    env = make("rgb", n=1, cameras=(SMALL,))
    env.reset(seed=3)
    seen = env.step(torch.zeros(1, 8))[0]["cameras"]["small"]["rgb"]
    env.h.marker.set_pose((0.0, 0.0, 0.3))
    env.world.forward()
    moved = env.rig.render()["small"]["rgb"]
    assert torch.equal(seen, moved)
    before = env.image(0, width=64, height=64)
    env.h.marker.set_pose((0.0, 0.0, 0.15))
    assert (env.image(0, width=64, height=64) != before).any()


@pytest.mark.parametrize("sampling", ["farthest", "random"])
def test_an_episode_looks_the_same_in_any_row_and_batch(sampling):
    words, vision = (
        "rgb+pointcloud+voxel",
        {
            "pointcloud": PointCloudSpec(count=64, sampling=sampling, low=(-0.3, -0.3, 0.005), high=(0.3, 0.3, 0.5)),
            "voxel": VoxelSpec(low=(-0.2, -0.2, 0), high=(0.2, 0.2, 0.4), resolution=(8, 8, 8)),
        },
    )
    many, one = make(words, n=4, vision=vision), make(words, n=1, vision=vision)
    many.reset(seed=10), one.reset(seed=12)
    action = torch.rand(1, 8) * 2 - 1
    for _ in range(3):
        a, b = many.step(action.expand(4, -1))[0], one.step(action)[0]
    for (name, x), (_, y) in zip(flat(a), flat(b), strict=True):
        assert torch.equal(x[2], y[0]), name
    cloud = a["pointcloud"]
    assert cloud["xyz"].shape == (4, 64, 3) and cloud["valid"].any(1).all()
    inside = cloud["xyz"][cloud["valid"]]
    assert inside[:, 2].min() >= 0.005 and inside.abs().max() <= 0.5
    assert a["voxel"]["occupancy"].shape == (4, 8, 8, 8) and a["voxel"]["occupancy"].any()
    assert a["voxel"]["count"].sum((1, 2, 3)).min() > 64  # of all points, not of those that were sampled


def test_a_cloud_is_of_the_table_and_what_is_on_it_unless_told_otherwise():
    env = manikin.make(TASK, observe="pointcloud", vision=Vision(renderer="rays"))
    cloud = env.reset(seed=0)[0]["pointcloud"]
    on_cube = torch.isin(cloud["segmentation"], torch.as_tensor(env.segmentation_table.ids(thing="cube")))
    assert cloud["valid"].all() and int(on_cube.sum()) >= 4  # evenly spread over the floor, none was
    assert (cloud["xyz"].abs() <= torch.tensor([0.5, 0.6, 0.8])).all() and cloud["xyz"][..., 2].min() >= -0.02


def test_a_grid_is_not_cut_by_the_crop_of_the_cloud():
    grid = VoxelSpec(low=(-0.5, -0.5, -0.1), high=(0.5, 0.5, 0.6), resolution=(10, 10, 10))
    crops = [PointCloudSpec(), PointCloudSpec(count=8, low=(0, 0, 0.3), high=(0.1, 0.1, 0.4))]
    whole, cut = (
        make("voxel", n=1, vision={"voxel": grid, "pointcloud": c}).reset(seed=0)[0]["voxel"]["count"] for c in crops
    )
    assert torch.equal(whole, cut) and whole.sum() > 500


def test_autoreset_gives_the_last_picture_and_the_first_of_the_next_episode():
    env = make("rgb", n=2, horizon=3)
    env.reset(seed=0)
    for _ in range(3):
        observation, _, _, truncated, info = env.step(torch.ones(2, 8))
    assert truncated.all()
    again = make("rgb", n=2)
    first, _ = again.reset(seed=0, options={"episode_index": [1, 1]})
    assert torch.equal(observation["cameras"]["small"]["rgb"], first["cameras"]["small"]["rgb"])
    assert not torch.equal(info["final_obs"]["cameras"]["small"]["rgb"], observation["cameras"]["small"]["rgb"])


def test_wrong_words_and_cameras_name_what_there_is():
    with pytest.raises(UnknownNameError, match="Did you mean 'depth'"):
        make("rgb+depht")
    with pytest.raises(UnknownNameError, match=r"camera 'hand'.*hand_camera"):
        make("rgb", cameras=("hand",))
    with pytest.raises(UnknownNameError, match=r"renderer|backend"):
        manikin.make(TASK, observe="rgb", vision=Vision(renderer="vulkan"))
    with pytest.raises(ConfigError, match="pixels"):
        CameraSpec(name="huge", target=(1, 0, 0), width=100_000)
    with pytest.raises(ConfigError, match=r"vision is a Vision.*not \{'size'"):
        manikin.make(TASK, observe="rgb", vision={"size": (64, 64)})
    with pytest.raises(UnknownNameError, match="nowhere"):
        make("rgb", cameras=(CameraSpec(name="lost", target=(1, 0, 0), on="nowhere"),))


@pytest.mark.parametrize("row", ["hand_camera", 2, -1, 0.5, True])
def test_a_picture_of_a_row_that_is_not_there(row):
    env = manikin.make(TASK, num_envs=2)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"within 0..1, got"):
        env.image(row)


def test_a_state_that_is_not_finite_is_not_drawn_as_another():
    env = manikin.make(TASK, num_envs=2)
    env.reset(seed=0)
    qpos = env.world.read("qpos").clone()
    qpos[1, 3] = float("nan")
    env.world.write("qpos", qpos)
    with pytest.raises(DivergedError, match=r"rows \[1\] cannot be drawn"):
        env.image(1, width=32, height=32)
    assert env.image(0, width=32, height=32).shape == (32, 32, 3)


# ---- arenas --------------------------------------------------------------------------------------------------------


class Bare(manikin.Task):
    """A robot in an arena.

    Success: never.
    """

    id, instruction, horizon_s, arena = "Bare-v0", "stay", 1.0, None

    def scene(self, b):
        type(self).arena(b)
        return {"robot": b.robot_handles[0] if b.robot_handles else b.robot()}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {}


@pytest.mark.parametrize("arena", [table, square_table, two_bins, pegs, wall, empty], ids=lambda a: a.__name__)
def test_cameras_of_every_arena_see_the_hand(arena):
    task = type("Shown", (Bare,), {"arena": staticmethod(arena)})
    vision = Vision(cameras=("base_camera", "human_camera"), size=(48, 48), renderer="rays")
    env = manikin.make(task, robot="panda", observe="segmentation", vision=vision)
    hand = torch.as_tensor(env.segmentation_table.ids(body="robot/hand"))
    for name, seen in env.reset(seed=0)[0]["cameras"].items():
        assert torch.isin(seen["segmentation"], hand).sum() >= 4, name


# ---- imperfect sensors ---------------------------------------------------------------------------------------------


def test_sensors_delay_and_noise_reach_the_observation_and_nothing_else():
    sensors = {"policy/qpos": [Delay(2)], "privileged/cube_pose": [Noise(0.01)]}
    plain = manikin.make(TASK, num_envs=2, observe="state_dict", horizon=6)
    env = manikin.make(TASK, num_envs=2, observe="state_dict", horizon=6, sensors=sensors)
    a, b = plain.reset(seed=0)[0], env.reset(seed=0)[0]
    truths = [a["policy"]["qpos"]]
    for k in range(1, 12):
        action = torch.full((2, 8), 0.5)
        (a, ra, _, ta, _), (b, rb, _, tb, ib) = plain.step(action), env.step(action)
        assert torch.equal(ra, rb) and torch.equal(ta, tb) and np.array_equal(states(plain.world), states(env.world))
        if ta.all():  # the last observation of the episode is the sensors' too, and the next one starts afresh
            last = ib["final_obs"]["policy"]["qpos"]
            assert torch.equal(last, truths[-2])
            truths = [a["policy"]["qpos"]]
        else:
            truths.append(a["policy"]["qpos"])
        expected = truths[max(0, len(truths) - 3)]
        assert torch.equal(b["policy"]["qpos"], expected), k
        assert torch.equal(b["policy"]["qvel"], a["policy"]["qvel"])
        error = b["privileged"]["cube_pose"] - a["privileged"]["cube_pose"]
        assert 0 < error.abs().max() < 0.06


def test_imperfect_sensors_are_the_episodes_own_and_survive_a_snapshot():
    sensors = {"policy/qpos": [Noise(0.02, bias_std=0.01), Dropout(0.3), Delay(1)]}
    options = {"observe": "state", "sensors": sensors, "autoreset": "disabled"}
    many, one = manikin.make(TASK, num_envs=5, **options), manikin.make(TASK, num_envs=1, **options)
    many.reset(seed=0), one.reset(seed=3)
    action = torch.zeros(1, 8)
    for _ in range(6):
        a, b = many.step(action.expand(5, -1))[0], one.step(action)[0]
        assert torch.equal(a[3], b[0])
    snapshot = many.save()
    after = [many.step(action.expand(5, -1))[0] for _ in range(5)]
    assert torch.equal(many.load(snapshot)[0], a)
    for seen in after:
        assert torch.equal(many.step(action.expand(5, -1))[0], seen)
    frozen = many.step(action.expand(5, -1), active=torch.tensor([True, False, True, True, True]))[0]
    assert torch.equal(frozen[1, :9], after[-1][1, :9]) and not torch.equal(frozen[0, :9], after[-1][0, :9])
    with pytest.raises(UnknownNameError, match="policy/qposs"):
        manikin.make(TASK, sensors={"policy/qposs": [Noise(0.1)]}).reset(seed=0)


def test_without_opengl_pictures_still_come_and_a_warning_says_what_to_install(monkeypatch, caplog):
    from manikin.render import api
    from manikin.render.backends import gl

    monkeypatch.setattr(gl, "probe", lambda: (None, "egl: no such library"))
    monkeypatch.setattr(api, "logged", set())
    env = manikin.make(TASK, observe="rgb", vision=Vision(cameras=(SMALL,)))
    seen = env.reset(seed=0)[0]["cameras"]["small"]["rgb"]
    assert seen.float().std() > 10  # a picture, not a blank
    said = [r.getMessage() for r in caplog.records if r.name == "manikin.render"]
    assert len(said) == 1 and "apt install libegl1" in said[0] and "egl: no such library" in said[0]
    assert env.rig.backend.split()[0] in said[0]
