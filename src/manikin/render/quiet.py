"""Native libraries that write to the console when they start."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["hushed"]


@contextmanager
def hushed() -> Iterator[None]:
    """Nothing written to the process's standard output and error meanwhile is seen, by native code or any thread.

    Where that is not possible the output stays. What was swallowed is shown if an exception passes.
    """
    _flush()
    try:
        kept = os.dup(1), os.dup(2)
    except OSError:
        yield
        return
    with tempfile.TemporaryFile() as sink:
        try:
            os.dup2(sink.fileno(), 1)
            os.dup2(sink.fileno(), 2)
            yield
        except BaseException:
            _restore(kept)
            sink.seek(0)
            os.write(2, sink.read())
            raise
        _restore(kept)


def _flush() -> None:
    """What Python and C have buffered goes where it belongs."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        sys.stderr.flush()
    with suppress(OSError, TypeError, AttributeError):  # Windows knows no library without a name
        ctypes.CDLL(None).fflush(None)


def _restore(kept: tuple[int, int]) -> None:
    _flush()
    for number, copy in enumerate(kept, start=1):
        os.dup2(copy, number)
        os.close(copy)
