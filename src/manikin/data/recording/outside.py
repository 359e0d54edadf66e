"""Files that came from elsewhere: opened only where they keep to themselves, and whatever is wrong with one is named.

HDF5 can lead out of a file (external links, external storage, virtual datasets), round in a circle (links) and
declare more than there is (chunks that were never written read as zeros). A recording needs none of this.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from manikin.errors import DataError, ManikinError

__all__ = ["open_hdf5", "read_json", "reading"]

_DEPTH = 64  # groups within groups
_SQUEEZED = 1100  # deflate, the strongest filter that h5py has, makes at most 1032 bytes of one
_KEEPS_SIZE = {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever goes wrong inside is the fault of the file that is read.

    Raises:
        DataError: for any other error than manikin's own; ``what`` is said before it.
    """
    try:
        yield
    except ManikinError:
        raise
    except Exception as error:
        said = str(error) or type(error).__name__
        if isinstance(error, KeyError) and " " not in said:  # a name alone
            said = f"the entry {said} is missing"
        raise DataError(f"{what}: {said}") from error


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a file of JSON.

    Raises:
        DataError: no such file, or it holds no object; ``what`` is said before it.
    """
    with reading(what):
        _refuse_special(path)
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"it is not JSON: {error}") from None
        if not isinstance(found, dict):
            raise TypeError(f"{path.name} holds {type(found).__name__} where an object is expected")
        return found


def open_hdf5(path: Path, *, again: bool = False) -> Any:
    """An HDF5 file, open for reading, that keeps to itself.

    Args:
        path: the file.
        again: it was opened before by this process, so it is not walked over once more.

    Raises:
        DataError: the file is not HDF5, is damaged, links to another file or in a circle, or declares
            more than it contains.
    """
    with reading(f"{path} cannot be opened"):
        _refuse_special(path)
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        whole = h5py.is_hdf5(path)
        what = "is damaged or cut short" if whole else "is not an HDF5 file, or its beginning is damaged"
        raise DataError(f"{path} {what}: {error}") from None
    try:
        with reading(f"{path} is damaged"):
            if not again:
                _check(file, path)
    except BaseException:
        file.close()
        raise
    return file


def _refuse_special(path: Path) -> None:
    """A pipe would be waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(f"{path.name} is not a file")


def _check(file: Any, path: Path) -> None:
    """Walk over all that is linked. Links by name wait until it is known that none leads out of the file."""
    unsafe = f"{path} cannot be read safely:"
    held, groups = 0, {h5py.h5o.get_info(file.id).addr}
    waiting: list[tuple[Any, str]] = [(file.id, "")]
    by_name: list[tuple[Any, bytes, str]] = []
    while waiting:
        group, above = waiting.pop()
        if above.count("/") > _DEPTH:
            raise DataError(f"{unsafe} its groups lie more than {_DEPTH} deep")
        for name in group:
            where, kind = f"{above}/{name.decode(errors='replace')}", group.links.get_info(name).type
            if kind == h5py.h5l.TYPE_SOFT:
                by_name.append((group, name, where))
                continue
            if kind != h5py.h5l.TYPE_HARD:
                raise DataError(f"{unsafe} {where} is a link out of the file{_target(group, name, kind)}")
            found = h5py.h5o.open(group, name)
            if not isinstance(found, h5py.h5g.GroupID):
                held += _stored(found, f"{unsafe} {where}")
                continue
            address = h5py.h5o.get_info(found).addr
            if address in groups:
                raise DataError(f"{unsafe} {where} is a group that is linked twice")
            groups.add(address)
            waiting.append((found, where))
    for group, name, where in by_name:
        try:
            found = h5py.h5o.open(group, name)
        except (KeyError, RuntimeError, OSError):
            raise DataError(f"{unsafe} {where} is a link to nothing, or to itself") from None
        if isinstance(found, h5py.h5g.GroupID):
            raise DataError(f"{unsafe} {where} is a link to a group, which may lead in a circle")
        held += _stored(found, f"{unsafe} {where}")
    if held > path.stat().st_size:
        raise DataError(f"{unsafe} its datasets together are {held} bytes, more than the file")


def _target(group: Any, name: bytes, kind: int) -> str:
    """Where a link leads, in words."""
    if kind != h5py.h5l.TYPE_EXTERNAL:
        return ""
    file, inside = group.links.get_val(name)
    return f", to {inside.decode(errors='replace')} in {file.decode(errors='replace')}"


def _stored(data: Any, what: str) -> int:
    """Bytes that a dataset takes in the file.

    Raises:
        DataError: it is none, they are not in this file, or what it declares cannot be made of them.
    """
    if not isinstance(data, h5py.h5d.DatasetID):
        raise DataError(f"{what} is neither a group nor a dataset")
    made = data.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL:
        raise DataError(f"{what} is virtual: its values are in other datasets")
    if made.get_external_count():
        raise DataError(f"{what} has its values in another file, {made.get_external(0)[0].decode(errors='replace')}")
    stored = int(data.get_storage_size())
    filters = {made.get_filter(i)[0] for i in range(made.get_nfilters())}
    most = stored * (_SQUEEZED if filters - _KEEPS_SIZE else 1)
    shape = (0,) if data.shape is None else data.shape
    declared = math.prod(shape) * data.get_type().get_size()
    if declared > most:
        raise DataError(f"{what} declares {declared} bytes, and holds {stored}")
    return stored
