"""render/: geometry against formulas, shapes and textures against MuJoCo, the backends against each other."""

from __future__ import annotations

import dataclasses
import math
import sys

import mujoco
import numpy as np
import pytest

from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.render import extrinsics, intrinsics, make_renderer, tile, view_of, write_png, write_video
from manikin.render.api import choose
from manikin.render.backends import gl, solids
from manikin.spec.camera import CameraSpec, look_at

GLOW = "emission='1' specular='0'"
DARK = "<visual><headlight ambient='0 0 0' diffuse='0 0 0' specular='0 0 0'/></visual>"
FLAT = "<visual><headlight ambient='1 1 1' diffuse='0 0 0' specular='0 0 0'/></visual>"


def compiled(body, asset="", visual=FLAT):
    xml = f"<mujoco>{visual}<asset>{asset}</asset><worldbody>{body}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def opengl(**options):
    platform, why = gl.probe()
    if platform is None:
        pytest.skip(f"no OpenGL here: {why}")
    return make_renderer("gl", **options)


MAKERS = {"rays": lambda **options: make_renderer("rays", **options), "gl": opengl}


@pytest.fixture(params=["rays", "gl"])
def maker(request):
    """Makes renderers of one backend and closes them."""
    made = []

    def make(**options):
        made.append(MAKERS[request.param](**options))
        return made[-1]

    yield make
    for renderer in made:
        renderer.close()


def centroid(image, channel):
    """Pixel coordinates (x, y) of what is bright in one channel only."""
    weight = np.clip(
        -60 + image[..., channel].astype(float) - image[..., [c for c in range(3) if c != channel]].max(-1), 0, None
    )
    assert weight.sum() > 0
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    return np.array([(x * weight).sum(), (y * weight).sum()]) / weight.sum()


# ---- geometry ------------------------------------------------------------------------------------------------------


def test_intrinsics_of_a_square_angle():
    K = intrinsics(math.pi / 2, 200, 100)
    np.testing.assert_allclose(K, [[50, 0, 99.5], [0, 50, 49.5], [0, 0, 1]])


def test_views_of_named_cameras_and_specs_agree():
    spec = CameraSpec(name="c", pos=(0.6, 0.7, 0.6), target=(0, 0, 0.25), fovy=1.0, width=320, height=240)
    flip = look_at(spec.pos, spec.target) * [1, -1, -1]
    axes = " ".join(str(x) for x in flip[:, :2].T.ravel())
    camera = f"<camera name='c' pos='.6 .7 .6' xyaxes='{axes}' fovy='{math.degrees(1)}' resolution='320 240'/>"
    model, data = compiled(camera + "<geom size='.1'/>")
    for other in ("c", 0, view_of(model, data, spec)):
        view = view_of(model, data, other)
        assert (view.width, view.height) == (320, 240)
        np.testing.assert_allclose(view.T, view_of(model, data, spec).T, atol=1e-7)
        np.testing.assert_allclose(view.K, intrinsics(1.0, 320, 240), rtol=1e-6)
    np.testing.assert_allclose(extrinsics(model, data, "c")[:3, 3], spec.pos)
    np.testing.assert_allclose(view_of(model, data, spec).project(np.array(spec.target)), [159.5, 119.5], atol=1e-9)
    assert view_of(model, data, "c", 64, 48).K[0, 2] == 31.5


def test_rays_and_projection_are_inverse():
    model, data = compiled("<geom size='.1'/>")
    view = view_of(model, data, CameraSpec(name="c", pos=(1, 2, 3), target=(0, 0.1, 0.2), width=40, height=30))
    v, u = np.mgrid[:30, :40]
    np.testing.assert_allclose(view.project(view.pos + 2.5 * view.rays(u, v)), np.stack([u, v], -1), atol=1e-9)
    fine = view.enlarged(3)
    np.testing.assert_allclose(fine.rays(3 * u + 1, 3 * v + 1), view.rays(u, v), atol=1e-12)


def test_sensor_intrinsics_are_those_of_mujoco():
    camera = "<camera name='c' pos='0 -1 0' xyaxes='1 0 0 0 0 1' focal='.01 .012' sensorsize='.01 .008' principal='.001 .0005' resolution='64 48'/>"  # noqa: E501
    model, data = compiled(camera + "<geom size='.1'/>")
    scene, choice = mujoco.MjvScene(model, maxgeom=1), mujoco.MjvCamera()
    choice.type, choice.fixedcamid = int(mujoco.mjtCamera.mjCAMERA_FIXED), 0
    mujoco.mjv_updateCamera(model, data, choice, scene)
    eye = scene.camera[0]
    edges = (
        eye.frustum_center - eye.frustum_width,
        eye.frustum_center + eye.frustum_width,
        eye.frustum_bottom,
        eye.frustum_top,
    )
    np.testing.assert_allclose(view_of(model, data, "c").frustum(), np.array(edges) / eye.frustum_near, rtol=1e-5)


BALLS = {0: (0.1, 0.2, 0.5), 1: (-0.3, 0.1, 0.1), 2: (0.2, -0.25, 0.3)}
CAMERAS = {
    "plain": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.2 1 0 -.5 -.1 1' fovy='45'/>",
    "rolled": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.1 1 .4 -.5 -.2 .9' fovy='45'/>",
    "shifted": "<camera name='c' pos='1.2 .3 .9' xyaxes='-.2 1 0 -.5 -.1 1' focal='.01 .008' sensorsize='.01 .01' principal='.0008 -.0012'/>",  # noqa: E501
    "above": "<camera name='c' pos='.1 .1 1.6' fovy='60'/>",
    "spec": CameraSpec(name="c", pos=(0.8, 0.9, 0.7), target=(0, 0, 0.2), fovy=0.9),
    "spec above": CameraSpec(name="c", pos=(0.1, 0, 1.8), target=(0.1, 0, 0), fovy=0.9),
}


@pytest.mark.parametrize("size", [(256, 192), (101, 160)])
@pytest.mark.parametrize("which", CAMERAS)
def test_balls_appear_where_they_are_projected(maker, which, size):
    camera = CAMERAS[which]
    materials = "".join(
        f"<material name='m{i}' rgba='{' '.join('1' if i == j else '0' for j in range(3))} 1' {GLOW}/>" for i in BALLS
    )
    balls = "".join(f"<geom pos='{x} {y} {z}' size='.02' material='m{i}'/>" for i, (x, y, z) in BALLS.items())
    model, data = compiled(balls + (camera if isinstance(camera, str) else ""), materials, DARK)
    name = "c" if isinstance(camera, str) else camera
    view = view_of(model, data, name, *size)
    image = maker(samples=2).rgb(model, data, name, width=size[0], height=size[1])
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.uint8
    inside = 0
    for channel, place in BALLS.items():
        pixel = view.project(np.array(place))
        if (pixel > 8).all() and (pixel < np.array(size) - 9).all():
            inside += 1
            assert np.linalg.norm(centroid(image, channel) - pixel) < 0.5
    assert inside >= 2


def test_up_is_up_and_right_is_right(maker):
    model, data = compiled(
        "<camera name='c' pos='0 -2 0' xyaxes='1 0 0 0 0 1'/><geom pos='.3 0 0' size='.05' rgba='1 0 0 1'/>"
        "<geom pos='0 0 .3' size='.05' rgba='0 1 0 1'/>"
    )
    image = maker().rgb(model, data, "c", width=100, height=100)
    red, green = centroid(image, 0), centroid(image, 1)
    assert red[0] > green[0] + 10
    assert green[1] < red[1] - 10


# ---- light, colour, texture ----------------------------------------------------------------------------------------


def test_lambert_and_distance_by_formula(maker):
    visual = "<visual><headlight ambient='.1 .2 .3' diffuse='.2 .2 .2' specular='0 0 0'/></visual>"
    body = (
        "<camera name='c' pos='0 0 2'/><geom type='plane' size='.1 .1 .1' rgba='.8 .6 .4 1'/>"
        "<light type='directional' dir='1 0 -1' diffuse='.3 .4 .5' specular='0 0 0'/>"
        "<light type='point' pos='0 0 1' diffuse='.4 .4 .4' specular='0 0 0' attenuation='1 1 0'/>"
    )
    model, data = compiled(body, visual=visual)
    image = maker().rgb(model, data, "c", width=33, height=33)
    light = np.array([0.1, 0.2, 0.3]) + 0.2 + np.array([0.3, 0.4, 0.5]) * math.sqrt(0.5) + 0.4 / 2
    np.testing.assert_allclose(image[16, 16], np.array([0.8, 0.6, 0.4]) * light * 255, atol=2)


def test_spot_lights_end_at_their_cutoff():
    body = (
        "<camera name='c' pos='0 0 2'/><geom type='plane' size='5 5 .1' rgba='1 1 1 1'/>"
        "<light pos='0 0 1' dir='0 0 -1' cutoff='30' exponent='0' diffuse='1 1 1' specular='0 0 0'/>"
    )
    model, data = compiled(body, visual=DARK)
    view = view_of(model, data, "c", 65, 65)
    image = make_renderer("rays").rgb(model, data, view)
    for x, bright in ((0.5, True), (0.62, False)):
        u, v = view.project(np.array([x, 0.0, 0.0])).round().astype(int)
        assert (image[v, u, 0] > 100) == bright


@pytest.mark.parametrize("turn", [0.0, 0.5, 0.785])
def test_an_endless_floor_ends_where_pictures_end(maker, turn):
    """At znear to zfar of the model, counted along the camera's axis, in every corner of a wide picture."""
    visual = FLAT.replace("<visual>", "<statistic extent='2'/><visual><map zfar='10'/>")
    model, data = compiled("<geom type='plane' size='0 0 .1'/>", visual=visual)
    ahead = (math.cos(turn), math.sin(turn), 1.0)
    camera = CameraSpec(name="c", pos=(0, 0, 1), target=ahead, fovy=0.9, width=240, height=120)
    images = maker().images(model, data, camera, ("depth", "segmentation"))
    view = view_of(model, data, camera)
    down = (np.arange(120) - view.K[1, 2]) / view.K[1, 1]
    with np.errstate(divide="ignore"):
        depth = 1 / down  # of the floor 1 m below a level camera
    shown = (down > 0) & (depth < 20)
    sure = np.abs(depth - 20) > 2.5  # a row further up or down
    seen = images["segmentation"] == 1
    np.testing.assert_array_equal(seen[sure], np.broadcast_to(shown[sure, None], seen[sure].shape))
    assert seen.sum() > 5000


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_glass_shows_what_is_behind_it(maker, alpha):
    body = (
        "<camera name='c' pos='0 0 2' fovy='30'/><geom type='plane' size='5 5 .1' rgba='1 1 1 1'/>"
        f"<geom type='box' pos='-.2 0 .2' size='.1 .1 .1' rgba='1 0 0 {alpha}'/>"
        f"<site type='sphere' pos='.2 0 .2' size='.1' rgba='0 1 0 {alpha}'/>"
    )
    model, data = compiled(body)
    groups = model.geom_group.copy()
    image = maker().rgb(model, data, "c", width=100, height=100).astype(int)
    through = 255 * (1 - alpha) ** 2  # front and back
    np.testing.assert_allclose(image[50, 30], [255, through, through], atol=2)
    np.testing.assert_allclose(image[50, 69], [through, 255, through], atol=2)
    assert (model.geom_group == groups).all()


def test_materials_and_groups(maker):
    body = (
        "<camera name='c' pos='0 0 3' fovy='40'/>"
        "<geom pos='-.6 0 0' size='.2' material='m'/><geom pos='0 0 0' size='.2' material='m' rgba='0 0 1 1'/>"
        "<geom pos='.6 0 0' size='.2' group='3'/><site pos='0 .6 0' size='.1' group='4'/>"
    )
    model, data = compiled(body, "<material name='m' rgba='1 0 0 1' specular='0'/>")
    image = maker().rgb(model, data, "c", width=101, height=101)
    view = view_of(model, data, "c", 101, 101)
    at = lambda *p: image[tuple(view.project(np.array(p)).round().astype(int)[::-1])]  # noqa: E731
    np.testing.assert_allclose(at(-0.6, 0, 0), [255, 0, 0], atol=1)
    np.testing.assert_allclose(at(0, 0, 0), [0, 0, 255], atol=1)
    background = at(0.3, 0, 0)
    np.testing.assert_allclose(at(0.6, 0, 0).astype(int), background, atol=3)
    np.testing.assert_allclose(at(0, 0.6, 0).astype(int), background, atol=3)


@pytest.mark.parametrize("size", ["0 0 .1", "2 1.5 .1"])
@pytest.mark.parametrize("uniform", ["true", "false"])
@pytest.mark.parametrize("repeat", ["1 1", "3 2"])
def test_plane_textures_lie_as_opengl_lays_them(size, uniform, repeat):
    asset = (
        "<texture name='t' type='2d' builtin='checker' rgb1='1 0 0' rgb2='0 0 1' width='64' height='64'/>"
        f"<material name='m' texture='t' texrepeat='{repeat}' texuniform='{uniform}' {GLOW}/>"
    )
    body = f"<camera name='c' pos='.7 .3 4' fovy='40'/><geom type='plane' size='{size}' material='m' euler='0 0 20'/>"
    model, data = compiled(body, asset, DARK)
    # Four colours instead of two tell a texture from its mirror image.
    texels = model.tex_data.reshape(64, 64, 3)
    texels[:32, 32:, 1] = 255
    assert_alike(model, data, "c", 40, 0.9)


def test_other_textures_count_with_their_mean():
    asset = (
        "<texture name='t' type='2d' builtin='checker' rgb1='1 0 0' rgb2='0 0 1' width='64' height='64'/>"
        f"<material name='m' texture='t' {GLOW}/>"
    )
    model, data = compiled("<camera name='c' pos='0 0 3'/><geom type='box' size='.5 .5 .5' material='m'/>", asset, DARK)
    image = make_renderer("rays").rgb(model, data, "c", width=33, height=33)
    np.testing.assert_allclose(image[16, 16], [127.5, 0, 127.5], atol=1.5)


def assert_alike(model, data, camera, tolerance, share, **options):
    """The two backends give nearly the same picture."""
    images = []
    for make in (MAKERS["gl"], MAKERS["rays"]):
        renderer = make(**options)
        images.append(renderer.rgb(model, data, camera, width=256, height=192).astype(int))
        renderer.close()
    same = np.abs(images[0] - images[1]).max(-1) <= tolerance
    assert same.mean() > share


SCENE = """
<light pos='.6 .8 1.8' dir='-.35 -.45 -.82' diffuse='.6 .6 .6'/>
<geom type='plane' size='0 0 .1' pos='0 0 -.5' rgba='.5 .55 .6 1'/>
<geom type='box' size='.5 .6 .25' pos='0 0 -.25' rgba='.66 .55 .44 1'/>
<geom type='box' size='.04 .04 .04' pos='0 .1 .04' rgba='.9 .1 .1 1' euler='0 0 20'/>
<geom type='sphere' size='.05' pos='-.1 -.15 .05' rgba='.9 .7 .1 1'/>
<geom type='cylinder' size='.04 .06' pos='.15 -.1 .06' rgba='.1 .5 .9 1'/>
<geom type='capsule' size='.03 .06' pos='.2 .2 .03' euler='90 30 0' rgba='.2 .7 .3 1'/>
<geom type='ellipsoid' size='.06 .04 .03' pos='-.2 .2 .03' rgba='.7 .2 .7 1'/>
<geom type='mesh' mesh='wedge' pos='.3 -.3 0' rgba='.1 .8 .8 1'/>
<site type='sphere' size='.03' pos='0 .1 .2' rgba='0 1 0 .5'/>
<site type='cylinder' size='.08 .001' pos='.3 0 .002' rgba='1 .5 0 1'/>
<site type='box' size='.02 .03 .04' pos='-.2 0 .1' euler='30 20 10' rgba='0 0 1 1'/>
<site type='capsule' size='.015 .04' pos='.1 .35 .1' euler='30 20 10' rgba='1 0 1 1'/>
<site type='ellipsoid' size='.015 .03 .04' pos='.3 .35 .05' euler='30 20 10' rgba='1 1 0 1'/>
"""
WEDGE = "<mesh name='wedge' vertex='0 0 0  .1 0 0  0 .1 0  0 0 .1'/>"
LOOK = CameraSpec(name="c", pos=(0.9, 0.6, 0.7), target=(0, 0, 0), fovy=0.8)


def test_backends_show_the_same_things():
    """Each geom and site in a flat colour of its own: a segmentation."""
    model, data = compiled(SCENE, WEDGE)
    rng = np.random.default_rng(0)
    model.geom_rgba[:, :3], model.site_rgba[:, :3] = rng.random((model.ngeom, 3)), rng.random((model.nsite, 3))
    model.light_active[:] = 0
    assert_alike(model, data, LOOK, 3, 0.99)


@pytest.mark.parametrize("options", [{}, {"samples": 2}])
def test_backends_light_alike(options):
    model, data = compiled(SCENE, WEDGE, "<visual><headlight ambient='.3 .3 .3' diffuse='.3 .3 .3'/></visual>")
    assert_alike(model, data, LOOK, 20, 0.98, **options)


def test_shadows_fall_where_the_light_is_blocked(maker):
    body = (
        "<camera name='c' pos='0 0 3' fovy='50'/><geom type='plane' size='3 3 .1'/>"
        "<geom type='box' size='.1 .1 .1' pos='.5 0 .5'/><site size='.1' pos='-.5 0 .5'/>"
        "<light pos='0 0 2' dir='0 0 -1' cutoff='80' exponent='0' diffuse='.8 .8 .8' specular='0 0 0'/>"
    )
    visual = "<visual><headlight ambient='.2 .2 .2' diffuse='0 0 0' specular='0 0 0'/></visual>"
    model, data = compiled(body, visual=visual)
    view = view_of(model, data, "c", 200, 200)
    shade, lit, marker = (view.project(np.array([x, 0.0, 0.0])).round().astype(int) for x in (0.8, 0.95, -0.78))
    for shadows in (False, True):
        image = maker(shadows=shadows).rgb(model, data, view).astype(int)[..., 0]
        assert (image[shade[1], shade[0]] < image[lit[1], lit[0]] - 40) == shadows
        assert image[marker[1], marker[0]] > image[lit[1], lit[0]] - 20


def test_more_samples_smooth_edges_and_leave_the_rest(maker):
    model, data = compiled("<camera name='c' pos='0 0 2'/><geom size='.5' rgba='1 0 0 1'/>", visual=FLAT)
    coarse, fine = (maker(samples=s).rgb(model, data, "c", width=64, height=64).astype(int) for s in (1, 3))
    assert len(np.unique(coarse[32, :, 1])) < len(np.unique(fine[32, :, 1])) or (fine != coarse).any()
    inner = np.s_[24:40, 24:40]
    np.testing.assert_allclose(coarse[inner], fine[inner], atol=1)
    green = fine[..., 1]
    edge = (green > 30) & (green < 200)
    assert 10 < edge.sum() < 300


def test_sites_can_be_left_out(maker):
    model, data = compiled(
        "<camera name='c' pos='0 0 2'/><site size='.3' rgba='0 1 0 1'/><geom size='.01' pos='9 9 9'/>"
    )
    renderer = maker()
    with_site, without = (renderer.rgb(model, data, "c", width=50, height=50, sites=s)[25, 25] for s in (True, False))
    assert with_site[1] > 200
    assert with_site[0] < 50
    assert without.min() > 100


def test_rows_with_other_sizes_colours_and_planes_are_drawn_as_they_are():
    """Prepared meshes are shared between models; what differs must still show."""
    shared, xml = (
        opengl(),
        "<camera name='c' pos='0 0 4'/><geom type='plane' size='{} 1 .1' material='m'/><geom size='.1'/>",
    )
    asset = (
        "<texture name='t' type='2d' builtin='checker' rgb1='1 0 0' rgb2='0 0 1' width='64' height='64'/>"
        "<material name='m' texture='t' texrepeat='3 3'/>"
    )
    model, data = compiled(xml.format(2), asset)
    red = mujoco.MjModel.from_xml_string(
        f"<mujoco>{FLAT}<asset>{asset}</asset><worldbody>{xml.format(2)}</worldbody></mujoco>"
    )
    red.geom_size[1], red.geom_rgba[1] = 0.4, (1, 0, 0, 1)
    for m, d in ((model, data), (red, data), compiled(xml.format(1), asset), (model, data)):
        mujoco.mj_forward(m, d)
        alone = opengl()
        np.testing.assert_array_equal(shared.rgb(m, d, "c"), alone.rgb(m, d, "c"))
        alone.close()
    assert len(shared.drawers_made) == 2
    shared.close()


# ---- shapes of sites against MuJoCo's own rays ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sphere", "ellipsoid", "box", "cylinder", "capsule"])
def test_solids_are_hit_where_mujoco_hits_geoms(kind):
    size = np.array([0.3, 0.2, 0.5])
    model, data = compiled(f"<geom type='{kind}' size='{' '.join(map(str, size))}'/>")
    number = int(model.geom_type[0])
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(40):
        origin = rng.normal(size=3)
        origin *= 1.2 / np.linalg.norm(origin)
        rays = rng.normal(size=(50, 3)) * 0.4 - origin
        rays[0], rays[1] = (0, 0, -1), (1, 0, 0)  # along the axes
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        distance, normal = solids.hit(number, model.geom_size[0], origin, rays)
        for i, ray in enumerate(rays):
            geom, want = np.zeros(1, np.int32), np.zeros(3)
            length = mujoco.mj_ray(model, data, origin, ray, None, True, -1, geom, want)
            if length < 0:
                assert distance[i] == np.inf
            else:
                hits += 1
                assert distance[i] == pytest.approx(length, abs=1e-9)
                np.testing.assert_allclose(normal[i], want, atol=1e-6)
                assert (
                    np.linalg.norm(origin + length * ray) <= solids.bounding_radius(number, model.geom_size[0]) + 1e-9
                )
    assert hits > 300


# ---- errors --------------------------------------------------------------------------------------------------------


def test_unknown_names_list_what_there_is():
    model, data = compiled("<camera name='front'/><camera name='side'/><geom size='.1'/>")
    renderer = make_renderer("rays")
    with pytest.raises(UnknownNameError, match=r"'frnot'.*Did you mean 'front'.*front, side"):
        renderer.rgb(model, data, "frnot")
    for number in (2, -1):
        with pytest.raises(UnknownNameError, match="0, 1"):
            renderer.rgb(model, data, number)
    with pytest.raises(UnknownNameError, match="auto, filament, gl, rays, warp"):
        make_renderer("vulkan")


def test_what_cannot_work_is_refused():
    model, data = compiled("<camera name='c'/><camera name='o' projection='orthographic'/><geom size='.1'/>")
    with pytest.raises(ConfigError, match="samples"):
        make_renderer("rays", samples=0)
    renderer = make_renderer("rays")
    with pytest.raises(ConfigError, match="0 x 5"):
        renderer.rgb(model, data, "c", width=0, height=5)
    with pytest.raises(ConfigError, match="orthographic"):
        renderer.rgb(model, data, "o")


def test_a_closed_renderer_says_so(maker):
    model, data = compiled("<camera name='c'/><geom size='.1'/>")
    renderer = maker()
    renderer.close()
    renderer.close()
    with pytest.raises(ConfigError, match="closed"):
        renderer.rgb(model, data, "c")


def test_without_opengl_others_take_over(monkeypatch):
    warp = pytest.importorskip("manikin.render.backends.warp")
    monkeypatch.setenv("MUJOCO_GL", "off")
    gl.probe.cache_clear()
    try:
        with pytest.raises(ConfigError, match=r"MUJOCO_GL=off.*apt install libegl1.*backend='rays' needs no library"):
            make_renderer("gl")
        monkeypatch.setattr(warp, "probe", lambda: "")
        assert choose()[0] == "warp"
        monkeypatch.setattr(warp, "probe", lambda: "warp not installed")
        assert choose() == ("rays", "gl: MUJOCO_GL=off; warp: warp not installed")
        assert make_renderer().name == "rays"
    finally:
        gl.probe.cache_clear()


def test_small_pictures_go_to_warp_where_opengl_draws_with_the_processor(monkeypatch):
    warp = pytest.importorskip("manikin.render.backends.warp")
    monkeypatch.setattr(gl, "probe", lambda: ("egl", ""))
    monkeypatch.setattr(warp, "probe", lambda: "")
    all_three = ("rgb", "depth", "segmentation")
    for driver, small in (("llvmpipe (LLVM 19.1.7, 256 bits)", "warp"), ("NVIDIA H200/PCIe/SSE2", "gl")):
        monkeypatch.setattr(gl, "drivers", {"egl": driver})
        assert choose(("rgb",), pixels=32 * 32)[0] == small
        assert choose(("rgb", "depth"), pixels=32 * 32 + 1)[0] == "gl"
        assert choose(all_three, pixels=48 * 48)[0] == small
        assert choose(all_three, pixels=48 * 48 + 1)[0] == "gl"
        assert choose(all_three)[0] == "gl"  # for any size
        assert choose(("normals",), pixels=1)[0] == "rays"
    monkeypatch.setattr(gl, "drivers", {"egl": "llvmpipe"})
    monkeypatch.setattr(warp, "probe", lambda: "warp not installed")
    assert choose(("rgb",), pixels=1) == ("gl", "")


@pytest.mark.parametrize("middle", [(49.5, 39.5), (15, 70), (90, -20), (49.5, 75)])
def test_what_is_out_of_view_is_left_out_and_changes_no_pixel(middle, monkeypatch):
    """Wherever the lens has its principal point; its focal length shows as much as 0.6 rad of a centred one."""
    renderer = opengl()
    balls = "".join(f"<geom size='.1' pos='{x} {y} 0'/>" for x in range(-2, 3) for y in range(-2, 3))
    model, data = compiled(balls + "<geom type='plane' size='0 0 1' pos='0 0 -.2'/>")
    camera = CameraSpec(name="c", pos=(0.0, -1.2, 0.4), target=(0.0, 0.0, 0.0), width=100, height=80)
    camera = dataclasses.replace(camera, intrinsics=(129.3, 129.3, *middle))
    view = view_of(model, data, camera)
    hidden = gl.out_of_view(model, data, view)
    assert 10 < len(hidden) < 25 and 25 not in hidden  # never the plane
    culled = renderer.images(model, data, camera, ("rgb", "depth", "segmentation"))
    assert (model.geom_group == 0).all()
    assert not set(np.unique(culled["segmentation"]) - 1) & set(hidden)
    monkeypatch.setattr(gl, "out_of_view", lambda *_: gl.SHOW_ALL)
    whole = renderer.images(model, data, camera, ("rgb", "depth", "segmentation"))
    for word, image in culled.items():
        np.testing.assert_array_equal(image, whole[word])
    renderer.close()


def test_a_platform_that_is_not_there_is_reported(monkeypatch):
    monkeypatch.setattr(gl, "PLATFORMS", {})
    monkeypatch.setattr(gl, "TRIAL", "import os; os.abort()")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    gl.probe.cache_clear()
    try:
        platform, why = gl.probe()
        assert platform is None
        assert "glfw" in why
    finally:
        gl.probe.cache_clear()


# ---- files ---------------------------------------------------------------------------------------------------------


def picture(height, width, shift=0):
    y, x = np.mgrid[:height, :width]
    return np.stack([(x * 5 + shift) % 256, y * 3 % 256, (x + y) % 256], -1).astype(np.uint8)


def test_png_reads_back_exactly(tmp_path):
    av = pytest.importorskip("av")
    image = picture(37, 53)
    path = write_png(tmp_path / "deep" / "a.png", image)
    with av.open(str(path)) as container:
        np.testing.assert_array_equal(next(container.decode(video=0)).to_ndarray(format="rgb24"), image)
    with pytest.raises(ConfigError, match="float64"):
        write_png(tmp_path / "b.png", np.zeros((4, 4, 3)))


@pytest.mark.parametrize("fps", [20, 12.5])
def test_video_reads_back(tmp_path, fps):
    av = pytest.importorskip("av")
    frames = [np.full((47, 63, 3), 20 * i, np.uint8) for i in range(10)]
    path = write_video(tmp_path / "new" / "a.mp4", iter(frames), fps)
    assert [p.name for p in path.parent.iterdir()] == ["a.mp4"]
    with av.open(str(path)) as container:
        assert float(container.streams.video[0].average_rate) == pytest.approx(fps)
        back = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]
    assert len(back) == 10
    assert back[0].shape == (48, 64, 3)
    for i, frame in enumerate(back):
        assert abs(frame.astype(int) - 20 * i).max() < 12


def test_the_same_frames_make_the_same_video(tmp_path):
    pytest.importorskip("av")
    frames = [np.roll(picture(92, 96), 3 * i, axis=1) for i in range(61)]
    files, held = set(), []
    for i in range(40):  # while memory is used, so that the encoder meets other memory each time
        held = [*held[-9:], np.full(7_919 * (i % 11 + 1), i, np.uint8)]
        files.add(write_video(tmp_path / "a.mp4", frames, 20).read_bytes())
    assert len(files) == 1


def test_bad_videos_are_refused_and_leave_nothing(tmp_path):
    pytest.importorskip("av")
    for frames, fps, words in (
        ([], 20, "at least one frame"),
        ([picture(8, 8), picture(8, 10)], 20, "frame 1 is 10 x 8, the first 8 x 8"),
        ([picture(8, 8)], 0, "fps"),
        ([np.zeros((8, 8))], 20, "uint8"),
    ):
        with pytest.raises(ConfigError, match=words):
            write_video(tmp_path / "a.mp4", frames, fps)
    with pytest.raises(UnknownNameError, match=r"kind of video '.gif'.*\.mp4"):
        write_video(tmp_path / "a.gif", [picture(8, 8)], 20)
    with pytest.raises(UnknownNameError, match="kind of video 'film'"):
        write_video(tmp_path / "film", [picture(8, 8)], 20)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DataError, match=r"cannot write .*a\.mp4"):
        write_video(tmp_path / "file" / "a.mp4", [picture(8, 8)], 20)


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
def test_a_full_disk_leaves_no_film(tmp_path):
    pytest.importorskip("av")
    import resource
    import signal

    noise = np.random.Generator(np.random.Philox(0)).integers(0, 255, (30, 64, 64, 3), np.uint8)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        with pytest.raises(DataError, match=r"cannot write .*a\.mp4"):
            write_video(tmp_path / "a.mp4", noise, 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())


def test_without_pyav_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ConfigError, match=r"pip install 'manikin\[data\]'"):
        write_video(tmp_path / "a.mp4", [picture(8, 8)], 20)


def test_tile():
    images = [np.full((4, 6, 3), i, np.uint8) for i in range(5)]
    sheet = tile(images, 3, gap=1)
    assert sheet.shape == (9, 20, 3)
    assert (sheet[5:, 7:13] == 4).all()
    assert (sheet[4] == 255).all()
    assert (sheet[5:, 14:] == 255).all()
    assert tile(images).shape == (10, 22, 3)
    for bad in ([], [picture(4, 4), picture(4, 5)]):
        with pytest.raises(ConfigError, match="one size"):
            tile(bad)
    with pytest.raises(ConfigError, match="column"):
        tile(images, 0)
