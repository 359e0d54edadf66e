"""What nobody means: values of wrong kinds and sizes, and bytes, JSON and HDF5 that were changed somewhere."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

Draw = np.random.Generator
Case = tuple[str, Callable[[], object]]  # what is tried, in words, and the trial

PLAIN: list[Any] = [
    *(None, True, -1, 0, 1, 7, 1.5, -0.0, 1e300, float("nan"), float("inf"), 2**31, 2**63, 2**64, -(2**70), 10**400),
    *("", "x", "0", "nan", "ü" * 300, "\x00", "../../etc/passwd", "{}", "a\nb", "PickCube-v2", "panda", "cuda:99"),
    *([], [1, "a"], [[]], [None], {}, {"a": 1}, {"": {"": []}}, [1.0] * 7, {"nconmax": "x"}),
]
"""Values that JSON has, and a few numbers that it has not."""

ODD: list[Any] = [
    *(b"", b"\xff\xfe", object(), (), range(3), {1, 2}, 1j, print, type, Ellipsis, np.float32(0.5), np.int64(-3)),
    *(np.zeros(0), np.zeros((2, 3)), np.array(np.nan), np.array(["a"]), np.array([None]), np.zeros(2, bool)),
    *(torch.zeros(2), torch.zeros(2, 8), torch.zeros(2, 7), torch.full((2, 8), torch.nan), torch.zeros(2, 8).bool()),
    *(torch.zeros(2, 8).to_sparse(), torch.zeros(2, 8, dtype=torch.float64), torch.zeros(0), Path("nowhere.py")),
]
"""Values that only Python has."""


def chosen(draw: Draw, among: list[Any]) -> Any:
    return among[int(draw.integers(len(among)))]


def any_value(draw: Draw) -> Any:
    return chosen(draw, PLAIN + ODD)


def shown(value: Any) -> str:
    return " ".join(repr(value).split())[:60]


def changed_bytes(draw: Draw, content: bytes) -> tuple[str, bytes]:
    """Some bytes flipped, overwritten, removed, doubled or added."""
    data = bytearray(content)
    at, length = int(draw.integers(len(data) + 1)), int(2 ** draw.uniform(0, 12))
    kind = chosen(draw, ["flip", "flip", "flip", "zero", "noise", "cut", "remove", "repeat", "insert"])
    if kind == "flip":
        for place in draw.integers(len(data), size=int(draw.integers(1, 9))).tolist() if data else ():
            data[place] ^= 1 << int(draw.integers(8))
    elif kind == "zero":
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif kind == "noise":
        data[at : at + length] = draw.bytes(len(data[at : at + length]))
    elif kind == "cut":
        del data[at:]
    elif kind == "remove":
        del data[at : at + length]
    elif kind == "repeat":
        data[at:at] = data[at : at + length]
    else:
        data[at:at] = draw.bytes(length)
    return f"{kind} {min(length, len(data))} at {at}", bytes(data)


def changed_tree(draw: Draw, tree: Any) -> tuple[str, Any]:
    """A JSON value in which one place holds something else, is gone, or is called otherwise."""
    tree = copy.deepcopy(tree)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            visit(node[key])

    visit(tree)
    if not places:
        return "another value", chosen(draw, PLAIN)
    node, key = chosen(draw, places)
    kind = chosen(draw, ["value", "value", "value", "gone", "name"])
    if kind == "gone":
        del node[key]
    elif kind == "name" and isinstance(node, dict):
        node[shown(chosen(draw, PLAIN))] = node.pop(key)
    else:
        node[key] = value = chosen(draw, PLAIN)
        return f"{key} is {shown(value)}", tree
    return f"{key}: {kind}", tree


def changed_json(draw: Draw, text: str) -> tuple[str, str]:
    """JSON that says something else."""
    if draw.random() < 0.1:
        return "deep", chosen(draw, ["[" * 200_000, '{"a":' * 100_000, "1" * 10_000, "", "null", "\ufeff{}"])
    words, tree = changed_tree(draw, json.loads(text))
    return words, json.dumps(tree)


def changed_hdf5(draw: Draw, path: Path) -> str:
    """One change by HDF5 itself, so that the file is whole and holds something else; in words."""
    try:
        return _changed_hdf5(draw, path)
    except (ValueError, OSError, KeyError, RuntimeError, TypeError) as error:  # of the change: half of it may be there
        return f"half a change ({error})"


def _changed_hdf5(draw: Draw, path: Path) -> str:
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = chosen(draw, names)
        item = file[name]
        kind = chosen(draw, ["attribute", "attribute", "array", "array", "array", "gone", "moved", "link", "JSON"])
        if kind == "attribute":
            return _attribute(draw, chosen(draw, [file, file, item, item.parent]))
        if kind == "JSON":
            return _json(draw, file) or _attribute(draw, file)
        if kind == "gone":
            del file[name]
        elif kind == "moved":
            file.move(name, f"{name}{chosen(draw, ['x', '0', '_é'])}")
        elif kind == "link":
            return f"{name}: {_link(draw, file, name, path)}"
        else:
            return f"{name}: {_array(draw, file, name)}"
        return f"{name}: {kind}"


def _attribute(draw: Draw, item: Any) -> str:
    keys = list(item.attrs) or ["format"]
    key, value = chosen(draw, keys), chosen(draw, PLAIN + ODD)
    if draw.random() < 0.2:
        item.attrs.pop(key, None)
        return f"attribute {key}: gone"
    try:
        item.attrs[key] = value
    except Exception:  # what HDF5 has not
        item.attrs[key] = np.zeros(int(draw.integers(4)))
    return f"attribute {key} is {shown(value)}"


def _json(draw: Draw, file: Any) -> str:
    """A change within the JSON of some attribute."""
    found: list[tuple[Any, str, Any]] = []

    def visit(name: str, item: Any) -> None:
        for key, value in item.attrs.items():
            if isinstance(value, str) and value[:1] in ("{", "["):
                found.append((item, key, value))

    visit("", file)
    file.visititems(visit)
    if not found:
        return ""
    item, key, text = chosen(draw, found)
    words, new = changed_json(draw, text)
    try:
        item.attrs[key] = new[:60_000]  # what an attribute can hold
    except (ValueError, OSError):
        return ""
    return f"attribute {key}: {words}"


def _array(draw: Draw, file: Any, name: str) -> str:
    item = file[name]
    shape = item.shape if isinstance(item, h5py.Dataset) and item.shape else (3,)
    first = shape[:1]
    arrays: list[Any] = [
        *(np.zeros(first), np.zeros((*shape, 2), np.float32), np.zeros(shape, np.uint8), np.zeros((*first, 3), bool)),
        *(np.full(shape, np.nan, np.float32), np.full(shape, 2**62, np.int64), -np.ones(shape, np.int64)),
        *(np.zeros(shape, "S4"), np.zeros((0, *shape[1:])), np.zeros(shape, np.complex64), np.zeros(shape, ">f4")),
        *(np.zeros(shape, [("a", "f4"), ("b", "i8")]), np.zeros(max(shape[0] - 1, 0)), np.float32(0)),
        *(h5py.Empty("f4"), "text", [b"{", b"[1]"]),
    ]
    value = chosen(draw, arrays)
    if isinstance(item, h5py.Dataset) and draw.random() < 0.3 and item.shape and item.dtype.kind in "iuf":
        value = item[()]
        value.reshape(-1)[: int(draw.integers(1, 5))] = chosen(draw, [0, 1, 99, 127])
    del file[name]
    if draw.random() < 0.1:
        file.create_dataset(name, (10**12,), "f8", chunks=(1 << 12,))
        return "declares 10^12 elements"
    file[name] = value
    return f"holds {shown(value)}"


def _link(draw: Draw, file: Any, name: str, path: Path) -> str:
    kind = chosen(draw, ["soft", "loop", "hard", "external", "storage", "pipe", "virtual"])
    del file[name]
    if kind == "soft":
        file[name] = h5py.SoftLink(chosen(draw, ["/", ".", f"/{name}", "/nothing", "/" + name.rpartition("/")[0]]))
    elif kind in ("loop", "hard"):
        file[name] = file if kind == "loop" else chosen(draw, [file[n] for n in file] or [file])
    elif kind == "external":
        file[name] = h5py.ExternalLink(chosen(draw, [path.name, "other.h5", "/etc/hostname"]), "/")
    elif kind == "storage":
        file.create_dataset(name, (8,), "u1", external=[("/etc/hostname", 0, 8)])
    elif kind == "pipe":
        pipe = path.with_name("pipe.h5")
        if not pipe.exists():
            os.mkfifo(pipe)
        file[name] = h5py.ExternalLink(pipe.name, "/")
    else:
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
        file.create_virtual_dataset(name, layout)
    return kind
