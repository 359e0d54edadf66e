"""What is read of a policy file: its graph as plain values and its numbers. Nothing of it is unpickled or run."""

from __future__ import annotations

import io
import json
import pickle
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from manikin.compat.torch import DTYPES
from manikin.errors import DataError
from manikin.policy.trained import ABOUT

__all__ = ["read_archive"]

_GRAPH, _CODE = "models/model.json", "data/aotinductor/"
_TENSORS = {"weights": "weight_", "constants": "tensor_"}  # folder, how its files of numbers are called


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, Any]]:
    """The graph of a ``.pt2`` file, its parameters, buffers and constants by name, and what it says of itself: the
    extra file ``manikin.json``, empty without one.

    Sample inputs and other extra files, which torch would unpickle or keep, are not looked at.

    Raises:
        DataError: it holds pickled objects or compiled code; says which.
        BadZipFile, OSError, KeyError, TypeError, ValueError, RuntimeError: it is broken.
    """
    with zipfile.ZipFile(path) as archive:
        # all lie in one folder, named by whoever wrote the file
        members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
        if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
            raise DataError("compressed parts, which torch does not write")
        if code := next((name for name in members if name.startswith(_CODE)), None):
            raise DataError(f"compiled code ({code})")

        def read(name: str) -> bytes:
            return archive.read(members[name])

        if read("byteorder") != sys.byteorder.encode():
            raise DataError(f"numbers of another byte order than this machine's, {sys.byteorder}")
        tensors: dict[str, torch.Tensor] = {}
        for folder, start in _TENSORS.items():
            whole = f"data/{folder}/model.pt"  # what torch 2.8 writes
            if whole in members:
                tensors |= _unpickled(read(whole), whole)
                continue
            config = json.loads(read(f"data/{folder}/model_{folder}_config.json"))["config"]
            files: dict[str, torch.Tensor] = {}
            for name, entry in config.items():
                file = entry["path_name"]
                if entry["use_pickle"] or not file.startswith(start):
                    raise DataError(f"a pickled object, {name!r} in data/{folder}/{file}")
                if file not in files:  # weights that share their numbers share a file
                    files[file] = _numbers(read(f"data/{folder}/{file}"), entry["tensor_meta"])
                tensors[name] = _shaped(files[file], entry)
        about = json.loads(read(extra)) if (extra := f"extra/{ABOUT}") in members else {}
        if not isinstance(about, dict):
            raise TypeError(f"{ABOUT} is no table")
        return json.loads(read(_GRAPH)), tensors, about


def _unpickled(content: bytes, name: str) -> dict[str, torch.Tensor]:
    """Tensors by name, by the unpickler that makes nothing but tensors and plain values."""
    try:
        found = torch.load(io.BytesIO(content), weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(f"other objects than tensors in {name}") from None
    if not isinstance(found, dict) or not all(type(v) in (torch.Tensor, torch.nn.Parameter) for v in found.values()):
        raise DataError(f"other objects than tensors in {name}")
    return {str(key): value for key, value in found.items()}


def _numbers(content: bytes, meta: Mapping[str, Any]) -> torch.Tensor:
    """A file's numbers in a row, where torch puts its own: other kernels are chosen for other alignments."""
    dtype, device = DTYPES[meta["dtype"]], meta["device"]
    flat = torch.frombuffer(bytearray(content), dtype=dtype).clone() if content else torch.empty(0, dtype=dtype)
    return flat if device["type"] == "cpu" else flat.to(torch.device(device["type"], device["index"] or 0))


def _shaped(flat: torch.Tensor, entry: Mapping[str, Any]) -> torch.Tensor:
    """Numbers in the shape that an entry says; torch checks that they lie within."""
    meta = entry["tensor_meta"]
    sizes, strides = ([one["as_int"] for one in meta[key]] for key in ("sizes", "strides"))
    shaped = flat.as_strided(sizes, strides, meta["storage_offset"]["as_int"])
    # matrix products look at this when they choose a kernel
    return torch.nn.Parameter(shaped, requires_grad=bool(meta["requires_grad"])) if entry["is_param"] else shaped
