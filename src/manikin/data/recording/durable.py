"""Files that are there as a whole or not at all, also after a power cut."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manikin.errors import DataError

__all__ = ["alone", "replace_file", "room_of", "sync", "try_room", "write_file"]

_TABLES = 4096, 65_536  # [bytes] that HDF5 keeps beside the values: of each dataset, and of a group of them


def replace_file(path: Path, content: bytes | Callable[[Path], None]) -> None:
    """Write a file under a temporary name, sync it, and give it its name. Raises OSError and leaves nothing behind.

    ``content`` is that of the file, or writes it to the path that it is given. What is no file, such as /dev/stdout, is
    not replaced: it is written to.
    """

    def write(to: Path) -> None:
        if callable(content):
            content(to)
        else:
            to.write_bytes(content)

    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)
        return
    temporary = path.with_suffix(".tmp")
    try:
        write(temporary)
        sync(temporary)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_file(path: Path, content: bytes | Callable[[Path], None]) -> None:
    """:func:`replace_file`, in a folder that is made where it is missing.

    Raises:
        DataError: the file cannot be written; one of that name from before is as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None


def try_room(path: Path, size: int) -> None:
    """Raise OSError unless a file, which need not exist yet, can grow by so many bytes.

    HDF5 does not survive running out of room: the process crashes, or the file cannot be closed. So whoever writes one
    on the disk asks first.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        held = os.fstat(handle).st_size
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(handle, held, max(1, size))
            finally:
                os.ftruncate(handle, held)
        elif shutil.disk_usage(path).free < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def room_of(arrays: Iterable[Any]) -> int:
    """Bytes that arrays take at most as datasets of one group in HDF5."""
    each, group = _TABLES
    return group + sum(array.nbytes + array.nbytes // 100 + each for array in arrays)  # gzip may lengthen a little


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if path.is_dir() and os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)  # Windows syncs only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that of several processes one merges at a time. Where there is none, go on."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
