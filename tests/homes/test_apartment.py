"""Apartments as data, the built-in ones, and what a scene makes of them; physics is plain MuJoCo's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from furnished import built
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.homes import VARIATIONS, Fixture, Receptacle, apartment, furnish
from manikin.homes.furniture import chair, shelf, sofa, table, tv_stand
from manikin.homes.joinery import chest, counter, cupboard, fridge
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics

SEEDS = range(VARIATIONS + 4)  # and those of the validation split
JOINTED = {
    "counter": counter("it", ["drawers", "sink", "drawer_over_door"]),
    "fridge": fridge("it"),
    "cupboard": cupboard("it", 3),
    "chest": chest("it", 3),
}


def alone(mechanism: Any) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mechanism.model.copy().compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def corners(model: mujoco.MjModel, data: mujoco.MjData, g: int) -> np.ndarray:
    """(8, 3) corners of a geom's bounding box in the world."""
    unit = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    half, middle = model.geom_aabb[g, 3:], model.geom_aabb[g, :3]
    return (unit * half + middle) @ data.geom_xmat[g].reshape(3, 3).T + data.geom_xpos[g]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_apartment_has_what_a_home_needs_and_nothing_of_it_touches(seed: int) -> None:
    home = apartment(seed)
    kinds = {thing.kind for thing in (*home.fixtures, *home.mechanisms)}
    assert kinds >= {"counter", "fridge", "cupboard", "table", "chair", "sofa", "tv_stand"}
    assert any(name.startswith("counter/sink") for name in home.receptacles)
    model, data = built(home)
    for share in (0.0, 0.5, 1.0):
        data.qpos[:] = model.jnt_range[:, 0] + share * (model.jnt_range[:, 1] - model.jnt_range[:, 0])
        mujoco.mj_forward(model, data)
        assert data.ncon == 0
    assert (model.jnt_limited == 1).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_furniture_stands_on_the_floor_within_the_walls_and_apart(seed: int) -> None:
    home = apartment(seed)
    model, data = built(home)
    boxes: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for g in range(1, model.ngeom):
        root = model.body(model.body_rootid[model.geom_bodyid[g]]).name.split("/")[0]
        if root == home.name or root in ("rug", "world"):
            continue
        points = corners(model, data, g)
        low, high = boxes.get(root, (points[0], points[0]))
        boxes[root] = np.minimum(low, points.min(0)), np.maximum(high, points.max(0))
    assert set(boxes) == {t.name for t in (*home.fixtures, *home.mechanisms)} - {"rug"}
    for name, (low, high) in boxes.items():
        assert (low[:2] >= np.array(home.low) - 1e-9).all(), name
        assert (high[:2] <= np.array(home.high) + 1e-9).all(), name
        assert low[2] == pytest.approx(1.45 if name == "cupboard" else 0.0, abs=1e-6), name
    names = sorted(boxes)
    for i, one in enumerate(names):
        for two in names[i + 1 :]:
            gap = np.maximum(boxes[one][0] - boxes[two][1], boxes[two][0] - boxes[one][1]).max()
            assert gap > 0, (one, two)


def test_a_seed_is_one_apartment_and_seeds_differ() -> None:
    models = [built(apartment(seed))[0] for seed in (0, 0, 1, 2)]
    states = [np.concatenate([m.geom_pos.ravel(), m.body_pos.ravel()]) for m in models]
    assert np.array_equal(states[0], states[1])
    assert apartment(np.int64(2)).name == "apartment2"  # type: ignore[arg-type]
    sizes = {(apartment(seed).low, apartment(seed).high) for seed in SEEDS}
    assert len(sizes) == len(SEEDS)


@pytest.mark.parametrize("word", JOINTED)
def test_a_ball_dropped_into_a_receptacle_stays_in_it(word: str) -> None:
    """Also those in drawers: a box that held something else, or that lies beside its board, would let it through."""
    mechanism = JOINTED[word]
    radius = 0.015
    for receptacle in mechanism.receptacles:
        spec = mechanism.model.copy()
        body = next(b for b in spec.bodies if b.name == receptacle.link)
        middle = np.array(receptacle.pos)
        low = middle[2] - receptacle.half[2]
        data0 = alone(mechanism)[1]
        start = data0.body(receptacle.link).xpos + np.array([middle[0], middle[1], low + radius + 0.002])
        ball = spec.worldbody.add_body(name="ball", pos=start)
        ball.add_freejoint()
        ball.add_geom(size=[radius, 0, 0], condim=6, friction=(1, 0.05, 0.01))
        for geom in spec.geoms:
            if geom.contype:
                geom.contype, geom.conaffinity = 0, 3
        spec.geoms[-1].contype = spec.geoms[-1].conaffinity = 1
        model = spec.compile()
        data = mujoco.MjData(model)
        for _ in range(250):
            mujoco.mj_step(model, data)
        moved = data.body("ball").xpos - start
        assert np.abs(moved[:2]).max() < 0.01, (receptacle.name, body.name)
        assert -0.006 < moved[2] < 0.001, receptacle.name


@pytest.mark.parametrize("word", JOINTED)
def test_handles_stick_out_of_closed_fronts_and_collide(word: str) -> None:
    model, data = alone(JOINTED[word])
    for j in range(model.njnt):
        joint = model.joint(j).name
        bar = model.geom(f"handle/{joint}/bar")
        assert bar.contype[0] and bar.conaffinity[0]
        site = data.site(f"handle/{joint}").xpos
        assert np.allclose(site, data.geom(f"handle/{joint}/bar").xpos)
        others = [
            corners(model, data, g)[:, 0].max()
            for g in range(model.ngeom)
            if "handle" not in model.geom(g).name and abs(data.geom_xpos[g][2] - site[2]) < 0.15
        ]
        assert site[0] - 0.008 - max(others) > 0.02  # [m] fingers fit behind it
        before = site.copy()
        data.joint(joint).qpos = 0.05
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        assert data.site(f"handle/{joint}").xpos[0] > before[0]  # pulled, it opens
        data.joint(joint).qpos = 0.0
        mujoco.mj_kinematics(model, data)


def test_a_drawer_comes_out_nearly_whole_and_what_lies_in_it_comes_along() -> None:
    home = apartment(0)
    b = SceneBuilder([], Physics())
    handles = furnish(b, home)
    model = b.compile().model
    stroke = model.joint("counter/drawer0").range[1]
    assert 0.4 < stroke < 0.55
    assert model.joint("fridge/top_door").range[1] >= np.pi / 2
    name = next(r for r in home.receptacles if r == "counter/drawer0")
    owner, receptacle = home.receptacle(name)
    assert owner.name == "counter" and receptacle.link == "drawer0"
    assert handles.mechanism("counter").joints == owner.joints  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "fixture", [table("it"), chair("it"), sofa("it"), tv_stand("it"), shelf("it")], ids=lambda f: f.kind
)
def test_receptacles_of_fixtures_begin_on_a_board(fixture: Fixture) -> None:
    tops = [
        (shape.pos[2] + shape.size[2], np.array(shape.pos[:2]), np.array(shape.size[:2])) for shape in fixture.shapes
    ]
    for receptacle in fixture.receptacles:
        low = receptacle.pos[2] - receptacle.half[2]
        middle, half = np.array(receptacle.pos[:2]), np.array(receptacle.half[:2])
        assert any(
            abs(top - low) < 1e-9 and (np.abs(middle - at) + half <= size + 1e-9).all() for top, at, size in tops
        ), receptacle.name


def test_what_cannot_be_is_named() -> None:
    for seed in (-1, 1.5, "x", None, 2**63):
        with pytest.raises(ConfigError, match=f"a whole number from 0 on, with at most 63 bits, not {seed!r}"):
            apartment(seed)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="drawers"):
        counter("it", ["oven"])
    for wrong in ([], ["sink", "sink"]):
        with pytest.raises(SceneError, match="one of them a sink"):
            counter("it", wrong)
    with pytest.raises(SceneError, match="hinge is 1"):
        fridge("it", hinge=0.5)
    with pytest.raises(SceneError, match="1 to 8 drawers"):
        chest("it", 9)
    with pytest.raises(SceneError, match="needs a door"):
        cupboard("it", 0)
    home = apartment(0)
    with pytest.raises(UnknownNameError, match="table/top"):
        home.receptacle("bed/top")
    with pytest.raises(UnknownNameError, match="sofa"):
        home.of_kind("bed")
    with pytest.raises(SceneError, match="several things are named 'it'"):
        replace(home, fixtures=(table("it"), chair("it")), mechanisms=())
    place = Receptacle(name="it/top", pos=(0, 0, 1), half=(0.1, 0.1, 0.1), link="lid")
    with pytest.raises(SceneError, match="'lid', which it does not have"):
        replace(home, fixtures=(Fixture(name="it", kind="box", receptacles=(place,)),), mechanisms=())
    with pytest.raises(SceneError, match="empty"):
        replace(home, low=home.high)
    with pytest.raises(UnknownNameError, match="counter"):
        furnish(SceneBuilder([], Physics()), home).mechanism("oven")
