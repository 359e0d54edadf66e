"""ManiSkill's trajectories: which of its things is which of manikin's, and writing its layout.

``NAME.h5`` has groups ``traj_0`` ... with actions (T, A), terminated, truncated, success, fail (T,), rewards (T,), and,
before the first action and after each, (T + 1, ...): env_states/actors/NAME (13), env_states/articulations/NAME
(13 + 2 joints), obs/... ``NAME.json`` beside it has env_info, and of each episode its number, seed and control mode.
A state is position [m], quaternion wxyz, linear velocity of the centre of mass [m/s], angular velocity [rad/s], all in
the world, then positions and velocities of the joints. Layout: ManiSkill3 3.0.1.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import mujoco
import numpy as np
import torch

from manikin.data.formats.maniskill_actions import MODES, same
from manikin.data.recording.durable import room_of, sync, try_room
from manikin.data.recording.format import Header, RecordedEpisode, flatten
from manikin.env.arrays import to_numpy
from manikin.errors import ConfigError, DataError
from manikin.math import (
    pose_inv,
    pose_mul,
    quat_rotate,
    quat_rotate_inv,
)

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = [
    "COUNTERPARTS",
    "TABLE",
    "Counterpart",
    "ManiSkillExport",
    "Actor",
    "columns",
    "from_actor",
    "to_actor",
]

_HALF = math.sqrt(0.5)
_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
TABLE = ("table-workspace", (-0.12, 0.0, -0.9196429, _HALF, 0.0, 0.0, _HALF))
"""An actor that every table-top scene of ManiSkill has, and where it always is."""


@dataclass(frozen=True, kw_only=True)
class Actor:
    """An actor of ManiSkill.

    Attributes:
        name: of the actor.
        pose: of the actor in the frame of manikin's part, (7,) position [m] and quaternion wxyz.
    """

    name: str
    pose: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Counterpart:
    """manikin's task of one of ManiSkill's environments. Their names are the same, their versions are not.

    Attributes:
        task: manikin's id.
        parts: manikin's part -> ManiSkill's actor.
        main: the part whose place is reported.
        robot: the Panda that ManiSkill puts there unless told otherwise.
    """

    task: str
    parts: Mapping[str, Actor]
    main: str
    robot: str = "panda"


_DISC = Actor(name="goal_region", pose=(0.0, 0.0, 0.001, _HALF, 0.0, _HALF, 0.0))  # a cylinder along x there

COUNTERPARTS = {
    "PickCube-v1": Counterpart(
        task="PickCube-v2", parts={"cube": Actor(name="cube"), "goal_marker": Actor(name="goal_site")}, main="cube"
    ),
    "PushCube-v1": Counterpart(
        task="PushCube-v2", parts={"cube": Actor(name="cube"), "goal_marker": _DISC}, main="cube"
    ),
    "PullCube-v1": Counterpart(
        task="PullCube-v2", parts={"cube": Actor(name="cube"), "goal_marker": _DISC}, main="cube"
    ),
    "StackCube-v1": Counterpart(
        task="StackCube-v2",
        parts={"red": Actor(name="cubeA"), "green": Actor(name="cubeB")},
        main="red",
        robot="panda_wristcam",
    ),
    "PlaceSphere-v1": Counterpart(
        task="PlaceSphere-v2", parts={"ball": Actor(name="sphere"), "bin": Actor(name="bin")}, main="ball"
    ),
    "LiftPegUpright-v1": Counterpart(task="LiftPegUpright-v2", parts={"peg": Actor(name="peg")}, main="peg"),
    "PegInsertionSide-v1": Counterpart(
        task="PegInsertionSide-v2",
        parts={"peg": Actor(name="peg"), "box": Actor(name="box_with_hole")},
        main="peg",
        robot="panda_wristcam",
    ),
}
"""ManiSkill's id -> which part is which actor. The robot is a Panda; its joints have the same order in both."""

ROBOTS = {"panda": "panda", "panda_wristcam": "panda"}
"""ManiSkill's articulation -> manikin's robot."""


def to_actor(pose: np.ndarray, linear: np.ndarray, angular: np.ndarray, centre: np.ndarray, at: Actor) -> np.ndarray:
    """ManiSkill's state (T, 13) of a free body.

    Args:
        pose: (T, 7) of the body in the world.
        linear: (T, 3) [m/s] velocity of the body's origin in the world, as MuJoCo's free joint has it.
        angular: (T, 3) [rad/s] in the body's own frame, as MuJoCo's free joint has it.
        centre: (3,) or (T, 3) [m] centre of mass in the body's frame.
        at: the actor.
    """
    body = torch.from_numpy(np.asarray(pose, np.float64))
    turning = quat_rotate(body[:, 3:], torch.from_numpy(np.asarray(angular, np.float64)))
    arm = quat_rotate(body[:, 3:], torch.from_numpy(np.asarray(centre, np.float64)).expand(len(body), 3))
    moving = torch.from_numpy(np.asarray(linear, np.float64)) + torch.linalg.cross(turning, arm)
    there = pose_mul(body, torch.tensor(at.pose, dtype=torch.float64).expand(len(body), 7))
    return torch.cat([there, moving, turning], 1).numpy()


def from_actor(state: np.ndarray, centre: np.ndarray, at: Actor) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of :func:`to_actor`: pose (T, 7), and (T, 6) as in MuJoCo's qvel of a free joint."""
    whole = torch.from_numpy(np.asarray(state, np.float64))
    back = pose_inv(torch.tensor(at.pose, dtype=torch.float64)).expand(len(whole), 7)
    there = torch.cat([whole[:, :3], whole[:, 3:7] / whole[:, 3:7].norm(dim=1, keepdim=True)], 1)
    body = pose_mul(there, back)
    turning = whole[:, 10:13]
    arm = quat_rotate(body[:, 3:], torch.from_numpy(np.asarray(centre, np.float64)).expand(len(body), 3))
    moving = whole[:, 7:10] - torch.linalg.cross(turning, arm)
    return body.numpy(), torch.cat([moving, quat_rotate_inv(body[:, 3:], turning)], 1).numpy()


class ManiSkillExport:
    """Turns episodes into trajectories. The files appear, whole, when it is closed.

    Args:
        path: the HDF5 file, ``.h5``; the JSON gets its name. Neither may exist.
        header: of the recording.
        env: an environment of the recording, which knows the scene; it is reset.

    Raises:
        ConfigError: another suffix, which ManiSkill's loaders do not know.
        DataError: a file exists, or cannot be written.
    """

    def __init__(self, path: str | Path, header: Header, env: BatchEnv) -> None:
        self.path, self._header, self._env = Path(path), header, env
        if self.path.suffix != ".h5":
            raise ConfigError(f"ManiSkill's files are called NAME.h5 and NAME.json; not {self.path.name}")
        self._files = (self.path.with_suffix(".json"), self.path)
        for file in self._files:
            if file.exists():
                raise DataError(f"{file} exists; choose another name")
        f = header.fingerprint
        same_name = (one for one in COUNTERPARTS if one.rpartition("-v")[0] == header.task.rpartition("-v")[0])
        theirs = next(same_name, "") if str(f.get("robot", "")).split(":")[0] == "panda" else ""
        counterpart = COUNTERPARTS.get(theirs)
        self._env_id = theirs or header.task
        self._counterpart = counterpart
        own = str(f.get("control", ""))
        alike = MODES.get(own) if counterpart else None
        self._mode = alike.name if alike else own
        self._numbers: Callable[[np.ndarray, BatchEnv], np.ndarray] = alike.theirs if alike else same
        self._episodes: list[dict[str, Any]] = []
        self._joints: dict[str, list[str]] = {}
        self._seen = "none"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try_room(_temporary(self.path), room_of([]))
            self._file = h5py.File(_temporary(self.path), "w", track_order=True)
        except OSError as error:
            with suppress(OSError):
                _temporary(self.path).unlink(missing_ok=True)
            raise DataError(f"cannot write {self.path}: {error}") from None

    def finished(self) -> set[int]:
        """Nothing is kept of an interrupted export."""
        return set()

    def write(self, episode: RecordedEpisode, place: int) -> None:
        """Add an episode as ``traj_PLACE``.

        Raises:
            DataError: it holds no states, or states of another kind of simulator; or the disk is full.
        """
        states = self._states(episode)
        values = {"obs": self._observations(episode)}
        values["actions"] = np.asarray(self._numbers(episode.actions, self._env), np.float32)
        values |= {name: getattr(episode, name) for name in ("terminated", "truncated", "success", "fail")}
        values |= {**({"env_states": states} if states else {}), "rewards": episode.rewards}
        try:
            try_room(_temporary(self.path), room_of(flatten(values).values()))
            _write(self._file, f"traj_{place}", values)
            self._file.flush()  # what was written before is safe from what does not fit later
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.path}: {error}; no file is left") from None
        self._episodes.append(self._told(episode, place))

    def _told(self, episode: RecordedEpisode, place: int) -> dict[str, Any]:
        """What the JSON says of an episode."""
        sizes = {n.removeprefix("extra/variables/"): v.tolist() for n, v in episode.initial.items() if "variables" in n}
        return {
            "episode_id": place,
            "episode_seed": episode.seed,
            "control_mode": self._mode,
            "elapsed_steps": len(episode),
            "reset_kwargs": {"options": dict(episode.options), "seed": episode.seed},
            "success": episode.success_at_end,
            "fail": bool(len(episode) and episode.fail[-1]),
            "manikin": {**episode.summary, "variables": sizes},
        }

    def _states(self, episode: RecordedEpisode) -> dict[str, Any]:
        """Actors and articulations, name -> (T + 1, ...)."""
        if episode.states is None:
            raise DataError(f"episode {episode.number} holds no states: it was recorded with --no-states")
        scene = self._env.env_for(episode.seed)
        model, states = scene.scene.model, episode.states
        if states.shape[1] != mujoco.mj_stateSize(model, _STATE):
            raise DataError(
                f"episode {episode.number}: its states do not fit {self._header.task} in this version of MuJoCo"
            )
        names = {one.prefix: self._robot(one) for one in scene.robots}
        at = self._counterpart.parts if self._counterpart else {}
        found: dict[str, dict[str, np.ndarray]] = {"actors": {}, "articulations": {}}
        if self._counterpart:
            name, place = TABLE
            found["actors"][name] = np.tile(np.array([*place, *[0.0] * 6], np.float32), (len(states), 1))
        for b in range(1, model.nbody):
            if model.body_parentid[b] == 0:
                self._tree(episode, model, b, at, names, found)
        return {kind: values for kind, values in found.items() if values}

    def _tree(
        self,
        episode: RecordedEpisode,
        model: mujoco.MjModel,
        b: int,
        at: Mapping[str, Actor],
        names: Mapping[str, str],
        found: dict[str, dict[str, np.ndarray]],
    ) -> None:
        """Add the actor or articulation whose first body is ``b``, if it moves."""
        assert episode.states is not None
        q, v = (episode.states[:, columns(model, field)] for field in ("QPOS", "QVEL"))
        name, still = model.body(b).name, np.zeros((len(q), 3))
        actor = at.get(name, Actor(name=name))
        joints = [j for j in range(model.njnt) if model.body_rootid[model.jnt_bodyid[j]] == b]
        if (m := model.body_mocapid[b]) >= 0:
            places, turns = (episode.states[:, columns(model, f)] for f in ("MOCAP_POS", "MOCAP_QUAT"))
            pose = np.concatenate([places[:, 3 * m : 3 * m + 3], turns[:, 4 * m : 4 * m + 4]], 1)
            found["actors"][actor.name] = to_actor(pose, still, still, still[0], actor).astype(np.float32)
        elif joints:
            free = model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_FREE
            own = {
                f: episode.initial.get(f"model/{f}", getattr(model, f))[b]
                for f in ("body_pos", "body_quat", "body_ipos")
            }
            if free:
                i, j = int(model.jnt_qposadr[joints[0]]), int(model.jnt_dofadr[joints[0]])
                pose, linear, angular = q[:, i : i + 7], v[:, j : j + 3], v[:, j + 3 : j + 6]
            else:
                pose, linear, angular = np.tile([*own["body_pos"], *own["body_quat"]], (len(q), 1)), still, still
            root = to_actor(pose, linear, angular, own["body_ipos"], actor)
            rest = joints[1:] if free else joints
            if free and not rest:
                found["actors"][actor.name] = root.astype(np.float32)
                return
            prefix = name.split("/")[0] + "/"
            called = names.get(prefix, prefix[:-1])
            self._joints[called] = [model.joint(j).name.removeprefix(prefix) for j in rest]
            positions, velocities = q[:, model.jnt_qposadr[rest]], v[:, model.jnt_dofadr[rest]]
            whole = np.concatenate([root, positions, velocities], 1)
            found["articulations"][called] = whole.astype(np.float32)

    def _robot(self, robot: Any) -> str:
        """What ManiSkill calls the robot; several of a kind keep their prefix."""
        if self._counterpart:
            return self._counterpart.robot
        alone = len(self._env.robots) == 1
        return str(robot.arm.name if alone else robot.prefix.rstrip("/"))

    def _observations(self, episode: RecordedEpisode) -> Any:
        return self._observations_of(episode.observations or {})

    def _observations_of(self, seen: Mapping[str, np.ndarray]) -> Any:
        """In ManiSkill's tree: agent, extra, sensor_data, sensor_param."""
        if list(seen) == ["value"]:
            self._seen = "state"
            return np.asarray(seen["value"], np.float32)
        tree: dict[str, Any] = {}
        pictures = []
        for key, value in seen.items():
            group, _, rest = key.partition("/")
            camera, _, output = rest.rpartition("/")
            if group == "cameras" and output in _SENSOR:
                pictures.append(output)
                _put(tree, f"sensor_data/{camera}/{output}", _SENSOR[output](value))
            elif group == "cameras" and output == "K":
                _put(tree, f"sensor_param/{camera}/intrinsic_cv", value)
            elif group == "cameras" and output == "T":
                _put(tree, f"sensor_param/{camera}/cam2world_gl", value * np.array([1, -1, -1, 1], np.float32))
                _put(tree, f"sensor_param/{camera}/extrinsic_cv", np.float32(np.linalg.inv(value)[..., :3, :]))
            else:
                _put(tree, f"{'agent' if rest in ('qpos', 'qvel') else 'extra'}/{rest or key}", value)
        if seen:
            known = ["state_dict"] if not pictures or any(key.startswith("privileged/") for key in seen) else []
            self._seen = "+".join([*dict.fromkeys(pictures), *known])
        return tree

    def close(self) -> None:
        """Finish the files. Raises :class:`DataError` when there is nothing, or the disk is full."""
        if not self._episodes:
            self.abandon()
            raise DataError("no episode was converted, so there is no dataset")
        f = self._header.fingerprint
        kwargs = {"obs_mode": self._seen, "control_mode": self._mode, "reward_mode": f.get("reward", "none")}
        if self._counterpart:
            kwargs["robot_uids"] = self._counterpart.robot
        about = {
            "env_info": {
                "env_id": self._env_id,
                "env_kwargs": kwargs,
                "max_episode_steps": f.get("horizon"),
            },
            "commit_info": None,
            "episodes": sorted(self._episodes, key=lambda one: int(one["episode_id"])),
            "source_type": "manikin",
            "source_desc": f"recorded by manikin in MuJoCo; acted: {self._header.policy or 'unknown'}",
            "manikin": {"fingerprint": dict(f), "joints": self._joints},
        }
        try:
            self._file.close()
            _temporary(self._files[0]).write_text(json.dumps(about, indent=2) + "\n")
            for file in self._files:
                sync(_temporary(file))
            for file in self._files:  # the HDF5 last: where it is, the JSON is
                os.replace(_temporary(file), file)
            sync(self.path.parent)
        except OSError as error:
            self.abandon()
            raise DataError(f"cannot write {self.path}: {error}; no file is left") from None

    def abandon(self) -> None:
        """Leave no file."""
        self._file.close()
        for file in self._files:
            _temporary(file).unlink(missing_ok=True)


_SENSOR: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rgb": lambda value: value,
    "depth": lambda value: np.rint(np.clip(value * 1000.0, 0, 32767)).astype(np.int16)[..., None],
    "segmentation": lambda value: value.astype(np.int16)[..., None],
}
"""A camera's output -> as ManiSkill keeps it: depth in mm, one channel."""


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def columns(model: mujoco.MjModel, field: str) -> slice:
    """Where a field (``QPOS``, ``CTRL``, ...) is in MuJoCo's integration states."""
    bit = int(getattr(mujoco.mjtState, f"mjSTATE_{field}"))
    start = mujoco.mj_stateSize(model, _STATE & (bit - 1))
    return slice(start, start + mujoco.mj_stateSize(model, bit))


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.split("/")
    for folder in folders:
        tree = tree.setdefault(folder, {})
    tree[name] = to_numpy(value)


def _write(group: Any, name: str, value: Any) -> None:
    """A tree of arrays as groups and datasets; pictures compressed."""
    if isinstance(value, Mapping):
        inner = group.create_group(name, track_order=True)
        for key, one in value.items():
            _write(inner, key, one)
    else:
        squeeze = {"compression": "gzip", "compression_opts": 5} if name in _SENSOR else {}
        group.create_dataset(name, data=value, **squeeze)
