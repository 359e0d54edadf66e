"""Draw the built-in apartments into docs/images/homes.png, and floor plans with a way into homes-plans.png; an episode
of each long task into home-episodes.png.

    python docs/homes_sheet.py

Run it when furniture or an apartment has changed, and look at what comes out: nothing floats, intersects or is upside
down, and every way keeps away from furniture. Objects lie on their receptacles, goals are green.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np

from manikin.homes import VARIATIONS, Apartment, apartment, free_space, furnish
from manikin.homes.episodes import LONG_TASKS, generate, home_of
from manikin.homes.objects import HOME_OBJECTS
from manikin.homes.plan import floor_plan
from manikin.render import make_renderer, tile, write_png
from manikin.render.files.caption import caption
from manikin.scene.builder import SceneBuilder
from manikin.spec.camera import CameraSpec
from manikin.spec.physics import Physics

IMAGES = Path(__file__).parent / "images"
RADIUS = 0.3  # [m]


def picture(home: Apartment, *, width: int, height: int, share: float = 0.0) -> np.ndarray:
    """(height, width, 3) of an apartment from above, its joints opened by ``share`` of their range."""
    b = SceneBuilder([], Physics())
    furnish(b, home)
    return drawn(b, home.name, "human_camera", width=width, height=height, share=share)


def drawn(b: SceneBuilder, name: str, camera: str, *, width: int, height: int, share: float) -> np.ndarray:
    """(height, width, 3) of what was built, its joints opened by ``share`` of their range, with a name on it."""
    model = b.compile().model
    data = mujoco.MjData(model)
    data.qpos[:] = model.jnt_range[:, 1] * share
    mujoco.mj_forward(model, data)
    drawing = make_renderer("rays", samples=2)
    image = drawing.rgb(model, data, b.cameras[camera], width=width, height=height)
    drawing.close()
    return caption(image, [name])


def plan(home: Apartment) -> np.ndarray:
    """The floor plan with the way from the sofa to the fridge."""
    free = free_space(home, radius=RADIUS)
    ends = [
        free.sample(np.full((1, 3), 0.5), near=np.array(home.of_kind(kind)[0].pos[:2]), within=1.3)[0, :2]
        for kind in ("sofa", "fridge")
    ]
    length = free.distances(ends[0][None], ends[1])[0]
    return caption(floor_plan(free, path=free.path(*ends), scale=1), [f"{home.name}: {length:.1f} m"])


def episode(task: str, *, width: int, height: int) -> np.ndarray:
    """(height, width, 3) of a validation episode: the surfaces that most objects lie on, goals in green."""
    made = next(generate(task, [0], split="val"))
    b = SceneBuilder([], Physics())
    home = home_of(made.scene)
    furnish(b, home)
    for k, one in enumerate(made.objects):
        b.part(f"object{k}", HOME_OBJECTS[one.name].shapes, kind="fixed", pos=one.pose[:3], quat=one.pose[3:])
    for k, target in enumerate(made.targets):
        shapes = HOME_OBJECTS[made.objects[target.object].name].shapes
        part = b.part(f"goal{k}", shapes, kind="fixed", pos=target.goal[:3], quat=target.goal[3:])
        for name in part.geom_names:
            b.spec.geom(name).rgba = (0.1, 0.9, 0.2, 1)
    model = b.compile().model
    data = mujoco.MjData(model)
    for mechanism, positions in made.joints.items():
        for joint, value in positions.items():
            data.joint(f"{mechanism}/{joint}").qpos = value
    mujoco.mj_forward(model, data)
    counter = np.array(home.of_kind("counter")[0].pos)
    camera = CameraSpec(name="see", pos=(*(counter[:2] - (0.2, 2.4)), 2.2), target=(*counter[:2], 0.8), fovy=0.95)
    drawing = make_renderer("rays", samples=2)
    image = drawing.rgb(model, data, camera, width=width, height=height)
    drawing.close()
    return caption(image, [f"{task}, {made.scene}"])


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
    tasks = list(LONG_TASKS)[: 1 if options.quick else None]
    write_png(options.out / "home-episodes.png", tile([episode(task, width=width, height=height) for task in tasks], 3))


if __name__ == "__main__":
    main()
