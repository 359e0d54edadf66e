"""The numbers of an observation have one order and one set of names, the environment's, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import h5py
import numpy as np
import pytest
import torch

import manikin
from manikin.author.sheet import task_sheet
from manikin.data.dataset import Dataset
from manikin.data.formats.convert import to_lerobot, to_robomimic
from manikin.data.recorder import Recorder
from manikin.data.recording.read import read_episodes
from manikin.eval.runner import run_episodes
from manikin.policy.random_policy import RandomPolicy

TASKS = ["PickCube-v2", "TwoRobotPickCube-v2", "OpenCabinetDrawer-v2"]


def names_of(task: str, observe: str) -> list[str]:
    env = manikin.make(task, observe=observe)
    env.close()
    return list(env.observation_names)


@pytest.fixture(scope="module", params=TASKS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Three episodes of a task, of several parts, with observations by name."""
    path = tmp_path_factory.mktemp("order") / "run.h5"
    for seeds in ([0], [0, 1, 2]):  # the second goes on with the first
        env = manikin.make(request.param, 2, horizon=3, autoreset="disabled", observe="state_dict", terminate=False)
        recorder = Recorder(env, path, policy="random", observations=True, resume=len(seeds) > 1)
        numbers = [seed for seed in seeds if seed not in recorder.finished]
        run_episodes(env, RandomPolicy(env), seeds, numbers=numbers, observers=[recorder])
        recorder.close()
        env.close()
    return request.param, path


def seen_by_a_policy(task: str, path: Path) -> np.ndarray:
    """(T, D) what ``observe="policy"`` shows when the recorded actions are played."""
    env, rows = manikin.make(task, observe="policy", horizon=3, autoreset="disabled", terminate=False), []
    with read_episodes(path) as episodes:
        for episode in episodes:
            observation, _ = env.reset(seed=[episode.seed])
            for action in episode.actions:
                rows.append(observation[0].numpy())
                observation = env.step(torch.from_numpy(action)[None])[0]
    env.close()
    return np.stack(rows)


@pytest.mark.parametrize("observe", [None, "state_dict", "state"])
def test_lerobots_state_is_what_a_policy_is_shown(
    recording: tuple[str, Path], tmp_path: Path, observe: str | None
) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="needs manikin[data]")
    pytest.importorskip("av", reason="needs manikin[data]")
    task, path = recording
    root = to_lerobot(path, tmp_path / "set", observe=observe, num_envs=2)
    features = json.loads((root / "meta/info.json").read_text())["features"]
    names = names_of(task, "policy")
    assert features["observation.state"]["names"] == names
    hidden = [name for name in names_of(task, "state") if name.startswith("privileged/")]
    assert names != sorted(names) or hidden != sorted(hidden)  # so that this says something
    assert features["observation.environment_state"]["names"] == hidden
    found = pq.read_table(root / "data/chunk-000/file-000.parquet").to_pydict()["observation.state"]
    assert np.array_equal(np.array(found, np.float32), seen_by_a_policy(task, path))


def test_every_way_to_the_names_gives_the_same_order(recording: tuple[str, Path], tmp_path: Path) -> None:
    task, path = recording
    columns = names_of(task, "state")
    order = list(dict.fromkeys(name.partition("[")[0] for name in columns))
    with read_episodes(path) as episodes:
        for episode in episodes:
            assert list(episode.observations or {}) == order
    assert Dataset(path, batch_size=1).available == order
    assert next(iter(Dataset(path, batch_size=1)))["observations"].keys() == {n for n in order if n.startswith("pol")}
    assert [f"{seen.group}/{seen.name}" for seen in task_sheet(task, measure=False).observations] == order
    env, flat = manikin.make(task, observe="state_dict"), manikin.make(task, observe="state")
    one = {group: {k: v[0].numpy() for k, v in values.items()} for group, values in env.reset(seed=3)[0].items()}
    flattened = gymnasium.spaces.flatten(env.single_observation_space, one)  # as FlattenObservation does
    assert np.array_equal(flattened, flat.reset(seed=3)[0][0].numpy())
    with h5py.File(to_robomimic(path, tmp_path / "demos.hdf5")) as file:
        hidden = json.loads(file["data/demo_0/obs/object"].attrs["columns"])
    assert hidden == [name for name in columns if name.startswith("privileged/")]
