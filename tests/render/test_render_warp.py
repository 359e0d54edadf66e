"""MuJoCo Warp's ray tracer as a renderer: against OpenGL or MuJoCo's rays, projection, and many worlds against one."""

from __future__ import annotations

import copy
import math
import os
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest
import torch

from manikin.errors import ConfigError, UnknownNameError
from manikin.render import make_renderer, view_of
from manikin.render.backends import warp as backend
from manikin.render.backends.warp import WarpRenderer, WarpScene
from manikin.spec.camera import CameraSpec

pytestmark = pytest.mark.skipif(bool(backend.probe()), reason=backend.probe())
ALL = ("rgb", "depth", "segmentation")
SIZES = [(128, 128), (224, 96), (90, 160)]
SIDE = CameraSpec(name="side", pos=(0.5, -0.7, 0.6), target=(0.0, 0.0, 0.1), fovy=0.9)
FLAT = "<visual><headlight ambient='1 1 1' diffuse='0 0 0' specular='0 0 0'/></visual>"


@pytest.fixture(scope="module")
def warp():
    renderer = WarpRenderer()
    yield renderer
    renderer.close()


def compiled(body, asset="", visual=FLAT, option=""):
    xml = f"<mujoco>{option}{visual}<asset>{asset}</asset><worldbody>{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def next_to(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Which pixels show what one of the nine pixels around them shows in the other picture."""
    around = np.pad(theirs, 1, mode="edge")
    height, width = ours.shape
    return np.any([ours == around[y : y + height, x : x + width] for y in range(3) for x in range(3)], 0)


# ---- agreement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("camera", ["base_camera", "human_camera", SIDE])
def test_pictures_of_a_task_agree(warp, reference, pick_cube, camera, size, record_property):
    model, data = pick_cube
    ours, theirs = (r.images(model, data, camera, ALL, width=size[0], height=size[1]) for r in (warp, reference))
    assert ours["rgb"].shape == (size[1], size[0], 3) and ours["rgb"].dtype == np.uint8
    assert ours["depth"].shape == ours["segmentation"].shape == (size[1], size[0])
    assert ours["depth"].dtype == np.float32 and ours["segmentation"].dtype == np.int32
    # Each backend ends the endless floor somewhere beyond fifty metres.
    far = [(image["depth"] == 0) | (image["depth"] > 50) for image in (ours, theirs)]
    same = (ours["segmentation"] == theirs["segmentation"]) | (far[0] & far[1])
    near = same & (ours["segmentation"] > 0) & (theirs["depth"] < 5)
    assert len(np.unique(ours["segmentation"])) > 5
    apart = np.abs(ours["depth"] - theirs["depth"])[near]
    difference = np.abs(ours["rgb"].astype(int) - theirs["rgb"]).mean()
    for name, value in (("against", reference.name), ("same", same.mean()), ("rgb", difference)):
        record_property(name, str(value))  # workers send nothing of NumPy
    edges = same | next_to(ours["segmentation"], theirs["segmentation"])
    assert edges.mean() >= 0.9998 and same.mean() >= 0.998  # what differs are pixels on outlines
    assert np.percentile(apart, 95) < 1e-3
    assert difference < 6


def test_meshes_and_height_fields_agree(reference):
    """Decimated in one and in the other by the same rule; a height field is a shape the usual kernel does not know."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 3))
    points *= 0.15 / np.linalg.norm(points, axis=1, keepdims=True)
    spec = mujoco.MjSpec()
    spec.add_mesh(name="stone", uservert=points.ravel().tolist(), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    hills = rng.uniform(size=(8, 8)).astype(np.float32)
    spec.add_hfield(name="hills", nrow=8, ncol=8, size=[0.5, 0.5, 0.1, 0.05], userdata=hills.ravel().tolist())
    kinds = mujoco.mjtGeom
    spec.worldbody.add_geom(type=kinds.mjGEOM_HFIELD, hfieldname="hills", rgba=[0.3, 0.7, 0.3, 1])
    spec.worldbody.add_geom(type=kinds.mjGEOM_MESH, meshname="stone", pos=[0, 0, 0.3], rgba=[0.8, 0.4, 0.2, 1])
    spec.worldbody.add_geom(type=kinds.mjGEOM_ELLIPSOID, size=[0.1, 0.05, 0.05], pos=[0.3, 0, 0.2])
    spec.worldbody.add_geom(type=kinds.mjGEOM_CYLINDER, size=[0.05, 0.1, 0], pos=[-0.3, 0, 0.2])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = WarpRenderer()
    above = CameraSpec(
        name="above", pos=(0.1, -0.3, 1.2), target=(0, 0, 0.1), fovy=0.9
    )  # a field's sides are not drawn
    ours, theirs = (r.images(model, data, above, ALL, width=160, height=120) for r in (renderer, reference))
    renderer.close()
    same = ours["segmentation"] == theirs["segmentation"]
    assert set(np.unique(ours["segmentation"])) == {0, 1, 2, 3, 4}
    assert same.mean() >= 0.999
    for geom in (1, 2):
        apart = np.abs(ours["depth"] - theirs["depth"])[same & (ours["segmentation"] == geom)]
        assert np.percentile(apart, 95) < 1e-3


def test_glass_is_seen_through(warp, reference):
    model, data = compiled(
        "<geom pos='0 0 .1' size='.1' rgba='1 0 0 1'/>"
        "<geom type='box' pos='.1 -.2 .1' size='.1 .01 .1' rgba='0 0 1 .4'/>"
    )
    ours, theirs = (r.images(model, data, SIDE, ALL, width=120, height=90) for r in (warp, reference))
    assert np.abs(ours["rgb"].astype(int) - theirs["rgb"]).mean() < 4
    assert (ours["segmentation"] == theirs["segmentation"]).mean() > 0.99
    mixed = (ours["rgb"][..., 0] > 60) & (ours["rgb"][..., 2] > 60) & (ours["segmentation"] == 2)
    assert mixed.sum() > 50


def test_shadows_and_samples(reference):
    """A shadow is where the rays say, and more samples change edges only."""
    body = (
        "<light pos='0 0 2' dir='0 0 -1' directional='true' diffuse='.6 .6 .6'/><geom type='plane' size='1 1 .1'/>"
        "<geom pos='0 0 .3' type='box' size='.1 .1 .1' rgba='1 0 0 1'/>"
    )
    model, data = compiled(body, visual="<visual><headlight ambient='.2 .2 .2' diffuse='0 0 0'/></visual>")
    pictures = {}
    for name, options in (("plain", {}), ("fine", {"samples": 3}), ("shadows", {"shadows": True})):
        renderer = WarpRenderer(**options)
        pictures[name] = renderer.images(model, data, SIDE, ALL, width=96, height=96)
        renderer.close()
    plain, fine, shadows = (pictures[name]["rgb"].astype(int) for name in ("plain", "fine", "shadows"))
    np.testing.assert_array_equal(pictures["fine"]["segmentation"], pictures["plain"]["segmentation"])
    changed = np.abs(plain - fine).max(-1) > 8
    assert 10 < changed.sum() < 0.1 * changed.size
    rays = make_renderer("rays", shadows=True)
    theirs = rays.rgb(model, data, SIDE, width=96, height=96).astype(int)
    darker, rays_darker = (shadows.sum(-1) < plain.sum(-1) - 60), (theirs.sum(-1) < plain.sum(-1) - 60)
    assert darker.sum() > 100
    assert (darker == rays_darker).mean() > 0.99


# ---- geometry ------------------------------------------------------------------------------------------------------

BALLS = {0: (0.1, 0.2, 0.5), 1: (-0.3, 0.1, 0.1), 2: (0.2, -0.25, 0.3)}
CAMERAS = {
    "rolled": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.1 1 .4 -.5 -.2 .9' fovy='45'/>",
    "shifted": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.2 1 0 -.5 -.1 1' focal='.01 .008' sensorsize='.01 .01' principal='.0008 -.0012'/>",  # noqa: E501
    "spec": CameraSpec(name="c", pos=(0.8, 0.9, 0.7), target=(0, 0, 0.2), fovy=0.9),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", CAMERAS)
def test_balls_appear_where_they_are_projected(warp, which, size):
    camera = CAMERAS[which]
    balls = "".join(f"<geom pos='{x} {y} {z}' size='.03'/>" for x, y, z in BALLS.values())
    model, data = compiled(balls + (camera if isinstance(camera, str) else ""))
    name = "c" if isinstance(camera, str) else camera
    view = view_of(model, data, name, *size)
    images = warp.images(model, data, name, ALL, width=size[0], height=size[1])
    inside = 0
    for number, place in BALLS.items():
        pixel = view.project(np.array(place))
        if (pixel > 12).all() and (pixel < np.array(size) - 13).all():
            inside += 1
            v, u = np.nonzero(images["segmentation"] == number + 1)
            assert np.hypot(u.mean() - pixel[0], v.mean() - pixel[1]) < 0.5
            ahead = (np.array(place) - view.pos) @ view.rotation[:, 2]
            assert images["depth"][v, u].min() == pytest.approx(ahead - 0.03, abs=2e-3)
    assert inside >= 1


def test_up_is_up_and_the_backdrop_is_that_of_the_others(warp):
    model, data = compiled(
        "<camera name='c' pos='0 -2 0' xyaxes='1 0 0 0 0 1'/><geom pos='.3 0 0' size='.05' rgba='1 0 0 1'/>"
        "<geom pos='0 0 .3' size='.05' rgba='0 1 0 1'/>"
    )
    ours = warp.images(model, data, "c", ALL, width=96, height=64)
    theirs = make_renderer("rays").images(model, data, "c", ("rgb",), width=96, height=64)["rgb"]
    right, up = (np.argwhere(ours["segmentation"] == n).mean(0) for n in (1, 2))
    assert right[1] > 55 and up[0] < 25
    nothing = ours["segmentation"] == 0
    assert (ours["depth"][nothing] == 0).all()
    assert np.abs(ours["rgb"].astype(int) - theirs)[nothing].max() <= 1


def test_what_a_camera_is_inside_of_it_does_not_see(warp):
    model, data = compiled("<geom type='box' size='.2 .2 .2'/><geom pos='1 0 0' size='.1'/>")
    inside = CameraSpec(name="in", pos=(0, 0, 0), target=(1, 0, 0), fovy=0.8)
    seen = np.unique(warp.images(model, data, inside, ("segmentation",), width=64, height=64)["segmentation"])
    assert seen.tolist() == [0, 2]


# ---- what is shown -------------------------------------------------------------------------------------------------


def test_sites_are_for_human_eyes(warp, reference, pick_cube):
    model, data = pick_cube
    bare = warp.images(model, data, "human_camera", ALL, width=256, height=192)
    marked = warp.images(model, data, "human_camera", ALL, width=256, height=192, sites=True)
    np.testing.assert_array_equal(bare["segmentation"], marked["segmentation"])
    changed = np.abs(bare["rgb"].astype(int) - marked["rgb"]).max(-1) > 40
    theirs = [
        reference.images(model, data, "human_camera", width=256, height=192, sites=on)["rgb"].astype(int)
        for on in (False, True)
    ]
    expected = np.abs(theirs[0] - theirs[1]).max(-1) > 40
    assert expected.sum() > 5
    assert (changed != expected).sum() < 0.5 * expected.sum()


def test_a_row_shows_its_own_looks_at_once(warp):
    """Models that share meshes and textures share what was prepared; colours, sizes and lights are a row's."""
    material = "<material name='m' rgba='.2 .2 .9 1'/>"
    body = "<light name='l' pos='0 0 2' dir='0 0 -1' directional='true'/><geom name='g' size='.1' material='m'/>"
    model, data = compiled(body, material, visual="")
    camera = CameraSpec(name="c", pos=(0, -1, 0.4), target=(0, 0, 0), fovy=0.5)

    def shot():
        mujoco.mj_forward(model, data)
        fresh = WarpRenderer()
        images = [r.images(model, data, camera, ALL, width=48, height=48) for r in (warp, fresh)]
        fresh.close()
        for word in ALL:
            np.testing.assert_array_equal(images[0][word], images[1][word])
        return images[0]

    first = shot()
    model.mat_rgba[0] = [0.9, 0.2, 0.2, 1]
    red = shot()
    assert red["rgb"][24, 24, 0] > first["rgb"][24, 24, 0] + 60
    model.geom_size[0, 0] = 0.15
    assert (shot()["segmentation"] > 0).sum() > 1.5 * (red["segmentation"] > 0).sum()
    model.geom_rgba[0] = [0, 0.9, 0, 1]
    green = shot()
    model.light_diffuse[0] = [0, 0, 0]
    assert shot()["rgb"][20, 24, 1] < green["rgb"][20, 24, 1] - 60
    model.geom_rgba[0, 3] = 0
    assert not shot()["segmentation"].any()
    model.geom_rgba[0, 3], model.geom_group[0] = 1, 4
    assert not shot()["segmentation"].any()


def test_other_models_do_not_disturb(warp, pick_cube):
    model, data = pick_cube
    other = compiled("<geom size='.1'/>")
    before = warp.images(model, data, "base_camera", ALL)
    warp.images(*other, SIDE, ALL, width=64, height=64)
    warp.images(model, data, SIDE, ALL, width=200, height=50)
    after = warp.images(copy.copy(model), data, "base_camera", ALL)
    for word in ALL:
        np.testing.assert_array_equal(before[word], after[word])


def test_pictures_are_the_receivers(warp, pick_cube):
    model, data = pick_cube
    first = warp.images(model, data, "base_camera", ALL)
    kept = {word: image.copy() for word, image in first.items()}
    warp.images(model, data, SIDE, ALL, width=128, height=128)
    for word in ALL:
        np.testing.assert_array_equal(first[word], kept[word])
        first[word][:] = 0  # and may be written to


def test_physics_that_warp_lacks_does_not_matter(warp):
    option = "<option solver='PGS' integrator='implicit'><flag autoreset='disable' energy='enable'/></option>"
    model, data = compiled("<geom size='.1'/><body><freejoint/><geom size='.1'/></body>", option=option)
    assert warp.images(model, data, SIDE, ("segmentation",), width=32, height=32)["segmentation"].any()


def test_two_threads_with_a_renderer_each(pick_cube):
    model, data = pick_cube
    shots: dict[int, list[np.ndarray]] = {0: [], 1: []}

    def work(number):
        renderer = WarpRenderer()
        for _ in range(3):
            shots[number].append(renderer.images(model, data, "base_camera", ("rgb",))["rgb"])
        renderer.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in shots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(shots[0]) == len(shots[1]) == 3
    for image in [*shots[0], *shots[1]]:
        np.testing.assert_array_equal(image, shots[0][0])


# ---- many worlds ---------------------------------------------------------------------------------------------------


def test_many_worlds_are_drawn_as_one_by_one(warp, pick_cube):
    """Poses, cameras and lights per world, straight from MuJoCo Warp's Model and Data."""
    model, data = pick_cube
    worlds, width, height = 3, 96, 64
    scene = WarpScene(model, worlds=worlds)
    rng = np.random.default_rng(1)
    rows, views = [], []
    for row in range(worlds):
        own = mujoco.MjData(model)
        own.qpos[:] = data.qpos + (0.2 * row * rng.normal(size=model.nq) if row else 0)
        mujoco.mj_forward(model, own)
        own.light_xpos[:] += 0.1 * row
        rows.append(own)
        spec = CameraSpec(name="c", pos=(0.5, -0.7 + 0.1 * row, 0.6), target=(0, 0, 0.1), fovy=0.9)
        views.append(view_of(model, own, spec, width, height))
        for name in ("geom_xpos", "geom_xmat", "light_xpos", "light_xdir"):
            target = getattr(scene.data, name).numpy()
            target[row] = getattr(own, name).reshape(target[row].shape)
    pos, rotation = (
        torch.as_tensor(np.stack([getattr(v, name) for v in views]), dtype=torch.float32)
        for name in ("pos", "rotation")
    )
    images = scene.render(scene.model, scene.data, views[0].K, pos, rotation, width, height)
    for row in range(worlds):
        alone = warp.images(model, rows[row], views[row], ALL)
        np.testing.assert_array_equal(images["segmentation"][row].numpy(), alone["segmentation"])
        np.testing.assert_allclose(images["depth"][row].numpy(), alone["depth"], rtol=1e-5)
        assert np.abs(images["rgb"][row].numpy().astype(int) - alone["rgb"]).max() <= 2
    assert not torch.equal(images["segmentation"][0], images["segmentation"][1])
    only = scene.render(scene.model, scene.data, views[0].K, pos, rotation, width, height, rgb=False)
    assert set(only) == {"depth", "segmentation"} and torch.equal(only["depth"], images["depth"])


# ---- errors, quiet -------------------------------------------------------------------------------------------------


def test_errors_name_what_is_valid(pick_cube):
    model, data = pick_cube
    renderer = WarpRenderer()
    with pytest.raises(UnknownNameError, match="depth, rgb, segmentation"):
        renderer.images(model, data, "base_camera", ("normals",))
    with pytest.raises(UnknownNameError, match="base_camera"):
        renderer.images(model, data, "bas_camera")
    lost = mujoco.MjData(model)
    lost.cam_xpos[:] = math.nan
    with pytest.raises(ConfigError, match="finite"):
        renderer.images(model, lost, "base_camera")
    renderer.close()
    renderer.close()
    with pytest.raises(ConfigError, match="closed"):
        renderer.images(model, data, "base_camera")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: None)
    backend.probe.cache_clear()
    backend.libraries.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"pip install manikin\[gpu\]"):
            WarpRenderer()
    finally:
        monkeypatch.undo()
        backend.probe.cache_clear()
        backend.libraries.cache_clear()
    assert not backend.probe()


def test_warp_is_imported_late_quietly_and_caches_in_our_folder(tmp_path):
    code = """
import sys
import manikin.render.backends.warp as backend
assert "warp" not in sys.modules and not backend.probe() and "warp" not in sys.modules
wp, _ = backend.libraries()
print(wp.config.kernel_cache_dir)
"""
    environment = {k: v for k, v in os.environ.items() if k != "WARP_CACHE_PATH"} | {"MANIKIN_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().startswith(str(tmp_path / "warp"))
    assert not done.stderr
