"""Demonstrations of other projects as plain arrays, whatever file they are from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from manikin.data.recording.outside import open_hdf5, reading
from manikin.errors import DataError

__all__ = ["Demo", "Demos", "arrays", "numbers", "plain"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """One demonstration of T steps.

    Attributes:
        name: ``demo_3``.
        actions: (T, A) float64, as the controller of the recording took them.
        states: (T, D) float64 before each action; None where the file has none.
        final_state: (D,) after the last, manikin's only.
        parts: ManiSkill's only: ``actors/NAME``, ``articulations/NAME`` -> (T + 1, ...) before the first action and
            after each.
        rewards, dones: (T,), not robosuite's.
        success: (T,) bool, ManiSkill's only.
        observations, next_observations: name -> (T, ...), not robosuite's.
        model_file: MJCF, or the name of a file that is not here, or nothing.
        attributes: the others of the demonstration.
    """

    name: str
    actions: np.ndarray
    states: np.ndarray | None
    final_state: np.ndarray | None = None
    rewards: np.ndarray | None = None
    dones: np.ndarray | None = None
    success: np.ndarray | None = None
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    observations: Mapping[str, np.ndarray] = field(default_factory=dict)
    next_observations: Mapping[str, np.ndarray] = field(default_factory=dict)
    model_file: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True, kw_only=True)
class Demos:
    """A file of demonstrations, open for reading; load one by its name.

    Attributes:
        path: the file.
        env: name of the environment, as its maker calls it.
        env_kwargs: with what it was made: robots, controller_configs, ...
        version: of what recorded, as written there.
        lengths: name -> steps, in the order of their numbers.
        masks: name -> names of demonstrations.
        robots: names of the robots.
        controller: name of the controller that took the actions.
    """

    path: Path
    env: str
    env_kwargs: Mapping[str, Any]
    version: str
    lengths: Mapping[str, int]
    masks: Mapping[str, tuple[str, ...]]
    robots: tuple[str, ...]
    controller: str

    def check(self, name: str) -> None:
        """Raise :class:`DataError` when there is no demonstration of that name."""
        if name not in self.lengths:
            raise DataError(f"{self.path} has no demonstration {name!r}; it has {', '.join(self.lengths)}")

    def __getitem__(self, name: str) -> Demo:
        """Load one. Raises :class:`DataError` when there is none of that name, or naming what is damaged."""
        self.check(name)
        where = f"{self.path} is damaged: {name}"
        with open_hdf5(self.path, again=True) as file:
            with reading(where):
                group = file["data"][name]
                attributes = {k: plain(v) for k, v in group.attrs.items()}
            values = {part: numbers(group, part, where) for part in ("actions", "states", "rewards", "dones")}
            final = numbers(group, "final_state", where)
            seen = {part: arrays(group, part, where) for part in ("obs", "next_obs")}
        actions, length = values["actions"], self.lengths[name]
        if actions is None or actions.ndim != 2:
            raise DataError(f"{where} has no actions (steps, size)")
        rows = {**values, **seen["obs"], **seen["next_obs"]}
        for key, value in rows.items():
            if value is not None and (not value.ndim or len(value) != length):
                raise DataError(f"{where} has {length} actions and {key} of shape {value.shape}")
        model = str(attributes.pop("model_file", ""))
        return Demo(
            name=name,
            actions=actions,
            states=values["states"],
            rewards=values["rewards"],
            dones=values["dones"],
            final_state=final,
            observations=seen["obs"],
            next_observations=seen["next_obs"],
            model_file=model,
            attributes=attributes,
        )


def numbers(group: Any, name: str, where: str) -> np.ndarray | None:
    """A dataset of numbers in an open group; None where there is none.

    Raises:
        DataError: it is damaged, or holds something else.
    """
    with reading(f"{where}, {name}"):
        if name not in group:
            return None
        values = group[name][()]
        if not isinstance(values, np.ndarray | np.generic) or values.dtype.kind not in "biuf":
            raise TypeError(f"it holds {getattr(values, 'dtype', type(values).__name__)}, not numbers")
        return np.asarray(values, values.dtype.newbyteorder("="))


def arrays(group: Any, name: str, where: str) -> dict[str, np.ndarray]:
    """Path -> array of everything under a group of an open group; a dataset of that name is ``value``.

    Raises:
        DataError: one is damaged, or holds no numbers.
    """
    found: dict[str, np.ndarray] = {}

    def visit(path: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            values = numbers(item.parent, item.name.rpartition("/")[2], f"{where}, {name}")
            assert values is not None
            found[path] = values

    with reading(f"{where}, {name}"):
        if isinstance(group.get(name), h5py.Dataset):
            visit("value", group[name])
        elif name in group:
            group[name].visititems(visit)
    return found


def plain(value: Any) -> Any:
    """An attribute of an HDF5 file as a Python value."""
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value
