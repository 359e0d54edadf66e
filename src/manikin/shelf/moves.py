"""Packages on their way: to a place, from it, and what lies there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from manikin.errors import AssetError, ConfigError, DataError
from manikin.shelf.manifest import MANIFEST, Package, check_files, read_manifest
from manikin.shelf.places import INDEX, Shelf

__all__ = ["get", "listing", "push"]


def push(place: Shelf, item: Package, file: Path) -> str:
    """Put a package somewhere: its file, then its manifest, by which it is there, then the index.

    Args:
        place: where to.
        item: what :func:`~manikin.shelf.manifest.describe` says of the file.
        file: the file.

    Returns:
        The SHA-256 of the manifest (64 hex digits), with which :func:`get` can be sure to get this package.

    Raises:
        ConfigError: another package of that name is there.
        AssetError, DataError: the place cannot be reached, or takes no files.
    """
    manifest = item.to_json()
    there = listing(place)
    if item.name in there and there[item.name] != item:
        raise ConfigError(f"another package is called {item.name!r} there; choose another name")
    place.store(f"{item.name}/{item.file}", file)
    place.store(f"{item.name}/{MANIFEST}", manifest)
    place.store(INDEX, (json.dumps({"packages": sorted({*there, item.name})}) + "\n").encode())
    return hashlib.sha256(manifest).hexdigest()


def listing(place: Shelf) -> dict[str, Package]:
    """Packages by name, sorted; none where nothing was pushed yet.

    Raises:
        AssetError: the place cannot be reached.
        DataError: an index or a manifest is none.
    """
    names = place.names()
    if names is None:
        try:
            index = place.read(INDEX)
        except AssetError as error:
            if " 404 " not in str(error):
                raise
            return {}
        try:
            names = sorted(str(name) for name in json.loads(index)["packages"])
        except (ValueError, TypeError, KeyError):
            raise DataError(f"{INDEX} is no index of packages") from None
    return {name: _manifest(place, name)[0] for name in names}


def get(place: Shelf, name: str, folder: Path, *, sha256: str = "") -> Package:
    """Fetch a package into ``folder/name``, whole and checked, or not at all.

    Args:
        place: where from.
        name: of the package.
        folder: for the package's folder.
        sha256: beginning of the manifest's SHA-256, as :func:`push` returned it; by default any manifest is believed.

    Raises:
        AssetError: there is no such package, or the place cannot be reached.
        ConfigError: the folder holds something else.
        DataError: it was changed since it was pushed, or is not what its manifest says.
    """
    if Path(name).name != name or name.startswith("."):
        raise ConfigError(f"{name!r} is not a valid name of a package")
    item, manifest = _manifest(place, name)
    found = hashlib.sha256(manifest).hexdigest()
    if not found.startswith(sha256.lower()):
        raise DataError(f"the manifest of {name!r} hashes to {found[:12]}, not to {sha256[:12]}: it was changed")
    target = folder / name
    if target.exists():
        if (target / MANIFEST).is_file() and (target / MANIFEST).read_bytes() == manifest:
            check_files(item, target)
            return item
        raise ConfigError(f"{target} is there already and is another package; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder))
    except OSError as error:
        raise DataError(f"cannot write into {folder}: {error.strerror}") from None
    try:
        place.fetch(f"{name}/{item.file}", part / item.file, item.size)
        check_files(item, part)
        (part / MANIFEST).write_bytes(manifest)
        os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return item


def _manifest(place: Shelf, name: str) -> tuple[Package, bytes]:
    text = place.read(f"{name}/{MANIFEST}")
    item = read_manifest(text, f"{name}/{MANIFEST}")
    if item.name != name:
        raise DataError(f"{name}/{MANIFEST} is of another package, {item.name!r}")
    return item, text
