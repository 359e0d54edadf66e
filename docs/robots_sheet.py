"""Draw every arm with every gripper into docs/images/arms-and-grippers.png: arms in columns, grippers in rows.

    python docs/robots_sheet.py

A pair that cannot be (an arm whose gripper is part of it) stays empty. Run it when an arm or a gripper is new or has
changed its looks, and look at what comes out: nothing is mounted through an arm or turned the wrong way.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manikin.errors import ConfigError
from manikin.grippers import grippers
from manikin.render import tile, write_png
from manikin.render.caption import caption
from manikin.robots import arms, robot
from manikin.robots.film import portrait

IMAGE = Path(__file__).parent / "images" / "arms-and-grippers.png"
SIZE = 96


def picture(word: str) -> np.ndarray:
    try:
        image = portrait(robot(word), width=2 * SIZE, height=2 * SIZE)
    except ConfigError:
        return np.full((SIZE, SIZE, 3), 255, np.uint8)
    return image.reshape(SIZE, 2, SIZE, 2, 3).mean((1, 3)).astype(np.uint8)


def small(image: np.ndarray) -> np.ndarray:
    """Fewer colours, so that the file stays small."""
    return (image // 16 * 17).astype(np.uint8)


def main() -> None:
    rows = []
    for gripper in grippers():
        rows += [picture(f"{arm}+{gripper}") for arm in arms()]
    named = [small(image) for image in rows]
    for k, gripper in enumerate(grippers()):
        at = k * len(arms())
        named[at] = caption(named[at], [gripper], scale=1, bottom=True)
    for k, arm in enumerate(arms()):
        named[k] = caption(named[k], [arm], scale=1)
    write_png(IMAGE, tile(named, columns=len(arms())))


if __name__ == "__main__":
    main()
