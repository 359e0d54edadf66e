"""Made-up recordings of any arm in the layout of your own, for tests and for trying things out. No physics.

An arm of links that turn about z and y in turn follows smooth curves, objects are pushed along, sensors have noise.
Every header says ``synthetic = true``. A score of such files says nothing about a simulator, and reports say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from manikin.errors import ConfigError
from manikin.fidelity.recordings.own import write_own
from manikin.fidelity.recordings.recording import Recording
from manikin.math import quat_from_euler, quat_from_matrix

__all__ = ["made_up", "write_made_up"]

_LINK, _SWING, _WAY = 0.15, 0.7, 0.25  # [m] of a link, [rad] that joints swing, [m] that an object is pushed
_HEAVY = 12.0  # [N m] of the first joint's torque at a right angle; each further one has 0.7 of the last


def made_up(
    task: str = "push",
    *,
    joints: int = 7,
    objects: Sequence[str] = ("cube",),
    loads: bool = True,
    hz: float = 20.0,
    seconds: float = 6.0,
    repeats: int = 10,
    seed: int = 0,
    late: float = 0.0,
    push: float = 1.0,
    swing: float = 1.0,
    noise: float = 1.0,
    source: str = "",
) -> Recording:
    """Repeats of one task.

    Args:
        task: its name.
        joints: of the arm.
        objects: names of what is pushed, one after the other.
        loads: whether there are joint torques, and force and moment at the wrist.
        hz: rows per second.
        seconds: how long a repeat lasts.
        repeats: how many.
        seed: of the noise and of what differs between repeats.
        late: time from the start until the arm moves [s].
        push: how far objects go, as a share of what is usual.
        swing: how far joints go, likewise.
        noise: times the sensors' noise and the differences between repeats; 0 for none.
        source: what the row of tables is called; by default what was asked for.

    Raises:
        ConfigError: no joint, no repeat, or too short.
    """
    if min(joints, repeats) < 1 or not (hz > 0 and seconds * hz >= 3):
        raise ConfigError(f"{joints} joints, {repeats} repeats, {seconds:g} s at {hz:g} Hz: there has to be something")
    rng = np.random.default_rng([seed, joints, repeats])  # house: random, a stream of its own
    time = np.arange(round(seconds * hz)) / hz
    begins = late + noise * rng.uniform(0, 0.02, repeats)
    share = _smooth((time - begins[:, None]) / (0.8 * seconds))  # (R, N)
    way = swing * _SWING * np.cos(np.arange(joints) + 0.5)
    q = 0.3 * np.sin(np.arange(joints)) + share[..., None] * way
    pos, turn = _tool(q)
    shape = q.shape[:2]
    columns: dict[str, np.ndarray] = {
        "pos": pos + noise * rng.normal(0, 0.0003, pos.shape),
        "quat": quat_from_matrix(torch.from_numpy(turn)).numpy(),
        "qpos": q + noise * rng.normal(0, 0.0002, q.shape),
    }
    if loads:
        heavy = _HEAVY * np.power(0.7, np.arange(joints))
        columns["torque"] = heavy * np.sin(np.cumsum(q, -1)) + noise * rng.normal(0, 0.1, q.shape)
        touch = np.clip(np.sin(np.pi * share), 0, None)[..., None] * (3.0 if objects else 0.0)
        columns["force"] = touch * [1.0, 0.2, 0.0] + [0.0, 0.0, -4.0] + noise * rng.normal(0, 0.1, (*shape, 3))
        columns["moment"] = touch * [0.0, 0.05, 0.01] + noise * rng.normal(0, 0.005, (*shape, 3))
    tracks = []
    for k, _ in enumerate(objects):
        moved = push * _smooth((time - begins[:, None] - 0.3 * seconds) / (0.3 * seconds))[..., None]
        far = 1 + noise * rng.normal(0, 0.06, (repeats, 1, 3))
        start = np.array([0.5, 0.15 * k, 0.03]) + noise * rng.normal(0, 0.002, (repeats, 1, 3)) * [1, 1, 0]
        place = start + moved * far * [_WAY, -0.05, 0.0] + noise * rng.normal(0, 0.0003, (*shape, 3))
        angles = np.zeros((*shape, 3))
        angles[..., 2] = 0.4 * moved[..., 0] + noise * rng.normal(0, 0.03, (repeats, 1))
        angles[..., :2] = noise * rng.normal(0, 0.002, (repeats, 1, 2))
        tracks += [place, quat_from_euler(torch.from_numpy(angles)).numpy()]
    ends = np.cumsum([0, *(values.shape[-1] for values in columns.values())]).tolist()
    said = f"made up: seed {seed}, late {late:g} s, push {push:g}, noise {noise:g}"
    return Recording(
        task=task,
        arm=np.concatenate(list(columns.values()), axis=-1),
        objects=np.concatenate(tracks, axis=-1) if objects else np.zeros((0, len(time), 0)),
        columns={name: slice(a, b) for name, a, b in zip(columns, ends, ends[1:], strict=False)},
        things=tuple(objects),
        hz=hz,
        labels=tuple(f"repeat_{k + 1:02d}" for k in range(repeats)),
        header={"robot": f"made-up arm of {joints} joints", "source": source or said},
        synthetic=True,
        source=said,
        first_line=0,
    )


def _smooth(share: np.ndarray) -> np.ndarray:
    """From 0 to 1 with rest at both ends."""
    x = np.clip(share, 0, 1)
    return np.asarray(x**3 * (10 - 15 * x + 6 * x**2))


def _tool(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Position (..., 3) [m] and rotation matrix (..., 3, 3) of the end of links that turn about z and y in turn."""
    pos, turn = np.zeros((*q.shape[:-1], 3)), np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3))
    for k in range(q.shape[-1]):
        cos, sin, own = np.cos(q[..., k]), np.sin(q[..., k]), np.zeros((*q.shape[:-1], 3, 3))
        a, b, axis = ((0, 1, 2), (2, 0, 1))[k % 2]
        own[..., a, a], own[..., a, b], own[..., b, a], own[..., b, b], own[..., axis, axis] = cos, -sin, sin, cos, 1
        turn = turn @ own
        pos = pos + turn[..., 2] * _LINK
    return pos, turn


def write_made_up(folder: str | Path, *, seed: int = 0) -> Path:
    """Write made-up recordings of a lab and of two simulators, a task with an object and one without: ``real``,
    ``early`` and ``late``, each with ``push`` and ``wave``. Returns the folder.

    Raises:
        ConfigError: they are there already. DataError: they cannot be written.
    """
    folder = Path(folder)
    ways = {"real": (0.1, 1.0), "early": (0.0, 0.9), "late": (0.4, 0.6)}
    for k, (name, (late, push)) in enumerate(ways.items()):
        said = f"made-up {'lab' if name == 'real' else f'engine, {name}'}"
        for task, objects, swing in (("push", ("cube",), 1.0), ("wave", (), 1.5)):
            number = 10 * seed + 2 * k + len(objects)
            one = made_up(task, objects=objects, seed=number, late=late, push=push, swing=swing, source=said)
            write_own(one, folder / name / task)
    return folder
