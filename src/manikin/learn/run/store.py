"""Nested values in a safetensors file: tensors as they are, the rest as JSON. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from manikin.data.recording.durable import write_file
from manikin.env.state.layouts import LayoutSnapshot
from manikin.errors import AssetError, DataError
from manikin.sim.snapshot import Snapshot

__all__ = ["read", "write"]

_SNAPSHOTS: dict[str, type] = {"Snapshot": Snapshot, "LayoutSnapshot": LayoutSnapshot}


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
    tensors: dict[str, torch.Tensor] = {}
    metadata = {"tree": json.dumps(_packed(tree, "", tensors)), "about": json.dumps(dict(about or {}))}
    write_file(path, save(tensors, metadata))


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
            return _unpacked(json.loads(metadata["tree"]), file.get_tensor), about
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise DataError(f"{path} is no checkpoint, or is damaged: {type(error).__name__}: {error}") from None


def _packed(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray):
        tensor = torch.from_numpy(value) if isinstance(value, np.ndarray) else value.detach().cpu()
        tensors[path] = tensor.contiguous().clone()  # two names of one memory are refused
        return {"array" if isinstance(value, np.ndarray) else "tensor": path}
    if isinstance(value, np.generic):
        return _packed(value.item(), path, tensors)
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if type(value).__name__ in _SNAPSHOTS:
        return {"snapshot": type(value).__name__, "of": _packed(vars(value), path, tensors)}
    if isinstance(value, Mapping):
        items = [[key, _packed(one, f"{path}/{key}", tensors)] for key, one in value.items()]
        if not all(isinstance(key, str | int) for key, _ in items):
            raise TypeError(f"keys of {path or 'the tree'} must be text or whole numbers")
        return {"map": items}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(one, f"{path}/{i}", tensors) for i, one in enumerate(value)]}
    raise TypeError(f"{path}: a {type(value).__name__} cannot be written into a checkpoint")


def _unpacked(value: Mapping[str, Any], tensor: Any) -> Any:
    if "value" in value:
        return value["value"]
    if "tensor" in value:
        return tensor(value["tensor"])
    if "array" in value:
        return tensor(value["array"]).numpy()
    if "map" in value:
        return {key: _unpacked(one, tensor) for key, one in value["map"]}
    if "snapshot" in value:
        return _SNAPSHOTS[value["snapshot"]](**_unpacked(value["of"], tensor))
    if "tuple" in value:
        return tuple(_unpacked(one, tensor) for one in value["tuple"])
    return [_unpacked(one, tensor) for one in value["list"]]
