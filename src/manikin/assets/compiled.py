"""Scenes with meshes, compiled once: what MuJoCo's compiler made of a spec is kept on disk.

Reading a robot's meshes and finding their convex hulls takes about a second. A scene of primitive shapes compiles in a
millisecond and one with a few small meshes as fast as it is loaded: these are not kept. The key is everything that the
spec says, MuJoCo's version and the folders of model files; with the result lies a list of the files that were read and
their hashes, which are compared at every use. A spec that says something which cannot be seen from here, or reads a
file from elsewhere, is compiled every time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manikin.assets.paths import cache_root, keep
from manikin.compat.mujoco import SPEC_NOT_CONTENT, SPEC_NUMBERS, SPEC_SEQUENCES, SPEC_STRUCTS

__all__ = ["LIMIT", "check", "compiled"]

LIMIT = 2 << 30
"""[bytes] of all kept scenes together; beyond it, those not used for longest are removed."""

_VERSION = 1  # of what is written here
HEAVY = 16 << 20  # [bytes] models with less than that besides pictures are compiled as fast as loaded
_LISTS = ("materials", "meshes", "textures", "hfields", "pairs", "excludes", "equalities", "tendons", "actuators",
          "sensors", "numerics", "texts", "tuples", "keys")  # fmt: skip
_FILES = ("meshes", "textures", "hfields")
_UNSEEN = ("plugins", "flexes", "skins")  # kinds of element that are not looked into
_ON_BODY = ("joints", "geoms", "sites", "cameras", "lights")
_NOT_CONTENT = SPEC_NOT_CONTENT | {"worldbody", *_ON_BODY}


class _Unseen(Exception):
    """Something in a spec whose content is not known."""


def compiled(spec: mujoco.MjSpec, *, folders: Iterable[Path] = ()) -> mujoco.MjModel:
    """``spec.compile()``, or the same model from disk; then the spec itself stays as it was.

    Args:
        spec: what to compile.
        folders: of the model files that parts of the spec were read from; they name their assets relative to them.

    Raises:
        ValueError, mujoco.FatalError: it does not compile.
    """
    entry = _Entry.of(spec, folders)
    found = entry.load() if entry else None
    if found is not None:
        return found
    model = spec.compile()
    if entry and mujoco.mj_sizeModel(model) - model.ntexdata >= HEAVY:
        entry.keep(model, whole=True)
    return model


def check(spec: mujoco.MjSpec, *, folders: Iterable[Path] = ()) -> None:
    """Compile to see whether it can be, unless it is known that it can. Arguments and errors as for ``compiled``."""
    entry = _Entry.of(spec, folders)
    if entry is None:
        spec.compile()
    elif entry.about() is None:
        entry.keep(spec.compile(), whole=False)


# ---- files -----------------------------------------------------------------------------------------------------------


class _Entry:
    """What is known of a spec: KEY.json with the hashes of the files it was made from and, where that is kept, of the
    compiled model in KEY.mjb."""

    def __init__(self, path: Path, known: set[Path]) -> None:
        self.path, self._known = path, known

    @classmethod
    def of(cls, spec: mujoco.MjSpec, folders: Iterable[Path]) -> _Entry | None:
        """None for what is compiled every time."""
        assets = [(kind, one) for kind in _FILES for one in getattr(spec, kind) if one.file]
        if not assets:
            return None
        places = [folder.resolve() for folder in folders]
        try:
            path = cache_root() / "scenes" / f"{_key(spec, places)}.json"
        except _Unseen:
            return None
        known = {Path(one.file).resolve() for _, one in assets}
        for kind, one in assets:
            inside = one.compiler.texturedir if kind == "textures" else one.compiler.meshdir
            known |= {(place / inside / one.file).resolve() for place in places}
        return cls(path, known)

    def about(self) -> dict[str, Any] | None:
        """None when there is nothing, it is damaged, or a file has changed since."""
        try:
            about = json.loads(self.path.read_text(encoding="utf-8"))
            same = all(_file_hash(file) == was for file, was in about["files"].items())
            return about if same else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def load(self) -> mujoco.MjModel | None:
        """The compiled model where it was kept and is whole."""
        about, path = self.about(), self.path.with_suffix(".mjb")
        try:
            if about is None or about["model"] != _file_hash(path):
                return None
            os.utime(path)
            return mujoco.MjModel.from_binary_path(str(path))
        except (OSError, ValueError, KeyError, mujoco.FatalError):
            return None

    def keep(self, model: mujoco.MjModel, *, whole: bool) -> None:
        """Write it, the model too if ``whole``. A cache that cannot be written is no error."""
        files = {Path(name.decode()).resolve() for name in bytes(model.paths).split(b"\0") if name}
        if not files <= self._known:
            return  # the spec does not say where they lie
        try:
            about: dict[str, Any] = {"files": {str(file): _file_hash(file) for file in sorted(files)}}
            if whole:
                body = np.empty(mujoco.mj_sizeModel(model), np.uint8)
                mujoco.mj_saveModel(model, None, body)
                about["model"] = hashlib.sha256(body.data).hexdigest()
                keep(self.path.with_suffix(".mjb"), lambda partial: partial.write_bytes(body.data))
                _make_room(self.path.parent)
            keep(self.path, lambda partial: partial.write_text(json.dumps(about), encoding="utf-8"))
        except OSError:  # also a file that is in memory alone
            return


def _file_hash(file: str | Path) -> str:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _make_room(folder: Path) -> None:
    """Remove what has not been used for longest until all is within ``LIMIT``."""
    found = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another process was faster
            state = path.stat()
            found.append((state.st_mtime, state.st_size, path))
    held = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if held <= LIMIT:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        held -= size


# ---- what a spec says ------------------------------------------------------------------------------------------------


def _key(spec: mujoco.MjSpec, folders: Sequence[Path]) -> str:
    """32 hex digits. Raises _Unseen."""
    for kind in _UNSEEN:
        if getattr(spec, kind):
            raise _Unseen(kind)
    content = _Content()
    content.feed(_VERSION, mujoco.__version__, os.getcwd(), [str(folder) for folder in folders])
    content.feed(spec, *([kind, getattr(spec, kind)] for kind in _LISTS))
    content.body(spec.worldbody)
    return hashlib.sha256(b"".join(content.parts)).hexdigest()[:32]


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    apart = {*_LISTS, *_UNSEEN} if kind is mujoco.MjSpec else set()
    names = set(dir(kind)) - _NOT_CONTENT - apart
    return tuple(n for n in sorted(names) if isinstance(getattr(kind, n), property))


class _Content:
    """Values as bytes, with their kinds and lengths, so that no two lists of values look alike."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._compilers: dict[int, tuple[Any, int]] = {}  # every element has one, there are few; kept, so the id is its

    def body(self, body: Any) -> None:
        """A body with what is on it and its children."""
        self.feed("<", body, *([kind, getattr(body, kind)] for kind in _ON_BODY))
        for child in body.bodies:
            self.body(child)
        self.feed(">")

    def feed(self, *values: Any) -> None:
        for value in values:
            kind = type(value)
            word = kind.__qualname__
            self.parts.append(f"|{word}:".encode())
            if value is None:
                continue
            if kind in (bool, int, float) or word.startswith("mjt"):
                self.parts.append(repr(value).encode())
            elif kind is str or kind is bytes:
                raw = value if kind is bytes else value.encode()
                self.parts += [f"{len(raw)}:".encode(), raw]
            elif kind is np.ndarray:
                self.parts += [f"{value.dtype.str}{value.shape}".encode(), value.tobytes()]
            elif kind in (list, tuple) or word in SPEC_SEQUENCES:
                self.parts.append(f"{len(value)}:".encode())
                self.feed(*(value if kind in (list, tuple) else [value[i] for i in range(len(value))]))
            elif word in SPEC_NUMBERS:
                numbers = [value[i] for i in range(len(value))]  # iterating costs half a millisecond, also over none
                self.parts.append(repr(numbers).encode())
            elif kind is dict:
                self.feed(sorted(value.items()))
            elif word == "MjsCompiler" and id(value) in self._compilers:
                self.parts.append(repr(self._compilers[id(value)][1]).encode())
            elif word == "MjsPlugin":
                if value.active:
                    raise _Unseen(word)
            elif word in SPEC_STRUCTS or word.startswith(("Mjs", "MjVisual")):
                if word == "MjsCompiler":
                    self._compilers[id(value)] = value, len(self._compilers)
                for name in _fields(kind):  # type: ignore[arg-type]
                    self.parts.append(name.encode())
                    self.feed(getattr(value, name))
            else:
                raise _Unseen(word)
