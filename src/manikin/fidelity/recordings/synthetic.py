"""Synthetic recordings for tests and for trying things out: analytic motions with sensor noise, without physics.

The arm follows its controller's law without inertia, and the object a smooth curve. Every file says
``##SYNTHETIC: true``. A score from such files says nothing about a simulator, and reports say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from manikin.errors import UnknownNameError
from manikin.fidelity.arm import commands, wrist_pose
from manikin.fidelity.protocol import HZ, REPEATS, TASKS, benchmark_task
from manikin.fidelity.recordings.recording import Recording, write_repeats, write_summary
from manikin.math import quat_from_euler, quat_from_matrix, quat_from_rotvec, quat_mul

__all__ = ["DEFECTS", "averaged", "synthetic_recording", "write_synthetic"]

DEFECTS = ("zero_repeat", "zero_rows", "label_swap")
"""Defects that can be asked for: one repeat of zeros in the mean arm, zeros in the last row, exchanged labels."""
_WAYS = {  # how far the object goes [m], by when [s], in how long [s], and how much it turns about z [rad]
    "cube": ((-0.02, 0.32, 0.0), 7.0, 5.0, 0.9),
    "cylinder": ((0.6, 0.0, 0.0), 12.0, 30.0, 0.0),
    "cone": ((0.4, 0.1, 0.0), 10.0, 20.0, 1.5),
    "cuboid": ((0.06, 0.02, 0.0), 5.0, 3.0, 0.2),
}
_LOADS = np.array([0.5, 8.0, 4.0, 0.5, 0.5, 0.2])  # [N m] torque of a joint at a right angle


def synthetic_recording(
    task: int,
    *,
    seed: int = 0,
    repeats: int = REPEATS,
    delay: float | None = None,
    push: float = 1.0,
    noise: float = 1.0,
    defects: Sequence[str] = (),
) -> Recording:
    """Repeats of one task.

    Args:
        task: 1 to 10.
        seed: of the noise and of what differs between repeats.
        repeats: how many.
        delay: time from the start until the arm moves [s]; by default 0.2, and 0.5 in tasks 5 to 8.
        push: how far the object goes, as a share of what is usual.
        noise: times the sensors' noise and the differences between repeats; 0 for none.
        defects: of :data:`DEFECTS`.

    Raises:
        UnknownNameError: another task or defect.
    """
    for one in defects:
        if one not in DEFECTS:
            raise UnknownNameError("synthetic defect", one, DEFECTS)
    about = benchmark_task(task)
    rolling = task in (5, 6, 7, 8)
    cap, delay = (30.0 if rolling else 57.3), (0.5 if rolling else 0.2) if delay is None else delay
    rng = np.random.default_rng([task, seed])  # house: random, a stream of its own
    times = np.arange(about.rows) / HZ
    asked = np.concatenate([np.zeros((1, 6)), commands(about.segments, about.rows, cap)])
    starts = delay + noise * rng.uniform(-0.02, 0.02, repeats)
    late = np.clip(times - starts[:, None], 0, None) * HZ
    q = np.stack([[np.interp(one, np.arange(len(asked)), joint) for joint in asked.T] for one in late])
    q = q.transpose(0, 2, 1)  # (R, N, 6)
    pos, turn = wrist_pose(q)
    quat = _turned(quat_from_matrix(torch.from_numpy(turn)), noise * np.radians(0.1), rng)
    shape = q.shape[:2]
    torque = _LOADS * np.sin(q) + noise * rng.normal(0, 0.2, (*shape, 6))
    force = np.array([0.3, -0.4, 2.5]) + noise * (rng.normal(0, 0.15, (*shape, 3)) + 0.3 * times[:, None] / times[-1])
    moment = np.array([0.02, -0.05, 0.01]) + noise * rng.normal(0, 0.005, (*shape, 3))
    fingers = np.tile([1.0, 2.0, 2.0], (*shape, 1))
    pos = pos + noise * rng.normal(0, 0.0003, pos.shape)
    arm = np.concatenate([pos, quat, np.round(torque, 1) if noise else torque, fingers, force, moment], axis=-1)
    objects = np.zeros((0, about.rows, 7))
    if about.thing is not None:
        start, (way, begin, lasts, yaw) = np.array(about.thing.start), _WAYS[about.thing.shape]
        share = np.clip((times - begin) / lasts, 0, 1)
        share = share**3 * (10 - 15 * share + 6 * share**2)  # at rest at both ends
        far = push * (1 + noise * rng.normal(0, 0.08, (repeats, 1, 3)))
        off = noise * rng.normal(0, 0.0015, (repeats, 1, 3))
        place = start[:3] + off + far * share[:, None] * way + noise * rng.normal(0, 0.0003, (*shape, 3))
        turns = np.zeros((*shape, 3))
        turns[..., 2] = push * yaw * share + noise * rng.normal(0, np.radians(1.5), (repeats, 1))
        first = quat_from_euler(torch.from_numpy(start[3:]))
        lies = quat_mul(quat_from_rotvec(torch.from_numpy(turns)), first.expand(*shape, 4))
        objects = np.concatenate([place, _turned(lies, noise * np.radians(0.1), rng)], axis=-1)
    if "zero_repeat" in defects:
        arm[-1] = 0
    if "zero_rows" in defects:
        arm[:, -1], objects[:, -1] = 0, 0
    if "label_swap" in defects:
        swapped = rng.random(objects.shape[:2]) < 0.01
        objects[..., 0] -= 0.03 * swapped * (objects[..., 2] != 0)
    said = f"seed {seed}, delay {delay:g} s, push {push:g}, noise {noise:g}, defects {' '.join(defects) or 'none'}"
    return Recording(
        task=task,
        arm=arm,
        objects=objects,
        labels=tuple(f"synthetic_{k + 1:02d}" for k in range(len(objects))),
        header={"Generator": f"manikin synthetic 1: {said}"},
        synthetic=True,
        source=f"synthetic task {task}",
    )


def _turned(quat: torch.Tensor, deviation: float, rng: np.random.Generator) -> np.ndarray:  # house: random, a type
    """Quaternions (..., 4), each turned a little about a random axis."""
    little = torch.from_numpy(rng.normal(0, 1, (*quat.shape[:-1], 3)) * deviation)
    found: np.ndarray = quat_mul(quat, quat_from_rotvec(little)).numpy()
    return found


def averaged(recording: Recording) -> Recording:
    """A summary of repeats as the authors make it: the plain mean of the arm's columns, each repeat's object."""
    return replace(recording, arm=recording.arm.mean(0, keepdims=True), summary=True)


def write_synthetic(
    folder: str | Path, tasks: Sequence[int] = tuple(TASKS), *, seed: int = 0, defects: Sequence[str] = ()
) -> Path:
    """Write ``real`` with a summary of each task and ``sim`` with twenty repeats of other noise. Returns the folder.

    Raises:
        UnknownNameError: as :func:`synthetic_recording`. OSError: they cannot be written.
    """
    folder = Path(folder)
    for task in tasks:
        write_summary(averaged(synthetic_recording(task, seed=seed, defects=defects)), folder / "real")
        write_repeats(synthetic_recording(task, seed=seed + 1), folder / "sim")
    return folder
