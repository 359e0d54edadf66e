"""What the models of robots say that others publish, as numbers that tests compare with.

    pip download --no-deps -d WHEELS genesis-world==1.4.5 example-robot-data==6.0.0 mani_skill==3.0.1 mjlab==1.6.0 \\
        robosuite==1.5.2
    python tests/published/robot_models.py WHEELS

writes ``robots.json`` beside this file. MENAGERIE_ROOT is where MuJoCo Menagerie lies. For each robot: total mass [kg],
limits and torques of the joints, and at drawn joint angles the places of all links (rotation and position [m], a (3, 4)
row by row) and the diagonal of the joint-space inertia matrix. All links are free of their base: the diagonal's first
six numbers are the whole robot's mass and inertia there.
"""

from __future__ import annotations

import json
import os
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

__all__ = ["REFERENCE", "figures", "free", "of_urdf"]

REFERENCE = Path(__file__).parent / "robots.json"
EXAMPLES = "example_robot_data/cmeel.prefix/share/example-robot-data/robots"
MANISKILL = "mani_skill/mani_skill/assets/robots"
MODELS = {  # robot: the wheel and in it the file with kinematics and inertia; and limits where those are elsewhere
    "anymal_c": (
        "genesis_world/genesis/assets/urdf/anymal_c/urdf/anymal_c.urdf",
        f"{EXAMPLES}/anymal_c_simple_description/urdf/anymal.urdf",
    ),
    "g1": (
        "mjlab/mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
        f"{EXAMPLES}/g1_description/urdf/g1_29dof_rev_1_0.urdf",
    ),
    "g1_simplified_legs": (f"{MANISKILL}/g1_humanoid/g1_simplified_legs.urdf", ""),
    "g1_upper_body": (f"{MANISKILL}/g1_humanoid/g1_simplified_upper_body.urdf", ""),
    "spot": ("MENAGERIE/boston_dynamics_spot/spot.xml", ""),
    "spot_arm": ("MENAGERIE/boston_dynamics_spot/spot_arm.xml", ""),
    "dclaw": (f"{MANISKILL}/dclaw/dclaw_gripper_glb.urdf", ""),
    "trifinger": (f"{MANISKILL}/trifinger/trifingerpro.urdf", ""),
    "so100": (f"{MANISKILL}/so100/so100.urdf", ""),
    "inspire": ("robosuite/robosuite/models/assets/grippers/inspire_right_hand.xml", ""),
}


def free(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """A model with a free base, of which nothing but bodies and joints is left."""
    shapes = (spec.geoms, spec.sites, spec.meshes, spec.materials, spec.textures)
    for kind in (spec.actuators, spec.sensors, spec.keys, spec.excludes, spec.equalities, *shapes):
        for element in list(kind):
            spec.delete(element)
    root = spec.worldbody.first_body()
    loose = len(root.joints) == 3 or any(int(joint.type) == int(mujoco.mjtJoint.mjJNT_FREE) for joint in root.joints)
    if not loose:  # nor free to move in a vertical plane
        root.add_freejoint()
    for joint in spec.joints:
        joint.armature = 0.0
    root.pos, root.quat = (0, 0, 0), (1, 0, 0, 0)
    spec.compiler.boundmass = spec.compiler.boundinertia = 1e-12  # a base may have no mass
    return spec.compile()


def figures(model: mujoco.MjModel, joints: dict[str, float]) -> dict[str, Any]:
    """Places of links in the base's frame and the diagonal of the inertia matrix: base, then the joints as given."""
    data = mujoco.MjData(model)
    for name, angle in joints.items():
        data.qpos[model.joint(name).qposadr[0]] = angle
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    dofs = [*range(6), *(int(model.joint(name).dofadr[0]) for name in joints)]
    places = {
        model.body(b).name: np.column_stack([data.xmat[b].reshape(3, 3), data.xpos[b]]) for b in range(1, model.nbody)
    }
    return {
        "places": {name: np.round(place.ravel(), 6).tolist() for name, place in places.items()},
        "inertia": [float(f"{x:.6g}") for x in np.diag(inertia)[dofs]],
    }


def of_urdf(text: str) -> mujoco.MjSpec:
    """A URDF without its shapes, the mass of what is fixed to a link being the link's own. Some files give cameras and
    covers an inertia that no body can have; as a part of the base it is harmless, and MuJoCo takes it."""
    robot = ET.fromstring(text)
    links = {link.get("name", ""): link for link in robot.findall("link")}
    fixed: dict[str, list[ET.Element]] = {}
    for joint in robot.findall("joint"):
        if joint.get("type") == "fixed":
            fixed.setdefault(joint.find("parent").get("link"), []).append(joint)  # type: ignore[union-attr,arg-type]
    parts = {joint.find("child").get("link") for joints in fixed.values() for joint in joints}  # type: ignore[union-attr]
    whole = {name: _with_what_is_fixed(name, links, fixed) for name in links if name not in parts}
    for name, link in links.items():
        for child in list(link):
            link.remove(child)
        if name in whole:
            mass, com, inertia = whole[name]
            inertial = ET.SubElement(link, "inertial")
            ET.SubElement(inertial, "origin", xyz=" ".join(map(repr, com.tolist())))
            ET.SubElement(inertial, "mass", value=repr(mass))
            entries = {f"i{'xyz'[i]}{'xyz'[j]}": repr(float(inertia[i, j])) for i in range(3) for j in range(i, 3)}
            ET.SubElement(inertial, "inertia", entries)
    for other in [one for one in robot if one.tag not in ("link", "joint")]:
        robot.remove(other)
    ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler", fusestatic="false")
    return mujoco.MjSpec.from_string(ET.tostring(robot, encoding="unicode"))


def _with_what_is_fixed(
    name: str, links: dict[str, ET.Element], fixed: dict[str, list[ET.Element]]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass [kg], centre (3,) [m] and inertia (3, 3) [kg m^2] about it, in the link's frame."""
    parts = []
    for inertial in links[name].findall("inertial")[-1:]:  # of several the last one counts
        turn, pos = _origin(inertial)
        i = {key: float(value) for key, value in inertial.find("inertia").attrib.items()}  # type: ignore[union-attr]
        own = np.array([[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]])
        parts.append((float(inertial.find("mass").get("value")), pos, turn @ own @ turn.T))  # type: ignore[union-attr,arg-type]
    for joint in fixed.get(name, ()):
        turn, pos = _origin(joint)
        mass, com, own = _with_what_is_fixed(joint.find("child").get("link"), links, fixed)  # type: ignore[union-attr,arg-type]
        parts.append((mass, pos + turn @ com, turn @ own @ turn.T))
    total = sum(mass for mass, _, _ in parts)
    centre = sum((mass * com for mass, com, _ in parts), np.zeros(3)) / max(total, 1e-12)
    inertia = np.zeros((3, 3))
    for mass, com, own in parts:
        away = com - centre
        inertia += own + mass * (away @ away * np.eye(3) - np.outer(away, away))  # Steiner
    return total, centre, inertia


def _origin(element: ET.Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (3, 3) and place (3,) [m] of a URDF's <origin>."""
    origin = element.find("origin")
    values = {} if origin is None else origin.attrib
    rpy, pos = (np.array([float(x) for x in values.get(key, "0 0 0").split()]) for key in ("rpy", "xyz"))
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    turn = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return turn, pos


def limits(text: str) -> dict[str, tuple[float, ...]]:
    """Lower and upper limit [rad] of each joint, and of a URDF its torque [N m]."""
    root = ET.fromstring(text)
    if root.tag == "mujoco":
        model = free(mujoco.MjSpec.from_string(text))
        limited = [j for j in range(model.njnt) if model.jnt_limited[j]]
        return {model.joint(j).name: tuple(model.jnt_range[j].tolist()) for j in limited}
    found = {}
    for joint in root.iter("joint"):
        limit = joint.find("limit")
        if joint.get("type") == "revolute" and limit is not None:
            found[joint.get("name", "")] = tuple(float(limit.get(k, "0")) for k in ("lower", "upper", "effort"))
    return found


def read(there: str, wheels: Path) -> str:
    """A file of the Menagerie or of a wheel."""
    folder, _, inside = there.partition("/")
    if folder == "MENAGERIE":
        return (Path(os.environ["MENAGERIE_ROOT"]) / inside).read_text()
    (wheel,) = wheels.glob(f"{folder}-*.whl")
    return zipfile.ZipFile(wheel).read(inside).decode()


def main(wheels: Path) -> None:
    rng, made = np.random.default_rng(0), {}
    for name, (file, other) in MODELS.items():
        text = read(file, wheels)
        model = free(of_urdf(text) if file.endswith(".urdf") else mujoco.MjSpec.from_string(text))
        range_of = limits(read(other or file, wheels))
        poses = []
        for _ in range(3):
            q = {
                joint: float(f"{rng.uniform(max(low, -2), min(high, 2)):.4f}")
                for joint, (low, high, *_) in range_of.items()
            }
            poses.append({"q": q, **figures(model, q)})
        mass = float(f"{model.body_mass.sum():.7g}")
        made[name] = {"file": file, "limits_from": other or file, "mass": mass, "limits": range_of, "poses": poses}
    lines = [f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in made.items()]
    REFERENCE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
