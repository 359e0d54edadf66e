"""RoboCasa's kitchens. Layouts and styles are the user's (MANIKIN_DATA/robocasa); its meshes and pictures are not used.

What RoboCasa has as a mesh is built from primitives of the layout's size; what it has as a picture is one colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manikin.assets.paths import data_root
from manikin.errors import AssetError, ConfigError, DataError, UnknownNameError
from manikin.homes.apartment import Apartment
from manikin.homes.kitchens.assemble import Colours, assembled
from manikin.spec.links import RGBA

__all__ = ["kitchen", "layouts", "styles"]

_SCENES = "robocasa/models/assets/scenes"
# The first word that is in a texture's name; what RoboCasa shows as wood or stone is one colour here.
_WORDS: tuple[tuple[str, RGBA], ...] = (
    ("warm_white", (0.93, 0.9, 0.84, 1)),
    ("dark_gray", (0.33, 0.34, 0.36, 1)),
    ("lighter_gray", (0.8, 0.8, 0.8, 1)),
    ("light_gray", (0.7, 0.7, 0.71, 1)),
    ("blue_gray", (0.45, 0.52, 0.58, 1)),
    ("gray_wood", (0.55, 0.52, 0.49, 1)),
    ("dark_blue", (0.18, 0.25, 0.4, 1)),
    ("light_blue", (0.6, 0.73, 0.82, 1)),
    ("dark_marble", (0.25, 0.25, 0.27, 1)),
    ("marble", (0.86, 0.86, 0.85, 1)),
    ("granite", (0.4, 0.39, 0.38, 1)),
    ("dark_wood", (0.36, 0.25, 0.18, 1)),
    ("light_wood", (0.8, 0.68, 0.5, 1)),
    ("walnut", (0.4, 0.28, 0.2, 1)),
    ("wood", (0.64, 0.48, 0.33, 1)),
    ("red_brick", (0.62, 0.36, 0.3, 1)),
    ("green", (0.5, 0.62, 0.5, 1)),
    ("blue", (0.35, 0.48, 0.62, 1)),
    ("cream", (0.92, 0.87, 0.75, 1)),
    ("beige", (0.78, 0.7, 0.58, 1)),
    ("white", (0.92, 0.92, 0.91, 1)),
    ("black", (0.15, 0.15, 0.16, 1)),
    ("gray", (0.52, 0.53, 0.55, 1)),
)
# For textures that have only a number.
_NUMBERED: tuple[RGBA, ...] = (
    (0.9, 0.89, 0.86, 1),
    (0.62, 0.5, 0.38, 1),
    (0.45, 0.52, 0.5, 1),
    (0.34, 0.38, 0.46, 1),
    (0.75, 0.72, 0.68, 1),
    (0.42, 0.3, 0.22, 1),
    (0.6, 0.64, 0.6, 1),
)


def layouts(folder: str | Path | None = None) -> tuple[str, ...]:
    """Names of all layouts in the folder, ``layout001`` for example. Raises AssetError where there is none."""
    return tuple(sorted(_files("layout", folder)))


def styles(folder: str | Path | None = None) -> tuple[str, ...]:
    """Names of all styles in the folder, ``style001`` for example. Raises AssetError where there is no such folder."""
    return tuple(sorted(_files("style", folder)))


def kitchen(layout: str | int, style: str | int = "style001", folder: str | Path | None = None) -> Apartment:
    """A kitchen of RoboCasa from built-in parts. Needs PyYAML.

    Args:
        layout: its name or number, see :func:`layouts`.
        style: its name or number, see :func:`styles`; the colours.
        folder: of the data; None for ``MANIKIN_DATA/robocasa``.

    Returns:
        An apartment named ``layout001/style001``. Its notes say what is left out, cut, or replaced.

    Raises:
        AssetError: the folder is missing.
        UnknownNameError: no such layout or style.
        DataError: a file is damaged.
        ConfigError: PyYAML is not installed.
    """
    (name, plan), (look, colours) = (_read(what, word, folder) for what, word in (("layout", layout), ("style", style)))
    notes = [f"its textures are not in the data: one colour each, by their names in {look}, stands in"]
    if not isinstance(plan.get("room"), Mapping) or not all(isinstance(rows, Mapping) for rows in plan.values()):
        raise DataError(f"{name} is no layout of a kitchen: it needs a room and groups of fixtures")
    return assembled(f"{name}/{look}", plan, _colours(colours), notes)


def _files(what: str, folder: str | Path | None) -> dict[str, Path]:
    data = data_root()
    root = Path(folder) if folder is not None else None if data is None else data / "robocasa"
    found = None if root is None else root / _SCENES / f"kitchen_{what}s"
    if found is None or not found.is_dir():
        raise AssetError(
            f"RoboCasa is not at {root}: it needs {_SCENES}/kitchen_{what}s. Set MANIKIN_DATA to the folder that has "
            "robocasa, or pass folder=; without it there are the built-in kitchens"
        )
    return {path.stem: path for path in found.glob(f"*/{what}*.yaml")}


def _read(what: str, word: str | int, folder: str | Path | None) -> tuple[str, dict[str, Any]]:
    files = _files(what, folder)
    name = f"{what}{word:03d}" if isinstance(word, int) else word
    if name not in files:
        raise UnknownNameError(f"{what} of RoboCasa", name, sorted(files))
    try:
        import yaml
    except ImportError as error:
        raise ConfigError("RoboCasa's kitchens need PyYAML: pip install 'manikin[homes]'") from error
    try:
        found = yaml.safe_load(files[name].read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DataError(f"{files[name]} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{files[name]} is no {what} of a kitchen")
    return name, found


def _colours(style: Mapping[str, Any]) -> Colours:
    own = Colours()
    counter = _words(style.get("counter"))
    base = next((word for word in counter if "base" in word), "")
    top = next((word for word in counter if "top" in word), "")
    return Colours(
        front=_colour(next(iter(_words(style.get("cabinet"))), ""), own.front),
        base=_colour(base.split("_base")[0] if "_base" in base else base, own.base),
        top=_colour(top.rpartition("base_")[2], own.top),
        wall=_colour(next(iter(_words(style.get("wall"))), ""), own.wall),
    )


def _words(entry: Any) -> list[str]:
    """Names of configurations in a style's entry: a name, a list of names, or those of ``default``."""
    if isinstance(entry, Mapping):
        entry = entry.get("default", [])
    return [str(word) for word in (entry if isinstance(entry, list) else [entry] if entry else [])]


def _colour(word: str, otherwise: RGBA) -> RGBA:
    for part, rgba in _WORDS:
        if part in word:
            return rgba
    number = re.search(r"tex(\d+)", word)
    return _NUMBERED[int(number[1]) % len(_NUMBERED)] if number else otherwise
