"""Draw docs/images/stages.png: one picture after each of its stages.

    python docs/stages.py

The photograph is a stand-in that is drawn here: a lit wall and a wooden board.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import manikin
from manikin.env.observe import Vision
from manikin.render import tile, write_png
from manikin.render.files.caption import caption
from manikin.sense.imperfect import Noise
from manikin.sense.pixels import Jitter, Photograph, Resize
from manikin.sense.stages import On
from manikin.spec.camera import CameraSpec

IMAGES = Path(__file__).parent / "images"
SIZE = 160


def stand_in() -> np.ndarray:
    """(SIZE, SIZE, 3) uint8: a wall with light from the left over a board with grain."""
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    wall = (np.array([0.80, 0.74, 0.62]) * (1.15 - 0.5 * x[..., None])).clip(0, 1)
    grain = 0.5 + 0.5 * np.sin(60 * (y + 0.02 * np.sin(9 * x)) + 3 * np.sin(4 * x))
    board = np.array([0.55, 0.36, 0.20]) * (0.75 + 0.25 * grain[..., None]) * (1.1 - 0.3 * x[..., None])
    return (np.where(y[..., None] < 0.34, wall, board) * 255 + 0.5).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "photograph.png")
        write_png(file, stand_in())
        behind = Photograph(file, keep=("robot", "cube"))
        stages = (behind, Jitter(brightness=0.3, saturation=0.5), On(Noise(12.0), outputs=("rgb",)), Resize(40, 40))
        camera = CameraSpec(
            name="seen", pos=(0.55, 0.3, 0.45), target=(-0.1, 0, 0.12), fovy=0.9, width=SIZE, height=SIZE
        )
        pictures = []
        words = ("drawn", "Photograph", "Jitter", "On(Noise)", "Resize(40, 40)")
        for k, word in enumerate(words):
            vision = Vision(cameras=(camera,), stages=stages[:k])
            env = manikin.make("PickCube-v2", observe="rgb", vision=vision)
            picture = env.reset(seed=3)[0]["cameras"]["seen"]["rgb"][0].numpy()
            picture = picture.repeat(SIZE // len(picture), 0).repeat(SIZE // picture.shape[1], 1)
            pictures.append(caption(picture, [word]))
            env.close()
        write_png(options.out / "stages.png", tile(pictures, columns=5))


if __name__ == "__main__":
    main()
