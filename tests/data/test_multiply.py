"""Few demonstrations become many: the transform, the cuts, the way to a piece, whole recordings, bad input."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import manikin
from manikin.cli import main
from manikin.data.multiply.carry import entry, way_to
from manikin.data.multiply.multiply import multiply
from manikin.data.multiply.pieces import bounds, carried, frame_poses, read_pieces
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.verify import replay
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.spec.plan import Segment

STACK = "StackCube-v2"


def matrix(pose):
    """(4, 4) of a pose (7,), by SciPy."""
    found = np.eye(4)
    found[:3, :3] = Rotation.from_quat(np.roll(pose[3:], -1)).as_matrix()
    found[:3, 3] = pose[:3]
    return found


def some_poses(count, seed):
    rng = np.random.default_rng(seed)
    quats = Rotation.random(count, random_state=rng).as_quat()
    return np.concatenate([rng.normal(size=(count, 3)), np.roll(quats, 1, 1)], 1)


def test_a_piece_is_carried_as_matrices_say():
    tools, (frame, held, frame_now, held_now) = some_poses(6, 0), some_poses(4, 1)
    found = carried(*(torch.from_numpy(p) for p in (tools, frame, held, frame_now, held_now)))
    for tool, now in zip(tools, found.numpy(), strict=True):
        expected = matrix(frame_now) @ np.linalg.inv(matrix(frame)) @ matrix(tool) @ matrix(held)
        np.testing.assert_allclose(matrix(now) @ matrix(held_now), expected, atol=1e-12)


def test_where_nothing_moved_a_piece_stays():
    tools, (frame, held) = torch.from_numpy(some_poses(3, 2)), torch.from_numpy(some_poses(2, 3))
    found = carried(tools, frame, held, frame, held).numpy()
    np.testing.assert_allclose([matrix(p) for p in found], [matrix(p) for p in tools.numpy()], atol=1e-12)


def test_the_way_to_a_piece_is_straight_and_no_faster_than_allowed():
    now, first = torch.from_numpy(some_poses(2, 4))
    way = way_to(now, first, 0.05)
    np.testing.assert_allclose(matrix(way[-1].numpy()), matrix(first.numpy()), atol=1e-7)
    path = np.concatenate([now[None].numpy(), way.numpy()])
    steps = np.diff(path[:, :3], axis=0)
    assert np.allclose(steps, steps[0]) and np.linalg.norm(steps[0]) <= 0.5 * 0.05 + 1e-9
    turns = Rotation.from_quat(np.roll(path[:, 3:], -1, 1))
    angles = (turns[:-1].inv() * turns[1:]).magnitude()
    assert np.allclose(angles, angles[0], atol=1e-6) and angles[0] <= 2.0 * 0.05 + 1e-6
    assert len(way_to(now, now, 0.05)) == 0


def test_a_piece_is_joined_where_the_whole_takes_least_time():
    path = torch.zeros(21, 7, dtype=torch.float64)
    path[:, 3] = 1.0
    path[:, 0] = torch.linspace(0, 0.5, 21)  # 0.025 m a step, as fast as the way
    grips = torch.ones(20, 1)
    grips[12:] = -1
    assert entry(path[2], path, grips, 0.05) == (2, 18)
    assert entry(path[3], path, grips, 0.05) == (3, 17)  # a quarter of the 12 steps with the gripper open
    assert entry(path[9], path, grips, 0.05) == (3, 6 + 17)
    assert entry(path[0], path, grips, 0.05) == (0, 20)


def test_flags_and_the_gripper_cut_a_demonstration():
    flags = {"held": np.array([0, 0, 1, 1, 0, 1, 1, 1], bool), "never": np.zeros(8, bool)}
    grips = np.array([[1], [1], [1], [-1], [-1], [-1], [1], [1]], np.float32)
    held, told, rest = Segment("a", until="held"), Segment("a", until="gripper"), Segment("b")
    assert bounds(flags, grips, [held, rest], 10.0) == [(0, 3), (3, 8)]
    assert bounds(flags, grips, [Segment("a", until="held", after_s=0.2), rest], 10.0) == [(0, 5), (5, 8)]
    assert bounds(flags, grips, [told, told, rest], 10.0) == [(0, 4), (4, 7), (7, 8)]
    assert bounds(flags, grips, [Segment("a", until="never"), rest], 10.0) == []
    assert bounds(flags, grips, [Segment("a", until="held", after_s=9.0), rest], 10.0) == []
    with pytest.raises(DataError, match=r"no flag 'hold'; it has held, never"):
        bounds(flags, grips, [Segment("a", until="hold")], 10.0)


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """Five demonstrations of the expert."""
    path = tmp_path_factory.mktemp("demos") / "stack.h5"
    assert main(["collect", STACK, "--episodes", "5", "--out", str(path), "--num-envs", "5"]) == 0
    return path


def test_pieces_hold_what_the_simulation_showed(demos):
    """Frames and tools, read from states, are those of the recorded actions played again."""
    env = manikin.make(STACK, 3, autoreset="disabled")
    with EpisodeFile(demos) as file:
        pieces, episode = read_pieces(file, env, most=1), file[0]
    env.reset(seed=[0, 0, 0])
    cut = len(pieces[0][0].grips)
    assert cut + len(pieces[1][0].grips) == len(episode) and [len(p) for p in pieces] == [1, 1]
    red = frame_poses(env, env.task.segments)["red"][0]
    np.testing.assert_allclose(pieces[0][0].frame, red, atol=1e-6)
    for k in range(cut):
        np.testing.assert_allclose(pieces[0][0].tools[k], env.tcp_poses[0, 0], atol=1e-6)
        env.step(np.repeat(episode.actions[k][None], 3, 0))
    places = frame_poses(env, env.task.segments)
    np.testing.assert_allclose(pieces[1][0].frame, places["green"][0], atol=1e-6)
    tool, held = matrix(env.tcp_poses[0, 0].double().numpy()), matrix(pieces[1][0].held.numpy())
    np.testing.assert_allclose(tool @ held, matrix(places["red"][0].numpy()), atol=1e-5)
    env.close()


@pytest.fixture(scope="module")
def multiplied(demos, tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "many.h5"
    return path, multiply(demos, path, episodes=8, first_seed=100, num_envs=8)


def test_new_episodes_succeed_and_replay_bit_for_bit(multiplied):
    path, report = multiplied
    assert (report.tried, report.demonstrations, report.interrupted) == (8, (0, 1, 2, 3, 4), False)
    assert report.kept >= 4 and sum(report.modes.values()) == 8
    assert f"{report.kept} of 8 episodes succeeded" in report.summary()
    with EpisodeFile(path) as file:
        assert len(file) == report.kept and file.header.source["how"] == "multiply"
        for number in file.numbers:
            episode = file[number]
            assert episode.seed == 100 + number and episode.success_once and episode.mode
            assert set(np.unique(episode.flags["segment"])) == {0.0, 1.0}
            assert set(np.unique(episode.flags["source_episode"])) <= {0.0, 1.0, 2.0, 3.0, 4.0}
    checked = replay(path)
    assert checked.exact and checked.ok and checked.survived == (report.kept, report.kept)
    assert "flags/segment" in checked.not_compared


def test_rows_and_interruptions_change_nothing(demos, multiplied, tmp_path):
    path, report = multiplied
    out, asked = tmp_path / "resumed.h5", [0]

    def stop():
        asked[0] += 1
        return asked[0] > 150

    half = multiply(demos, out, episodes=8, first_seed=100, num_envs=3, stop=stop)
    assert half.interrupted and 0 < half.tried < 8
    whole = multiply(demos, out, episodes=8, first_seed=100, num_envs=3, resume=True)
    assert (whole.tried, whole.kept, whole.interrupted) == (8, report.kept, False)
    with EpisodeFile(path) as one, EpisodeFile(out) as other:
        assert one.numbers == other.numbers
        for number in one.numbers:
            np.testing.assert_array_equal(one[number].state_hash, other[number].state_hash)


def test_command_multiplies(demos, tmp_path, capsys):
    out = tmp_path / "few.h5"
    words = ["multiply", str(demos), "--out", str(out), "--episodes", "2", "--seed", "100", "--observations"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "of 2 episodes succeeded" in said and "manikin replay" in said
    with EpisodeFile(out) as file:
        assert file[file.numbers[0]].observations is not None
    assert main(words) == 2
    assert "exists" in capsys.readouterr().err


def test_the_pages_command_needs_no_seed(demos, tmp_path):
    """Without --seed, new episodes have the seeds after the demonstrations' last."""
    run = tmp_path / "run.h5"
    shutil.copy(demos, run)
    assert main(["multiply", str(run), "--episodes", "8", "--observations"]) == 0
    with EpisodeFile(tmp_path / "run-multiplied.h5") as file:
        assert file.header.recorded["first_seed"] == 5 and len(file)
        assert [file[number].seed for number in file.numbers] == [5 + number for number in file.numbers]


def test_bad_input_is_named(demos, tmp_path):
    out = tmp_path / "out.h5"
    with pytest.raises(ConfigError, match="seed 3 is a demonstration's own; begin at 5"):
        multiply(demos, out, first_seed=3)
    with pytest.raises(ConfigError, match="episodes must be at least 1"):
        multiply(demos, out, episodes=0)
    with pytest.raises(ConfigError, match="control cannot be changed"):
        multiply(demos, out, control="joint_pos")
    push = tmp_path / "push.h5"
    assert main(["collect", "PushCube-v2", "--episodes", "1", "--out", str(push)]) == 0
    with pytest.raises(ConfigError, match=r"PushCube-v2 declares no segments.*Segment\(PART, until=FLAG\)"):
        multiply(push, out)
    bare = tmp_path / "bare.h5"
    assert main(["collect", STACK, "--episodes", "1", "--out", str(bare), "--no-states"]) == 0
    with pytest.raises(DataError, match="no recorded states"):
        multiply(bare, out)
    lost = tmp_path / "lost.h5"
    assert main(["collect", STACK, "--episodes", "1", "--policy", "random", "--out", str(lost)]) == 0
    with pytest.raises(DataError, match=r"no episode .* succeeded and has all segments"):
        multiply(lost, out)
    assert not out.exists()


def test_frames_have_names():
    env = manikin.make("PegInsertionSide-v2", 2, autoreset="disabled")
    env.reset(seed=[0, 1])
    found = frame_poses(env, env.task.segments)
    peg, head = (matrix(found[name][1].numpy()) for name in ("peg", "head"))
    half = float(env.thing("peg").size[1, 0])
    np.testing.assert_allclose(np.linalg.inv(peg) @ head @ [0, 0, 0, 1], [half, 0, 0, 1], atol=1e-6)
    assert frame_poses(env, [Segment("world")])["world"][1].tolist() == [0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(UnknownNameError, match=r"frame of a segment 'pegg'.*Did you mean 'peg'.*hole.*world"):
        frame_poses(env, [Segment("pegg")])
    env.close()


@pytest.mark.parametrize("task", ["Stack-v2", "NutAssembly-v4", "NutAssemblySquare-v4", "NutAssemblyRound-v4", STACK])
def test_segments_name_flags_and_frames_of_their_task(task):
    env = manikin.make(task, 1, autoreset="disabled")
    env.reset(seed=0)
    info = env.step(env.hold())[4]
    assert set(frame_poses(env, env.task.segments)) >= {one.frame for one in env.task.segments}
    assert all(one.until in ("", "gripper", *info) for one in env.task.segments)
    env.close()
