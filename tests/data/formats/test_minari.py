"""A recording as a Minari dataset, read back here and, where it is installed, by Minari itself."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import h5py
import numpy as np
import pytest

from manikin.cli import main
from manikin.data.formats.convert import to_minari
from manikin.data.formats.minari import read_minari
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.env.make import make
from manikin.errors import ConfigError, DataError
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "push.h5"
    env = make("PushCube-v2", 2, autoreset="disabled", observe="state_dict", horizon=6)
    recorder = Recorder(env, path, policy="random", observations=True)
    run_episodes(env, RandomPolicy(env), [5, 6, 9], observers=[recorder])
    recorder.close()
    env.close()
    return path


def test_a_dataset_holds_what_was_recorded(recording: Path, tmp_path: Path) -> None:
    root = to_minari(recording, tmp_path / "push-v0")
    found = list(read_minari(root))
    with read_episodes(recording) as episodes:
        recorded = list(episodes)
    assert [episode.seed for episode in found] == [5, 6, 9] and [episode.number for episode in found] == [0, 1, 2]
    for there, own in zip(found, recorded, strict=True):
        assert np.array_equal(there.actions[""], own.actions) and np.array_equal(there.rewards, own.rewards)
        assert np.array_equal(there.terminations, own.terminated) and np.array_equal(there.truncations, own.truncated)
        assert own.observations is not None and there.observations.keys() == own.observations.keys()
        for name, value in own.observations.items():
            assert np.array_equal(there.observations[name], value)
    about = json.loads((root / "data" / "metadata.json").read_text())
    assert (about["total_episodes"], about["total_steps"]) == (3, sum(len(own.actions) for own in recorded))
    env = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(about["env_spec"]))
    first, _ = env.reset(seed=6)
    assert np.array_equal(first["policy"]["qpos"], found[1].observations["policy/qpos"][0])  # the same episode
    env.close()


def test_minari_loads_it(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari", reason="Minari is not installed: pip install 'minari[hdf5]'")
    assert main(["convert", str(recording), str(tmp_path / "push-v0"), "--to", "minari", "--observe", "rgb+state"]) == 0
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = minari.load_dataset("push-v0")
    assert dataset.total_episodes == 3 and dataset.spec.dataset_id == "push-v0"
    ours = list(read_minari(tmp_path / "push-v0"))
    for theirs, own in zip(dataset.iterate_episodes(), ours, strict=True):
        assert np.array_equal(theirs.actions, own.actions[""]) and np.array_equal(theirs.rewards, own.rewards)
        picture = theirs.observations["cameras"]["base_camera"]["rgb"]
        assert picture.dtype == np.uint8 and len(picture) == len(theirs) + 1
        assert np.array_equal(picture, own.observations["cameras/base_camera/rgb"])
    env = dataset.recover_environment()
    assert env.spec.id == "manikin/PushCube-v2"
    env.close()


def test_what_is_no_dataset_is_refused(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NAME-vN, like push-v0"):
        to_minari(recording, tmp_path / "push")
    with pytest.raises(DataError, match="no Minari dataset"):
        list(read_minari(tmp_path))
    root = to_minari(recording, tmp_path / "push-v0")
    with pytest.raises(DataError, match="push-v0 exists"):
        to_minari(recording, root)
    with h5py.File(root / "data" / "main_data.hdf5", "r+") as file:
        del file["episode_1/rewards"]
    with pytest.raises(DataError, match=r"is damaged: .*rewards"):
        list(read_minari(root))
    path = root / "data" / "metadata.json"
    about = json.loads(path.read_text())
    for change, said in (
        ({"data_format": "arrow"}, "stored as 'arrow'"),
        ({"jpeg_encoding": True, "observation_space": '{"dtype": "uint8"}'}, "pictures in JPEG"),
    ):
        path.write_text(json.dumps(about | change))
        with pytest.raises(DataError, match=said):
            list(read_minari(root))


def test_an_interrupted_one_leaves_nothing(recording: Path, tmp_path: Path) -> None:
    asked = iter([False] * 3 + [True] * 100)
    to_minari(recording, tmp_path / "push-v0", observe="state_dict", num_envs=1, stop=lambda: next(asked))
    assert not list(tmp_path.iterdir())
