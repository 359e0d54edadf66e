"""A picture of an object: each rest pose on a table, as it looks and as it collides."""

from __future__ import annotations

import colorsys
from typing import Any

import mujoco
import numpy as np

from manikin.props.files.rest import to_matrix
from manikin.render import make_renderer
from manikin.render.files.caption import caption
from manikin.scene.candidates import add_geom
from manikin.spec.camera import CameraSpec
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["picture"]

_SHOWN = 4  # rest poses


def picture(
    prop: Prop, about: dict[str, Any], pieces: list[np.ndarray], *, size: int = 240, renderer: str = "auto"
) -> np.ndarray:
    """(2 size, k size, 3) uint8: above the first four rest poses, below the convex pieces in them, in colours.

    Args:
        prop: the object.
        about: what ``object.json`` says.
        pieces: points (n, 3) of each convex piece, in the object's frame.
        size: [pixels] of one square.
        renderer: draws it, see :func:`manikin.render.make_renderer`.
    """
    rests = about["rest"][:_SHOWN]
    coloured = [
        Shape(type="mesh", mesh=Mesh(name=f"piece{k}", points=tuple(p.ravel().tolist())), rgba=_colour(k))
        for k, p in enumerate(pieces)
    ]
    drawing = make_renderer(renderer, samples=3, shadows=True)
    try:
        rows = []
        for row, shapes in enumerate((prop.looks, coloured)):
            tiles = []
            for k, rest in enumerate(rests):
                image = _one(drawing, shapes, rest, about["size"], size)
                word = f"rest {k}: {rest['probability']:.0%}" if row == 0 else f"{len(pieces)} convex"
                tiles.append(caption(image, [word]))
            rows.append(np.concatenate(tiles, 1))
        return np.concatenate(rows, 0)
    finally:
        drawing.close()


def _one(renderer: Any, shapes: Any, rest: dict[str, Any], extents: list[float], size: int) -> np.ndarray:
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, size=(2, 2, 0.05), pos=(0, 0, -0.05), rgba=(0.66, 0.55, 0.44, 1)
    )
    spec.worldbody.add_light(pos=(0.6, 0.8, 1.8), dir=(-0.35, -0.45, -0.82), diffuse=(0.6, 0.6, 0.6))
    spec.visual.headlight.ambient = spec.visual.headlight.diffuse = (0.35, 0.35, 0.35)
    body = spec.worldbody.add_body(pos=(0, 0, rest["height"]), quat=rest["quat"])
    for k, shape in enumerate(shapes):
        add_geom(spec, body, shape, name=f"g{k}").mass = 0.001
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    reach = float(np.linalg.norm(extents)) / 2
    high = float((np.abs(to_matrix(rest["quat"])) @ extents)[2])
    target = (0.0, 0.0, high / 2)
    away = np.array([0.78, 0.62, 0.55]) * reach * 2.9
    view = CameraSpec(name="object", pos=tuple(np.add(target, away).tolist()), target=target, fovy=0.7)
    image: np.ndarray = renderer.rgb(model, data, view, width=size, height=size)
    return image


def _colour(k: int) -> tuple[float, float, float, float]:
    r, g, b = colorsys.hsv_to_rgb((k * 0.381966) % 1, 0.55, 0.9)
    return r, g, b, 1.0
