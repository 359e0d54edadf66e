"""Compiled scenes kept on disk: the very model, and only while everything that it was made from is the same."""

from __future__ import annotations

import json
import os

import mujoco
import numpy as np
import pytest

import manikin
from manikin.assets import compiled as cache
from manikin.assets.compiled import check, compiled

TETRAHEDRON = "v 0 0 0\nv 0.1 0 0\nv 0 0.2 0\nv 0 0 {}\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small models are kept too; compiling is counted in ``compiles``."""
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "HEAVY", 0)
    (tmp_path / "thing.obj").write_text(TETRAHEDRON.format(0.3))
    return tmp_path


@pytest.fixture
def compiles(monkeypatch):
    calls, real = [], mujoco.MjSpec.compile

    def counted(spec):
        calls.append(spec)
        return real(spec)

    monkeypatch.setattr(mujoco.MjSpec, "compile", counted)
    return calls


def thing(folder, change=lambda spec: None, *, file=None, pull=1.0):
    spec = mujoco.MjSpec()
    spec.add_mesh(name="thing", file=file or str(folder / "thing.obj"))
    spec.add_material(name="paint", rgba=(1, 0, 0, 1))
    frame = spec.worldbody.add_frame(pos=(0, 0, 1))
    body = spec.worldbody.add_body(name="a", pos=(0.1, 0.2, 0.3))
    body.set_frame(frame)
    body.add_freejoint(name="free")
    body.add_geom(name="shape", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="thing", material="paint")
    child = body.add_body(name="b")
    child.add_joint(name="hinge", range=(-1, 1))
    child.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.1, 0, 0))
    child.add_site(name="tip", pos=(0, 0, 0.1))
    spec.add_sensor(name="at", type=mujoco.mjtSensor.mjSENS_FRAMEPOS, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="tip")
    spec.add_numeric(name="n", data=[1.0, 2.0])
    tendon = spec.add_tendon(name="pull")
    tendon.wrap_joint("hinge", pull)
    spec.add_actuator(name="motor", target="hinge", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    change(spec)
    return spec


def contents(model):
    out = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, out)
    return out.tobytes()


def test_what_is_loaded_is_the_compiled_model_to_the_bit(folder, compiles):
    fresh = thing(folder).compile()
    first, second = compiled(thing(folder)), compiled(thing(folder))
    assert len(compiles) == 2  # the fresh one and the first
    assert contents(first) == contents(second) == contents(fresh)


CHANGES = {
    "an option": lambda s: setattr(s.option, "timestep", 0.001),
    "what is seen": lambda s: setattr(s.visual.headlight, "active", 0),
    "the compiler": lambda s: setattr(s.compiler, "boundmass", 5.0),
    "a body": lambda s: setattr(s.body("b"), "pos", (0, 0, 1e-15)),
    "its frame": lambda s: setattr(s.body("a").frame, "pos", (0, 0, 1 + 1e-15)),
    "a joint": lambda s: setattr(s.joint("hinge"), "range", (-1, 1 + 1e-15)),
    "a shape": lambda s: setattr(s.geom("ball"), "friction", (0.9, 0.005, 0.0001)),
    "a name": lambda s: setattr(s.geom("ball"), "name", "sphere"),
    "a mesh": lambda s: setattr(s.mesh("thing"), "scale", (1, 1, 2)),
    "a material": lambda s: setattr(s.material("paint"), "rgba", (0, 1, 0, 1)),
    "a sensor": lambda s: setattr(s.sensor("at"), "cutoff", 3.0),
    "an actuator": lambda s: setattr(s.actuator("motor"), "ctrlrange", (-1, 2)),
    "numbers": lambda s: setattr(s.numeric("n"), "data", [1.0, 3.0]),
    "a tendon": lambda s: setattr(s.tendon("pull"), "width", 0.5),
    "the tree": lambda s: s.body("a").add_body(name="c", mass=1, inertia=(1, 1, 1)),
    "a light": lambda s: s.worldbody.add_light(name="lamp"),
    "memory": lambda s: setattr(s, "memory", 1 << 20),
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_of_a_spec_is_another_scene(folder, compiles, what):
    compiled(thing(folder))
    found = compiled(thing(folder, CHANGES[what]))
    assert len(compiles) == 2
    assert contents(found) == contents(thing(folder, CHANGES[what]).compile())


def test_where_a_tendon_runs_is_part_of_it(folder, compiles):
    assert contents(compiled(thing(folder))) != contents(compiled(thing(folder, pull=2.0))) and len(compiles) == 2


def test_a_file_that_changed_is_read_again(folder, compiles):
    before = compiled(thing(folder))
    (folder / "thing.obj").write_text(TETRAHEDRON.format(0.4))
    os.utime(folder / "thing.obj", (1e9, 1e9))  # MuJoCo looks at whole seconds
    after, again = compiled(thing(folder)), compiled(thing(folder))
    assert len(compiles) == 2 and contents(after) == contents(again) != contents(before)


def test_what_is_damaged_or_missing_is_made_again(folder, compiles):
    whole = contents(compiled(thing(folder)))
    about, model = sorted((folder / "cache" / "scenes").iterdir())
    assert (about.suffix, model.suffix) == (".json", ".mjb")
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for path, content in ((model, whole[:-100]), (model, bytes(flipped)), (about, b"{"), (about, b"[]"), (model, None)):
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        compiles.clear()
        assert contents(compiled(thing(folder))) == whole and len(compiles) == 1
    compiles.clear()
    assert contents(compiled(thing(folder))) == whole and not compiles
    assert sorted((folder / "cache" / "scenes").iterdir()) == [about, model]  # nothing half written is left


def test_files_are_kept_only_where_the_spec_says_which_they_are(folder, compiles, monkeypatch):
    """The same words in two folders are two meshes."""
    (folder / "other").mkdir()
    (folder / "other" / "thing.obj").write_text(TETRAHEDRON.format(0.9))
    text = "<mujoco><asset><mesh name='thing' file='thing.obj'/></asset><worldbody><body><freejoint/>"
    text += "<geom type='mesh' mesh='thing'/></body></worldbody></mujoco>"
    models = []
    for place in (folder, folder / "other"):
        (place / "robot.xml").write_text(text)
        child = mujoco.MjSpec.from_file(str(place / "robot.xml"))
        for folders in ([place], [place], []):
            scene = mujoco.MjSpec()
            scene.attach(child.copy(), frame=scene.worldbody.add_frame(), prefix="r/")
            models.append(contents(compiled(scene, folders=folders)))
    assert len(set(models[:3])) == len(set(models[3:])) == 1 and models[0] != models[3]
    assert len(compiles) == 4 and len(list((folder / "cache" / "scenes").glob("*.mjb"))) == 2


def test_primitive_shapes_and_what_cannot_be_seen_are_compiled_every_time(folder, compiles):
    plain = mujoco.MjSpec()
    plain.worldbody.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.1, 0, 0))
    in_memory = thing(folder, file="only_here.obj")
    in_memory.assets = {"only_here.obj": TETRAHEDRON.format(0.3).encode()}
    for spec in (plain, plain, in_memory, in_memory):
        compiled(spec)
    assert len(compiles) == 4 and not list((folder / "cache").rglob("*.mjb"))


def test_a_model_that_was_found_good_is_not_compiled_to_see(folder, compiles):
    check(thing(folder))
    check(thing(folder))
    assert len(compiles) == 1 and not list((folder / "cache").rglob("*.mjb"))
    broken = thing(folder, lambda s: s.body("b").add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="none"))
    for _ in range(2):
        with pytest.raises(ValueError, match="none"):
            check(broken)


def test_the_cache_holds_no_more_than_its_limit(folder, monkeypatch):
    place = folder / "cache" / "scenes"
    sizes = [len(contents(compiled(thing(folder))))]
    first = next(place.glob("*.mjb"))
    os.utime(first, (1, 1))
    monkeypatch.setattr(cache, "LIMIT", int(2.5 * sizes[0]))
    compiled(thing(folder, CHANGES["a body"]))
    assert len(list(place.glob("*.mjb"))) == 2
    compiled(thing(folder))  # used, so the other one goes
    os.utime(next(p for p in place.glob("*.mjb") if p != first), (1, 1))
    compiled(thing(folder, CHANGES["a joint"]))
    assert len(list(place.glob("*.mjb"))) == 2 and first.exists()
    assert sum(p.stat().st_size for p in place.iterdir()) <= cache.LIMIT


def test_a_cache_that_cannot_be_written_is_no_error(folder, monkeypatch):
    (folder / "file").write_text("")
    monkeypatch.setenv("MANIKIN_CACHE", str(folder / "file"))
    assert compiled(thing(folder)).nmesh == 1


def test_a_makers_robot_is_the_same_from_disk(menagerie_root, tmp_path, monkeypatch, compiles):
    monkeypatch.setenv("MANIKIN_CACHE", str(tmp_path))
    models = []
    for _ in range(2):
        env = manikin.make("PickCube-v2", robot="panda:menagerie")
        models.append((contents(env.scene.model), env.scene.hash, env.state_hash().tolist()))
        env.close()
        models[-1] += (len(compiles),)
        compiles.clear()
    assert models[0][:3] == models[1][:3] and models[1][3] < models[0][3]
    kept = json.loads(next(tmp_path.glob("scenes/*.mjb")).with_suffix(".json").read_text())
    assert len(kept["files"]) > 50 and all(str(menagerie_root.resolve()) in name for name in kept["files"])
