"""A rigid object as data: what collides, what is seen, what it weighs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mesh", "Prop", "Shape"]

RGBA = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """Triangles: from a file, or from points whose convex hull is meant.

    Attributes:
        name: of the asset; two meshes of one name in a scene are the same mesh.
        file: path of an OBJ, STL or MSH file.
        points: instead of a file, x, y, z of each point one after another [m].
        texture: path of an image for the surface; needs texture coordinates in the file.
    """

    name: str
    file: str = ""
    points: tuple[float, ...] = ()
    texture: str = ""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One primitive or mesh of a compound part; ``size`` as in MJCF [m], ``pos`` in the part's frame.

    A mesh (``type="mesh"``) collides as its convex hull and needs no size. ``density`` [kg/m^3] and ``friction``
    (sliding) are the shape's own where it has them, else those of its part.
    """

    type: str
    size: tuple[float, ...] = ()
    pos: tuple[float, float, float] = (0, 0, 0)
    quat: tuple[float, float, float, float] = (1, 0, 0, 0)
    rgba: RGBA | None = None
    mesh: Mesh | None = None
    density: float | None = None
    friction: float | None = None


@dataclass(frozen=True, kw_only=True)
class Prop:
    """An object to choose from: ``b.mesh("object", choice=[prop, prop, ...])``.

    Attributes:
        name: of the object.
        shapes: what collides; also what is seen, unless there are ``looks``.
        looks: what is seen instead; does not collide and weighs nothing.
        mass: [kg], spread evenly over the volume of the shapes; None for 1000 kg/m^3.
        com: centre of mass [m], where it is known better than from the shapes; needs ``mass`` and ``inertia``.
        inertia: xx, yy, zz, xy, xz, yz [kg m^2] about ``com``, along the object's axes.
        friction: sliding.
        source: where it comes from, for provenance.
    """

    name: str
    shapes: tuple[Shape, ...]
    looks: tuple[Shape, ...] = ()
    mass: float | None = None
    com: tuple[float, float, float] | None = None
    inertia: tuple[float, float, float, float, float, float] | None = None
    friction: float = 1.0
    source: str = ""
