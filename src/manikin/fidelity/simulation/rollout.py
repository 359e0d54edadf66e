"""Repeats of a task as rows of one batch, for one or more settings at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from manikin.errors import ConfigError, DivergedError
from manikin.fidelity.protocol import GAIN, HZ, REPEATS, BenchmarkTask, benchmark_task
from manikin.fidelity.recordings.recording import ARM, Recording
from manikin.fidelity.simulation.scene import MARKERS, build_scene
from manikin.fidelity.simulation.settings import Settings
from manikin.math import quat_from_euler, quat_from_matrix, quat_from_rotvec, quat_mul
from manikin.sim import make_world

__all__ = ["COUNTS", "TaskSimulation", "simulate"]

COUNTS = 6400 / 1.4
"""Encoder counts of a finger per radian."""
_START, _YAW, _FRICTION, _MASS, _DELAY = 0.0015, np.radians(1.5), 0.08, 0.01, 0.02
# what settings change of the model's joints: setting -> field
_JOINTS = {"damping": "dof_damping", "frictionloss": "dof_frictionloss", "armature": "dof_armature"}


class TaskSimulation:
    """One task, ready to run with settings.

    Args:
        task: 1 to 10.
        repeats: rows per settings.
        candidates: settings at a time.
        physics_hz: physics steps per second.
        hand: ``built_in`` or ``released``.
        device: ``cpu``, ``warp:cpu`` or ``cuda``.
        threads: of the physics, 0 for all cores; changes no result.

    Raises:
        UnknownNameError: no such task or device. AssetError: no released hand in MANIKIN_DATA.
    """

    def __init__(
        self,
        task: int,
        *,
        repeats: int = REPEATS,
        candidates: int = 1,
        physics_hz: float = 200.0,
        hand: str = "built_in",
        device: str = "cpu",
        threads: int = 0,
    ) -> None:
        self.task, self.repeats, self.candidates = benchmark_task(task), repeats, candidates
        self.scene, self.hand = build_scene(self.task, physics_hz, hand), hand
        self.substeps = round(physics_hz / HZ)
        self.world = make_world(self.scene.compiled, repeats * candidates, device=device, threads=threads)
        model, world, scene = self.scene.compiled.model, self.world, self.scene
        self.markers = MARKERS if self.task.thing is not None else MARKERS[:1]
        self._start = [np.array(self.task.thing.start, float)] if self.task.thing is not None else []
        force, moment, torque = scene.sensors
        about_z = [(torque + 3 * k + 2, 1) for k in range(len(scene.dofs))]
        sensed = [("sensordata", at, at + size) for at, size in (*about_z, (force, 3), (moment, 3))]
        fingers = [("qpos", k, k + 1) for k in scene.fingers]
        site = [("site_xpos", 3 * scene.site, 3 * scene.site + 3), ("site_xmat", 9 * scene.site, 9 * scene.site + 9)]
        self._wrist = world.channel(site)
        self._sensed, self._fingers = world.channel(sensed), world.channel(fingers)
        joints = [int(model.jnt_qposadr[model.dof_jntid[d]]) for d in scene.dofs]
        self._q = world.channel([("qpos", k, k + 1) for k in joints])
        self._command = world.channel([("ctrl", k, k + 1) for k in (*scene.servos, *scene.speeds)])
        if scene.object_body >= 0:
            b = scene.object_body
            at = int(model.jnt_qposadr[model.body_jntadr[b]])
            self._object = world.channel([("qpos", at, at + 7)], quat_at=3)

    # ---- settings as parameters of rows ------------------------------------------------------------------------------

    def _fields(self, settings: Sequence[Settings], varied: dict[str, np.ndarray]) -> dict[Any, np.ndarray]:
        """What ``World.set_model`` takes, for rows (candidates x repeats)."""
        scene, model, repeats = self.scene, self.scene.compiled.model, self.repeats

        def each(name: str) -> np.ndarray:
            """(rows, ...) of a setting."""
            return np.repeat(np.array([getattr(one, name) for one in settings], float), repeats, axis=0)

        rows = len(settings) * repeats
        found: dict[Any, np.ndarray] = {(field, scene.dofs): each(name) for name, field in _JOINTS.items()}
        found["dof_frictionloss", scene.dofs] = np.maximum(found["dof_frictionloss", scene.dofs], 1e-6)
        found["dof_damping", scene.dofs] += each("speed_gain")
        for field, column, sign in (("actuator_gainprm", 0, 1.0), ("actuator_biasprm", 1, -1.0)):
            whole = np.repeat(getattr(model, field)[None, list(scene.servos)], rows, axis=0)
            whole[:, :, column] = sign * each("stiffness")
            found[field, scene.servos] = whole
        whole = np.repeat(model.actuator_gainprm[None, list(scene.speeds)], rows, axis=0)
        whole[:, :, 0] = each("speed_gain")
        found["actuator_gainprm", scene.speeds] = whole
        force = each("force")
        found["actuator_forcerange", scene.servos] = np.stack([-force, force], -1)
        soft = np.stack([each("time_constant"), each("damping_ratio")], -1)[:, None]
        geoms = scene.robot_geoms
        torsional, rolling = each("torsional_friction"), each("rolling_friction")
        hand = np.stack([each("hand_friction"), torsional, 0 * rolling + 1e-4], -1)[:, None]
        found["geom_friction", geoms] = np.repeat(hand, len(geoms), axis=1)
        found["geom_solref", geoms] = np.repeat(soft, len(geoms), axis=1)
        masses = [(scene.arm, each("arm_mass")), (scene.hand, each("hand_mass"))]
        if scene.object_geom >= 0:
            sliding = each("table_friction") * varied["friction"]
            found["geom_friction", (scene.object_geom,)] = np.stack([sliding, torsional, rolling], -1)[:, None]
            found["geom_solref", (scene.object_geom,)] = soft
            if self.task.thing is not None and self.task.thing.shape in ("cylinder", "cone"):
                off = np.repeat([one.offset_of(self.task.number) for one in settings], repeats)
                middle = np.tile(model.body_ipos[scene.object_body], (rows, 1, 1))
                if self.task.thing.shape == "cylinder":  # its y points up at the start
                    middle[:, 0] = np.stack([0 * off, -off, 0 * off], 1)
                    found["body_iquat", (scene.object_body,)] = np.tile([1.0, 0, 0, 0], (rows, 1, 1))
                else:  # its x points down
                    middle[:, 0, 0] += off
                found["body_ipos", (scene.object_body,)] = middle
            masses.append(((scene.object_body,), each("object_mass") * varied["mass"]))
        for bodies, factor in masses:
            found["body_mass", bodies] = factor[:, None] * model.body_mass[list(bodies)]
        place = np.stack([each("base_x"), each("base_y"), each("base_z")], -1)
        if place.any() or each("base_yaw").any():
            half = np.radians(each("base_yaw")) / 2
            turn = torch.from_numpy(np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], -1))
            quat = quat_mul(turn, torch.from_numpy(model.body_quat[scene.base]).expand(rows, 4)).numpy()
            found["body_pos", (scene.base,)] = (model.body_pos[scene.base] + place)[:, None]
            found["body_quat", (scene.base,)] = quat[:, None]
        return found

    def _varied(self, settings: Sequence[Settings], seed: int) -> dict[str, np.ndarray]:
        """How repeats differ: (rows, ...) by what. The same for all settings, but for ``spread``."""
        rng = np.random.default_rng([self.task.number, seed])  # house: random, a stream of its own
        n = self.repeats
        drawn = {
            "pos": rng.normal(0, _START, (n, 2)),
            "yaw": rng.normal(0, _YAW, n),
            "friction": rng.normal(0, _FRICTION, n),
            "mass": rng.normal(0, _MASS, n),
            "delay": rng.uniform(-_DELAY, _DELAY, n),
        }
        spread = np.repeat([one.spread for one in settings], n)
        found = {name: np.concatenate([value] * len(settings)) for name, value in drawn.items()}
        found = {name: (value.T * spread).T for name, value in found.items()}
        for name in ("friction", "mass"):
            found[name] = np.maximum(1 + found[name], 0.05)
        return found

    # ---- running -----------------------------------------------------------------------------------------------------

    def run(
        self,
        settings: Sequence[Settings],
        *,
        seed: int = 0,
        on_row: Callable[[int], None] | None = None,
        strict: bool = True,
    ) -> tuple[Recording, ...]:
        """A recording of all repeats for each of the settings.

        Args:
            settings: as many as ``candidates``.
            seed: of the differences between repeats.
            on_row: told each row of the recording while the world is as it says, for pictures.
            strict: whether settings with which a repeat breaks down are an error; otherwise their recording is NaN.

        Raises:
            ConfigError: another number of settings, another ``physics_hz`` or another ``hand``.
            DivergedError: a simulation breaks down; says with which settings.
        """
        if len(settings) != self.candidates:
            raise ConfigError(f"this simulation takes {self.candidates} settings at a time, not {len(settings)}")
        for one in settings:
            if round(one.physics_hz / HZ) != self.substeps:
                raise ConfigError(f"this simulation has {self.substeps * HZ:g} physics steps per second, not others")
            if one.hand != self.hand:
                raise ConfigError(f"this simulation has the hand {self.hand!r}, not {one.hand!r}")
        world, task, n = self.world, self.task, self.repeats
        varied = self.start(settings, seed=seed)
        cap = np.repeat([one.cap_of(task.number) for one in settings], n, axis=0)
        delay = np.maximum(np.repeat([one.delay_of(task.number) for one in settings], n) + varied["delay"], 0)
        targets = [one.segments_of(task.number) for one in settings for _ in range(n)]
        seen = []
        with torch.no_grad():
            for k in range(task.rows):
                seen.append(self.read())
                if on_row is not None:
                    on_row(k)
                if k + 1 == task.rows:
                    break
                late = np.clip((k + 1) / HZ - delay, 0, 1 / HZ) * HZ  # share of this step in which the arm is driven
                asked = _targets(targets, k / HZ - delay)
                command = np.radians(np.clip(GAIN * (asked - np.degrees(self._angles())), -cap, cap)) * late[:, None]
                self._command.write(torch.from_numpy(np.tile(command, 2)).float().to(world.device))
                world.step(self.substeps)
        bad = (np.asarray(world.health()) != 0).reshape(-1, n).any(1)
        if strict and bad.any():
            which = settings[int(np.flatnonzero(bad)[0])]
            raise DivergedError(f"task {task.number} breaks down with {which.changed or 'the default settings'}")
        arm, objects = (np.stack([one[i] for one in seen], 1) for i in (0, 1))
        arm[np.repeat(bad, n)], objects[np.repeat(bad, n)] = np.nan, np.nan
        return tuple(
            _recording(task, one, arm[c * n : (c + 1) * n], objects[c * n : (c + 1) * n], seed)
            for c, one in enumerate(settings)
        )

    def start(self, settings: Sequence[Settings], *, seed: int = 0) -> dict[str, np.ndarray]:
        """Put every row at the start of the task, with its own parameters; returns how rows differ, by what."""
        varied = self._varied(settings, seed)
        with torch.no_grad():
            self.world.reset()
            self.world.set_model(self._fields(settings, varied))
            if self._start:
                self._place(varied)
            self.world.forward()
        return varied

    def _place(self, varied: dict[str, np.ndarray]) -> None:
        """The object at its start, a little elsewhere in each row."""
        start = self._start[0]
        rows = len(varied["yaw"])
        pos = np.repeat(start[None, :3], rows, axis=0)
        pos[:, :2] += varied["pos"]
        turns = torch.from_numpy(np.stack([0 * varied["yaw"], 0 * varied["yaw"], varied["yaw"]], -1))
        quat = quat_mul(quat_from_rotvec(turns), quat_from_euler(torch.from_numpy(start[3:])).expand(rows, 4))
        pose = torch.cat([torch.from_numpy(pos), quat], 1).float()
        self._object.write(pose.to(self.world.device))

    def _angles(self) -> np.ndarray:
        return np.asarray(self._q.all().double().cpu().numpy())

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, 22) of the arm and (rows, 7) of the object, now."""
        wrist, sensed, fingers = (c.all().double().cpu().numpy() for c in (self._wrist, self._sensed, self._fingers))
        quat = _quaternions(wrist[:, 3:].reshape(-1, 3, 3))
        arm = np.concatenate([wrist[:, :3], quat, sensed[:, :6], fingers * COUNTS, sensed[:, 6:]], 1)
        thing = self._object.all().double().cpu().numpy().copy() if self._start else np.zeros((len(arm), 0))
        return arm, thing

    def close(self) -> None:
        """Free the simulation."""
        self.world.close()


def _quaternions(matrices: np.ndarray) -> np.ndarray:
    return np.asarray(quat_from_matrix(torch.from_numpy(matrices)).numpy())


def _targets(segments: Sequence[Sequence[tuple[float, tuple[float, ...]]]], time: np.ndarray) -> np.ndarray:
    """(rows, 6) [degrees] of each row's segments at its time [s]."""
    return np.array(
        [next((t for end, t in one if at < end - 1e-9), one[-1][1]) for one, at in zip(segments, time, strict=True)],
        float,
    )


def _recording(task: BenchmarkTask, settings: Settings, arm: np.ndarray, objects: np.ndarray, seed: int) -> Recording:
    arm = arm.copy()
    arm[:, :, ARM["torque"]] *= settings.torque_scale_of(task.number)
    if settings.tare:
        arm[:, :, 16:22] -= arm[:, :1, 16:22]
    return Recording(
        task=task.number,
        arm=arm,
        objects=objects if task.thing is not None else np.zeros((0, task.rows, 7)),
        labels=tuple(f"repeat_{k + 1:02d}" for k in range(len(arm))) if task.thing is not None else (),
        header={"Generator": f"manikin, seed {seed}, settings {settings.digest[:12]}"},
        source=f"simulated task {task.number}",
    )


def simulate(task: int, settings: Settings | None = None, *, seed: int = 0, **options: Any) -> Recording:
    """Twenty repeats of one task.

    Args:
        task: 1 to 10.
        settings: default :class:`Settings` ``()``.
        seed: of the differences between repeats.
        options: ``repeats``, ``device`` and ``threads`` of :class:`TaskSimulation`.

    Raises:
        UnknownNameError: no such task or device. DivergedError: the simulation breaks down.
    """
    settings = settings or Settings()
    simulation = TaskSimulation(task, physics_hz=settings.physics_hz, hand=settings.hand, **options)
    try:
        return simulation.run([settings], seed=seed)[0]
    finally:
        simulation.close()
