"""What workers of `manikin sysid --on` and `manikin fidelity improve --on` do: each makes the whole search, and they
share what they work out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manikin.cli import sysid
from manikin.cli.fidelity.improve import ImproveOptions, improved
from manikin.cli.spread.options import restored
from manikin.cli.spread.search import board_of
from manikin.data.recording.durable import write_file

if TYPE_CHECKING:
    from manikin.spread.blackboard import Blackboard

__all__ = ["ImproveWork", "SysidWork"]


class _SearchWork:
    """Makes a search. A :class:`~manikin.spread.work.Work` whose item k is the k-th of those who make it."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._plain, self._members = settings["options"], settings["members"]

    def _found(self, board: Callable[[Path], Blackboard]) -> Any:
        """What the search found, as plain values; ``board`` is told the folder of the results."""
        raise NotImplementedError

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        for number in sorted(set(numbers) - self.finished(folder)):
            found = self._found(lambda out: board_of(out / "spread", self._members))
            write_file(folder / f"{number}.json", json.dumps(found).encode())
            advance()

    def finished(self, folder: Path) -> set[int]:
        return {int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()}

    def facts(self, folder: Path) -> dict[str, Any]:
        texts = sorted((folder / f"{number}.json").read_bytes() for number in self.finished(folder))
        return {"content": hashlib.sha256(b" ".join(texts)).hexdigest()}

    def called(self, number: int) -> str:
        return f"search {number}"

    def close(self) -> None:
        """Nothing is held."""


class SysidWork(_SearchWork):
    """Searches for the parameters of a robot."""

    def _found(self, board: Callable[[Path], Blackboard]) -> Any:
        options = restored(sysid.SysidOptions, self._plain)
        found = sysid.searched(options, board(options.out), lambda candidates: None)
        return {"after": found.after, "loss": found.loss_after}


class ImproveWork(_SearchWork):
    """Searches for settings of the benchmark's simulation."""

    def _found(self, board: Callable[[Path], Blackboard]) -> Any:
        options = restored(ImproveOptions, self._plain)
        found = improved(options, board(options.out), lambda candidates: None)
        return {"settings": found.settings.digest, "loss": found.loss}
