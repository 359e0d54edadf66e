"""Habitat's episodes and MS-HAB's plans: a published file, files written by hand, and bad ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manikin.data.formats.rearrange import (
    PlannedSubtask,
    pose_in_file,
    read_plans,
    read_rearrange,
    write_plans,
    write_rearrange,
)
from manikin.errors import DataError

IDENTITY = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def at(x: float, y: float, z: float) -> list[list[float]]:
    return [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1]]


NAN = at(float("nan"), 0, 0)


def raw(**changes: Any) -> dict[str, Any]:
    """One episode: two bowls and a can; the second bowl is to be brought somewhere."""
    return {
        "scene_id": "data/replica_cad/configs/scenes/v3_sc0_staging_03.scene_instance.json",
        "episode_id": "7",
        "start_position": [1.0, 0.1, -2.0],
        "start_rotation": [0, 0, 0, 1],
        "rigid_objs": [
            ["024_bowl.object_config.json", at(1, 0.5, 2)],
            ["005_tomato_soup_can.object_config.json", at(0, 1, 0)],
            ["024_bowl.object_config.json", at(4, 5, 6)],
        ],
        "targets": {"024_bowl_:0001": at(-1, 0.9, 3)},
        "ao_states": {"fridge_:0000": {"2": 1.5}},
        "info": {"object_labels": {"024_bowl_:0001": "any_targets|0"}},
        "target_receptacles": [["fridge_:0000", 2]],
        "goal_receptacles": [["frl_apartment_table_01_:0000", None]],
        "name_to_receptacle": {},
        "markers": [],
        **changes,
    }


def written(folder: Path, content: Any, name: str = "episode.json") -> Path:
    path = folder / name
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def test_an_episode_is_read_with_z_up(tmp_path: Path) -> None:
    (episode,) = read_rearrange(written(tmp_path, raw()))
    assert (episode.number, episode.scene) == ("7", "v3_sc0_staging_03")
    assert episode.copies == {"024_bowl": 2, "005_tomato_soup_can": 1}
    assert episode.start.tolist() == [1, 2, 0.1]  # (x, -z, y)
    assert episode.goals["024_bowl_:0001"][:3, 3].tolist() == [-1, -3, 0.9]
    there = episode.placed("024_bowl_:0001")
    assert there[:3, 3].tolist() == [4, -6, 5]
    assert np.allclose(there[:3, :3], np.eye(3))  # what stands upright there stands upright here
    assert episode.joints == {"fridge_:0000": {2: 1.5}}
    assert episode.start_receptacles == (("fridge_:0000", 2),)
    assert episode.goal_receptacles == (("frl_apartment_table_01_:0000", None),)


def test_an_object_turned_about_the_vertical_stays_upright(tmp_path: Path) -> None:
    """A quarter turn about their vertical, y, is one about z."""
    turned = [[0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1]]
    changed = raw(rigid_objs=[["024_bowl.object_config.json", turned]] * 2)
    (episode,) = read_rearrange(written(tmp_path, changed))
    assert np.allclose(episode.placed("024_bowl_:0000")[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def test_a_goal_is_turned_as_the_object_is_and_comes_out_as_it_went_in(tmp_path: Path) -> None:
    turned = [[0, 0, 1, 0.5], [0, 1, 0, 1], [-1, 0, 0, 2], [0, 0, 0, 1]]
    targets = dict.fromkeys(raw()["targets"], turned)
    (episode,) = read_rearrange(written(tmp_path, raw(targets=targets)))
    for goal in episode.goals.values():
        assert np.allclose(goal[:3], [[0, -1, 0, 0.5], [1, 0, 0, -2], [0, 0, 1, 1]])
        assert pose_in_file(goal) == turned


@pytest.mark.parametrize("wrong", [np.diag([2, 2, 2, 1]), np.diag([1, 1, -1, 1])])
def test_a_pose_that_scales_or_mirrors_is_refused(tmp_path: Path, wrong: np.ndarray) -> None:
    targets = dict.fromkeys(raw()["targets"], wrong.tolist())
    with pytest.raises(DataError, match=r"the goal of .* is no turn and a place: it scales, skews or mirrors"):
        read_rearrange(written(tmp_path, raw(targets=targets)))


@pytest.mark.parametrize("name", ["all.json", "all.json.gz"])
def test_what_is_written_says_the_same(tmp_path: Path, name: str) -> None:
    episodes = read_rearrange(written(tmp_path, {"episodes": [raw(), raw(episode_id="8")]}))
    write_rearrange(tmp_path / name, episodes)
    again = read_rearrange(tmp_path / name)
    assert [episode.number for episode in again] == ["7", "8"]
    assert [episode.raw for episode in again] == [raw(), raw(episode_id="8")]


def test_a_published_file_is_read(data_root: Path, tmp_path: Path) -> None:
    """Habitat's episode of two objects (HSSD's scene, not among ReplicaCAD's)."""
    path = data_root / "demos" / "habitat_hitl" / "demo.json.gz"
    episodes = read_rearrange(path)
    content = json.loads(gzip.decompress(path.read_bytes()))
    assert len(episodes) == len(content["episodes"]) == 2
    first = episodes[0]
    assert first.scene == "102817140" and list(first.goals) == ["024_bowl_:0000", "005_tomato_soup_can_:0000"]
    x, y, z = (row[3] for row in content["episodes"][0]["rigid_objs"][0][1][:3])
    assert first.placed("024_bowl_:0000")[:3, 3] == pytest.approx([x, -z, y])
    for episode in episodes:
        for name, pose in episode.objects:
            assert pose[2, 2] > 0.9, f"{name} does not stand upright"
        for receptacles in (episode.start_receptacles, episode.goal_receptacles):
            assert len(receptacles) == len(episode.goals)
    write_rearrange(tmp_path / "again.json.gz", episodes)
    assert [e.raw for e in read_rearrange(tmp_path / "again.json.gz")] == content["episodes"]


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"targets": {}}, r"episode 0: no goal of '024_bowl_:0001'"),
        ({"rigid_objs": [["024_bowl.object_config.json", IDENTITY]]}, r"no object '024_bowl_:0001'.*024_bowl \(1\)"),
        ({"rigid_objs": [["024_bowl.object_config.json", [[1, 2], [3, 4]]]]}, r"shape \(2, 2\), not \(4, 4\)"),
        ({"ao_states": {"fridge": {"door": 1}}}, "episode 0: invalid literal"),
        ({"ao_states": {"fridge": {"2": float("inf")}}}, "joint 2 of fridge has a number that is not finite"),
        ({"rigid_objs": [["024_bowl.object_config.json", NAN]] * 2}, "the pose of 024_bowl.* has a number that is not"),
        ({"targets": {"024_bowl_:0001": NAN}}, "the goal of 024_bowl_:0001 has a number that is not finite"),
        ({"start_position": [0, 1]}, r"start_position has the shape \(2,\), not \(3,\)"),
        ({"start_position": [0, 1, float("nan")]}, "start_position has a number that is not finite"),
        (
            {"goal_receptacles": [["a", None]] * 2},
            "goal_receptacles has 2 entries; it needs .*each goal: 024_bowl_:0001",
        ),
        ({"target_receptacles": [["a", None]] * 3}, "target_receptacles has 3 entries; it needs one for each goal"),
        ({"markers": [{"name": "a", "type": "articulated_object"}]}, "episode 0: lacks 'params'"),
        ({"name_to_receptacle": ["a"]}, "episode 0: 'list' object has no attribute"),
    ],
)
def test_a_bad_episode_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_rearrange(written(tmp_path, raw(**changes)))


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing\.json: cannot be read"):
        read_rearrange(tmp_path / "nothing.json")
    (tmp_path / "half.json.gz").write_bytes(gzip.compress(b"{}")[:-9])
    with pytest.raises(DataError, match=r"half\.json\.gz: cannot be read"):
        read_rearrange(tmp_path / "half.json.gz")
    with pytest.raises(DataError, match="lacks scene_id, episode_id, rigid_objs, targets, info"):
        read_rearrange(written(tmp_path, {}))
    with pytest.raises(DataError, match="not an episode"):
        read_rearrange(written(tmp_path, [1]))
    for content in ({}, [1], {"plans": 3}):
        with pytest.raises(DataError, match="no plans in it"):
            read_plans(written(tmp_path, content))


DRAWER = {
    "articulation_type": "kitchen_counter",
    "articulation_id": "kitchen_counter-0",
    "articulation_handle_link_idx": 7,
    "articulation_handle_active_joint_idx": 6,
    "articulation_relative_handle_pos": [0.3, 0.0, 0.0],
}
PLAN = {
    "build_config_name": "v3_sc0_staging_00.scene_instance.json",
    "init_config_name": "rearrange/train/set_table/episode_0.json",
    "subtasks": [
        {"type": "open", "uid": "set_table-open-train-0-0", "composite_subtask_uids": [], "obj_id": "024_bowl-0"}
        | DRAWER,
        {
            "type": "pick",
            "uid": "set_table-pick-train-0-1",
            "composite_subtask_uids": ["a", "b"],
            "obj_id": "024_bowl-0",
            "articulation_config": DRAWER,
        },
        {
            "type": "navigate",
            "uid": "set_table-navigate-train-0-2",
            "composite_subtask_uids": [],
            "obj_id": "024_bowl-0",
            "goal_pos": [1.0, 2.0, 0.5],
            "prev_goal_pos": None,
            "remove_obj_id": None,
            "articulation_config": None,
        },
        {
            "type": "place",
            "uid": "set_table-place-train-0-2",
            "composite_subtask_uids": [],
            "obj_id": "024_bowl-0",
            "goal_pos": [1.0, 2.0, 0.5],
            "goal_rectangle_corners": [[0.0, 0.0, 0.5], [2.0, 0.0, 0.5], [2.0, 3.0, 0.5], [0.0, 3.0, 0.5]],
            "articulation_config": None,
        },
        {
            "type": "close",
            "uid": "set_table-close-train-0-3",
            "composite_subtask_uids": [],
            "remove_obj_id": "024_bowl-0",
        }
        | DRAWER,
    ],
}


def test_a_plan_is_read_and_written(tmp_path: Path) -> None:
    content = {"dataset": "ReplicaCADRearrangeDataset", "plans": [PLAN]}
    dataset, (plan,) = read_plans(written(tmp_path, content))
    assert dataset == "ReplicaCADRearrangeDataset" and plan.scene == "v3_sc0_staging_00.scene_instance.json"
    assert [subtask.kind for subtask in plan.subtasks] == ["open", "pick", "navigate", "place", "close"]
    opened, picked, _, placed, closed = plan.subtasks
    assert opened.handle == picked.handle == closed.handle and opened.handle is not None
    assert (opened.handle.link, opened.handle.joint, opened.handle.offset) == (7, 6, (0.3, 0.0, 0.0))
    assert placed.goal == (1.0, 2.0, 0.5) and placed.corners is not None and len(placed.corners) == 4
    assert closed.remove == "024_bowl-0" and closed.obj is None and picked.uids == ("a", "b")
    write_plans(tmp_path / "again.json", dataset, [plan])
    assert json.loads((tmp_path / "again.json").read_text()) == content


@pytest.mark.parametrize(
    "subtask, said",
    [
        ({"type": "wash", "uid": "x"}, "pick, place, navigate, open, close; not 'wash'"),
        ({"type": "pick", "uid": "x"}, "the subtask 'x' lacks obj_id"),
        ({"type": "place", "uid": "x", "obj_id": "a"}, "the subtask 'x' lacks goal_pos"),
        ({"type": "open", "uid": "x", "articulation_id": "a"}, "lacks 'articulation_relative_handle_pos'"),
        ({"type": "place", "uid": "x", "obj_id": "a", "goal_pos": ["far"]}, "could not convert string to float"),
    ],
)
def test_a_bad_plan_is_named(tmp_path: Path, subtask: dict[str, Any], said: str) -> None:
    path = written(tmp_path, {"plans": [PLAN, {**PLAN, "subtasks": [subtask]}]})
    with pytest.raises(DataError, match=f"plan 1: .*{said}"):
        read_plans(path)


def test_a_subtask_says_nothing_that_its_kind_has_not() -> None:
    assert "goal_pos" not in PlannedSubtask("pick", "a", obj="b").to_json()
    assert "obj_id" not in PlannedSubtask("close", "a").to_json()
