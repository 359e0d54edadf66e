"""What processes that make the same search have worked out, in a folder that all of them see.

Each of them makes the whole search and comes to the same questions, in the same order. A question is worked out by the
one that claims it first; the others read the answer. So nobody hands out work, and a process may come late or end at
any time: what it had claimed is worked out by another one after a while, and an answer does not depend on who gave it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import sync
from manikin.errors import DataError

__all__ = ["Blackboard", "answers"]

_LOOK = 0.02  # [s] between two looks at what others have done


def answers(board: Blackboard | None, questions: Mapping[str, Callable[[], Any]]) -> Iterator[Any]:
    """Answers in the order of the questions. With a board they are shared. Alone each is worked out when it is asked
    for, so that the caller can keep one before the next.

    Args:
        board: it, or None for alone.
        questions: as of :meth:`Blackboard.share`.
    """
    return (work() for work in questions.values()) if board is None else iter(board.share(questions).values())


class Blackboard:
    """Questions and their answers.

    Args:
        folder: of the search, on storage that all processes see.
        members: how many processes make the search.
        patience: seconds in which nothing is answered, and three times as long as the longest question took here,
            before one that another process has claimed is worked out here too.
        clock: gives seconds. rest: waits for some.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        members: int = 1,
        patience: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder, self.members = Path(folder), max(1, members)
        self._patience, self._clock, self._rest = patience, clock, rest
        self._longest = 0.0

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Say what the answers depend on besides their questions.

        Raises:
            DataError: the folder is of a search with other settings, or cannot be written.
        """
        path, mine = self._folder / "search.json", json.loads(json.dumps(settings))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                self._publish(path, mine)
            theirs = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise DataError(f"cannot share a search in {self._folder}: {error}") from None
        if theirs != mine:
            other = sorted(name for name in {*theirs, *mine} if theirs.get(name) != mine.get(name))
            raise DataError(f"{self._folder} is of another search: {', '.join(other)} differ")

    def share(self, questions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        """Answers, in the order of the questions.

        Args:
            questions: name -> what works it out, into plain values for JSON. A name stands for one question in the
                whole search, and can be the name of a file.

        Raises:
            DataError: an answer cannot be written.
        """
        found: dict[str, Any] = {}
        left = dict(questions)
        since = self._clock()
        while left:
            told = {name: answer for name in left if (answer := self._read(name)) is not None}
            if told:
                since = self._clock()
            found |= told
            left = {name: work for name, work in left.items() if name not in told}
            mine = next((name for name in left if self._claim(name)), None)
            if mine is None and left and self._clock() - since > max(self._patience, 3 * self._longest):
                mine = list(left)[os.getpid() % len(left)]  # who claimed it may have ended; others wait, too
            if mine is None:
                if left:
                    self._rest(_LOOK)
                continue
            began = self._clock()
            found[mine] = [left.pop(mine)()]
            self._write(mine, found[mine])
            since = self._clock()
            self._longest = max(self._longest, since - began)
        return {name: found[name][0] for name in questions}

    def _read(self, name: str) -> Any:
        with suppress(OSError, ValueError):
            return json.loads((self._folder / f"{name}.json").read_text())
        return None

    def _claim(self, name: str) -> bool:
        try:
            (self._folder / f"{name}.claimed").mkdir(parents=True)
        except FileExistsError:
            return False
        except OSError as error:
            raise DataError(f"cannot share a search in {self._folder}: {error.strerror}") from None
        return True

    def _write(self, name: str, answer: Any) -> None:
        try:
            self._publish(self._folder / f"{name}.json", answer)
        except OSError as error:
            raise DataError(f"cannot share a search in {self._folder}: {error.strerror}") from None

    def _publish(self, path: Path, value: Any) -> None:
        """Write a file that is there as a whole or not at all, also where others write the same at the same time."""
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_text(json.dumps(value))
            sync(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
