"""ManiSkill's trajectories: export, read with h5py alone, and import again. Files are made here, in the layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pytest

import manikin
from manikin.cli import main
from manikin.cli.convert import ConvertOptions, run
from manikin.data.formats.convert import to_maniskill
from manikin.data.formats.demonstrations import read_demos
from manikin.data.formats.demos import Demo
from manikin.data.formats.maniskill import Actor, from_actor, to_actor
from manikin.data.formats.maniskill_actions import MODES
from manikin.data.formats.playback import play_actions, play_states, write_seen
from manikin.data.formats.trajectories import peg_sizes
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random_policy import RandomPolicy


class Gentle(RandomPolicy):
    """Rotations that ManiSkill can say: none farther than its 0.1 rad in all."""

    def act(self, *args: Any) -> Any:
        return 0.5 * super().act(*args)


def record(path: Path, task: str, policy: type[RandomPolicy] = RandomPolicy, **options: Any) -> Path:
    env = manikin.make(task, 2, horizon=4, autoreset="disabled", **options)
    recorder = Recorder(env, path, policy="random", observations="observe" in options)
    run_episodes(env, policy(env), range(2), observers=[recorder])
    recorder.close()
    env.close()
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("maniskill") / "run.h5", "PickCube-v2")


@pytest.fixture(scope="module")
def exported(recording: Path) -> Path:
    return to_maniskill(recording, recording.with_name("traj.h5"), observe="rgb+depth+state", num_envs=2)


def test_an_export_has_maniskills_layout_and_the_recordings_numbers(recording: Path, exported: Path) -> None:
    about = json.loads(exported.with_suffix(".json").read_text())
    info = about["env_info"]
    assert (info["env_id"], info["max_episode_steps"]) == ("PickCube-v1", 4)
    assert info["env_kwargs"] == {
        "obs_mode": "rgb+depth+state_dict",
        "control_mode": "pd_joint_delta_pos",
        "reward_mode": "normalized_dense",
        "robot_uids": "panda",
    }
    assert about["manikin"]["joints"] == {
        "panda": [*(f"joint{i}" for i in range(1, 8)), "finger_joint1", "finger_joint2"]
    }
    with read_episodes(recording) as episodes:
        for told in about["episodes"]:
            row, went = episodes.attributes(told["episode_id"]), told["manikin"]
            assert all(went[name] == row[name] for name in ("number", "mode", "return", "force_sum", "force_peak"))
    expected = {
        "actions": ((4, 8), "f4"),
        "rewards": ((4,), "f4"),
        **dict.fromkeys(("terminated", "truncated", "success", "fail"), ((4,), "?")),
        **{f"env_states/actors/{name}": ((5, 13), "f4") for name in ("table-workspace", "cube", "goal_site")},
        "env_states/articulations/panda": ((5, 31), "f4"),
        "obs/agent/qpos": ((5, 9), "f4"),
        "obs/extra/goal_pos": ((5, 3), "f4"),
        "obs/sensor_data/base_camera/rgb": ((5, 128, 128, 3), "u1"),
        "obs/sensor_data/base_camera/depth": ((5, 128, 128, 1), "i2"),
        "obs/sensor_param/base_camera/intrinsic_cv": ((5, 3, 3), "f4"),
        "obs/sensor_param/base_camera/extrinsic_cv": ((5, 3, 4), "f4"),
        "obs/sensor_param/base_camera/cam2world_gl": ((5, 4, 4), "f4"),
    }
    with h5py.File(exported) as file, read_episodes(recording) as episodes:
        assert list(file) == ["traj_0", "traj_1"]
        for i, episode in enumerate(episodes):
            said, group = about["episodes"][i], file[f"traj_{i}"]
            assert (said["episode_id"], said["episode_seed"], said["elapsed_steps"]) == (i, episode.seed, 4)
            assert said["control_mode"] == "pd_joint_delta_pos" and said["success"] is False
            assert said["reset_kwargs"] == {"options": {}, "seed": episode.seed}
            for name, (shape, dtype) in expected.items():
                assert (group[name].shape, group[name].dtype) == (shape, np.dtype(dtype)), name
            assert (group["actions"][()] == episode.actions).all() and (group["rewards"][()] == episode.rewards).all()
            assert episode.states is not None  # MuJoCo's: time, 9 joints and 7 of the cube, 9 and 6 velocities
            robot, cube = group["env_states/articulations/panda"][()], group["env_states/actors/cube"][()]
            assert robot[0, :13] == pytest.approx([-0.615, 0, 0, 1, *[0] * 9])
            assert (robot[:, 13:22] == np.float32(episode.states[:, 1:10])).all()
            assert (robot[:, 22:] == np.float32(episode.states[:, 17:26])).all()
            assert cube[:, :7] == pytest.approx(episode.states[:, 10:17], abs=1e-7)
            assert (group["env_states/actors/goal_site"][:, :3] == group["obs/extra/goal_pos"][()]).all()
            # two ways to the same camera: OpenCV's world to camera, OpenGL's camera to world
            gl = group["obs/sensor_param/base_camera/cam2world_gl"][0] @ np.diag([1, -1, -1, 1])
            assert group["obs/sensor_param/base_camera/extrinsic_cv"][0] @ gl == pytest.approx(np.eye(4)[:3], abs=1e-6)


def test_velocities_are_those_of_the_centre_of_mass_in_the_world() -> None:
    geom = '<freejoint/><geom size=".1 .2 .3" type="box" pos=".3 -.2 .1"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody><body>{geom}</body></worldbody></mujoco>")
    data, draw = mujoco.MjData(model), np.random.Generator(np.random.Philox(3))
    data.qpos, data.qvel = draw.normal(size=7), draw.normal(size=6)
    data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
    mujoco.mj_forward(model, data)
    seen = np.zeros(6)  # MuJoCo's own answer: rotation, then translation, of the frame of inertia in the world's axes
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, 1, seen, 0)
    q, v = data.qpos[None].copy(), data.qvel[None].copy()
    state = to_actor(q, v[:, :3], v[:, 3:], model.body_ipos[1], Actor(name="box"))
    assert state[0, 10:] == pytest.approx(seen[:3], abs=1e-12) and state[0, 7:10] == pytest.approx(seen[3:], abs=1e-12)
    assert state[0, 10:] == pytest.approx(data.xmat[1].reshape(3, 3) @ v[0, 3:], abs=1e-12)
    # an actor whose frame is another: q and -q are the same turn
    turned = Actor(name="box", pose=(0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5))
    pose, velocity = from_actor(to_actor(q, v[:, :3], v[:, 3:], model.body_ipos[1], turned), model.body_ipos[1], turned)
    assert velocity == pytest.approx(v, abs=1e-12) and pose[:, :3] == pytest.approx(q[:, :3], abs=1e-12)
    assert abs(pose[0, 3:] @ q[0, 3:]) == pytest.approx(1, abs=1e-12)


def rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """Matrix of a turn, by Rodrigues' formula."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def test_actions_mean_the_same_in_maniskills_words() -> None:
    env = manikin.make("PickCube-v2", 1, control="joint_pos", autoreset="disabled")
    low, high = env.scene.model.jnt_range[:7].T
    ends = np.array([[-1] * 8, [1] * 8, [2] * 8], np.float32)
    mode = MODES["joint_pos"]
    assert mode.name == "pd_joint_pos"
    assert mode.theirs(ends, env) == pytest.approx(np.array([[*low, -1], [*high, 1], [*high, 1]]), abs=1e-6)
    env.close()
    env = manikin.make("PickCube-v2", 1, control="ee_delta_pose", autoreset="disabled")
    move = np.array([[0.5, -0.5, 1, 0, 0, 0.7, 1], [0, 0, 0, 0.5, -0.4, 0.3, -1]], np.float32)
    theirs = MODES["ee_delta_pose"].theirs(move, env)
    assert theirs[0] == pytest.approx([0.5, -0.5, 1, 0, 0, -0.7, 1])  # about one axis only the sign differs
    assert (theirs[:, [0, 1, 2, 6]] == move[:, [0, 1, 2, 6]]).all()
    # ManiSkill turns by -0.1 times its numbers about x, then the turned y, then the turned z
    turns = [rotation(axis, -0.1 * angle) for axis, angle in zip(np.eye(3), theirs[1, 3:6], strict=True)]
    size = np.linalg.norm(ours := 0.1 * move[1, 3:6].astype(float))
    assert turns[0] @ turns[1] @ turns[2] == pytest.approx(rotation(ours / size, size), abs=1e-8)
    env.close()


@pytest.mark.parametrize("control", MODES)
def test_actions_come_back_from_maniskills_numbers_and_do_the_same(control: str, tmp_path: Path) -> None:
    path = to_maniskill(record(tmp_path / "run.h5", "PickCube-v2", Gentle, control=control), tmp_path / "traj.h5")
    demos = read_demos(path)
    assert demos.controller == MODES[control].name
    seen = list(play_states(demos, num_envs=3))
    env = manikin.make("PickCube-v2", 1, control=control)
    with read_episodes(tmp_path / "run.h5") as episodes:
        for episode, name in zip(episodes, demos.lengths, strict=True):
            assert MODES[control].ours(demos[name].actions, env) == pytest.approx(episode.actions, abs=2e-6)
    env.close()
    for one in play_actions(demos, seen):
        assert len(one.tcp) == 5 and one.tcp.max() < 1e-4 and one.thing.max() < 1e-4  # [m]; states are float32 there
        assert seen[0].tcp[0] != pytest.approx(seen[0].tcp[4], abs=2e-3)  # and it moved


def test_maniskill_turns_no_farther_than_a_tenth_of_a_radian() -> None:
    env = manikin.make("PickCube-v2", 1, control="ee_delta_pose")
    ours = MODES["ee_delta_pose"].ours(np.array([[0, 0, 0, 0, 0, 3.0, 1], [0, 0, 0, 0, 0.5, 0, 1]]), env)
    env.close()
    assert ours == pytest.approx(np.array([[0, 0, 0, 0, 0, -1.0, 1], [0, 0, 0, 0, -0.5, 0, 1]]))


@pytest.mark.parametrize("task", ["PegInsertionSide-v2", "PushCube-v2", "StackCube-v2", "PlaceSphere-v2"])
def test_an_export_imports_as_it_was(task: str, tmp_path: Path) -> None:
    path = to_maniskill(record(tmp_path / "run.h5", task, observe="state_dict"), tmp_path / "traj.h5")
    demos = read_demos(path)
    theirs = task.replace("-v2", "-v1")
    assert (demos.env, demos.lengths, demos.controller) == (theirs, {"traj_0": 4, "traj_1": 4}, "pd_joint_delta_pos")
    with read_episodes(tmp_path / "run.h5") as episodes:
        for episode, one in zip(episodes, play_states(demos, num_envs=3, reward="normalized_dense"), strict=True):
            demo = demos[one.name]
            assert demo.success is not None and (demo.actions == episode.actions).all()
            assert (one.success[1:] == episode.success).all() and (demo.success == episode.success).all()
            assert one.rewards[1:] == pytest.approx(episode.rewards, abs=1e-4)
            assert episode.observations is not None and one.observations.keys() == episode.observations.keys()
            for name, value in episode.observations.items():
                assert one.observations[name] == pytest.approx(value, abs=2e-5), name
            assert np.abs(one.base_offset).max() < 1e-7


def test_sizes_of_peg_and_box_follow_from_the_seed_as_in_maniskill() -> None:
    def demo(**attributes: Any) -> Demo:
        return Demo(name="traj_0", actions=np.zeros((1, 8)), states=None, attributes=attributes)

    # observed in ManiSkill 3.0.1, CPU physics: half length and width of the peg, the hole in the frame of the box
    assert peg_sizes(demo(episode_seed=0), "") == pytest.approx([0.1069525, 0.0221519, 0.0087144, 0.0038061], abs=1e-7)
    assert peg_sizes(demo(episode_seed=1), "") == pytest.approx(
        [0.1016809, 0.0222032, -0.0397297, -0.0157101], abs=1e-7
    )
    with pytest.raises(DataError, match="file, traj_0: the sizes of peg and box are neither there nor drawn"):
        peg_sizes(demo(), "file, traj_0")


def edit(path: Path, **values: Any) -> None:
    """Change what the JSON beside a file says."""
    file = path.with_suffix(".json")
    about = json.loads(file.read_text())
    file.write_text(json.dumps({**about, **values}))


def layout(path: Path, *, env: str = "PickCube-v1", robot: str = "panda", **states: np.ndarray) -> Path:
    """A trajectory of two steps in ManiSkill's layout, nothing moving."""
    still = {"cube": (0, 0, 0.02), "goal_site": (0.05, 0, 0.02)}
    with h5py.File(path, "w") as file:
        group = file.create_group("traj_0")
        group["success"] = np.zeros(2, bool)
        for name, at in still.items():
            group[f"env_states/actors/{name}"] = np.tile(np.float32([*at, 1, *[0] * 9]), (3, 1))
        rest = [0, np.pi / 8, 0, -5 * np.pi / 8, 0, 3 * np.pi / 4, np.pi / 4, 0.04, 0.04]
        group["actions"] = np.tile(np.float32([*rest[:7], 0]), (2, 1))
        group[f"env_states/articulations/{robot}"] = np.tile(
            np.float32([-0.615, 0, 0, 1, *[0] * 9, *rest, *[0] * 9]), (3, 1)
        )
        for name, value in states.items():
            del group[f"env_states/actors/{name}"]
            group[f"env_states/actors/{name}"] = value
    about = {
        "env_info": {"env_id": env, "env_kwargs": {}},
        "episodes": [{"episode_id": 0, "control_mode": "pd_joint_pos"}],
    }
    path.with_suffix(".json").write_text(json.dumps(about))
    return path


def test_a_cube_at_the_goal_is_a_success_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cube = np.tile(np.float32([0.05, 0, 0.1, 1, *[0] * 9]), (3, 1))
    cube[2, 2] = 0.03  # the goal is 1 cm below, its radius is 2.5 cm
    path = layout(tmp_path / "a.h5", cube=cube)
    (one,) = play_states(read_demos(path))
    assert one.success.tolist() == [False, False, True] and one.thing[:, 2] == pytest.approx([0.1, 0.1, 0.03])
    assert one.observations["policy/goal_pos"][0] == pytest.approx([0.05, 0, 0.02])
    assert main(["import", str(path)]) == 0
    assert "PickCube-v1, robots: panda, pd_joint_pos" in (told := capsys.readouterr().out) and "traj_0: 2 steps" in told
    assert main(["import", str(path), "--out", str(tmp_path / "a.hdf5")]) == 0
    assert "1 of 1 end in success" in capsys.readouterr().out
    written = read_demos(tmp_path / "a.hdf5")["demo_0"]
    assert written.rewards is not None and written.rewards.tolist() == [0, 1]
    assert written.next_observations["object"][1, 2] == pytest.approx(0.03)
    again = str(tmp_path / "again.h5")
    assert main(["import", str(path), "--out", again, "--to", "maniskill", "--observe", "state_dict"]) == 0
    there, here = read_demos(again)["traj_0"], read_demos(path)["traj_0"]
    assert here.actions == pytest.approx(there.actions, abs=1e-6) and here.parts.keys() <= there.parts.keys()
    for name, value in here.parts.items():
        assert there.parts[name] == pytest.approx(value, abs=1e-6), name
    assert there.success is not None and there.success.tolist() == [False, True]
    assert there.observations["extra/goal_pos"][0] == pytest.approx([0.05, 0, 0.02])
    assert read_demos(again).controller == "pd_joint_pos"


def test_what_cannot_be_exported(recording: Path, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"NAME.h5 and NAME.json"):
        to_maniskill(recording, tmp_path / "a.hdf5")
    with pytest.raises(DataError, match=r"traj\.json exists"):
        to_maniskill(recording, exported)
    with pytest.raises(DataError, match="no episode was converted"):
        to_maniskill(recording, tmp_path / "b.h5", numbers=[])
    with pytest.raises(ConfigError, match="--valid works only with --to robomimic, not with --to"):
        run(ConvertOptions(file=recording, out=tmp_path / "b.h5", to="maniskill", valid=0.1))
    to_maniskill(recording, tmp_path / "b.h5", stop=lambda: True)
    assert not list(tmp_path.iterdir())  # nothing half-written is left
    assert main(["convert", str(recording), str(tmp_path / "c.h5"), "--to", "maniskill", "--episodes", "1"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.h5", "c.json"]
    assert main(["convert", str(recording), str(tmp_path / "d.h5"), "--to", "maniskill", "--keep", "label:held"]) == 2
    with read_episodes(recording) as episodes:
        modes = [episode.mode for episode in episodes]
    keep = ["--to", "maniskill", "--keep", f"label:{modes[0]}"]
    assert main(["convert", str(recording), str(tmp_path / "d.h5"), *keep]) == 0
    with h5py.File(tmp_path / "d.h5") as file:
        assert len(file) == modes.count(modes[0])
    with h5py.File(tmp_path / "c.h5") as file:
        assert list(file) == ["traj_0"] and not len(file["traj_0/obs"])  # nothing observed was recorded


def test_files_that_cannot_be_played_say_why(tmp_path: Path) -> None:
    path = layout(tmp_path / "a.h5")
    demos = read_demos(path)
    with pytest.raises(DataError, match="no demonstration 'traj_1'; it has traj_0"):
        demos["traj_1"]
    edit(path, episodes=[{"episode_id": 0, "control_mode": "pd_joint_pos_vel"}])
    strange = read_demos(path)
    with pytest.raises(DataError, match="cannot play actions of 'pd_joint_pos_vel'; valid: pd_joint_pos, pd_j"):
        play_actions(strange, list(play_states(strange)))
    with pytest.raises(UnknownNameError, match="Valid: lerobot, maniskill, robomimic"):
        write_seen(demos, [], tmp_path / "out.hdf5", to="hdf5")
    with pytest.raises(DataError, match="no episode was converted"):
        write_seen(demos, [], tmp_path / "out.hdf5")
    with pytest.raises(
        DataError, match="cannot play trajectories of 'RollBall-v1', only list them; playable: PickCube-v1"
    ):
        next(play_states(read_demos(layout(tmp_path / "b.h5", env="RollBall-v1"))))
    with pytest.raises(DataError, match=r"cannot play trajectories of robot 'fetch'; playable: panda, panda_wristcam"):
        next(play_states(read_demos(layout(tmp_path / "c.h5", robot="fetch"))))
    with pytest.raises(DataError, match=r"states of actors/cube have shape \(3, 7\)"):
        next(play_states(read_demos(layout(tmp_path / "d.h5", cube=np.zeros((3, 7))))))
    with pytest.raises(DataError, match=r"damaged: traj_0 has 2 actions and env_states/actors/cube of shape \(2, 13\)"):
        next(play_states(read_demos(layout(tmp_path / "e.h5", cube=np.zeros((2, 13))))))
    goal = np.tile(np.float32([0.05, 0, 0.02, 1, *[0] * 9]), (3, 1))
    goal[2, 0] = 0.1
    with pytest.raises(DataError, match="goal_site moves in the recording, but 'goal_marker' is fixed in"):
        next(play_states(read_demos(layout(tmp_path / "f.h5", goal_site=goal))))

    edit(path, episodes=[{"episode_id": 1}])
    with pytest.raises(DataError, match="it has no traj_1"):
        read_demos(path)
    edit(path, episodes=[])
    with pytest.raises(DataError, match=r"a.json lists none"):
        read_demos(path)
    edit(path, env_info=None)
    with pytest.raises(DataError, match=r"a.json is damaged or not ManiSkill's"):
        read_demos(path)
    path.with_suffix(".json").unlink()
    with pytest.raises(DataError, match=r"needs the file a.json in the same folder"):
        read_demos(path)
    whole = (tmp_path / "b.h5").read_bytes()
    (tmp_path / "b.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_demos(tmp_path / "b.h5")


def test_a_cabinet_is_an_articulation_where_it_stands(tmp_path: Path) -> None:
    env = manikin.make("OpenCabinetDrawer-v2", 2, horizon=3, autoreset="disabled", observe="state_dict")
    recorder = Recorder(env, tmp_path / "run.h5", policy="expert", observations=True)
    run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    recorder.close()
    env.close()
    path = to_maniskill(tmp_path / "run.h5", tmp_path / "traj.h5")
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["episodes"][0]["control_mode"] == "joint_delta_pos"  # ManiSkill's task of this name has another robot
    with h5py.File(path) as file, read_episodes(tmp_path / "run.h5") as episodes:
        for i, episode in enumerate(episodes):
            states, seen = file[f"traj_{i}/env_states"], episode.observations
            assert seen is not None and sorted(states["articulations"]) == ["cabinet", "panda"]
            cabinet = states["articulations/cabinet"][()]
            joints = (cabinet.shape[1] - 13) // 2
            assert cabinet[:, 3:7] == pytest.approx(seen["privileged/cabinet_quat"], abs=1e-6)
            assert cabinet[0, 0] == pytest.approx(0.745 - 0.615, abs=0.3) and (cabinet[:, 7:13] == 0).all()
            assert cabinet[:, 13 : 13 + joints] == pytest.approx(
                seen["privileged/joint_positions"][:, :joints], abs=1e-6
            )
