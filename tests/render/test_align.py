"""A camera found from the outline of the robot in a picture whose camera is known."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.render import SegmentationTable, make_renderer, view_of
from manikin.render.align import align_camera, check_mask, silhouette
from manikin.spec.camera import CameraSpec

# An arm of three links and a gripper on a table, as an own small model: known shapes, quick to draw.
XML = """
<mujoco><worldbody>
<light pos="0 0 2"/>
<geom name="table" type="box" size=".6 .6 .02" pos="0 0 -.02"/>
<body name="arm/base"><geom type="cylinder" size=".07 .06" pos="0 0 .06"/>
 <body name="arm/one" pos="0 0 .15" euler="0 25 20"><geom type="capsule" size=".045" fromto="0 0 0 0 0 .3"/>
  <body name="arm/two" pos="0 0 .3" euler="0 85 -30"><geom type="capsule" size=".035" fromto="0 0 0 0 0 .28"/>
   <body name="arm/hand" pos="0 0 .3" euler="0 60 15"><geom type="box" size=".05 .02 .03"/>
    <geom type="box" size=".008 .012 .03" pos=".035 0 .06"/><geom type="box" size=".008 .012 .03" pos="-.035 0 .06"/>
   </body></body></body></body>
<body name="can" pos=".25 -.2 .06"><freejoint/><geom type="cylinder" size=".033 .06"/></body>
</worldbody></mujoco>
"""
TRUE = CameraSpec(name="front", pos=(0.85, 0.35, 0.6), target=(0.1, 0.0, 0.15), fovy=1.0, width=160, height=120)


@pytest.fixture(scope="module")
def scene():
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = make_renderer("rays", outputs=("depth", "segmentation"))
    yield model, data, renderer
    renderer.close()


def photographed(scene, camera=TRUE, things=("arm",)):
    model, data, renderer = scene
    table = SegmentationTable.of(model)
    return silhouette(model, data, camera, np.concatenate([table.ids(thing=t) for t in things]), renderer)


def rotated(camera, turn):
    """The camera turned by a rotation vector of its optical frame."""
    quat, other, out = np.zeros(4), np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(quat, camera.rotation.flatten())
    angle = np.linalg.norm(turn)
    mujoco.mju_axisAngle2Quat(other, np.asarray(turn) / angle, angle)
    mujoco.mju_mulQuat(out, quat, other)
    return tuple(out)


def perturbed(number, camera=TRUE, fovy=0.0):
    """A camera 2 to 5 cm and 3 to 6 degrees away."""
    rng = np.random.default_rng(number)
    shift, turn = rng.normal(size=(2, 3))
    shift *= rng.uniform(0.02, 0.05) / np.linalg.norm(shift)
    turn *= math.radians(rng.uniform(3, 6)) / np.linalg.norm(turn)
    return CameraSpec(
        name=camera.name,
        pos=tuple(np.add(camera.pos, shift)),
        quat=rotated(camera, turn),
        fovy=camera.fovy + fovy,
        on=camera.on,
        width=camera.width,
        height=camera.height,
    )


def apart(found, true):
    """Millimetres and degrees."""
    turn = np.clip((np.trace(found.rotation.T @ true.rotation) - 1) / 2, -1, 1)
    return 1e3 * np.linalg.norm(np.subtract(found.pos, true.pos)), math.degrees(math.acos(turn))


@pytest.mark.parametrize("number", range(4))
def test_a_camera_is_found_again_from_the_mask_alone(scene, number):
    model, data, renderer = scene
    start = perturbed(number)
    assert apart(start, TRUE)[0] > 19 and apart(start, TRUE)[1] > 2.9
    found = align_camera(model, data, start, photographed(scene), renderer=renderer)
    millimetres, degrees = apart(found.camera, TRUE)
    assert millimetres < 3 and degrees < 0.3
    assert found.agreement > 0.99 > found.before
    assert 1e3 * found.shift == pytest.approx(apart(start, found.camera)[0], abs=0.1)
    assert math.degrees(found.turn) == pytest.approx(apart(start, found.camera)[1], abs=0.01)


def test_the_field_of_view_is_found_with_the_pose(scene):
    """At 320 x 240: at 160 x 120 masks of views that differ by a degree are equal."""
    model, data, renderer = scene
    true = TRUE.resized(320, 240)
    start = perturbed(5, true, fovy=0.06)
    found = align_camera(model, data, start, photographed(scene, true), fovy=True, renderer=renderer)
    millimetres, degrees = apart(found.camera, true)
    assert abs(found.camera.fovy - 1.0) < 0.01 and millimetres < 8 and degrees < 0.3


def test_what_the_mask_lacks_or_has_too_much_counts_little(scene):
    model, data, renderer = scene
    mask = photographed(scene)
    y, x = np.argwhere(mask)[len(np.argwhere(mask)) // 2]
    mask[y - 3 : y + 3, x - 3 : x + 3] = False  # a hole, and a patch that is no robot
    mask[5:11, 10:18] = True
    found = align_camera(model, data, perturbed(1), mask, renderer=renderer)
    millimetres, degrees = apart(found.camera, TRUE)
    assert millimetres < 5 and degrees < 0.5


def test_a_camera_on_the_robot_and_another_thing(scene):
    """Fixed to a link, the pose is in the link's frame; the mask marks arm and can."""
    model, data, renderer = scene
    body = model.body("arm/base").id
    true = CameraSpec(name="wrist", pos=TRUE.pos, target=TRUE.target, fovy=1.0, on="arm/base", width=160, height=120)
    assert np.allclose(view_of(model, data, true).pos, TRUE.pos + data.xpos[body])
    mask = photographed(scene, true, ("arm", "can"))
    found = align_camera(model, data, perturbed(2, true), mask, things=("arm", "can"), renderer=renderer)
    millimetres, degrees = apart(found.camera, true)
    assert found.camera.on == "arm/base" and millimetres < 3 and degrees < 0.3


def test_intrinsics_stay_where_they_were_given(scene):
    model, data, renderer = scene
    lens = (120.0, 121.0, 82.0, 57.0)
    true = CameraSpec(name="front", pos=TRUE.pos, target=TRUE.target, intrinsics=lens, width=160, height=120)
    start = perturbed(3)
    start = CameraSpec(name="front", pos=start.pos, quat=start.quat, intrinsics=lens, width=160, height=120)
    found = align_camera(model, data, start, photographed(scene, true), renderer=renderer)
    millimetres, degrees = apart(found.camera, true)
    assert found.camera.intrinsics == pytest.approx(lens) and millimetres < 3 and degrees < 0.3


def test_masks_that_cannot_work_are_named(scene):
    model, data, renderer = scene
    photograph = np.zeros((120, 160, 3), np.uint8)
    mask = photographed(scene)
    with pytest.raises(DataError, match=r"the mask has 80 x 60 pixels and the photograph 160 x 120"):
        check_mask(mask[::2, ::2], photograph)
    with pytest.raises(DataError, match="the mask is empty"):
        check_mask(np.zeros((120, 160, 3), np.uint8), photograph)
    with pytest.raises(DataError, match="marks the whole picture"):
        check_mask(np.ones((120, 160), bool), photograph)
    with pytest.raises(DataError, match=r"not of shape \(120,\)"):
        check_mask(np.zeros(120))
    assert (check_mask((mask * 255).astype(np.uint8)[..., None].repeat(3, 2), photograph) == mask).all()
    elsewhere = np.zeros((120, 160), bool)
    elsewhere[:8, :8] = True
    with pytest.raises(DataError, match="do not overlap with the mask: the mask is elsewhere"):
        align_camera(model, data, TRUE, elsewhere, renderer=renderer)
    away = CameraSpec(name="front", pos=TRUE.pos, target=(2.0, 0.5, 0.6), width=160, height=120)
    with pytest.raises(DataError, match="they are not in view"):
        align_camera(model, data, away, mask, renderer=renderer)
    with pytest.raises(UnknownNameError, match=r"cup.*arm"):
        align_camera(model, data, TRUE, mask, things=("cup",), renderer=renderer)
    bare = mujoco.MjModel.from_xml_string("<mujoco><worldbody><geom size='.1'/></worldbody></mujoco>")
    with pytest.raises(ConfigError, match="the scene has no robot"):
        align_camera(bare, mujoco.MjData(bare), TRUE, mask, renderer=renderer)
