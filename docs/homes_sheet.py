"""Draw the built-in apartments into docs/images/homes.png, and floor plans with a way into homes-plans.png.

    python docs/homes_sheet.py

Run it when furniture or an apartment has changed, and look at what comes out: nothing floats, intersects or is upside
down, and every way keeps away from furniture.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np

from manikin.homes import VARIATIONS, Apartment, apartment, free_space, furnish
from manikin.homes.plan import floor_plan
from manikin.render import make_renderer, tile, write_png
from manikin.render.files.caption import caption
from manikin.scene.builder import SceneBuilder
from manikin.spec.physics import Physics

IMAGES = Path(__file__).parent / "images"
RADIUS = 0.3  # [m]


def picture(home: Apartment, *, width: int, height: int, share: float = 0.0) -> np.ndarray:
    """(height, width, 3) of an apartment from above, its joints opened by ``share`` of their range."""
    b = SceneBuilder([], Physics())
    furnish(b, home)
    model = b.compile().model
    data = mujoco.MjData(model)
    data.qpos[:] = model.jnt_range[:, 1] * share
    mujoco.mj_forward(model, data)
    drawing = make_renderer("rays", samples=2)
    image = drawing.rgb(model, data, b.cameras["human_camera"], width=width, height=height)
    drawing.close()
    return caption(image, [home.name])


def plan(home: Apartment) -> np.ndarray:
    """The floor plan with the way from the sofa to the fridge."""
    free = free_space(home, radius=RADIUS)
    ends = [
        free.sample(np.full((1, 3), 0.5), near=np.array(home.of_kind(kind)[0].pos[:2]), within=1.3)[0, :2]
        for kind in ("sofa", "fridge")
    ]
    length = free.distances(ends[0][None], ends[1])[0]
    return caption(floor_plan(free, path=free.path(*ends), scale=1), [f"{home.name}: {length:.1f} m"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder for the pictures")
    parser.add_argument("--quick", action="store_true", help="one apartment, small")
    options = parser.parse_args()
    homes = [apartment(seed) for seed in range(1 if options.quick else VARIATIONS)]
    width, height = (64, 48) if options.quick else (420, 320)
    pictures = [picture(home, width=width, height=height, share=0.5 if i % 2 else 0.0) for i, home in enumerate(homes)]
    write_png(options.out / "homes.png", tile(pictures, 4))
    plans = [plan(home) for home in homes]
    size = np.max([p.shape for p in plans], axis=0)
    whole = [np.pad(p, [(0, a - b) for a, b in zip(size, p.shape, strict=True)], constant_values=70) for p in plans]
    write_png(options.out / "homes-plans.png", tile(whole, 4))


if __name__ == "__main__":
    main()
