"""Rows with different joints: a LayoutEnv against each layout's own environment, and as Gymnasium's vector API."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
import pytest
import torch

import manikin
from manikin.author.raw import raw_physics
from manikin.author.speed import measure_speed
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.data.replay.verify import replay
from manikin.env.adapters.single import SingleEnv
from manikin.env.env import Env
from manikin.env.layouts.env import LayoutEnv
from manikin.env.observe import Vision
from manikin.env.registry import task_class
from manikin.errors import ActionError, ClosedError, ConfigError, DataError, SceneError, UnknownNameError
from manikin.eval.film import Film
from manikin.eval.runner import run_episodes
from manikin.plan.executor import WaypointExecutor
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random_policy import RandomPolicy
from manikin.props.cabinet import CABINETS, Cabinet
from manikin.render import make_renderer
from manikin.spec.budget import Budget
from manikin.spec.camera import CameraSpec
from manikin.view.hold import HoldPolicy
from manikin.view.session import Session

DRAWERS = task_class("OpenCabinetDrawer-v2")


class OpenAny(DRAWERS):
    """Three of the cabinets, to be quick."""

    layouts = ("one_drawer", "three_drawers", "two_drawers_two_doors")


def make(n: int, **options) -> LayoutEnv:
    env = manikin.make(OpenAny, num_envs=n, **{"observe": "state_dict", "reward": "dense", **options})
    assert isinstance(env, LayoutEnv)
    return env


def moves(n: int, steps: int) -> torch.Tensor:
    return torch.rand(steps, n, 8, generator=torch.Generator().manual_seed(1)) * 2 - 1


def test_room_is_that_of_every_layout_and_handles_are_each_layouts_own(monkeypatch):
    env = make(3)
    assert env.budget is None and env.fingerprint()["budget"] is None  # the CPU needs none
    assert not hasattr(env, "h")
    with pytest.raises(AttributeError, match=r"each has its own h: use env\.part\(row\)\[0\]\.h"):
        env.h  # noqa: B018
    rooms = (Budget(nconmax=24, njmax=96), Budget(nconmax=48, njmax=64, nccdmax=8), Budget(nconmax=16, njmax=64))
    env.reset(seed=0)
    for part, room in zip(env.parts(), rooms, strict=True):
        monkeypatch.setattr(part.env, "budget", room)
    assert env.budget == Budget(nconmax=48, njmax=96, nccdmax=24)  # None is as many as nconmax
    assert env.fingerprint()["budget"] == {"nconmax": 48, "njmax": 96, "nccdmax": 24}


@pytest.mark.parametrize("device", ["cpu", pytest.param("warp:cpu", marks=pytest.mark.xdist_group("warp"))])
def test_rows_are_their_layouts_own_environment(device):
    """To the bit on the CPU; (e), another layout, is a model of its own compiled by itself."""
    if device != "cpu":
        pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    seeds, steps = ([0, 1, 2, 4], 4) if device == "cpu" else ([0, 1], 2)
    options = {"device": device, "autoreset": "disabled", "budget": None if device == "cpu" else Budget()}
    env = make(len(seeds), **options)
    seen, info = env.reset(seed=seeds)
    assert info["layout"].tolist() == [0, 1, 2, 1][: len(seeds)]
    actions = moves(len(seeds), steps)
    course = [env.step(a) for a in actions]
    for row, seed in enumerate(seeds):
        word = OpenAny.layouts[seed % 3]
        own = Env(OpenAny(layout=word), observe="state_dict", reward="dense", **options)
        first, _ = own.reset(seed=[seed])
        width = len(own.h.cabinet.joints)
        pairs = [(seen, first)]
        for action, whole in zip(actions, course, strict=True):
            alone = own.step(action[row : row + 1])
            pairs.append((whole[0], alone[0]))
            assert torch.allclose(whole[1][row], alone[1][0], atol=0 if device == "cpu" else 1e-5)
        for many, one in pairs:
            for group in ("policy", "privileged"):
                for name, value in one[group].items():
                    mine = many[group][name][row]
                    if name == "joint_positions":
                        assert (mine[width:] == 0).all() and mine.shape == (4,)
                        assert many[group]["joint_positions_mask"][row].tolist() == [1.0] * width + [0.0] * (4 - width)
                        mine = mine[:width]
                    assert torch.allclose(mine, value[0], atol=0 if device == "cpu" else 1e-5), name


def test_a_seed_is_the_same_scene_in_any_row_and_batch_also_after_the_buckets_have_grown():
    many, few = make(7), make(2)
    whole, _ = many.reset(seed=0)
    part, info = few.reset(seed=[4, 1])  # both of one layout: one scene for both
    assert info["layout"].tolist() == [1, 1] and len(few.parts()) == 1
    for group, named in part.items():
        for name, value in named.items():
            assert torch.equal(value, whole[group][name][[4, 1]]), name
    more, info = few.reset(seed=[3], options={"reset_mask": np.array([False, True])})
    assert info["layout"].tolist() == [1, 0] and info["episode_seed"].tolist() == [4, 3]
    assert torch.equal(more["privileged"]["handle_pos"], whole["privileged"]["handle_pos"][[4, 3]])
    again, info = few.reset()
    assert info["episode_index"].tolist() == [1, 1] and info["layout"].tolist() == [1, 0]
    assert not torch.equal(again["privileged"]["handle_pos"], more["privileged"]["handle_pos"])


def test_growing_leaves_what_runs_alone():
    env = make(3, autoreset="disabled")
    env.reset(seed=0)
    plain = make(3, autoreset="disabled")
    plain.reset(seed=0)
    for action in moves(3, 3):
        env.step(action)
        plain.step(action)
    env.reset(seed=[4], options={"reset_mask": np.array([True, False, False])})  # into row 1's bucket
    assert env.layout.tolist() == [1, 1, 2]
    assert torch.equal(env.state_hash([1, 2]), plain.state_hash([1, 2]))
    still = torch.tensor([True, False, True])
    before = env.state_hash()
    env.step(moves(3, 1)[0], active=still)
    assert (env.state_hash() == before).tolist() == [False, True, False]


@pytest.mark.xdist_group("warp")
def test_on_a_device_slots_without_a_row_cost_no_physics_and_a_refused_action_moves_no_bucket(monkeypatch):
    """Buckets are launched together. Four rows in three buckets leave two slots free: they step along, never end."""
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    options = {"device": "warp:cpu", "autoreset": "disabled", "budget": Budget(), "horizon": 3}
    env, calm = make(4, out_of_range="refuse", **options), make(4, **options)
    for one in (env, calm):
        one.reset(seed=[0, 1, 2, 4])
    actions = moves(4, 3)
    passes = []
    env.reset(seed=[0, 1, 2, 5])  # two slots of one layout, of which one is then free
    env.reset(seed=[0, 1, 2, 4])
    calm.reset(seed=[0, 1, 2, 4])
    for part in env.parts():
        world = part.env.world
        run, first = world._run, world._checked.step1  # house: private, launches are counted
        monkeypatch.setattr(world, "_run", lambda f, run=run, first=first: (passes.append(f is first), run(f))[1])
    pairs = [(env.step(actions[0]), calm.step(actions[0]))]
    assert sum(passes) == 3 * env.part(0)[0].substeps
    before, rows = env.state_hash(), torch.arange(4)
    for wrong, words in ((torch.nan, r"rows \[3\] are not finite"), (2.0, r"rows \[3\] are beyond")):
        with pytest.raises(ActionError, match=words):
            env.step(torch.where((rows == 3)[:, None], wrong, actions[1]))
        assert torch.equal(env.state_hash(), before)
    pairs += [(env.step(a), calm.step(a)) for a in actions[1:]]
    for mine, other in pairs:
        assert torch.equal(mine[1], other[1]) and torch.equal(mine[3], other[3])
        assert torch.equal(mine[0]["privileged"]["handle_pos"], other[0]["privileged"]["handle_pos"])
    assert pairs[-1][0][3].all() and [p.env.save().extra["done"].sum() for p in env.parts()] == [1, 2, 1]
    _, info = env.reset(seed=[1], options={"reset_mask": rows.numpy() == 0})  # another layout; its old slot has no end
    assert info["layout"].tolist() == [1, 1, 2, 1]
    *_, info = env.step(actions[0], active=rows == 0)
    assert info["elapsed"].tolist() == [1, 3, 3, 3]


def test_save_and_load_continue_bit_for_bit_in_other_rows():
    env = make(4, autoreset="disabled")
    env.reset(seed=0)
    actions = moves(4, 6)
    for a in actions[:3]:
        env.step(a)
    saved = env.save()
    course = [env.step(a) for a in actions[3:]]
    env.load(saved)
    for a, (seen, reward, *_) in zip(actions[3:], course, strict=True):
        again = env.step(a)
        assert torch.equal(again[1], reward)
        assert torch.equal(again[0]["privileged"]["tcp_to_handle"], seen["privileged"]["tcp_to_handle"])
    other = make(2, autoreset="disabled")
    other.load(env.save([2]))  # one row into all; never reset before
    assert other.layout.tolist() == [2, 2]
    assert torch.equal(other.state_hash(), env.state_hash([2, 2]))


def test_a_snapshot_of_another_kind_of_world_moves_no_row():
    env = make(2, autoreset="disabled")
    env.reset(seed=0)
    saved = env.save([0])
    saved.pieces[0][1].kind = "warp"
    with pytest.raises(DataError, match="taken on 'warp' and cannot be loaded on 'cpu'"):
        env.load(saved, [1])  # of another layout
    assert env.layout.tolist() == [0, 1]


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_autoreset_keeps_the_layout_and_delivers_the_last_observation(mode):
    env = make(3, autoreset=mode, horizon=2, observe="state")
    env.reset(seed=0)
    zero = torch.zeros(3, 8)
    env.step(zero)
    seen, _, _, truncated, info = env.step(zero)
    assert truncated.all() and env.layout.tolist() == [0, 1, 2]
    if mode == "same_step":
        assert info["_final_obs"].all() and info["final_obs"].shape == seen.shape
        assert info["final_info"]["elapsed"].tolist() == [2, 2, 2] and info["elapsed"].tolist() == [0, 0, 0]
        assert not torch.equal(info["final_obs"], seen)
    else:
        info = env.step(zero)[-1]
    assert info["episode_index"].tolist() == [1, 1, 1]


def test_spaces_names_and_the_single_view():
    env = make(2, observe="state")
    assert isinstance(env, gymnasium.vector.VectorEnv)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen.numpy()) and seen.shape[1] == len(env.observation_names)
    column = env.observation_names.index("privileged/joint_positions_mask[1]")
    assert seen[:, column].tolist() == [0.0, 1.0]  # one drawer, three drawers
    single = SingleEnv(OpenAny, observe="state_dict")
    first, info = single.reset(seed=2)
    assert info["layout"] == 2 and single.observation_space.contains(first)
    *_, info = single.step(single.action_space.sample())
    assert info["elapsed"] == 1
    assert env.fingerprint()["layouts"].keys() == set(OpenAny.layouts)


def test_expert_opens_drawers_of_every_cabinet():
    env = manikin.make("OpenCabinetDrawer-v2", num_envs=len(CABINETS), autoreset="disabled", terminate=False)
    _, info = env.reset(seed=700)
    assert not info["success"].any()
    expert, once = WaypointExecutor(env), torch.zeros(env.num_envs, dtype=torch.bool)
    for _ in range(env.horizon):
        info = env.step(expert.act())[-1]
        once |= info["success"]
        if once.all():
            break
    assert once.all() and not info["health"].any()
    assert info["contact"].all() and (info["robot_force"] > 100).all() and (info["robot_force"] < 10_000).all()


def test_reward_and_flags_follow_their_formulas():
    """A second writing, in NumPy, from each row's own MuJoCo state; drawers are put where every term is seen."""
    env = make(6, autoreset="disabled", reward="dense")
    env.reset(seed=0)
    share = np.array([0.0, 0.0005, 0.02, 0.5, 0.88, 0.95])  # of the travel
    for part in env.parts():
        own, rows = part.env, part.places.tolist()
        qpos = np.zeros((len(rows), len(own.h.cabinet.joints)), np.float32)
        qpos[part.rows, [own.h.cabinet.joints.index(target(env, row)) for row in rows]] = 0.2 * share[rows]
        own.h.cabinet.set_qpos(qpos)
    seen, reward, _, _, info = env.step(torch.zeros(6, 8))
    for row in range(6):
        data = env.model_data(row)[1]
        name = target(env, row)
        q, v = data.joint(f"cabinet/{name}").qpos[0], data.joint(f"cabinet/{name}").qvel[0]
        distance = np.linalg.norm(
            data.site(f"cabinet/handle/{name}").xpos - seen["policy"]["tcp_pose"][row, :3].numpy()
        )
        moved, opened = q / 0.2 > 0.001, q / 0.2 >= 0.9
        wanted = (2.0 if moved else 1 - np.tanh(5 * distance)) + 2 * min(max(q / 0.2, 0.0), 1.0)
        won = opened and abs(v) <= 0.1
        assert (bool(info["is_moved"][row]), bool(info["is_open"][row])) == (moved, opened)
        assert bool(info["success"][row]) == won
        assert float(reward[row]) == pytest.approx(5.0 if won else wanted, abs=2e-5)
    assert info["is_moved"].tolist() == [False, False, True, True, True, True] and info["success"].sum() == 1


def target(env: LayoutEnv, row: int) -> str:
    """The joint of the drawer that the row is to open."""
    own, slot = env.part(row)
    return CABINETS[own.task.layout].drawers[int(own.h.target.value[slot])]


def recorded(path, n: int, seeds) -> list:
    env = make(n, autoreset="disabled", horizon=8, observe="state")
    recorder = Recorder(env, path, policy="expert")
    run_episodes(env, ExpertPolicy(env), seeds, observers=[recorder])
    recorder.close()
    env.close()
    with read_episodes(path) as file:
        return [file[number] for number in file.numbers]


def test_episodes_are_the_same_in_any_batch_and_replay_bit_for_bit(tmp_path, monkeypatch):
    """Also where rows that begin find their layout's bucket full while others run: seeds of one layout in turn."""
    seeds = [0, 1, 4, 7, 2, 10]
    few, many = recorded(tmp_path / "few.h5", 2, seeds), recorded(tmp_path / "many.h5", 6, seeds)
    for a, b in zip(few, many, strict=True):
        assert a.seed == b.seed and np.array_equal(a.actions, b.actions) and np.array_equal(a.state_hash, b.state_hash)
        assert np.array_equal(a.states, b.states) and np.array_equal(a.rewards, b.rewards)
    assert len({e.states.shape[1] for e in few}) == 3  # of three layouts
    fresh = make(3, autoreset="disabled", horizon=8, observe="state")
    report = replay(tmp_path / "few.h5", fresh)
    assert report.exact and len(report.episodes) == 6 and not report.changed
    world = fresh.env_for(1).world
    monkeypatch.setattr(world, "state_hash", lambda rows: np.zeros(len(rows), np.int64))
    report = replay(tmp_path / "few.h5", fresh, numbers=[0, 1])
    assert [e.first_difference for e in report.episodes] == [None, 0]
    assert report.episodes[1].difference == 0.0  # the states themselves, as long as this layout's, do not differ


def test_pictures_are_of_the_rows_own_layout():
    env = make(3, autoreset="disabled")
    env.reset(seed=0)
    joints = [env.model_data(row)[0].njnt for row in range(3)]
    assert joints == [9 + len(CABINETS[name].build().joints) for name in OpenAny.layouts]
    film = Film(env, make_renderer("rays"), width=32, height=32)
    film.start(np.arange(3), np.arange(3), None, {})
    pictures = [film.reels[k].images[0] for k in range(3)]
    assert not np.array_equal(pictures[0], pictures[1]) and not np.array_equal(pictures[1], pictures[2])
    session = Session(env, HoldPolicy, playing=False)
    session.row = 2
    assert session.look()[0].njnt == joints[2]
    before = env.arm_qpos.clone()
    for _ in range(3):
        session.step()
    assert session.status["step"] == 3 and torch.allclose(env.arm_qpos, before, atol=5e-3)


def test_a_cabinet_in_a_row_moves_as_its_own_single_model():
    """A turned cabinet whose drawer runs: against MuJoCo on the same scene with the cabinet compiled in that place."""
    env = Env(OpenAny(layout="three_drawers"), num_envs=2, autoreset="disabled")
    env.reset(seed=[1, 4])
    env.h.cabinet.set_qpos(env.h.cabinet.qpos.clone(), (0.3, 0.6, 0.0))
    env.world.forward()
    model, data = env.world.data(1)
    b = mujoco.MjSpec.from_string(env.scene_xml())
    body = b.body("cabinet/body")
    at = model.body("cabinet/body").id
    body.pos, body.quat = model.body_pos[at], model.body_quat[at]
    own = b.compile()
    mine = mujoco.MjData(own)
    mine.qpos[:], mine.qvel[:], mine.ctrl[:] = data.qpos, data.qvel, data.ctrl
    env.world.step(40)
    mujoco.mj_step(own, mine, 40)
    assert env.world.read("qpos")[1].numpy() == pytest.approx(mine.qpos, abs=1e-6)
    places = [mine.site(f"cabinet/{f}").xpos for f in env.h.cabinet.frames]
    mujoco.mj_forward(own, mine)
    assert env.h.cabinet.places[1].numpy() == pytest.approx(np.array(places), abs=1e-5)
    assert env.h.cabinet.qpos[1, 1] > 0.02


def test_cabinets_have_one_to_four_drawers_and_some_have_doors():
    joints = {name: [j.name for j in c.build().joints] for name, c in CABINETS.items()}
    assert len(CABINETS) >= 6
    assert {len(c.drawers) for c in CABINETS.values()} == {1, 2, 3, 4}
    assert sum(any(j.startswith("door") for j in names) for names in joints.values()) >= 2
    with pytest.raises(UnknownNameError, match="kind of front"):
        Cabinet(columns=(("shelf",),), half_size=(0.1, 0.1, 0.1)).build()
    for columns in ((), (("door",), ())):
        with pytest.raises(SceneError, match="columns, each with a drawer or a door"):
            Cabinet(columns=columns, half_size=(0.1, 0.1, 0.1)).build()


def test_wrong_uses_say_what_is_right():
    env = make(2)
    with pytest.raises(ClosedError, match="reset"):
        env.step(torch.zeros(2, 8))
    env.reset(seed=0)
    with pytest.raises(ActionError, match="actions must have shape"):
        env.step(torch.zeros(3, 8))
    with pytest.raises(UnknownNameError, match="layout"):
        OpenAny(layout="wardrobe")
    with pytest.raises(ConfigError, match="no layouts"):
        LayoutEnv(task_class("PickCube-v2"))
    env.close()
    with pytest.raises(ClosedError, match="closed"):
        env.reset(seed=0)


def test_cameras_see_the_rows_own_layout_and_states_beside_them_are_masked():
    spec = CameraSpec(name="base_camera", pos=(0.1, -0.5, 0.5), target=(0, 0, 0.2), width=24, height=16)
    options = {"observe": "state+rgb+segmentation", "vision": Vision(cameras=[spec], renderer="rays")}
    env = make(3, autoreset="disabled", **options)
    seen, _ = env.reset(seed=0)
    assert set(seen["cameras"]["base_camera"]) == {"rgb", "segmentation", "K", "T"}
    widths = [len(CABINETS[name].build().joints) for name in OpenAny.layouts]
    assert seen["privileged"]["joint_positions_mask"].sum(1).tolist() == widths
    assert env.single_observation_space["privileged"]["joint_positions_mask"].shape == (max(widths),)
    seen = env.step(moves(3, 1)[0])[0]
    for row, layout in enumerate(OpenAny.layouts):
        alone = Env(OpenAny(layout=layout), autoreset="disabled", **options)
        alone.reset(seed=[row])
        own = alone.step(moves(3, 1)[0][row : row + 1])[0]["cameras"]["base_camera"]
        for name, value in own.items():
            assert torch.equal(value[0], seen["cameras"]["base_camera"][name][row]), (layout, name)
    assert env.camera("base_camera") == spec
    with pytest.raises(UnknownNameError, match="unknown camera 'base'"):
        env.camera("base")


@pytest.mark.parametrize("task", ["OpenCabinetDrawer-v2", "CartpoleBalance-v1"])
def test_speed_is_measured_over_all_layouts(task):
    found = measure_speed(OpenAny if task.startswith("Open") else task, 3, seconds=0.05)
    assert found.num_envs == 3 and found.env > 0 and found.raw > 0 and found.bytes_per_env > 1e5


def test_raw_physics_of_every_layout_ends_where_the_environment_does():
    env = make(4, autoreset="disabled", reward="none")
    env.reset(seed=[0, 1, 2, 4])
    physics = raw_physics(env)
    controls = []
    for action in moves(4, 3):
        env.step(action)
        controls.append(physics.controls())
    wanted = env.state_hash()
    env.reset(seed=[0, 1, 2, 4])
    assert physics.run(controls) > 0 and torch.equal(env.state_hash(), wanted)


def test_random_actions_belong_to_the_episode_in_any_layout():
    drawn = []
    for seeds in ([0, 1, 2, 3], [3, 1]):
        env = make(len(seeds), autoreset="disabled")
        observation, _ = env.reset(seed=seeds)
        policy = RandomPolicy(env)
        policy.reset(torch.arange(len(seeds)))
        drawn.append(dict(zip(seeds, policy.act(observation, [""] * len(seeds))[:, 0], strict=True)))
        assert len(set(env.save().layouts)) > 1
    assert torch.equal(drawn[0][3], drawn[1][3]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(drawn[0][1], drawn[0][3])
