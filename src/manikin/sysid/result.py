"""What a search leaves behind: ``identified.toml``, which is a robot word, and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import write_file
from manikin.robots import identified
from manikin.sysid.page import page
from manikin.sysid.search import Identified

__all__ = ["as_dict", "save", "to_toml"]

TOML, PAGE = "identified.toml", "index.html"


def as_dict(found: Identified) -> dict[str, Any]:
    """Parameters, losses, identifiability and provenance as plain values."""
    rows = zip(found.names, found.low, found.high, found.before, found.after, strict=True)
    widths = found.identifiability.deviations
    return {
        "format": identified.FORMAT,
        "robot": found.robot,
        "control": found.control,
        "control_hz": found.control_hz,
        "physics_hz": found.physics_hz,
        "delay": found.delay,
        "joints": found.joints,
        "loss": {
            "kind": found.loss,
            "before": found.loss_before,
            "after": found.loss_after,
            "stages": [{"method": name, "candidates": count, "loss": loss} for name, count, loss in found.stages],
            "each": {
                name: {"before": before, "after": after}
                for name, before, after in zip(
                    found.provenance["names"], found.each_before, found.each_after, strict=True
                )
            },
        },
        "parameters": {
            name: {"low": low, "high": high, "before": before, "found": after, "deviation_of_range": widths[k]}
            for k, (name, low, high, before, after) in enumerate(rows)
        },
        "not_determined": [direction.words for direction in found.identifiability.open],
        "directions": [
            {
                "singular_value": d.singular_value,
                "width_of_range": None if d.width == float("inf") else d.width,
                "verdict": d.verdict,
                "words": d.words,
                "shares": list(d.shares),
            }
            for d in found.identifiability.directions
        ],
        "provenance": found.provenance,
    }


def to_toml(found: Identified) -> str:
    """The file that :mod:`manikin.robots.identified` reads."""
    first = "# Written by manikin sysid. As a robot word, this file is the robot with these parameters."
    return "\n".join([first, *_table("", as_dict(found))]) + "\n"


def save(found: Identified, folder: str | Path) -> Path:
    """Write ``identified.toml`` and ``index.html`` into a folder; returns the former.

    Raises:
        DataError: they cannot be written.
    """
    folder = Path(folder)
    write_file(folder / TOML, to_toml(found).encode())
    write_file(folder / PAGE, page(found, as_dict(found)).encode())
    return folder / TOML


def _table(name: str, values: Mapping[str, Any]) -> list[str]:
    """Lines of a TOML table: values first, then its own tables."""
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in values.items() if key not in inner and value is not None}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    if name and (lines or not inner):
        lines = ["", f"[{name}]", *lines]
    for key, value in inner.items():
        lines += _table(f"{name}.{_key(key)}" if name else _key(key), value)
    return lines


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items() if v is not None)} }}"
    return repr(value) if isinstance(value, int | float) else json.dumps(str(value), ensure_ascii=False)
