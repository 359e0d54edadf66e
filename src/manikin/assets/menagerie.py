"""MuJoCo Menagerie and other collections of makers' models: find a robot's folder, load its MJCF.

Looked for, in this order: ``MENAGERIE_ROOT`` (a folder of robot folders), ``MANIKIN_DATA/menagerie``, then the
optional package ``mujoco-menagerie``, which downloads a robot's folder at first use. A root that is set is trusted:
when it lacks the robot that is an error, not a reason to look elsewhere.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import mujoco

from manikin.assets import urdf
from manikin.assets.compiled import check
from manikin.assets.lint import lint
from manikin.assets.paths import data_root
from manikin.errors import AssetError, SceneError
from manikin.spec.robot import MenagerieModel, RobotFile

__all__ = ["find", "load", "root"]

_HOW = (
    "Set MENAGERIE_ROOT to a checkout of https://github.com/google-deepmind/mujoco_menagerie, or install the "
    "package mujoco-menagerie (it downloads models when first used), or use the built-in model."
)


def root() -> Path | None:
    """The Menagerie folder named by the environment (it may not exist), or None when nothing names one."""
    value = os.environ.get("MENAGERIE_ROOT")
    if value:
        return Path(value).expanduser()
    data = data_root()
    return data / "menagerie" if data is not None and (data / "menagerie").is_dir() else None


def find(model: MenagerieModel) -> Path:
    """Path of the model's MJCF file. Raises :class:`AssetError` that says where it looked and how to get it."""
    if isinstance(model, RobotFile):
        path = Path(model.folder) / model.file
        if not path.is_file():
            raise AssetError(f"there is no file {path}")
        return path
    base = root() if model.collection == "menagerie" else data_root()
    if base is None and model.collection != "menagerie":
        raise AssetError(
            f"the model {model.folder!r} needs downloaded data: set MANIKIN_DATA to the folder that contains it."
        )
    if base is None:
        folder = _from_package(model.folder)
    else:
        if not base.is_dir():
            raise AssetError(f"the {model.collection} folder {base} does not exist. {_HOW}")
        folder = base / model.folder
        if not folder.is_dir():
            has = ", ".join(sorted(p.name for p in base.iterdir() if p.is_dir())) or "no folders at all"
            raise AssetError(f"{base} has no robot {model.folder!r}; it has: {has}.")
    path = folder / model.file
    if not path.is_file():
        has = ", ".join(sorted(p.name for p in folder.glob("*.xml"))) or "no MJCF at all"
        raise AssetError(f"{folder} has no {model.file!r}; it has: {has}.")
    return path


def load(model: MenagerieModel) -> mujoco.MjSpec:
    """Load the model's MJCF as an MjSpec. Raises :class:`SceneError` with MuJoCo's message when it does not parse or
    compile (a missing mesh, a broken element)."""
    path = find(model)
    if isinstance(model, RobotFile):
        lint(path)
    if path.suffix.lower() == ".urdf":
        if not isinstance(model, RobotFile):
            return urdf.load(path)
        return urdf.load(path, packages=model.packages, convex=model.convex)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        check(spec, folders=[path.parent])
    except ValueError as error:
        raise SceneError(f"{model.folder}/{model.file} does not compile ({path}): {error}") from error
    return spec


def _from_package(folder: str) -> Path:
    looked = "looked at MENAGERIE_ROOT (not set) and MANIKIN_DATA/menagerie (not there)"
    try:
        package = importlib.import_module("mujoco_menagerie")
    except ImportError:
        raise AssetError(f"no MuJoCo Menagerie: {looked}; mujoco-menagerie is not installed. {_HOW}") from None
    try:
        return Path(package.get(folder).path())
    except Exception as error:  # unknown robot, no network, checksum: the package has its own hierarchy
        raise AssetError(f"mujoco-menagerie has not provided {folder!r}: {error}. {looked}. {_HOW}") from error
