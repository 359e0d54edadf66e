"""Straight-line arithmetic as machine code, by the C compiler of the machine where there is one.

Without contraction of products and sums, C's doubles are Python's and NumPy's to the last bit, so nothing but time
depends on whether there is a compiler. Libraries are kept in the cache by what they are made of and by the hash of what
they contain, in a folder that nobody else may write to; where there is none, each process compiles its own.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from manikin.assets.paths import cache_root

__all__ = ["Native", "compiler", "native"]

_FLAGS = ("-O1", "-fno-fast-math", "-ffp-contract=off", "-shared", "-fPIC")
_OFF = ("", "0", "no", "off", "none", "false")
_SECONDS = 60.0  # a compiler gets


def compiler() -> str | None:
    """Path of the C compiler: what MANIKIN_CC names in the environment ("off" for none), else cc, gcc or clang."""
    wanted = os.environ.get("MANIKIN_CC")
    if wanted is not None:
        return None if wanted.lower() in _OFF else shutil.which(wanted)
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


Native = Callable[[np.ndarray, np.ndarray], Callable[[], None]]
"""Ties code to float64, C-contiguous arrays ``given`` (n, size) and ``out`` (n, found); each call of what is returned
fills ``out``. The arrays have to live as long."""


def native(size: int, lines: Sequence[str], found: Sequence[str]) -> Native | None:
    """Compile code that goes over rows.

    Args:
        size: how many numbers a row of the input has; they are called x0, x1, ...
        lines: ``name = expression`` each, in order.
        found: the expressions that make a row of the output.

    Returns:
        None where there is no compiler, or what it makes cannot be run.
    """
    path = compiler()
    return None if path is None else loaded(path, _source(size, lines, found))


def _source(size: int, lines: Sequence[str], found: Sequence[str]) -> str:
    body = [f"const double x{k} = in[{k}];" for k in range(size)]
    body += [f"const double {line};" for line in lines]
    body += [f"out[{k}] = {expression};" for k, expression in enumerate(found)]
    loop = f"for (; n > 0; --n, in += {size}, out += {len(found)}) {{"
    return "\n".join(["void run(long long n, const double *in, double *out) {", loop, *body, "}", "}", ""])


@functools.lru_cache(maxsize=64)
def loaded(path: str, source: str) -> Native | None:
    """From the cache, or compiled into it; what is damaged there is made again."""
    key, folder = _key(path, source), _folder()
    for library in _cached_libraries(folder, key):
        if run := _run(library):
            return run
    try:
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
            library = _compile(path, source, Path(scratch))
            if folder is not None:
                # whole or not at all, also where several processes begin at once
                library = library.replace(folder / f"{key}-{_digest(library.read_bytes())}.so")
            return _run(library)
    except (OSError, subprocess.SubprocessError):
        return None


def _run(library: Path) -> Native | None:
    try:
        run = ctypes.CDLL(str(library)).run
    except (OSError, AttributeError):
        return None
    run.restype = None
    return lambda given, out: functools.partial(run, ctypes.c_longlong(len(out)), *map(_pointer, (given, out)))


def _key(path: str, source: str) -> str:
    return _digest("\n".join((source, *_FLAGS, Path(path).name, sys.platform, platform.machine())).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _folder() -> Path | None:
    """The folder of libraries, if it is this user's alone: who else may write there could have us run any code.

    One of ours that was open to others is closed and emptied. One of another user is not used.
    """
    folder = cache_root() / "native"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.name == "posix" and not _ours(folder.lstat(), stat.S_ISDIR):
            if folder.lstat().st_uid != os.geteuid() or folder.is_symlink():
                return None
            folder.chmod(0o700)
            for file in folder.glob("*.so"):
                file.unlink()
    except OSError:
        return None
    return folder


def _cached_libraries(folder: Path | None, key: str) -> Iterator[Path]:
    """Libraries made of the same that still are what was put there."""
    for library in () if folder is None else sorted(folder.glob(f"{key}-*.so")):
        try:
            ours = os.name != "posix" or _ours(library.lstat(), stat.S_ISREG)
            if ours and _digest(library.read_bytes()) == library.stem.partition("-")[2]:
                yield library
            else:
                library.unlink()
        except OSError:
            continue


def _ours(found: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Whether it is of this kind, belongs to this user, and nobody else may write to it."""
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.dtype == np.float64 and array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _compile(path: str, source: str, scratch: Path) -> Path:
    text, made = scratch / "run.c", scratch / "run.so"
    text.write_text(source)
    command = [path, *_FLAGS, "-o", str(made), str(text)]
    subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    made.chmod(0o700)
    return made
