"""Where models and caches lie. Nothing here is read at import time."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from manikin.errors import AssetError

__all__ = ["absolute", "cache_root", "data_root", "file_hash", "keep"]


def absolute(path: str | os.PathLike[str]) -> Path:
    """A path that a user gave, from the root, ~ and links followed.

    Raises:
        AssetError: no file can be called so.
    """
    try:
        return Path(path).expanduser().resolve()
    except (ValueError, RuntimeError, OSError) as error:  # a null byte; no such home; links in a circle
        raise AssetError(f"{str(path)!r:.200} is not a valid path: {error}") from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file, 64 hex digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def data_root() -> Path | None:
    """The folder named by the environment variable MANIKIN_DATA, or None when it is not set."""
    value = os.environ.get("MANIKIN_DATA")
    return Path(value).expanduser() if value else None


def cache_root() -> Path:
    """The folder for things that can be made again: MANIKIN_CACHE, else ``$XDG_CACHE_HOME/manikin``, else
    ``~/.cache/manikin``. It is not created here."""
    value = os.environ.get("MANIKIN_CACHE")
    if value:
        return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "manikin"


def keep(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path`` and give it that name: it is there whole or not at all, and of several
    processes that write at once the last one's stays. Raises OSError and leaves nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=path.suffix)
    os.close(handle)
    partial = Path(name)
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
