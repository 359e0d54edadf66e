"""Nested values as bytes in the format of safetensors: tensors as they are, the rest as JSON. Nothing is pickled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save

from manikin.env.state.layouts import LayoutSnapshot
from manikin.sim.snapshot import Snapshot

__all__ = ["pack", "pack_to", "unpack", "unpacked"]

_SNAPSHOTS: dict[str, type] = {"Snapshot": Snapshot, "LayoutSnapshot": LayoutSnapshot}
_TREE = "tree"
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}  # as the format calls them


def pack(tree: Any, about: Mapping[str, Any] | None = None) -> bytes:
    """A tree of dictionaries, lists, tuples, tensors, arrays, numbers, text and snapshots as bytes.

    Args:
        tree: it. Tensors are copied to the CPU.
        about: JSON that can be read without the tensors.

    Raises:
        TypeError: a value of another kind.
    """
    tensors, metadata = _flat(tree, about)
    places = set[int]()
    for name, tensor in tensors.items():
        place = tensor.untyped_storage().data_ptr()
        if place in places:
            tensors[name] = tensor.clone()  # two names of one memory are refused
        places.add(place)
    return save(tensors, metadata)


def pack_to(path: Path, tree: Any, about: Mapping[str, Any] | None = None) -> None:
    """:func:`pack` into a file, one tensor after another: the library first makes copies of all, which double and
    triple the memory of a large replay, or leaves a file of a random name where it is killed.

    Raises:
        OSError: the file cannot be written.
        TypeError: as :func:`pack`.
    """
    tensors, metadata = _flat(tree, about)
    header: dict[str, Any] = {"__metadata__": metadata}
    in_order = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))  # so that all are aligned
    end = 0
    for name, tensor in in_order:
        if tensor.dtype not in _DTYPES:
            raise TypeError(f"{name}: a tensor of {tensor.dtype} cannot be packed")
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in in_order:
            file.write(tensor.reshape(-1).view(torch.uint8).numpy().data)


def _flat(tree: Any, about: Mapping[str, Any] | None) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The tensors by name, and the rest as text."""
    tensors: dict[str, torch.Tensor] = {}
    metadata = {_TREE: json.dumps(_packed(tree, "", tensors)), "about": json.dumps(dict(about or {}))}
    return tensors, metadata


def unpack(content: bytes) -> Any:
    """The tree that :func:`pack` wrote.

    Raises:
        ValueError, KeyError: it did not, or they are damaged.
    """
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    tensors = load(content)
    return unpacked(metadata, tensors.__getitem__)


def unpacked(metadata: Mapping[str, str], tensor: Callable[[str], torch.Tensor]) -> Any:
    """The tree, from a file's metadata and what gives a tensor by its name."""
    return _unpacked(json.loads(metadata[_TREE]), tensor)


def _packed(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray):
        tensor = torch.from_numpy(value) if isinstance(value, np.ndarray) else value.detach().cpu()
        tensors[path] = tensor.contiguous()
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
    raise TypeError(f"{path}: a {type(value).__name__} cannot be packed")


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
