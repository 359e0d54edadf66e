"""Shapes of kits: convex parts that add up, recesses that leave the clearance, and grips on both sides."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest

from manikin.errors import UnknownNameError
from manikin.props.insertion.kit import HEIGHT, SHAPES, TILE, KitShape, kit_shape, piece, recess
from manikin.props.insertion.outlines import area, best_grip, centred, convex_parts, grown
from manikin.scene.candidates import add_geom
from manikin.spec.prop import Prop, Shape

SQUARE = [(-TILE, -TILE), (TILE, -TILE), (TILE, TILE), (-TILE, TILE)]


def _inside(points: np.ndarray, outline: np.ndarray) -> np.ndarray:
    """(n,) bool by counting how often a ray to the right crosses the outline."""
    x, y = points[:, :1], points[:, 1:]
    a, b = outline, np.roll(outline, -1, 0)
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        at = a[:, 0] + (y - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0])
    return (crosses & (x < at)).sum(1) % 2 == 1


def _grid(step: float = 0.0011) -> np.ndarray:
    ticks = np.arange(-TILE + 4e-4, TILE, step)
    return np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)


def _turned(outline: np.ndarray, angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return outline @ np.array([[c, s], [-s, c]])


@pytest.mark.parametrize("name", SHAPES)
def test_parts_are_convex_cover_everything_once_and_know_in_from_out(name: str) -> None:
    outline = kit_shape(name).outline
    inside, outside = convex_parts(outline, SQUARE)
    points = _grid()
    truth = _inside(points, np.array(outline))
    for parts, wanted in ((inside, truth), (outside, ~truth)):
        counts = sum(_inside(points, np.array(part)).astype(int) for part in parts)
        assert (counts == wanted).mean() > 0.9995  # points on an edge may fall on either side
        for part in map(np.array, parts):
            ways = np.roll(part, -1, 0) - part
            after = np.roll(ways, -1, 0)
            assert (ways[:, 0] * after[:, 1] - ways[:, 1] * after[:, 0] > -1e-10).all()
    assert sum(map(area, inside)) == pytest.approx(area(outline), rel=1e-3)
    assert sum(map(area, outside)) == pytest.approx(4 * TILE**2 - area(outline), rel=1e-3)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_looks_the_same_as_often_as_it_says(name: str) -> None:
    shape = kit_shape(name)
    outline, points = np.array(shape.outline), _grid()
    inside = _inside(points, outline)

    def alike(angle: float) -> float:
        return (_inside(points, _turned(outline, angle)) == inside).mean()

    orders = [n for n in range(2, 17) if alike(2 * math.pi / n) > 0.9985]
    assert max(orders, default=1) == (shape.order or 16)  # a disc has 16 sides
    assert shape.period == (2 * math.pi / shape.order if shape.order else 0.0)


@pytest.mark.parametrize("name", SHAPES)
def test_the_recess_leaves_the_clearance_and_no_more_along_every_side(name: str) -> None:
    shape = kit_shape(name)
    solid = [np.array(s.mesh.points).reshape(-1, 3) if s.mesh else _corners(s) for s in recess(name, 0.001).shapes]
    hulls = [_hull(points[np.isclose(points[:, 2], 0.0)][:, :2]) for points in solid]
    out = np.array(shape.outline)
    ahead = np.roll(out, -1, 0) - out
    normal = np.stack([ahead[:, 1], -ahead[:, 0]], 1) / np.linalg.norm(ahead, axis=1, keepdims=True)
    middle = out + ahead / 2
    more = 0.0 if shape.order else 28e-3 * (1 - math.cos(math.pi / 16))  # a disc's corners need room to turn
    for distance, hit in ((0.0009 + more, False), (0.0011 + more, True)):
        points = middle + distance * normal
        assert (sum(_inside(points, hull).astype(int) for hull in hulls) > 0).tolist() == [hit] * len(points)


def _corners(shape: Shape) -> np.ndarray:
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return np.array(shape.pos) + signs * np.array(shape.size)


def _hull(points: np.ndarray) -> np.ndarray:
    """Corners of a convex part in order about its middle."""
    middle = points.mean(0)
    return points[np.argsort(np.arctan2(*(points - middle).T[::-1]))]


@pytest.mark.parametrize("name", SHAPES)
def test_pieces_weigh_their_volume_about_their_middle(name: str) -> None:
    model = _compiled(piece(name))
    volume = area(kit_shape(name).outline) * HEIGHT
    assert model.body_mass[1] == pytest.approx(1000 * volume, rel=2e-3)
    assert model.body_ipos[1] == pytest.approx([0, 0, HEIGHT / 2], abs=5e-5)


def _compiled(prop: Prop) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="prop")
    for k, shape in enumerate(prop.shapes):
        add_geom(spec, body, shape, name=f"{k}")
    return spec.compile()


@pytest.mark.parametrize("name", SHAPES)
def test_both_jaws_meet_the_piece_where_it_is_narrow_enough(name: str) -> None:
    """Of the piece's stretch between the jaws both ends are as far from the grip; there is room for jaws outside it."""
    shape = kit_shape(name)
    (x, y), angle = shape.grip
    close, along = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
    reach, across = np.linspace(-0.075, 0.075, 1501), np.linspace(-0.0114, 0.0114, 77)
    points = np.array([x, y]) + reach[:, None, None] * close + across[None, :, None] * along
    met = _inside(points.reshape(-1, 2), np.array(shape.outline)).reshape(1501, 77).any(1)
    ends = reach[met][[0, -1]]
    assert ends[1] - ends[0] < 0.07
    assert abs(ends.sum()) < 5e-4
    assert math.hypot(x, y) < 0.015  # near the middle of the piece, which hangs level then


def test_known_grips() -> None:
    (x, y), angle = best_grip(centred([(0, 0), (0.06, 0), (0.06, 0.02), (0, 0.02)]), 0.05)
    assert (abs(x) < 1e-9, abs(y) < 1e-9, angle) == (True, True, pytest.approx(math.pi / 2, abs=1e-5))
    with pytest.raises(ValueError, match=r"nowhere narrower than 0\.01"):
        best_grip([(0, 0), (0.06, 0), (0.06, 0.02), (0, 0.02)], 0.01)


def test_a_square_grows_on_every_side() -> None:
    assert np.array(grown([(0, 0), (2, 0), (2, 1), (0, 1)], 0.5)) == pytest.approx(
        np.array([(-0.5, -0.5), (2.5, -0.5), (2.5, 1.5), (-0.5, 1.5)])
    )


def test_there_are_at_least_twenty_shapes_and_a_wrong_name_lists_them() -> None:
    assert len(SHAPES) >= 20 and len({kit_shape(name).rgba for name in SHAPES}) == len(SHAPES)
    assert all(isinstance(kit_shape(name), KitShape) for name in SHAPES)
    with pytest.raises(UnknownNameError, match="diamond, disc, ellipse"):
        kit_shape("teapot")
