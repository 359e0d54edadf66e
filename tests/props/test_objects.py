"""Objects from meshes: masses and inertias by formula, rest poses, units, checks, the folder and its hashes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.arenas.table import table
from manikin.assets import meshes as mesh_files
from manikin.cli import main
from manikin.errors import AssetError, ConfigError, DataError, SceneError, UnknownNameError
from manikin.props import make_object, prop_from_file
from manikin.props.files.measure import guess_units, mass_properties, narrowest, thickness
from manikin.props.files.rest import drop, stable_poses
from manikin.robots import from_file
from manikin.scene.builder import SceneBuilder
from manikin.scene.candidates import Candidates
from manikin.sim import make_world
from manikin.spec.physics import Physics
from manikin.spec.prop import Mesh, Prop, Shape

trimesh = pytest.importorskip("trimesh")
SIDES = np.array((0.04, 0.06, 0.1))  # [m] lies on its largest side, 6 x 10 cm


def box_inertia(mass: float, sides: np.ndarray) -> np.ndarray:
    x, y, z = sides**2
    return mass / 12 * np.array((y + z, x + z, x + y))


def levels(made) -> dict[str, str]:
    return {c.name: c.level for c in made.checks}


@pytest.fixture
def brick(tmp_path: Path) -> Path:
    """A box in millimetres, standing upright."""
    path = tmp_path / "brick.stl"
    trimesh.creation.box(1000 * SIDES).export(path)
    return path


# -- formulas ---------------------------------------------------------------------------------------------------------


def test_mass_and_inertia_of_a_box_and_a_ball() -> None:
    box = mass_properties([trimesh.creation.box(SIDES)], mass=None, density=500.0)
    assert box.mass == pytest.approx(500 * SIDES.prod())
    assert np.diag(box.inertia) == pytest.approx(box_inertia(box.mass, SIDES))
    assert np.abs(box.com).max() < 1e-12
    ball = mass_properties([trimesh.creation.icosphere(5, 0.03)], mass=0.2, density=1.0)
    assert ball.volume == pytest.approx(4 / 3 * np.pi * 0.03**3, rel=2e-3)  # of a polyhedron inside the ball
    assert ball.mass == pytest.approx(0.2)
    assert np.diag(ball.inertia) == pytest.approx([2 / 5 * 0.2 * 0.03**2] * 3, rel=2e-3)


def test_two_solids_weigh_as_one() -> None:
    """A box cut in two, Steiner's rule brings the halves together."""
    half = SIDES * (1, 1, 0.5)
    parts = [trimesh.creation.box(half, trimesh.transformations.translation_matrix((0, 0, z))) for z in (0.05, 0.1)]
    whole = mass_properties(parts, mass=None, density=800.0)
    assert whole.com == pytest.approx((0, 0, 0.075))
    assert np.diag(whole.inertia) == pytest.approx(box_inertia(800 * SIDES.prod(), SIDES))


def test_a_turned_solid_keeps_its_inertia_about_its_own_axes() -> None:
    box = mass_properties([trimesh.creation.box(SIDES)], mass=1.0, density=1.0)
    turn = trimesh.transformations.rotation_matrix(np.pi / 2, (1, 0, 0))[:3, :3]
    turned = box.turned(turn, np.array((0.1, 0, 0)))
    assert turned.com == pytest.approx((0.1, 0, 0))
    x, y, z = box_inertia(1.0, SIDES)
    assert np.diag(turned.inertia) == pytest.approx((x, z, y))


def test_a_box_lies_on_its_largest_side_most_probably() -> None:
    corners = trimesh.creation.box(SIDES).vertices
    poses = stable_poses(np.asarray(corners), np.zeros(3))
    assert len(poses) == 6
    assert sum(p.probability for p in poses) == pytest.approx(1, abs=1e-6)
    ups = [int(np.abs(p.up).argmax()) for p in poses]
    assert ups == [0, 0, 1, 1, 2, 2]  # its short side up first
    # the chance of a side is its solid angle seen from the middle, for a box (Goldberg et al. 1999): that of half
    # sides a, b at distance c is 4 asin(a b / sqrt((a^2 + c^2) (b^2 + c^2)))
    a, b, c = SIDES[1] / 2, SIDES[2] / 2, SIDES[0] / 2
    angle = 4 * np.arcsin(a * b / np.sqrt((a * a + c * c) * (b * b + c * c)))
    assert poses[0].probability >= angle / (4 * np.pi) - 1e-6


def test_what_rolls_has_one_pose() -> None:
    ball = trimesh.creation.icosphere(3, 0.03)
    assert [round(p.probability, 3) for p in stable_poses(np.asarray(ball.vertices), np.zeros(3))] == [1.0]
    can = trimesh.creation.cylinder(0.03, 0.1)
    poses = stable_poses(np.asarray(can.vertices), np.zeros(3))
    assert len(poses) == 3 and abs(poses[0].up[2]) < 1e-6 and all(abs(p.up[2]) > 0.999 for p in poses[1:])


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_a_drop_tells_rest_from_falling(device: str) -> None:
    if device != "cpu":
        pytest.importorskip("mujoco_warp")
    points = np.asarray(trimesh.creation.box(SIDES).vertices)
    shape = Shape(type="mesh", mesh=Mesh(name="box", points=tuple(points.ravel().tolist())))
    on_edge = trimesh.transformations.rotation_matrix(0.6, (1, 0, 0))[:3, :3]
    flat, tilted = drop(Prop(name="box", shapes=(shape,), mass=0.2), points, [np.eye(3), on_edge], device=device)
    assert flat.rests and flat.tilt < 1
    assert tilted.still and not tilted.rests and 20 < tilted.tilt < 60


def test_thickness_and_width() -> None:
    box = trimesh.creation.box(SIDES)
    found = thickness(np.asarray(box.vertices), np.asarray(box.faces))
    assert set(found.round(4)) == {0.04, 0.06, 0.1}
    width, direction = narrowest(np.asarray(box.vertices))
    assert width == pytest.approx(0.04) and direction == 0
    turn = trimesh.transformations.rotation_matrix(np.deg2rad(30), (0, 0, 1))[:3, :3]
    width, direction = narrowest(np.asarray(box.vertices) @ turn.T)
    assert width == pytest.approx(0.04) and np.rad2deg(direction) == pytest.approx(30)


def test_units_are_guessed_with_a_reason(tmp_path: Path) -> None:
    for longest, unit in ((0.1, "m"), (1.4, "m"), (12.0, "cm"), (29.0, "cm"), (95.0, "mm")):
        found, reason = guess_units(Path("a.stl"), np.array((0.0, longest, 0.0)))
        assert found == unit and "guessed" in reason
    assert guess_units(Path("a.glb"), np.array((2.0, 1, 1)))[0] == "m"
    dae = tmp_path / "a.dae"
    dae.write_text('<COLLADA><asset><unit name="inch" meter="0.0254"/></asset></COLLADA>')
    with pytest.raises(SceneError, match=r"unit of 0\.0254 m; say which of m, cm, mm"):
        guess_units(dae, np.ones(3))
    dae.write_text('<COLLADA><asset><unit name="centimeter" meter="0.01"/></asset></COLLADA>')
    assert guess_units(dae, np.ones(3)) == ("cm", "the file says so")


# -- the folder -------------------------------------------------------------------------------------------------------


def test_a_brick_becomes_an_object(brick: Path, tmp_path: Path) -> None:
    made = make_object(brick, tmp_path / "out", density=2000.0, opening=("panda_hand", 0.08))
    assert set(levels(made).values()) == {"ok"}, made.checks
    about = json.loads((tmp_path / "out" / "object.json").read_text())
    assert about["source"]["units"] == "mm" and "guessed" in about["source"]["units_are"]
    assert about["mass"] == pytest.approx(2000 * SIDES.prod(), rel=1e-6)
    assert about["size"] == pytest.approx(SIDES)  # it stands as in the file, though it lies better
    assert about["rest"][0]["quat"] == [1, 0, 0, 0] and about["rest"][0]["height"] == pytest.approx(0.05)
    assert about["rest"][1]["height"] == pytest.approx(0.02)  # on its largest side
    assert about["collision"]["how"] == "convex already" and len(about["collision"]["files"]) == 1
    assert sorted(p.name for p in made.folder.iterdir()) == [
        *("brick.png", "brick.xml", "object.json", "piece_00.obj", "visual.obj"),
    ]
    bank = Candidates("x", [prop_from_file(made.folder)])
    assert bank.masses == pytest.approx([about["mass"]]) and bank.extents[0] == pytest.approx(SIDES / 2, abs=1e-6)
    assert np.abs(bank.centres).max() < 1e-6
    lying = make_object(brick, tmp_path / "lying", rest=1)
    assert lying.about["rest"][0]["height"] == pytest.approx(0.02)
    assert sorted(lying.about["size"]) == pytest.approx(SIDES) and lying.about["size"][2] == pytest.approx(0.04)


def test_mujoco_reads_its_mjcf_with_the_same_mass_and_inertia(brick: Path, tmp_path: Path) -> None:
    made = make_object(brick, tmp_path / "out", mass=0.3)
    model = mujoco.MjModel.from_xml_path(str(made.folder / "brick.xml"))
    assert model.body_mass[1] == pytest.approx(0.3)
    assert np.sort(model.body_inertia[1]) == pytest.approx(np.sort(box_inertia(0.3, SIDES)), rel=1e-5)


@pytest.mark.parametrize("device", ["cpu", "warp:cpu"])
def test_rows_get_its_mass_inertia_and_rest(brick: Path, tmp_path: Path, device: str) -> None:
    if device != "cpu":
        pytest.importorskip("mujoco_warp")
    prop = make_object(brick, tmp_path / "out", mass=0.3).prop
    b = SceneBuilder([], Physics())
    table(b)
    thing = b.mesh("thing", choice=[prop])
    world = make_world(b.compile(), 2, device=device)
    b.bind(world)
    world.reset()
    thing.set_choice(torch.zeros(2))
    thing.set_pose((0, 0, 0.0502))
    world.forward()
    assert thing.masses.tolist() == pytest.approx([0.3, 0.3])
    assert np.sort(world.model_field("body_inertia")[0][thing.body_id]) == pytest.approx(
        np.sort(box_inertia(0.3, SIDES)), rel=1e-4
    )
    world.step(100)
    assert thing.pos[:, 2].tolist() == pytest.approx([0.05] * 2, abs=5e-4)
    assert thing.linvel.norm(dim=1).max() < 1e-3


class _Stand(manikin.Task):
    """An object on a table."""

    id = "Stand-v1"
    horizon_s = 1.0
    instruction = "leave it alone"
    folder = ""

    def scene(self, b):
        table(b)
        return {"robot": b.robot(), "thing": b.mesh("thing", choice=[prop_from_file(self.folder)])}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())
        h.thing.set_pose(torch.cat([torch.zeros(h.n, 2), h.thing.extents[:, 2:]], 1))

    def evaluate(self, h):
        return {"success": h.thing.pos[:, 2] > 1.0}

    def observe(self, h):
        return {"policy": {"thing_pose": h.thing.pose}}


def test_a_task_takes_it_and_the_fingerprint_knows_its_content(brick: Path, tmp_path: Path) -> None:
    seen = {}
    for mass in (0.3, 0.4):
        _Stand.folder = str(make_object(brick, tmp_path / f"brick-{mass}", name="brick", mass=mass).folder)
        env = manikin.make(_Stand, num_envs=2)
        env.reset(seed=0)
        seen[mass] = env.fingerprint()
        env.close()
    sources = [seen[m]["props"]["thing"]["brick"] for m in (0.3, 0.4)]
    assert all(s.startswith("brick.stl, sha256 ") and len(s.split()[-1]) == 64 for s in sources)
    assert sources[0] != sources[1] and seen[0.3]["model_hash"] != seen[0.4]["model_hash"]


def test_the_same_mesh_makes_the_same_object(brick: Path, tmp_path: Path) -> None:
    one, two = (make_object(brick, tmp_path / word) for word in ("one", "two"))
    assert one.prop.source == two.prop.source
    shutil.move(tmp_path / "one", tmp_path / "elsewhere")  # where it lies does not count
    assert prop_from_file(tmp_path / "elsewhere").source == two.prop.source


# -- meshes that are not good -----------------------------------------------------------------------------------------


def test_seams_are_no_holes_and_turned_faces_are_turned(tmp_path: Path) -> None:
    box = trimesh.creation.box(SIDES)
    apart = trimesh.Trimesh(box.triangles.reshape(-1, 3), np.arange(36).reshape(12, 3), process=False)
    apart.export(tmp_path / "apart.ply")
    assert levels(make_object(tmp_path / "apart.ply"))["watertight"] == "ok"
    box.invert()
    box.export(tmp_path / "inverted.ply")
    made = make_object(tmp_path / "inverted.ply")
    assert {c.name: c.what for c in made.checks}["winding"] == "faces turned outward"
    assert made.about["mass"] == pytest.approx(1000 * SIDES.prod(), rel=1e-6)


def test_an_open_mesh_weighs_as_what_collides(tmp_path: Path) -> None:
    can = trimesh.creation.cylinder(0.03, 0.1)
    hull = can.volume
    can.update_faces(can.face_normals[:, 2] < 0.5)  # its lid is missing
    can.export(tmp_path / "open.ply")
    made = make_object(tmp_path / "open.ply", collision="hull")
    said = {c.name: c for c in made.checks}["watertight"]
    assert said.level == "warning" and said.what.startswith("32 open edges stay")
    assert made.about["mass"] == pytest.approx(1000 * hull, rel=1e-6)


def test_thin_wide_and_huge_are_said(tmp_path: Path) -> None:
    trimesh.creation.box((1.2, 0.9, 0.001)).export(tmp_path / "sheet.obj")
    made = make_object(tmp_path / "sheet.obj", opening=("panda_hand", 0.08))
    said = {c.name: c for c in made.checks}
    assert said["thin parts"].level == "warning" and "thinner than 2 mm" in said["thin parts"].what
    assert said["size"].level == "warning" and "--units" in said["size"].what
    assert said["grasp"].level == "warning" and "900 mm wide" in said["grasp"].what


def test_hollow_things_are_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A U: its hull fills the gap, its convex pieces leave it open."""
    pytest.importorskip("coacd")
    quick = {"threshold": 0.2, "max_convex_hull": 5, "mcts_iterations": 20, "preprocess_resolution": 20, "seed": 0}
    monkeypatch.setattr(mesh_files, "CONVEX", quick)
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    outline = [(0, 0), (0.1, 0), (0.1, 0.1), (0.08, 0.1), (0.08, 0.02), (0.02, 0.02), (0.02, 0.1), (0, 0.1)]
    u = extruded(outline, 0.04)
    u.export(tmp_path / "u.stl")
    pieces = make_object(tmp_path / "u.stl", tmp_path / "pieces", units="m")
    hull = make_object(tmp_path / "u.stl", tmp_path / "hull", units="m", collision="hull")
    assert len(pieces.prop.shapes) > 1 and len(hull.prop.shapes) == 1
    assert levels(pieces)["collision"] == "ok" and levels(hull)["collision"] == "warning"
    # both weigh as the mesh: 3 bars
    volume = 0.04 * (0.1 * 0.02 + 2 * 0.08 * 0.02)
    assert pieces.about["mass"] == hull.about["mass"] == pytest.approx(1000 * volume, rel=1e-5)

    def missing(name: str, what: str):
        if name == "coacd":
            raise ConfigError("convex decomposition needs coacd: pip install 'manikin[meshes]'")
        return trimesh

    monkeypatch.setattr(mesh_files, "package", missing)
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "another"))
    with pytest.raises(ConfigError, match=r"needs coacd: pip install 'manikin\[meshes\]'; or take the convex hull"):
        make_object(tmp_path / "u.stl", tmp_path / "none", units="m")
    assert not (tmp_path / "none").exists()


def extruded(outline: list[tuple[float, float]], depth: float):
    """A prism over a U of eight corners, made by hand: trimesh needs a triangulator for that."""
    n = len(outline)
    points = np.array([(x, y, z) for z in (0, depth) for x, y in outline])
    cap = np.array([(0, 1, 4), (0, 4, 5), (1, 2, 4), (2, 3, 4), (5, 6, 0), (6, 7, 0)])
    sides = [(i, (i + 1) % n, n + (i + 1) % n, n + i) for i in range(n)]
    walls = np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))])
    mesh = trimesh.Trimesh(points, np.concatenate([cap[:, ::-1], cap + n, walls]), process=False)
    assert mesh.is_watertight and mesh.volume > 0
    return mesh


def test_bad_input_is_said_and_loses_nothing(brick: Path, tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="there is no file"):
        make_object(tmp_path / "none.obj")
    (tmp_path / "text.obj").write_text("this is no mesh\n")
    with pytest.raises(SceneError, match=r"text\.obj"):
        make_object(tmp_path / "text.obj")
    flat = trimesh.Trimesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])
    flat.export(tmp_path / "flat.ply")
    with pytest.raises(SceneError, match="lie in one plane"):
        make_object(tmp_path / "flat.ply")
    for options, words in (
        ({"density": 0.0}, "density must be positive"),
        ({"mass": float("nan")}, "mass must be positive"),
        ({"rest": 9}, "has 6 rest poses, numbered from 0; there is no 9"),
        ({"name": "../x"}, "not a valid name for an object"),
    ):
        with pytest.raises(ConfigError, match=words):
            make_object(brick, tmp_path / "out", **options)
    with pytest.raises(UnknownNameError, match="cm, m, mm"):
        make_object(brick, tmp_path / "out", units="inch")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="is there already"):
            make_object(brick, tmp_path / "mine", overwrite=overwrite)
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep me"
    made = make_object(brick, tmp_path / "out")
    with pytest.raises(ConfigError, match="overwrite=True"):
        make_object(brick, tmp_path / "out")
    again = make_object(brick, tmp_path / "out", mass=1.0, overwrite=True)
    assert again.prop.mass == 1.0 != made.prop.mass


def test_a_folder_that_was_changed_is_refused(brick: Path, tmp_path: Path) -> None:
    folder = make_object(brick, tmp_path / "out").folder
    with pytest.raises(AssetError, match=r"has no object\.json"):
        prop_from_file(tmp_path)
    text = (folder / "piece_00.obj").read_text()
    (folder / "piece_00.obj").write_text(text.replace("v 0.02", "v 0.03"))
    with pytest.raises(DataError, match=r"piece_00\.obj was changed"):
        prop_from_file(folder)
    (folder / "piece_00.obj").unlink()
    with pytest.raises(AssetError, match=r"lacks piece_00\.obj"):
        prop_from_file(folder)
    about = folder / "object.json"
    for text, words in (("{", "cannot be read"), ("{}", "format"), ('{"format": "manikin-object"}', "version None")):
        about.write_text(text)
        with pytest.raises(DataError, match=words):
            prop_from_file(folder)
    about.write_text('{"format": "manikin-object", "version": 1, "name": "x"}')
    with pytest.raises(DataError, match="lacks mass, com, inertia"):
        prop_from_file(folder)


def test_com_and_inertia_need_one_another() -> None:
    shape = Shape(type="box", size=(0.01, 0.01, 0.01))
    with pytest.raises(SceneError, match="given together"):
        Candidates("x", [Prop(name="x", shapes=(shape,), com=(0, 0, 0))])


# -- pictures, textures, the command ----------------------------------------------------------------------------------


def test_a_textured_obj_keeps_its_picture(tmp_path: Path) -> None:
    from manikin.render import write_png

    write_png(tmp_path / "red.png", np.full((4, 4, 3), (200, 20, 20), np.uint8))
    box = trimesh.creation.box(SIDES)
    lines = ["mtllib box.mtl", *(f"v {x} {y} {z}" for x, y, z in box.vertices), "vt 0.5 0.5", "usemtl m"]
    lines += [f"f {a}/1 {b}/1 {c}/1" for a, b, c in box.faces + 1]
    (tmp_path / "box.obj").write_text("\n".join(lines))
    (tmp_path / "box.mtl").write_text("newmtl m\nKd 0.1 0.2 0.9\nmap_Kd red.png\n")
    made = make_object(tmp_path / "box.obj")
    assert (made.folder / "texture.png").read_bytes() == (tmp_path / "red.png").read_bytes()
    assert made.prop.looks[0].mesh.texture.endswith("texture.png")
    mujoco.MjModel.from_xml_path(str(made.folder / "box.xml"))


def test_the_command_reports_and_exits(brick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "brick"
    assert main(["object", str(brick), "--out", str(out), "--mass", "0.2"]) == 0
    said = capsys.readouterr().out
    for word in ("size", "mass", "rest", "grasp", "prop_from_file", "40 mm wide as it stands; panda_hand opens 80 mm"):
        assert word in said
    assert (out / "brick.png").stat().st_size > 1000
    assert main(["object", str(brick), "--out", str(out)]) == 2
    assert "is there already" in capsys.readouterr().err


def test_what_is_no_path_is_said(tmp_path: Path) -> None:
    for attempt in (
        lambda: make_object("a\0b"),
        lambda: make_object(tmp_path / "mug.obj", out="a\0b"),
        lambda: prop_from_file("a\0b"),
        lambda: from_file("a\0b"),
    ):
        with pytest.raises(AssetError, match="is not a valid path: embedded null byte"):
            attempt()
