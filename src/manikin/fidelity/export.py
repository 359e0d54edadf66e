"""Episodes that manikin recorded, as a recording of the layout in which your own simulator is scored.

The recorded states are set one by one, and what a real arm's log has is read from them: tool, joints, torques, fingers,
the wrist's force where the task has a sensor, and the objects. Nothing is simulated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin._version import __version__
from manikin.data.recording.read import EpisodeFile
from manikin.data.replay.environment import make_env
from manikin.data.replay.play import Show, batches, play
from manikin.env.arrays import to_numpy
from manikin.errors import DataError
from manikin.fidelity.recordings.layout import FORMAT, VERSION, Repeat, check_repeats
from manikin.fidelity.recordings.own import recording_of
from manikin.fidelity.recordings.recording import Recording
from manikin.math import pose_inv, pose_mul
from manikin.scene.handles.part import Marker, Part
from manikin.scene.handles.sensors import ForceTorque

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv, LayoutRows

__all__ = ["exported"]


def exported(
    path: str | Path,
    *,
    name: str = "",
    numbers: Iterable[int] | None = None,
    task: Any = None,
    trust: bool = False,
    num_envs: int = 16,
) -> Recording:
    """Episodes of a recording as repeats of a task of your own; :func:`~manikin.fidelity.recordings.own.write_own`
    writes them.

    Poses are in the frame in which the robot's base stands when the episode begins. Joint torques are what the motors
    exert with their damping and the compensation of gravity. The last row has no action. Things with joints of their
    own, such as drawers, are not in it.

    Args:
        path: a file of ``manikin collect`` or ``teleop``, with states.
        name: of the task; default its id.
        numbers: which episodes; None for all.
        task: where the task is, and
        trust: whether to run the file that the recording names, as
            :func:`manikin.data.replay.environment.make_env` takes them.
        num_envs: rows side by side; never changes the result.

    Raises:
        DataError: it cannot be read, has no such episode, no states or several robots, or its episodes have different
            objects.
        ManikinError: its task or robot is not here.
    """
    with EpisodeFile(path) as file:
        header = file.needed_header()
        wanted = list(file.numbers if numbers is None else numbers)
        options: dict[str, Any] = {"task": task, "trust": trust, "observe": "state", "device": "cpu"}
        env = make_env(header.fingerprint, max(1, min(num_envs, len(wanted))), **options)
        try:
            if len(env.robots) > 1:
                raise DataError(f"{path} holds several robots; a log in this layout is of one")
            seen = _Seen(env)
            for batch in batches(file, wanted, env.num_envs):
                play(env, batch, Show(), [seen], lambda: False)
                for episode in batch:
                    actions = np.full((len(episode) + 1, episode.actions.shape[1]), np.nan)
                    actions[:-1] = episode.actions
                    seen.done[episode.number]["actions"] = actions
            robot, hz = env.robot, float(env.control_hz)
            said = {
                "format": FORMAT,
                "version": VERSION,
                "task": name or header.task,
                "hz": hz,
                "robot": str(header.fingerprint.get("robot", "")),
                "source": f"manikin {__version__}",
                "objects": seen.objects,
                "joints": [re.sub(r"\W", "_", joint) for joint in robot.arm.joints],
                "control": str(header.fingerprint.get("control", "")),
                "actions": "normalized",
                "notes": {"recording": Path(path).name, "task": header.task, "policy": header.policy},
            }
        finally:
            env.close()
        repeats = [_repeat(path, number, seen.done[number], hz) for number in wanted]
        check_repeats(Path(path), said, repeats, even=True)
        return recording_of(said, repeats, hz=hz, source=f"{path}, {said['task']}")


def _repeat(path: str | Path, number: int, arrays: Mapping[str, np.ndarray], hz: float) -> Repeat:
    time = np.arange(len(arrays["pos"])) / hz
    label = f"episode_{number:04d}"
    return Repeat(label=label, place=f"{path}: episode {number}", first=0, arrays={"time": time, **arrays})


class _Seen:
    """An observer: what a log has of every instant.

    Attributes:
        done: number of an episode that has ended -> name of an array -> (T + 1, width).
        objects: names of the objects.
    """

    def __init__(self, env: BatchEnv) -> None:
        self._env = env
        self._rows: dict[int, tuple[int, dict[str, list[np.ndarray]]]] = {}
        self._base = torch.zeros(env.num_envs, 7, dtype=torch.float64)
        self.done: dict[int, dict[str, np.ndarray]] = {}
        self.objects: list[str] = []

    def start(self, rows: np.ndarray, numbers: np.ndarray, observation: Any, options: Mapping[str, Any]) -> None:
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            self._rows[row] = (number, {})
        for some in self._env.parts(rows):
            self._base[rows[some.places]] = some.env.robot.root_pose[some.rows].double()
        self._look(rows)

    def step(self, rows: np.ndarray, actions: Any, observation: Any, outcome: Mapping[str, Any]) -> None:
        self._look(rows)

    def finish(self, rows: np.ndarray, health: np.ndarray) -> None:
        for row in rows.tolist():
            number, found = self._rows.pop(row)
            self.done[number] = {name: np.stack(values) for name, values in found.items()}

    def _look(self, rows: np.ndarray) -> None:
        for some in self._env.parts(rows):
            mine = rows[some.places]
            for name, values in self._read(some, pose_inv(self._base[mine])).items():
                for row, value in zip(mine.tolist(), values, strict=True):
                    self._rows[row][1].setdefault(name, []).append(value)

    def _read(self, some: LayoutRows, base: torch.Tensor) -> dict[str, np.ndarray]:
        """Name -> (n, width) of the rows now."""
        env, at = some.env, some.rows
        robot, model = env.robot, env.scene.model
        count = robot.arm_joints

        def placed(pose: torch.Tensor) -> np.ndarray:
            return to_numpy(pose_mul(base, pose[at].double()))

        tool = placed(robot.tcp_pose)
        dofs = [int(model.joint(robot.prefix + joint).dofadr[0]) for joint in robot.arm.joints]
        motors = env.world.read("qfrc_actuator").double() + env.world.read("qfrc_passive").double()
        found = {
            "pos": tool[:, :3],
            "quat": tool[:, 3:],
            "qpos": to_numpy(robot.arm_qpos[at].double()),
            "qvel": to_numpy(robot.arm_qvel[at].double()),
            "torque": to_numpy(motors[at][:, dofs]),
        }
        if robot.qpos.shape[1] > count:
            found["fingers"] = to_numpy(robot.qpos[at, count:].double())
        for sensor in [one for one in vars(env.h).values() if isinstance(one, ForceTorque)][:1]:
            value = to_numpy(sensor.value[at].double())
            found |= {"force": value[:, :3], "moment": value[:, 3:]}
        parts = [one for one in env.things if isinstance(one, Part) and not isinstance(one, Marker)]
        parts = [one for one in parts if one.kind != "fixed"]
        names = [re.sub(r"\W", "_", one.name) for one in parts]
        if self.objects not in ([], names):
            raise DataError(f"episodes have different objects: {', '.join(self.objects)}, and {', '.join(names)}")
        self.objects = names
        for name, part in zip(names, parts, strict=True):
            pose = placed(part.pose)
            found |= {f"{name}.pos": pose[:, :3], f"{name}.quat": pose[:, 3:]}
        return found
