"""robomimic's layout: export, read with h5py alone, and import again."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import mujoco
import numpy as np
import pyarrow.parquet as pq
import pytest

import manikin
from manikin.cli import main
from manikin.data.formats.convert import to_maniskill, to_robomimic
from manikin.data.formats.demonstrations import Model, control_of, read_demos
from manikin.data.formats.playback import PlaybackResult, play_actions, play_states, write_seen
from manikin.data.formats.robomimic import obs_of
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.errors import ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.policy.random_policy import RandomPolicy
from manikin.view.sources import open_source


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robomimic") / "run.h5"
    env = manikin.make("Lift-v2", 2, horizon=4, autoreset="disabled")
    recorder = Recorder(env, path, policy="random")
    run_episodes(env, RandomPolicy(env), range(3), observers=[recorder])
    recorder.close()
    env.close()
    return path


@pytest.fixture(scope="module")
def exported(recording: Path) -> Path:
    return to_robomimic(recording, recording.with_name("demos.hdf5"), observe="state_dict", valid=0.34, num_envs=2)


def test_an_export_has_robomimics_layout_and_the_recordings_numbers(recording: Path, exported: Path) -> None:
    with h5py.File(exported) as file, read_episodes(recording) as episodes:
        data = file["data"]
        assert data.attrs["total"] == 12 and sorted(data) == ["demo_0", "demo_1", "demo_2"]
        args = json.loads(data.attrs["env_args"])
        assert args["env_name"] == "Lift-v2" and args["type"] == 2 and args["env_kwargs"]["control_hz"] == 20
        assert file["mask/train"][()].tolist() == [b"demo_0", b"demo_1"]
        assert file["mask/valid"][()].tolist() == [b"demo_2"]
        for i, episode in enumerate(episodes):
            demo = data[f"demo_{i}"]
            assert demo.attrs["num_samples"] == 4 and demo.attrs["seed"] == episode.seed
            went = {name: demo.attrs[name] for name in ("mode", "success_at_end", "return", "force_sum", "force_peak")}
            assert went == {name: episodes.attributes(episode.number)[name] for name in went} and went["mode"]
            assert (demo["actions"][()] == episode.actions).all() and (demo["rewards"][()] == episode.rewards).all()
            assert episode.states is not None and (demo["states"][()] == episode.states[:4]).all()
            assert demo["dones"][()].tolist() == [0, 0, 0, 1]
            assert set(demo["obs"]) == set(demo["next_obs"]) == {"qpos", "qvel", "tcp_pose", "object"}
            columns = [f"privileged/cube_pose[{i}]" for i in range(7)]
            columns += [f"privileged/tcp_to_cube[{i}]" for i in range(3)]
            assert json.loads(demo["obs/object"].attrs["columns"]) == columns
            # the tool's way to the cube is where the cube is less where the tool is
            apart = demo["obs/object"][:, :3] - demo["obs/tcp_pose"][:, :3]
            assert demo["obs/object"][:, 7:] == pytest.approx(apart, abs=1e-6)
            assert (demo["obs/qpos"][1:] == demo["next_obs/qpos"][:-1]).all()
            # MuJoCo's own state: time first, then positions
            assert demo["obs/qpos"][()] == pytest.approx(episode.states[:4, 1:10], abs=1e-6)
            assert demo["next_obs/qpos"][()] == pytest.approx(episode.states[1:, 1:10], abs=1e-6)
        model = mujoco.MjModel.from_xml_string(demo.attrs["model_file"])
    assert model.nq == 16 and model.body("cube").id > 0


def test_an_export_of_what_was_recorded_and_what_cannot_be_exported(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(recording), str(tmp_path / "a.hdf5"), "--to", "robomimic", "--episodes", "1", "1"]) == 0
    assert "1 episode in" in capsys.readouterr().out
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert list(file["data"]) == ["demo_0"] and file["data/demo_0"].attrs["number"] == 1
        assert "obs" not in file["data/demo_0"] and "mask" not in file  # nothing observed was recorded
    with pytest.raises(DataError, match="exists"):
        to_robomimic(recording, tmp_path / "a.hdf5")
    with pytest.raises(ConfigError, match=r"\[0, 1\)"):
        to_robomimic(recording, tmp_path / "b.hdf5", valid=1.0)
    with pytest.raises(DataError, match="no episode 9"):
        to_robomimic(recording, tmp_path / "b.hdf5", numbers=[0, 9])
    with pytest.raises(DataError, match="no episode was converted"):
        to_robomimic(recording, tmp_path / "b.hdf5", numbers=[])
    to_robomimic(recording, tmp_path / "b.hdf5", stop=lambda: True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.hdf5"]  # nothing half-written is left


def test_each_demonstration_names_the_scene_of_its_own_layout(tmp_path: Path) -> None:
    env = manikin.make("OpenCabinetDrawer-v2", 2, horizon=2, autoreset="disabled", reward="none")
    recorder = Recorder(env, tmp_path / "run.h5", policy="random")
    run_episodes(env, RandomPolicy(env), range(2), observers=[recorder])
    layouts = env.layout.tolist()
    recorder.close()
    env.close()
    assert layouts[0] != layouts[1]
    to_robomimic(tmp_path / "run.h5", tmp_path / "demos.hdf5")
    with h5py.File(tmp_path / "demos.hdf5") as file:
        texts = [file[f"data/demo_{i}"].attrs["model_file"] for i in range(2)]
        widths = [file[f"data/demo_{i}/states"].shape[1] for i in range(2)]
    models = [mujoco.MjModel.from_xml_string(text) for text in texts]
    full = mujoco.mjtState.mjSTATE_INTEGRATION
    assert texts[0] != texts[1]
    assert [mujoco.mj_stateSize(model, full) for model in models] == widths


@pytest.mark.skipif(sys.platform == "win32", reason="limits on file sizes are POSIX")
@pytest.mark.parametrize(("name", "convert"), [("a.hdf5", to_robomimic), ("a.h5", to_maniskill)])
def test_a_full_disk_is_an_error_that_leaves_no_file(recording: Path, tmp_path: Path, name: str, convert: Any) -> None:
    """Writes beyond a limit of the operating system fail like those on a full disk; HDF5 crashes on both."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for limit in (0, 10_000, 150_000, 200_000):  # opening, and the first and a later episode
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
            with pytest.raises(DataError, match=r"cannot write .*a\.h"):
                convert(recording, tmp_path / name, observe="rgb", num_envs=2)
            assert not list(tmp_path.iterdir()), limit
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert convert(recording, tmp_path / name, observe="state_dict", num_envs=2).is_file()


def test_names_of_observations() -> None:
    one, two = np.zeros((3, 2)), np.ones((3, 1))
    seen, columns = obs_of({"policy/qpos": one, "cameras/front/rgb": one, "cameras/front/depth": one})
    assert list(seen) == ["qpos", "front_image", "front_depth"] and not columns
    seen, columns = obs_of({"policy/x": one, "privileged/x": two, "privileged/y": one})
    assert list(seen) == ["x", "object"] and columns == ["privileged/x", "privileged/y[0]", "privileged/y[1]"]
    assert seen["object"].tolist() == [[1, 0, 0]] * 3
    seen, _ = obs_of({"policy/touch": np.arange(3.0)})
    assert seen["touch"].shape == (3, 1)
    seen, _ = obs_of({"policy/object": one, "privileged/x": two})
    assert list(seen) == ["policy_object", "object"]


def test_what_a_policy_may_know_is_apart_from_the_rest_also_of_a_flat_observation(
    recording: Path, exported: Path, tmp_path: Path
) -> None:
    to_robomimic(recording, tmp_path / "flat.hdf5", observe="state", numbers=[1])
    with h5py.File(exported) as named, h5py.File(tmp_path / "flat.hdf5") as flat:
        there, here = named["data/demo_1"], flat["data/demo_0"]
        for kind in ("obs", "next_obs"):
            assert set(there[kind]) == set(here[kind])
            assert all((there[kind][name][()] == here[kind][name][()]).all() for name in there[kind])
        assert there["obs/object"].attrs["columns"] == here["obs/object"].attrs["columns"]
    again = str(tmp_path / "again.hdf5")
    assert main(["import", str(exported), "--demos", "demo_1", "--out", again, "--observe", "state"]) in (0, 1)
    with h5py.File(again) as file, h5py.File(exported) as named:
        assert set(file["data/demo_0/obs"]) == set(named["data/demo_1/obs"])


def test_demonstrations_are_in_the_order_of_the_recording_however_many_play_side_by_side(tmp_path: Path) -> None:
    env = manikin.make("PickCube-v2", 2, autoreset="disabled", reward="none")
    recorder = Recorder(env, tmp_path / "run.h5", policy="expert")
    run_episodes(env, ExpertPolicy(env), range(2), observers=[recorder])
    recorder.close()
    env.close()
    with read_episodes(tmp_path / "run.h5") as episodes:
        lengths, seeds = [len(e) for e in episodes], [e.seed for e in episodes]
    assert lengths[0] > lengths[1]  # the second is done before the first
    to_robomimic(tmp_path / "run.h5", tmp_path / "a.hdf5", observe="state", num_envs=2, valid=0.5)
    to_maniskill(tmp_path / "run.h5", tmp_path / "a.h5", observe="state", num_envs=2)
    with h5py.File(tmp_path / "a.hdf5") as file:
        assert [file[f"data/demo_{i}"].attrs["seed"] for i in range(2)] == seeds
        assert [len(file[f"data/demo_{i}/actions"]) for i in range(2)] == lengths
        assert file["mask/valid"][()].tolist() == [b"demo_1"]
    told = json.loads((tmp_path / "a.json").read_text())["episodes"]
    assert [(one["episode_id"], one["episode_seed"]) for one in told] == list(enumerate(seeds))
    with h5py.File(tmp_path / "a.h5") as file:
        assert [len(file[f"traj_{i}/actions"]) for i in range(2)] == lengths


def test_an_export_imports_as_it_was(recording: Path, exported: Path) -> None:
    demos = read_demos(exported)
    assert demos.env == "Lift-v2" and demos.lengths == {"demo_0": 4, "demo_1": 4, "demo_2": 4}
    assert demos.masks == {"train": ("demo_0", "demo_1"), "valid": ("demo_2",)}
    with read_episodes(recording) as episodes:
        for episode, name in zip(episodes, demos.lengths, strict=True):
            demo = demos[name]
            assert episode.states is not None and demo.states is not None and demo.rewards is not None
            assert (demo.actions == episode.actions).all() and (demo.states == episode.states[:4]).all()
            assert (demo.rewards == episode.rewards).all() and demo.attributes["index"] == episode.index
            assert len(demo.observations) == len(demo.next_observations) == 4
    with pytest.raises(DataError, match="no demonstration 'demo_9'; it has demo_0"):
        demos["demo_9"]


def test_what_an_import_writes_is_whole_or_not_there(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demos = read_demos(exported)

    def broken() -> Iterator[PlaybackResult]:
        yield next(play_states(demos, observe="policy", num_envs=5))
        raise DataError("the second is damaged")

    for to in ("lerobot", "robomimic", "maniskill"):
        with pytest.raises(DataError, match="second is damaged"):
            write_seen(demos, broken(), tmp_path / "a.h5", to=to)
        assert not list(tmp_path.iterdir()), to
    (tmp_path / "there").mkdir()
    for to in ("lerobot", "robomimic"):  # what was there before stays
        assert main(["import", str(exported), "--out", str(tmp_path / "there"), "--to", to]) == 2
        assert "exists" in capsys.readouterr().err and (tmp_path / "there").is_dir()
    assert main(["import", str(exported), "--demos", "demo_0", "demo_9", "--out", str(tmp_path / "b")]) == 2
    assert "no demonstration 'demo_9'" in capsys.readouterr().err and not (tmp_path / "b").exists()


def test_an_export_of_manikins_own_is_played_by_its_states_and_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = manikin.make("PickCube-v2", 2, autoreset="disabled")
    recorder = Recorder(env, tmp_path / "run.h5", policy="expert")
    run_episodes(env, ExpertPolicy(env), range(3, 5), observers=[recorder])
    recorder.close()
    env.close()
    path = to_robomimic(tmp_path / "run.h5", tmp_path / "own.hdf5")
    demos = read_demos(path)
    seen = list(play_states(demos, num_envs=16))
    with read_episodes(tmp_path / "run.h5") as episodes:
        for episode, one in zip(episodes, seen, strict=True):
            assert episode.states is not None and len(one.success) == len(episode) + 1
            assert one.success[1:].tolist() == episode.success.tolist() and one.success_at_end
            # time, nine joints, then the cube
            assert one.thing == pytest.approx(episode.states[:, 10:13], abs=1e-5)
    for one in play_actions(demos, seen):
        assert one.success[-1] and one.tcp.max() < 1e-4 and one.thing.max() < 1e-4  # manikin's own physics
    assert main(["import", str(path), "--play", "states"]) == 0
    assert "states: 2 of 2 end in success" in capsys.readouterr().out
    with h5py.File(path, "r+") as file:
        file["data/demo_0"].attrs["seed"] = 9
    with pytest.raises(DataError, match="its first state differs from the start of seed 9 here"):
        next(play_states(read_demos(path)))
    with h5py.File(path, "r+") as file:
        del file["data/demo_1/states"]
    with pytest.raises(DataError, match="demo_1: no states were recorded"):
        next(play_states(read_demos(path), names=["demo_1"]))
    with h5py.File(path, "r+") as file:
        args = json.loads(file["data"].attrs["env_args"])
        args["env_kwargs"] |= {"task": "TwoRobotPickCube-v2", "robot": None, "config": None, "vision": None}
        file["data"].attrs["env_args"] = json.dumps(args)
    with pytest.raises(DataError, match=r"numbers, but TwoRobotPickCube-v2 needs .* here"):
        next(play_states(read_demos(path)))


def test_joints_of_a_model_are_where_mujoco_has_them(exported: Path) -> None:
    text = read_demos(exported)["demo_0"].model_file
    ours, mujocos = Model.of(text, "here"), mujoco.MjModel.from_xml_string(text)
    assert (ours.nq, ours.nv) == (mujocos.nq, mujocos.nv)
    named = {n: at for n, at in ours.joints.items() if not n.startswith("joint ")}
    assert len(named) >= 9
    for name, at in named.items():
        assert at == (mujocos.joint(name).qposadr[0], mujocos.joint(name).dofadr[0])


def test_files_that_are_no_demonstrations_are_refused(recording: Path, exported: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        read_demos(tmp_path / "none.hdf5")
    (tmp_path / "a").write_text("not hdf5" * 200)
    with pytest.raises(DataError, match="not an HDF5 file"):
        read_demos(tmp_path / "a")
    (tmp_path / "b").write_bytes(exported.read_bytes()[:3000])
    with pytest.raises(DataError, match="damaged or cut short"):
        read_demos(tmp_path / "b")
    with pytest.raises(DataError, match="see manikin replay"):
        read_demos(recording)
    with h5py.File(tmp_path / "c", "w") as file:
        file["data/demo_1/actions"] = np.zeros((3, 7))
    with pytest.raises(DataError, match="does not say which environment"):
        read_demos(tmp_path / "c")
    with h5py.File(tmp_path / "c", "r+") as file:
        file["data"].attrs["env"] = "Lift"
        file["data/demo_1/states"] = np.zeros((2, 32))
    demos = read_demos(tmp_path / "c")
    with pytest.raises(DataError, match=r"demo_1 has 3 actions and states of shape \(2, 32\)"):
        demos["demo_1"]
    with pytest.raises(DataError, match="cannot read the recording's controller"):
        control_of(demos.env_kwargs)
    config = {
        "type": "OSC_POSE",
        "output_max": [0.05] * 3 + [0.5] * 3,
        "output_min": [-0.05] * 3 + [-0.4] * 3,
        "kp": 150,
    }
    with pytest.raises(DataError, match="symmetric"):
        control_of({"controller_configs": config})


def test_robosuites_lift_demonstrations_succeed_by_their_states(data_root: Path, tmp_path: Path) -> None:
    demos = read_demos(data_root / "demos/robosuite_1.4.1/lift_demo.hdf5")
    assert demos.lengths == {"demo_1": 482, "demo_2": 510, "demo_3": 392}
    control = control_of(demos.env_kwargs)
    assert control.word == "osc_pose:frame=world"  # the defaults are robosuite's
    seen = list(play_states(demos, num_envs=32))
    assert [one.success_at_end for one in seen] == [True] * 3 and not any(one.success[0] for one in seen)
    for one in seen:
        states = demos[one.name].states
        assert states is not None
        assert one.thing == pytest.approx(states[:, 10:13] - (0, 0, 0.8), abs=1e-6)
        assert one.observations["policy/qpos"][:, :7] == pytest.approx(states[:, 1:8], abs=1e-6)
        assert np.linalg.norm(one.tcp[-1] - one.thing[-1]) < 0.036  # the cube's half diagonal: it holds it
    # the same robot and law: free motion stays near for a while; what contact does later is not promised
    (parted,) = play_actions(demos, seen[2:])
    assert parted.tcp[0] == 0 and parted.tcp[50] < 0.006 and parted.thing[200] < 0.001
    written = read_demos(write_seen(demos, seen[2:], tmp_path / "seen.hdf5"))
    assert written.lengths == {"demo_0": 392} and written["demo_0"].rewards[-1] == 1  # type: ignore[index]
    folder = write_seen(demos, seen[2:], tmp_path / "set", to="lerobot")
    (one,) = open_source(folder).about()["episodes"]
    assert one["success_at_end"] and one["length"] == 392
    table = pq.read_table(next(folder.rglob("data/**/*.parquet")))
    actions, state = (np.stack(table[name].to_numpy()) for name in ("action", "observation.state"))
    theirs = np.clip(demos["demo_3"].actions, -1, 1) * ([1.0] * 6 + [-1.0])  # robosuite closes at 1, manikin at -1
    assert actions == pytest.approx(theirs, abs=1e-6)
    assert state[:, :7] == pytest.approx(seen[2].observations["policy/qpos"][:392, :7], abs=1e-6)
    assert table["next.success"].to_pylist()[-1] and not table["next.success"].to_pylist()[0]


def robosuite_file(path: Path, env: str, world: str, free: dict[str, list[np.ndarray]]) -> Path:
    """A file as robosuite writes it, of a Panda that stays at rest and free things that are put somewhere: joint ->
    poses (7,), one for each state."""
    arm = "".join(f"<body><joint name='robot0_joint{k}'/>" for k in range(1, 8)) + "</body>" * 7
    fingers = "".join(f"<body><joint name='gripper0_finger_joint{k}' type='slide'/></body>" for k in (1, 2))
    things = "".join(f"<body name='{name}'><freejoint name='{name}'/></body>" for name in free)
    base = (
        f"<body name='robot0_base' pos='{'-.5 -.1 .912' if 'bin1' in world else '-.56 0 .912'}'>{arm}{fingers}</body>"
    )
    rest = [0, 0.2, 0, -2.4, 0, 2.6, 0.8, 0.02, -0.02]
    states = [[0.05 * t, *rest, *np.concatenate(poses), *np.zeros(9 + 6 * len(free))] for t, poses in
              enumerate(zip(*free.values(), strict=True))]  # fmt: skip
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env"], data.attrs["env_info"] = env, json.dumps({"robots": ["Panda"]})
        demo = data.create_group("demo_1")
        demo["states"], demo["actions"] = np.array(states), np.zeros((len(states), 7))
        demo.attrs["model_file"] = f"<mujoco><worldbody>{world}{base}{things}</worldbody></mujoco>"
    return path


def at(x: float, y: float, z: float) -> np.ndarray:
    return np.array([x, y, z, 1, 0, 0, 0])


def test_states_of_robosuites_other_tasks_succeed_where_robosuite_says_so(tmp_path: Path) -> None:
    """Its rules: a thing counts within a quarter of the bin at (0.1, 0.28), 0.39 x 0.49 m, below 0.1 m; a nut within
    3 cm of its peg at (0.23, 0.1), below 5 cm above the table, which is 0.82 m high."""
    far, bins = at(10, 10, 10), "<body name='bin1' pos='.1 -.25 .8'/>"
    can = [at(0.1975, 0.4025, 0.86), at(0.1025, 0.2825, 0.86), at(0.0925, 0.4025, 0.86), at(0.1975, 0.4025, 0.91)]
    others = {f"{name}_joint0": [far] * 4 for name in ("Milk", "Bread", "Cereal")}
    path = robosuite_file(tmp_path / "can.hdf5", "PickPlaceCan", bins, {**others, "Can_joint0": can})
    (seen,) = play_states(read_demos(path))
    assert seen.success.tolist() == [True, True, False, False]
    np.testing.assert_allclose(seen.thing, np.array(can)[:, :3] - (0, 0, 0.8), atol=1e-6)
    assert np.abs(seen.base_offset).max() < 2e-3
    table = "<body name='table' pos='0 0 .795'><site name='table_top' pos='0 0 .025'/></body>"
    square = [at(0.25, 0.12, 0.83), at(0.262, 0.1, 0.83), at(0.23, 0.1, 0.88)]
    nuts = {"SquareNut_joint0": square, "RoundNut_joint0": [far] * 3}
    path = robosuite_file(tmp_path / "nut.hdf5", "NutAssemblySquare", table, nuts)
    (seen,) = play_states(read_demos(path))
    assert seen.success.tolist() == [True, False, False]
    cubes = {"cubeA_joint0": [at(0.1, 0, 0.895)], "cubeB_joint0": [at(0.1, 0, 0.85)]}
    path = robosuite_file(tmp_path / "stack.hdf5", "Stack", table.replace("795", "8").replace("025", "02"), cubes)
    (seen,) = play_states(read_demos(path))
    np.testing.assert_allclose(seen.thing, [[0.1, 0, 0.075]], atol=1e-6)
    path = robosuite_file(tmp_path / "short.hdf5", "PickPlaceCan", bins, {"Milk_joint0": [far]})
    with pytest.raises(DataError, match="no joint 'Can_joint0'"):
        next(play_states(read_demos(path)))


def test_a_file_without_its_model_is_listed_and_not_played(data_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = data_root / "demos/robosuite_1.4.1/wipe_panda_demo.hdf5"
    assert main(["import", str(path)]) == 0
    assert "demo_1: 174 steps" in capsys.readouterr().out
    with pytest.raises(DataError, match="the file has no model"):
        Model.of(read_demos(path)["demo_1"].model_file, "demo_1")
    assert main(["import", str(path), "--play", "states"]) == 2
    assert "cannot play demonstrations of 'Wipe', only list them" in capsys.readouterr().err
