"""Draw the wrist of every arm with every gripper into docs/images/arms-and-grippers.png, robots that drive or are put
together into robot-kinds.png, and those on legs and the hands, each beside its maker's model, into legged-robots.png
and hands.png.

Arms are columns, grippers rows.

    python docs/robots_sheet.py --wheels WHEELS

Some makers' models are not in the Menagerie but in wheels. WHEELS is the folder with them that
tests/published/robot_models.py says how to fill; without it these models are left out.

Arms and grippers that are part of each other are left out. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

import argparse
import tempfile
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from manikin.author.robot.film import portrait
from manikin.grippers import gripper, grippers
from manikin.render import tile, write_png
from manikin.render.files.caption import caption
from manikin.robots import RobotSelection, arm, arms, from_file, robot
from manikin.scene.robot import assemble
from manikin.spec.robot import Gains

IMAGES = Path(__file__).parent / "images"
SIZE = 60


ARMS = tuple(name for name in arms() if arm(name).flange_body)
ATTACHED = tuple(name for name in grippers() if gripper(name).links)


def picture(word: str) -> np.ndarray:
    image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE, hand=True)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


KINDS = (
    *("tiago", "tiago:menagerie", "stretch3", "stretch3:menagerie"),
    *("fetch_mshab", "fetch_mshab:menagerie", "panda@planar", "ur5e@differential"),
    *("baxter@planar", "aloha@planar", "panda+allegro", "xarm7+inspire"),
)
MANISKILL = "mani_skill/mani_skill/assets/robots"
BESIDE = {  # picture: robot and the maker's model: in the Menagerie, in a wheel, or in neither
    "legged-robots": {
        "go2": ":menagerie",
        "spot": ":menagerie",
        "spot_arm": ":menagerie",
        "anymal_c": "genesis_world/genesis/assets/urdf/anymal_c/urdf/anymal_c.urdf",
        "h1": ":menagerie",
        "g1": "mjlab/mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
        "g1_simplified_legs": f"{MANISKILL}/g1_humanoid/g1_simplified_legs.urdf",
        "g1_upper_body": f"{MANISKILL}/g1_humanoid/g1_simplified_upper_body.urdf",
        "h1_upper_body": "",
        "ant": "",
        "humanoid": "",
        "hopper": "",
    },
    "hands": {
        "allegro": ":menagerie",
        "allegro_left": ":menagerie",
        "shadow": ":menagerie",
        "inspire": "robosuite/robosuite/models/assets/grippers/inspire_right_hand.xml",
        "dclaw": f"{MANISKILL}/dclaw/dclaw_gripper_glb.urdf",
        "trifinger": f"{MANISKILL}/trifinger/trifingerpro.urdf",
    },
}


def kind(chosen: RobotSelection, title: str) -> np.ndarray:
    side = 132
    image = portrait(chosen, width=2 * side, height=2 * side)
    image = image.reshape(side, 2, side, 2, 3).mean((1, 3)).astype(np.uint8)
    return caption(np.pad(image, ((16, 0), (0, 0), (0, 0)), mode="edge"), [title], scale=1)


def beside(name: str, theirs: str, wheels: Path | None) -> list[np.ndarray]:
    """A robot and its maker's model, where that can be had."""
    pictures = [kind(robot(name), name)]
    if theirs.startswith(":"):
        pictures.append(kind(robot(name + theirs), theirs[1:]))
    elif theirs and wheels is not None:
        package, _, inside = theirs.partition("/")
        (wheel,) = wheels.glob(f"{package}-*.whl")
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as files:
            around = "/".join(inside.split("/")[:4]) + "/"
            files.extractall(folder, [one for one in files.namelist() if one.startswith(around)])
            pictures.append(kind(of_wheel(name, Path(folder) / inside), package))
    return pictures


def of_wheel(name: str, path: Path) -> RobotSelection:
    """The maker's model of a robot, standing as the built-in one rests. Inertia, which is not seen, is left out: some
    of ANYmal's cannot be a body's."""
    tree = ET.parse(path)
    for parent in list(tree.iter()):  # <mujoco> of a URDF names the folder of meshes, which their names do too
        gone = ("mujoco", "sensor", "site", *(["inertial"] if parent.tag == "link" else []))
        for child in [one for one in parent if one.tag in gone]:
            parent.remove(child)
    for link in tree.iter("link"):
        inertial = ET.SubElement(link, "inertial")
        ET.SubElement(inertial, "mass", value="1")
        ET.SubElement(inertial, "inertia", ixx="1", iyy="1", izz="1", ixy="0", ixz="0", iyz="0")
    for geom in tree.iter("geom"):
        if geom.get("contype") != "0" and geom.get("class") is None:
            geom.set("group", "3")  # what collides is not shown
    for material in tree.iter("material"):
        if material.get("rgba") == "0 0 0 1":
            material.set("rgba", "0.5 0.5 0.5 1")  # on black no shade is seen
    path = path.with_name(f"drawn_{path.name}")
    tree.write(path)
    ours = arm(name)
    built = assemble(ours, robot(name).gripper)
    one = (1,) * (len(ours.joints) + len(ours.followers))
    body, joint = ("r_", "joint_r_") if name == "inspire" else ("", "")  # what names there begin with, and not here
    stands: dict[str, Any] = {"base": "free", "feet": ours.feet} if ours.feet else {}
    gains = Gains(kp=one, kd=one, force=one, source="not used")
    found = from_file(path, root=body + ours.links[0].name, gains=gains, **stands)
    rest = dict(zip(built.joints, built.qpos(), strict=True))
    angles = tuple(rest[name.removeprefix(joint)] for name in found.joints)
    links = (replace(found.links[0], quat=ours.links[0].quat), *found.links[1:])
    return RobotSelection(replace(found, links=links, keyframes={"rest": angles}), None, False)


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pictures, to see that it runs")
    parser.add_argument("--wheels", type=Path, help="folder with the wheels of makers' models")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    options = parser.parse_args()
    shown, hands = (ARMS[:2], ATTACHED[:1]) if options.quick else (ARMS, ATTACHED)
    named = [small(picture(f"{one}+{hand}")) for hand in hands for one in shown]
    for k, hand in enumerate(hands):
        named[k * len(shown)] = caption(named[k * len(shown)], [hand], scale=1, bottom=True)
    for k, one in enumerate(shown):
        named[k] = caption(named[k], [one], scale=1)
    write_png(options.out / "arms-and-grippers.png", tile(named, columns=len(shown)))
    kinds = ["panda@planar"] if options.quick else KINDS
    write_png(options.out / "robot-kinds.png", tile([kind(robot(word), word) for word in kinds], columns=4))
    for file, robots in BESIDE.items():
        pairs = {next(iter(robots)): ""} if options.quick else robots
        drawn = [one for name, theirs in pairs.items() for one in beside(name, theirs, options.wheels)]
        write_png(options.out / f"{file}.png", tile(drawn, columns=4))


if __name__ == "__main__":
    main()
