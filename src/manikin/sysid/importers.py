"""Trajectories from other files: SIMPLER's, manikin's own recordings, BridgeData."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manikin.assets.paths import data_root
from manikin.errors import AssetError, DataError
from manikin.math import quat_from_euler, quat_mul, quat_to_rotvec
from manikin.sysid.tfrecord import examples
from manikin.sysid.trajectories import Trajectories, Trajectory

__all__ = ["SIMPLER_TOOL", "bridge", "data_file", "recording", "simpler"]

_H = 0.5**0.5
SIMPLER_TOOL = (0.0, 0.0, 0.0, 0.0, _H, 0.0, _H)
"""SIMPLER's tool frame, x out of the gripper, in manikin's, z out of the gripper."""
_BRIDGE_TURN = (_H, 0.0, _H, 0.0)  # [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]: zero turns are a gripper that points down


def data_file(name: str) -> Path:
    """A file in MANIKIN_DATA. Raises :class:`AssetError` where it is not."""
    root = data_root()
    if root is None:
        raise AssetError(f"MANIKIN_DATA is not set; set it to the folder that holds {name}")
    if not (root / name).is_file():
        raise AssetError(f"there is no {name} in MANIKIN_DATA, which is {root}")
    return root / name


def simpler(
    path: str | Path, *, robot: str, control: str, control_hz: float, euler: bool, tool: Sequence[float] = SIMPLER_TOOL
) -> Trajectories:
    """The format of SIMPLER's own system identification: a pickle, or the same as JSON, of a list (episodes) of lists
    (steps) of ``base_pose_tool_reached`` (7,), ``action_world_vector`` (3,) [m] and ``action_rotation_delta`` (3,).

    Args:
        path: the file. Of a pickle only lists, dictionaries, numbers and arrays are loaded.
        robot: a robot word; not in the file, as the next two.
        control: the controller's word.
        control_hz: actions per second.
        euler: whether a rotation is roll, pitch and yaw about fixed axes (WidowX) or a rotation vector (Google).
        tool: pose of its tool frame in the robot's TCP frame.

    Raises:
        DataError: the file cannot be read or lacks a part.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    try:
        episodes = json.loads(content) if path.suffix.lower() == ".json" else _Plain(io.BytesIO(content)).load()
        items = []
        for number, steps in enumerate(episodes):
            pose, shift, turn = (
                np.array([np.asarray(step[key], np.float64) for step in steps])
                for key in ("base_pose_tool_reached", "action_world_vector", "action_rotation_delta")
            )
            actions = np.concatenate([shift, _rotvec(turn) if euler else turn], 1)
            items.append(Trajectory(name=str(number), actions=actions, pos=pose[:, :3], quat=pose[:, 3:]))
    except DataError:
        raise
    except Exception as error:  # a foreign file may hold anything
        said = f"{type(error).__name__}: {error}"
        raise DataError(f"{path} is no file of SIMPLER's system identification: {said}") from None
    return Trajectories(
        robot=robot, control=control, control_hz=control_hz, items=tuple(items), tool=tuple(tool), source=path.name
    )


class _Plain(pickle.Unpickler):
    """Loads NumPy arrays and plain values, and runs nothing else."""

    _ALLOWED = {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise DataError(f"the pickle asks for {module}.{name}; only arrays and plain values are loaded")
        return super().find_class(module, name)


def _rotvec(euler: np.ndarray) -> np.ndarray:
    """(n, 3) rotation vectors of roll, pitch, yaw (n, 3) about fixed axes."""
    found: np.ndarray = quat_to_rotvec(quat_from_euler(torch.from_numpy(np.asarray(euler, np.float64)))).numpy()
    return found


def recording(path: str | Path) -> Trajectories:
    """A recording of ``manikin collect`` or ``teleop``: joints before each action, and the tool by forward kinematics.

    Raises:
        DataError: it cannot be read, holds no joints, or has more than one robot.
        UnknownNameError: its robot is not known here.
    """
    from manikin.control import Chain
    from manikin.data.recording.read import read_episodes
    from manikin.robots import members
    from manikin.robots import robot as chosen_robot

    with read_episodes(path) as file:
        header = file.needed_header().fingerprint
        word, control = str(header["robot"]), str(header["control"])
        if len(members(word)) > 1:
            raise DataError(f"{path} holds several robots ({word}); a search takes recordings of one")
        chosen = chosen_robot(word)
        chain, names = Chain(chosen.arm, chosen.gripper), chosen.arm.joints
        items = []
        for one in file:
            columns = {name.rpartition("/")[2]: values for name, values in one.joints.items()}
            if missing := [name for name in names if name not in columns]:
                raise DataError(f"{path} does not hold the joints {', '.join(missing)}; record it again")
            qpos = np.stack([columns[name] for name in names], 1)[: len(one)].astype(np.float64)
            pos, quat = chain.fk(torch.from_numpy(qpos))
            items.append(
                Trajectory(
                    name=f"episode {one.number}",
                    actions=one.actions,
                    pos=pos.numpy(),
                    quat=quat.numpy(),
                    qpos=qpos,
                )
            )
    return Trajectories(
        robot=word,
        control=control,
        control_hz=float(header["control_hz"]),
        units="normalized",
        items=tuple(items),
        source=f"{Path(path).name}, {header['task']}",
    )


def bridge(path: str | Path | None = None, *, control: str = "ee_target_delta_pose") -> Trajectories:
    """BridgeData clips of a WidowX in RLDS' TFRecord: ``state`` is the tool's place and roll, pitch, yaw in the base
    frame, ``action`` a displacement and roll, pitch, yaw, at 5 Hz. A clip that is there twice is taken once.

    Args:
        path: the file; default the 25 clips in MANIKIN_DATA/demos/bridge_octo_debug.
        control: how the actions are followed.

    Raises:
        DataError: it cannot be read, or holds no such clips.
        AssetError: there is no MANIKIN_DATA.
    """
    if path is None:
        path = data_file("demos/bridge_octo_debug/bridge_dataset-train.tfrecord-00000-of-00001")
    items: list[Trajectory] = []
    seen: set[bytes] = set()
    for number, one in enumerate(examples(path)):
        try:
            actions = np.asarray(one["steps/action"], np.float64).reshape(-1, 7)
            state = np.asarray(one["steps/observation/state"], np.float64).reshape(len(actions), -1)
        except (KeyError, ValueError):
            raise DataError(f"{path} holds no clips of BridgeData: steps/action and steps/observation/state") from None
        if state.tobytes() in seen:
            continue
        seen.add(state.tobytes())
        quat = quat_mul(quat_from_euler(torch.from_numpy(state[:, 3:6])), torch.tensor(_BRIDGE_TURN).double())
        moves = np.concatenate([actions[:, :3], _rotvec(actions[:, 3:6])], 1)
        items.append(Trajectory(name=f"clip {number}", actions=moves, pos=state[:, :3], quat=quat.numpy()))
    return Trajectories(
        robot="widowx_bridge",
        control=control,
        control_hz=5.0,
        items=tuple(items),
        tool=SIMPLER_TOOL,
        source="BridgeData V2 (CC BY 4.0), clips of octo-models/octo's debug dataset",
    )
