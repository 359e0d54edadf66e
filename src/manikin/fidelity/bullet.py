"""The ten tasks in PyBullet, with the settings of the authors' exemplar: another engine by the same metrics.

    python -m manikin.fidelity.bullet FOLDER --tasks 3 9

It needs ``pip install 'manikin[pybullet]'`` and MANIKIN_DATA with collins2020. It runs in a process of its own. The
arm is the released URDF. PyBullet gives each of its five links without mass 1 kg. So the published torque error is
so large. Steps last 1/240 s. Every 24 steps the controller commands joint velocities, which motors of PyBullet follow
with up to 2000 N m. Lateral friction is 0.5, rolling and spinning friction 0.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manikin.errors import ConfigError, ManikinError
from manikin.fidelity.protocol import (
    BASE_HEIGHT,
    GAIN,
    HZ,
    REPEATS,
    TASKS,
    BenchmarkTask,
    TrackedObject,
    benchmark_task,
)
from manikin.fidelity.recordings.recording import Recording, write_repeats
from manikin.fidelity.submission import ABOUT, write_about
from manikin.sysid.importers import data_file

__all__ = ["simulated"]

STEPS = 24
"""Of physics in a control step: 1/240 s each."""
FORCE = 2000.0
"""Most that a motor exerts [N m]."""
FRICTION = 0.5
"""Lateral friction of everything."""
CAP = 30.0
"""Most that a joint is asked to turn in the released script [degrees/s]."""
_TRACKED = "ft_mount_toolside_joint"
_SENSOR = "ft_mount_measurment_joint"  # carries an empty link alone: with it, force and moment are as published
_COUNTS = 6400 / 1.4  # of a finger's encoder per rad


def simulated(
    number: int, *, repeats: int = REPEATS, seed: int = 0, cap: float = CAP, spread: float = 0.0015
) -> Recording:
    """One task, as the recordings have it.

    Args:
        number: 1 to 10.
        repeats: how many.
        seed: of where the object begins.
        cap: most that a joint is asked to turn [degrees/s].
        spread: standard deviation of the object's start in x and y [m]; PyBullet itself repeats to the bit.

    Raises:
        UnknownNameError: another task. ConfigError: PyBullet is not installed. AssetError: no data.
    """
    try:
        engine = importlib.import_module("pybullet")
    except ImportError:
        raise ConfigError("PyBullet is not installed: pip install 'manikin[pybullet]'") from None
    task = benchmark_task(number)
    off = np.random.default_rng([number, seed]).normal(0, spread, (repeats, 2))  # house: random, a stream of its own
    arms, things = [], []
    with tempfile.TemporaryDirectory(prefix="mico-") as folder:
        urdf = _description(Path(folder))
        for shift in off:
            client = engine.connect(engine.DIRECT)
            try:
                arm, thing = _played(engine, client, task, urdf, shift, cap)
            finally:
                engine.disconnect(client)
            arms.append(arm)
            things.append(thing)
    objects = np.stack(things) if task.thing is not None else np.zeros((0, task.rows, 7))
    return Recording(
        task=number,
        arm=np.stack(arms),
        objects=objects,
        labels=tuple(f"pybullet_{k + 1:02d}" for k in range(len(objects))),
        header={"Generator": f"PyBullet {engine.getAPIVersion()}: seed {seed}, cap {cap:g} deg/s, spread {spread:g} m"},
        source=f"PyBullet, task {number}",
    )


def _description(folder: Path) -> Path:
    """The released URDF in a folder with its meshes beside it, where PyBullet looks for them."""
    urdf = data_file("collins2020/urdf/m1n6s300_mujoco.urdf")
    for mesh in sorted((urdf.parents[1] / "meshes").iterdir()):
        (folder / mesh.name).symlink_to(mesh)
    path = folder / urdf.name
    path.write_text(urdf.read_text(encoding="utf-8"), encoding="utf-8")
    return path


def _played(
    engine: Any, client: int, task: BenchmarkTask, urdf: Path, shift: np.ndarray, cap: float
) -> tuple[np.ndarray, np.ndarray]:
    engine.setGravity(0, 0, -9.81)
    engine.setTimeStep(1 / (STEPS * HZ))
    table = engine.createMultiBody(0, engine.createCollisionShape(engine.GEOM_PLANE))
    robot = engine.loadURDF(str(urdf), [0, 0, BASE_HEIGHT], useFixedBase=True)
    links = range(engine.getNumJoints(robot))
    info = [engine.getJointInfo(robot, k) for k in links]
    names = [one[1].decode() for one in info]
    joints = [names.index(f"m1n6s300_joint_{k}") for k in range(1, 7)]
    fingers = [names.index(f"m1n6s300_joint_finger_{k}") for k in range(1, 4)]
    tips = [names.index(f"m1n6s300_joint_finger_tip_{k}") for k in range(1, 4)]
    engine.enableJointForceTorqueSensor(robot, names.index(_SENSOR), True)
    thing = None if task.thing is None else _thing(engine, task.thing, shift)
    for body, part in [(table, -1), *((robot, k) for k in links), *([] if thing is None else [(thing, -1)])]:
        engine.changeDynamics(body, part, lateralFriction=FRICTION)
    for k in (*fingers, *tips):
        engine.setJointMotorControl2(robot, k, engine.VELOCITY_CONTROL, targetVelocity=0, force=FORCE)
    rows, objects = [], []
    for row in range(task.rows):
        rows.append(_row(engine, robot, joints, fingers, names))
        if thing is not None:
            pos, (x, y, z, w) = engine.getBasePositionAndOrientation(thing)
            objects.append((*pos, w, x, y, z))
        target = next((t for end, t in task.segments if row / HZ < end), task.segments[-1][1])
        now = np.degrees([engine.getJointState(robot, k)[0] for k in joints])
        asked = np.radians(np.clip(GAIN * (np.array(target) - now), -cap, cap))
        for k, speed in zip(joints, asked, strict=True):
            engine.setJointMotorControl2(robot, k, engine.VELOCITY_CONTROL, targetVelocity=float(speed), force=FORCE)
        for _ in range(STEPS):
            engine.stepSimulation()
    return np.array(rows), np.array(objects)


def _row(engine: Any, robot: int, joints: Sequence[int], fingers: Sequence[int], names: Sequence[str]) -> list[float]:
    """The arm's 22 columns."""
    state = engine.getLinkState(robot, names.index(_TRACKED), computeForwardKinematics=True)
    x, y, z, w = state[5]
    torques = [engine.getJointState(robot, k)[3] for k in joints]
    counts = [engine.getJointState(robot, k)[0] * _COUNTS for k in fingers]
    return [*state[4], w, x, y, z, *torques, *counts, *engine.getJointState(robot, names.index(_SENSOR))[2]]


def _thing(engine: Any, thing: TrackedObject, shift: np.ndarray) -> int:
    size = thing.size
    if thing.shape in ("cube", "cuboid"):
        shape = engine.createCollisionShape(engine.GEOM_BOX, halfExtents=[one / 2 for one in size])
    elif thing.shape == "cylinder":
        shape = engine.createCollisionShape(engine.GEOM_CYLINDER, radius=size[0] / 2, height=size[1])
    else:
        angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
        ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1) * size[0] / 2
        shape = engine.createCollisionShape(engine.GEOM_MESH, vertices=[*ring.tolist(), [0.0, 0.0, size[1]]])
    x, y, z = thing.start[:3]
    place = [x + shift[0], y + shift[1], z]
    turn = engine.getQuaternionFromEuler(thing.start[3:])
    return int(engine.createMultiBody(thing.mass, shape, basePosition=place, baseOrientation=turn))


def main(words: Sequence[str] | None = None) -> None:
    """Write the files of tasks; ends with a sentence and status 1 where it cannot."""
    parser = argparse.ArgumentParser(description="The ten tasks in PyBullet, as files of the benchmark.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", type=int, nargs="+", default=list(TASKS))
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cap", type=float, default=CAP, help="most that a joint is asked to turn [degrees/s]")
    args = parser.parse_args(words)
    began = time.perf_counter()
    for number in args.tasks:
        try:
            found = simulated(number, repeats=args.repeats, seed=args.seed, cap=args.cap)
        except ManikinError as error:
            raise SystemExit(str(error)) from None
        write_repeats(found, args.folder, args.repeats)
    seconds, tuned = time.perf_counter() - began, {"cap_deg_s": args.cap, "lateral_friction": FRICTION}
    write_about(args.folder / ABOUT, simulator="PyBullet", run_time_s=seconds, tuned=tuned)


if __name__ == "__main__":
    main()
