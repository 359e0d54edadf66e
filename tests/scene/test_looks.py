"""Visual variation: drawn from the episode alone, within what was declared, and without a trace in the physics."""

from __future__ import annotations

import colorsys
import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.table import table
from manikin.author.under_test import CountCalls
from manikin.env.observe import Vision
from manikin.env.registry import task_class, task_ids
from manikin.errors import AssetError, ConfigError, DataError, ManikinError, UnknownNameError
from manikin.policy.expert import ExpertPolicy
from manikin.render import make_renderer
from manikin.render.files.video import encode_png
from manikin.render.view import view_of
from manikin.scene.looks.surfaces import to_hsv, to_rgb
from manikin.scene.looks.textures import pixels
from manikin.spec.camera import CameraSpec
from manikin.spec.looks import (
    TEXTURES,
    Background,
    CameraLook,
    Distractors,
    ExtraLights,
    LightLook,
    Looks,
    Surface,
)
from manikin.spec.vary import Choice, Normal, Uniform

# every model field that looks may touch, and what the world works out from them
FIELDS = (
    *("cam_pos", "cam_quat", "cam_fovy", "light_pos", "light_dir", "light_diffuse", "light_ambient", "light_specular"),
    *("light_active", "geom_rgba", "geom_matid", "geom_size", "geom_pos", "geom_quat", "geom_aabb", "geom_rbound"),
)
EVERYTHING = Looks(
    cameras=(
        CameraLook(shift=Uniform(-0.05, 0.05), keep_target=True),
        CameraLook(turn=Normal(0.0, 0.01), every="step"),
    ),
    lights=LightLook(shift=Uniform(-0.1, 0.1), turn=Uniform(-0.5, 0.5), intensity=Uniform(0.5, 1.5), every="step"),
    ambient=Uniform(0.1, 0.5),
    extra_lights=ExtraLights(every="step"),
    surfaces={
        "table": Surface(hue=Uniform(-0.5, 0.5), textures=TEXTURES),
        "robot": Surface(offset=Normal(0.0, 0.1), every="step"),
        "cube": Surface(brightness=Uniform(0.5, 1.0), saturation=Uniform(0.5, 1.0), textures=("plain", "noise")),
    },
    distractors=Distractors(count=4, every="step"),
    background=Background(textures=TEXTURES),
)


def made(looks: Looks | None, num_envs: int = 1, **options: Any) -> Any:
    return manikin.make("PickCube-v2", num_envs=num_envs, looks=looks, **options)


def fields(env: Any, row: int) -> dict[str, np.ndarray]:
    return {name: np.array(env.world.model_field(name)[row]) for name in FIELDS}


def differing(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> set[str]:
    return {name for name in a if not np.array_equal(a[name], b[name])}


def hold(env: Any) -> torch.Tensor:
    return torch.zeros(env.num_envs, env.controller.card.size)


def picture(env: Any, row: int, backend: str = "rays", size: int = 64) -> np.ndarray:
    renderer = make_renderer(backend)
    try:
        model, data = env.world.data(row)
        return renderer.rgb(model, data, "base_camera", width=size, height=size, sites=False).astype(float)
    finally:
        renderer.close()


# ---- drawn from the episode alone -----------------------------------------------------------------------------------


def test_an_episode_looks_the_same_in_any_row_and_batch() -> None:
    alone, many = made(EVERYTHING), made(EVERYTHING, 5)
    alone.reset(seed=7)
    many.reset(seed=[1, 2, 3, 7, 5])
    for _ in range(3):
        assert differing(fields(alone, 0), fields(many, 3)) == set()
        assert differing(fields(many, 2), fields(many, 3)) >= {"cam_pos", "cam_quat", "light_dir", "geom_rgba"}
        alone.step(hold(alone))
        many.step(hold(many))


def test_episodes_differ_and_come_back() -> None:
    env = made(EVERYTHING)
    env.reset(seed=3)
    first = fields(env, 0)
    env.reset()
    assert differing(first, fields(env, 0)) >= {"cam_pos", "cam_quat", "light_ambient", "geom_rgba", "geom_size"}
    env.reset(seed=3)
    assert differing(first, fields(env, 0)) == set()


def test_a_partial_reset_leaves_the_other_rows_as_they_look() -> None:
    env = made(EVERYTHING, 3)
    env.reset(seed=0)
    before = [fields(env, row) for row in range(3)]
    env.reset(options={"reset_mask": np.array([False, True, False])})
    changed = [bool(differing(before[row], fields(env, row))) for row in range(3)]
    assert changed == [False, True, False]


def test_what_changes_per_step_and_what_per_episode() -> None:
    looks = Looks(
        cameras=(CameraLook(fovy=Uniform(-0.1, 0.1)), CameraLook(shift=Uniform(-0.02, 0.02), every="step")),
        lights=LightLook(turn=Uniform(-0.3, 0.3)),
    )
    env = made(looks, 2)
    env.reset(seed=0)
    places = []
    for _ in range(4):
        before = fields(env, 0)
        env.step(hold(env))
        assert differing(before, fields(env, 0)) == {"cam_pos"}
        places.append(before["cam_pos"])
    assert len({p.tobytes() for p in places}) == 4


def test_a_jitter_of_nothing_leaves_the_episode_as_it_is() -> None:
    """What a step works out anew rests on the same draws as the start of the episode."""
    still = Choice(((0.0, 0.0, 0.0),))
    place = CameraLook(shift=Uniform(-0.1, 0.1), turn=Uniform(-0.1, 0.1), fovy=Uniform(-0.1, 0.1), keep_target=True)
    aside = CameraLook(shift=Uniform(-0.1, 0.1))
    for jitter in (CameraLook(turn=still, every="step"), CameraLook(shift=still, every="step", keep_target=True)):
        env = made(Looks(cameras=(place, aside, jitter)), 3)
        env.reset(seed=5)
        before = fields(env, 1)
        env.step(hold(env))
        after = fields(env, 1)
        assert differing(before, after) <= {"cam_quat"}
        assert after["cam_quat"] == pytest.approx(before["cam_quat"], abs=1e-6)


def test_a_row_that_does_not_step_does_not_change() -> None:
    env = made(EVERYTHING, 2)
    env.reset(seed=0)
    before = [fields(env, row) for row in range(2)]
    env.step(hold(env), active=torch.tensor([True, False]))
    assert differing(before[0], fields(env, 0)) >= {"cam_quat", "geom_rgba"}
    assert differing(before[1], fields(env, 1)) == set()


def test_looks_go_on_after_loading_as_if_nothing_had_been() -> None:
    env, other = made(EVERYTHING, 2), made(EVERYTHING, 3)
    env.reset(seed=11)
    env.step(hold(env))
    snapshot = env.save([1])
    here = fields(env, 1)
    env.step(hold(env))
    onward = fields(env, 1)
    other.reset(seed=50)
    other.load(snapshot, [2])
    assert differing(here, fields(other, 2)) == set()
    other.step(hold(other))
    assert differing(onward, fields(other, 2)) == set()


# ---- without a trace in the physics ---------------------------------------------------------------------------------


@pytest.mark.parametrize("looks", [Looks.light(), Looks.strong(), EVERYTHING], ids=["light", "strong", "everything"])
def test_physics_is_the_same_to_the_bit_through_a_whole_grasp(looks: Looks) -> None:
    plain, dressed = made(None, 2, autoreset="disabled"), made(looks, 2, autoreset="disabled")
    observations = [env.reset(seed=0)[0] for env in (plain, dressed)]
    expert = ExpertPolicy(plain)
    expert.reset(torch.arange(2))
    grasped = False
    for _ in range(45):
        action = expert.act(observations[0], plain.instruction)[:, 0]
        steps = [env.step(action) for env in (plain, dressed)]
        assert torch.equal(plain.state_hash(), dressed.state_hash())
        assert torch.equal(steps[0][0], steps[1][0])
        assert torch.equal(steps[0][1], steps[1][1])
        grasped |= bool(steps[0][4]["is_grasped"].any())
        observations = [s[0] for s in steps]
        if (steps[0][2] | steps[0][3]).any():
            break
    assert grasped


def test_distractors_touch_nothing_even_where_the_cube_is_pushed() -> None:
    crowd = Distractors(count=8, size=Uniform(0.03, 0.06), low=(-0.15, -0.15), high=(0.15, 0.15), keep_out=())
    plain, crowded = made(None), made(Looks(distractors=crowd))
    action = torch.tensor([[0.0, 1.0, 0.0, -0.2, 0.0, 0.3, 0.0, -1.0]])
    for env in (plain, crowded):
        env.reset(seed=4)
        for _ in range(30):
            env.step(action)
    assert torch.equal(plain.state_hash(), crowded.state_hash())
    model, data = crowded.world.data(0)
    things = [i for i in range(model.ngeom) if model.geom(i).name.startswith("distractor/")]
    assert (crowded.world.model_field("geom_rgba")[0, things, 3] > 0).sum() >= 3
    assert not model.geom_contype[things].any()
    assert not model.geom_conaffinity[things].any()
    assert not np.isin(data.contact.geom, things).any()
    assert model.nv == plain.scene.model.nv


def test_without_looks_a_step_costs_nothing_more() -> None:
    counts = []
    for looks in (None, Looks(lights=LightLook(intensity=Uniform(0.5, 1.0)))):  # per episode only
        env = made(looks)
        env.reset(seed=0)
        for _ in range(2):  # the first step makes what later ones keep
            with CountCalls() as count:
                env.step(hold(env))
        counts.append(count.count)
    assert counts[0] == counts[1] > 0


# ---- within what was declared ---------------------------------------------------------------------------------------


def test_cameras_stay_in_range_and_on_target() -> None:
    shift, wide = Uniform((-0.05, 0.0, -0.02), (0.05, 0.1, 0.02)), Uniform(-0.1, 0.2)
    jitter = CameraLook(shift=Choice(((0.0, 0.0, 0.0),)), keep_target=True)
    env = made(Looks(cameras={"base_camera": (CameraLook(shift=shift, fovy=wide, keep_target=True), jitter)}), 64)
    env.reset(seed=0)
    model = env.scene.model
    camera = model.camera("base_camera").id
    moved = env.world.model_field("cam_pos")[:, camera] - model.cam_pos[camera]
    assert (moved >= np.array(shift.low) - 1e-6).all()
    assert (moved <= np.array(shift.high) + 1e-6).all()
    assert (np.ptp(moved, axis=0) > 0.8 * (np.array(shift.high) - shift.low)).all()
    more = np.deg2rad(env.world.model_field("cam_fovy")[:, camera] - model.cam_fovy[camera])
    assert -0.1 - 1e-5 <= more.min() < -0.08
    assert 0.18 < more.max() <= 0.2 + 1e-5
    spec = env.camera("base_camera")
    for row in range(8):
        view = view_of(*env.world.data(row), "base_camera")
        assert view.project(np.array(spec.target)) == pytest.approx(view.K[:2, 2], abs=0.05)
    human = model.camera("human_camera").id  # meant for people, so only by name
    assert np.array_equal(env.world.model_field("cam_pos")[5, human], model.cam_pos[human])


def test_a_turn_is_in_the_optical_frame() -> None:
    """A turn about y, which points down, looks to the right: what was in the middle moves left."""
    env = made(Looks(cameras={"base_camera": CameraLook(turn=Choice(((0.0, 0.1, 0.0),)))}))
    env.reset(seed=0)
    spec = env.camera("base_camera")
    view = view_of(*env.world.data(0), "base_camera")
    across = view.K[0, 2] - view.K[0, 0] * math.tan(0.1)
    assert view.project(np.array(spec.target)) == pytest.approx([across, view.K[1, 2]], abs=0.02)


def test_lights_stay_in_range() -> None:
    looks = Looks(
        lights=LightLook(turn=Uniform((0.0, 0.0, -0.4), (0.0, 0.0, 0.4)), intensity=Uniform(0.5, 2.0)),
        ambient=Uniform(0.1, 0.3),
        extra_lights=ExtraLights(count=Choice((0, 1, 3)), elevation=Uniform(0.5, 0.6), colour=Uniform(0.5, 1.0)),
    )
    env = made(looks, 64)
    env.reset(seed=0)
    model, field = env.scene.model, env.world.model_field
    strength = field("light_diffuse")[:, 0] / model.light_diffuse[0]
    assert 0.5 - 1e-6 <= strength.min() < 0.6
    assert 1.9 < strength.max() <= 2.0 + 1e-6
    turned, straight = field("light_dir")[:, 0], model.light_dir[0]
    assert np.linalg.norm(turned, axis=1) == pytest.approx(1.0, abs=1e-6)
    assert turned[:, 2] == pytest.approx(straight[2], abs=1e-6)  # about the vertical
    angle = (turned @ straight - straight[2] ** 2) / (1 - straight[2] ** 2)
    assert math.cos(0.4) - 1e-4 <= angle.min() < math.cos(0.3)
    ambient = field("light_ambient")[:, model.light("looks/ambient").id]
    assert 0.1 <= ambient.min() < 0.12
    assert 0.28 < ambient.max() <= 0.3 + 1e-6
    extra = [model.light(f"looks/light/{i}").id for i in range(3)]
    assert set(field("light_active")[:, extra].sum(1).astype(int)) == {0, 1, 3}
    up = -field("light_dir")[:, extra, 2]
    assert math.sin(0.5) - 1e-6 <= up.min()
    assert up.max() <= math.sin(0.6) + 1e-6


def test_colours_and_textures_stay_in_range() -> None:
    red = Uniform((0.5, 0.0, 0.0), (1.0, 0.2, 0.2))
    looks = Looks(
        surfaces={
            "table": Surface(colour=red, textures=("plain", "wood", "noise"), repeat=(1.0, 4.0)),
            "robot": Surface(brightness=Uniform(0.5, 0.9)),
        }
    )
    env = made(looks, 64)
    env.reset(seed=0)
    model = env.scene.model
    rgba, material = env.world.model_field("geom_rgba"), env.world.model_field("geom_matid").astype(int)
    board = model.geom("table").id
    assert (rgba[:, board, :3] >= np.array(red.low) - 1e-6).all()
    assert (rgba[:, board, :3] <= np.array(red.high) + 1e-6).all()
    names = {"own" if m < 0 else model.material(m).name for m in material[:, board]}
    assert names == {"own", *(f"looks/{word}/{r}" for word in ("wood", "noise") for r in (1, 4))}
    links = [i for i in range(model.ngeom) if model.body(model.geom_bodyid[i]).name.startswith("robot/")]
    factor = rgba[:, links, :3] / model.geom_rgba[links, :3]
    assert np.ptp(factor, axis=(1, 2)).max() < 1e-5  # links change together and keep their differences
    assert 0.5 <= factor.min() < 0.52
    assert 0.88 < factor.max() <= 0.9 + 1e-6
    others = sorted(set(range(model.ngeom)) - {board, *links})
    assert np.array_equal(rgba[:, others], np.broadcast_to(model.geom_rgba[others], (64, len(others), 4)))


def test_distractors_stay_out_of_the_way_and_apart() -> None:
    keep_out = ((-0.9, -0.2, 0.2, 0.2), (0.0, 0.3, 0.1, 0.4))
    look = Distractors(count=Choice((0, 3, 6)), size=Uniform((0.01, 0.02, 0.03), (0.02, 0.03, 0.05)), keep_out=keep_out)
    env = made(Looks(distractors=look), 64)
    env.reset(seed=0)
    model, field = env.scene.model, env.world.model_field
    ids = [i for i in range(model.ngeom) if model.geom(i).name.startswith("distractor/")]
    alpha, pos, aabb = field("geom_rgba")[:, ids, 3], field("geom_pos")[:, ids], field("geom_aabb")[:, ids]
    assert set(np.unique(alpha)) == {0.0, 1.0}
    assert set(alpha.sum(1)) == {0.0, 3.0, 6.0}
    shown = alpha > 0
    assert pos[..., 2][shown] == pytest.approx(aabb[..., 5][shown], abs=1e-6)  # each stands on the table
    half = np.hypot(field("geom_size")[:, ids, 0], 0.02)  # no footprint is smaller than this but for rounding
    for row, k in zip(*np.nonzero(shown), strict=True):
        x, y = pos[row, k, :2]
        assert look.low[0] <= x <= look.high[0]
        assert look.low[1] <= y <= look.high[1]
        for x0, y0, x1, y1 in keep_out:
            gap = math.hypot(max(x0 - x, 0, x - x1), max(y0 - y, 0, y - y1))
            assert gap >= half[row, k] - 1e-6
        for other in np.flatnonzero(shown[row, :k]):
            assert np.linalg.norm(pos[row, k, :2] - pos[row, other, :2]) >= half[row, k] + half[row, other] - 1e-6


def test_a_distractor_without_room_stays_hidden() -> None:
    env = made(Looks(distractors=Distractors(count=3, keep_out=((-2.0, -2.0, 2.0, 2.0),))), 4)
    env.reset(seed=0)
    model = env.scene.model
    ids = [i for i in range(model.ngeom) if model.geom(i).name.startswith("distractor/")]
    assert not env.world.model_field("geom_rgba")[:, ids, 3].any()


def test_hue_saturation_and_brightness_are_those_of_colorsys() -> None:
    rng = np.random.default_rng(0)
    rgb = np.concatenate([rng.random((200, 3)), np.eye(3), np.zeros((1, 3)), np.ones((1, 3)), [[0.4, 0.4, 0.4]]])
    hue, saturation, value = (x.numpy() for x in to_hsv(torch.tensor(rgb)))
    for i, (r, g, b) in enumerate(rgb):
        h, s, v = colorsys.rgb_to_hsv(r, g, b)
        assert (hue[i] % 1, saturation[i], value[i]) == pytest.approx((h, s, v), abs=1e-6)
    again = to_rgb(*(torch.tensor(x) for x in (hue + 0.3, saturation, value))).numpy()
    expected = [colorsys.hsv_to_rgb((h + 0.3) % 1, s, v) for h, s, v in zip(hue, saturation, value, strict=True)]
    assert again == pytest.approx(np.array(expected), abs=1e-6)


class Painted(manikin.Task):
    """The task itself draws the ball's colour."""

    id = "Painted-v0"
    horizon_s = 1.0

    def scene(self, b: Any) -> Any:
        table(b)
        colours = Choice(((0.8, 0.2, 0.2, 1.0), (0.2, 0.8, 0.2, 1.0)))
        return {"robot": b.robot(), "ball": b.sphere("ball", radius=0.03, rgba=colours)}

    def start(self, h: Any, ep: Any) -> None:
        h.ball.set_pose((0.0, 0.0, 0.03))

    def evaluate(self, h: Any) -> Any:
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h: Any) -> Any:
        return {"policy": {"ball": h.ball.pos}}


def test_looks_build_on_a_colour_that_the_task_draws() -> None:
    half = Surface(brightness=Choice((0.5,)))
    env = manikin.make(Painted, num_envs=16, reward="none", looks=Looks(surfaces={"ball": half}))
    for _ in range(3):  # not on what looks made of it last time
        env.reset(seed=0)
        seen = {tuple(np.round(c, 3).tolist()) for c in env.world.model_field("geom_rgba")[:, env.h.ball.geom_ids[0]]}
        assert sorted(seen) == [pytest.approx((0.1, 0.4, 0.1, 1.0)), pytest.approx((0.4, 0.1, 0.1, 1.0))]
    with pytest.raises(ConfigError, match="draws the colour of 'ball' per episode"):
        manikin.make(Painted, looks=Looks(surfaces={"ball": Surface(hue=Uniform(0.0, 1.0), every="step")}))


# ---- seen ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["rays", "gl"])
def test_pictures_of_varied_rows_all_differ(backend: str) -> None:
    try:
        make_renderer(backend).close()
    except ConfigError as error:
        pytest.skip(str(error))
    env = made(Looks.strong(), 9)
    env.reset(seed=0)
    images = [picture(env, row, backend) for row in range(9)]
    differences = [np.abs(a - b).mean() for a, b in itertools.combinations(images, 2)]
    assert min(differences) > 10
    again = picture(env, 0, backend)
    assert np.array_equal(images[0], again)
    plain = made(None)
    plain.reset(seed=0)
    assert np.abs(picture(plain, 0, backend) - images[0]).mean() > 10


@pytest.mark.parametrize("backend", ["rays", "gl"])
def test_an_image_on_the_wall_is_upright_and_not_mirrored(backend: str, tmp_path: Path) -> None:
    """Red, green, blue and white quarters, seen from inside the room."""
    try:
        make_renderer(backend).close()
    except ConfigError as error:
        pytest.skip(str(error))
    quarters = np.zeros((64, 64, 3), np.uint8)
    quarters[:32, :32], quarters[:32, 32:] = (255, 0, 0), (0, 255, 0)
    quarters[32:, :32], quarters[32:, 32:] = (0, 0, 255), (255, 255, 255)
    file = tmp_path / "quarters.png"
    file.write_bytes(encode_png(quarters))
    white = Choice(((1.0, 1.0, 1.0),))
    env = made(Looks(background=Background(colour=white, textures=(str(file),), bottom=-1.5, top=3.5)))
    env.reset(seed=0)
    model, data = env.world.data(0)
    renderer = make_renderer(backend)
    for i, out in enumerate([(1, 0), (0, 1), (-1, 0), (0, -1)]):
        camera = probe_camera(pos=(0.0, 0.0, 1.0), target=(out[0], out[1], 1.0))
        image = renderer.rgb(model, data, camera, sites=False).astype(float)
        corners = [image[8, 8], image[8, -9], image[-9, 8], image[-9, -9]]
        strongest = [set(np.flatnonzero(c > 0.9 * c.max())) for c in corners]
        assert strongest == [{0}, {1}, {2}, {0, 1, 2}], f"wall {i}"
    renderer.close()


def probe_camera(**options: Any) -> CameraSpec:
    return CameraSpec(name="probe", fovy=math.radians(30), width=64, height=64, **options)


@pytest.mark.parametrize("word", [w for w in TEXTURES if w != "plain"])
def test_procedural_textures_are_grey_bright_and_seamless(word: str) -> None:
    image = pixels(word).astype(float)
    assert np.ptp(image, axis=2).max() == 0
    assert image.mean() > 120
    assert image.std() > 8
    inside = np.abs(np.diff(image, axis=0)).mean(), np.abs(np.diff(image, axis=1)).mean()
    across = np.abs(image[0] - image[-1]).mean(), np.abs(image[:, 0] - image[:, -1]).mean()
    edges = np.abs(np.diff(image, axis=0)).mean((1, 2)).max(), np.abs(np.diff(image, axis=1)).mean((0, 2)).max()
    for i in range(2):  # the seam is no sharper than the sharpest line inside
        assert across[i] <= max(edges[i], 3 * inside[i]) + 1


def test_large_images_are_reduced_and_grey_ones_become_rgb(tmp_path: Path) -> None:
    file = tmp_path / "large.png"
    image = np.zeros((700, 600, 3), np.uint8)
    image[:350] = (200, 100, 50)
    file.write_bytes(encode_png(image))
    small = pixels(str(file))
    assert small.shape == (350, 300, 3)
    assert small[0, 0].tolist() == [200, 100, 50]
    assert small[-1, 0].tolist() == [0, 0, 0]


def test_observations_show_each_row_as_it_looks() -> None:
    vision = Vision(renderer="rays")
    env = made(Looks.strong(), 3, observe="rgb", vision=vision)
    observation, _ = env.reset(seed=0)
    for _ in range(2):
        seen = observation["cameras"]["base_camera"]
        for row in range(3):
            assert seen["rgb"][row].numpy() == pytest.approx(picture(env, row, size=128), abs=1)
            view = view_of(*env.world.data(row), "base_camera")
            assert seen["T"][row].numpy() == pytest.approx(view.T, abs=1e-5)
            assert seen["K"][row].numpy() == pytest.approx(view.K, rel=1e-5)
        observation = env.step(hold(env))[0]
    env.close()


def test_the_field_of_view_of_a_camera_with_intrinsics_changes_by_its_focal_length() -> None:
    lens = CameraSpec(
        name="lens",
        pos=(0.5, 0.0, 0.5),
        target=(0.0, 0.0, 0.0),
        intrinsics=(120.0, 100.0, 70.0, 60.0),
        width=128,
        height=96,
    )
    look = CameraLook(fovy=Choice((0.1,)))
    env = made(Looks(cameras={"lens": look}), vision=Vision(cameras=(lens,)))
    env.reset(seed=0)
    K = view_of(*env.world.data(0), "lens").K
    fovy = 2 * math.atan(96 / 2 / 100)
    wider = 96 / 2 / math.tan((fovy + 0.1) / 2)
    assert pytest.approx(np.array([[1.2 * wider, 0, 70], [0, wider, 60], [0, 0, 1]]), rel=1e-4, abs=1e-3) == K


# ---- every task, every robot ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [t for t in task_ids() if not t.startswith("Painted")])
def test_presets_fit_every_task(task: str) -> None:
    env = manikin.make(task, num_envs=2, looks=Looks.strong())
    env.reset(seed=[0, max(1, len(task_class(task).layouts))])  # two rows of one layout
    env.step(hold(env))
    a, b = (fields(*env.part(row)) for row in range(2))
    assert differing(a, b) >= {"cam_pos", "cam_fovy", "light_dir", "geom_rgba"}
    env.close()


@pytest.mark.parametrize("task", ["PickCube-v2", "PickSingleYCB-v2"])
def test_a_scene_kept_on_disk_takes_the_same_looks(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = dataclasses.replace(EVERYTHING, surfaces={"robot": Surface(offset=Normal(0.0, 0.1))})
    here = manikin.make(task, num_envs=2, looks=looks)
    specs = []
    monkeypatch.setattr(
        "manikin.scene.builder.compiled", lambda spec, folders: (specs.append(spec), spec.copy().compile())[1]
    )
    kept = manikin.make(task, num_envs=2, looks=looks)  # as from disk: its own spec was not compiled
    assert {light.id for spec in specs for light in spec.lights} == {-1}
    for env in (here, kept):
        env.reset(seed=[3, 4])
        env.step(hold(env))
    assert all(not differing(fields(here, row), fields(kept, row)) for row in range(2))
    here.close()
    kept.close()


def test_menagerie_robots_take_colours_over_their_materials(menagerie_root: Path) -> None:
    env = manikin.make("PickCube-v2", num_envs=2, robot="panda:menagerie", looks=Looks.strong())
    env.reset(seed=0)
    model = env.scene.model
    seen = [
        i
        for i in range(model.ngeom)
        if model.body(model.geom_bodyid[i]).name.startswith("robot/") and model.geom_group[i] < 3
    ]
    rgba = env.world.model_field("geom_rgba")[:, seen]
    assert not (rgba == 0.5).all(-1).any()
    assert (rgba[0] != rgba[1]).any(-1).all()


# ---- what cannot be -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "says", "looks"),
    [
        (UnknownNameError, "base_camera", lambda: Looks(cameras={"base_kamera": CameraLook()})),
        (UnknownNameError, "unknown light 'sun'", lambda: Looks(lights={"sun": LightLook()})),
        (UnknownNameError, "Did you mean 'table'", lambda: Looks(surfaces={"tabel": Surface()})),
        (UnknownNameError, "checker", lambda: Looks(surfaces={"table": Surface(textures=("chequer",))})),
        (UnknownNameError, "episode, step", lambda: Looks(cameras=CameraLook(every="reset"))),
        (UnknownNameError, "sphere", lambda: Looks(distractors=Distractors(shapes=("ball",)))),
        (AssetError, "nowhere.png", lambda: Looks(background=Background(textures=("nowhere.png",)))),
        (ConfigError, "takes a number or 3", lambda: Looks(cameras=CameraLook(shift=Uniform((0.0, 0.0), (1.0, 1.0))))),
        (ConfigError, "takes a number, not", lambda: Looks(cameras=CameraLook(fovy=Choice(((0.1, 0.2),))))),
        (ConfigError, "must be a Uniform", lambda: Looks(lights=LightLook(intensity=1.2))),  # type: ignore[arg-type]
        (ConfigError, "is empty", lambda: Looks(ambient=Uniform(0.4, 0.2))),
        (ConfigError, "0 to 4", lambda: Looks(extra_lights=ExtraLights(count=9))),
        (ConfigError, "whole number", lambda: Looks(distractors=Distractors(count=Choice((1.5,))))),
        (ConfigError, "must be positive", lambda: Looks(distractors=Distractors(size=Normal(0.05, 0.1)))),
        (ConfigError, "low x, low y", lambda: Looks(distractors=Distractors(keep_out=((0.1, 0.0, 0.0, 0.1),)))),
        (ConfigError, "tuple of words", lambda: Looks(surfaces={"table": Surface(textures="wood")})),  # type: ignore[arg-type]
        (ConfigError, "takes a CameraLook", lambda: Looks(cameras=LightLook())),  # type: ignore[arg-type]
        (ConfigError, "looks must be a Looks", lambda: "strong"),
        (ConfigError, "does not describe a Looks", lambda: {"cameras": CameraLook()}),
    ],
)
def test_mistakes_are_named(error: type[ManikinError], says: str, looks: Callable[[], Any]) -> None:
    with pytest.raises(error, match=says):
        made(looks())


@pytest.mark.parametrize("content", [b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, b""])
def test_an_image_that_does_not_decode_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.png"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"broken\.png' does not decode"):
        made(Looks(surfaces={"table": Surface(textures=(str(file),))}))


def test_a_thing_that_need_not_be_there_may_be_missing() -> None:
    env = made(Looks(surfaces={"sofa": Surface(hue=Uniform(0.0, 1.0), required=False)}))
    plain = made(None)
    for one in (env, plain):
        one.reset(seed=0)
    assert env.world.varied == plain.world.varied


NAMED = Looks(
    cameras={"base_camera": (CameraLook(turn=Normal((0.0, 0.0, 0.0), 0.1, high=0.2)), CameraLook(every="step"))},
    lights={"0": LightLook(intensity=Choice((0.5, 1.0)))},
)


@pytest.mark.parametrize("looks", [Looks(), Looks.light(), Looks.strong(), EVERYTHING, NAMED])
def test_looks_can_be_written_down_and_read_again(looks: Looks) -> None:
    written = json.dumps(looks.describe(), allow_nan=False)
    assert Looks.of(json.loads(written)) == looks


def test_a_fingerprint_makes_the_same_looks_again() -> None:
    env = made(EVERYTHING, 2)
    fingerprint = json.loads(json.dumps(env.fingerprint()))
    again = made(fingerprint["looks"], 2)
    for one in (env, again):
        one.reset(seed=0)
        one.step(hold(one))
    assert differing(fields(env, 1), fields(again, 1)) == set()
    assert again.fingerprint() == env.fingerprint()
    assert made(None).fingerprint()["looks"] is None
