"""`manikin align`: a task's camera laid on a photograph, by hand on a page, or by a mask."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord, TaskOptions, load_task
from manikin.cli.common.terminal import OK, console

if TYPE_CHECKING:
    from manikin.spec.camera import CameraSpec

__all__ = ["AlignOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class AlignOptions(TaskOptions):
    """Options of `manikin align`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    photo: Path
    """The photograph, a PNG (other formats need PyAV). It should have the aspect ratio of the real camera."""
    camera: str = "base_camera"
    """Which camera of the task (see manikin info)."""
    mask: Path | None = None
    """A picture of the photograph's size, white where the robot is (or what --things names). Refines the pose."""
    things: tuple[str, ...] = ()
    """What the mask marks: robots, parts or fixtures by name; by default the robots."""
    fovy: bool = False
    """With --mask: search for the field of view as well."""
    seed: int = 0
    """Seed of the episode whose start is shown."""
    out: Path = Path("align.html")
    """The page: one file that needs no network."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"


def main(options: Annotated[AlignOptions, tyro.conf.arg(name="")]) -> int:
    """Lay a task's camera on a photograph: a page with sliders, and refinement from a mask."""
    return run(options)


def run(options: AlignOptions) -> int:
    """Write the page, refine where a mask is given, print the camera."""
    from manikin.assets.pictures import read_picture
    from manikin.env.make import make
    from manikin.errors import DataError
    from manikin.render.align import align_camera, check_mask
    from manikin.render.api import make_renderer
    from manikin.view.overlay import overlay_page

    photograph = read_picture(options.photo, what="photograph")
    mask = None
    if options.mask is not None:
        mask = check_mask(read_picture(options.mask, what="mask"), photograph)
    out, task = console(), load_task(options.task)
    env = make(task, options=options.env_options(task, num_envs=1))
    try:
        env.reset(seed=options.seed)
        camera = env.camera(options.camera).resized(photograph.shape[1], photograph.shape[0])
        model, data = env.model_data(0)
        if mask is not None:
            renderer = make_renderer(options.renderer, outputs=("depth", "segmentation"))
            try:
                found = align_camera(
                    model, data, camera, mask, things=options.things, fovy=options.fovy, renderer=renderer
                )
            finally:
                renderer.close()
            camera = found.camera
            out.print(
                f"agreement with the mask (intersection over union) {found.before:.3f} -> {found.agreement:.3f}; moved "
                f"{100 * found.shift:.1f} cm and {math.degrees(found.turn):.2f} degrees; outlines "
                f"{found.pixels:.2f} pixels apart (median)",
                soft_wrap=True,
            )
        try:
            overlay_page(options.out, model, data, camera, photograph, task=env.task.id)
        except OSError as error:
            raise DataError(f"cannot write the page {options.out}: {error.strerror}") from None
    finally:
        env.close()
    for line in camera_lines(camera):
        out.print(line, soft_wrap=True, markup=False, highlight=False)
    out.print(f"page: {options.out}", soft_wrap=True)
    return OK


def camera_lines(camera: CameraSpec) -> tuple[str, str]:
    """A camera as a protocol has it, and as a task has it; numbers to a micrometre and a microradian."""
    from manikin.eval.protocol_values import toml_of

    given = {k: v for k, v in dataclasses.asdict(camera).items() if v not in (None, "")}
    if "intrinsics" in given:
        del given["fovy"]
    rounded = {k: _rounded(v) for k, v in given.items()}
    return (
        f"cameras = [{toml_of(rounded)}]",
        f"CameraSpec({', '.join(f'{k}={v!r}' for k, v in rounded.items())})",
    )


def _rounded(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_rounded(v) for v in value)
    return round(value, 6) + 0.0 if isinstance(value, float) else value
