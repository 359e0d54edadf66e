"""Draw the wrist of every arm with every gripper into docs/images/arms-and-grippers.png.

Arms are columns, grippers rows.

    python docs/robots_sheet.py

Arms and grippers that are part of each other are left out. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manikin.grippers import gripper, grippers
from manikin.render import tile, write_png
from manikin.render.caption import caption
from manikin.robots import arm, arms, robot
from manikin.robots.film import portrait

IMAGE = Path(__file__).parent / "images" / "arms-and-grippers.png"
SIZE = 60


ARMS = tuple(name for name in arms() if arm(name).flange_body)
ATTACHED = tuple(name for name in grippers() if gripper(name).links)


def picture(word: str) -> np.ndarray:
    image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE, hand=True)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    named = [small(picture(f"{one}+{hand}")) for hand in ATTACHED for one in ARMS]
    for k, hand in enumerate(ATTACHED):
        named[k * len(ARMS)] = caption(named[k * len(ARMS)], [hand], scale=1, bottom=True)
    for k, one in enumerate(ARMS):
        named[k] = caption(named[k], [one], scale=1)
    write_png(IMAGE, tile(named, columns=len(ARMS)))


if __name__ == "__main__":
    main()
