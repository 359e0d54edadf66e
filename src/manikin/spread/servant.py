"""A servant: a process that holds something open and answers requests, one after the other.

``python -m manikin.spread.servant`` is one. Its first message says what to open. Messages are bytes, each behind its
length; when its input ends, so does it: whoever started it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, BinaryIO, Protocol

from manikin.errors import ManikinError
from manikin.spread.work import open_named

__all__ = ["ANSWER", "FAILED", "REFUSED", "Held", "Serving", "read_message", "write_message"]

ANSWER, REFUSED, FAILED = b"a", b"r", b"f"
"""First byte of a reply: what was asked for; an error of manikin's; another error."""
_HEAD = 8  # [bytes] of a length, and of the processor time


class Serving(Protocol):
    """What a servant holds. What it answers follows from what it was asked before, and from nothing else."""

    def answer(self, request: bytes) -> bytes:
        """Answer."""


class Held:
    """Something that is opened once, and what it replies: errors too are replies.

    Args:
        word: ``module:Class`` of a :class:`Serving`.
        settings: what it is made with.
    """

    def __init__(self, word: str, settings: Mapping[str, Any]) -> None:
        self._serving: Serving | None = None
        self._refusal = b""
        try:
            self._serving = open_named(word, settings)
        except Exception as error:
            self._refusal = _words(error)

    def reply(self, request: bytes) -> bytes:
        """Milliseconds of processor time so far, a byte that says what this is, and the answer or what went wrong."""
        if self._serving is None:
            said = self._refusal
        else:
            try:
                said = ANSWER + self._serving.answer(request)
            except Exception as error:
                said = _words(error)
        return round(1000 * time.process_time()).to_bytes(_HEAD, "little") + said


def _words(error: Exception) -> bytes:
    if isinstance(error, ManikinError):
        return REFUSED + str(error).encode()
    traceback.print_exception(error)
    return FAILED + f"{type(error).__name__}: {error}".encode()


def write_message(pipe: BinaryIO, content: bytes) -> None:
    """Write bytes behind their length."""
    pipe.write(len(content).to_bytes(_HEAD, "little"))
    pipe.write(content)
    pipe.flush()


def read_message(pipe: BinaryIO) -> bytes:
    """The next message.

    Raises:
        EOFError: there is none, or only a part of it.
    """
    head = pipe.read(_HEAD)
    content = pipe.read(int.from_bytes(head, "little")) if len(head) == _HEAD else b""
    if len(head) < _HEAD or len(content) < int.from_bytes(head, "little"):
        raise EOFError
    return content


def main() -> None:
    """Be a servant until the input ends."""
    said = os.fdopen(os.dup(1), "wb")  # what the held thing prints goes into the log
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks decides
    try:
        held = Held(**json.loads(read_message(sys.stdin.buffer)))
        while True:
            write_message(said, held.reply(read_message(sys.stdin.buffer)))
    except (EOFError, BrokenPipeError):
        os._exit(0)


if __name__ == "__main__":
    main()
