"""`manikin object`: a mesh or a scan made into an object for tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from manikin.cli.common.documented import documented
from manikin.cli.common.options import RendererWord
from manikin.cli.common.terminal import NOT_GOOD, OK, console, counted

__all__ = ["ObjectOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class ObjectOptions:
    """Options of `manikin object`."""

    file: tyro.conf.Positional[Path]
    """The mesh: OBJ, STL, PLY, GLB, DAE, or what else trimesh reads."""
    out: Path | None = None
    """Folder of the object; by default the mesh's name, beside it."""
    name: str = ""
    """Name of the object; by default the mesh's."""
    units: Literal["", "m", "cm", "mm"] = ""
    """Unit of the mesh; by default what its format says, or a guess from its size."""
    up: Literal["", "y", "z"] = ""
    """The mesh's vertical; by default y for GLB, z for others."""
    mass: float | None = None
    """Mass [kg]; by default density times volume."""
    density: float = 1000.0
    """Density [kg/m^3]."""
    friction: float = 1.0
    """Sliding friction."""
    collision: Literal["pieces", "hull"] = "pieces"
    """What collides: convex pieces (CoACD, up to a few minutes), or the convex hull, which fills what is hollow."""
    faces: int = 5000
    """At most so many faces are drawn."""
    rest: int | None = None
    """Rest pose that is upright, a number of the picture; by default the mesh's own vertical, where it rests so."""
    gripper: str = "panda_hand"
    """Gripper that should be able to grasp it."""
    renderer: Annotated[RendererWord, documented("renderer")] = "auto"
    overwrite: bool = False
    """Replace an object that lies in the folder."""


def main(options: Annotated[ObjectOptions, tyro.conf.arg(name="")]) -> int:
    """Make an object of a mesh or a scan: units, convex pieces, mass, rest poses, checks, a picture."""
    return run(options)


def run(options: ObjectOptions) -> int:
    """Make it; 0 when nothing is an error, else 1."""
    import torch
    from rich.markup import escape

    from manikin.grippers import gripper
    from manikin.props import make_object

    torch.set_num_threads(1)
    out = console()
    hand = gripper(options.gripper)
    made = make_object(
        options.file,
        options.out,
        name=options.name,
        units=options.units,
        up=options.up,
        mass=options.mass,
        density=options.density,
        friction=options.friction,
        collision=options.collision,
        faces=options.faces,
        rest=options.rest,
        opening=(hand.name, hand.max_width) if hand.max_width else None,
        overwrite=options.overwrite,
        renderer=options.renderer,
    )
    name = made.about["name"]
    signs = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}
    for check in made.checks:
        out.print(f"{signs[check.level]}  [bold]{check.name}[/]  {escape(check.what)}", soft_wrap=True)
    bad = [sum(c.level == level for c in made.checks) for level in ("error", "warning")]
    out.print(f"\nwrote {escape(str(made.folder))}: object.json, {name}.xml, {name}.png", soft_wrap=True)
    out.print(f'use it:  b.mesh("{name}", choice=\\[prop_from_file("{escape(str(made.folder))}")])', soft_wrap=True)
    out.print(f"{counted(bad[0], 'error')}, {counted(bad[1], 'warning')}" if any(bad) else "nothing to fix")
    return NOT_GOOD if bad[0] else OK
