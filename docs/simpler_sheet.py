"""Draw SIMPLER's ten environments as a policy sees them, on one sheet.

    python docs/simpler_sheet.py                            # docs/images/simpler.png: stand-ins, no photograph
    python docs/simpler_sheet.py --photographs --out DIR    # each beside its real photograph; needs MANIKIN_DATA

The photographs are not manikin's to publish: with them DIR lies outside the repository. A row then has the photograph,
the simulated robot and objects over it, and the simulated scene. Look at the sheet after a change of camera, objects or
light: edges of the table, the gripper and the handles go on where the photograph has them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import torch

import manikin
from manikin.assets.pictures import read_picture
from manikin.env.registry import task_class
from manikin.render import tile, write_png
from manikin.render.files.caption import caption
from manikin.sense.pixels import Photograph

ROOT = Path(__file__).resolve().parents[1]
WIDE = 320
TRIALS = {  # of each task the trial that is shown
    "GooglePickCokeCan-v1": 12,
    "GooglePickObject-v1": 12,
    "GoogleMoveNear-v1": 14,
    "GoogleOpenDrawer-v1": 0,
    "GoogleCloseDrawer-v1": 3,
    "GooglePlaceAppleInDrawer-v1": 13,
    "WidowXSpoonOnTowel-v2": 3,
    "WidowXCarrotOnPlate-v2": 3,
    "WidowXStackCube-v2": 3,
    "WidowXEggplantInBasket-v2": 4,
}


def small(picture: np.ndarray) -> np.ndarray:
    """(H, WIDE, 3): every pixel the mean of those under it."""
    high, wide = picture.shape[:2]
    k = max(1, wide // WIDE)
    cut = picture[: high // k * k, : wide // k * k]
    return cut.reshape(high // k, k, wide // k, k, 3).mean((1, 3)).astype(np.uint8)


def seen(task: str, look: str, *, meshes: bool) -> tuple[np.ndarray, str]:
    """What a policy sees at the start of the trial, and the photograph behind it, if there is one."""
    robot = task_class(task).robots[0] + (":menagerie" if meshes else "")
    env = manikin.make(task, robot=robot, observe="rgb", config={"trials": "grid", "look": look})
    observation, _ = env.reset(seed=[TRIALS[task]])
    (camera,) = observation["cameras"].values()
    file = ""
    for stage in env.vision.stages:
        if isinstance(stage, Photograph):
            which = int(env.h.pose.value[0]) if stage.which else 0
            file = stage.files[which]
    env.close()
    return camera["rgb"][0].numpy(), file


def sheet(pictures: list[np.ndarray], *, columns: int) -> np.ndarray:
    """Pictures of one width side by side, the lower ones with black below."""
    most = max(len(one) for one in pictures)
    return tile([np.pad(one, ((0, most - len(one)), (0, 0), (0, 0))) for one in pictures], columns=columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photographs", action="store_true", help="beside the real photographs")
    parser.add_argument("--quick", action="store_true", help="two tasks, to see that it runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder of the picture")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks = list(TRIALS)[:: 9 if options.quick else 1]
    if not options.photographs:
        os.environ.pop("MANIKIN_DATA", None)  # the same everywhere
        pictures = [caption(small(seen(task, "plain", meshes=False)[0]), [task], scale=1) for task in tasks]
        write_png(options.out / "simpler.png", sheet(pictures, columns=5))
        return
    if options.out.resolve().is_relative_to(ROOT):
        parser.error("--photographs needs --out DIR outside the repository: the photographs stay out of it")
    pictures = []
    for task in tasks:
        matched, file = seen(task, "matched", meshes=True)
        shown = [read_picture(file)[..., :3], matched, seen(task, "plain", meshes=True)[0]]
        words = (Path(file).name, task, "the simulated scene")
        pictures += [caption(small(one), [word], scale=1) for one, word in zip(shown, words, strict=True)]
    write_png(options.out / "simpler-photographs.png", sheet(pictures, columns=3))


if __name__ == "__main__":
    main()
