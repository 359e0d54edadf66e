"""The page that lays a scene on a photograph, in a browser, against the renderer."""

from __future__ import annotations

import tomllib

import mujoco
import numpy as np
import pytest

from browser import SOFTWARE_WEBGL, Browser, needs_browser
from manikin.cli import main
from manikin.render import make_renderer, write_png
from manikin.spec.camera import CameraSpec
from manikin.view.overlay import overlay_page, triangles

XML = """
<mujoco><worldbody>
<geom type="plane" size="0 0 1"/>
<geom name="table" type="box" size=".3 .4 .02" pos="0 0 .02"/>
<body name="rig" pos="0 0 .3" euler="10 20 30"><geom type="capsule" size=".05 .1"/></body>
<geom type="cylinder" size=".05 .08" pos=".2 .2 .12"/><geom type="ellipsoid" size=".05 .08 .04" pos="-.2 .2 .08"/>
<geom type="sphere" size=".05" pos=".2 -.2 .09"/>
</worldbody></mujoco>
"""
CAMERA = CameraSpec(name="front", pos=(0.8, 0.2, 0.5), target=(0.0, 0.0, 0.05), fovy=0.8, width=160, height=120)


@pytest.fixture
def scene():
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def test_the_triangles_have_the_volumes_of_their_shapes(scene):
    """By the divergence theorem, so that all faces of a closed shape wind alike; facets lie inside what is round."""
    points, colours = triangles(*scene)
    assert len(points) == len(colours) and colours.dtype == np.uint8
    exact = [0.6 * 0.8 * 0.04]
    exact += [np.pi * 0.05**2 * 0.16, 4 / 3 * np.pi * 0.05 * 0.08 * 0.04, 4 / 3 * np.pi * 0.05**3]
    exact += [np.pi * 0.05**2 * 0.2 + 4 / 3 * np.pi * 0.05**3]
    volume = abs(np.einsum("ij,ij->i", points[:, 0], np.cross(points[:, 1], points[:, 2])).sum()) / 6
    assert 0.98 * sum(exact) < volume < sum(exact)


@needs_browser
def test_the_page_draws_what_the_renderer_draws_wherever_its_sliders_are(scene, tmp_path):
    model, data = scene
    camera = CameraSpec(name="front", pos=(0.7, 0.2, 0.5), target=(0, 0, -0.2), fovy=0.9, on="rig")
    page = overlay_page(tmp_path / "a.html", model, data, camera, np.zeros((120, 160, 3), np.uint8), task="X")
    drawn = (
        "(() => { const a = new Uint8Array(4 * W * H); gl.readPixels(0, 0, W, H, gl.RGBA, gl.UNSIGNED_BYTE, a);"
        " return Array.from(a.filter((_, i) => i % 4 === 3)).map(v => v ? 1 : 0).join(''); })()"
    )
    renderer = make_renderer("rays", outputs=("segmentation",))
    with Browser(SOFTWARE_WEBGL) as browser:
        browser.goto(page.as_uri())
        for pose in (
            "",
            "Object.assign(pose, {x: .05, y: -.04, z: .06, pitch: 4, yaw: -6, roll: 9, fovy: -8}); show()",
        ):
            browser.evaluate(pose or "show()")
            seen = np.array(list(browser.evaluate(drawn)), int).reshape(120, 160)[::-1] == 1
            (told,) = tomllib.loads(browser.evaluate("by('toml').value"))["cameras"]
            spec = CameraSpec(**{k: tuple(v) if isinstance(v, list) else v for k, v in told.items()})
            wanted = renderer.images(model, data, spec, ("segmentation",))["segmentation"] > 1  # all but the plane
            assert wanted.mean() > 0.05 and (seen & wanted).sum() / (seen | wanted).sum() > 0.97
            python = eval(browser.evaluate("by('python').value"), {"CameraSpec": CameraSpec})
            assert python == spec
        assert spec.fovy == pytest.approx(0.9 - np.radians(8), abs=1e-5)
        assert not browser.complaints()
        assert all(url.startswith(("file:", "data:", "about:")) for url in browser.requested())
    renderer.close()


def test_the_command_writes_the_page_and_finds_the_camera(tmp_path, capsys):
    import manikin
    from manikin.render import SegmentationTable
    from manikin.render.align import silhouette

    env = manikin.make("PickCube-v2", num_envs=1)
    env.reset(seed=0)
    model, data = env.model_data(0)
    true = CameraSpec(name="base_camera", pos=(0.32, 0.02, 0.58), target=(-0.08, 0.0, 0.1), width=160, height=120)
    renderer = make_renderer("rays", outputs=("segmentation",))
    mask = silhouette(model, data, true, SegmentationTable.of(model).ids(kind="robot"), renderer)
    renderer.close()
    env.close()
    write_png(tmp_path / "photo.png", np.zeros((120, 160, 3), np.uint8))
    write_png(tmp_path / "mask.png", (mask[..., None] * np.full(3, 255)).astype(np.uint8))
    write_png(tmp_path / "small.png", np.full((60, 80, 3), 255, np.uint8))
    words = ["align", "PickCube-v2", "--photo", str(tmp_path / "photo.png"), "--out", str(tmp_path / "a.html")]
    assert main([*words, "--mask", str(tmp_path / "mask.png"), "--renderer", "rays"]) == 0
    said = capsys.readouterr().out
    (camera,) = tomllib.loads(next(line for line in said.splitlines() if line.startswith("cameras")))["cameras"]
    assert camera["pos"] == pytest.approx(true.pos, abs=0.003)
    assert "intersection over union" in said
    page = (tmp_path / "a.html").read_text()
    assert "://" not in page and "CameraSpec" in page
    assert main([*words, "--mask", str(tmp_path / "small.png")]) == 2
    assert "the mask has 80 x 60 pixels and the photograph 160 x 120" in capsys.readouterr().err
    assert main([*words, "--camera", "nowhere"]) == 2
    assert "base_camera" in capsys.readouterr().err
