"""Recordings as motions for system identification: what the arm was told, and its joints or its wrist.

Recordings of your own (:mod:`manikin.fidelity.recordings.layout`) need actions, and a header that says robot and
control. The rest is about the benchmark's.

The summaries of MANIKIN_DATA/collins2020 hold the wrist at 10 Hz, as the mean of 20 repeats. Only its places are used:
its turns do not agree with the arm's kinematics. The arm was driven by joint velocities, four times the way to the
target per second, at most ``cap``: the published 10 to 30 degrees per second do not reproduce the recordings of tasks
3, 4, 9 and 10, and 57.3 (1 rad/s) do. Here the arm's servos follow the joint positions of that law. The markers' frame
is turned by 3.31 degrees and moved by (-1.1, 16.2, -10.1) mm against the base; that is taken out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manikin.errors import DataError, UnknownNameError
from manikin.fidelity.arm import commands
from manikin.fidelity.protocol import BASE_HEIGHT, HZ, benchmark_task
from manikin.fidelity.recordings.own import read_own
from manikin.fidelity.recordings.recording import ARM, read_recording
from manikin.sysid.importers import data_file
from manikin.sysid.trajectories import Trajectories, Trajectory

__all__ = ["FOLLOWED", "collins", "mico", "own_motions"]

ROBOT = "collins_mico"
_YAW, _SHIFT = math.radians(3.31), (-0.0011, 0.0162, -0.0101)
FOLLOWED = (3, 4, 9, 10)
"""Tasks whose recordings follow the published targets."""


def mico() -> str:
    """Make the arm known, and give its word: the Mico of the recordings from its URDF, gravity compensated.

    kp = 10 kd; kd lets a joint reach 1 rad/s at a tenth of the maker's torque.

    Raises:
        AssetError: there is no MANIKIN_DATA with collins2020.
    """
    from manikin.robots import from_file, register
    from manikin.spec.robot import Gains

    effort = (40.0, 80.0, 40.0, 20.0, 20.0, 20.0)
    gains = Gains(
        kp=effort, kd=tuple(e / 10 for e in effort), force=effort, source="derived from the maker's torque limits"
    )
    spec = from_file(
        data_file("collins2020/urdf/m1n6s300_mujoco.urdf"),
        name=ROBOT,
        joints=tuple(f"m1n6s300_joint_{k}" for k in range(1, 7)),
        flange="ft_mount_fts_toolside",
        rest=(0.0,) * 6,
        gains=gains,
        base_pos=(0, 0, 0),
        title="Kinova Mico (m1n6s300) of Collins et al.",
    )
    register(spec)
    return ROBOT


def collins(tasks: Sequence[int] = FOLLOWED, *, cap: float = 57.3) -> Trajectories:
    """Recordings of tasks, up to their nominal end; makes the robot known.

    Args:
        tasks: of :data:`FOLLOWED`.
        cap: [degrees/s] most that a joint is asked to turn.

    Raises:
        UnknownNameError: another task. AssetError: no data. DataError: a file that cannot be read.
    """
    items = []
    for number in tasks:
        if number not in FOLLOWED:
            raise UnknownNameError("task of Collins et al.", str(number), map(str, FOLLOWED))
        task = benchmark_task(number)
        path = data_file(f"collins2020/real_mean_10hz/Task{number:02d}_mean10Hz.csv.xz")
        rows = read_recording(path, number).arm[0][: task.rows]
        whole = np.abs(np.linalg.norm(rows[:, ARM["quat"]], axis=1) - 1) < 0.02  # a repeat that was not tracked is zero
        rows = rows[: int(np.argmin(whole))] if not whole.all() else rows
        cos, sin = math.cos(_YAW), math.sin(_YAW)
        turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
        pos = (rows[:, ARM["pos"]] - _SHIFT) @ turn.T - (0, 0, BASE_HEIGHT)
        asked = commands(task.segments, len(rows), cap)
        items.append(Trajectory(name=f"task {number}", actions=asked, pos=pos, start=np.zeros(6)))
    return Trajectories(
        robot=mico(),
        control="joint_pos",
        control_hz=HZ,
        items=tuple(items),
        source="Collins et al. 2020 (doi 10.25919/5de4739688946), means of 20 repeats",
        notes={"cap_deg_s": cap, "base_yaw_deg": 3.31, "base_shift_m": list(_SHIFT)},
    )


def own_motions(path: str | Path) -> Trajectories:
    """Repeats of a recording of your own, each up to its last action.

    Poses are taken to be in the robot's base frame.

    Args:
        path: folder with recording.toml, or an HDF5 file.

    Raises:
        DataError: it cannot be read, has no actions, or does not say robot and control; and as
            :class:`~manikin.sysid.trajectories.Trajectories`.
    """
    recording = read_own(path)
    said = recording.header
    if "actions" not in recording.columns:
        raise DataError(f"{path} has no actions, which system identification follows: columns actions.1 and so on")
    for key in ("robot", "control"):
        if not said.get(key):
            raise DataError(f"{path} does not say {key}; system identification needs the word for manikin.make")
    items = []
    for k, label in enumerate(recording.labels):
        asked = recording.part("actions")[k]
        rows = int(np.flatnonzero(np.isfinite(asked).all(1))[-1]) + 1 if np.isfinite(asked).all(1).any() else 0
        parts = {one: recording.part(one)[k, :rows] for one in ("pos", "quat", "qpos") if one in recording.columns}
        items.append(Trajectory(name=label, actions=asked[:rows], **parts))
    given = {"units": said["actions"]} if "actions" in said else {}
    given |= {"tool": tuple(said["tool"])} if "tool" in said else {}
    return Trajectories(
        robot=said["robot"],
        control=said["control"],
        control_hz=recording.hz,
        items=tuple(items),
        source=str(said.get("source", "") or Path(path).name),
        **given,
    )
