"""Nested values in a safetensors file: tensors as they are, the rest as JSON. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from manikin.data.recording.durable import write_file
from manikin.env.state.packed import pack_to, unpacked
from manikin.errors import AssetError, DataError

__all__ = ["read", "write"]


def write(path: Path, tree: Any, about: Mapping[str, Any] | None = None) -> None:
    """Write a tree of dictionaries, lists, tuples, tensors, arrays, numbers, text and snapshots.

    The file appears whole or not at all: it is written under another name, synced, and renamed.

    Args:
        path: of the file.
        tree: what to write.
        about: JSON that can be read without the tensors.

    Raises:
        DataError: the disk is full or the folder cannot be written; a file of that name from before is as it was.
        TypeError: a value of another kind.
    """
    write_file(path, lambda place: pack_to(place, tree, about))


def read(path: Path, *, tree: bool = True) -> tuple[Any, dict[str, Any]]:
    """The tree and what the file says about itself; with ``tree=False`` only that.

    Raises:
        AssetError: no such file.
        DataError: it is damaged, or was not written by :func:`write`.
    """
    if not path.is_file():
        raise AssetError(f"no file {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            about = json.loads(metadata["about"])
            if not tree:
                return None, about
            return unpacked(metadata, file.get_tensor), about
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise DataError(f"{path} is no checkpoint, or is damaged: {type(error).__name__}: {error}") from None
