"""Lints that simulate a robot: in the air at a step of 5 ms, and on a floor where it has feet."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
import torch

from manikin.author.robot.finding import Finding, place
from manikin.control.ik import Chain, IkSolver
from manikin.robots import RobotSelection
from manikin.scene.robot import RobotModel, ToolModel, assemble
from manikin.spec.physics import Physics
from manikin.spec.robot import FULL_POSE

__all__ = ["Standing", "moving_lints", "standing", "stands"]

_STEP = 0.005  # [s]
_TURN, _SLIDE = 0.1, 0.01  # [rad], [m] a step response's step
_PROBE, _DEPTH = 0.004, 5e-4  # [m] radius of a ball that touches, and how deep it is pressed in
_CORNERS = [np.array(d) - 1.0 for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)]
_DIRECTIONS = [d / np.linalg.norm(d) for d in _CORNERS]  # faces, edges and corners of a cube, seen from its middle
_STANDS = 0.05  # [m] a robot on its feet may sag and settle so far
_AWAY = 1.0  # [m] ahead and to the left, where base and arm are to bring the tool


def moving_lints(built: RobotModel) -> Iterator[Finding]:
    """What collides, points the wrong way, does not hold or does not settle, in the air."""
    air = _Air(built)
    yield from _collision(built, air)
    for tool in built.tools if built.arm.tools else ():  # without any a stand-in frame is there, of no meaning
        yield from _tcp(built, tool, air)
    yield from _hold(built, air)
    yield from _steps(built, air)
    yield from _drives(built)
    yield from _touch(built)


class _Air:
    """The robot alone, nothing around it."""

    def __init__(self, built: RobotModel) -> None:
        spec, self.built = built.spec, built
        spec.option.timestep, spec.option.integrator = _STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone, spec.option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)

    def start(self, key: str = "rest", gripper: float = 1.0) -> mujoco.MjData:
        """At a keyframe, the servos holding there."""
        built, data = self.built, self.data
        mujoco.mj_resetData(self.model, data)
        data.qpos[[self.model.joint(n).qposadr[0] for n in built.joints]] = built.qpos(key, gripper=gripper)
        opened = [tool.gripper.open_q for tool in built.tools if tool.gripper is not None]
        data.ctrl[:] = np.concatenate([built.arm_qpos(key), *opened])
        mujoco.mj_forward(self.model, data)
        return data

    def run(self, seconds: float, adr: int = 0) -> np.ndarray:
        """Step; the positions (steps,) of one joint."""
        passed = np.zeros(round(seconds / _STEP))
        for k in range(len(passed)):
            mujoco.mj_step(self.model, self.data)
            passed[k] = self.data.qpos[adr]
        return passed


def _collision(built: RobotModel, air: _Air) -> Iterator[Finding]:
    for key in built.arm.keyframes:
        data = air.start(key)
        pairs = {
            tuple(sorted(air.model.body(int(air.model.geom_bodyid[g])).name for g in contact.geom)): contact.dist
            for contact in data.contact
        }
        for (one, other), depth in sorted(pairs.items()):
            yield Finding(
                "collision",
                key == "rest",
                f"at {key!r} {one!r} and {other!r} overlap by {max(-depth, 0) * 1e3:.1f} mm",
                f"excludes=(..., ({one!r}, {other!r})) when they are neighbours, else another pose or smaller shapes",
                place(built.arm, one),
            )


def _tcp(built: RobotModel, tool: ToolModel, air: _Air) -> Iterator[Finding]:
    model, data = air.model, air.start(gripper=0.4)  # half closed: fingers on hinges do not close along y all the way
    tcp = data.body(tool.tcp_body)
    frame = tcp.xmat.reshape(3, 3)
    hand = tool.gripper
    spec = hand if hand is not None else built.arm
    if hand is not None and hand.fingers:
        pads = np.array([data.geom(name).xpos for name in tool.pad_geoms])
        sides = [data.body(name).id for name in tool.finger_bodies]
        of = [np.mean(pads[[model.geom(n).bodyid[0] == s for n in tool.pad_geoms]], 0) for s in sides]
        middle = frame.T @ (np.mean([of[i[0]] for i in (hand.sides or [(k,) for k in range(len(of))])], 0) - tcp.xpos)
        for axis, far in (("x", 0.03), ("y", 0.03), ("z", 0.06)):
            away = float(middle["xyz".index(axis)])
            if abs(away) > far:
                yield Finding(
                    "tcp",
                    True,
                    f"the pads' middle is {away * 1e3:.0f} mm along {axis} of the TCP",
                    "tcp_pos lies between the pads, tcp_quat has z out of the gripper and y along its opening",
                    place(spec, "tcp_pos"),
                )
        first = frame.T @ data.site(tool.finger_sites[0]).xmat.reshape(3, 3)[:, 2]
        if abs(first[1]) < 0.7:
            yield Finding(
                "tcp", True, "the fingers do not close along y of the TCP", "turn tcp_quat", place(spec, "tcp_quat")
            )
    out = tcp.xpos - _carrier(built, tool, air)
    if np.linalg.norm(out) > 0.02 and frame[:, 2] @ out < -0.5 * np.linalg.norm(out):
        yield Finding(
            "tcp",
            True,
            "z of the TCP points back into the arm",
            "turn flange_quat so that z points out of the flange",
            place(built.arm, "flange_quat"),
        )


def _carrier(built: RobotModel, tool: ToolModel, air: _Air) -> np.ndarray:
    """(3,) [m] where the last joint is that carries a tool; the first body where none does."""
    model, data = air.model, air.data
    body = int(model.body(tool.tcp_body).id)
    while body:
        first = int(model.body_jntadr[body])
        names = [model.joint(j).name for j in range(first, first + int(model.body_jntnum[body]))]
        if own := [name for name in names if name in built.arm_joints]:
            anchor: np.ndarray = data.joint(own[-1]).xanchor
            return anchor
        body = int(model.body_parentid[body])
    return np.array(data.xpos[1])


def _hold(built: RobotModel, air: _Air) -> Iterator[Finding]:
    """Does each keyframe stay where it is?"""
    chain = Chain(built.arm, built.gripper)
    for key in built.arm.keyframes:
        pos, quat = chain.fk(torch.from_numpy(built.arm_qpos(key))[None])
        full = len(built.arm.ik_joints) >= FULL_POSE
        found = IkSolver(chain, rotation_weight=0.2 if full else 0.0).solve(pos, quat, chain.rest[None], restarts=8)
        if built.arm.tools and not bool(found.reached[0]):
            yield Finding(
                "keyframe",
                False,
                f"inverse kinematics does not find {key!r}: {float(found.pos_error[0]) * 1e3:.1f} mm off",
                "a pose away from joint limits and stretched arms",
                place(built.arm, key),
            )
        data = air.start(key)
        air.run(1.0)
        now = data.qpos[[air.model.joint(n).qposadr[0] for n in built.arm_joints]]
        off = np.abs(now - built.arm_qpos(key))
        worst = int(off.argmax()) if len(off) else 0
        if not np.isfinite(now).all() or np.any(data.warning.number):
            yield Finding("gains", True, f"holding {key!r} diverges", "lower kp, raise kd", place(built.arm, "gains="))
        elif len(off) and off[worst] > 0.15:
            name = built.arm_joints[worst]
            yield Finding(
                "keyframe",
                key == "rest",
                f"{key!r} is not held: {name!r} is {off[worst]:.2f} off after 1 s",
                "raise kp or the force, set gravcomp where the maker compensates, or take another pose",
                place(built.arm, key),
            )


def _steps(built: RobotModel, air: _Air) -> Iterator[Finding]:
    """A small step of each arm joint from rest: does it settle?"""
    for i, name in enumerate(built.arm_joints):
        model, data = air.model, air.start()
        joint = model.joint(name)
        adr, dof = int(joint.qposadr[0]), int(joint.dofadr[0])
        step = _SLIDE if int(joint.type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE) else _TURN
        if model.jnt_limited[joint.id] and data.qpos[adr] + step > joint.range[1]:
            step = -step
        air.run(0.5)
        before = float(data.qpos[adr])
        data.ctrl[i] += step
        moved = (air.run(2.0, adr) - before) / step
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        kp = built.arm.gains.kp[i]
        kd = 2 * math.sqrt(kp * float(inertia[dof, dof]))
        fix = f"kd = {kd:.3g} is critical damping for kp = {kp:g} and the inertia of {inertia[dof, dof]:.3g} here"
        where = place(built.arm, "gains=")
        late = moved[-len(moved) // 4 :]
        creeps = np.isfinite(moved).all() and np.diff(late).min() > -1e-6  # still under way, but not to and fro
        if not np.isfinite(moved).all() or np.any(data.warning.number) or (np.ptp(late) > 0.1 and not creeps):
            text = f"a step of {name!r} does not settle"
            soft = not built.arm.stands  # meant for a controller that moves them all the time
            yield Finding("gains", not soft, f"{text}: it still swings by {np.ptp(late):.0%}", fix, where)
        elif moved.max() > 1.4:
            text = f"a step of {name!r} overshoots by {moved.max() - 1:.0%}"
            yield Finding("gains", False, text, fix, where)
        elif abs(late.mean() - 1) > 0.25 or np.ptp(late) > 0.1:
            fastest = built.arm.gains.force[i] / built.arm.gains.kd[i]
            unit = "m/s" if abs(step) == _SLIDE else "rad/s"
            yield Finding(
                "gains",
                False,
                f"2 s after a step, {name!r} has gone {late.mean():.0%} of it",
                f"raise kp, or lower kd: force / kd = {fastest:.2g} {unit} is the fastest it moves",
                where,
            )


def _drives(built: RobotModel) -> Iterator[Finding]:
    """Can a base that drives go as fast as its actions say, and does it bring the tool where the arm does not reach?"""
    arm = built.arm
    if not arm.base.drives:
        return
    for joint in arm.base.joints:
        k = arm.joints.index(joint)
        asked, fastest = arm.joint_speed[k], arm.gains.force[k] / arm.gains.kd[k]
        if fastest < asked - 1e-9:
            yield Finding(
                "base",
                False,
                f"{joint!r} is to move at {asked:.3g} and its servo reaches force / kd = {fastest:.3g}",
                f"force = {asked * arm.gains.kd[k]:.4g}, a smaller kd, or speed={fastest:.3g} in its JointGroup",
                place(arm, joint),
            )
    if not arm.tools:
        return
    groups = tuple(name for name, group in arm.groups.items() if set(group.joints) & {*arm.base.joints, *arm.ik_joints})
    chain = Chain(arm, built.gripper).of_groups(groups, next(iter(arm.tools)))
    pos, quat = chain.fk(chain.rest[None])
    full = len(chain.rest[chain.moved]) >= FULL_POSE
    away = pos + torch.tensor([[_AWAY, _AWAY, 0.0]], dtype=pos.dtype)
    found = IkSolver(chain, rotation_weight=0.2 if full else 0.0).solve(away, quat, chain.rest[None], restarts=4)
    if not bool(found.reached[0]):
        yield Finding(
            "base",
            False,
            f"base and arm together do not bring the tool {_AWAY:g} m ahead and to the left: "
            f"{float(found.pos_error[0]) * 1e3:.0f} mm off",
            "wider ranges of the base's joints, or ik_groups=(...) with all groups that carry the tool",
            place(arm, "base="),
        )


def _touch(built: RobotModel) -> Iterator[Finding]:
    """Does each body that is to feel touch read a force when a ball is pressed on it, and can a ball get there?"""
    if not built.arm.touch:
        return
    spec = built.spec.copy()
    for name in built.arm.touch:
        spec.add_sensor(
            name=f"touch/{name}",
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=name,
            intprm=(2, 3, 1),  # the net force of all contacts
        )
    ball = spec.worldbody.add_body(name="probe")
    ball.add_freejoint()
    ball.add_geom(name="probe", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(_PROBE, 0, 0), mass=0.01)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[[model.joint(n).qposadr[0] for n in built.joints]] = built.qpos()
    for name in built.arm.touch:
        if not any(_felt(model, data, name, toward) for toward in _DIRECTIONS):
            shapes = model.geom_contype[model.geom_bodyid == model.body(name).id]
            what = "no ball can be pressed on it alone at 'rest'" if shapes.any() else "it has no shape that collides"
            yield Finding(
                "touch",
                True,
                f"{name!r} is to feel touch, and {what}",
                f"leave {name!r} out of touch=, or give it a shape that stands out",
                place(built.arm, "touch="),
            )


def _felt(model: mujoco.MjModel, data: mujoco.MjData, name: str, toward: np.ndarray) -> bool:
    """Press the ball on a body from one side, on each of its shapes: is it touched alone, and does it read that?"""
    probe, body = model.geom("probe"), model.body(name).id
    for geom in np.flatnonzero((model.geom_bodyid == body) & (model.geom_contype > 0)):
        near, far = 0.0, float(model.geom_rbound[geom]) + 2 * _PROBE
        for _ in range(20):  # halve the way until the ball is as deep as wanted
            middle = (near + far) / 2
            data.qpos[model.jnt_qposadr[model.body("probe").jntadr[0]] :][:3] = data.geom_xpos[geom] + middle * toward
            mujoco.mj_kinematics(model, data)
            deep = mujoco.mj_geomDistance(model, data, probe.id, geom, 1.0, None) < -_DEPTH
            near, far = (middle, far) if deep else (near, middle)
        mujoco.mj_forward(model, data)
        met = {int(model.geom_bodyid[g]) for c in data.contact if probe.id in c.geom for g in c.geom}
        if met == {int(probe.bodyid[0]), int(body)} and np.linalg.norm(data.sensor(f"touch/{name}").data) > 0:
            return True
    return False


@dataclass(frozen=True)
class Standing:
    """How a robot with a free base fares on a floor, its servos holding `rest`.

    Attributes:
        moved: [m] how far the base has moved after three seconds; it may sag and settle.
        fell: [s] when the base was first below half of its height; None when it never was.
        on: names of the bodies that touch the floor in the end.
    """

    moved: float
    fell: float | None
    on: tuple[str, ...]

    @property
    def stays(self) -> bool:
        """Whether it stands where it was put down, but for some sagging and settling."""
        return self.fell is None and self.moved <= _STANDS  # also for nan


def standing(robot: RobotSelection) -> Standing:
    """Put a robot with a free base on a floor for three seconds, with the physics that environments have."""
    arm = robot.arm
    built = assemble(arm, robot.gripper, menagerie=robot.menagerie)
    built.spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.1), priority=-1)
    root = built.spec.body(built.base_body)
    root.pos, root.quat = arm.base_pos, arm.base_quat
    air = _Air(built)
    data = air.start()
    base = data.body(built.base_body)
    before, fell = base.xpos.copy(), None
    physics = Physics()
    kinds = {name.removeprefix("mjINT_").lower(): kind for name, kind in mujoco.mjtIntegrator.__members__.items()}
    air.model.opt.timestep, air.model.opt.integrator = 1.0 / physics.hz, kinds[physics.integrator.lower()]
    for _ in range(round(3.0 * physics.hz)):
        mujoco.mj_step(air.model, data)
        if fell is None and base.xpos[2] < 0.5 * before[2]:
            fell = float(data.time)
    touching = {int(air.model.geom_bodyid[g]) for contact in data.contact for g in contact.geom}
    on = sorted(air.model.body(b).name for b in touching - {0} if _on_floor(data, b))
    return Standing(float(np.linalg.norm(base.xpos - before)), fell, tuple(on))


def stands(robot: RobotSelection) -> Iterator[Finding]:
    """Does a robot with a free base do on its feet what its spec says?"""
    arm, found = robot.arm, standing(robot)
    if not arm.feet:
        text = "its base is free and it has no feet to stand on"
        yield Finding(
            "feet", True, text, 'feet=("left_foot", ...), the bodies that touch the floor', place(arm, "base=")
        )
    elif found.stays and not arm.stands:
        text = "it stands at 'rest' by its servos, although stands=False"
        yield Finding("feet", False, text, "leave out stands=False", place(arm, "stands="))
    elif not found.stays and arm.stands:
        yield Finding(
            "feet",
            True,
            f"it does not stand at 'rest': after 3 s its base has moved by {found.moved:.2f} m",
            "base_pos: z is the height of the first body when the feet touch the floor; put the weight over the feet, "
            "raise kp or the force, or write stands=False where a controller has to balance it",
            place(arm, "rest"),
        )
    elif found.stays and (others := [name for name in found.on if name not in arm.feet]):
        text = f"it stands on {', '.join(map(repr, others))} too, which feet= does not name"
        yield Finding("feet", False, text, f"feet=(..., {others[0]!r})", place(arm, "feet="))


def _on_floor(data: mujoco.MjData, body: int) -> bool:
    bodies = data.model.geom_bodyid
    return any({int(bodies[g]) for g in contact.geom} == {0, body} for contact in data.contact)
