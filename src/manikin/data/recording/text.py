"""Text in HDF5 where a flipped bit is found.

HDF5 keeps text of any length in a heap that has no checksum. Text of a fixed length lies with the numbers of a dataset,
under its checksum, and with those of an attribute, under that of the object it belongs to (from HDF5's format 1.10 on).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import h5py
import numpy as np

from manikin.errors import DataError

__all__ = ["LIBVER", "attribute", "as_fixed", "put_attribute"]

LIBVER = ("v110", "v110")
"""Of HDF5's formats the one that recordings are written in: the first in which names, shapes and attributes have
checksums too."""


def as_fixed(words: Iterable[str]) -> np.ndarray:
    """(n,) UTF-8 of one length, for a dataset.

    Raises:
        DataError: a zero byte is in a word, which ends text of a fixed length.
    """
    encoded = [word.encode() for word in words]
    if any(b"\0" in word for word in encoded):
        raise DataError("text of a recording cannot hold a zero byte")
    return np.array(encoded, h5py.string_dtype("utf-8", max([1, *map(len, encoded)])))


def put_attribute(owner: Any, name: str, text: str) -> None:
    """Set a text attribute of a group or dataset. Raises :class:`DataError` as :func:`as_fixed`."""
    value = as_fixed([text])
    owner.attrs.create(name, value[0], dtype=value.dtype)


def attribute(owner: Any, name: str, default: Any = None) -> Any:
    """An attribute, text as ``str``, also of older recordings; ``default`` where there is none."""
    value = owner.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else value
