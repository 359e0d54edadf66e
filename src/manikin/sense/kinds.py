"""Converts sources, stages and imperfections to plain values for JSON and back.

A description is ``{"kind": "Stack", "frames": 4}``: the class, and the fields that differ from their defaults. A user's
own class is named by where it lies, ``my_sources.py:Wind`` or ``package.module:Wind``, and described with all its
fields, because its defaults may change while its name stays.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from manikin.assets.python_file import class_place, run_file
from manikin.errors import ConfigError, UnknownNameError

__all__ = ["built_in", "describe", "hashed", "made", "own_places"]

T = TypeVar("T")

_BUILT_IN: dict[str, type] = {}


def built_in(cls: type[T]) -> type[T]:
    """Class decorator: a class of manikin that descriptions name by its name alone."""
    _BUILT_IN[cls.__name__] = cls
    return cls


def describe(one: Any) -> dict[str, Any]:
    """``one``, a frozen dataclass, as plain values: its ``kind`` and its fields; of a class of manikin only those that
    differ from their defaults."""
    cls = type(one)
    own = _BUILT_IN.get(cls.__name__) is not cls
    kind = (class_place(cls) or f"{cls.__module__}.{cls.__qualname__}") if own else cls.__name__
    out: dict[str, Any] = {"kind": kind}
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        value = getattr(one, field.name)
        if field.init and (own or value != _default(field)):
            out[field.name] = _plain(value, describe)
    found: dict[str, Any] = json.loads(json.dumps(out, default=str))
    return found


def hashed(one: Any, code: Callable[[type], str | None]) -> dict[str, Any]:
    """As :func:`describe`, for hashing: of a class of one's own its name and what ``code`` says of it, and without the
    fields that its ``unhashed`` names, such as where a file lies."""
    cls, out = type(one), dict[str, Any]()
    if _BUILT_IN.get(cls.__name__) is cls:
        out["kind"] = cls.__name__
    else:
        out |= {"kind": cls.__qualname__, "code": code(cls)}
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        value = getattr(one, field.name)
        if field.init and field.name not in getattr(cls, "unhashed", ()) and value != _default(field):
            out[field.name] = _plain(value, lambda inner: hashed(inner, code))
    return out


def made(plain: Mapping[str, Any], base: type[T], what: str) -> T:
    """What :func:`describe` described.

    Args:
        plain: the description.
        base: the class that it has to be of.
        what: what to call it in errors, for example ``observation source``.

    Raises:
        ConfigError: the fields do not fit the class, or it is of another kind.
        UnknownNameError: no such kind; lists what there is.
        AssetError: there is no such file.
    """
    kind = plain.get("kind")
    cls = _class(kind, what)
    fields = {name: _value(value, what) for name, value in plain.items() if name != "kind"}
    if not (isinstance(cls, type) and issubclass(cls, base)):
        raise ConfigError(f"{kind!r} is not a {what}: it is not derived from {base.__name__}")
    try:
        return cls(**fields)
    except TypeError as error:
        raise ConfigError(f"this does not describe a {kind}: {error} in {dict(plain)!r:.120}") from error


def own_places(plain: Any) -> Iterator[str]:
    """Where the classes of one's own in a description lie."""
    if isinstance(plain, Mapping):
        if ":" in str(plain.get("kind", "")):
            yield str(plain["kind"])
        for value in plain.values():
            yield from own_places(value)
    elif isinstance(plain, list | tuple):
        for value in plain:
            yield from own_places(value)


def _class(kind: Any, what: str) -> Any:
    if not isinstance(kind, str) or (kind not in _BUILT_IN and ":" not in kind):
        hint = "One of your own is named by its file: 'my_file.py:MyClass'."
        raise UnknownNameError(what, kind, _BUILT_IN, hint)
    if kind in _BUILT_IN:
        return _BUILT_IN[kind]
    place, _, name = kind.rpartition(":")
    if not place.endswith(".py") and not all(part.isidentifier() for part in place.split(".")):
        raise UnknownNameError(f"module with a {what}", place, ())
    try:
        module = run_file(place) if place.endswith(".py") else importlib.import_module(place)
    except ImportError as error:
        raise ConfigError(f"{kind} cannot be imported: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise UnknownNameError(f"{what} in {place}", name, [n for n, v in vars(module).items() if isinstance(v, type)])
    return found


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any, say: Callable[[Any], Any]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return say(value)
    if isinstance(value, tuple | list):
        return [_plain(one, say) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _value(value: Any, what: str) -> Any:
    if isinstance(value, Mapping) and "kind" in value:
        return made(value, object, what)
    return tuple(_value(one, what) for one in value) if isinstance(value, list | tuple) else value
