"""Filament as a renderer: against OpenGL or MuJoCo's rays, projection, what changes and what fails."""

from __future__ import annotations

import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest

from manikin.errors import ConfigError, UnknownNameError
from manikin.render import make_renderer, view_of
from manikin.render.backends import filament as backend
from manikin.render.backends.filament import FilamentLook, FilamentRenderer
from manikin.spec.camera import CameraSpec

ALL = ("rgb", "depth", "segmentation")
SIZES = [(128, 128), (224, 96), (90, 160)]
SIDE = CameraSpec(name="side", pos=(0.5, -0.7, 0.6), target=(0.0, 0.0, 0.1), fovy=0.9)


@pytest.fixture(scope="module")
def photo():
    api, why = backend.probe()
    if api is None:
        pytest.skip(f"Filament does not work here: {why}")
    renderer = FilamentRenderer()
    yield renderer
    renderer.close()


def compiled(body, asset=""):
    model = mujoco.MjModel.from_xml_string(f"<mujoco><asset>{asset}</asset><worldbody>{body}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("camera", ["base_camera", "human_camera", SIDE])
def test_pictures_of_a_task_agree(photo, reference, pick_cube, camera, size, record_property):
    model, data = pick_cube
    ours, theirs = (r.images(model, data, camera, ALL, width=size[0], height=size[1]) for r in (photo, reference))
    assert ours["rgb"].shape == (size[1], size[0], 3) and ours["rgb"].dtype == np.uint8
    assert ours["depth"].shape == ours["segmentation"].shape == (size[1], size[0])
    assert ours["depth"].dtype == np.float32 and ours["segmentation"].dtype == np.int32
    # Each backend ends the endless floor somewhere beyond thirty metres.
    far = [(image["depth"] == 0) | (image["depth"] > 30) for image in (ours, theirs)]
    same = (ours["segmentation"] == theirs["segmentation"]) | (far[0] & far[1])
    near = same & (ours["segmentation"] > 0) & (theirs["depth"] < 5)
    apart = np.abs(ours["depth"] - theirs["depth"])[near]
    difference = np.abs(ours["rgb"].astype(int) - theirs["rgb"]).mean()
    for name, value in (("against", reference.name), ("same", same.mean()), ("rgb", difference)):
        record_property(name, str(value))  # workers send nothing of NumPy
    assert len(np.unique(ours["segmentation"])) > 5
    assert same.mean() >= 0.999
    assert np.percentile(apart, 95) < 1e-3
    # Another light altogether, but the same colours in the same places.
    assert difference < 60
    cube = ours["rgb"][near & (ours["segmentation"] == 1 + model.geom("cube/0").id)].astype(int)
    assert len(cube) == 0 or np.median(cube[:, 0] - cube[:, 1:].max(1)) > 50


BALLS = {0: (0.1, 0.2, 0.5), 1: (-0.3, 0.1, 0.1), 2: (0.2, -0.25, 0.3)}
CAMERAS = {
    "rolled": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.1 1 .4 -.5 -.2 .9' fovy='45'/>",
    "shifted": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.2 1 0 -.5 -.1 1' focal='.01 .008' sensorsize='.01 .01' principal='.0008 -.0012'/>",  # noqa: E501
    "spec": CameraSpec(name="c", pos=(0.8, 0.9, 0.7), target=(0, 0, 0.2), fovy=0.9),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("which", CAMERAS)
def test_balls_appear_where_they_are_projected(photo, which, size):
    camera = CAMERAS[which]
    colours = ("1 0 0 1", "0 1 0 1", "0 0 1 1")
    balls = "".join(f"<geom pos='{x} {y} {z}' size='.03' rgba='{colours[i]}'/>" for i, (x, y, z) in BALLS.items())
    model, data = compiled(balls + (camera if isinstance(camera, str) else ""))
    name = "c" if isinstance(camera, str) else camera
    view = view_of(model, data, name, *size)
    images = photo.images(model, data, name, ALL, width=size[0], height=size[1])
    inside = 0
    for number, place in BALLS.items():
        pixel = view.project(np.array(place))
        if (pixel > 12).all() and (pixel < np.array(size) - 13).all():
            inside += 1
            v, u = np.nonzero(images["segmentation"] == number + 1)
            assert np.hypot(u.mean() - pixel[0], v.mean() - pixel[1]) < 0.5
            ahead = (np.array(place) - view.pos) @ view.rotation[:, 2]
            assert images["depth"][v, u].min() == pytest.approx(ahead - 0.03, abs=2e-3)
            column, row = pixel.round().astype(int)
            assert images["rgb"][row, column].argmax() == number  # the photograph is not shifted against the numbers
    assert inside >= 1


def test_up_is_up_and_the_backdrop_is_that_of_the_others(photo):
    model, data = compiled(
        "<camera name='c' pos='0 -2 0' xyaxes='1 0 0 0 0 1'/><geom pos='.3 0 0' size='.05' rgba='1 0 0 1'/>"
        "<geom pos='0 0 .3' size='.05' rgba='0 1 0 1'/>"
    )
    ours = photo.images(model, data, "c", ALL, width=96, height=64)
    theirs = make_renderer("rays").images(model, data, "c", ("rgb",), width=96, height=64)["rgb"]
    right, up = (np.argwhere(ours["segmentation"] == n).mean(0) for n in (1, 2))
    assert right[1] > 55 and up[0] < 25
    assert ours["rgb"][tuple(up.astype(int))].argmax() == 1
    nothing = ours["segmentation"] == 0
    assert (ours["depth"][nothing] == 0).all()
    assert np.abs(ours["rgb"].astype(int) - theirs)[nothing].max() <= 1


def test_sites_are_for_human_eyes(photo, pick_cube):
    model, data = pick_cube
    bare = photo.images(model, data, "human_camera", ALL, width=256, height=192)
    marked = photo.images(model, data, "human_camera", ALL, width=256, height=192, sites=True)
    again = photo.images(model, data, "human_camera", ALL, width=256, height=192)
    for word in ("depth", "segmentation"):
        np.testing.assert_array_equal(bare[word], marked[word])
    goal = view_of(model, data, "human_camera", 256, 192).project(data.site("goal_marker").xpos)
    column, row = goal.round().astype(int)
    assert (np.abs(bare["rgb"].astype(int) - marked["rgb"]).max(-1) > 30).sum() > 5
    assert marked["rgb"][row, column, 1] > marked["rgb"][row, column, 0] + 20  # green
    assert np.abs(bare["rgb"].astype(int) - again["rgb"]).mean() < 0.5


def test_a_row_shows_its_own_looks_at_once(photo):
    """What is changed in a model is seen as in a renderer that never saw it otherwise."""
    body = (
        "<light name='l' pos='0 -.5 2' dir='0 .2 -1' directional='true'/><geom type='plane' size='1 1 .1'/>"
        "<geom name='g' pos='0 0 .1' size='.1' material='m'/>"
    )
    model, data = compiled(body, "<material name='m' rgba='.2 .2 .9 1'/>")
    camera = CameraSpec(name="c", pos=(0, -1, 0.5), target=(0, 0, 0.1), fovy=0.5)
    fresh = FilamentRenderer()

    def shot():
        mujoco.mj_forward(model, data)
        fresh.stages.clear()
        images = [r.images(model, data, camera, ALL, width=64, height=64) for r in (photo, fresh)]
        np.testing.assert_array_equal(images[0]["segmentation"], images[1]["segmentation"])
        assert np.abs(images[0]["rgb"].astype(int) - images[1]["rgb"]).mean() < 1
        return images[0]

    first = shot()
    model.mat_rgba[0] = [0.9, 0.2, 0.2, 1]
    red = shot()
    assert red["rgb"][32, 32, 0] > first["rgb"][32, 32, 0] + 60
    model.geom_size[1, 0] = 0.15
    assert (shot()["segmentation"] == 2).sum() > 1.5 * (red["segmentation"] == 2).sum()
    model.geom_rgba[1] = [0, 0.9, 0, 1]
    green = shot()
    model.light_diffuse[0] = [0, 0, 0]
    dark = shot()
    assert dark["rgb"].mean() < green["rgb"].mean() - 5
    fresh.close()


def test_models_in_turn(photo, pick_cube):
    model, data = pick_cube
    before = photo.images(model, data, "base_camera", ("segmentation",))["segmentation"]
    other = photo.images(*compiled("<geom size='.1'/>"), SIDE, ALL, width=64, height=64)
    assert set(np.unique(other["segmentation"])) == {0, 1}
    after = photo.images(model, data, "base_camera", ("segmentation",))["segmentation"]
    np.testing.assert_array_equal(before, after)


def test_looks_change_the_picture(photo, pick_cube):
    model, data = pick_cube
    plain = photo.rgb(model, data, "human_camera", width=200, height=150).astype(int)
    for look, test in (
        (FilamentLook(exposure=1.2), lambda other: other.mean() > plain.mean() + 15),
        (FilamentLook(shadows="none"), lambda other: ((other - plain).mean(-1) > 8).sum() > 50),
        (FilamentLook(shadows="model"), lambda other: ((other - plain).mean(-1) > 8).sum() > 50),
        (FilamentLook(occlusion=False), lambda other: other.mean() > plain.mean() + 1),
        (FilamentLook(flags={"cg.tone_mapping": "linear"}), lambda other: np.abs(other - plain).mean() > 1),
    ):
        renderer = FilamentRenderer(look=look)
        assert test(renderer.rgb(model, data, "human_camera", width=200, height=150).astype(int)), look
        renderer.close()
    fine = FilamentRenderer(samples=2)
    image = fine.rgb(model, data, "human_camera", width=200, height=150).astype(int)
    fine.close()
    assert image.shape == plain.shape
    assert np.abs(image - plain).mean() < 4


def test_errors_name_what_is_valid(photo, pick_cube):
    model, data = pick_cube
    with pytest.raises(UnknownNameError, match="depth, rgb, segmentation"):
        photo.images(model, data, "base_camera", ("normals",))
    with pytest.raises(UnknownNameError, match="base_camera"):
        photo.images(model, data, "bas_camera")
    with pytest.raises(UnknownNameError, match="all, model, none"):
        FilamentLook(shadows="some")  # type: ignore[arg-type]
    found = []

    def elsewhere():
        try:
            photo.images(model, data, "base_camera")
        except ConfigError as error:
            found.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(60)
    assert "thread" in found[0]
    other = FilamentRenderer()
    other.close()
    other.close()
    with pytest.raises(ConfigError, match="closed"):
        other.images(model, data, "base_camera")


@pytest.mark.skipif(sys.platform != "linux", reason="drivers are hidden as on Linux")
def test_without_a_driver_it_says_what_to_install(monkeypatch, tmp_path):
    """A driver that is missing ends the process that tries; ours goes on."""
    for name in ("VK_ICD_FILENAMES", "VK_DRIVER_FILES"):
        monkeypatch.setenv(name, str(tmp_path / "none.json"))
    monkeypatch.delenv("DISPLAY", raising=False)
    backend.probe.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"apt-get install .*mesa-vulkan-drivers.*backend='auto' takes"):
            FilamentRenderer()
    finally:
        monkeypatch.undo()
        backend.probe.cache_clear()


def test_it_starts_and_ends_without_a_word(photo):
    code = """
import mujoco
from manikin.render import make_renderer
from manikin.spec.camera import CameraSpec
model = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
renderer = make_renderer("filament")
camera = CameraSpec(name="c", pos=(1, 0, 0), target=(0, 0, 0))
assert renderer.rgb(model, data, camera, width=32, height=32).std() > 5
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
