"""Episodes of home rearrangement as Habitat and MS-HAB write them, and MS-HAB's plans of subtasks.

An episode says which scene it is in, where objects lie and are to be brought, and how far drawers and doors are open. A
file holds one, or a list under ``episodes``; ``.json`` or ``.json.gz``. A plan says which subtasks an episode consists
of. Files have the y axis upwards; here z is up: (x, y, z) there is (x, -z, y) here. What is not read is kept, so that a
file that is written again says the same. Formats: habitat-lab and MS-HAB, August 2025.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError, DataError

__all__ = [
    "HandleFrame",
    "PlannedSubtask",
    "RearrangeEpisode",
    "TaskPlan",
    "parse_rearrange",
    "pose_in_file",
    "read_plans",
    "read_rearrange",
    "write_plans",
    "write_rearrange",
]

_UP = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # R_x(90)
_SUFFIX = ".object_config.json"
_TURNED = 1e-3  # the axes of a pose in a file may be off by so much
_KEYS = ("scene_id", "episode_id", "rigid_objs", "targets", "info")
SUBTASKS = ("pick", "place", "navigate", "open", "close")
"""Kinds of subtasks."""


@dataclass(frozen=True)
class RearrangeEpisode:
    """An episode.

    Attributes:
        number: its id.
        scene: name of the scene instance, without folder and suffix.
        objects: (name, pose (4, 4) in the world) of each object, in the file's order. Two of one name are two.
        goals: object, as ``NAME_:NUMBER`` -> pose (4, 4) of its goal, in the order of the subtasks.
        joints: articulation, as ``NAME_:NUMBER`` -> number of a link -> position of its joint [m, rad].
        start: (3,) [m] where the robot starts; 0 in files that do not say.
        start_receptacles, goal_receptacles: per goal, the object that it lies on or is brought to, and its link; empty
            in files that do not say.
        lies_on: object, as ``NAME_:NUMBER`` -> receptacle in which it lies, as ``OWNER_:NUMBER|RECEPTACLE``.
        markers: (name, articulation, name of its link) of each marked place of an articulation.
        raw: the file's own words.
    """

    number: str
    scene: str
    objects: tuple[tuple[str, np.ndarray], ...]
    goals: Mapping[str, np.ndarray]
    joints: Mapping[str, Mapping[int, float]]
    start: np.ndarray
    start_receptacles: tuple[tuple[str, int | None], ...]
    goal_receptacles: tuple[tuple[str, int | None], ...]
    lies_on: Mapping[str, str]
    markers: tuple[tuple[str, str, str], ...]
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def copies(self) -> dict[str, int]:
        """How often each object is there."""
        names = [name for name, _ in self.objects]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def placed(self, target: str) -> np.ndarray:
        """(4, 4) where the object of a goal lies at the start.

        Raises:
            DataError: the episode has no such object.
        """
        name, _, count = target.partition("_:")
        found = [pose for other, pose in self.objects if other == name]
        if not count.isdigit() or int(count) >= len(found):
            there = ", ".join(f"{n} ({k})" for n, k in self.copies.items())
            raise DataError(f"episode {self.number} has no object {target!r}; there are {there}")
        return found[int(count)]


def read_rearrange(path: str | Path) -> list[RearrangeEpisode]:
    """The episodes of a file.

    Raises:
        DataError: it cannot be read; for an episode as :func:`parse_rearrange`.
    """
    raw = _read(path)
    episodes = raw["episodes"] if isinstance(raw, dict) and "episodes" in raw else [raw]
    return [parse_rearrange(one, f"{path}, episode {k}") for k, one in enumerate(episodes)]


def write_rearrange(path: str | Path, episodes: RearrangeEpisode | Sequence[RearrangeEpisode]) -> None:
    """Write episodes in Habitat's layout, a list, or one alone as MS-HAB has it; compressed where the name ends in
    ``.gz``."""
    if isinstance(episodes, RearrangeEpisode):
        _write(path, dict(episodes.raw))
    else:
        _write(path, {"episodes": [dict(episode.raw) for episode in episodes]})


def parse_rearrange(raw: Any, where: str) -> RearrangeEpisode:
    """An episode from its words in a file.

    Args:
        raw: them.
        where: what an error says about where they are from.

    Raises:
        DataError: it lacks what it needs, has a goal of an object that is not there, a number that is not finite, or
            more or fewer receptacles than goals.
    """
    if not isinstance(raw, dict):
        raise DataError(f"{where}: not an episode")
    missing = [key for key in _KEYS if key not in raw]
    if missing:
        raise DataError(f"{where}: lacks {', '.join(missing)}")
    try:
        labels = list(raw["info"].get("object_labels", raw["targets"]))
        for name in labels:
            if name not in raw["targets"]:
                raise ValueError(f"no goal of {name!r}")
        poses = [(name, _of_object(pose, f"the pose of {name}")) for name, pose in raw["rigid_objs"]]
        objects = tuple([(name.removesuffix(_SUFFIX), pose) for name, pose in poses])
        goals = {name: _of_object(raw["targets"][name], f"the goal of {name}") for name in labels}
        joints = {
            name: {int(k): float(_finite(q, (), f"joint {k} of {name}")) for k, q in of.items()}
            for name, of in raw.get("ao_states", {}).items()
        }
        sides = [_of_goals(raw, key, goals) for key in ("target_receptacles", "goal_receptacles")]
        start = _UP[:3, :3] @ _finite(raw.get("start_position", (0, 0, 0)), (3,), "start_position")
        lies_on = {str(name): str(place) for name, place in raw.get("name_to_receptacle", {}).items()}
        markers = tuple(
            [
                (str(one["name"]), str(one["params"]["object"]), str(one["params"]["link"]))
                for one in raw.get("markers", ())
                if one["type"] == "articulated_object"
            ]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where}: {f'lacks {error}' if isinstance(error, KeyError) else error}") from None
    episode = RearrangeEpisode(
        number=str(raw["episode_id"]),
        scene=Path(raw["scene_id"]).name.removesuffix(".scene_instance.json"),
        objects=objects,
        goals=goals,
        joints=joints,
        start=start,
        start_receptacles=sides[0],
        goal_receptacles=sides[1],
        lies_on=lies_on,
        markers=markers,
        raw=raw,
    )
    for name in goals:
        episode.placed(name)
    return episode


def _finite(values: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    array = np.asarray(values, float)
    if array.shape != shape:
        raise ValueError(f"{what} has the shape {array.shape}, not {shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{what} has a number that is not finite")
    return array


def _of_object(pose: Any, what: str) -> np.ndarray:
    """A pose with z upwards. Objects' own frames have y upwards in the file, too."""
    given = _finite(pose, (4, 4), what)
    turn = given[:3, :3]
    if not (np.allclose(turn @ turn.T, np.eye(3), atol=_TURNED) and np.linalg.det(turn) > 0):
        raise ValueError(f"{what} is no turn and a place: it scales, skews or mirrors")
    return _UP @ given @ _UP.T


def _of_goals(raw: Mapping[str, Any], key: str, goals: Mapping[str, Any]) -> tuple[tuple[str, int | None], ...]:
    """The receptacle of each goal; none at all in files that do not say."""
    found = tuple([(str(name), None if link is None else int(link)) for name, link in raw.get(key, ())])
    if found and len(found) != len(goals):
        raise ValueError(f"{key} has {len(found)} entries; it needs one for each goal: {', '.join(goals)}")
    return found


def pose_in_file(pose: np.ndarray) -> list[list[float]]:
    """A pose (4, 4) in the world as a file has it, y upwards, to a micrometre."""
    return (np.round(_UP.T @ pose @ _UP, 6) + 0.0).tolist()


@dataclass(frozen=True)
class HandleFrame:
    """The drawer or door that a subtask is about.

    Attributes:
        kind: ``kitchen_counter`` (a drawer) or ``fridge``.
        name: of the articulation.
        link, joint: numbers of its link with the handle, and of that one's joint among those that move.
        offset: (3,) [m] of the handle in the frame of the link.
    """

    kind: str
    name: str
    link: int
    joint: int
    offset: tuple[float, float, float]

    def to_json(self) -> dict[str, Any]:
        """In MS-HAB's words."""
        return {
            "articulation_type": self.kind,
            "articulation_id": self.name,
            "articulation_handle_link_idx": self.link,
            "articulation_handle_active_joint_idx": self.joint,
            "articulation_relative_handle_pos": list(self.offset),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> HandleFrame:
        """From MS-HAB's words."""
        x, y, z = map(float, raw["articulation_relative_handle_pos"])
        return cls(
            kind=str(raw["articulation_type"]),
            name=str(raw["articulation_id"]),
            link=int(raw["articulation_handle_link_idx"]),
            joint=int(raw["articulation_handle_active_joint_idx"]),
            offset=(x, y, z),
        )


@dataclass(frozen=True)
class PlannedSubtask:
    """A subtask of a plan.

    Attributes:
        kind: ``pick``, ``place``, ``navigate``, ``open`` or ``close``.
        uid: its name, ``TASK-SUBTASK-SPLIT-NUMBER-PLACE``.
        obj: the object, as ``NAME_:NUMBER`` or ``NAME-NUMBER``; None of Close.
        goal: (3,) [m] where it is brought, or the robot goes; corners: (4, 3) [m] of the receptacle's rectangle.
        previous_goal: (3,) [m] of Navigate.
        handle: the drawer or door.
        remove: an object that is put away while the subtask is trained.
        uids: of the subtasks that this one is made of.
    """

    kind: str
    uid: str
    obj: str | None = None
    goal: tuple[float, ...] | None = None
    corners: tuple[tuple[float, ...], ...] | None = None
    previous_goal: tuple[float, ...] | None = None
    handle: HandleFrame | None = None
    remove: str | None = None
    uids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """In MS-HAB's words."""
        out: dict[str, Any] = {"type": self.kind, "uid": self.uid, "composite_subtask_uids": list(self.uids)}
        if self.kind != "close":
            out["obj_id"] = self.obj
        if self.kind in ("place", "navigate"):
            out["goal_pos"] = None if self.goal is None else list(self.goal)
        if self.kind == "place":
            out["goal_rectangle_corners"] = None if self.corners is None else [list(c) for c in self.corners]
        if self.kind == "navigate":
            out["prev_goal_pos"] = None if self.previous_goal is None else list(self.previous_goal)
        if self.kind in ("navigate", "close"):
            out["remove_obj_id"] = self.remove
        if self.kind in ("open", "close"):
            return out | ({} if self.handle is None else self.handle.to_json())
        return out | {"articulation_config": None if self.handle is None else self.handle.to_json()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> PlannedSubtask:
        """From MS-HAB's words.

        Raises:
            ConfigError: another kind of subtask, or one that lacks what it needs.
        """
        kind = raw.get("type")
        if kind not in SUBTASKS:
            raise ConfigError(f"a subtask is one of {', '.join(SUBTASKS)}; not {kind!r}")
        needed = {"pick": ("obj_id",), "place": ("obj_id", "goal_pos"), "open": ("articulation_id",)}
        needed["close"] = needed["open"]
        missing = [key for key in ("uid", *needed.get(kind, ())) if raw.get(key) is None]
        if missing:
            raise ConfigError(f"the subtask {raw.get('uid', kind)!r} lacks {', '.join(missing)}")
        handle = raw if kind in ("open", "close") else raw.get("articulation_config")
        corners = raw.get("goal_rectangle_corners")
        return cls(
            kind=kind,
            uid=str(raw["uid"]),
            obj=raw.get("obj_id"),
            goal=_place(raw.get("goal_pos")),
            corners=None if corners is None else tuple([tuple(map(float, c)) for c in corners]),
            previous_goal=_place(raw.get("prev_goal_pos")),
            handle=None if handle is None else HandleFrame.from_json(handle),
            remove=raw.get("remove_obj_id"),
            uids=tuple(raw.get("composite_subtask_uids", ())),
        )


@dataclass(frozen=True)
class TaskPlan:
    """The subtasks of an episode.

    Attributes:
        scene: name of the scene instance's file.
        episode: name of the episode's file.
        subtasks: in their order.
    """

    scene: str
    episode: str
    subtasks: tuple[PlannedSubtask, ...]


def read_plans(path: str | Path) -> tuple[str, list[TaskPlan]]:
    """The dataset that a file of plans is for, and its plans.

    Raises:
        DataError: it cannot be read, or a plan lacks what it needs.
    """
    raw = _read(path)
    if not isinstance(raw, dict) or not isinstance(raw.get("plans"), list):
        raise DataError(f"{path}: no plans in it")
    plans = []
    for k, plan in enumerate(raw["plans"]):
        try:
            subtasks = tuple([PlannedSubtask.from_json(one) for one in plan["subtasks"]])
            plans.append(TaskPlan(str(plan["build_config_name"]), str(plan["init_config_name"]), subtasks))
        except KeyError as error:
            raise DataError(f"{path}, plan {k}: lacks {error}") from None
        except (TypeError, ValueError, ConfigError) as error:
            raise DataError(f"{path}, plan {k}: {error}") from None
    return str(raw.get("dataset", "")), plans


def write_plans(path: str | Path, dataset: str, plans: Sequence[TaskPlan]) -> None:
    """Write plans in MS-HAB's layout."""
    out = [
        {
            "build_config_name": plan.scene,
            "init_config_name": plan.episode,
            "subtasks": [subtask.to_json() for subtask in plan.subtasks],
        }
        for plan in plans
    ]
    _write(path, {"dataset": dataset, "plans": out})


def _place(value: Any) -> tuple[float, ...] | None:
    return None if value is None else tuple(map(float, value))


def _read(path: str | Path) -> Any:
    try:
        content = Path(path).read_bytes()
        return json.loads(gzip.decompress(content) if str(path).endswith(".gz") else content)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def _write(path: str | Path, content: Any) -> None:
    raw = json.dumps(content).encode()
    write_file(Path(path), gzip.compress(raw, mtime=0) if str(path).endswith(".gz") else raw)
