"""Tactile fingertips: shapes against MuJoCo's rays, prints against closed forms, colours against the real tables."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

import manikin
from gripped import Gripped, closed, gripped
from manikin.errors import AssetError, ConfigError, DataError, SceneError, UnknownNameError
from manikin.rng import EpisodeRng
from manikin.scene.gel import SHAPES, Gel, entry, indent
from manikin.sense.tactile import SENSORS, Calibrated, GelLight, ThreeLights, skin, slopes

# ---- shapes and depths in closed form --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES, ids=SHAPES.values())
def test_lines_enter_shapes_where_mujoco_says(kind):
    n, points = 30, 20
    rng = EpisodeRng(torch.arange(n), torch.zeros(n, dtype=torch.int64))
    size = rng.uniform("size", 0.05, 0.3, (3,)).double()
    direction = rng.normal("direction", shape=(3,)).double()
    direction[0] = torch.tensor([0, 0, 1.0])  # along an axis, and across it
    direction[1] = torch.tensor([0, -1.0, 0])
    direction /= direction.norm(dim=1, keepdim=True)
    side = rng.uniform("side", -0.3, 0.3, (points, 3)).double()
    origin = side - 2 * direction.unsqueeze(1)  # outside, before the shape
    found = entry(kind, size, origin, direction)
    hits, frame = 0, np.zeros(1, np.int32)
    for i in range(n):
        spec = mujoco.MjSpec()
        spec.worldbody.add_geom(type=kind, size=size[i].tolist())
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        for j in range(points):
            start, along = origin[i, j].numpy(), direction[i].numpy()
            t = mujoco.mj_ray(model, data, start, along, None, True, -1, frame)
            assert (math.isinf(found[i, j]) and t < 0) or found[i, j].item() == pytest.approx(t, abs=1e-9)
            hits += t >= 0
    assert n * points * 0.15 < hits < n * points * 0.95
    inside = entry(kind, size, torch.zeros(n, 1, 3, dtype=torch.float64), direction)
    assert (inside < 0).all()  # a line from the middle entered before


def ball_gap(radius, size=0.02, count=200, centre=(0.0, 0.0)):
    """Gap [m] between a plane and a ball that touches it, on a square grid."""
    x = (torch.arange(count, dtype=torch.float64) + 0.5) / count * size - size / 2
    rho2 = (x - centre[0]).square() + (x - centre[1]).square().unsqueeze(1)
    return torch.where(rho2 < radius**2, radius - (radius**2 - rho2).clamp(min=0).sqrt(), torch.inf).reshape(1, -1)


@pytest.mark.parametrize(("radius", "depth"), [(0.004, 0.0005), (0.008, 0.0012), (0.02, 0.0003)])
def test_ball_sinks_in_as_far_as_its_cap_bears(radius, depth):
    gel, size, count = Gel(), 0.02, 200
    force = gel.stiffness * math.pi * depth**2 * (radius - depth / 3)  # stiffness times the volume of the cap
    taxel = size / count
    pressed = indent(ball_gap(radius) - 0.013, torch.tensor([force], dtype=torch.float64), taxel**2, gel)
    assert pressed.max().item() == pytest.approx(depth, rel=0.01)
    disc = math.sqrt(float((pressed > 0).sum()) * taxel**2 / math.pi)
    assert abs(disc - math.sqrt(2 * radius * depth - depth**2)) < taxel
    borne = gel.stiffness * taxel**2 * pressed.sum()
    assert borne.item() == pytest.approx(force, rel=1e-9)


def test_two_flat_heights_share_a_force():
    """Half of the taxels 0.1 mm nearer: below 0.1 mm they bear alone, above both do."""
    gel, area = Gel(thickness=0.001, stiffness=1e8), 1e-6
    gap = torch.tensor([[0.0, 0.0, 1e-4, 1e-4, math.inf]], dtype=torch.float64).expand(5, 5)
    force = torch.tensor([0.01, 0.02, 0.06, 10.0, -1.0], dtype=torch.float64)
    d = indent(gap, force, area, gel)
    expected = [[5e-5, 0], [1e-4, 0], [2e-4, 1e-4], [1e-3, 9e-4], [0, 0]]
    assert torch.allclose(d[:, [0, 2]], torch.tensor(expected, dtype=torch.float64)) and (d[:, 4] == 0).all()
    assert (indent(torch.full((1, 5), math.inf).double(), force[:1], area, gel) == 0).all()
    with pytest.raises(ConfigError, match="positive"):
        Gel(thickness=0)


# ---- prints in the simulation ----------------------------------------------------------------------------------------


def image_axes(env, finger):
    """Right and down of the image in the world, from the closing direction alone: the hand points down."""
    forward = env.h.grasp.closing[0, finger].double()
    down = torch.tensor([0.0, 0, 1], dtype=torch.float64)  # palm is above
    return torch.linalg.cross(down, forward), down


def centroid(depth, size):
    """(right, down) of the print from the middle of the image [m]."""
    h, w = depth.shape
    rows, columns = torch.meshgrid(torch.arange(h) + 0.5 - h / 2, torch.arange(w) + 0.5 - w / 2, indexing="ij")
    total = depth.sum()
    return (columns * depth).sum() / total * size[1] / w, (rows * depth).sum() / total * size[0] / h


@pytest.mark.parametrize("finger", [0, 1])
def test_gripped_ball_leaves_the_analytic_disc(finger):
    radius = 0.008
    env = gripped(1, thing="sphere", size=(radius,), mass=0.05)
    t = getattr(env.h, f"tactile{finger}")
    assert t.depth.shape == (1, 72, 68) and t.size == pytest.approx((0.018, 0.017))
    taxel = t.size[0] / 72
    grip = env.h.touch.value[0, finger].item()
    assert t.force[0, 2].item() == pytest.approx(grip, rel=1e-3)
    d = t.depth.max().item()
    assert t.gel.stiffness * math.pi * d**2 * (radius - d / 3) == pytest.approx(grip, rel=0.02)
    disc = math.sqrt(float((t.depth > 0).sum()) * taxel**2 / math.pi)
    assert abs(disc - math.sqrt(2 * radius * d - d * d)) < taxel
    # in the middle of the pad's image, where the ball is before it
    right, down = centroid(t.depth[0], t.size)
    assert abs(right) < taxel
    x_right, x_down = image_axes(env, finger)
    pad = env.world.data(0)[0].geom(env.robot.prefix + env.robot.model.pad_geoms[finger]).id
    offset = env.h.thing.pos[0].double() - torch.from_numpy(env.world.data(0)[1].geom_xpos[pad])
    assert abs(down - offset @ x_down) < taxel and abs(right - offset @ x_right) < taxel


@pytest.mark.parametrize("where", [(0.003, 0.0, 0.0), (-0.002, 0.0, 0.0), (0.0, 0.0, -0.003)])
def test_print_moves_with_the_thing(where):
    env = gripped(1, thing="sphere", size=(0.006,), mass=0.01)
    moved = gripped(1, thing="sphere", size=(0.006,), mass=0.01, where=where)
    by = moved.h.thing.pos[0].double() - env.h.thing.pos[0].double()
    assert by.norm() > 0.0015
    for finger in (0, 1):
        right, down = image_axes(env, finger)
        a, b = (centroid(getattr(e.h, f"tactile{finger}").depth[0], (0.018, 0.017)) for e in (env, moved))
        assert b[0] - a[0] == pytest.approx(float(by @ right), abs=3e-4)
        assert b[1] - a[1] == pytest.approx(float(by @ down), abs=3e-4)


def test_box_leaves_a_rectangle_and_a_pad_wide_one_a_flat_print():
    env = gripped(1, thing="box", size=(0.005, 0.006, 0.004), mass=0.02)
    depth = env.h.tactile0.depth[0]
    pressed = depth > 0
    assert pressed.any(1).sum().item() == pytest.approx(8 * 4, abs=1)  # 4 taxels per mm
    assert pressed.any(0).sum().item() == pytest.approx(10 * 4, abs=1)
    assert depth[pressed].std() < 0.02 * depth[pressed].mean()
    grip, gel = env.h.touch.value[0, 0].item(), env.h.tactile0.gel
    assert depth[pressed].mean().item() == pytest.approx(grip / gel.stiffness / (0.010 * 0.008), rel=0.03)
    assert pressed.any(1).sum() * pressed.any(0).sum() == pressed.sum()


def test_shear_follows_the_force_on_the_gel():
    env = gripped(3, thing="box", size=(0.01, 0.01, 0.01), mass=0.3)
    t, weight = env.h.tactile0, 0.3 * 9.81
    area = t.size[0] * t.size[1] / (72 * 68)
    # the hand points down, so the weight drags the skin to the fingertip, up in the image; two fingers share it
    assert torch.allclose(t.force[:, :2], torch.tensor([0, -weight / 2]).expand(3, 2), atol=0.05)
    model = env.world.scene.model
    push = torch.zeros(3, model.nbody, 6)
    body = int(model.body("thing").id)
    right, _ = image_axes(env, 0)
    push[1, body, :3], push[2, body, :3] = 3.0 * right.float(), -3.0 * right.float()
    env.world.write("xfrc_applied", push)
    for _ in range(30):
        env.step(closed(env))
    force = t.force
    assert torch.allclose(force[:, 0], torch.tensor([0.0, 1.5, -1.5]), atol=0.1)
    dragged = t.shear.double().sum((1, 2)) * area * t.gel.shear_stiffness
    assert torch.allclose(dragged, force[:, :2].double(), atol=1e-4)
    mean = t.shear[t.depth > 0].abs().mean()
    assert (t.shear[t.depth == 0] == 0).all() and 1e-5 < mean < 1e-3
    assert (t.shear[1, ..., 0] >= 0).all() and (t.shear[2, ..., 0] <= 0).all()
    assert (env.h.tactile1.force[1, 0] < -1).item()  # the other finger looks the other way


def test_nothing_held_is_nothing_felt_and_rows_do_not_depend_on_the_batch():
    whole = gripped(3, thing="sphere", size=(0.006,), mass=0.05, steps=24)
    alone = gripped(1, thing="sphere", size=(0.006,), mass=0.05, steps=24)
    for name in ("depth", "shear", "force"):
        assert torch.equal(getattr(whole.h.tactile0, name)[2:], getattr(alone.h.tactile0, name))
    env = gripped(2, steps=1)
    env.h.thing.set_pose((0.3, 0.3, 0.05))
    for _ in range(10):
        env.step(closed(env))
    assert (env.h.tactile0.depth == 0).all() and (env.h.tactile0.shear == 0).all()
    assert (env.h.tactile0.force == 0).all()


@pytest.mark.parametrize("name", ["xarm7", "ur5e"])
def test_fingertips_of_other_grippers(name):
    env = gripped(1, robot=name, thing="sphere", size=(0.008,), mass=0.05)
    for finger in (0, 1):
        t = getattr(env.h, f"tactile{finger}")
        taxel = math.sqrt(t.size[0] * t.size[1] / (72 * 68))
        d = t.depth.max().item()
        disc = math.sqrt(float((t.depth > 0).sum()) * taxel**2 / math.pi)
        assert d > 1e-4 and abs(disc - math.sqrt(2 * 0.008 * d - d * d)) < taxel
        right, _ = centroid(t.depth[0], t.size)
        assert abs(right) < 1e-3


def test_fingertips_of_a_makers_model(menagerie_root):
    env = gripped(1, robot="panda:menagerie", thing="sphere", size=(0.008,), mass=0.05)
    t = env.h.tactile0
    assert t.size == pytest.approx((0.017, 0.017))  # the flat pad, not the finger's mesh behind it
    d, taxel = t.depth.max().item(), math.sqrt(0.017**2 / (72 * 68))
    disc = math.sqrt(float((t.depth > 0).sum()) * taxel**2 / math.pi)
    assert abs(disc - math.sqrt(2 * 0.008 * d - d * d)) < taxel


def test_rows_have_their_own_sizes():
    radii = torch.tensor([[0.006], [0.010]])
    env = gripped(2, thing="sphere", size=(0.008,), mass=0.05, resizable=True, sizes=radii)
    for row, radius in enumerate(radii[:, 0].tolist()):
        depth = env.h.tactile0.depth[row]
        d, taxel = depth.max().item(), 0.00025
        disc = math.sqrt(float((depth > 0).sum()) * taxel**2 / math.pi)
        assert abs(disc - math.sqrt(2 * radius * d - d * d)) < taxel
        grip = env.h.tactile0.force[row, 2].item()
        assert 2.5e8 * math.pi * d**2 * (radius - d / 3) == pytest.approx(grip, rel=0.02)


def test_fingertips_that_cannot_be_are_refused():
    def task(**options):
        class Wrong(Gripped):
            def scene(self, b):
                handles = {"robot": b.robot()}
                part = b.box("part", half_size=(0.01, 0.01, 0.01)) if options.pop("part", True) else None
                return {**handles, "part": part, "tactile": b.tactile(handles["robot"], **options)}

        return lambda: manikin.make(Wrong)

    with pytest.raises(UnknownNameError, match="left_finger, right_finger"):
        task(finger="thumb")()
    with pytest.raises(ConfigError, match=r"30.0 x 10.0 mm does not fit on the pad of panda_hand, 18.0 x 17.0 mm"):
        task(size=(0.03, 0.01))()
    with pytest.raises(SceneError, match="parts to feel"):
        task(part=False)()
    with pytest.raises(SceneError, match="2 x 2"):
        task(resolution=(1, 8))()


# ---- pictures --------------------------------------------------------------------------------------------------------

SIZE = (0.015, 0.02)


def ball_print(radius=0.004, depth=0.001, resolution=(90, 120)):
    h, w = resolution
    y = ((torch.arange(h) + 0.5) / h - 0.5) * SIZE[0]
    x = ((torch.arange(w) + 0.5) / w - 0.5) * SIZE[1]
    rho2 = x.square() + y.square().unsqueeze(1)
    return ((radius**2 - rho2).clamp(min=0).sqrt() - (radius - depth)).clamp(min=0).unsqueeze(0)


def test_skin_keeps_the_print_and_falls_off_smoothly():
    depth = ball_print()
    height = skin(depth, SIZE)
    assert (height - depth).abs()[depth > 3e-4].max() < 7e-5  # as pressed, but for a fillet at the rim
    ring = height[0, 45, 60:]
    assert (ring[1:] <= ring[:-1] + 1e-9).all() and 0 < ring[30] < 2e-4 and ring[-1] < 2e-6
    fine = skin(depth, SIZE, (240, 320))
    assert fine.shape == (1, 240, 320) and fine.max().item() == pytest.approx(1e-3, rel=0.02)
    dx, dy = slopes(fine, SIZE)
    # the slope of a ball at distance rho from its middle: rho / sqrt(r^2 - rho^2), here 1.5 mm to the left and above
    expected = 0.0015 / math.sqrt(0.004**2 - 0.0015**2)
    assert dx[0, 120, 160 - 24].item() == pytest.approx(expected, rel=0.05) and abs(dy[0, 120, 136]) < 0.02
    assert dy[0, 120 - 24, 160].item() == pytest.approx(expected, rel=0.05)


def side(picture, background, angle, rho=0.0018):
    """Change of colour of a picture at ``rho`` [m] from the middle, in a direction of the image."""
    h, w = picture.shape[:2]
    row = round(h / 2 - 0.5 + math.sin(angle) * rho / SIZE[0] * h)
    column = round(w / 2 - 0.5 + math.cos(angle) * rho / SIZE[1] * w)
    return picture[row - 1 : row + 2, column - 1 : column + 2].float().mean((0, 1)) - torch.tensor(background)


def test_three_lights_colour_the_sides_that_face_them():
    optics = ThreeLights()
    flat = optics(torch.zeros(2, 90, 120), SIZE)
    assert flat.shape == (2, 240, 320, 3) and (flat == torch.tensor([99, 105, 99], dtype=torch.uint8)).all()
    picture = optics(ball_print(), SIZE)[0]
    for colour, degrees in enumerate((210, 330, 90)):
        angle = math.radians(degrees)
        facing, away = (side(picture, optics.background, a)[colour] for a in (angle, angle + math.pi))
        assert facing > 40 and away < -20
    grey = ThreeLights(lights=[GelLight(math.pi, (100, 100, 100))])(ball_print(), SIZE)[0]
    assert torch.equal(grey[..., 0], grey[..., 2]) and side(grey, optics.background, math.pi)[0] > 20


def test_calibration_without_data_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv("MANIKIN_DATA", raising=False)
    with pytest.raises(AssetError, match="ThreeLights"):
        Calibrated.load("digit")
    with pytest.raises(UnknownNameError, match=r"gelsight_r1\.5"):
        Calibrated.load("digitt")
    with pytest.raises(AssetError, match="nowhere"):
        Calibrated.load(path=tmp_path / "nowhere.npz")
    (tmp_path / "text.npz").write_text("no numbers")
    with pytest.raises(DataError, match="not a calibration"):
        Calibrated.load(path=tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", grad_r=np.zeros(3))
    with pytest.raises(DataError, match="not a calibration"):
        Calibrated.load(path=tmp_path / "other.npz")
    with pytest.raises(DataError, match="bins, bins, 6"):
        Calibrated(np.zeros((3, 4, 5, 6)))


def test_table_is_read_by_its_definition():
    """A made-up table whose terms are known: (steepness bin, direction bin) and the polynomial of the pixel."""
    bins = 19  # 5 deg of steepness, 20 deg of direction
    table = np.zeros((3, bins, bins, 6))
    table[0, 1:, :, 5] = np.arange(1, bins)[:, None]  # red: number of the steepness bin
    table[1, 1:, :, 5] = np.arange(bins)  # green: of the direction bin
    table[2, 1:] = (1e-4, 2e-4, 3e-4, 0.01, 0.02, 5)  # blue: of the place
    optics = Calibrated(table, smooth=0)
    tilt, turn = torch.tensor([12.0, 33.0, 61.0]), torch.tensor([-170.0, 5.0, 100.0])
    steep = torch.tan(torch.deg2rad(tilt))
    dx, dy = steep * torch.cos(torch.deg2rad(turn)), steep * torch.sin(torch.deg2rad(turn))
    out = optics.change(dx.view(3, 1, 1).expand(3, 48, 64), dy.view(3, 1, 1).expand(3, 48, 64))
    assert out[:, 0, 0, 0].tolist() == [2, 6, 12] and out[:, 0, 0, 1].tolist() == [0, 9, 14]
    x, y = 31 * 10 + 4.5, 20 * 10 + 4.5  # pixel (20, 31) of 48 x 64 in a frame of 480 x 640
    expected = 1e-4 * x * x + 2e-4 * y * y + 3e-4 * x * y + 0.01 * x + 0.02 * y + 5
    assert out[0, 20, 31, 2].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("sensor", SENSORS)
def test_real_calibration(data_root, sensor):
    optics = Calibrated.load(sensor)
    assert optics.bins == {"digit": 125, "gelsight_r1.5": 120}[sensor]
    background = (99.0, 105.0, 99.0)
    flat = optics(torch.zeros(1, 90, 120), SIZE)
    assert (flat == torch.tensor(background, dtype=torch.uint8)).all()
    picture = optics(ball_print(), SIZE)[0]
    around = torch.stack([side(picture, background, math.radians(a)) for a in range(0, 360, 10)])
    # every colour brightens one side and darkens the other, and no two the same
    strongest = around.argmax(0) * 10
    assert (around.max(0).values > 15).all() and (around.min(0).values < -15).all()
    apart = [abs((int(strongest[a] - strongest[b]) + 180) % 360 - 180) for a, b in ((0, 1), (1, 2), (2, 0))]
    assert min(apart) >= 60
    if sensor == "digit":  # three lights round the gel: red, green, blue clockwise
        assert all(75 <= a <= 160 for a in apart)
        assert (int(strongest[1] - strongest[0]) % 360) < 180 and (int(strongest[2] - strongest[1]) % 360) < 180
    outside = (picture.float() - torch.tensor(background)).abs().amax(-1)
    assert outside[:20].max() < 12  # far from the print the gel is as it was


def test_real_table_against_its_formula(data_root):
    """Some pixels of a picture, by the definition of the table in double precision and plain Python."""
    with np.load(data_root / SENSORS["digit"] / "polycalib.npz") as file:
        table, bins = np.stack([file[f"grad_{c}"] for c in "rgb"]), int(file["bins"])
    optics = Calibrated(table, smooth=0, resolution=(240, 320))
    dx, dy = slopes(skin(ball_print(), SIZE, (240, 320)), SIZE)
    change = optics.change(dx, dy)[0]
    for row, column in ((110, 150), (125, 172), (100, 160), (130, 140)):
        gx, gy = float(dx[0, row, column]), float(dy[0, row, column])
        i = math.floor(math.atan(math.hypot(gx, gy)) / (math.pi / 2 / (bins - 1)))
        j = math.floor((math.atan2(gy, gx) + math.pi) / (2 * math.pi / (bins - 1)))
        x, y = 2 * column + 0.5, 2 * row + 0.5
        terms = np.array([x * x, y * y, x * y, x, y, 1])
        flat = table[:, 0, : bins - 1].mean(1) @ terms
        assert i > 5 and change[row, column].numpy() == pytest.approx(table[:, i, j] @ terms - flat, abs=0.02)


def test_pictures_do_not_depend_on_the_batch():
    row = EpisodeRng(torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    table = row.normal("table", 0.0, 1.0, (3, 31, 31, 6))[0] * torch.tensor([1e-4, 1e-4, 1e-4, 0.05, 0.05, 30])
    prints = torch.cat([ball_print(0.003 + 0.0004 * k, 0.0005 + 0.0001 * k) for k in range(5)])
    for optics in (ThreeLights(), Calibrated(table.numpy()), ThreeLights(resolution=(48, 64))):
        whole = optics(prints, SIZE)
        for k in range(5):
            assert torch.equal(optics(prints[k : k + 1], SIZE), whole[k : k + 1])
