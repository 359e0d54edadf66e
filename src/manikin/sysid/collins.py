"""Collins et al. 2020 (RA-L, arXiv 1911.01557): a real Kinova Mico that was told joint positions, its wrist filmed.

The files of MANIKIN_DATA/collins2020 hold the wrist at 10 Hz, as the mean of 20 repeats. Only its places are used: the
turns in the files do not agree with the arm's kinematics. The arm was driven by joint velocities, four times the way to
the target per second, at most ``cap``: the published 10 to 30 degrees per second do not reproduce the recordings of
tasks 3, 4, 9 and 10, and 57.3 (1 rad/s) do. Here the arm's servos follow the joint positions of that law. The markers'
frame is turned by 3.31 degrees and moved by (-1.1, 16.2, -10.1) mm against the base; that is taken out.
"""

from __future__ import annotations

import lzma
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manikin.errors import DataError, UnknownNameError
from manikin.sysid.importers import data_file
from manikin.sysid.trajectories import Trajectories, Trajectory

__all__ = ["TASKS", "collins", "mico"]

ROBOT = "collins_mico"
_HZ, _GAIN = 10.0, 4.0
_YAW, _SHIFT, _HEIGHT = math.radians(3.31), (-0.0011, 0.0162, -0.0101), 0.055
_PUSH = (
    (3, (-3, -30, 101, 97, -4, -11)),
    (5, (-3, -57, 73, 101, -4, -12)),
    (7, (-3, -66, 44, 101, -4, -12)),
    (9, (15, -60, 49, 107, -3, -96)),
    (11, (15, -84, 28, 107, -4, -96)),
    (13, (-20, -84, 28, 107, -4, -96)),
)
_TOPPLE = ((3, (-5, -14, 110, 91, 0, 0)), (6, (-2, -40, 85, 91, 0, 0)), (9, (-2, -50, 20, 91, 0, 0)))
TASKS: dict[int, Any] = {3: _PUSH, 4: _PUSH, 9: _TOPPLE, 10: _TOPPLE}
"""Task -> (end [s], joint targets [degrees]); those whose recordings follow the published targets."""


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


def commands(segments: Sequence[tuple[float, Sequence[float]]], steps: int, cap: float) -> np.ndarray:
    """(steps, 6) [rad] joint positions that are asked for at 10 Hz, from zero; ``cap`` in degrees per second."""
    q, out = np.zeros(6), []
    for k in range(steps):
        target = next((t for end, t in segments if k / _HZ < end), segments[-1][1])
        q = q + np.clip(_GAIN * (np.array(target, float) - q), -cap, cap) / _HZ
        out.append(np.radians(q))
    return np.array(out)


def collins(tasks: Sequence[int] = (3, 4, 9, 10), *, cap: float = 57.3) -> Trajectories:
    """Recordings of tasks, up to their nominal end; makes the robot known.

    Args:
        tasks: of :data:`TASKS`.
        cap: [degrees/s] most that a joint is asked to turn.

    Raises:
        UnknownNameError: another task. AssetError: no data. DataError: a file that cannot be read.
    """
    items = []
    for task in tasks:
        if task not in TASKS:
            raise UnknownNameError("task of Collins et al.", str(task), map(str, TASKS))
        path = data_file(f"collins2020/real_mean_10hz/Task{task:02d}_mean10Hz.csv.xz")
        try:
            lines = lzma.decompress(path.read_bytes()).decode().splitlines()[11:]
            rows = np.array([[float(x) for x in line.split(",")[:7]] for line in lines])
        except (OSError, ValueError, lzma.LZMAError) as error:
            raise DataError(f"{path} cannot be read: {error}") from None
        rows = rows[: round(TASKS[task][-1][0] * _HZ)]
        whole = np.abs(np.linalg.norm(rows[:, 3:7], axis=1) - 1) < 0.02  # a repeat that was not tracked is zero
        rows = rows[: int(np.argmin(whole))] if not whole.all() else rows
        cos, sin = math.cos(_YAW), math.sin(_YAW)
        turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
        pos = (rows[:, :3] - _SHIFT) @ turn.T - (0, 0, _HEIGHT)
        asked = commands(TASKS[task], len(rows), cap)
        items.append(Trajectory(name=f"task {task}", actions=asked, pos=pos, start=np.zeros(6)))
    return Trajectories(
        robot=mico(),
        control="joint_pos",
        control_hz=_HZ,
        items=tuple(items),
        source="Collins et al. 2020 (doi 10.25919/5de4739688946), means of 20 repeats",
        notes={"cap_deg_s": cap, "base_yaw_deg": 3.31, "base_shift_m": list(_SHIFT)},
    )
