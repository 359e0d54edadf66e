"""What is written and drawn into pictures: captions, arrows and contact forces."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.errors import ConfigError
from manikin.render import view_of
from manikin.render.files.caption import caption, draw_arrow, draw_text, text_size
from manikin.spec.camera import CameraSpec
from manikin.view.contacts import draw_touches, touches

# ---- words and arrows ----------------------------------------------------------------------------------------------


def blank(width=200, height=60, value=0):
    return np.full((height, width, 3), value, np.uint8)


def test_letters_have_their_shapes():
    image = blank(6, 10)
    draw_text(image, "T", 0, 0)
    rows = ["".join("#" if p else "." for p in row) for row in image[..., 0] > 0]
    assert rows == ["......", "#####."] + ["..#..."] * 6 + ["......"] * 2


def test_every_printable_character_is_drawn_and_no_two_look_alike():
    seen = {}
    for code in range(33, 127):
        image = blank(6, 10)
        draw_text(image, chr(code), 0, 0)
        assert image.any(), chr(code)
        assert seen.setdefault(image.tobytes(), chr(code)) == chr(code)


def test_text_is_scaled_coloured_cut_off_and_never_outside():
    small, large = blank(), blank(400, 120)
    draw_text(small, "Cube 42", 3, 4, colour=(9, 80, 200))
    draw_text(large, "Cube 42", 6, 8, scale=2, colour=(9, 80, 200))
    assert (small.repeat(2, 0).repeat(2, 1) == large).all()
    assert set(map(tuple, small.reshape(-1, 3).tolist())) == {(0, 0, 0), (9, 80, 200)}
    for x, y in ((-20, -3), (190, 55), (500, 0), (0, -50), (0, 900)):
        image, whole = blank(), blank(800, 1100)
        draw_text(image, "edge", x, y)
        draw_text(whole, "edge", x + 100, y + 100)
        assert (image == whole[100:160, 100:300]).all()
    unknown, asked = blank(), blank()
    draw_text(unknown, "größe", 0, 0)
    draw_text(asked, "gr??e", 0, 0)
    assert (unknown == asked).all()
    assert text_size("abc", 2) == (36, 20)
    with pytest.raises(ConfigError, match="scale"):
        draw_text(blank(), "x", 0, 0, scale=0)


def test_caption_leaves_the_picture_alone_and_cuts_long_lines():
    image = blank(90, 60, 200)
    done = caption(image, ["short", "x" * 100], colours=[(0, 255, 0)])
    assert (image == 200).all() and done.shape == image.shape
    strip = 2 * 10 + 2 * 3
    assert (done[strip:] == 200).all() and (done[:strip] != 200).any(-1).all()
    assert ((done == (0, 255, 0)).all(-1)).any() and ((done == 255).all(-1)).any()
    assert (caption(image, ["short"], bottom=True)[:40] == 200).all()
    assert (caption(image, []) == image).all()


def test_arrow_runs_where_it_should():
    image = blank(100, 100)
    draw_arrow(image, (10, 50), (90, 50), colour=(255, 0, 0))
    lit = image[..., 0] > 128
    assert lit[50, 10:91].all() and not lit[:, :8].any() and not lit[:, 93:].any()
    assert lit[:, 84:90].any(1).sum() > lit[:, 20:30].any(1).sum()  # the head is wider than the shaft
    before = image.copy()
    draw_arrow(image, (np.nan, 0), (5, 5))
    draw_arrow(image, (-500, -500), (-400, -400))
    assert (image == before).all()


# ---- contact forces ------------------------------------------------------------------------------------------------

STACK = """<mujoco><option timestep='.002'/><worldbody>
<geom name='floor' type='plane' size='1 1 .1'/>
<body name='low' pos='0 0 .0499'><freejoint/><geom type='box' size='.05 .05 .05' mass='2'/></body>
<body name='high' pos='0 0 .1297'><freejoint/><geom type='box' size='.03 .03 .03' mass='.5'/></body>
</worldbody></mujoco>"""


def settled(xml=STACK):
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 1000)
    mujoco.mj_forward(model, data)
    return model, data


def test_contact_forces_carry_the_weight_of_a_stack():
    model, data = settled()
    first, second = touches(model, data)
    assert (first.names, second.names) == (("world", "low"), ("low", "high"))
    assert first.force == pytest.approx([0, 0, 2.5 * 9.81], rel=1e-3, abs=0.02)
    assert second.force == pytest.approx([0, 0, 0.5 * 9.81], rel=1e-3, abs=0.02)
    assert first.points == 4 and first.pos == pytest.approx([0, 0, 0], abs=1e-3)


def test_contact_forces_act_on_what_moves_whatever_the_order_in_the_model():
    model, data = settled(
        STACK.replace("<geom name='floor' type='plane' size='1 1 .1'/>", "").replace(
            "</worldbody>", "<body name='ground'><geom type='box' size='1 1 .1' pos='0 0 -.1'/></body></worldbody>"
        )
    )
    first = touches(model, data)[0]
    assert first.names == ("ground", "low")
    assert first.force[2] == pytest.approx(2.5 * 9.81, rel=1e-3)


def test_contact_forces_are_drawn_where_the_camera_sees_them():
    model, data = settled()
    view = view_of(model, data, CameraSpec(name="c", pos=(1, 0, 0.1), target=(0, 0, 0.1), fovy=0.6), 200, 200)
    image = blank(200, 200)
    draw_touches(image, view, touches(model, data)[:1])
    y, x = np.nonzero(image.any(-1))
    tip = view.project(np.array([0, 0, 0.25]))  # 24.5 N would be 0.49 m, which is more than is drawn
    assert abs(x.mean() - 99.5) < 1 and abs(y.min() - tip[1]) < 3
    behind = view_of(model, data, CameraSpec(name="c", pos=(1, 0, 0.1), target=(2, 0, 0.1)), 200, 200)
    image = blank(200, 200)
    draw_touches(image, behind, touches(model, data))
    assert not image.any()
