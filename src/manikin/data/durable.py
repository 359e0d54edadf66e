"""Files that are there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["replace_file", "sync"]


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, sync it, and give it its name. Raises OSError and leaves nothing behind."""
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_bytes(content)
        sync(temporary)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if path.is_dir() and os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)  # Windows syncs only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
