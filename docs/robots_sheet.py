"""Draw the wrist of every arm with every gripper into docs/images/arms-and-grippers.png, and the robots that are more
than an arm, the maker's model to the right of the built-in one, into docs/images/robot-kinds.png and legged-robots.png.

Arms are columns, grippers rows.

    python docs/robots_sheet.py --wheels WHEELS

Some makers' models are not in the Menagerie but in wheels. WHEELS is a folder that has them unpacked, as
tests/published/robot_models.py says; without it these models are left out.

Arms and grippers that are part of each other are left out. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from manikin.author.robot.film import portrait
from manikin.grippers import gripper, grippers
from manikin.render import tile, write_png
from manikin.render.files.caption import caption
from manikin.robots import RobotSelection, arm, arms, from_file, robot
from manikin.spec.robot import Gains

IMAGES = Path(__file__).parent / "images"
SIZE = 60


ARMS = tuple(name for name in arms() if arm(name).flange_body)
ATTACHED = tuple(name for name in grippers() if gripper(name).links)


def picture(word: str) -> np.ndarray:
    image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE, hand=True)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


MADE = ("go2", "h1", "allegro", "tiago")  # with a maker's model
COMPOSED = ("panda@planar", "baxter@planar", "panda+allegro", "fetch")
G1 = "mani_skill/mani_skill/assets/robots/g1_humanoid"
LEGGED = {  # and the maker's model: in the Menagerie, in a wheel, or in neither
    "go2": "go2:menagerie",
    "spot": "spot:menagerie",
    "spot_arm": "spot_arm:menagerie",
    "anymal_c": "genesis_world/genesis/assets/urdf/anymal_c/urdf/anymal_c.urdf",
    "h1": "h1:menagerie",
    "g1": "mjlab/mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
    "g1_simplified_legs": f"{G1}/g1_simplified_legs.urdf",
    "g1_upper_body": f"{G1}/g1_simplified_upper_body.urdf",
    "h1_upper_body": "",
}


def kind(chosen: RobotSelection, title: str) -> np.ndarray:
    side = 132
    image = portrait(chosen, width=2 * side, height=2 * side)
    image = image.reshape(side, 2, side, 2, 3).mean((1, 3)).astype(np.uint8)
    return caption(np.pad(image, ((16, 0), (0, 0), (0, 0)), mode="edge"), [title], scale=1)


def of_wheel(name: str, path: Path) -> RobotSelection:
    """The maker's model of a robot, standing as the built-in one rests. Its inertia, which is not seen, is left out:
    some of ANYmal's cannot be a body's."""
    ours, options = arm(name), {"name": f"{name}_maker", "base": "free", "feet": arm(name).feet or ("pelvis",)}
    if path.suffix == ".urdf":
        tree = ET.parse(path)
        for option in tree.getroot().findall("mujoco"):
            tree.getroot().remove(option)  # it names the folder of meshes, which their names do too
        for inertial in tree.getroot().iter("inertial"):
            inertial[:] = [ET.Element("mass", value="1"), ET.Element("inertia", ixx="1", iyy="1", izz="1")]
            inertial[1].attrib.update(ixy="0", ixz="0", iyz="0")
        for limit in tree.getroot().iter("limit"):
            limit.attrib.update(effort="1", velocity="1")
        path = path.with_name(f"drawn_{path.name}")
        tree.write(path)
    else:
        many = len(ours.joints)
        options["gains"] = Gains(kp=(1,) * many, kd=(1,) * many, force=(1,) * many, source="not used")
    rest = dict(zip(ours.joints, ours.keyframes["rest"], strict=True))
    joints = from_file(path, **options).joints
    return RobotSelection(from_file(path, **options, rest=tuple(rest[joint] for joint in joints)), None, False)


def legged(name: str, wheels: Path | None) -> list[np.ndarray]:
    """A robot and its maker's model."""
    there, pictures = LEGGED[name], [kind(robot(name), name)]
    if there.endswith(":menagerie"):
        pictures.append(kind(robot(there), there))
    elif there and wheels is not None:
        pictures.append(kind(of_wheel(name, wheels / there), there.partition("/")[0]))
    return pictures


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pictures, to see that it runs")
    parser.add_argument("--wheels", type=Path, help="folder with the unpacked wheels of makers' models")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the picture")
    options = parser.parse_args()
    shown, hands = (ARMS[:2], ATTACHED[:1]) if options.quick else (ARMS, ATTACHED)
    named = [small(picture(f"{one}+{hand}")) for hand in hands for one in shown]
    for k, hand in enumerate(hands):
        named[k * len(shown)] = caption(named[k * len(shown)], [hand], scale=1, bottom=True)
    for k, one in enumerate(shown):
        named[k] = caption(named[k], [one], scale=1)
    write_png(options.out / "arms-and-grippers.png", tile(named, columns=len(shown)))
    pairs = [word for name in MADE for word in (name, f"{name}:menagerie")]
    kinds = COMPOSED[:1] if options.quick else (*pairs, *COMPOSED)
    write_png(options.out / "robot-kinds.png", tile([kind(robot(word), word) for word in kinds], columns=4))
    shown_legs = list(LEGGED)[:1] if options.quick else list(LEGGED)
    pictures = [kind(robot(name), name) for name in shown_legs] if options.quick else []
    pictures = pictures or [picture for name in shown_legs for picture in legged(name, options.wheels)]
    write_png(options.out / "legged-robots.png", tile(pictures, columns=4))


if __name__ == "__main__":
    main()
