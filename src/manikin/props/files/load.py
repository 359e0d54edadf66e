"""The folder that ``manikin object`` writes, and how it becomes a prop.

``object.json`` says what the object is; beside it lie the meshes, an MJCF file for other programs and a picture. Its
frame has z up as the object lies at rest, and its origin in the middle of the box around what collides.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from manikin.assets.paths import absolute, file_hash
from manikin.errors import AssetError, DataError
from manikin.spec.prop import Mesh, Prop, Shape

__all__ = ["ABOUT", "FORMAT", "VERSION", "about_object", "content_hash", "inertia_words", "prop_from_file"]

ABOUT = "object.json"
FORMAT = "manikin-object"
VERSION = 1
_SAYS = ("name", "mass", "com", "inertia", "friction", "visual", "collision", "rest", "files", "source")


def prop_from_file(folder: str | os.PathLike[str], *, name: str = "") -> Prop:
    """The object in a folder that ``manikin object`` wrote, for ``b.mesh("mug", choice=[prop_from_file("mug")])``.

    Args:
        folder: the folder, or its ``object.json``.
        name: how the object is called; default as in the file.

    Raises:
        AssetError: the folder, its ``object.json`` or a mesh is missing.
        DataError: the file is none of ours, or a mesh was changed after it was made.
    """
    place = absolute(folder)
    place = place.parent if place.name == ABOUT else place
    about = about_object(place)
    for file, was in about["files"].items():
        if not (place / file).is_file():
            raise AssetError(f"{place} lacks {file}, which {ABOUT} names; make the object again: manikin object")
        if file_hash(place / file) != was:
            raise DataError(f"{place / file} was changed after the object was made; make it again: manikin object")
    digest = content_hash(about)
    visual, collision = about["visual"], about["collision"]
    label = f"{about['name']}-{digest[:12]}"  # a scene may hold two objects of one name
    texture = str(place / visual["texture"]) if visual.get("texture") else ""
    seen = Mesh(name=f"{label}/visual", file=str(place / visual["file"]), texture=texture)
    r, g, b, a = visual["rgba"]
    pieces = [Mesh(name=f"{label}/{Path(f).stem}", file=str(place / f)) for f in collision["files"]]
    x, y, z = about["com"]
    return Prop(
        name=name or about["name"],
        shapes=tuple(Shape(type="mesh", mesh=piece) for piece in pieces),
        looks=(Shape(type="mesh", mesh=seen, rgba=None if texture else (r, g, b, a)),),
        mass=float(about["mass"]),
        com=(x, y, z),
        inertia=tuple(map(float, about["inertia"])),  # type: ignore[arg-type]
        friction=float(about["friction"]),
        source=f"{about['source']['file']}, sha256 {digest}",
    )


def about_object(folder: Path) -> dict[str, Any]:
    """What ``object.json`` says.

    Raises:
        AssetError: there is no such folder or file.
        DataError: it is no ``object.json`` of ours, of a newer version, or lacks an entry.
    """
    path = folder / ABOUT
    if not path.is_file():
        raise AssetError(f"{folder} has no {ABOUT}; make the object with: manikin object FILE --out {folder.name}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{path} is not of the format {FORMAT!r}")
    if about.get("version") != VERSION:
        raise DataError(f"{path} is of version {about.get('version')}; this manikin reads version {VERSION}")
    missing = [word for word in _SAYS if word not in about]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}")
    return about


def content_hash(about: dict[str, Any]) -> str:
    """SHA-256, 64 hex digits, of what the object is: all of ``object.json`` but its checks, meshes through their own
    hashes."""
    content = {key: value for key, value in about.items() if key != "checks"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def inertia_words(inertia: Any) -> tuple[float, float, float, float, float, float]:
    """xx, yy, zz, xy, xz, yz of a (3, 3) inertia."""
    i = inertia
    return tuple(float(i[a][b]) for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))  # type: ignore[return-value]
