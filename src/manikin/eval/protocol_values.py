"""What the values of a protocol are in Python and in TOML, and how one becomes the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from manikin.eval.picture_options import cameras_of
from manikin.sense.kinds import describe
from manikin.spec.looks import Looks

__all__ = ["KINDS", "int_of", "sequence_of", "toml_of"]


def int_of(value: object) -> int:
    """A whole number; else TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def sequence_of(value: object) -> list[Any]:
    """A list; else TypeError."""
    if not isinstance(value, list | tuple | range):
        raise TypeError
    return list(value)


def _names(value: object) -> tuple[str, ...]:
    return tuple(_str(v) for v in sequence_of(value))


def _tables(value: object) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(v, Mapping) for v in value.values()):
        raise TypeError
    return {_str(task): {_str(name): option for name, option in options.items()} for task, options in value.items()}


def _lists(of: Callable[[object], Any]) -> Callable[[object], dict[str, tuple[Any, ...]]]:
    def convert(value: object) -> dict[str, tuple[Any, ...]]:
        if not isinstance(value, Mapping):
            raise TypeError
        return {_str(name): tuple(of(one) for one in sequence_of(some)) for name, some in value.items()}

    return convert


def _observed(value: object) -> str | tuple[Any, ...]:
    if isinstance(value, str):
        return value
    found = [one.describe() if hasattr(one, "describe") else one for one in sequence_of(value)]
    if not all(isinstance(one, str | Mapping) for one in found):
        raise TypeError
    return tuple(found)


def _size(value: object) -> tuple[int, int]:
    width, height = (int_of(side) for side in sequence_of(value))
    if min(width, height) < 1:
        raise ValueError
    return width, height


def _stages(value: object) -> tuple[Mapping[str, Any], ...]:
    found = [one if isinstance(one, Mapping) else describe(one) for one in sequence_of(value)]
    return tuple(dict(one) for one in found)


def _looks(value: object) -> dict[str, Any]:
    found = value.describe() if isinstance(value, Looks) else value
    if not isinstance(found, Mapping):
        raise TypeError
    return dict(found)


def _variants(value: object) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {_str(task): _looks(looks) for task, looks in value.items()}


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(
        ("name", "description", "shift", "robot", "control", "reward", "success", "renderer"), ("a string", _str)
    ),
    "observe": ("a word, or a list of words and tables", _observed),
    "size": ("width and height in pixels, [128, 128]", _size),
    "stages": ('a list of tables, [{ kind = "Jitter", brightness = 0.2 }]', _stages),
    "looks": ("a table", _looks),
    "terminate": ("true or false", _bool),
    "seeds": ("a list of whole numbers", lambda value: tuple(int_of(seed) for seed in sequence_of(value))),
    "tasks": ("a list of strings", _names),
    "cameras": (
        'a list of names and tables, ["base_camera", { name = "top", pos = [...], target = [...] }]',
        cameras_of,
    ),
    **dict.fromkeys(("physics_hz", "control_hz", "held_s", "confidence"), ("a number", _float)),
    "horizon": ("a whole number of control steps", int_of),
    "episodes": ('lists of seeds, {"Task-v1": [0, 1]}', _lists(int_of)),
    "paraphrases": ('lists of sentences, {"pick up the cube" = ["take the cube"]}', _lists(_str)),
    "variants": ('tables of looks, [variants."Task-v1#darker"]', _variants),
    "config": ('tables of options, [config."Task-v1"]', _tables),
}


def toml_of(value: object) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_of(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)
