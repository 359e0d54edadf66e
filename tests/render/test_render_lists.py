"""render/backends/lists.py: fewer vertices, the same picture as by MuJoCo's own lists."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.render import make_renderer
from manikin.render.backends import gl
from manikin.spec.camera import CameraSpec

ALL = ("rgb", "depth", "segmentation")
LAMP = "<light type='spot' pos='.6 .8 1.8' dir='-.3 -.4 -1' cutoff='60' diffuse='.6 .6 .6'/>"
CHECKS = "<texture name='t' type='2d' builtin='checker' rgb1='.2 .3 .4' rgb2='.6 .5 .4' width='64' height='64'/>"
ROUND = (
    "<geom type='cylinder' size='.1 .2' pos='0 -.3 .5' euler='40 20 0' rgba='.8 .3 .2 1'/>"
    "<geom type='capsule' size='.1 .2' pos='0 .3 .5' euler='70 -30 0' rgba='.3 .8 .2 1'/>"
    "<geom type='cylinder' size='.3 .01' pos='.1 0 .2' rgba='.3 .2 .8 1'/>"
    "<geom type='cylinder' size='.3 .01' pos='-.3 0 1.2' euler='0 60 0' rgba='.7 .2 .8 1'/>"
)
CAMERAS = [
    CameraSpec(name="in front", pos=(1.5, 0.4, 0.9), target=(0, 0, 0.4), fovy=0.8),
    CameraSpec(name="far off", pos=(41.3, -33.7, 2.0), target=(42, -33, 1.7), fovy=0.9),
    CameraSpec(name="from below", pos=(0.9, 0.2, 0.1), target=(0, 0, 0.8), fovy=0.9),
]


def pictures(body, asset="", cameras=CAMERAS):
    """Of each camera: by our lists, by MuJoCo's and by rays, which light each pixel."""
    platform, why = gl.probe()
    if platform is None:
        pytest.skip(f"no OpenGL here: {why}")
    xml = f"<mujoco><asset>{asset}</asset><worldbody>{LAMP}{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderers = [gl.GlRenderer(platform), gl.GlRenderer(platform, light=False), make_renderer("rays")]
    seen = [[r.images(model, data, camera, ALL, width=160, height=120) for r in renderers] for camera in cameras]
    for renderer in renderers:
        renderer.close()
    return seen


def difference(a, b):
    return float(np.abs(a["rgb"].astype(int) - b["rgb"]).mean())


def test_round_walls_keep_outline_depth_and_light():
    for ours, theirs, _ in pictures(ROUND, cameras=CAMERAS[::2]):
        assert len(np.unique(theirs["segmentation"])) == 5  # the four, and nothing
        assert (ours["segmentation"] == theirs["segmentation"]).mean() > 0.9995
        assert np.percentile(np.abs(ours["depth"] - theirs["depth"]), 99.9) < 1e-4
        assert difference(ours, theirs) < 0.5


@pytest.mark.parametrize(
    ("repeat", "place"), [((1, 1), ""), ((3, 0.5), "pos='0 0 .1'"), ((1, 2), "pos='3 5 -.2' euler='0 5 30'")]
)
@pytest.mark.parametrize("other", ["", "<geom type='plane' size='.3 .3 .1' pos='-.5 0 .3'/>"])
def test_an_endless_floor_lies_lit_and_patterned_as_mujoco_lays_it(repeat, place, other):
    asset = f"{CHECKS}<material name='m' texture='t' texrepeat='{repeat[0]} {repeat[1]}' texuniform='true'/>"
    floor = f"<geom type='plane' size='0 0 .1' material='m' {place}/>"
    seen = pictures(other + floor + "<geom size='.1' pos='0 0 .4'/>", asset, CAMERAS[:2])
    for ours, theirs, rays in seen:
        assert (theirs["segmentation"] == (2 if other else 1)).mean() > 0.3
        assert (ours["segmentation"] == rays["segmentation"]).mean() > 0.9995
        near = theirs["depth"] < 20
        assert np.percentile(np.abs(ours["depth"] - theirs["depth"])[near], 99) < 2e-3
        assert difference(ours, rays) < 1
    assert any(not np.array_equal(ours["rgb"], theirs["rgb"]) for ours, theirs, _ in seen), "ours is not drawn"


def test_finite_floors_are_left_to_mujoco():
    (ours, theirs, _), *_ = pictures("<geom type='plane' size='2 2 .1'/>")
    for word in ALL:
        np.testing.assert_array_equal(ours[word], theirs[word])
