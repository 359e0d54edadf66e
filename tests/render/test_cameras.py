"""Cameras of scenes: where things appear, what depth and segmentation say, many rows at once, lighter meshes."""

from __future__ import annotations

import dataclasses
import itertools
import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.assets.decimate import decimate
from manikin.env.observe import Vision
from manikin.errors import ClosedError, ConfigError, DataError, DivergedError, SceneError, UnknownNameError
from manikin.render import CameraRig, SegmentationTable, make_renderer, view_of
from manikin.render.backends import gl
from manikin.render.backends.meshes import lighter
from manikin.render.backends.rays import RayRenderer
from manikin.robots import robot as robot_named
from manikin.scene.builder import SceneBuilder
from manikin.sim.cpu import CpuWorld
from manikin.spec.camera import CameraSpec
from manikin.spec.physics import Physics
from manikin.spec.prop import Shape
from manikin.spec.scene import model_hash

BACKENDS = ("gl", "rays")
ALL = ("rgb", "depth", "segmentation")
BALLS = {"red": (0.1, 0.2, 0.5), "green": (-0.25, 0.1, 0.1), "blue": (0.15, -0.2, 0.3)}
FRONT = CameraSpec(name="front", pos=(1.2, 0.3, 0.9), target=(0, 0, 0.25), fovy=0.9, width=160, height=120)


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "gl":
        needs_gl()
    return request.param


def needs_gl():
    platform, why = gl.probe()
    if platform is None:
        pytest.skip(f"no OpenGL here: {why}")


def scene(cameras=(), parts=(), *, robot=None, rows=1, mount=None):
    """A world and its builder: cameras, and functions that declare parts."""
    b = SceneBuilder([robot_named(robot)] if robot else [], Physics())
    handle = b.robot() if robot else None
    for part in parts:
        part(b)
    for camera in cameras:
        b.camera(camera, on=handle if mount else None, link=mount)
    world = CpuWorld(b.compile(), rows)
    b.bind(world)
    return world, b


def balls(b):
    for name, pos in BALLS.items():
        b.sphere(name, radius=0.02, pos=pos, kind="fixed", rgba=(*(float(name == n) for n in BALLS), 1))


def cloud(images, i=0):
    """World coordinates (h, w, 3) of a picture's pixels, by the documented convention alone."""
    depth, K, T = (images[k][i].double().numpy() for k in ("depth", "K", "T"))
    v, u = np.mgrid[: depth.shape[0], : depth.shape[1]]
    points = np.stack([(u - K[0, 2]) / K[0, 0], (v - K[1, 2]) / K[1, 1], np.ones_like(depth)], -1) * depth[..., None]
    return points @ T[:3, :3].T + T[:3, 3]


def project(images, point, i=0):
    K, T = (images[k][i].double().numpy() for k in ("K", "T"))
    x, y, z = K @ (np.linalg.inv(T) @ (*point, 1))[:3]
    return np.array([x / z, y / z])


# ---- where things appear -------------------------------------------------------------------------------------------

LENSES = {
    "wide": dataclasses.replace(FRONT, width=320, height=120),
    "tall": dataclasses.replace(FRONT, width=120, height=320, fovy=1.1),
    "off-centre": dataclasses.replace(FRONT, intrinsics=(150.0, 170.0, 52.5, 88.25)),
    "off-centre, tall": dataclasses.replace(FRONT, width=120, height=240, intrinsics=(190.0, 150.0, 75.0, 60.5)),
    "quaternion": CameraSpec(name="front", pos=(0, 0, 1.5), quat=(0, 1, 0, 0), fovy=0.8, width=200, height=150),
}


@pytest.mark.parametrize("lens", LENSES)
def test_known_points_appear_where_they_are_projected(backend, lens):
    camera = LENSES[lens]
    world, _ = scene([camera], [balls])
    rig = CameraRig(world, [camera], ("segmentation",), backend=backend)
    images = rig.render()["front"]
    seen = images["segmentation"][0].numpy()
    assert seen.shape == (camera.height, camera.width)
    found = 0
    for name, centre in BALLS.items():
        pixel = project(images, centre)
        if (pixel < 8).any() or (pixel > np.array([camera.width, camera.height]) - 9).any():
            continue
        y, x = np.nonzero(seen == rig.table.ids(thing=name)[0])
        assert np.linalg.norm(np.array([x.mean(), y.mean()]) - pixel) < 0.5
        found += 1
    assert found >= 2
    if camera.intrinsics:
        fx, fy, cx, cy = camera.intrinsics
        np.testing.assert_allclose(images["K"][0], [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], rtol=1e-5)
    rig.close()


def test_the_compiled_camera_is_the_declared_one():
    for camera in LENSES.values():
        world, _ = scene([camera], [balls])
        model, data = world.data(0)
        named, declared = view_of(model, data, "front"), view_of(model, data, camera)
        np.testing.assert_allclose(named.K, declared.K, atol=1e-4)
        np.testing.assert_allclose(named.T, declared.T, atol=1e-6)
        np.testing.assert_allclose(view_of(model, data, "front", 64, 64).K, camera.K(64, 64), atol=1e-4)


def box(b):
    b.part(
        "box",
        [Shape(type="box", size=(0.1, 0.06, 0.04))],
        kind="fixed",
        pos=(0.05, 0.02, 0.3),
        quat=(0.9, 0.1, 0.2, 0.3),
    )


def to_box(points, model, data):
    """Distance (n,) of points to the surface of the box."""
    local = (points - data.geom_xpos[0]) @ data.geom_xmat[0].reshape(3, 3)
    q = np.abs(local) - model.geom_size[0]
    return np.abs(np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0))


def test_clouds_of_a_box_lie_on_it_from_every_side(backend):
    cameras = [
        dataclasses.replace(FRONT, name="a"),
        CameraSpec(
            name="b", pos=(-0.5, 0.4, 0.1), target=(0, 0, 0.3), width=150, height=200, intrinsics=(160, 150, 80, 90)
        ),
        CameraSpec(name="c", pos=(0.05, 0, 1.2), target=(0.05, 0, 0), fovy=0.5),
    ]
    world, _ = scene(cameras, [box])
    rig = CameraRig(world, cameras, ("depth", "segmentation"), backend=backend)
    model, data = world.data(0)
    for images in rig.render().values():
        on = images["segmentation"][0].numpy() == 1
        assert on.sum() > 200
        assert to_box(cloud(images)[on], model, data).max() < 1e-3
        assert (images["depth"][0].numpy()[~on] == 0).all()
    rig.close()


def test_normals_point_out_of_what_is_seen():
    world, _ = scene([FRONT], [balls])
    rig = CameraRig(world, [FRONT], ("depth", "normals", "segmentation"))
    assert rig.backend == "rays"  # the others give none
    images = rig.render()["front"]
    normals = images["normals"][0].numpy()
    for i, centre in enumerate(BALLS.values()):
        on = images["segmentation"][0].numpy() == i + 1
        np.testing.assert_allclose(normals[on], (cloud(images)[on] - centre) / 0.02, atol=1e-3)
    assert (normals[images["segmentation"][0].numpy() == 0] == 0).all()


def test_cameras_see_out_of_what_they_are_inside(backend):
    inside = CameraSpec(name="inside", pos=(0.05, 0.02, 0.3), target=(0.1, 0.2, 0.5), fovy=1.0, width=64, height=64)
    world, _ = scene([inside], [box, balls])
    bare, _ = scene([inside], [balls])
    seen, alone = (
        CameraRig(w, [inside], ("depth",), backend=backend).render()["inside"]["depth"] for w in (world, bare)
    )
    assert (alone > 0).any()
    np.testing.assert_allclose(seen, alone, atol=1e-4)


# ---- backends agree ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ["panda", "panda:menagerie"])
def test_backends_agree_on_pick_cube(robot, request, record_property):
    needs_gl()
    if "menagerie" in robot:
        request.getfixturevalue("menagerie_root")
    env = manikin.make("PickCube-v2", robot=robot)
    env.reset(seed=3)
    camera = dataclasses.replace(env.camera("base_camera"), width=160, height=160)
    rigs = [CameraRig(env.world, [camera], ALL, backend=word) for word in BACKENDS]
    a, b = ({k: v[0].numpy() for k, v in rig.render()["base_camera"].items()} for rig in rigs)
    assert (a["segmentation"] == b["segmentation"]).mean() >= 0.999
    assert len(np.unique(a["segmentation"])) > 10
    assert np.percentile(np.abs(a["depth"] - b["depth"]), 95) < 1e-3
    difference = np.abs(a["rgb"].astype(int) - b["rgb"]).mean()
    record_property("rgb_mean_difference", float(difference))
    assert difference < 6
    for rig in rigs:
        rig.close()
    env.close()


@pytest.mark.parametrize(
    ("size", "lens"),
    [
        ((160, 160), (120.0, 130.0, 20.0, 140.0)),
        ((320, 240), (308.6, 308.4, 130.0, 181.0)),
        ((120, 160), (150.0, 150.0, 90.0, 130.0)),
        ((160, 120), (375.0, 375.0, 79.5, 59.5)),
    ],
)
def test_backends_agree_with_any_lens(size, lens):
    """Principal points aside or beyond the picture, long lenses, and the horizon in view."""
    needs_gl()
    env = manikin.make("PickCube-v2")
    env.reset(seed=3)
    width, height = size
    looks = {"robot": ((0.6, 0.7, 0.6), (0, 0, 0.35)), "behind": ((-0.3, -1.1, 0.9), (-0.3, 0, 0.2))}
    cameras = [
        CameraSpec(name=name, pos=pos, target=target, width=width, height=height, intrinsics=lens)
        for name, (pos, target) in looks.items()
    ]
    rigs = [CameraRig(env.world, cameras, ("segmentation",), backend=word) for word in BACKENDS]
    a, b = (rig.render() for rig in rigs)
    for camera in cameras:
        ours, theirs = (images[camera.name]["segmentation"] for images in (a, b))
        assert (ours == theirs).float().mean() >= 0.999, camera.name
        assert len(np.unique(ours)) > 5, camera.name
    for rig in rigs:
        rig.close()
    env.close()


def test_markers_are_for_human_eyes(backend):
    env = manikin.make("PickCube-v2")
    env.reset(seed=0)
    rig = CameraRig(env.world, [env.camera("base_camera")], ("rgb",), backend=backend)
    model, data = env.world.data(0)
    renderer = make_renderer(backend)
    policy = rig.render()["base_camera"]["rgb"][0].numpy()
    human = renderer.rgb(model, data, "base_camera")
    green = (human[..., 1].astype(int) - human[..., [0, 2]].max(-1) > 40).sum()
    assert green > 10
    assert (policy[..., 1].astype(int) - policy[..., [0, 2]].max(-1) > 40).sum() == 0
    np.testing.assert_array_equal(policy, renderer.images(model, data, "base_camera")["rgb"])
    for made in (renderer, rig):
        made.close()
    env.close()


# ---- moving cameras, many rows -------------------------------------------------------------------------------------


def test_a_wrist_camera_shows_the_hand_of_the_same_step():
    env = manikin.make("PickCube-v2", num_envs=2)
    env.reset(seed=0)
    hand = CameraSpec(name="wrist", on="robot/hand", pos=(0.05, -0.02, 0.04), quat=(0.5**0.5, 0, 0, 0.5**0.5))
    rig = CameraRig(env.world, [hand], ("rgb", "segmentation"), threads=2)
    action, poses = torch.ones(2, env.single_action_space.shape[0]), []
    for _ in range(3):
        env.step(action)
        seen = rig.render()["wrist"]
        for row in range(2):
            _, data = env.world.data(row)
            at = data.body("robot/hand")
            frame = at.xmat.reshape(3, 3)
            np.testing.assert_allclose(seen["T"][row, :3, 3], at.xpos + frame @ hand.pos, atol=1e-6)
            np.testing.assert_allclose(seen["T"][row, :3, 2], frame[:, 2], atol=1e-6)
            bodies = np.array(rig.table.bodies)[np.unique(seen["segmentation"][row])]
            assert "robot/left_finger" in bodies
        poses.append(seen["T"][:, :3, 3].clone())
    assert all((a != b).any() for a, b in itertools.pairwise(poses))
    rig.close()
    env.close()


@pytest.mark.parametrize("word", ["panda", "ur5e", "xarm7", "so101", "ur5e+panda_hand"])
def test_robots_bring_a_hand_camera_that_sees_the_fingers(word):
    b = SceneBuilder([robot_named(word)], Physics())
    robot = b.robot()
    (camera,) = b.robot_cameras(robot)
    assert camera.name == "hand_camera"
    world = CpuWorld(b.compile(), 1)
    b.bind(world)
    robot.set_qpos(robot.keyframe())
    rig = CameraRig(world, [camera], ("segmentation", "depth"), backend="rays")
    seen = rig.render()["hand_camera"]
    names = {rig.table.bodies[int(i)].removeprefix("robot/") for i in np.unique(seen["segmentation"][0])}
    assert names & set(robot.model.finger_bodies)
    share = float(np.isin(seen["segmentation"][0], rig.table.ids(kind="robot")).mean())
    assert 0.01 < share < 0.6  # the gripper is in the picture and does not fill it
    rig.close()


def test_pictures_depend_neither_on_threads_nor_on_the_batch(backend):
    env = manikin.make("PickCube-v2", num_envs=5)
    env.reset(seed=1)
    cameras = [
        dataclasses.replace(env.camera("base_camera"), width=64, height=48),
        dataclasses.replace(FRONT, width=40),
    ]
    rig = CameraRig(env.world, cameras, ALL, backend=backend, threads=1)
    whole = rig.render()
    rig.close()
    for threads in (1, 2, 3):
        rig = CameraRig(env.world, cameras, ALL, backend=backend, threads=threads)
        assert rig.threads == threads
        # the first two have no row in common, so that both are drawn
        for rows in (np.array([3, 0]), np.array([False, True, False, False, True]), None):
            index = torch.arange(5) if rows is None else torch.from_numpy(rows)
            for name, part in rig.render(rows).items():
                for word, value in part.items():
                    assert torch.equal(value, whole[name][word][index]), (threads, name, word)
        rig.close()
    kept = whole["front"]["rgb"].clone()
    assert not torch.equal(whole["base_camera"]["rgb"][0], whole["base_camera"]["rgb"][1])
    env.reset(seed=9)
    assert torch.equal(kept, whole["front"]["rgb"])  # owned by the receiver
    env.close()


def test_rows_have_their_own_cameras_and_looks(backend):
    lens = dataclasses.replace(FRONT, name="lens", intrinsics=(150.0, 170.0, 52.5, 88.25))
    world, _ = scene([FRONT, lens], [balls, box], rows=3)
    n = world.scene.model.ngeom
    cam_pos = np.repeat(world.scene.model.cam_pos[None], 3, 0)
    cam_pos[1, :, 0] += 0.1
    intrinsic = np.repeat(world.scene.model.cam_intrinsic[None], 3, 0)
    intrinsic[2, 1, 0] *= 1.2
    colour = np.tile(world.scene.model.geom_rgba[None], (3, 1, 1))
    colour[2, 1] = (1, 1, 0, 1)
    world.set_model(
        {
            "cam_pos": cam_pos,
            "cam_fovy": np.array([[50.0, 45.0], [60.0, 45.0], [40.0, 45.0]]),
            "cam_intrinsic": intrinsic,
            "geom_rgba": colour,
        }
    )
    world.set_model(
        {("geom_size", (n - 1,)): np.array([[[0.1, 0.06, 0.04]], [[0.05, 0.05, 0.05]], [[0.1, 0.1, 0.02]]])}
    )
    world.forward()
    rig, renderer = CameraRig(world, [FRONT, lens], ALL, backend=backend, threads=2), make_renderer(backend)
    images = rig.render()
    for row in range(3):
        model, data = world.data(row)
        for camera in ("front", "lens"):
            expected = renderer.images(model, data, camera, ALL)
            for word in ALL:
                np.testing.assert_array_equal(images[camera][word][row], expected[word])
            np.testing.assert_allclose(images[camera]["K"][row], view_of(model, data, camera).K, rtol=1e-6)
    assert len({images["front"]["K"][i, 0, 0].item() for i in range(3)}) == 3
    assert images["lens"]["K"][2, 0, 0] == pytest.approx(180, rel=1e-5)
    for made in (rig, renderer):
        made.close()


def test_a_camera_on_a_part_goes_with_it():
    b = SceneBuilder([], Physics(gravity=(0, 0, 0)))
    part = b.box("block", half_size=(0.02, 0.02, 0.02), pos=(0, 0, 1))
    camera = b.camera(CameraSpec(name="eye", pos=(0, 0, 0.1), target=(1, 0, 0.1)), on=part)
    assert camera.on == "block"
    world = CpuWorld(b.compile(), 1)
    b.bind(world)
    rig = CameraRig(world, [camera], ("depth",), backend="rays")
    np.testing.assert_allclose(rig.render()["eye"]["T"][0, :3, 3], (0, 0, 1.1), atol=1e-6)
    part.set_pose((0.5, 0.2, 0.3), (0.5**0.5, 0, 0, 0.5**0.5))
    pose = rig.render()["eye"]["T"][0]
    np.testing.assert_allclose(pose[:3, 3], (0.5, 0.2, 0.4), atol=1e-6)
    np.testing.assert_allclose(pose[:3, 2], (0, 1, 0), atol=1e-6)


# ---- names ---------------------------------------------------------------------------------------------------------


def test_the_table_names_what_numbers_stand_for():
    env = manikin.make("PickCube-v2")
    table = SegmentationTable.of(env.world.scene.model)
    assert table.kinds[0] == "background" and len(table.geoms) == env.world.scene.model.ngeom + 1
    (cube,) = table.ids(thing="cube")
    assert table.kinds[cube] == "part" and table.bodies[cube] == "cube"
    assert set(np.array(table.bodies)[table.ids(kind="robot")]) >= {"robot/link0", "robot/hand", "robot/left_finger"}
    assert {table.things[i] for i in table.ids(kind="robot")} == {"robot"}
    assert "table" in {table.things[i] for i in table.ids(kind="fixture")}
    lookup, names = table.by_thing()
    assert names[lookup[cube]] == "cube" and names[lookup[0]] == "background" and len(names) < len(table.geoms)
    lookup, names = table.by_body()
    assert names[lookup[table.ids(body="robot/hand")[0]]] == "robot/hand"
    with pytest.raises(UnknownNameError, match="cube"):
        table.ids(thing="cub")
    env.close()


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": None}, "target.*quat"),
        ({"quat": (1, 0, 0, 0)}, "target.*quat"),
        ({"target": FRONT.pos}, "target and pos are the same point"),
        ({"target": None, "quat": (0, 0, 0, 0)}, "zero"),
        ({"fovy": math.pi}, "fovy"),
        ({"pos": (0, 0, float("nan"))}, "finite"),
        ({"intrinsics": (0, 1, 1, 1)}, "focal"),
        ({"width": 0}, "pixels"),
        ({"height": 100_000}, "8192"),
    ],
)
def test_cameras_that_cannot_be_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(FRONT, **change)


def test_wrong_names_list_the_right_ones():
    world, b = scene([FRONT], [balls])
    with pytest.raises(SceneError, match="front"):
        b.camera(FRONT)
    assert b.camera(dataclasses.replace(FRONT, width=32), replace=True).width == 32
    with pytest.raises(UnknownNameError, match=r"'dept'.*Did you mean 'depth'"):
        CameraRig(world, [FRONT], ("dept",))
    if gl.probe()[0]:
        with pytest.raises(UnknownNameError, match=r"output of renderer 'gl.*depth, rgb, segmentation"):
            CameraRig(world, [FRONT], ("normals",), backend="gl")
    with pytest.raises(UnknownNameError, match="renderer 'vulkan'"):
        CameraRig(world, [FRONT], backend="vulkan")
    with pytest.raises(UnknownNameError, match=r"mount of camera 'x' 'rde'.*red"):
        CameraRig(world, [dataclasses.replace(FRONT, name="x", on="rde")], backend="rays")
    with pytest.raises(UnknownNameError, match="mount of camera 'front' 'hand'"):
        scene([dataclasses.replace(FRONT, on="hand")], [balls])
    for cameras in ([], [FRONT, FRONT]):
        with pytest.raises(ConfigError, match="different names"):
            CameraRig(world, cameras)
    with pytest.raises(ConfigError, match="threads"):
        CameraRig(world, [FRONT], threads=-1)


def test_states_that_cannot_be_drawn_are_named():
    b = SceneBuilder([], Physics())
    b.box("block", half_size=(0.02, 0.02, 0.02))
    b.camera(FRONT)
    world = CpuWorld(b.compile(), 3)
    rig = CameraRig(world, [FRONT], backend="rays")
    qpos = world.read("qpos").clone()
    qpos[1, 0] = float("nan")
    world.write("qpos", qpos)
    with pytest.raises(DivergedError, match=r"rows \[1\]"):
        rig.render()
    assert rig.render(np.array([0, 2]))["front"]["rgb"].shape == (2, 120, 160, 3)
    with pytest.raises(UnknownNameError, match=r"0\.\.2"):
        rig.render(np.array([3]))
    model, data = world.data(0)
    data.cam_xpos[:] = np.nan
    with pytest.raises(ConfigError, match="camera 'front' has a pose that is not finite"):
        make_renderer("rays").images(model, data, "front")
    rig.close()
    rig.close()
    with pytest.raises(ClosedError):
        rig.render()


def _movable(rows):
    """A block that can be moved, before the camera."""
    b = SceneBuilder([], Physics())
    b.box("block", half_size=(0.05, 0.04, 0.03))
    b.camera(FRONT)
    world = CpuWorld(b.compile(), rows)
    world.forward()
    return world


def test_a_row_is_drawn_again_where_it_moved_or_looks_otherwise_and_only_there(monkeypatch):
    world, drawn = _movable(4), []
    images = RayRenderer.images
    monkeypatch.setattr(RayRenderer, "images", lambda self, *given: drawn.append(1) or images(self, *given))
    rig = CameraRig(world, [FRONT], backend="rays")

    def again():
        """Pictures, which are those of a rig that has drawn nothing before, and how many were drawn."""
        drawn.clear()
        found, count = rig.render()["front"], len(drawn)
        other = CameraRig(world, [FRONT], backend="rays")
        fresh = other.render()["front"]
        other.close()
        assert all(torch.equal(found[word], fresh[word]) for word in fresh)
        return found["rgb"], count

    first, count = again()
    assert count == 4 and again()[1] == 0
    qpos = world.read("qpos").clone()
    qpos[2, 0] += 0.05
    world.write("qpos", qpos)
    world.forward()
    moved, count = again()
    assert count == 1 and not torch.equal(moved[2], first[2]) and torch.equal(moved[[0, 1, 3]], first[[0, 1, 3]])
    moved.zero_()  # owned by the receiver
    colour = np.tile(world.scene.model.geom_rgba[None], (4, 1, 1))
    world.set_model({"geom_rgba": colour})  # from here on rows may differ in it
    assert again()[1] == 4
    colour[1, :, :3] = (1, 1, 0)
    world.set_model({"geom_rgba": colour})
    assert again()[1] == 1
    drawn.clear()
    rig.render(np.array([3, 1]))
    assert not drawn
    rig.close()


def test_a_failing_thread_reports_and_the_rig_goes_on():
    world = _movable(4)
    rig = CameraRig(world, [FRONT], backend="rays", threads=2)
    broken, good = rig.workers[1].renderer, rig.render()
    rig.workers[1].made[0] = None
    qpos = world.read("qpos").clone()

    def moved(step):
        world.write("qpos", qpos + 1e-3 * (step + 1))
        return rig.render()

    with pytest.raises(AttributeError):
        _ = [moved(step) for step in range(20)]  # one thread may take all jobs of a call
    rig.workers[1].made[0] = broken
    world.write("qpos", qpos)
    assert torch.equal(rig.render()["front"]["rgb"], good["front"]["rgb"])
    rig.close()


# ---- lighter meshes ------------------------------------------------------------------------------------------------


def grid(n, height):
    """Vertices, faces and texture coordinates of a sheet over the unit square."""
    y, x = np.mgrid[: n + 1, : n + 1] / n
    a = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).reshape(-1)
    faces = np.concatenate([np.stack([a, a + 1, a + n + 2], 1), np.stack([a, a + n + 2, a + n + 1], 1)])
    uv = np.stack([x, y], -1).reshape(-1, 2)
    return np.concatenate([uv, height(x, y).reshape(-1, 1)], 1), faces, uv


def ball(n):
    """A closed sphere of radius 0.1 from a latitude-longitude grid."""
    vertices, faces, _ = grid(n, lambda x, y: 0 * x)
    lon, lat = vertices[:, 0] * 2 * np.pi, (vertices[:, 1] - 0.5) * np.pi
    lon[np.isclose(vertices[:, 0], 1)] = 0
    points = 0.1 * np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1)
    return np.round(points, 9), faces


def edges_with_one_face(faces):
    pairs = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), 1)
    return int((np.unique(pairs, axis=0, return_counts=True)[1] == 1).sum())


@pytest.mark.parametrize("tolerance", [1e-3, 3e-4])
def test_a_ball_stays_round_within_what_is_reported(tolerance):
    vertices, faces = ball(60)
    made = decimate(vertices, faces, tolerance=tolerance, cache=False)
    assert 20 < len(made.faces) < len(faces) / 3
    assert edges_with_one_face(made.faces) == 0  # still closed
    assert len(made.vertices) - len(made.faces) * 3 // 2 + len(made.faces) == 2  # Euler's number of a ball
    a, b, c = (made.vertices[made.faces[:, k]] for k in range(3))
    inner = np.linalg.norm((a + b + c) / 3, axis=1)  # nowhere is a face further from the sphere than at its middle
    worst = max(np.abs(np.linalg.norm(made.vertices, axis=1) - 0.1).max(), (0.1 - inner).max())
    assert worst < 3 * tolerance
    assert made.mean_error <= made.max_error < 4 * tolerance
    assert made.max_error > 0.3 * worst
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6
    assert volume == pytest.approx(4 / 3 * np.pi * 1e-3, rel=0.03)  # and not inside out


def test_flat_sheets_keep_their_outline_and_texture():
    vertices, faces, uv = grid(20, lambda x, y: 0 * x)
    made = decimate(vertices, faces, uv, tolerance=1e-4, cache=False)
    assert len(made.faces) < len(faces) / 4
    assert made.max_error < 2e-4
    a, b, c = (made.vertices[made.faces[:, k]] for k in range(3))
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(made.texcoord, made.vertices[:, :2], atol=0.02)


def test_nothing_small_vanishes_and_ridges_stay():
    vertices, faces, _ = grid(30, lambda x, y: 0.2 * np.abs(x - 0.5))
    small = np.array([[2, 0, 0], [2.0001, 0, 0], [2, 0.0001, 0]])
    together = np.concatenate([vertices, small]), np.concatenate([faces, [[961, 962, 963]]])
    made = decimate(*together, tolerance=1e-3, cache=False)
    assert (made.vertices[:, 0] > 1.9).sum() == 3
    ridge = made.vertices[np.abs(made.vertices[:, 0] - 0.5) < 1e-3]
    assert ridge[:, 2].max() < 1e-3 and np.ptp(ridge[:, 1]) == pytest.approx(1, abs=2e-3)


def test_results_are_kept_by_content_and_a_damaged_file_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    vertices, faces = ball(24)
    first = decimate(vertices, faces, tolerance=1e-3)
    (path,) = (tmp_path / "decimated").glob("*.npz")
    stamp = path.stat().st_mtime_ns
    again = decimate(vertices, faces, tolerance=1e-3)
    assert path.stat().st_mtime_ns == stamp
    for name in ("vertices", "faces", "texcoord", "max_error", "mean_error"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    path.write_bytes(path.read_bytes()[:100])
    np.testing.assert_array_equal(decimate(vertices, faces, tolerance=1e-3).faces, first.faces)
    decimate(vertices, faces, tolerance=2e-3)
    assert len(list((tmp_path / "decimated").iterdir())) == 2
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("MANIKIN_CACHE", str(blocked))
    np.testing.assert_array_equal(decimate(vertices, faces, tolerance=1e-3).faces, first.faces)


def test_what_is_no_mesh_is_refused():
    vertices, faces = ball(6)
    for wrong in (
        (vertices[:, :2], faces),
        (vertices, faces[:, :2]),
        (vertices * np.nan, faces),
        (vertices, faces + 99),
    ):
        with pytest.raises(ConfigError):
            decimate(*wrong, tolerance=1e-3, cache=False)
    with pytest.raises(ConfigError, match="tolerance"):
        decimate(vertices, faces, tolerance=0.0, cache=False)


def test_models_are_drawn_lighter_and_simulated_as_they_are(tmp_path, monkeypatch):
    needs_gl()
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    spec = mujoco.MjSpec()
    vertices, faces = ball(50)
    spec.add_mesh(name="ball", uservert=vertices.reshape(-1), userface=faces.reshape(-1))
    body = spec.worldbody.add_body(pos=(0, 0, 0.3))
    body.add_freejoint()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="ball", rgba=(0.8, 0.3, 0.2, 1))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    before = model_hash(model)
    light, report = lighter(model)
    assert model_hash(model) == before != model_hash(light)
    assert light.mesh_facenum[0] == report.faces_after < report.faces_before / 3 == model.mesh_facenum[0] / 3
    assert 0 < report.mean_error < report.max_error < 2e-3
    camera = CameraSpec(name="c", pos=(0.5, 0, 0.4), target=(0, 0, 0.3), fovy=0.7)
    drawn, full = gl.GlRenderer(gl.probe()[0]), gl.GlRenderer(gl.probe()[0], light=False)
    a, b = (r.images(model, data, camera, ALL) for r in (drawn, full))
    assert (a["rgb"] != b["rgb"]).any()  # it is the lighter one
    assert (a["segmentation"] == b["segmentation"]).mean() > 0.99
    assert np.percentile(np.abs(a["depth"] - b["depth"])[a["segmentation"] == b["segmentation"]], 95) < 1e-3
    assert np.abs(a["rgb"].astype(int) - b["rgb"]).mean() < 2
    assert lighter(light, budget=10**6)[0] is light
    drawn.close()
    full.close()


def test_a_mesh_whose_texture_has_seams_leaves_its_neighbours_alone(tmp_path, monkeypatch):
    """Where textures jump a vertex becomes several: more than MuJoCo keeps, and then there is no room for them."""
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    spec = mujoco.MjSpec()
    vertices, faces = ball(24)
    faces = np.asarray(faces).reshape(-1, 3)
    charts = np.arange(len(faces)) // 48  # the texture jumps between them
    pairs, at = np.unique(np.stack([faces.ravel(), charts.repeat(3)], 1), axis=0, return_inverse=True)
    lines = [f"v {x} {y} {z}" for x, y, z in vertices.reshape(-1, 3)]
    lines += [f"vt {chart / charts.max()} {k / len(pairs)}" for k, chart in enumerate(pairs[:, 1])]
    points = vertices.reshape(-1, 3)[faces]
    normals = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]).repeat(3, 0)
    normals += np.arange(len(normals))[:, None] * 1e-9  # one for each corner, as flat faces have
    lines += [f"vn {x} {y} {z}" for x, y, z in normals]
    corners = np.stack([faces, at.reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)], 2) + 1
    lines += ["f " + " ".join(f"{v}/{t}/{n}" for v, t, n in face) for face in corners]
    (tmp_path / "seams.obj").write_text("\n".join(lines))
    spec.add_mesh(name="a", file=str(tmp_path / "seams.obj"))
    few, small = ball(4)
    spec.add_mesh(name="b", uservert=few.reshape(-1), userface=small.reshape(-1))
    for name in "ab":
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name)
    model = spec.compile()
    light, _ = lighter(model, budget=100, tolerance=0.01)
    begin = int(model.mesh_vertadr[1])
    assert begin > 0 and (light.mesh_vert[begin:] == model.mesh_vert[begin:]).all()
    assert light.mesh_vertnum[0] <= begin


def test_snapshots_fit_scenes_with_other_cameras_but_not_other_physics():
    side = dataclasses.replace(FRONT, name="side", pos=(0.2, 1.0, 0.5))
    plain, more = (
        manikin.make("PickCube-v2", num_envs=2, **options)
        for options in ({}, {"vision": Vision(cameras=["base_camera", side])})
    )
    assert plain.scene.hash != more.scene.hash and plain.scene.physics_hash == more.scene.physics_hash
    for env in (plain, more):
        env.reset(seed=1)
    plain.step(torch.ones(2, plain.single_action_space.shape[0]))
    action = torch.full((2, plain.single_action_space.shape[0]), -0.5)
    more.load(plain.save())
    np.testing.assert_array_equal(more.world.state_hash(), plain.world.state_hash())
    for env in (plain, more):
        env.step(action)
    np.testing.assert_array_equal(more.world.state_hash(), plain.world.state_hash())
    heavy = manikin.make("StackCube-v2", num_envs=2)
    with pytest.raises(DataError, match="belongs to scene"):
        heavy.load(plain.save())
    for env in (plain, more, heavy):
        env.close()
