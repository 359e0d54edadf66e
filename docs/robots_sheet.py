"""Draw the wrist of every arm with every gripper into docs/images/arms-and-grippers.png, and the robots that are more
than an arm, the maker's model to the right of the built-in one, into docs/images/robot-kinds.png.

Arms are columns, grippers rows.

    python docs/robots_sheet.py
    python docs/robots_sheet.py --wheels DIR    # also docs/images/hands.png

The last draws every hand beside its maker's model. DIR has the wheels of mani_skill 3.0.1 and robosuite 1.5.2, whose
descriptions stand in where Menagerie has no model.

Arms and grippers that are part of each other are left out. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import zipfile
from pathlib import Path

import mujoco
import numpy as np

from manikin.assets import urdf
from manikin.author.robot.film import portrait
from manikin.grippers import gripper, grippers
from manikin.render import make_renderer, tile, write_png
from manikin.render.files.caption import caption
from manikin.robots import arm, arms, robot
from manikin.scene.robot import assemble
from manikin.spec.camera import CameraSpec

IMAGES = Path(__file__).parent / "images"
SIZE = 60


ARMS = tuple(name for name in arms() if arm(name).flange_body)
ATTACHED = tuple(name for name in grippers() if gripper(name).links)


def picture(word: str) -> np.ndarray:
    image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE, hand=True)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


MADE = ("go2", "h1", "allegro", "shadow", "tiago")  # with a maker's model
COMPOSED = ("dclaw", "trifinger", "panda@planar", "baxter@planar", "panda+allegro", "xarm7+inspire", "fetch")
HANDS = {  # hand: the keyframe it is shown in, and its description in a wheel where Menagerie has no model
    "allegro": ("rest", ""),
    "allegro_left": ("rest", ""),
    "shadow": ("rest", ""),
    "dclaw": ("rest", "mani_skill/assets/robots/dclaw/dclaw_gripper_glb.urdf"),
    "trifinger": ("rest", "mani_skill/assets/robots/trifinger/trifingerpro.urdf"),
    "inspire": ("rest", "robosuite/models/assets/grippers/inspire_right_hand.xml"),
}


def kind(word: str) -> np.ndarray:
    side = 132
    image = portrait(robot(word), width=2 * side, height=2 * side)
    image = image.reshape(side, 2, side, 2, 3).mean((1, 3)).astype(np.uint8)
    return caption(np.pad(image, ((16, 0), (0, 0), (0, 0)), mode="edge"), [word], scale=1)


def described(word: str, path: str, wheels: Path) -> mujoco.MjSpec:
    """The description of a hand in a wheel, placed as the built-in model is."""
    wheel = next(wheels.glob(f"{path.partition('/')[0]}-*.whl"))
    folder = Path(tempfile.mkdtemp())
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder, [n for n in files.namelist() if n.startswith(path.rpartition("/")[0])])
    file = folder / path
    text = re.sub(
        r"<inertial>(?:(?!</inertial>).)*(?:0\.031|value=.0.)(?:(?!</inertial>).)*</inertial>",
        "",
        file.read_text(),
        flags=re.DOTALL,
    )
    file.write_text(re.sub(r"<sensor>.*</sensor>|<inertial[^>]*mass=.0.[^>]*/>", "", text, flags=re.DOTALL))
    if path.endswith(".urdf"):
        return urdf.load(file, packages={"robot_properties_fingers": str(file.parent / "robot_properties_fingers")})
    spec = mujoco.MjSpec.from_file(str(file))
    spec.worldbody.first_body().quat = arm(word).links[0].quat
    for site in list(spec.sites):
        spec.delete(site)
    for geom in spec.geoms:
        geom.group = 2 if geom.contype == 0 else 3
    for material in spec.materials:
        material.rgba = (0.55, 0.55, 0.57, 1)
    return spec


def beside(word: str, wheels: Path | None, size: int = 200) -> np.ndarray:
    """A hand in a pose, built in or, with wheels, as its maker describes it; seen alike."""
    chosen, (key, path) = robot(word), HANDS[word]
    pictures = []
    for theirs in (False, True):
        built = assemble(chosen.arm, None, menagerie=theirs and not path)
        spec = described(word, path, wheels) if theirs and path and wheels else built.spec
        spec.worldbody.add_light(pos=(1, 1, 3), dir=(-0.3, -0.3, -1))
        model = spec.compile()
        data = mujoco.MjData(model)
        for name, q in zip(built.joints, built.qpos(key), strict=True):
            there = next(
                n for n in (name, f"joint_r_{name}") if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, n) >= 0
            )
            data.joint(there).qpos[0] = q
        mujoco.mj_forward(model, data)
        if not theirs:
            seen = model.geom_group == 2
            low = (data.geom_xpos[seen] - model.geom_rbound[seen, None]).min(0)
            high = (data.geom_xpos[seen] + model.geom_rbound[seen, None]).max(0)
            middle, away = (low + high) / 2, 1.2 * float(np.linalg.norm(high - low))
            eye = middle + away * np.array([0.75, 0.6, 0.28])
            view = CameraSpec(name="hand", pos=tuple(eye), target=tuple(middle), fovy=0.74)
        renderer = make_renderer(samples=3)
        pictures.append(renderer.rgb(model, data, view, width=size, height=size))
        renderer.close()
    return caption(np.concatenate(pictures, 1), [word], scale=1)


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pictures, to see that it runs")
    parser.add_argument("--wheels", type=Path, help="folder with wheels of mani_skill and robosuite")
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
    write_png(options.out / "robot-kinds.png", tile([kind(word) for word in kinds], columns=4))
    if options.wheels is not None:
        write_png(options.out / "hands.png", tile([small(beside(word, options.wheels)) for word in HANDS], columns=3))


if __name__ == "__main__":
    main()
