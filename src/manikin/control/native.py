"""Straight-line arithmetic as machine code, by the C compiler of the machine where there is one.

Without contraction of products and sums, C's doubles are Python's and NumPy's to the last bit, so nothing but time
depends on whether there is a compiler. Libraries are kept in the cache by what they are made of.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
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
    return None if path is None else _loaded(path, _source(size, lines, found))


def _source(size: int, lines: Sequence[str], found: Sequence[str]) -> str:
    body = [f"const double x{k} = in[{k}];" for k in range(size)]
    body += [f"const double {line};" for line in lines]
    body += [f"out[{k}] = {expression};" for k, expression in enumerate(found)]
    loop = f"for (; n > 0; --n, in += {size}, out += {len(found)}) {{"
    return "\n".join(["void run(long long n, const double *in, double *out) {", loop, *body, "}", "}", ""])


@functools.lru_cache(maxsize=64)
def _loaded(path: str, source: str) -> Native | None:
    """From the cache, or compiled into it; what is damaged there is made again."""
    library = _library(path, source)
    for there in (library.is_file(), False):
        try:
            if not there:
                _compile(path, source, library)
            run = ctypes.CDLL(str(library)).run
        except (OSError, subprocess.SubprocessError, AttributeError):
            continue
        run.restype = None
        return lambda given, out: functools.partial(run, ctypes.c_longlong(len(out)), *map(_pointer, (given, out)))
    return None


def _library(path: str, source: str) -> Path:
    key = "\n".join((source, *_FLAGS, Path(path).name, sys.platform, platform.machine()))
    return cache_root() / "native" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    assert array.dtype == np.float64 and array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def _compile(path: str, source: str, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        text, made = Path(folder) / "run.c", Path(folder) / "run.so"
        text.write_text(source)
        command = [path, *_FLAGS, "-o", str(made), str(text)]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        os.replace(made, library)  # whole or not at all, also where several processes begin at once
