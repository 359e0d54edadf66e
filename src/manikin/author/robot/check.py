"""Lints of a robot: what in its file will make it misbehave, and what to write instead.

Static lints read the spec and the assembled model; the others simulate it, in the air, at a step of 5 ms. See
`manikin robot-check`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import mujoco
import numpy as np
import torch

from manikin.author.robot.finding import Finding, place
from manikin.author.robot.tried import moving_lints, stands
from manikin.control.ik import Chain, IkSolver
from manikin.errors import ManikinError
from manikin.robots import RobotSelection
from manikin.scene.robot import RobotModel, assemble
from manikin.spec.robot import FULL_POSE, POSE_CONTROLLERS, Base, GripperSpec, RobotFile, RobotSpec

__all__ = ["Finding", "Reach", "check_robot", "place", "reach"]

_LEAST_MASS = 1e-3  # [kg] of a moving link


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


def check_robot(robot: RobotSelection) -> list[Finding]:
    """Everything that is wrong with a robot; errors first."""
    arm = robot.arm
    try:
        built = assemble(_held(arm), robot.gripper, menagerie=robot.menagerie)
        model = built.spec.compile()
    except (ManikinError, ValueError) as error:
        found = [*_source_inertia(robot.arm), Finding("model", True, str(error), "see the message")]
        return found if found[0].lint == "inertia" else found[-1:]
    findings = [
        *_source_inertia(robot.arm),
        *_inertia(built, model),
        *_limits(built, model),
        *_pose(built),
        *_actuators(built),
        *_keyframes(built, model),
        *_couplings(built, model),
        *_touch_names(built),
    ]
    if not any(f.error for f in findings):  # the rest moves it
        findings += moving_lints(built)
        if arm.base.loose:
            findings += stands(robot)
    return sorted(findings, key=lambda f: not f.error)


def _held(arm: RobotSpec) -> RobotSpec:
    """A robot with a free base held in the air by its first body, which may overlap what hangs on it, as when free."""
    if arm.base.kind != "free":
        return arm
    root = arm.links[0].name
    beside = tuple((root, link.name) for link in arm.links if link.parent == root)
    return replace(arm, base=Base(), excludes=(*arm.excludes, *beside))


def reach(arm: RobotSpec, gripper: GripperSpec | None, *, count: int = 7, radius: float = 0.0) -> Reach:
    """Try a cubic grid of ``count`` points a side, in the upper half of a ball of ``radius`` [m].

    Its middle is the link that carries the arm: the base, or on a mobile robot what stands on it, at rest. The default
    radius is the maker's reach, or the length of the links stretched one after the other.
    """
    chain = Chain(arm, gripper)
    quat = chain.fk(chain.rest[None])[1]
    carrier = _carrier(arm)
    radius = radius or arm.reach or _length(arm, carrier)
    axis = np.linspace(-radius, radius, count)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    grid = grid[(np.linalg.norm(grid, axis=1) <= radius + 1e-9) & (grid[:, 2] >= 0)]
    grid += _at_rest(arm, gripper, carrier)
    goal, turn = torch.from_numpy(grid), quat.expand(len(grid), 4)
    start = chain.rest.expand(len(grid), -1)
    tried: dict[str, float] = dict(pos_tolerance=1e-3, rot_tolerance=0.02, posture=0.0)
    anyhow = IkSolver(chain, rotation_weight=0.0).solve(goal, turn, start, restarts=1, iterations=40, **tried)
    down = IkSolver(chain).solve(goal, turn, anyhow.q, restarts=1, iterations=40, **tried)
    return Reach(grid, (anyhow.reached | down.reached).numpy(), down.reached.numpy())


def _carrier(arm: RobotSpec) -> str:
    """Name of the link that carries the last group of joints that inverse kinematics moves; "" for the world."""
    first = arm.groups[(arm.ik_groups or tuple(arm.groups))[-1]].joints[0]
    return next((link.parent or "" for link in arm.links if first in [joint.name for joint in link.joints]), "")


def _at_rest(arm: RobotSpec, gripper: GripperSpec | None, link: str) -> np.ndarray:
    """(3,) [m] where a link is at rest, in the base frame."""
    if not link:
        return np.zeros(3)
    built = assemble(arm, gripper)
    model = built.spec.compile()
    data = mujoco.MjData(model)
    data.qpos[[model.joint(name).qposadr[0] for name in built.joints]] = built.qpos()
    mujoco.mj_kinematics(model, data)
    return np.array(data.body(link).xpos)


def _length(arm: RobotSpec, carrier: str) -> float:
    """[m] the links between the one that carries the arm and the flange, one after the other."""
    parent = {link.name: link for link in arm.links}
    link, total = parent.get(arm.flange_body or (arm.links[-1].name if arm.links else "")), math.hypot(*arm.flange_pos)
    while link is not None and link.parent is not None and link.name != carrier:
        total += math.hypot(*link.pos)
        link = parent.get(link.parent)
    return total


# ---- reading it -----------------------------------------------------------------------------------------------------


def _source_inertia(arm: RobotSpec) -> Iterator[Finding]:
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


def _pose(built: RobotModel) -> Iterator[Finding]:
    """Whether a user's arm has the joints that its controllers ask for."""
    count, asked = len(built.arm.ik_joints), [c for c in built.arm.controllers if c in POSE_CONTROLLERS]
    if not built.arm.tools:
        return
    if isinstance(built.arm.menagerie, RobotFile) and count < FULL_POSE:
        yield Finding(
            "pose",
            bool(asked),
            f"{count} joints cannot turn the tool in every way at every place, which takes six",
            f"leave {', '.join(asked)} out of controllers"
            if asked
            else "nothing, if that is meant: ee_delta_pos moves the tool, controllers of full poses are left out",
            place(built.arm, built.arm_joints[0]) if built.arm_joints else "",
        )


def _limits(built: RobotModel, model: mujoco.MjModel) -> Iterator[Finding]:
    for name in built.joints:
        joint, spec = model.joint(name), _owner(built, name)
        slides = int(joint.type[0]) == int(mujoco.mjtJoint.mjJNT_SLIDE)
        if not model.jnt_limited[joint.id]:
            hands = [tool.gripper for tool in built.tools if tool.gripper is not None]
            followed = name in built.arm.followers or any(name in hand.followers for hand in hands)
            far, fine = ("10 m", "") if slides else ("a turn", "; a joint that turns on and on is fine")
            if not followed:
                yield Finding(
                    "limits",
                    slides,
                    f"joint {name!r} has no limits; it is commanded within {far} either way",
                    f"give {name!r} the maker's range{fine}",
                    place(spec, name),
                )
        elif joint.range[1] - joint.range[0] > (10 if slides else 8 * math.pi) and name not in built.arm.base.joints:
            yield Finding(
                "limits",
                False,
                f"joint {name!r} spans {joint.range[1] - joint.range[0]:.4g} {'m' if slides else 'rad'}",
                "ranges are in rad and m; are these degrees or mm?",
                place(spec, name),
            )


def _actuators(built: RobotModel) -> Iterator[Finding]:
    grippers = [(tool.gripper, tool.gripper_actuators) for tool in built.tools if tool.gripper is not None]
    every: list[tuple[RobotSpec | GripperSpec, tuple[str, ...]]] = [(built.arm, built.arm.joints), *grippers]
    for spec, joints in every:
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


def _couplings(built: RobotModel, model: mujoco.MjModel) -> Iterator[Finding]:
    """A joint that follows another has to be able to go where that takes it."""
    for name, (driver, ratio) in built.arm.followers.items():
        low, high = sorted(ratio * model.joint(driver).range)
        least, most = model.joint(name).range
        if model.jnt_limited[model.joint(name).id] and not least - 0.01 <= low <= high <= most + 0.01:
            yield Finding(
                "coupling",
                True,
                f"{name!r} follows {driver!r} from {low:.4g} to {high:.4g}, beyond its limits {least:.4g}, {most:.4g}",
                f"correct the ratio {ratio:g} in followers=, or one of the ranges",
                place(built.arm, "followers="),
            )


def _touch_names(built: RobotModel) -> Iterator[Finding]:
    for name in built.arm.touch:
        if name not in built.bodies:
            text = f"touch names {name!r}, and there is no such body"
            yield Finding("touch", True, text, f"one of {', '.join(built.bodies)}", place(built.arm, "touch="))


def _owner(built: RobotModel, name: str) -> RobotSpec | GripperSpec:
    """The spec that a body or joint belongs to."""
    for hand in (tool.gripper for tool in built.tools):
        if hand is not None and hand.links and name in (*hand.joints, *(link.name for link in hand.links)):
            return hand
    return built.arm
