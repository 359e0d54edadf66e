"""Draw the wrist of every arm with every gripper into docs/images/arms-and-grippers.png, and the robots that are more
than an arm, the maker's model to the right of the built-in one, into docs/images/robot-kinds.png.

Arms are columns, grippers rows.

    python docs/robots_sheet.py

Arms and grippers that are part of each other are left out. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from manikin.author.robot.film import portrait
from manikin.grippers import gripper, grippers
from manikin.render import tile, write_png
from manikin.render.files.caption import caption
from manikin.robots import arm, arms, robot

IMAGES = Path(__file__).parent / "images"
SIZE = 60


ARMS = tuple(name for name in arms() if arm(name).flange_body)
ATTACHED = tuple(name for name in grippers() if gripper(name).links)


def picture(word: str) -> np.ndarray:
    image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE, hand=True)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


MADE = ("go2", "h1", "allegro", "tiago")  # with a maker's model
COMPOSED = ("panda@planar", "baxter@planar", "panda+allegro", "fetch")


def kind(word: str) -> np.ndarray:
    side = 132
    image = portrait(robot(word), width=2 * side, height=2 * side)
    image = image.reshape(side, 2, side, 2, 3).mean((1, 3)).astype(np.uint8)
    return caption(np.pad(image, ((16, 0), (0, 0), (0, 0)), mode="edge"), [word], scale=1)


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few pictures, to see that it runs")
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


if __name__ == "__main__":
    main()
