"""A texture taken from a photograph whose colours are known at every point of the surface."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.assets.meshes import read_mesh
from manikin.assets.paths import data_root
from manikin.assets.pictures import read_picture
from manikin.errors import ConfigError, DataError
from manikin.render import make_renderer, view_of
from manikin.render.texture import atlas, match_texture, rough_camera, scene_of, unproject
from manikin.spec.camera import CameraSpec
from script import script

TRUE = CameraSpec(name="c", pos=(0.22, 0.1, 0.12), target=(0.0, 0.0, 0.005), fovy=0.5, width=160, height=120)


def pear():
    """A smooth shape without symmetry, 10 cm long: vertices, faces, texture coordinates of longitude and height."""
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(-1, 1, 17))
    width = np.sqrt(np.clip(1 - up**2, 0, None)) * (0.035 - 0.012 * up)
    width = width * (1 + 0.25 * np.cos(around))
    points = np.stack([width * np.cos(around) + 0.008 * up**2, 0.7 * width * np.sin(around), 0.05 * up], -1)
    number = np.arange(points[..., 0].size).reshape(up.shape)
    a, b, c, d = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    faces = np.concatenate([np.stack([a, b, c], -1)[1:].reshape(-1, 3), np.stack([a, c, d], -1)[:-1].reshape(-1, 3)])
    uv = np.stack([around / (2 * np.pi), (up + 1) / 2], -1)
    return points.reshape(-1, 3), faces, uv.reshape(-1, 2)


def colour(points):
    """Of a point of the surface [m]: smooth stripes of about 3 cm."""
    x, y, z = np.moveaxis(points, -1, 0)
    waves = [np.sin(200 * x + 60 * z), np.cos(180 * y - 80 * x), np.sin(150 * z)]
    return 127 + 100 * np.stack(waves, -1)


@pytest.fixture(scope="module")
def photographed():
    vertices, faces, uv = pear()
    model = scene_of(vertices, faces)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    renderer = make_renderer("rays", outputs=("depth", "segmentation"))
    images = renderer.images(model, data, TRUE, ("depth", "segmentation"))
    view = view_of(model, data, TRUE)
    x, y = np.meshgrid(np.arange(160.0), np.arange(120.0))
    rays = view.rays(x, y)
    points = view.pos + rays * (images["depth"] / (rays @ view.rotation[:, 2]))[..., None]
    mask = images["segmentation"] > 0
    photograph = np.where(mask[..., None], np.rint(colour(points)), 40).astype(np.uint8)
    renderer.close()
    quick = make_renderer("auto", outputs=("depth", "segmentation"))  # the photograph is by another where this is gl
    yield vertices, faces, uv, photograph, mask, quick
    quick.close()


def of_texels(vertices, faces, corners, size):
    """The middle of each triangle (m, 3), and its texel (m, 2): row, column."""
    middle = vertices[faces].mean(1)
    u, v = corners.mean(1).T
    return middle, np.stack([np.floor((1 - v) * size), np.floor(u * size)], 1).astype(int)


@pytest.mark.parametrize("own", [True, False])
def test_seen_texels_have_the_colours_of_their_points(photographed, own):
    """From a pose 2 cm and 5 degrees off; reference: the formula at the middles of the triangles."""
    vertices, faces, uv, photograph, mask, renderer = photographed
    start = CameraSpec(name="c", pos=(0.235, 0.09, 0.115), target=(0.01, -0.012, 0.0), fovy=0.5)
    found = match_texture(
        vertices, faces, photograph, mask, start, texcoord=uv if own else None, size=256, renderer=renderer
    )
    assert found.agreement > 0.97
    assert np.linalg.norm(np.subtract(found.camera.pos, TRUE.pos)) < 0.01
    middle, (row, column) = (lambda m, t: (m, t.T))(*of_texels(vertices, faces, found.uv, 256))
    seen = found.texture.seen[row, column]
    assert 0.25 < seen.mean() < 0.6  # a camera sees less than half of a round thing
    error = np.abs(found.texture.image[row, column][seen] - colour(middle[seen]))
    assert error.mean() < 4  # of 255, where the stripes span 200
    # faces that look away are not seen
    normal = np.cross(*(vertices[faces][:, [1, 2]] - vertices[faces][:, :1]).transpose(1, 0, 2))
    away = (normal * (middle - TRUE.pos)).sum(1) > 0.02 * np.linalg.norm(normal, axis=1)
    assert not seen[away].any() and away.mean() > 0.3


def test_unseen_texels_get_a_colour_of_the_seen(photographed):
    vertices, faces, uv, photograph, mask, renderer = photographed
    made = {
        fill: match_texture(vertices, faces, photograph, mask, TRUE, texcoord=uv, fill=fill, renderer=renderer).texture
        for fill in ("nearest", "mean")
    }
    mean = made["mean"]
    unseen = mean.used & ~mean.seen
    assert unseen.any() and len(np.unique(mean.image[unseen], axis=0)) == 1
    assert np.abs(mean.image[unseen][0] - mean.image[mean.seen].mean(0)).max() < 1
    near = made["nearest"].image[unseen]
    known = {tuple(c) for c in made["nearest"].image[mean.seen]}
    assert len(np.unique(near, axis=0)) > 20 and {tuple(c) for c in near} <= known


def test_an_atlas_gives_every_triangle_its_own_place():
    uv = atlas(7)
    assert uv.shape == (7, 3, 2) and uv.min() > 0 and uv.max() < 1
    e, f = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    assert (e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0] > 0.01).all()
    weights = np.random.default_rng(0).dirichlet((1, 1, 1), (7, 200))
    points = (weights[..., None] * uv[:, None]).sum(2)
    gap = np.linalg.norm(points[:, None, :, None] - points[None, :, None], axis=-1).min((2, 3))
    assert gap[~np.eye(7, dtype=bool)].min() > 0.01


def test_a_rough_camera_looks_at_the_mask(photographed):
    vertices, faces, _, photograph, mask, renderer = photographed
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(TRUE.rotation.T).flatten())
    rough = rough_camera(vertices, mask, TRUE, tuple(quat))
    assert np.linalg.norm(np.subtract(rough.pos, TRUE.pos)) < 0.04
    assert match_texture(vertices, faces, photograph, mask, rough, renderer=renderer).agreement > 0.97


def test_what_cannot_work_is_named(photographed):
    vertices, faces, uv, photograph, mask, renderer = photographed
    with pytest.raises(DataError, match="the mask has 80 x 60 pixels"):
        match_texture(vertices, faces, photograph, mask[::2, ::2], TRUE, renderer=renderer)
    with pytest.raises(ConfigError, match="nearest or mean"):
        match_texture(vertices, faces, photograph, mask, TRUE, fill="white", renderer=renderer)
    model = scene_of(vertices, faces)
    view, behind = view_of(model, mujoco.MjData(model), TRUE), np.full(mask.shape, 0.1)  # something is in front of it
    with pytest.raises(DataError, match="no texel of the mesh is seen"):
        unproject(vertices[faces], uv[faces], view, photograph, mask, behind)


CAN = [  # the outline of the can in a photograph of 320 x 256 pixels, marked by hand
    *((32, 113), (34, 109.5), (40, 105.5), (48, 103.8), (55, 103.8), (60, 106.5), (63, 108.5), (66.5, 115)),
    *((67, 118), (70, 122), (73, 129), (76, 136), (78.5, 143), (78.5, 148), (75, 153), (69, 156.5)),
    *((63, 159.5), (57, 158.5), (52, 156), (47, 151), (41, 145), (37.5, 139), (35.5, 133), (32.5, 127), (32, 121)),
]


def inside(outline: list[tuple[float, float]], height: int, width: int) -> np.ndarray:
    """(height, width) bool: pixels whose middle a polygon surrounds, by the crossings of a ray."""
    y, x = np.mgrid[:height, :width] + 0.5
    found = np.zeros((height, width), bool)
    for (x0, y0), (x1, y1) in zip(outline, [*outline[1:], outline[0]], strict=True):
        if y0 != y1:
            found ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return found


def test_a_can_in_a_real_photograph_gets_its_texture() -> None:
    """SIMPLER's can, whose mesh is given, standing on the counter. Its head's camera looks 45 degrees down."""
    data = data_root()
    folder = None if data is None else data / "simpler"
    if folder is None or not (folder / "real_inpainting" / "move_near_real_obj_variants").is_dir():
        pytest.skip("needs MANIKIN_DATA/simpler with real_inpainting/move_near_real_obj_variants and custom/models")
    example = script("match_texture", "examples")
    photograph = read_picture(folder / "real_inpainting/move_near_real_obj_variants/move_near_real_3_2.png")[..., :3]
    read, mask = read_mesh(folder / "custom/models/opened_coke_can/visual_v0.obj"), inside(CAN, *photograph.shape[:2])
    upright = (np.cos(np.radians(67.5)), -np.sin(np.radians(67.5)), 0.0, 0.0)
    args = (read.vertices, read.faces, photograph, mask, np.radians(62.1256), [upright], read.texcoord)
    found = example.matched(*args)
    assert found.agreement > 0.93 and 0.2 < found.texture.seen.sum() / found.texture.used.sum() < 0.5
    checked = example.check(read.vertices, read.faces, photograph, found)
    pasted = checked[:, photograph.shape[1] + 2 : 2 * photograph.shape[1] + 2].astype(float)
    assert np.abs(pasted - photograph)[mask].mean() < 12  # of 255: the can is in its place with its own colours
    red = (found.texture.image[..., 0] > 2 * found.texture.image[..., 2].astype(int)) & found.texture.seen
    assert red.sum() > 0.3 * found.texture.seen.sum()
