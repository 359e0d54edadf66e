"""Where the links of other projects' robot models are, as numbers that tests compare with.

    python tests/published/robot_models.py mani_skill-3.0.1-*.whl robosuite-1.5.2-*.whl

reads the descriptions inside the two wheels and writes ``robots.json``: limits, mass and inertia as they stand there,
and the poses of all links at drawn joint positions, computed here with NumPy and no simulator.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parent / "robots.json"
WHERE = {  # robot: (wheel, file in it)
    "dclaw": ("mani_skill", "mani_skill/assets/robots/dclaw/dclaw_gripper_glb.urdf"),
    "trifinger": ("mani_skill", "mani_skill/assets/robots/trifinger/trifingerpro.urdf"),
    "so100": ("mani_skill", "mani_skill/assets/robots/so100/so100.urdf"),
    "inspire": ("robosuite", "robosuite/models/assets/grippers/inspire_right_hand.xml"),
}
GIVEN = {"so100": {"rest": (0, -1.5708, 1.5708, 0.66, 0, -1.1)}}  # keyframes that the other project declares
DRAWS = 6


def numbers(text: str | None, count: int = 3) -> np.ndarray:
    return np.array([float(x) for x in text.split()]) if text else np.zeros(count)


def turn(axis: np.ndarray, angle: float) -> np.ndarray:
    """(3, 3), Rodrigues' formula."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def from_rpy(rpy: np.ndarray) -> np.ndarray:
    """Roll about x, then pitch about y, then yaw about z, all of the parent."""
    axes = np.eye(3)
    return turn(axes[2], rpy[2]) @ turn(axes[1], rpy[1]) @ turn(axes[0], rpy[0])


def from_quat(quat: np.ndarray) -> np.ndarray:
    angle = 2 * np.arctan2(np.linalg.norm(quat[1:]), quat[0])
    return np.eye(3) if angle == 0 else turn(quat[1:], angle)


def frame(pos: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    made = np.eye(4)
    made[:3, :3], made[:3, 3] = rotation, pos
    return made


Row = tuple[str, str, np.ndarray, str, np.ndarray, list[float] | None]
"""A link: its name, its parent's, its place on that (4, 4), its joint's name ("" for none), axis and limits."""


def read_urdf(text: str) -> tuple[list[Row], dict[str, Any]]:
    """Links from the root outwards, and the mass, centre of mass and inertia of each. A link with several
    ``<inertial>`` has the last one."""
    robot = ET.fromstring(text)
    children: dict[str, list[ET.Element]] = {}
    for joint in robot.findall("joint"):
        children.setdefault(joint.find("parent").attrib["link"], []).append(joint)
    below = {joint.find("child").attrib["link"] for joint in robot.findall("joint")}
    waiting = [link.attrib["name"] for link in robot.findall("link") if link.attrib["name"] not in below]
    rows: list[Row] = [(waiting[0], "", np.eye(4), "", np.zeros(3), None)]
    while waiting:
        parent = waiting.pop(0)
        for joint in children.get(parent, []):
            name, origin = joint.find("child").attrib["link"], joint.find("origin")
            place = {} if origin is None else origin.attrib
            at = frame(numbers(place.get("xyz")), from_rpy(numbers(place.get("rpy"))))
            moves = joint.attrib["type"] != "fixed"
            limit = joint.find("limit").attrib if moves else {}
            rows.append(
                (
                    name,
                    parent,
                    at,
                    joint.attrib["name"] if moves else "",
                    numbers(joint.find("axis").attrib["xyz"]) if moves else np.zeros(3),
                    [float(limit["lower"]), float(limit["upper"])] if moves else None,
                )
            )
            waiting.append(name)
    inertia = {}
    for link in robot.findall("link"):
        for given in link.findall("inertial"):
            mass, it, origin = (given.find(what) for what in ("mass", "inertia", "origin"))
            inertia[link.attrib["name"]] = [
                float(mass.attrib["value"]),
                *(numbers(origin.attrib.get("xyz")) if origin is not None else np.zeros(3)).tolist(),
                *(float(it.attrib[k]) for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")),
            ]
    return rows, {name: values for name, values in inertia.items() if values[0]}


def read_mjcf(text: str) -> list[Row]:
    """Bodies from the root outwards, of a file that places them with quaternions."""
    rows: list[Row] = []

    def add(body: ET.Element, parent: str) -> None:
        joint = body.find("joint")
        given = {} if joint is None else joint.attrib
        rows.append(
            (
                body.attrib["name"],
                parent,
                frame(numbers(body.get("pos")), from_quat(numbers(body.get("quat") or "1 0 0 0"))),
                given.get("name", ""),
                numbers(given.get("axis")),
                numbers(given["range"]).tolist() if given else None,
            )
        )
        for child in body.findall("body"):
            add(child, body.attrib["name"])

    for body in ET.fromstring(text).find("worldbody").findall("body"):
        add(body, "")
    return rows


def poses(rows: list[Row], q: dict[str, float]) -> dict[str, np.ndarray]:
    """(4, 4) of each link in the root's frame."""
    found: dict[str, np.ndarray] = {}
    for name, parent, at, joint, axis, _ in rows:
        moved = frame(np.zeros(3), turn(axis, q[joint])) if joint else np.eye(4)
        found[name] = found[parent] @ at @ moved if parent else np.eye(4)
    return found


def record(rows: list[Row], rng: np.random.Generator, given: dict[str, tuple[float, ...]]) -> dict[str, Any]:
    joints = {joint: limit for *_, joint, _, limit in rows if joint}
    draws = [{j: round(float(rng.uniform(*limit)), 4) for j, limit in joints.items()} for _ in range(DRAWS)]
    made = {"joints": joints, "draws": []}
    for q in [dict(zip(joints, values, strict=True)) for values in given.values()] + draws:
        links = {name: np.round(at[:3].ravel(), 6).tolist() for name, at in poses(rows, q).items()}
        made["draws"].append({"q": list(q.values()), "links": links})
    return made


def main() -> None:
    wheels = {Path(name).name.split("-")[0]: Path(name) for name in sys.argv[1:]}
    if set(wheels) != {wheel for wheel, _ in WHERE.values()}:
        sys.exit(__doc__)
    rng, robots = np.random.default_rng(0), {}
    for robot, (wheel, path) in WHERE.items():
        text = zipfile.ZipFile(wheels[wheel]).read(path).decode()
        rows, inertia = read_urdf(text) if path.endswith(".urdf") else (read_mjcf(text), {})
        robots[robot] = {"file": path, **record(rows, rng, GIVEN.get(robot, {})), "inertia": inertia}
    made = f"{', '.join('-'.join(p.name.split('-')[:2]) for p in wheels.values())}: tests/published/robot_models.py"
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(one, separators=(',', ':'))}" for name, one in robots.items())
    OUT.write_text(f'{{"made":{json.dumps(made)},"robots":{{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
