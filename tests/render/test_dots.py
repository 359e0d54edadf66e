"""Dots: every renderer shows them where they are, and nothing else changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manikin.errors import SceneError
from manikin.render import CameraRig, make_renderer
from manikin.render.backends import warp as tracer
from manikin.render.view import view_of
from manikin.scene.builder import SceneBuilder
from manikin.sim import make_world
from manikin.spec.camera import CameraSpec
from manikin.spec.physics import Physics
from manikin.spec.prop import Shape

TOP, RADIUS, INK = 0.02, 0.03, (0.2, 0.4, 0.9, 1.0)
CAMERA = CameraSpec(name="above", pos=(0.25, -0.1, 0.5), target=(0, 0, 0), fovy=0.8, width=160, height=120)
PLACES = ((0.0, 0.0), (0.1, 0.05), (0.04, 0.02), (-0.12, 0.03))  # the first and the third overlap
NOISE = 3  # of 255: Filament dithers, never twice alike
BACKENDS = ("gl", "warp", "rays", "filament")


def world_with(n: int = 1, device: str = "cpu", box: bool = False):
    """A white plate with a group of five dots and, if wanted, a box over the first one."""
    b = SceneBuilder([], Physics())
    b.fixture("plate", Shape(type="box", size=(0.3, 0.3, TOP / 2), pos=(0, 0, TOP / 2), rgba=(1, 1, 1, 1)))
    if box:
        b.fixture("box", Shape(type="box", size=(0.05, 0.05, 0.03), pos=(0, 0, TOP + 0.03), rgba=(0.8, 0.8, 0.1, 1)))
    b.part("thing", [Shape(type="sphere", size=(0.01,))], pos=(0, 0, 2))
    b.camera(CAMERA)
    dots = b.dots("ink", count=5, radius=RADIUS, height=0.002, rgba=INK)
    world = make_world(b.compile(), n, device=device)
    b.bind(world)
    return world, dots


def show(dots, n: int = 1) -> None:
    flat = torch.tensor([*PLACES, (0.0, 0.2)])
    places = torch.cat([flat, torch.full((5, 1), TOP)], 1).expand(n, 5, 3)
    dots.set_places(places, torch.tensor([True] * 4 + [False]).expand(n, 5))


def expected(view) -> np.ndarray:
    """(h, w) [m] from where each pixel's ray meets the plate's top to the middle of the nearest dot."""
    v, u = np.mgrid[: view.height, : view.width].astype(float)
    rays = view.rays(u, v)
    point = view.pos + rays * ((TOP - view.pos[2]) / rays[..., 2])[..., None]
    return np.min([np.hypot(point[..., 0] - x, point[..., 1] - y) for x, y in PLACES], 0)


def renderer(word: str, **options):
    try:
        return make_renderer(word, **options)
    except Exception as error:
        pytest.skip(f"{word}: {error}")


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("word", BACKENDS)
def test_every_renderer_shows_dots_where_they_are(word: str, samples: int) -> None:
    world, dots = world_with()
    drawing = renderer(word, samples=samples, outputs=("rgb", "depth", "segmentation"))
    outputs = ("rgb", "depth", "segmentation")
    model, data = world.data(0)
    blank = drawing.images(model, data, "above", outputs)
    show(dots)
    model, data = world.data(0)
    seen = drawing.images(model, data, "above", outputs)
    away = expected(view_of(model, data, "above"))
    inside, outside = away < 0.9 * RADIUS, away > 1.1 * RADIUS
    assert inside.sum() > 500
    left = seen["rgb"].astype(float) / np.maximum(blank["rgb"], 1)
    np.testing.assert_allclose(left[inside], np.broadcast_to(INK[:3], (inside.sum(), 3)), atol=0.02)
    assert (np.abs(seen["rgb"].astype(int) - blank["rgb"])[outside] <= NOISE).all()
    for output in ("depth", "segmentation"):
        np.testing.assert_array_equal(seen[output], blank[output])
    drawing.close()


@pytest.mark.parametrize("word", BACKENDS)
def test_a_thing_on_top_hides_dots(word: str) -> None:
    world, dots = world_with(box=True)
    drawing = renderer(word, outputs=("rgb", "depth", "segmentation"))
    blank = drawing.images(*world.data(0), "above", ("rgb", "depth", "segmentation"))
    show(dots)
    seen = drawing.rgb(*world.data(0), "above", sites=False)
    box = blank["segmentation"] == 1 + world.scene.model.geom("box").id
    assert box.sum() > 300
    changed = (np.abs(seen.astype(int) - blank["rgb"]) > NOISE).any(2)
    view = view_of(*world.data(0), "above")
    v, u = np.mgrid[: view.height, : view.width].astype(float)
    rays = view.rays(u, v)
    high = view.pos[2] + rays[..., 2] * blank["depth"] / (rays @ view.rotation[:, 2])
    on_box = changed[box & (high > TOP + 0.004)]  # at its foot the box touches them
    assert on_box.mean() < 0.02 if word == "filament" else not on_box.any()  # whose edges are never twice alike
    assert changed[(expected(view) < 0.9 * RADIUS) & ~box].all()
    drawing.close()


def test_rows_have_dots_of_their_own_and_a_picture_is_drawn_anew_when_they_change() -> None:
    world, dots = world_with(3)
    rig = CameraRig(world, [CAMERA], backend="rays")
    blank = rig.render()["above"]["rgb"]
    dots.scope.rows = np.array([1])
    show(dots)
    dots.scope.rows = None
    seen = rig.render()["above"]["rgb"]
    assert torch.equal(seen[[0, 2]], blank[[0, 2]]) and not torch.equal(seen[1], blank[1])
    dots.hide(torch.ones(3, 5, dtype=torch.bool))
    assert torch.equal(rig.render()["above"]["rgb"], blank)
    rig.close()


@pytest.mark.skipif(bool(tracer.probe()), reason=tracer.probe())
@pytest.mark.parametrize("samples", [1, 2])
def test_a_world_on_warp_shows_them_as_rays_do(samples: int) -> None:
    world, dots = world_with(2, "warp:cpu")
    dots.scope.rows = np.array([1])
    show(dots)
    dots.scope.rows = None
    traced = CameraRig(world, [CAMERA], ("rgb", "depth"), samples=samples)
    rays = CameraRig(world, [CAMERA], ("rgb", "depth"), backend="rays")
    seen, other = (rig.render()["above"]["rgb"].float() for rig in (traced, rays))
    assert traced.backend.startswith("warp")
    away = torch.from_numpy(expected(view_of(*world.data(0), "above")))
    inside = away < 0.9 * RADIUS
    share = seen[1][inside] / seen[0][inside]
    torch.testing.assert_close(share, torch.tensor(INK[:3]).expand_as(share), atol=0.02, rtol=0)
    assert torch.equal(seen[1][away > 1.1 * RADIUS], seen[0][away > 1.1 * RADIUS])
    assert (seen - other).abs().mean() < 3
    traced.close(), rays.close()


def test_edges_are_smooth_and_the_covered_area_is_that_of_circles() -> None:
    world, dots = world_with()
    camera = CameraSpec(name="down", pos=(0, 0, 0.5), quat=(0, 1, 0, 0), fovy=0.6, width=200, height=200)
    drawing = renderer("rays")
    blank = drawing.rgb(*world.data(0), camera)[..., 0].astype(float)
    places = torch.tensor([[[0.07, 0.01, TOP], [-0.06, -0.05, TOP], *[[0.0, 0.0, 0.0]] * 3]])
    dots.set_places(places, torch.tensor([[True, True, False, False, False]]))
    seen = drawing.rgb(*world.data(0), camera)[..., 0].astype(float)
    share = (1 - seen / blank) / (1 - INK[0])
    pixel = 2 * math.tan(0.3) * (0.5 - TOP) / 200  # [m]
    assert share.sum() * pixel**2 == pytest.approx(2 * math.pi * RADIUS**2, rel=0.02)
    assert ((share > 0.1) & (share < 0.9)).sum() > 20
    drawing.close()


def test_a_camera_in_the_midst_of_dots_sees_those_ahead() -> None:
    world, dots = world_with()
    show(dots)
    low = CameraSpec(name="low", pos=(-0.25, 0.03, TOP + 0.02), target=(0, 0.03, TOP), fovy=1.2, width=64, height=48)
    for word in ("rays", "gl"):
        drawing = renderer(word)
        image = drawing.rgb(*world.data(0), low).astype(float)
        assert (image[..., 0] < 0.4 * image[..., 2]).sum() > 10
        drawing.close()


@pytest.mark.parametrize(
    "wrong", [{"count": 0}, {"radius": 0.0}, {"height": -1.0}, {"rgba": (0.1, 0.2, 3.0, 1.0)}], ids=str
)
def test_impossible_dots_are_refused_by_name(wrong) -> None:
    b = SceneBuilder([], Physics())
    with pytest.raises(SceneError, match="dots 'ink'"):
        b.dots("ink", **{"count": 3, "radius": 0.01, "height": 0.01, "rgba": (0, 0, 0, 1), **wrong})
