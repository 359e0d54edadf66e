"""Spreads a search over workers: each makes the whole of it, and they share what they work out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from manikin.cli.common.terminal import OK
from manikin.cli.spread.options import plain_options, same_options
from manikin.cli.spread.run import made_before, members, merged, spread

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.spread.blackboard import Blackboard

__all__ = ["board_of", "shared_search"]


class SearchOptions(Protocol):
    """Options of a command that searches."""

    @property
    def device(self) -> str: ...

    @property
    def out(self) -> Path: ...

    @property
    def resume(self) -> bool: ...


def shared_search(
    out: Console,
    options: Any,
    *,
    work: str,
    made: str,
    finish: Callable[[Blackboard], int],
    files: Sequence[str | Path | None] = (),
) -> int:
    """Let workers make a search; then make it once more here, with all answers that they found.

    Args:
        out: where to say how it goes.
        options: of the command, :class:`SearchOptions` and :class:`~manikin.cli.spread.options.SpreadOptions`.
        work: as :class:`manikin.spread.ledger.Intent` has it; its settings are ``options`` and ``members``.
        made: name of the file that ``finish`` writes.
        finish: makes the search with the board, and writes what it found; its exit status is the command's.
        files: as :func:`~manikin.cli.spread.run.spread` has them.

    Raises:
        ConfigError, DataError: as :func:`~manikin.cli.spread.run.spread`.
    """
    count = members(options)
    asked = dataclasses.replace(options, out=options.out.absolute())
    folder = asked.out / "spread"
    if made_before(out, options, asked.out / made, folder):
        return OK
    ledger, complete = spread(
        out,
        options,
        folder=folder,
        work=work,
        settings={"options": plain_options(asked), "members": count},
        same=same_options(asked, "threads"),
        numbers=range(count),
        size=1,
        resume=options.resume,
        words="searching",
        device=options.device,
        items="search",
        deadline=math.inf,
        files=files,
    )
    begun = int(ledger.intent.settings["members"])  # of a run that goes on as many as when it was begun
    return merged(options, ledger, complete, lambda: finish(board_of(folder, begun)))


def board_of(folder: Path, members: int) -> Blackboard:
    """What the workers of a search share, in the folder of the run."""
    from manikin.spread.blackboard import Blackboard

    return Blackboard(folder / "board", members=members)
