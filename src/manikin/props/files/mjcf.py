"""The MJCF file of an object, for programs other than manikin."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import quoteattr

__all__ = ["mjcf"]


def mjcf(about: dict[str, Any]) -> str:
    """MJCF of an object alone, free to move, from what ``object.json`` says; meshes are named relative to it."""
    visual, files, name = about["visual"], about["collision"]["files"], quoteattr(about["name"])
    looks = '<texture name="visual" type="2d" file="texture.png"/>\n    ' if visual.get("texture") else ""
    paint = 'texture="visual"' if looks else f'rgba="{_row(visual["rgba"])}"'
    material = f'<material name="visual" {paint}/>'
    meshes = "\n".join(f'    <mesh name="piece_{k:02d}" file="{f}" inertia="convex"/>' for k, f in enumerate(files))
    geoms = "\n".join(
        f'      <geom type="mesh" mesh="piece_{k:02d}" friction="{about["friction"]:g} 0.005 0.0001" group="3"/>'
        for k in range(len(files))
    )
    return f"""<mujoco model={name}>
  <asset>
    {looks}{material}
    <mesh name="visual" file="{visual["file"]}" inertia="convex"/>
{meshes}
  </asset>
  <worldbody>
    <body name={name} pos="0 0 {about["rest"][0]["height"]:g}">
      <freejoint/>
      <inertial pos="{_row(about["com"])}" mass="{about["mass"]:.9g}" fullinertia="{_row(about["inertia"])}"/>
      <geom type="mesh" mesh="visual" material="visual" contype="0" conaffinity="0" group="2"/>
{geoms}
    </body>
  </worldbody>
</mujoco>
"""


def _row(values: Any) -> str:
    return " ".join(f"{v:.9g}" for v in values)
