"""Lints of a robot: what in its file will make it misbehave, and what to write instead.

Static lints read the spec and the assembled model; the others simulate it, in the air, at a step of 5 ms. See
`manikin robot-check`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import torch

from manikin.control.ik import Chain, IkSolver
from manikin.errors import ManikinError
from manikin.robots import Robot, module_of
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.robot import ArmSpec, GripperSpec, RobotFile

__all__ = ["Finding", "Reach", "check_robot", "place", "reach"]

_STEP = 0.005  # [s]
_TURN, _SLIDE = 0.1, 0.01  # [rad], [m] a step response's step
_LEAST_MASS = 1e-3  # [kg] of a moving link


@dataclass(frozen=True)
class Finding:
    """What is wrong, where, and what to write.

    Attributes:
        lint: inertia, limits, actuators, collision, tcp, keyframe, gains, or model when nothing could be built.
        error: False is a warning: it works, and may still be meant otherwise.
        what: what is wrong, in words, with figures.
        fix: what to write.
        where: file and line, as ``arm.urdf:12``; empty when unknown.
    """

    lint: str
    error: bool
    what: str
    fix: str
    where: str = ""


@dataclass(frozen=True)
class Reach:
    """How much of a grid of TCP positions inverse kinematics reaches.

    Attributes:
        points: (n, 3) [m] in the base frame.
        anyhow: (n,) bool, reached with some orientation.
        down: (n,) bool, reached pointing as at rest.
    """

    points: np.ndarray
    anyhow: np.ndarray
    down: np.ndarray


def check_robot(robot: Robot) -> list[Finding]:
    """Everything that is wrong with a robot; errors first."""
    try:
        built = assemble(robot.arm, robot.gripper, menagerie=robot.menagerie)
        model = built.spec.compile()
    except (ManikinError, ValueError) as error:
        found = [*_source_inertia(robot.arm), Finding("model", True, str(error), "see the message")]
        return found if found[0].lint == "inertia" else found[-1:]
    findings = [
        *_source_inertia(robot.arm),
        *_inertia(built, model),
        *_limits(built, model),
        *_actuators(built),
        *_keyframes(built, model),
    ]
    if not any(f.error for f in findings):  # the rest moves it
        air = _Air(built)
        findings += [*_collision(built, air), *_tcp(built, air), *_hold(built, air), *_steps(built, air)]
    return sorted(findings, key=lambda f: not f.error)


def reach(arm: ArmSpec, gripper: GripperSpec | None, *, count: int = 7, radius: float = 0.0) -> Reach:
    """Try a cubic grid of ``count`` points a side, in the upper half of a ball of ``radius`` [m] round the base.

    The default radius is the maker's reach, or the length of the links stretched one after the other.
    """
    chain = Chain(arm, gripper)
    quat = chain.fk(chain.rest[None])[1]
    radius = radius or arm.reach or _length(arm)
    axis = np.linspace(-radius, radius, count)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    grid = grid[(np.linalg.norm(grid, axis=1) <= radius + 1e-9) & (grid[:, 2] >= 0)]
    goal, turn = torch.from_numpy(grid), quat.expand(len(grid), 4)
    start = chain.rest.expand(len(grid), -1)
    tried: dict[str, float] = dict(pos_tolerance=1e-3, rot_tolerance=0.02, posture=0.0)
    anyhow = IkSolver(chain, rotation_weight=0.0).solve(goal, turn, start, restarts=1, iterations=40, **tried)
    down = IkSolver(chain).solve(goal, turn, anyhow.q, restarts=1, iterations=40, **tried)
    return Reach(grid, (anyhow.reached | down.reached).numpy(), down.reached.numpy())


def place(arm: ArmSpec | GripperSpec, needle: str) -> str:
    """``file:line`` of the first line of the spec's source that has ``needle`` in quotes, or as it is."""
    if isinstance(arm.menagerie, RobotFile):
        path = Path(arm.menagerie.folder) / arm.menagerie.file
    else:
        module = module_of(arm.name) if isinstance(arm, ArmSpec) else f"manikin.grippers.{arm.name}"
        if not module or not find_spec(module):  # a spec made elsewhere
            return ""
        path = Path(inspect.getfile(import_module(module)))
    lines = path.read_text().splitlines()
    for pattern in (rf"[\"']{re.escape(needle)}[\"']", re.escape(needle)):
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line):
                return f"{path.name}:{number}"
    return path.name


def _length(arm: ArmSpec) -> float:
    """[m] the links that carry the flange, one after the other."""
    parent = {link.name: link for link in arm.links}
    link, total = parent.get(arm.flange_body or (arm.links[-1].name if arm.links else "")), math.hypot(*arm.flange_pos)
    while link is not None and link.parent is not None:
        total += math.hypot(*link.pos)
        link = parent.get(link.parent)
    return total


# ---- reading it -----------------------------------------------------------------------------------------------------


def _source_inertia(arm: ArmSpec) -> Iterator[Finding]:
    """Links of a user's file that say no inertia: MuJoCo would take it from their shapes, or refuse them."""
    if not isinstance(arm.menagerie, RobotFile):
        return
    for link in arm.links:
        if link.joints and link.mass <= 0:
            yield Finding(
                "inertia",
                arm.menagerie.file.lower().endswith(".urdf"),
                f"link {link.name!r} moves and has no inertia of its own",
                f"write mass, centre of mass and inertia into {link.name!r}: <inertial> ... </inertial>",
                place(arm, link.name),
            )


def _inertia(built: RobotModel, model: mujoco.MjModel) -> Iterator[Finding]:
    for i in range(1, model.nbody):
        name, mass = (
            model.body(i).name,
            float(model.body_mass[model.body_weldid == i].sum()),
        )  # with what is fixed to it
        width = 2 * math.sqrt(model.body_inertia[i].max() / mass) if mass else 0.0
        spec = _owner(built, name)
        if model.body_dofnum[i] and mass < _LEAST_MASS:
            yield Finding(
                "inertia",
                True,
                f"link {name!r} moves with {mass * 1e3:.2g} g",
                "give it the mass of the real link",
                place(spec, name),
            )
        elif model.body_dofnum[i] and width > 2.0:
            yield Finding(
                "inertia",
                False,
                f"link {name!r} of {mass:.3g} kg has the inertia of a thing {width:.2g} m wide",
                "inertia is in kg m^2 about the centre of mass",
                place(spec, name),
            )


def _limits(built: RobotModel, model: mujoco.MjModel) -> Iterator[Finding]:
    for name in built.joints:
        joint, spec = model.joint(name), _owner(built, name)
        slides = int(joint.type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE)
        if not model.jnt_limited[joint.id]:
            followed = built.gripper is not None and name in built.gripper.followers
            far, fine = ("10 m", "") if slides else ("a turn", "; a joint that turns on and on is fine")
            if not followed:
                yield Finding(
                    "limits",
                    slides,
                    f"joint {name!r} has no limits; it is commanded within {far} either way",
                    f"give {name!r} the maker's range{fine}",
                    place(spec, name),
                )
        elif joint.range[1] - joint.range[0] > (10 if slides else 8 * math.pi):
            yield Finding(
                "limits",
                False,
                f"joint {name!r} spans {joint.range[1] - joint.range[0]:.4g} {'m' if slides else 'rad'}",
                "ranges are in rad and m; are these degrees or mm?",
                place(spec, name),
            )


def _actuators(built: RobotModel) -> Iterator[Finding]:
    for spec, joints in ((built.arm, built.arm.joints), (built.gripper, built.gripper_actuators)):
        if spec is None:
            continue
        for i, name in enumerate(joints):
            for what, value in (("kp", spec.gains.kp[i]), ("force", spec.gains.force[i])):
                if not 0 < value < math.inf:
                    yield Finding(
                        "actuators",
                        True,
                        f"the servo of {name!r} has {what} = {value:g}",
                        f"give a positive {what} in gains=Gains(...)",
                        place(spec, "gains="),
                    )
            if spec.gains.kd[i] <= 0:
                yield Finding(
                    "actuators",
                    True,
                    f"the servo of {name!r} has no damping, kd = {spec.gains.kd[i]:g}",
                    "give kd > 0 in gains=Gains(...)",
                    place(spec, "gains="),
                )


def _keyframes(built: RobotModel, model: mujoco.MjModel) -> Iterator[Finding]:
    arm = built.arm
    if "rest" not in arm.keyframes:
        text = "there is no keyframe 'rest'"
        yield Finding("keyframe", True, text, "keyframes={'rest': (...)}", place(arm, "joints="))
    for key, values in arm.keyframes.items():
        if len(values) != len(arm.joints):
            text = f"keyframe {key!r} has {len(values)} numbers for {len(arm.joints)} joints"
            yield Finding("keyframe", True, text, "one number for each joint", place(arm, key))
            continue
        for name, value in zip(arm.joints, values, strict=True):
            joint = model.joint(name)
            if model.jnt_limited[joint.id] and not joint.range[0] - 1e-6 <= value <= joint.range[1] + 1e-6:
                low, high = joint.range
                yield Finding(
                    "keyframe",
                    True,
                    f"keyframe {key!r} has {name!r} at {value:.4g}, beyond its limits {low:.4g} to {high:.4g}",
                    f"move {name!r} into its range, or correct the range",
                    place(arm, key),
                )


# ---- trying it ------------------------------------------------------------------------------------------------------


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
        opened = built.gripper.open_q if built.gripper is not None else ()
        data.ctrl[:] = np.concatenate([built.arm_qpos(key), opened])
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


def _tcp(built: RobotModel, air: _Air) -> Iterator[Finding]:
    model, data = air.model, air.start(gripper=0.4)  # half closed: fingers on hinges do not close along y all the way
    tcp = data.body(built.tcp_body)
    frame = tcp.xmat.reshape(3, 3)
    hand = built.gripper
    spec = hand if hand is not None else built.arm
    if hand is not None and hand.fingers:
        pads = np.array([data.geom(name).xpos for name in built.pad_geoms])
        sides = [data.body(name).id for name in built.finger_bodies]
        of = [np.mean(pads[[model.geom(n).bodyid[0] == s for n in built.pad_geoms]], 0) for s in sides]
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
        first = frame.T @ data.site(built.finger_sites[0]).xmat.reshape(3, 3)[:, 2]
        if abs(first[1]) < 0.7:
            yield Finding(
                "tcp", True, "the fingers do not close along y of the TCP", "turn tcp_quat", place(spec, "tcp_quat")
            )
    last = data.joint(built.arm_joints[-1]).xanchor if built.arm_joints else data.xpos[1]
    out = tcp.xpos - last
    if np.linalg.norm(out) > 0.02 and frame[:, 2] @ out < -0.5 * np.linalg.norm(out):
        yield Finding(
            "tcp",
            True,
            "z of the TCP points back into the arm",
            "turn flange_quat so that z points out of the flange",
            place(built.arm, "flange_quat"),
        )


def _hold(built: RobotModel, air: _Air) -> Iterator[Finding]:
    """Does each keyframe stay where it is?"""
    chain = Chain(built.arm, built.gripper)
    for key in built.arm.keyframes:
        pos, quat = chain.fk(torch.from_numpy(built.arm_qpos(key))[None])
        full = chain.size >= 6
        found = IkSolver(chain, rotation_weight=0.2 if full else 0.0).solve(pos, quat, chain.rest[None], restarts=8)
        if not bool(found.reached[0]):
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
            yield Finding("gains", True, f"holding {key!r} diverges", "lower kp, raise kd", place(built.arm, "gains"))
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
        where = place(built.arm, "gains")
        late = moved[-len(moved) // 4 :]
        creeps = np.isfinite(moved).all() and np.diff(late).min() > -1e-6  # still under way, but not to and fro
        if not np.isfinite(moved).all() or np.any(data.warning.number) or (np.ptp(late) > 0.1 and not creeps):
            text = f"a step of {name!r} does not settle"
            yield Finding("gains", True, f"{text}: it still swings by {np.ptp(late):.0%}", fix, where)
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


def _owner(built: RobotModel, name: str) -> ArmSpec | GripperSpec:
    """The spec that a body or joint belongs to."""
    hand = built.gripper
    own = hand is not None and (name in hand.joints or name in {link.name for link in hand.links})
    return hand if own and hand is not None and hand.links else built.arm
