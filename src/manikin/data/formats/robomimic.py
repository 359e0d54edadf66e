"""Writing robomimic's layout of HDF5: what its trainers, and robosuite's own scripts, load.

Group ``data`` with attributes total (steps of all) and env_args (JSON: env_name, env_version, type, env_kwargs); groups
``data/demo_0`` ... with attributes num_samples and model_file (MJCF), datasets actions, states, rewards, dones, and
obs/NAME, next_obs/NAME; optionally mask/train and mask/valid, lists of names. What only a simulator knows is one
observation, ``object``, as in robosuite. Layout: robomimic's documentation of dataset contents.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from manikin.data.recording.durable import room_of, sync, try_room
from manikin.data.recording.format import Header, RecordedEpisode, parted
from manikin.env.observe import column_names
from manikin.errors import ConfigError, DataError, SceneError

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["RobomimicExport", "RobomimicWriter", "obs_of", "scene_xml"]

OBJECT = "object"
"""The observation of what only a simulator knows, robosuite's ``object-state``."""

_HIDDEN = "privileged/"
_GYM = 2  # robomimic's number for environments that it makes through Gym
_PICTURES = {"rgb": "image", "depth": "depth", "segmentation": "segmentation", "normals": "normals"}


class RobomimicWriter:
    """Writes demonstrations one after another. The file appears, whole, when it is closed.

    Args:
        path: of the file; it must not exist.
        env_args: JSON values: env_name, type, env_kwargs.
        valid: share of the demonstrations that go to ``mask/valid``, evenly spread; 0 writes no masks.

    Raises:
        ConfigError: ``valid`` is not in [0, 1).
        DataError: the file exists, or cannot be written.
    """

    def __init__(self, path: str | Path, env_args: Mapping[str, Any], *, valid: float = 0.0) -> None:
        if not 0 <= valid < 1:
            raise ConfigError(f"the share of demonstrations for validation must be in [0, 1), not {valid}")
        self.path, self._valid = Path(path), valid
        if self.path.exists():
            raise DataError(f"{self.path} exists; choose another name")
        self._temporary = self.path.with_name(self.path.name + ".tmp")
        self._count = self._total = 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try_room(self._temporary, room_of([]))
            self._file = h5py.File(self._temporary, "w")
        except OSError as error:
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)
            raise DataError(f"cannot write {self.path}: {error}") from None
        self._data = self._file.create_group("data")
        self._data.attrs["env_args"] = json.dumps(dict(env_args), sort_keys=True)

    def write(
        self,
        index: int,
        *,
        actions: np.ndarray,
        states: np.ndarray | None,
        rewards: np.ndarray,
        dones: np.ndarray,
        observations: Mapping[str, np.ndarray] | None,
        model_file: str = "",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a demonstration of T steps.

        Args:
            index: its place in the file, ``demo_INDEX``; the file has each from 0 on when it is closed.
            actions: (T, A).
            states: (T, D) before each action; one after the last goes to ``final_state``, which only manikin reads.
            rewards: (T,) of each action.
            dones: (T,) whether it ended the episode.
            observations: by manikin's names, (T + 1, ...): before the first action and after each.
            model_file: MJCF of the scene, or nothing.
            attributes: further ones of the demonstration.

        Raises:
            DataError: the disk is full; no file is left.
        """
        length, (seen, columns) = len(actions), obs_of(observations or {})
        values = {"actions": actions, "rewards": np.asarray(rewards, np.float32), "dones": np.asarray(dones, np.int64)}
        if states is not None:
            values["states"] = states[:length]
            if len(states) > length:
                values["final_state"] = states[length]
        for name, value in seen.items():
            values |= {f"obs/{name}": value[:length], f"next_obs/{name}": value[1:]}
        try:
            try_room(self._temporary, room_of(values.values()) + len(model_file))
            group = self._data.create_group(f"demo_{index}")
            group.attrs["num_samples"] = length
            group.attrs["model_file"] = model_file
            group.attrs.update(dict(attributes or {}))
            for name, value in values.items():
                squeeze = {"compression": "gzip", "compression_opts": 1} if "/" in name and value.ndim > 2 else {}
                group.create_dataset(name, data=value, **squeeze)
            for kind in ("obs", "next_obs") if columns else ():
                group[f"{kind}/{OBJECT}"].attrs["columns"] = json.dumps(columns)
            self._file.flush()  # what was written before is safe from what does not fit later
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.path}: {error}; no file is left") from None
        self._count, self._total = self._count + 1, self._total + length

    def close(self) -> None:
        """Finish the file. Raises :class:`DataError` when nothing was written to it, or the disk is full."""
        if not self._count:
            self.abandon()
            raise DataError("no episode was converted, so there is no dataset")
        try:
            try_room(self._temporary, room_of([]) + 16 * self._count)
            self._finish()
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.path}: {error}; no file is left") from None

    def _finish(self) -> None:
        self._data.attrs["total"] = self._total
        if self._valid:
            chosen = [int((i + 1) * self._valid) > int(i * self._valid) for i in range(self._count)]
            for mask, wanted in (("train", False), ("valid", True)):
                names = [f"demo_{i}".encode() for i, c in enumerate(chosen) if c == wanted]
                self._file[f"mask/{mask}"] = np.array(names, dtype="S")
        self._file.close()
        sync(self._temporary)
        os.replace(self._temporary, self.path)
        sync(self.path.parent)

    def abandon(self) -> None:
        """Leave no file."""
        self._file.close()
        self._temporary.unlink(missing_ok=True)


def obs_of(observations: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Observations by robomimic's names, and what the columns of ``object`` are.

    ``policy/qpos`` is ``qpos``, ``cameras/wrist/rgb`` is ``wrist_image``; all that is privileged, (T, D) in its order,
    is ``object``. Names that would meet keep their group.
    """

    def short(key: str) -> str:
        group, _, rest = key.partition("/")
        if group == "cameras":
            camera, _, output = rest.rpartition("/")
            return f"{camera}_{_PICTURES.get(output, output)}"
        return (rest or group).replace("/", "_")

    # robomimic joins rows of numbers: one number is a row as well
    rows = {key: value[:, None] if value.ndim == 1 else value for key, value in observations.items()}
    hidden = {key: value.reshape(len(value), -1) for key, value in rows.items() if key.startswith(_HIDDEN)}
    names = {key: short(key) for key in rows if key not in hidden}
    taken = [*names.values(), OBJECT]
    seen = {name if taken.count(name) == 1 else key.replace("/", "_"): rows[key] for key, name in names.items()}
    if hidden:
        seen[OBJECT] = np.concatenate(list(hidden.values()), 1, dtype=np.float32)
    return seen, [name for key, value in hidden.items() for name in column_names(key, value.shape[1])]


def scene_xml(env: BatchEnv) -> str:
    """MJCF of an environment's scene, or nothing where MuJoCo cannot write it as text."""
    try:
        return str(env.scene_xml())
    except SceneError:
        return ""


class RobomimicExport:
    """Turns episodes into demonstrations. Actions and rewards are manikin's; dones are 1 where an episode ended.

    Args:
        path, valid: as :class:`RobomimicWriter`.
        header: of the recording.
        env: of one row, for the scene; where layouts differ, each demonstration gets the MJCF of its own.
        columns: gives the name of each number of a flat observation, which is taken apart.
    """

    def __init__(
        self,
        path: str | Path,
        header: Header,
        env: BatchEnv,
        *,
        columns: Callable[[], Sequence[str]],
        valid: float = 0.0,
    ) -> None:
        f = header.fingerprint
        env_args = {
            "env_name": header.task,
            "env_version": f.get("versions", {}).get("manikin", ""),
            "type": _GYM,
            "env_kwargs": dict(f),
        }
        self._env, self._scenes = env, dict[str, str]()
        self._task, self._columns = header.task, columns
        self._writer = RobomimicWriter(path, env_args, valid=valid)

    def finished(self) -> set[int]:
        """Nothing is kept of an interrupted export."""
        return set()

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Add an episode as ``demo_PLACE``."""
        dones = episode.terminated | episode.truncated
        dones[-1:] = True
        self._writer.write(
            place,
            actions=episode.actions,
            states=episode.states,
            rewards=episode.rewards,
            dones=dones,
            observations=parted(episode.observations or {}, self._columns, self._task),
            model_file=self._scene(episode),
            attributes={**episode.summary, "success": episode.success_once},
        )

    def _scene(self, episode: RecordedEpisode) -> str:
        env = self._env.env_for(episode.seed)
        if env.scene.hash not in self._scenes:
            self._scenes[env.scene.hash] = scene_xml(env)
        return self._scenes[env.scene.hash]

    def close(self) -> None:
        """Finish the file. Raises :class:`DataError` when there is nothing."""
        self._writer.close()

    def abandon(self) -> None:
        """Leave no file."""
        self._writer.abandon()
