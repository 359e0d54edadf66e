"""The scene of a task: the Mico on its foot, the table, and what it pushes.

A joint's servo is told velocities: torque = stiffness (integral of the commands - angle), at most ``force``, and
speed_gain (command - velocity). Contact parameters of table and object are the object's, those of hand and object the
hand's. The arm carries its own weight: nothing
compensates it, as the recorded torques say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch

from manikin.fidelity.protocol import BASE_HEIGHT, BenchmarkTask, TrackedObject
from manikin.math import quat_from_euler
from manikin.robots import robot as chosen_robot
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics
from manikin.spec.prop import Mesh, Shape
from manikin.spec.scene import CompiledScene
from manikin.sysid.importers import data_file

__all__ = ["MARKERS", "OBJECT", "FidelityScene", "build_scene"]

ROBOT, OBJECT, TABLE, SPEED = "kinova_mico", "object", "table", "speed/"
MARKERS = ("recorded_wrist", "recorded_object")
"""Spheres for films: nothing feels them."""
_SENSOR, _MOUNT = "ft_sensor", "gripper_mount"
_EDGES = 1440  # of the polygon that stands for a cone's round base: of 120, each flat stops a cone that rolls slowly
_TABLE = ((0.75, -0.02), (0.9, 0.375))  # [m] middle and half lengths of the table top
_COLOURS = {"plastic": (0.92, 0.9, 0.82, 1), "wood": (0.72, 0.5, 0.28, 1)}
_HAND = {"hand": "hand_3finger"} | {
    f"b_finger_{part}{k}": f"finger_{name}" for k in (1, 2, 3) for part, name in (("", "proximal"), ("tip_", "distal"))
}
"""Body of the hand -> mesh of the released description, in the same frame."""
_BITS = {"robot": (1, 0), "object": (2, 5), "table": (4, 1)}  # the robot does not collide with itself


@dataclass(frozen=True, kw_only=True)
class FidelityScene:
    """A compiled scene and where its parts are.

    Attributes:
        compiled: the scene.
        dofs: (6,) of the arm's joints. servos, speeds: (6,) actuators of their stiffness and of their speed gain.
        fingers: (3,) places of the fingers in qpos.
        base: body. arm, hand: bodies before the force sensor's far side, and beyond it.
        robot_geoms: that collide. object_geom, object_body: -1 without an object.
        site: number of the tracked frame.
        sensors: where force, moment and the joints' torques (6 x 3, about z) begin in sensordata.
    """

    compiled: CompiledScene
    dofs: tuple[int, ...]
    servos: tuple[int, ...]
    speeds: tuple[int, ...]
    fingers: tuple[int, ...]
    base: int
    arm: tuple[int, ...]
    hand: tuple[int, ...]
    robot_geoms: tuple[int, ...]
    object_geom: int
    object_body: int
    site: int
    sensors: tuple[int, int, int]


def build_scene(task: BenchmarkTask, physics_hz: float, hand: str = "built_in") -> FidelityScene:
    """The scene of a task, without settings: those are given to rows.

    Args:
        task: which.
        physics_hz: physics steps per second.
        hand: ``built_in``, simple shapes, or ``released``: the hulls of the released description's meshes.

    Raises:
        AssetError: MANIKIN_DATA has no released description.
    """
    chosen = chosen_robot(ROBOT)
    spec = replace(chosen.arm, gravcomp=False)
    builder = SceneBuilder([chosen._replace(arm=spec)], Physics(hz=physics_hz), [spec.joints])
    handle = builder.robot(pos=(0, 0, BASE_HEIGHT))
    prefix = handle.prefix
    if hand == "released":
        _use_released_hand(builder, prefix)
    world = builder.spec.worldbody
    (x, y), (half_x, half_y) = _TABLE
    contype, conaffinity = _BITS["table"]
    world.add_geom(
        name=TABLE,
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=(half_x, half_y, 0.1),
        pos=(x, y, 0),
        rgba=(0.82, 0.84, 0.86, 1),
        priority=-1,
        contype=contype,
        conaffinity=conaffinity,
    )
    world.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(0.06, 0.06, BASE_HEIGHT / 2),
        pos=(0, 0, BASE_HEIGHT / 2),
        rgba=(0.3, 0.3, 0.33, 1),
        contype=0,
        conaffinity=0,
    )
    world.add_light(pos=(0.5, -1.0, 2.5), dir=(0.0, 0.4, -1.0), diffuse=(0.6, 0.6, 0.6), castshadow=False)
    builder.marker(MARKERS[0], size=(0.05,), rgba=(0.85, 0.15, 0.1, 0.45))
    if task.thing is not None:
        _add_object(builder, task.thing)
        builder.marker(MARKERS[1], size=(0.05,), rgba=(0.85, 0.15, 0.1, 0.45))
    for name in spec.joints:  # a world on a device makes room only for joints that rub when compiled
        builder.spec.joint(prefix + name).frictionloss = 1e-6
        servo = builder.spec.actuator(prefix + name)
        servo.dyntype, servo.gainprm[0] = mujoco.mjtDyn.mjDYN_INTEGRATOR, 1.0
        servo.biastype, servo.biasprm[:3] = mujoco.mjtBias.mjBIAS_AFFINE, (0, -1.0, 0)
        servo.ctrlrange = (-10.0, 10.0)
        builder.spec.add_actuator(
            name=SPEED + name,
            target=prefix + name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED,
            biastype=mujoco.mjtBias.mjBIAS_NONE,
        )
    for name in spec.joints:  # what the links feel, as the real arm's sensors do: without rotor and gears
        builder.spec.joint(prefix + name).parent.add_site(name=f"torque/{name}", group=4)
        builder.spec.add_sensor(
            name=f"torque/{name}",
            type=mujoco.mjtSensor.mjSENS_TORQUE,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname=f"torque/{name}",
        )
    builder.spec.body(prefix + _MOUNT).add_site(name="wrist", quat=(math.sqrt(0.5), 0, -math.sqrt(0.5), 0), group=4)
    builder.spec.body(prefix + _MOUNT).add_site(name=_SENSOR, group=4)
    for what, kind in (("force", mujoco.mjtSensor.mjSENS_FORCE), ("moment", mujoco.mjtSensor.mjSENS_TORQUE)):
        builder.spec.add_sensor(name=what, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=_SENSOR)
    for geom in builder.spec.geoms:
        if geom.parent.name.startswith(prefix) and geom.contype | geom.conaffinity:
            geom.contype, geom.conaffinity = _BITS["robot"]
            geom.priority, geom.condim = 2, 4
    return _found(builder.compile(), prefix, spec.joints)


def _use_released_hand(builder: SceneBuilder, prefix: str) -> None:
    """Meshes of the released description collide in place of the hand's simple shapes. Its bodies are the
    description's, so that masses and frames stay."""
    for body, name in _HAND.items():
        file = data_file(f"collins2020/meshes/{name}.STL")
        owner = builder.spec.body(prefix + body)
        for geom in owner.geoms:
            geom.contype = geom.conaffinity = 0
            geom.rgba = (0, 0, 0, 0)
        if f"released/{name}" not in {mesh.name for mesh in builder.spec.meshes}:
            builder.spec.add_mesh(name=f"released/{name}", file=str(file))
        owner.add_geom(
            type=mujoco.mjtGeom.mjGEOM_MESH,
            meshname=f"released/{name}",
            mass=0.0,
            rgba=(0.3, 0.3, 0.33, 1),
            contype=1,
            conaffinity=1,
        )


def _add_object(builder: SceneBuilder, thing: TrackedObject) -> None:
    shape = _shape(thing)
    quat = quat_from_euler(torch.tensor(thing.start[3:], dtype=torch.float64)).tolist()
    builder.part(OBJECT, [shape], pos=thing.start[:3], quat=quat, mass=thing.mass, rgba=_COLOURS[thing.material])
    if thing.shape == "cylinder":  # rows move its centre of mass, which a body with a simple mass matrix does not allow
        body, (diameter, length) = builder.spec.body(OBJECT), thing.size
        across = thing.mass * (0.75 * diameter**2 + length**2) / 12
        body.explicitinertial, body.mass = True, thing.mass
        body.inertia = (across, across, thing.mass * diameter**2 / 8)
        body.ipos, body.iquat = (0, -0.001, 0.001), (0.8, 0.6, 0, 0)
    geom = builder.spec.geom(f"{OBJECT}/0")
    geom.contype, geom.conaffinity = _BITS["object"]
    geom.priority, geom.condim = 1, 6


def _shape(thing: TrackedObject) -> Shape:
    """What collides and is seen, in the frame that is tracked."""
    if thing.shape in ("cube", "cuboid"):
        return Shape(type="box", size=tuple(edge / 2 for edge in thing.size))
    diameter, length = thing.size
    if thing.shape == "cylinder":
        return Shape(type="cylinder", size=(diameter / 2, length / 2))
    turn = 2 * np.pi * np.arange(_EDGES) / _EDGES
    base = np.stack([diameter / 2 * np.cos(turn), diameter / 2 * np.sin(turn), 0 * turn], 1)
    points = np.concatenate([base, [[0, 0, length]]])
    return Shape(type="mesh", mesh=Mesh(name="cone", points=tuple(points.ravel().tolist())))


def _found(compiled: CompiledScene, prefix: str, joints: tuple[str, ...]) -> FidelityScene:
    model = compiled.model
    mount = int(model.body(prefix + _MOUNT).id)
    bodies = [b for b in range(model.nbody) if model.body(b).name.startswith(prefix)]
    hand = [b for b in bodies if mount in _line(model, b)]
    base = int(model.body(prefix + "link_base").id)
    has_object = any(model.body(b).name == OBJECT for b in range(model.nbody))
    fingers = [j for j in range(model.njnt) if int(model.jnt_bodyid[j]) in hand]
    return FidelityScene(
        compiled=compiled,
        dofs=tuple(int(model.joint(prefix + name).dofadr[0]) for name in joints),
        servos=tuple(int(model.actuator(prefix + name).id) for name in joints),
        speeds=tuple(int(model.actuator(SPEED + name).id) for name in joints),
        fingers=tuple(int(model.jnt_qposadr[j]) for j in fingers),
        base=base,
        arm=tuple(b for b in bodies if b not in hand and b != base and model.body_mass[b] > 0),
        hand=tuple(b for b in hand if model.body_mass[b] > 0),
        robot_geoms=tuple(
            g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in bodies and model.geom_contype[g]
        ),
        object_geom=int(model.geom(f"{OBJECT}/0").id) if has_object else -1,
        object_body=int(model.body(OBJECT).id) if has_object else -1,
        site=int(model.site("wrist").id),
        sensors=tuple(int(model.sensor(n).adr[0]) for n in ("force", "moment", f"torque/{joints[0]}")),  # type: ignore[arg-type]
    )


def _line(model: mujoco.MjModel, body: int) -> list[int]:
    """A body and those it hangs on."""
    found = [body]
    while found[-1]:
        found.append(int(model.body_parentid[found[-1]]))
    return found
