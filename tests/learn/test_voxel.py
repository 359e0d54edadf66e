"""Keyframes from voxels: parts against formulas, the same run from the same seed, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manikin import make
from manikin.data.recorder import Recorder
from manikin.env.observe import Vision
from manikin.errors import ConfigError
from manikin.eval.runner import run_episodes
from manikin.learn import voxel
from manikin.learn.common.data.keyframes import keyframes, next_keyframe
from manikin.learn.run.recipe import Recipe
from manikin.learn.run.train import train
from manikin.math import quat_from_euler, quat_to_euler
from manikin.policy.choices import policy_maker
from manikin.policy.expert import ExpertPolicy
from manikin.policy.network import NetworkPolicy
from manikin.policy.networks.voxels import angle_bins, angles_of, cell_of, place_of, straight_way
from manikin.policy.trained import export_program, read_about
from manikin.sense.pointcloud import PointCloud
from manikin.sense.voxel import VoxelSpec, voxelize
from manikin.spec.camera import CameraSpec

TASK = "PushCube-v2"
SPEC = VoxelSpec(low=(-0.25, -0.25, -0.01), high=(0.25, 0.25, 0.22), resolution=(20, 16, 8))
GRID = {"kind": "Voxels", "spec": {"kind": "VoxelSpec", "low": SPEC.low, "high": SPEC.high, "resolution": [20, 16, 8]}}
CAMERA = {"name": "front", "pos": [0.6, 0.0, 0.5], "target": [0.0, 0.0, 0.05], "fovy": 0.9}
SETTINGS = {"width": 4, "bins": 8, "updates": 2, "batch_size": 4, "demonstrations": 2, "rows": 2}


def _env(rows=1, *, observe=("policy", GRID), size=(24, 24), control="ee_pose", task=TASK, **given):
    vision = Vision(cameras=[CameraSpec(**CAMERA)], size=size, renderer="rays")
    return make(task, num_envs=rows, observe=list(observe), vision=vision, control=control, **given)


def _record(path, **given):
    env = _env(2, autoreset="disabled", **given)
    with Recorder(env, path, observations=True, states=False, keep="success", first_seed=0) as recorder:
        run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    return path


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    return _record(tmp_path_factory.mktemp("voxels") / "a.h5")


def _trainer(demos, *, seed=3, env=None, **given):
    return voxel.Voxel(_env() if env is None else env, voxel.Config(**{**SETTINGS, **given}), seed, demos)


def _weights(trainer):
    return torch.cat([p.detach().flatten() for p in trainer.actor.parameters()])


# ---- keyframes -------------------------------------------------------------------------------------------------------


def _written(places, opened):
    """A trajectory written by hand: places along x and z [cm], always pointing down."""
    pos = torch.tensor([[x / 100, 0.0, z / 100] for x, z in places])
    down = torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(len(places), 4)
    return torch.cat([pos, down], 1), torch.tensor(opened)


def test_keyframes_are_changes_of_the_gripper_rests_corners_and_the_end():
    # across, down, close and wait, up, open on the way, end
    places = [(0, 10), (5, 10), (10, 10), (10, 5), (10, 0), (10, 0), (10, 0), (10, 5), (10, 10), (10, 15)]
    tool, opened = _written(places, [True] * 4 + [False] * 4 + [True] * 2)
    found = keyframes(tool, opened, still=1e-3, corner=0.02)
    assert found == [2, 4, 6, 8, 9]  # corner, gripper closes, moves on, gripper opens, end
    assert keyframes(tool, opened, still=1e-3, corner=0.0) == [4, 6, 8, 9]
    assert keyframes(tool[:, :], torch.ones(10, dtype=torch.bool), still=1e-3, corner=0.0) == [6, 9]


def test_an_arm_that_rests_at_the_beginning_has_no_keyframe_there():
    tool, opened = _written([(0, 0), (0, 0), (0, 0), (5, 0), (10, 0)], [True] * 5)
    assert keyframes(tool, opened, still=1e-3, corner=0.01) == [4]


def test_a_frame_leads_to_the_next_keyframe_or_where_it_has_arrived_to_the_one_after():
    arrived = torch.zeros(7, 3, dtype=torch.bool)
    assert next_keyframe([2, 4, 6], arrived) == [0, 0, 1, 1, 2, 2, 2]
    arrived[1, 0] = arrived[2, 0] = True
    assert next_keyframe([2, 4, 6], arrived) == [0, 1, 1, 1, 2, 2, 2]
    arrived[1, 0], arrived[0, 0] = False, True  # it goes away again
    assert next_keyframe([2, 4, 6], arrived) == [0, 0, 1, 1, 2, 2, 2]
    arrived[:, 2] = True
    assert next_keyframe([2, 4, 6], arrived) == [0, 0, 1, 1, 2, 2, 2]  # nothing is behind the last


def test_a_recordings_frames_are_labelled_with_poses_and_commands_of_the_recording(demos):
    trainer = _trainer(demos)
    data = trainer.data
    assert data.episodes == 2 and 2 <= data.keyframes < len(data)
    places = (data.goal[:, None] == data.tool[None]).all(2)
    assert places.any(1).all()  # a keyframe's pose is that of some frame
    cloud = data.cloud(torch.arange(len(data)), SPEC)
    grid = voxelize(cloud, SPEC)
    env = _env(2, autoreset="disabled")
    seen, _ = env.reset(seed=[0, 1])
    assert torch.equal(grid.occupancy[0], seen["voxel"]["occupancy"][0])  # the sparse cells are the grid again
    assert torch.equal(grid.rgb[0], seen["voxel"]["rgb"][0])


# ---- labels ----------------------------------------------------------------------------------------------------------


def test_a_place_comes_back_within_half_a_cell_and_an_orientation_within_half_an_angle():
    rng = np.random.default_rng(0)
    pos = torch.tensor(rng.uniform(SPEC.low, SPEC.high, (500, 3)), dtype=torch.float32)
    cell, inside = cell_of(pos, SPEC)
    assert inside.all() and cell.max() < 20 * 16 * 8
    assert ((place_of(cell, SPEC) - pos).abs() <= torch.tensor(SPEC.cell) / 2 + 1e-6).all()
    one = voxelize(PointCloud(pos[:1, None], torch.ones(1, 1, dtype=torch.bool)), SPEC)
    assert one.occupancy.flatten().nonzero()[0, 0] == cell[0]  # the same order of cells as the grid's
    assert torch.equal(place_of(torch.arange(20 * 16 * 8), SPEC), SPEC.centres().reshape(-1, 3))
    far = torch.tensor([[1.0, 0.0, 0.0]])
    assert not cell_of(far, SPEC)[1] and place_of(cell_of(far, SPEC)[0], SPEC)[0, 0] < SPEC.high[0]
    rpy = torch.tensor(rng.uniform((-3.1, -1.4, -3.1), (3.1, 1.4, 3.1), (500, 3)), dtype=torch.float32)
    bins = angle_bins(quat_from_euler(rpy), 72)
    back = quat_to_euler(angles_of(bins, 72))
    apart = torch.remainder(back - rpy + math.pi, 2 * math.pi) - math.pi
    assert apart.abs().max() <= math.pi / 72 + 1e-4
    down = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    assert (angles_of(angle_bins(down, 72), 72) * down).sum().abs() == pytest.approx(1.0, abs=1e-6)


def test_augmentation_turns_the_points_and_sorts_them_into_cells_again():
    rng = np.random.default_rng(1)
    xyz = rng.uniform(-0.15, 0.15, (2, 50, 3)).astype(np.float32)
    poses = np.concatenate([rng.uniform(-0.1, 0.1, (2, 2, 3)), np.tile([0, 1, 0, 0], (2, 2, 1))], 2)
    shift, yaw = rng.uniform(-0.02, 0.02, (2, 3)), np.array([0.3, -0.2])
    middle = np.array([0.01, 0.02, 0.1])
    cloud = PointCloud(torch.from_numpy(xyz), torch.ones(2, 50, dtype=torch.bool))
    given = (torch.tensor(one, dtype=torch.float32) for one in (poses, shift, yaw, middle))
    moved, there = voxel.moved(cloud, *given)
    for row in range(2):
        c, s = np.cos(yaw[row]), np.sin(yaw[row])
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        by_hand = (xyz[row] - middle) @ turn.T + middle + shift[row]
        np.testing.assert_allclose(moved.xyz[row], by_hand, atol=1e-6)
        np.testing.assert_allclose(
            there[row, :, :3], (poses[row, :, :3] - middle) @ turn.T + middle + shift[row], atol=1e-6
        )
        half = np.array([np.cos(yaw[row] / 2), np.sin(yaw[row] / 2)])
        np.testing.assert_allclose(there[row, 0, 3:], [0, half[0], half[1], 0], atol=1e-6)  # z turn of (0, 1, 0, 0)
        index = np.floor((by_hand - np.array(SPEC.low)) / np.array(SPEC.cell)).astype(int)
        inside = ((index >= 0) & (index < np.array(SPEC.resolution))).all(1)
        count = np.zeros(SPEC.resolution, int)
        np.add.at(count, tuple(index[inside].T), 1)
        np.testing.assert_array_equal(voxelize(moved, SPEC).count[row].numpy(), count)


def test_the_way_is_straight_no_faster_than_it_may_be_and_ends_at_the_goal():
    start = torch.tensor([[0.0, 0, 0.2, 0, 1, 0, 0], [0.0, 0, 0.2, 0, 1, 0, 0]])
    c, s = math.cos(0.5), math.sin(0.5)
    goal = torch.tensor([[0.1, 0, 0.2, 0, 1, 0, 0], [0.0, 0, 0.2, 0, c, s, 0]])
    way = straight_way(start, goal, 6, 0.03, 0.4)
    torch.testing.assert_close(way[0, :, 0], torch.tensor([0.03, 0.06, 0.09, 0.1, 0.1, 0.1]))
    angle = 2 * torch.atan2(way[1, :, 5], way[1, :, 4])  # about z, of a turned (0, 1, 0, 0)
    torch.testing.assert_close(angle, torch.tensor([0.4, 0.8, 1.0, 1.0, 1.0, 1.0]), atol=1e-4, rtol=0)


def test_actions_ask_the_controller_for_the_way(demos):
    """The controller's own reading of the actions gives the poses of the way, in the base's frame."""
    env, trainer = _env(), _trainer(demos)
    seen, _ = env.reset(seed=5)
    module = trainer.actor.eval()
    with torch.no_grad():
        actions, (goal, opened) = module(seen), module.keyframe(seen)
    way = straight_way(seen["policy"]["tcp_pose"], goal, module.predict, module.reach, module.turn)[0]
    assert (actions[0, :, 6] == opened[0]).all() and opened[0].abs() == 1
    pos, quat = env.controller.goal(env.robot, actions[0, :1])
    base = env.robot.base_pose
    assert base[3] == 1  # stands straight, so that the frames differ by a shift
    torch.testing.assert_close(pos[0].float() + base[:3], way[0, :3], atol=1e-5, rtol=0)
    assert (quat[0].float() * way[0, 3:]).sum().abs() == pytest.approx(1.0, abs=1e-5)


# ---- training --------------------------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_run_and_a_run_that_goes_on_is_the_run_that_was_not_interrupted(demos):
    whole, half, rest, other = _trainer(demos), _trainer(demos), _trainer(demos), _trainer(demos, seed=4)
    assert not torch.equal(_weights(whole), _weights(other))
    numbers = [whole.iterate() for _ in range(4)]
    assert [half.iterate(), half.iterate()] == numbers[:2]
    rest.load_state_dict(half.state_dict())
    assert [rest.iterate(), rest.iterate()] == numbers[2:]
    assert torch.equal(_weights(rest), _weights(whole)) and rest.steps == 8


def test_keyframes_of_two_demonstrations_are_learned(demos):
    trainer = _trainer(demos, width=8, learning_rate=1e-2, shift=0.0, yaw=0.0, average=0.0, anneal=False, updates=60)
    first = trainer.iterate()["loss"]
    last = [trainer.iterate() for _ in range(2)][-1]
    assert last["loss"] < 0.5 * first
    data = trainer.data
    grid = voxelize(data.cloud(torch.arange(len(data)), SPEC), SPEC)
    module = trainer.actor.eval()
    with torch.no_grad():
        scores, _ = module.encode(grid.occupancy, grid.rgb, data.tool, data.numbers)
    wanted, _ = cell_of(data.goal[:, :3], SPEC)
    away = (place_of(scores.argmax(1), SPEC) - place_of(wanted, SPEC)).norm(dim=1)
    chance = (SPEC.centres().reshape(-1, 1, 3) - data.goal[None, :, :3]).norm(dim=2).mean()
    assert away.median() < 0.3 * chance


def test_what_a_row_is_told_depends_on_that_row_alone_and_the_program_answers_as_the_network(demos, tmp_path):
    trainer = _trainer(demos)
    trainer.iterate()
    env = _env(3)
    seen, _ = env.reset(seed=3)
    policy = NetworkPolicy(trainer.actor)
    every = policy.act(seen, [""] * 3)
    alone = policy.act(_rows(seen, slice(1, 2)), [""])
    assert every.shape == (3, 4, 7) and torch.equal(alone[0], every[1])
    export_program(trainer.actor, tmp_path / "policy.pt2", seen, width=2)
    program = policy_maker(str(tmp_path / "policy.pt2"))(env)
    torch.testing.assert_close(program.act(seen, [""] * 3), every, atol=1e-5, rtol=1e-4)


def _rows(tree, at):
    return {k: _rows(v, at) for k, v in tree.items()} if isinstance(tree, dict) else tree[at]


RECIPE = Recipe(
    algorithm="voxel",
    task=TASK,
    env={
        "control": "ee_pose",
        "horizon": 40,
        "observe": ["policy", GRID],
        "cameras": [CAMERA],
        "size": [24, 24],
        "renderer": "rays",
    },
    settings=SETTINGS,
    steps=4,
    minutes=0,
    validate_every=2,
    validation_episodes=2,
    test_episodes=2,
    stop_at=2.0,
)


def test_a_run_records_its_demonstrations_and_its_policy_is_loaded_as_any(tmp_path):
    outcome = train(RECIPE, folder=tmp_path / "run", seed=1)
    assert outcome.state.steps == 4
    about = read_about(tmp_path / "run")
    assert about["execution"] == {"execute": 4, "ensemble": None} and about["width"] == 2
    assert about["demonstrations"]["episodes"] == 2
    make_policy = policy_maker(str(tmp_path / "run"))
    policy, env = make_policy(_env()), _env(autoreset="disabled", horizon=40)
    seen, _ = env.reset(seed=9)
    assert policy.act(seen, [""]).shape == (1, 4, 7) and policy.width == 1  # on the CPU a row is asked alone
    run = run_episodes(env, policy, range(1))
    assert run.results[0].health == 0
    with pytest.raises(ConfigError, match="was trained for control"):
        make_policy(_env(control="joint_delta_pos"))


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_what_cannot_be_learned_from_is_named(demos, tmp_path):
    with pytest.raises(ConfigError, match="one voxel grid, observe='voxel'"):
        _trainer(demos, env=make(TASK, control="ee_pose"))
    with pytest.raises(ConfigError, match="control='ee_pose' or 'osc_pose:goal=absolute', not 'ee_delta_pose'"):
        _trainer(demos, env=_env(control="ee_delta_pose"))
    with pytest.raises(ConfigError, match="size"):
        _trainer(demos, env=_env(size=(32, 32)))
    with pytest.raises(ConfigError, match="control 'ee_pose', here 'ee_pose:frame=world'"):
        _trainer(demos, env=_env(control="ee_pose:frame=world"))
    with pytest.raises(ConfigError, match="needs 'hand_pose' in the observation's group policy, which has"):
        _trainer(demos, tool="hand_pose")
    blind = make(TASK, num_envs=2, control="ee_pose", autoreset="disabled")
    with Recorder(blind, tmp_path / "blind.h5", observations=True, states=False, first_seed=0) as recorder:
        run_episodes(blind, ExpertPolicy(blind), range(2), observers=[recorder])
    with pytest.raises(ConfigError, match="observe 'state', here"):
        _trainer(tmp_path / "blind.h5")
    for given, words in (
        ({"speed": 0.0}, "speed must be above 0"),
        ({"shift": -1.0}, "shift must be 0 or more, got -1"),
        ({"width": 6}, "width must be a multiple of 4"),
    ):
        with pytest.raises(ConfigError, match=words):
            _trainer(demos, **given)
