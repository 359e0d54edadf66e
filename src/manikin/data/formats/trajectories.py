"""Reading ManiSkill's trajectories; the layout is described in ``maniskill.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.formats.demos import Demo, Demos, arrays, numbers
from manikin.data.recording.outside import open_hdf5, read_json, reading
from manikin.errors import DataError
from manikin.moved import old_names

__all__ = ["ManiSkillDemos", "peg_sizes", "read_trajectories"]

_STEPS = ("actions", "rewards", "terminated", "truncated", "success", "fail")


@dataclass(frozen=True, kw_only=True)
class ManiSkillDemos(Demos):
    """A file of ManiSkill's trajectories.

    Attributes:
        episodes: name -> what the JSON says of it.
    """

    episodes: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, name: str) -> Demo:
        """Load one. Raises :class:`DataError` when there is none of that name, or naming what is damaged."""
        self.check(name)
        where = f"{self.path} is damaged: {name}"
        with open_hdf5(self.path, again=True) as file:
            with reading(where):
                group = file[name]
            values = {part: numbers(group, part, where) for part in _STEPS}
            states, seen = arrays(group, "env_states", where), arrays(group, "obs", where)
        length = self.lengths[name]
        for kind, found, rows in (
            ("", values, length),
            ("env_states/", states, length + 1),
            ("obs/", seen, length + 1),
        ):
            for key, value in found.items():
                if value is not None and (not value.ndim or len(value) != rows):
                    raise DataError(f"{where} has {length} actions and {kind}{key} of shape {value.shape}")
        if values["actions"] is None or values["actions"].ndim != 2:
            raise DataError(f"{where} has no actions (steps, size)")
        ends = [value for key in ("terminated", "truncated") if (value := values[key]) is not None]
        return Demo(
            name=name,
            actions=values["actions"],
            states=None,
            parts=states,
            rewards=values["rewards"],
            dones=np.logical_or.reduce(ends) if ends else None,
            success=values["success"],
            observations={key: value[:-1] for key, value in seen.items()},
            next_observations={key: value[1:] for key, value in seen.items()},
            attributes=dict(self.episodes[name]),
        )


def read_trajectories(path: Path, file: Any) -> ManiSkillDemos:
    """Look into an open file of ManiSkill's trajectories.

    Raises:
        DataError: its JSON is missing or cannot be read, an episode is missing, or actions that are not one array.
    """
    beside = path.with_suffix(".json")
    if not beside.is_file():
        raise DataError(
            f"{path} needs the file {beside.name} in the same folder; ManiSkill writes the task and the seeds there"
        )
    about = read_json(beside, f"{beside} is damaged or not ManiSkill's")
    with reading(f"{beside} is damaged or not ManiSkill's"):
        info = about["env_info"]
        env, kwargs = str(info["env_id"]), dict(info.get("env_kwargs", {}))
        episodes = {f"traj_{int(one['episode_id'])}": dict(one) for one in about["episodes"]}
    lengths = {}
    for name in episodes:
        if name not in file:
            raise DataError(f"{path} is damaged or not the one of {beside.name}: it has no {name}")
        actions = file[name].get("actions")
        if not isinstance(actions, h5py.Dataset) or actions.ndim != 2:
            raise DataError(f"{path}: {name} has no actions (steps, size); those of several agents are not read")
        lengths[name] = len(actions)
    if not lengths:
        raise DataError(f"{path} holds no trajectory: {beside.name} lists none")
    states = file[next(iter(lengths))].get("env_states/articulations", {})
    mode = next(iter(episodes.values())).get("control_mode") or kwargs.get("control_mode")
    return ManiSkillDemos(
        path=path,
        env=env,
        env_kwargs=kwargs,
        version="",
        lengths=lengths,
        masks={"success": tuple(name for name, one in episodes.items() if one.get("success"))},
        robots=tuple(states) or (str(kwargs.get("robot_uids", "unknown")),),
        controller=str(mode or "unknown"),
        episodes=episodes,
    )


def peg_sizes(demo: Demo, where: str) -> tuple[float, float, float, float]:
    """Half length and half width of the peg, and y and z of the hole in the box [m], of PegInsertionSide-v2.

    The layout does not hold them. ManiSkill draws them from the episode's seed, in this order, with NumPy's MT19937;
    what manikin exported says them.

    Raises:
        DataError: neither a seed nor sizes.
    """
    with reading(f"{where}: the sizes of peg and box are neither there nor drawn from a seed"):
        own = demo.attributes.get("manikin", {}).get("variables", {})
        if own:
            box, hole = np.array(own["size/box"], float), np.array(own["size/peg"], float)
            # the walls above and below the hole differ by twice its height, those beside it likewise
            return float(hole[0]), float(hole[1]), float(box[1, 1] - box[0, 1]), float(box[3, 2] - box[2, 2])
        draw = np.random.RandomState(int(demo.attributes["episode_seed"]))  # house: random, a stream of its own
    length, width = draw.uniform(0.085, 0.125), draw.uniform(0.015, 0.025)
    y, z = 0.5 * (length - width) * draw.uniform(-1.0, 1.0, size=2)
    return length, width, float(y), float(z)


__getattr__ = old_names(__name__)
