"""MS-HAB's demonstrations: writing and reading the layout of its published files.

As ManiSkill's trajectories (``maniskill.py``), ``NAME.h5`` with groups ``traj_0`` ... and ``NAME.json`` beside it, with
these differences. There are no ``env_states``. The observations are ``agent/{qpos, qvel}`` (12 joints), ``extra/`` with
``tcp_pose_wrt_base`` (7), ``obj_pose_wrt_base`` (7), ``goal_pos_wrt_base`` (3) and ``is_grasped``, and
``sensor_data/{fetch_head, fetch_hand}/{rgb, depth}``. In the JSON an episode has its label, and its events with the
steps at which they happened. Layout: ``MS-HAB's dataset, Shukla et al. 2024``, appendix A.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from manikin.data.formats.maniskill import ManiSkillExport
from manikin.data.recording.format import Header, RecordedEpisode, flatten
from manikin.data.recording.labels import Tracker
from manikin.data.recording.outside import open_hdf5, read_json, reading
from manikin.errors import ConfigError, DataError

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv
    from manikin.spec.labels import Labels

__all__ = ["MSHABEpisode", "MSHABExport", "read_mshab"]

CONTROL = "pd_joint_delta_pos"
NUMBERS = {
    "joints": "agent/qpos",
    "joint_speeds": "agent/qvel",
    "tcp_from_base": "extra/tcp_pose_wrt_base",
    "object_from_base": "extra/obj_pose_wrt_base",
    "goal_from_base": "extra/goal_pos_wrt_base",
    "is_grasped": "extra/is_grasped",
}
"""manikin's name of a part of MS-HAB's 42 numbers -> its place."""
_CAMERAS = ("fetch_head", "fetch_hand")


class MSHABExport(ManiSkillExport):
    """Turns episodes of the home tasks into MS-HAB's files. They appear, whole, when it is closed.

    Args:
        path: the HDF5 file, ``.h5``; the JSON gets its name. Neither may exist.
        header: of the recording.
        env: an environment of the recording.

    Raises:
        ConfigError: another suffix, or a task without MS-HAB's 42 numbers.
        DataError: a file exists, or cannot be written.
    """

    def __init__(self, path: str | Path, header: Header, env: BatchEnv) -> None:
        lacking = set(NUMBERS) - set(env.task.observations)
        if lacking:
            raise ConfigError(
                f"{header.task} does not observe MS-HAB's 42 numbers: {', '.join(sorted(lacking))} are not there. "
                "HomePick-v1, HomePlace-v1 and the long tasks do, HomeOpen-v1, HomeClose-v1 and HomeNavigate-v1 "
                "where recorded with --config published_state=true; convert others to maniskill or lerobot"
            )
        super().__init__(path, header, env)
        self._labels: Labels = env.task.labels
        self._mode = CONTROL

    def _states(self, episode: RecordedEpisode) -> dict[str, Any]:
        return {}

    def _observations(self, episode: RecordedEpisode) -> Any:
        seen = episode.observations or {}
        values = {name: seen.get(f"policy/{name}") for name in NUMBERS}
        if missing := [name for name, value in values.items() if value is None]:
            raise DataError(
                f"episode {episode.number} lacks {', '.join(missing)}; convert with --observe rgb+depth --camera "
                "fetch_head fetch_hand, or with --observe state_dict"
            )
        cameras = {
            key: value for key, value in seen.items() if key.startswith(tuple(f"cameras/{name}/" for name in _CAMERAS))
        }
        tree = self._observations_of(cameras)
        for name, place in NUMBERS.items():
            group, _, of = place.partition("/")
            value = np.asarray(values[name])
            tree.setdefault(group, {})[of] = value > 0.5 if name == "is_grasped" else value
        return tree

    def _told(self, episode: RecordedEpisode, place: int) -> dict[str, Any]:
        events = events_of(episode, self._labels)
        return {
            **super()._told(episode, place),
            "label": episode.mode,
            "events": [name for _, name, _ in events],
            "events_verbose": [[step, name, forces] for step, name, forces in events],
        }


def events_of(episode: RecordedEpisode, labels: Labels) -> list[tuple[int, str, dict[str, float]]]:
    """The story of an episode: at which step, counted from 0, what happened, and the forces added up by then [N]."""
    tracker, row, found = Tracker(labels, 1), np.zeros(1, np.int64), []
    flags = {**episode.flags, "success": episode.success, "fail": episode.fail}
    for t in range(len(episode)):
        before = len(tracker.story(0).events)
        tracker.step(row, {name: values[t : t + 1] for name, values in flags.items()})
        forces = {"robot_force": float(flags["robot_force"][t])} if "robot_force" in flags else {}
        found += [(t, name, forces) for name in tracker.story(0).events[before:]]
    return found


@dataclass(frozen=True)
class MSHABEpisode:
    """An episode of a file of MS-HAB's.

    Attributes:
        number: of its group.
        observations: place -> (T + 1, ...), ``agent/qpos``, ``sensor_data/fetch_head/depth``.
        actions: (T, A). rewards: (T,) float32. success, fail, terminated, truncated: (T,) bool.
        label: how it went, in MS-HAB's words; events: what happened, in order. Empty where the file does not say.
        about: all that the JSON says of it.
    """

    number: int
    observations: Mapping[str, np.ndarray]
    actions: np.ndarray
    rewards: np.ndarray
    success: np.ndarray
    fail: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    label: str
    events: tuple[str, ...]
    about: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.actions)


_ARRAYS = {"actions": np.float32, "rewards": np.float32}
_VERDICTS = ("success", "fail", "terminated", "truncated")


def read_mshab(path: str | Path, *, labels: tuple[str, ...] = ()) -> Iterator[MSHABEpisode]:
    """The episodes of ``NAME.h5``, in the order of ``NAME.json``.

    Args:
        path: the HDF5 file.
        labels: only those that went so; all where empty.

    Raises:
        DataError: a file is missing or damaged, or an episode that the JSON names is not in the HDF5.
    """
    path = Path(path)
    about = read_json(
        path.with_suffix(".json"), f"{path} has no {path.stem}.json beside it, which says how episodes went"
    )
    with open_hdf5(path) as file, reading(f"{path} is not laid out as MS-HAB's files are"):
        for told in about["episodes"]:
            if labels and told.get("label") not in labels:
                continue
            name = f"traj_{told['episode_id']}"
            if name not in file:
                raise DataError(f"{path} lacks {name}, which {path.stem}.json names")
            yield _episode(path, int(told["episode_id"]), file[name], told)


def _episode(path: Path, number: int, group: h5py.Group, told: Mapping[str, Any]) -> MSHABEpisode:
    values = {name: np.asarray(group[name][()], kind) for name, kind in _ARRAYS.items()}
    verdicts = {name: np.asarray(group[name][()], bool) for name in _VERDICTS}
    observations = flatten(_tree(group["obs"]))
    steps = len(values["actions"])
    wrong = [name for name, value in {**values, **verdicts}.items() if len(value) != steps]
    wrong += [name for name, value in observations.items() if len(value) != steps + 1]
    if wrong:
        raise DataError(f"{path}, traj_{number}: {', '.join(wrong)} do not fit its {steps} actions")
    events = tuple(str(name) for name in told.get("events", ()))
    label = str(told.get("label", ""))
    return MSHABEpisode(number, observations, **values, **verdicts, label=label, events=events, about=told)


def _tree(group: h5py.Group) -> dict[str, Any]:
    return {name: _tree(item) if isinstance(item, h5py.Group) else item[()] for name, item in group.items()}
