"""SIMPLER's tasks of the Google Robot: grids, starts, instructions and success against the figures of the original."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.assets.paths import data_root
from manikin.env.task import Task
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.props.station import DRAWERS, FINISHES, JOINT_FRICTION, station
from manikin.tasks.simpler.google_cabinet import EVEN_POSES, POSES
from manikin.tasks.simpler.google_drawers import GoogleCloseDrawer, GoogleOpenDrawer
from manikin.tasks.simpler.google_move_near import GoogleMoveNear
from manikin.tasks.simpler.google_pick_coke_can import GooglePickCokeCan, GooglePickObject
from manikin.tasks.simpler.google_place_apple import GooglePlaceAppleInDrawer

EVERY = (
    *(GooglePickCokeCan, GooglePickObject, GoogleMoveNear),
    *(GoogleOpenDrawer, GoogleCloseDrawer, GooglePlaceAppleInDrawer),
)
PHOTOGRAPHS = data_root() is not None and (data_root() / "simpler" / "real_inpainting").is_dir()


@pytest.fixture(autouse=True)
def stand_ins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same scenes everywhere: primitives."""
    if not any(word in request.node.name for word in ("photograph", "published")):
        monkeypatch.delenv("MANIKIN_DATA", raising=False)


def made(task: type[Task], n: int = 1, *, seed: object = 0, **config: object) -> manikin.Env:
    env = manikin.make(
        task, num_envs=n, config={"trials": "grid", **config}, autoreset="disabled", observe="state_dict"
    )
    env.reset(seed=seed)
    return env


@pytest.mark.parametrize("task", EVERY)
def test_an_episode_is_as_long_as_the_originals_and_does_not_end_with_success(task: type[Task]) -> None:
    steps = {"GoogleOpenDrawer-v1": 113, "GoogleCloseDrawer-v1": 113, "GooglePlaceAppleInDrawer-v1": 200}
    env = manikin.make(task)
    assert env.horizon == steps.get(task.id, 80) and env.control_hz == 3 and not task.terminate
    assert env.controller.name == "ee_delta_pose_planned"
    for trials in ("random", "grid"):
        again = manikin.make(task, num_envs=2, config={"trials": trials})
        _, info = again.reset(seed=[1, 4])
        assert not info["success"].any() and not info["health"].any()
        with pytest.raises(UnknownNameError, match="arm_colour"):
            manikin.make(task, config={"arm_colour": "blue"})


@pytest.mark.parametrize("orientation", ["horizontal", "vertical", "standing"])
def test_the_can_is_at_the_places_of_the_grid(orientation: str) -> None:
    env = made(GooglePickCokeCan, 25, orientation=orientation)
    places = env.h.thing.pos[:, :2].numpy()
    wanted = [(x, y) for x in np.linspace(-0.35, -0.12, 5) for y in np.linspace(-0.02, 0.42, 5)]
    assert np.allclose(places, wanted, atol=2e-3)
    axis = manikin.math.quat_rotate(env.h.thing.quat, torch.tensor([[0.0, 1.0, 0.0]]).expand(25, 3)).abs()
    along = {"horizontal": 1, "vertical": 0, "standing": 2}[orientation]
    assert (axis[:, along] > 0.999).all()
    if orientation == "standing":  # as the original logged it for 'vertical' in its own words: p_z 0.9196, upright
        assert np.allclose(env.h.thing.pos[:, 2], 0.8875 + 0.069, atol=2e-3)
    with pytest.raises(SceneError, match="0 to 24"):
        env.reset(seed=1)  # the last of 25 rows has 25


def test_the_expert_lifts_the_can_and_lifting_is_latched() -> None:
    env = made(GooglePickCokeCan, 3, seed=[2, 12, 24], orientation="horizontal")
    expert = WaypointExecutor(env)
    seen = []
    for _ in range(45):
        info = env.step(expert.act())[-1]
        seen.append([info[k].clone() for k in ("is_grasped", "lifted", "lifted_significantly", "success")])
    grasped, lifted, high, success = (torch.stack(each) for each in zip(*seen, strict=True))
    assert success[-1].all() and (high.sum(0) >= 5).all()
    assert torch.equal(info["n_lift_significant"], high.sum(0))
    assert not (lifted & ~grasped).any()  # cleared when the grasp is lost
    assert not (lifted & (env.h.thing.pos[:, 2] < 0)).any()
    still = torch.zeros(3, 7)
    still[:, 6] = 1.0
    for _ in range(12):  # let go: five steps up there stay a success
        info = env.step(still)[-1]
    assert not info["is_grasped"].any() and not info["lifted"].any() and info["success"].all()


def test_an_object_has_its_name_in_the_instruction() -> None:
    env = manikin.make(GooglePickObject, num_envs=40)
    env.reset(seed=0)
    assert {"pick coke can", "pick redbull can", "pick green cube", "pick spoon", "pick eggplant"} < set(
        env.instruction
    )
    assert all(len(said.split()) <= 4 for said in env.instruction)


def test_moving_near_has_sixty_trials() -> None:
    env = made(GoogleMoveNear, 60)
    said = env.instruction
    assert said[:6] == [
        *("move blue plastic bottle near pepsi can", "move blue plastic bottle near orange"),
        *("move pepsi can near blue plastic bottle", "move pepsi can near orange"),
        *("move orange near blue plastic bottle", "move orange near pepsi can"),
    ]
    assert said[12] == "move 7up can near apple" and said[59] == "move redbull can near pepsi can"
    # six pairs in each of five triplets, of which two share a pair of objects with another one, both ways
    assert said[0:6] == said[6:12] and len(set(said)) == 5 * 6 - 2 * 2
    places = torch.stack([thing.pos[:, :2] for thing in env.h.things], 1)
    for first, wanted in (
        (0, [(-0.33, 0.04), (-0.33, 0.34), (-0.13, 0.19)]),
        (6, [(-0.13, 0.04), (-0.33, 0.19), (-0.13, 0.34)]),
    ):
        assert torch.allclose(places[first], torch.tensor(wanted), atol=3e-3)
    assert env.h.things[1].masses[12] == pytest.approx(0.0546, abs=2e-3)  # the apple is light here


def test_near_is_judged_by_what_moved_where() -> None:
    """Trial 0: bottle (0) to pepsi can (1), orange (2) beside; h are half diagonals of boxes as they stand."""
    env = made(GoogleMoveNear, 5, seed=[0] * 5)
    can = env.h.things[1].pos.clone()
    bottle = env.h.things[0].pos.clone()
    reach = 0.0426 + 0.0467 + 0.10
    place = can.clone()
    place[:, 2] = bottle[:, 2]
    place[0, 1] -= reach - 0.01  # near
    place[1, 1] -= reach + 0.01  # not near
    place[2] = bottle[2] + torch.tensor([0.02, 0.0, 0.0])  # hardly moved
    place[3, 1] -= reach - 0.01
    place[4] = bottle[4]
    env.h.things[0].set_pose(place, env.h.things[0].quat)
    away = env.h.things[2].pos.clone()
    away[3] += torch.tensor([0.0, -0.4, 0.0])  # moved more than the bottle
    env.h.things[2].set_pose(away, env.h.things[2].quat)
    env.world.forward()
    info = env.task.evaluate(env.h)
    assert info["success"].tolist() == [True, False, False, False, False]
    assert info["near_tgt_obj"].tolist() == [True, False, False, True, False]
    assert info["moved_correct_obj"].tolist() == [True, True, False, False, False]
    assert info["moved_wrong_obj"].tolist() == [False, False, False, True, False]


def test_the_cabinet_is_the_originals() -> None:
    model = station().compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for name in DRAWERS:
        heavy = model.body(name).mass[0]
        assert heavy == pytest.approx(11.38, abs=0.01)
        assert model.joint(name).range.tolist() == [0.0, 0.5] and model.dof_frictionloss.max() < 6
    boxes = [g for g in range(model.ngeom) if model.geom_contype[g]]
    assert len(boxes) == 22 + 9  # and the handles, which the original only shows
    plain = station(handles=False).compile()
    assert plain.geom_contype.sum() == 22
    fronts = [data.body(name).xpos[2] for name in DRAWERS]
    assert np.allclose(-np.diff(fronts) - 0.14, 0.105)  # [m] between fronts


@pytest.mark.parametrize("coefficient", [JOINT_FRICTION, 0.2])
def test_a_drawer_moves_where_the_pull_exceeds_the_friction_of_its_joint(coefficient: float) -> None:
    """That is the coefficient times the drawer's weight."""
    model = station(joint_friction=coefficient).compile()
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    most = coefficient * model.body("middle").mass[0] * 9.81
    for share, moves in ((0.9, False), (1.3, True)):
        data = mujoco.MjData(model)
        data.joint("middle").qfrc_applied[0] = share * most
        for _ in range(round(1.0 / model.opt.timestep)):
            mujoco.mj_step(model, data)
        assert (float(data.joint("middle").qpos[0]) > 0.02) is moves


def test_the_friction_of_the_drawers_is_an_option() -> None:
    env = manikin.make("GoogleOpenDrawer-v1", config={"joint_friction": 0.1})
    model, plain = env.model_data(0)[0], station().compile()
    assert model.joint("cabinet/top").frictionloss[0] == pytest.approx(2 * plain.joint("top").frictionloss[0])
    env.close()
    with pytest.raises(ConfigError, match="joint_friction of the cabinet must be 0 or more, got -1"):
        station(joint_friction=-1.0)


def test_the_cabinets_differ_in_colours_alone() -> None:
    """Reference: the colours in the original's four files."""
    wood, top, dark, dim = (
        (0.388, 0.322, 0.275),
        (0.635, 0.529, 0.412),
        (0.325, 0.187, 0.1166),
        (0.0127, 0.0023, 0.0005),
    )
    expected = {
        "mk_station_recolor": {dark, dim},
        "mk_station": {wood, top, (1.0, 1.0, 1.0), (0.1, 0.1, 0.1)},
        "mk_station2": {wood, top, (0.1, 0.1, 0.1)},
    }
    models = {name: station(finish=name).compile() for name in FINISHES}
    for name, colours in expected.items():
        found = {tuple(round(float(x), 4) for x in rgba[:3]) for rgba in models[name].geom_rgba}
        assert found == colours, name
    stone = models["mk_station3"].geom_rgba != models["mk_station2"].geom_rgba
    (slab,) = np.flatnonzero(stone.any(1))
    assert models["mk_station3"].geom_pos[slab, 2] == pytest.approx(0.855)
    for model in models.values():
        for field in ("geom_size", "geom_pos", "geom_contype", "body_mass", "dof_frictionloss"):
            assert np.array_equal(getattr(model, field), getattr(models["mk_station"], field)), field
    with pytest.raises(UnknownNameError, match=r"'oak'.*mk_station3"):
        station(finish="oak")
    with pytest.raises(UnknownNameError, match=r"cabinet of GoogleOpenDrawer-v1.*mk_station2"):
        manikin.make("GoogleOpenDrawer-v1", config={"cabinet": "oak"})


@pytest.mark.parametrize(("task", "start"), [(GoogleOpenDrawer, 0.0), (GoogleCloseDrawer, 0.2)])
def test_drawers_begin_shut_or_open_and_count_as_the_original_says(task: type[Task], start: float) -> None:
    env = made(task, 3, seed=[0] * 3, drawer="middle", pose="a1")
    assert env.instruction == [f"{task.verb} middle drawer"] * 3  # type: ignore[attr-defined]
    opening = torch.zeros(3, 3)
    opening[:, 1] = torch.tensor([0.049, 0.1, 0.151])
    assert env.h.cabinet.qpos[0].tolist() == pytest.approx([0.0, start, 0.0])
    env.h.cabinet.set_qpos(opening)
    env.world.forward()
    said = env.task.evaluate(env.h)
    success = said["success"].tolist()
    assert said["q"].tolist() == pytest.approx([0.049, 0.1, 0.151])
    assert success == ([False, False, True] if start == 0 else [True, False, False])


def test_the_cabinet_is_where_each_pose_of_the_robot_sees_it() -> None:
    """Seen from the robot's base, the cabinet is at the same place whether its pose is given or drawn."""
    env = made(GoogleOpenDrawer, 9, drawer="top")
    base = env.robot.base_pose
    for k, name in enumerate(POSES):
        one = made(GoogleOpenDrawer, pose=name, drawer="top")
        seen = []
        for where, row, robot in ((env, k, base), (one, 0, one.robot.base_pose)):
            handle = torch.cat([where.h.cabinet.place("handle/top")[row], robot.new_tensor([1.0, 0, 0, 0])])
            seen.append(manikin.math.pose_mul(manikin.math.pose_inv(robot[None]), handle[None])[0, :3])
        assert torch.allclose(*seen, atol=1e-5), name
        assert torch.allclose(one.robot.base_pose[:2], torch.tensor(POSES[name][:2]))


def test_the_apple_counts_once_it_touched_the_drawers_bottom_in_the_second_half() -> None:
    env = made(GooglePlaceAppleInDrawer, 2, seed=[0, 13])
    assert env.instruction == ["open top drawer"] * 2
    env.h.cabinet.set_qpos(torch.tensor([0.2, 0.0, 0.0]))
    bottom = env.h.cabinet.link_pose("top_floor")[:, :3].clone()
    bottom[:, 0] += 0.4  # in the part that is open
    bottom[:, 2] += 0.055
    env.h.apple.set_pose(bottom)
    env.h.steps.set(torch.tensor([98.0, 40.0]))
    counts = []
    for _ in range(3):
        info = env.step(torch.zeros(2, 7))[-1]
        counts.append(info["has_contact"].tolist())
    assert counts == [[1, 1], [2, 2], [3, 3]] and info["is_drawer_open"].all()
    assert torch.allclose(info["q"], env.h.cabinet.qpos[:, 0]) and (info["q"] > 0.15).all()
    assert info["success"].tolist() == [True, False]
    assert env.instruction == ["place apple into top drawer", "open top drawer"]
    with pytest.raises(SceneError, match="0 to 26"):
        env.reset(seed=[26, 27])


@pytest.mark.parametrize("task", [GoogleOpenDrawer, GoogleCloseDrawer])
def test_drawers_have_twenty_seven_trials(task: type[Task]) -> None:
    env = made(task, 27)
    word = task.verb  # type: ignore[attr-defined]
    assert env.instruction == [f"{word} {name} drawer" for name in ("top", "middle", "bottom") for _ in range(9)]
    assert env.h.pose.value.tolist() == [*range(9)] * 3 and task.trial_count == 27
    some = made(task, 3, pose="c0")
    assert some.h.drawer.value.tolist() == [0, 1, 2] and some.h.pose.value.tolist() == [0, 0, 0]
    with pytest.raises(SceneError, match="0 to 2"):
        some.reset(seed=1)  # the last of three rows has 3
    with pytest.raises(UnknownNameError, match="drawer of"):
        manikin.make(task, config={"drawer": "left"})
    with pytest.raises(UnknownNameError, match="pose of"):
        manikin.make(task, config={"pose": "d0"})


def test_variant_aggregation_has_even_poses() -> None:
    """Reference: the paper's variants: x 0.65, 0.75, 0.85 times y -0.2, 0, 0.2, no turn; the apple's at x 0.65."""
    assert {pose[:2] for pose in EVEN_POSES.values()} == {(x, y) for x in (0.65, 0.75, 0.85) for y in (-0.2, 0.0, 0.2)}
    assert all(pose[2] == 0.0 for pose in EVEN_POSES.values())
    env = manikin.make(GooglePlaceAppleInDrawer, config={"poses": "even"})
    assert torch.allclose(env.task.stands, torch.tensor([(0.65, -0.2, 0.0), (0.65, 0.0, 0.0), (0.65, 0.2, 0.0)]))
    with pytest.raises(ConfigError, match="poses='photographs' alone"):
        manikin.make(GoogleOpenDrawer, observe="rgb", config={"look": "matched", "poses": "even"})
    with pytest.raises(UnknownNameError, match="poses of"):
        manikin.make(GoogleOpenDrawer, config={"poses": "odd"})


@pytest.mark.parametrize(
    ("task", "seeds"),
    [
        (GoogleMoveNear, [2, 16, 52]),
        (GoogleOpenDrawer, [0, 13, 19, 23]),
        (GoogleCloseDrawer, [8, 12, 22]),
        (GooglePlaceAppleInDrawer, [4, 22]),
    ],
)
def test_the_expert_succeeds(task: type[Task], seeds: list[int]) -> None:
    env = made(task, len(seeds), seed=seeds)
    expert, seen = WaypointExecutor(env), []
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
        seen.append(info["success"])
    assert seen[-1].all() and not torch.stack(seen)[:5].any() and not info["health"].any()


def test_the_model_of_the_cabinet_is_the_published_file() -> None:
    """Every box of the original's URDF and of ours: where it is in its link, its size, whether it collides."""
    root = data_root()
    file = None if root is None else root / "simpler" / "custom" / "mk_station_recolor.urdf"
    if file is None or not file.is_file():
        pytest.skip("needs MANIKIN_DATA/simpler/custom/mk_station_recolor.urdf")
    import xml.etree.ElementTree as ET

    def numbers(text: str) -> tuple[float, ...]:
        return tuple(round(float(x), 4) for x in text.split())

    tree = ET.parse(file).getroot()
    theirs = {
        (
            link.attrib["name"].removesuffix("_drawer"),
            kind,
            numbers(shape.find("origin").attrib["xyz"]),  # type: ignore[union-attr]
            numbers(shape.find("geometry/box").attrib["size"]),  # type: ignore[union-attr]
        )
        for link in tree.findall("link")
        for kind in ("visual", "collision")
        for shape in link.findall(kind)
    }
    model = station(handles=False).compile()
    ours = set()
    for g in range(model.ngeom):
        name = model.body(model.geom_bodyid[g]).name.removesuffix("_floor")
        box = tuple(numbers(" ".join(map(str, v))) for v in (model.geom_pos[g], 2 * model.geom_size[g]))
        ours |= {(name, kind, *box) for kind in ("visual", *(["collision"] if model.geom_contype[g] else []))}
    assert ours == theirs
    for joint in tree.findall("joint"):
        name = joint.find("child").attrib["link"].removesuffix("_drawer")  # type: ignore[union-attr]
        if name in DRAWERS:
            assert numbers(joint.find("origin").attrib["xyz"]) == (0.0, 0.0, DRAWERS[name])  # type: ignore[union-attr]


@pytest.mark.skipif(not PHOTOGRAPHS, reason="needs the photographs of MANIKIN_DATA/simpler")
def test_each_pose_has_its_photograph() -> None:
    """A corner of the picture that nothing is drawn on shows the photograph of the row's own pose."""
    from manikin.assets.pictures import read_picture

    names = tuple(POSES)
    env = manikin.make(
        GoogleOpenDrawer, num_envs=9, observe="rgb", autoreset="disabled", config={"look": "matched", "trials": "grid"}
    )
    pictures = _image(env.reset(seed=list(range(9, 18)))[0])
    corners = pictures[:, 8:56:2, 8:56:2].float()
    root = data_root()
    assert root is not None
    files = [root / "simpler" / "real_inpainting" / f"open_drawer_{name}.png" for name in names]
    real = torch.stack([torch.from_numpy(read_picture(str(file), what="photograph"))[4:28, 4:28] for file in files])
    apart = (corners[:, None] - real[None].float()).abs().mean((2, 3, 4))
    assert apart.argmin(1).tolist() == list(range(9)), apart


@pytest.mark.skipif(not PHOTOGRAPHS, reason="needs the photographs of MANIKIN_DATA/simpler")
@pytest.mark.parametrize(
    ("task", "config"), [(GooglePickCokeCan, {}), (GoogleMoveNear, {}), (GoogleOpenDrawer, {"pose": "c1"})]
)
def test_a_matched_picture_is_the_photograph_but_for_what_is_drawn(task: type[Task], config: dict[str, str]) -> None:
    pictures = []
    for look in ("plain", "matched"):
        env = manikin.make(task, observe="rgb", config={"look": look, **config})
        pictures.append(_image(env.reset(seed=0)[0]).clone())
        env.close()
    plain, matched = pictures
    assert plain.shape[-3:] == (512, 640, 3) == matched.shape[-3:]
    same = (plain == matched).all(-1).float().mean()
    assert 0.005 < same < 0.6


def _image(seen: object) -> torch.Tensor:
    """The one picture among what is observed."""
    (one,) = [value for value in _values(seen) if value.dtype == torch.uint8]
    return one


def _values(seen: object) -> list[torch.Tensor]:
    if isinstance(seen, dict):
        return [value for part in seen.values() for value in _values(part)]
    assert isinstance(seen, torch.Tensor)
    return [seen]
