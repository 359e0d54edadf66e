"""Work for workers of a run that needs no simulator: an item is a file with a number in it."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from manikin.machine import exact_machine
from manikin.spread.ledger import Intent, Ledger
from manikin.spread.shards import split

__all__ = ["Squares", "begun", "outcome"]


class Squares:
    """Item n comes to n * n, as a file of its own.

    Settings: ``seconds`` an item takes; ``raises``, ``ends``, ``hangs``, ``hangs_once``: numbers of items at which it
    does so; ``full``: a folder with a file for each process whose disk is full, named by its number.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        if settings.get("closed"):
            raise SystemExit(3)

    def run(self, numbers: Sequence[int], folder: Path, advance: Callable[[], None]) -> None:
        there, once = self.finished(folder), self.settings.get("hangs_once", ())
        for number in numbers:
            if number in there:
                continue
            if number in self.settings.get("raises", ()):
                raise RuntimeError(f"item {number} cannot be done")
            if number in self.settings.get("ends", ()):
                os.kill(os.getpid(), signal.SIGKILL)
            stuck = folder / f"{number}.stuck"
            if number in self.settings.get("hangs", ()) or (number in once and not stuck.exists()):
                stuck.touch()
                time.sleep(600)
            time.sleep(self.settings.get("seconds", 0.0))
            if "full" in self.settings and (Path(self.settings["full"]) / str(os.getpid())).exists():
                for name in ("room.tmp", "item.tmp"):  # whatever is written there finds no space left on the device
                    (folder / name).symlink_to("/dev/full")
                (folder / "item.tmp").write_text(str(number))
            fresh = folder / f"{number}.new"
            fresh.write_text(str(number * number))
            os.rename(fresh, folder / f"{number}.item")
            with (folder / "tried.txt").open("a") as file:
                file.write(f"{number}\n")
            advance()

    def finished(self, folder: Path) -> set[int]:
        return {int(path.stem) for path in folder.glob("*.item")}

    def facts(self, folder: Path) -> dict[str, Any]:
        items = sorted((int(path.stem), int(path.read_text())) for path in folder.glob("*.item"))
        return {"items": items, "content": hashlib.sha256(json.dumps(items).encode()).hexdigest()}

    def called(self, number: int) -> str:
        return f"item {number} (seed {1000 + number})"

    def close(self) -> None:
        pass


def begun(folder: Path, items: int, size: int, *, resume: bool = False, **settings: Any) -> Ledger:
    """A run of so many items in shards of that size."""
    shards = tuple(split(range(items), size))
    told = {"settings": settings, "same": {"items": items}, "machine": exact_machine()}
    intent = Intent(work="toy_work:Squares", shards=shards, **told)
    return Ledger.begin(folder, intent, resume=resume)


def outcome(ledger: Ledger) -> tuple[list[list[int]], list[int]]:
    """What came out, item after item, and the items in the order in which they were done."""
    items, tried = [], []
    for manifest, folder in ledger.results():
        items += manifest.facts["items"]
        path = folder / "tried.txt"
        tried += [int(line) for line in path.read_text().split()] if path.exists() else []
    return items, tried
