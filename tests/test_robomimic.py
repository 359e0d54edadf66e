"""robomimic's layout: export, read with h5py alone, and import again."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import mujoco
import pytest

import manikin
from manikin.cli import main
from manikin.data.convert import to_robomimic
from manikin.data.read import read_episodes
from manikin.data.record import Recorder
from manikin.data.robomimic import obs_names
from manikin.errors import ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.policy.random import RandomPolicy


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robomimic") / "run.h5"
    env = manikin.make("Lift-v1", 2, horizon=4, autoreset="disabled")
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
        assert args["env_name"] == "Lift-v1" and args["type"] == 2 and args["env_kwargs"]["control_hz"] == 20
        assert file["mask/train"][()].tolist() == [b"demo_0", b"demo_1"]
        assert file["mask/valid"][()].tolist() == [b"demo_2"]
        for i, episode in enumerate(episodes):
            demo = data[f"demo_{i}"]
            assert demo.attrs["num_samples"] == 4 and demo.attrs["seed"] == episode.seed
            assert (demo["actions"][()] == episode.actions).all() and (demo["rewards"][()] == episode.rewards).all()
            assert episode.states is not None and (demo["states"][()] == episode.states[:4]).all()
            assert demo["dones"][()].tolist() == [0, 0, 0, 1]
            assert set(demo["obs"]) == set(demo["next_obs"]) == {"qpos", "qvel", "tcp_pose", "cube_pose", "tcp_to_cube"}
            assert (demo["obs/qpos"][1:] == demo["next_obs/qpos"][:-1]).all()
            # MuJoCo's own state: time first, then positions
            assert demo["obs/qpos"][()] == pytest.approx(episode.states[:4, 1:10], abs=1e-6)
            assert demo["next_obs/qpos"][()] == pytest.approx(episode.states[1:, 1:10], abs=1e-6)
        model = mujoco.MjModel.from_xml_string(demo.attrs["model_file"])
    assert model.nq == 16 and model.body("cube").id > 0


def test_an_export_of_what_was_recorded_and_what_cannot_be_exported(recording: Path, tmp_path: Path) -> None:
    assert main(["convert", str(recording), str(tmp_path / "a.hdf5"), "--to", "robomimic", "--episodes", "1"]) == 0
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


def test_names_of_observations() -> None:
    keys = ["policy/qpos", "privileged/cube_pose", "cameras/base_camera/rgb", "cameras/base_camera/depth", "value"]
    assert list(obs_names(keys).values()) == ["qpos", "cube_pose", "base_camera_image", "base_camera_depth", "state"]
    assert list(obs_names(["policy/x", "privileged/x"]).values()) == ["policy_x", "privileged_x"]
