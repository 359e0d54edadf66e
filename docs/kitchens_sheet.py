"""Draw kitchens into docs/images/kitchens.png: the built-in ones closed and open, and, where MANIKIN_DATA has robocasa,
some of RoboCasa's layouts into docs/images/kitchens-robocasa.png.

    python docs/kitchens_sheet.py

Run it when a fixture or a layout has changed, and look at what comes out: nothing floats, intersects or is upside down.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from homes_sheet import drawn

from manikin.assets.paths import data_root
from manikin.homes import Apartment, furnish
from manikin.homes.kitchens import KITCHENS, kitchen, robocasa_kitchen
from manikin.render import tile, write_png
from manikin.scene.builder import SceneBuilder
from manikin.spec.camera import CameraSpec
from manikin.spec.physics import Physics

IMAGES = Path(__file__).parent / "images"
LAYOUTS = (1, 3, 4, 7, 12, 20, 25, 30, 41)


def picture(home: Apartment, *, width: int, height: int, share: float = 0.0) -> np.ndarray:
    """(height, width, 3) of a kitchen from its front wall, which is left out; joints open by ``share`` of their
    range."""
    (x0, y0), (x1, y1) = home.low, home.high
    eye = ((x0 + x1) / 2, y0 - 0.25 * (y1 - y0), 2.9)
    walls = tuple(w for w in home.walls if w.pos[1] > y0 + 0.1)
    b = SceneBuilder([], Physics())
    furnish(b, replace(home, walls=walls))
    look = ((x0 + x1) / 2, (y0 + y1) / 2 + 0.3 * (y1 - y0), 0.6)
    b.camera(CameraSpec(name="look", pos=eye, target=look, fovy=1.1, width=width, height=height))
    return drawn(b, home.name, "look", width=width, height=height, share=share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="one kitchen, small")
    options = parser.parse_args()
    size = {"width": 64, "height": 48} if options.quick else {"width": 420, "height": 320}
    names = KITCHENS[:1] if options.quick else KITCHENS
    closed, opened = ([picture(kitchen(name), share=share, **size) for name in names] for share in (0.0, 0.6))
    write_png(options.out / "kitchens.png", tile([*closed, *opened], len(names)))
    data = data_root()
    if not options.quick and data is not None and (data / "robocasa").is_dir():
        pictures = [picture(robocasa_kitchen(k, k), **size) for k in LAYOUTS]
        write_png(options.out / "kitchens-robocasa.png", tile(pictures, 3))


if __name__ == "__main__":
    main()
