"""Cameras on worlds of MuJoCo Warp: the ray tracer on the world's own model and state, against renderers of copies."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

import manikin
from manikin.env.observe import Vision
from manikin.errors import DivergedError, UnknownNameError
from manikin.render import CameraRig
from manikin.render.backends import gl
from manikin.render.backends import warp as backend
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import Looks
from manikin.spec.physics import Physics

pytestmark = pytest.mark.skipif(bool(backend.probe()), reason=backend.probe())
ALL = ("rgb", "depth", "segmentation")
SIDE = CameraSpec(name="side", pos=(0.6, -0.6, 0.5), target=(0.0, 0.0, 0.1), fovy=0.8, width=160, height=120)


def env_with(looks=None, n=3, observe="rgb+depth+segmentation", **options):
    vision = Vision(cameras=["base_camera", "hand_camera", SIDE])
    env = manikin.make(
        "PickCube-v2", num_envs=n, device="warp:cpu", observe=observe, vision=vision, looks=looks, **options
    )
    env.reset(seed=3)
    env.step(torch.full((n, env.single_action_space.shape[0]), 0.7))
    return env


def agree(a, b, *, rgb=6):
    """The same pictures, as far as two renderers make them; returns the mean difference of colours."""
    same = (a["segmentation"] == b["segmentation"]).float().mean()
    assert same >= 0.999
    both = (a["segmentation"] == b["segmentation"]) & (a["depth"] > 0)
    assert np.percentile((a["depth"] - b["depth"]).abs()[both], 95) < 1e-3
    difference = (a["rgb"].float() - b["rgb"].float()).abs().mean()
    assert difference < rgb
    torch.testing.assert_close(a["K"], b["K"], rtol=1e-5, atol=1e-3)
    torch.testing.assert_close(a["T"], b["T"], rtol=0, atol=1e-5)
    return float(difference)


@pytest.mark.parametrize("looks", [None, Looks.strong()], ids=["plain", "strong looks"])
def test_agrees_with_other_renderers_row_by_row(looks, record_property):
    """Colours, textures, lights, distractors, camera poses and lenses of each row's own are in the second case."""
    env = env_with(looks)
    rig = env.rig
    assert rig.backend == "warp (cpu)" and rig.threads == 0
    reference = CameraRig(env.world, rig.cameras, ALL, backend="rays")
    seen, expected = rig.render(), reference.render()
    for name in ("base_camera", "hand_camera", "side"):
        record_property(name, str(agree(seen[name], expected[name])))
    if looks is None and gl.probe()[0]:
        opengl = CameraRig(env.world, rig.cameras, ALL, backend="gl")
        for name, images in opengl.render().items():  # OpenGL lights vertices: near things are lit otherwise
            agree(seen[name], images, rgb=12)
        opengl.close()
    if looks is not None:
        lenses = seen["base_camera"]["K"]
        assert not torch.equal(lenses[0], lenses[1])
        assert not torch.equal(seen["base_camera"]["segmentation"][0], seen["base_camera"]["segmentation"][1])
    some = rig.render(np.array([2, 0]))
    mask = rig.render(torch.tensor([True, False, True]))
    for word in (*ALL, "K", "T"):
        assert torch.equal(some["side"][word], seen["side"][word][[2, 0]])
        assert torch.equal(mask["side"][word], seen["side"][word][[0, 2]])
    with pytest.raises(UnknownNameError, match=r"0\.\.2"):
        rig.render(np.array([3]))
    reference.close()
    env.close()


def test_a_lens_by_focal_lengths_differs_by_row():
    lens = dataclasses.replace(SIDE, name="lens", fovy=1.0, intrinsics=(150.0, 140.0, 70.0, 66.0))
    b = SceneBuilder([], Physics())
    b.box("cube", half_size=(0.05, 0.08, 0.03), rgba=(0.8, 0.2, 0.1, 1))
    b.camera(lens)
    world = make_world(b.compile(), 2, device="warp:cpu")
    b.bind(world)
    model = world.scene.model
    wide = model.cam_intrinsic[None] * np.array([[[0.8, 0.9, 1.3, 0.7]]])
    world.set_model({"cam_intrinsic": wide}, np.array([1]))
    traced, cast = (CameraRig(world, [lens], ALL, backend=word) for word in ("warp", "rays"))
    a, b_ = traced.render()["lens"], cast.render()["lens"]
    assert float(a["K"][1, 0, 0]) == pytest.approx(0.8 * 150) and float(a["K"][0, 0, 0]) == pytest.approx(150)
    agree(a, b_)
    assert (a["segmentation"][0] != a["segmentation"][1]).any()


def test_glass_is_laid_over_what_lies_behind():
    b = SceneBuilder([], Physics())
    b.box("pane", half_size=(0.01, 0.2, 0.2), rgba=(0.2, 0.4, 1.0, 0.4))
    b.box("cube", half_size=(0.05, 0.05, 0.05), rgba=(0.9, 0.1, 0.1, 1))
    front = dataclasses.replace(SIDE, name="front", pos=(0.8, 0.0, 0.1), target=(0.0, 0.0, 0.0))
    b.camera(front)
    world = make_world(b.compile(), 2, device="warp:cpu")
    b.bind(world)
    world.write("qpos", torch.tensor([[0.2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0.0]]).repeat(2, 1))
    world.set_model({"geom_rgba": torch.tensor([[[0.2, 0.4, 1.0, 0.9], [0.9, 0.1, 0.1, 1]]]).numpy()}, np.array([1]))
    traced, cast = (CameraRig(world, [front], ALL, backend=word) for word in ("warp", "rays"))
    a, expected = traced.render()["front"], cast.render()["front"]
    middle = a["rgb"][:, 60, 80].int()
    assert (a["segmentation"][:, 60, 80] == 1).all()
    assert (middle - expected["rgb"][:, 60, 80].int()).abs().max() <= 8
    assert middle[0, 0] > middle[1, 0] + 20  # more of the red cube through the clearer pane
    traced.close()
    cast.close()


def test_observation_words_work_as_on_the_processor():
    camera = dataclasses.replace(SIDE, width=64, height=48)
    made = {}
    for device in ("cpu", "warp:cpu"):
        vision = Vision(cameras=[camera], renderer="auto" if device == "warp:cpu" else "rays")
        env = manikin.make("PickCube-v2", num_envs=2, device=device, observe="rgb+pointcloud+voxel", vision=vision)
        made[device], _ = env.reset(seed=5)
        env.close()
    cpu, warp = made["cpu"], made["warp:cpu"]
    assert "privileged" not in warp and set(warp["pointcloud"]) == set(cpu["pointcloud"])
    assert {k: v.shape for k, v in warp["voxel"].items()} == {k: v.shape for k, v in cpu["voxel"].items()}
    assert (warp["voxel"]["occupancy"] == cpu["voxel"]["occupancy"]).float().mean() > 0.999
    assert int(warp["voxel"]["occupancy"].sum()) > 100
    assert (warp["pointcloud"]["valid"] == cpu["pointcloud"]["valid"]).all()
    assert (warp["cameras"]["side"]["rgb"].float() - cpu["cameras"]["side"]["rgb"].float()).abs().mean() < 6


def test_pictures_show_the_state_as_it_is_and_refuse_one_that_is_not_finite():
    env = env_with(n=2, observe="depth")
    rig = CameraRig(env.world, [SIDE], ALL)
    normals = CameraRig(env.world, [SIDE], ("normals",))
    assert normals.backend == "rays" and normals.render()["side"]["normals"].shape == (2, 120, 160, 3)
    fine = CameraRig(env.world, [SIDE], ("rgb", "depth"), samples=2).render()["side"]
    before = rig.render()["side"]
    assert torch.equal(fine["depth"], before["depth"])
    assert 0 < (fine["rgb"].float() - before["rgb"].float()).abs().mean() < 5
    cube = env.h.cube.pose
    qpos = env.world.read("qpos").clone()
    at = int(env.scene.model.jnt_qposadr[env.scene.model.body("cube").jntadr[0]])
    torch.testing.assert_close(qpos[:, at : at + 3], cube[:, :3], rtol=0, atol=1e-6)
    qpos[0, at + 2] += 0.2
    env.world.write("qpos", qpos)  # no forward in between
    after = rig.render()["side"]
    assert (after["segmentation"][0] != before["segmentation"][0]).any()
    assert torch.equal(after["segmentation"][1], before["segmentation"][1])
    qpos[1, at] = math.nan
    env.world.write("qpos", qpos)
    with pytest.raises(DivergedError, match=r"rows \[1\]"):
        rig.render()
    for made in (rig, normals):
        made.close()
    env.close()


def test_what_stands_still_is_where_its_row_has_it():
    """Warp poses such geoms only once; set_model and load do it again."""
    b = SceneBuilder([], Physics())
    b.box("shelf", half_size=(0.2, 0.1, 0.02), kind="fixed", pos=(0.1, 0.2, 0.3), quat=(0.8, 0.0, 0.6, 0.0))
    world = make_world(b.compile(), 3, device="warp:cpu")
    b.bind(world)
    model, saved, compiled = world.scene.model, world.save(), world.read("geom_xpos").clone()
    geom, body = model.geom("shelf/0").id, model.body("shelf").id
    world.set_model({("geom_pos", (geom,)): np.array([[[0.0, 0.05, 0.1]]])}, np.array([1]))
    world.set_model({("body_pos", (body,)): np.array([[[0.5, 0.0, 0.2]]])}, np.array([2]))
    moved, seen = world.save(), world.read("geom_xpos").clone()
    for row in range(3):
        np.testing.assert_allclose(seen[row, geom], world.data(row)[1].geom_xpos[geom], atol=1e-6)
    assert (seen[1, geom] - seen[0, geom]).norm() > 0.1 and (seen[2, geom] - seen[0, geom]).norm() > 0.3
    for snapshot, expected in ((saved, compiled), (moved, seen)):
        world.load(snapshot)
        torch.testing.assert_close(world.read("geom_xpos"), expected, rtol=0, atol=1e-6)
