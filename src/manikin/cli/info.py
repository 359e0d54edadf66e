"""`manikin info`: one task on one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord, TaskOptions, load_task
from manikin.cli.common.terminal import OK, console

__all__ = ["InfoOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class InfoOptions(TaskOptions):
    """Options of `manikin info`."""

    task: tyro.conf.Positional[str]
    """Task id (PickCube-v2), module:Class or file.py:Class."""
    control: Annotated[str | None, documented("control")] = None
    markdown: bool = False
    """Print the page as Markdown source."""
    picture: Path | None = None
    """Also write a picture of a start into this PNG file."""
    page: Path | None = None
    """Also write a page of HTML: pictures, segmentation, objects, cameras, and the real photograph where there is
    one."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"
    seed: int = 0
    """Which start the picture and the page show."""


def main(options: Annotated[InfoOptions, tyro.conf.arg(name="")]) -> int:
    """Show a task: what is observed, what each number of an action means, how it is rewarded, its options."""
    return run(options)


def run(options: InfoOptions) -> int:
    """Show it; 0 done."""
    from rich.markdown import Markdown

    from manikin.author.sheet import task_sheet
    from manikin.errors import ConfigError

    out, task = console(), load_task(options.task)
    if options.picture is not None and options.picture.suffix.lower() != ".png":
        raise ConfigError(f"--picture writes PNG files, so its name ends in .png, not {options.picture.name!r}")
    if options.page is not None and options.page.suffix.lower() != ".html":
        raise ConfigError(f"--page writes HTML files, so its name ends in .html, not {options.page.name!r}")
    chosen = options.chosen(task)
    sheet = task_sheet(task, control=options.control, **chosen)
    if options.markdown:
        print(sheet.markdown())
    else:
        out.print(Markdown(sheet.markdown()))
    if options.picture is not None:
        from manikin.env.make import make
        from manikin.render import write_png

        env = make(task, options=options.env_options(task, reward="none", control=None, renderer=options.renderer))
        env.reset(seed=options.seed)
        path = write_png(options.picture, env.image(width=640, height=480))
        env.close()
        out.print(f"\nwrote {path}", soft_wrap=True)
    if options.page is not None:
        from manikin.author.task_page import write_task_page

        path = write_task_page(options.page, sheet, task, chosen, renderer=options.renderer, seed=options.seed)
        out.print(f"\nwrote {path}", soft_wrap=True)
    return OK
