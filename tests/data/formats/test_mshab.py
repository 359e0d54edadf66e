"""MS-HAB's files: what manikin writes has the published layout, and a file that was made by hand is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from manikin.cli import main
from manikin.data.formats.mshab import MSHABEpisode, read_mshab
from manikin.data.recording.read import EpisodeFile
from manikin.errors import DataError

LAYOUT = {  # reference/mshab.md, section 12: place -> shape after time, and type
    "obs/agent/qpos": ((12,), np.float32),
    "obs/agent/qvel": ((12,), np.float32),
    "obs/extra/tcp_pose_wrt_base": ((7,), np.float32),
    "obs/extra/obj_pose_wrt_base": ((7,), np.float32),
    "obs/extra/goal_pos_wrt_base": ((3,), np.float32),
    "obs/extra/is_grasped": ((), np.bool_),
    "obs/sensor_data/fetch_head/depth": ((16, 16, 1), np.int16),
    "obs/sensor_data/fetch_head/rgb": ((16, 16, 3), np.uint8),
    "obs/sensor_data/fetch_hand/depth": ((16, 16, 1), np.int16),
    "obs/sensor_data/fetch_hand/rgb": ((16, 16, 3), np.uint8),
    "actions": ((13,), np.float32),
    "rewards": ((), np.float32),
    **dict.fromkeys(("success", "fail", "terminated", "truncated"), ((), np.bool_)),
}


def written(path: Path, episodes: dict[int, dict[str, Any]]) -> Path:
    """A file by hand: episode -> steps and what the JSON says."""
    chance = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for number, told in episodes.items():
            steps = told.pop("steps")
            for name, (shape, kind) in LAYOUT.items():
                values = chance.integers(0, 2, (steps + name.startswith("obs/"), *shape)).astype(kind)
                file[f"traj_{number}/{name}"] = values
    about = {"env_info": {"env_id": "PickSubtaskTrain-v0"}, "commit_info": {}, "source_type": "RL", "source_desc": ""}
    about["episodes"] = [{"episode_id": number, "reset_kwargs": {}, **told} for number, told in episodes.items()]
    path.with_suffix(".json").write_text(json.dumps(about))
    return path


def test_a_file_by_hand_is_read(tmp_path: Path) -> None:
    story = {"label": "straightforward_success", "events": ["contact", "grasped", "success"]}
    file = written(tmp_path / "bowl.h5", {3: {"steps": 4, **story}, 0: {"steps": 2, "label": "drop_failure"}})
    first, second = read_mshab(file)
    assert isinstance(first, MSHABEpisode) and (first.number, len(first), second.number, len(second)) == (3, 4, 0, 2)
    assert first.label == "straightforward_success" and first.events == ("contact", "grasped", "success")
    assert second.events == () and second.label == "drop_failure"
    with h5py.File(file) as raw:
        for name in LAYOUT:
            value = first.observations[name[4:]] if name.startswith("obs/") else getattr(first, name)
            assert np.array_equal(value, raw[f"traj_3/{name}"][()]) and value.dtype == LAYOUT[name][1]
    assert [one.number for one in read_mshab(file, labels=("drop_failure",))] == [0]


def test_what_is_no_such_file_is_said(tmp_path: Path) -> None:
    file = written(tmp_path / "a.h5", {0: {"steps": 2}})
    about = file.with_suffix(".json")
    told = json.loads(about.read_text())
    about.write_text(json.dumps({**told, "episodes": [{"episode_id": 7}]}))
    with pytest.raises(DataError, match=r"lacks traj_7, which a\.json names"):
        list(read_mshab(file))
    about.unlink()
    with pytest.raises(DataError, match=r"has no a\.json beside it"):
        list(read_mshab(file))
    short = written(tmp_path / "b.h5", {0: {"steps": 2}})
    with h5py.File(short, "a") as raw:
        del raw["traj_0/rewards"]
        raw["traj_0/rewards"] = np.zeros(3, np.float32)
    with pytest.raises(DataError, match="traj_0: rewards do not fit its 2 actions"):
        list(read_mshab(short))
    with h5py.File(short, "a") as raw:
        del raw["traj_0/actions"]
    with pytest.raises(DataError, match="is not laid out as MS-HAB's files are"):
        list(read_mshab(short))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes of the expert, of different lengths."""
    path = tmp_path_factory.mktemp("home") / "run.h5"
    words = ["collect", "HomePick-v1", "--episodes", "2", "--num-envs", "2", "--horizon", "160", "--out", str(path)]
    assert main(words) == 0
    return path


def test_what_is_written_has_the_published_layout(recording: Path, tmp_path: Path) -> None:
    seen = ["--observe", "rgb+depth", "--camera", "fetch_head", "fetch_hand", "--size", "16", "16", "--num-envs", "2"]
    assert main(["convert", str(recording), str(tmp_path / "all.h5"), "--to", "mshab", *seen]) == 0
    about = json.loads((tmp_path / "all.json").read_text())
    with EpisodeFile(recording) as file, h5py.File(tmp_path / "all.h5") as made:
        assert sorted(made) == ["traj_0", "traj_1"]
        for number, told in zip(file.numbers, about["episodes"], strict=True):
            episode, group = file[number], made[f"traj_{number}"]
            for name, (shape, kind) in LAYOUT.items():
                data = group[name]
                length = len(episode) + name.startswith("obs/")
                assert data.shape == (length, *shape) and data.dtype == kind, name
            assert "env_states" not in group
            assert np.array_equal(group["actions"][()], episode.actions.clip(-1, 1))
            assert told["label"] == episode.mode and told["control_mode"] == "pd_joint_delta_pos"
            assert told["events"] == [name for _, name, _ in told["events_verbose"]]
            steps = [step for step, _, _ in told["events_verbose"]]
            assert steps == sorted(steps) and told["elapsed_steps"] == len(episode)
            if "success" in told["events"]:
                at = steps[told["events"].index("success")]
                assert group["success"][at] and not group["success"][:at].any()
            held = group["obs/extra/is_grasped"][()]
            if "grasped" in told["events"]:
                at = steps[told["events"].index("grasped")]
                assert held[at + 1] and not held[: at + 1].any()
    back = list(read_mshab(tmp_path / "all.h5"))
    assert [len(one) for one in back] == [told["elapsed_steps"] for told in about["episodes"]]


def test_open_is_written_with_the_published_state(tmp_path: Path, capsys: Any) -> None:
    words = ["collect", "HomeOpen-v1", "--episodes", "2", "--num-envs", "2", "--horizon", "5", "--policy", "random"]
    seen = ["--observe", "state_dict", "--num-envs", "2"]
    for name, config in (("own", "mechanism=drawer"), ("shown", "published_state=true")):
        file = tmp_path / f"{name}.h5"
        assert main([*words, "--config", config, "--out", str(file)]) == 0
        made = main(["convert", str(file), str(tmp_path / f"{name}-all.h5"), "--to", "mshab", *seen])
        assert made == (0 if name == "shown" else 2)
    told = " ".join(capsys.readouterr().err.split())
    assert "HomeOpen-v1 does not observe MS-HAB's 42 numbers: joints, object_from_base" in told
    assert "with --config published_state=true" in told
    for episode in read_mshab(tmp_path / "shown-all.h5"):
        for name, (shape, kind) in LAYOUT.items():
            if name.startswith("obs/") and "sensor" not in name:
                value = episode.observations[name[4:]]
                assert value.shape == (6, *shape) and value.dtype == kind
        assert episode.observations["extra/goal_pos_wrt_base"].any(1).all()  # the handle


def test_other_tasks_and_other_observations_are_refused(recording: Path, tmp_path: Path, capsys: Any) -> None:
    other = tmp_path / "cube.h5"
    words = ["collect", "PickCube-v2", "--episodes", "1", "--num-envs", "1", "--horizon", "3", "--policy", "random"]
    assert main([*words, "--out", str(other)]) == 0
    assert main(["convert", str(other), str(tmp_path / "a.h5"), "--to", "mshab"]) == 2
    assert "PickCube-v2 does not observe MS-HAB's 42 numbers" in capsys.readouterr().err
    assert main(["convert", str(recording), str(tmp_path / "b.h5"), "--to", "mshab"]) == 2
    assert "lacks joints, joint_speeds" in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.glob("[ab].*"))
