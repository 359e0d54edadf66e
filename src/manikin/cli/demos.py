"""`manikin demos`: get, push and list demonstrations and trained policies that others made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from manikin.cli.common.terminal import NOT_GOOD, OK, console, show_table

if TYPE_CHECKING:
    from rich.console import Console

    from manikin.shelf import Package

__all__ = ["DemosOptions", "main", "run"]


@dataclass(frozen=True, kw_only=True)
class DemosOptions:
    """Options of `manikin demos`."""

    action: tyro.conf.Positional[Literal["get", "push", "list"]]
    """What to do."""
    word: tyro.conf.Positional[str] = ""
    """get: the name of a package. push: a recording (.h5) or a trained policy (.safetensors)."""
    place: Annotated[str, tyro.conf.arg(name="at")]
    """Where the packages lie: a folder, http://, https://, or hf://USER/REPO."""
    out: Path = Path("demos")
    """get: folder for the package."""
    sha256: str = ""
    """get: beginning of the manifest's SHA-256, as push printed it. Another manifest is refused."""
    verify: bool = False
    """get: then play the demonstrations again, bit for bit, or evaluate the policy under its protocol."""
    episodes: int | None = None
    """get --verify: at most so many episodes."""
    licence: str = ""
    """push: an SPDX identifier, such as CC-BY-4.0. Needed."""
    kind: Literal["", "expert", "planner", "policy", "human"] = ""
    """push: who acted; by default what the recording says."""
    name: str = ""
    """push: of the package; by default that of the file."""
    note: str = ""
    """push: a sentence for readers."""


def main(options: Annotated[DemosOptions, tyro.conf.arg(name="")]) -> int:
    """Get demonstrations or a trained policy from a folder, a web server or the Hugging Face hub; push or list them.

    Each package has a manifest with licence, hash, kind and the protocol that verifies it. A file that was changed is
    refused, and nothing of it is run. With MANIKIN_DEMOS_KEY set, requests to a web server carry that key.
    """
    return run(options)


def run(options: DemosOptions) -> int:
    """Do what the action says; 1 where a package is not what its manifest says of it."""
    from manikin.errors import ConfigError
    from manikin.shelf import get, push, shelf_of, verify

    out, place = console(), shelf_of(options.place)
    if bool(options.word) == (options.action == "list"):
        needed = {"get": "the name of a package", "push": "a file", "list": "no word but --at PLACE"}
        raise ConfigError(f"manikin demos {options.action} takes {needed[options.action]}")
    if options.action == "list":
        return _list(out, options.place)
    if options.action == "push":
        if not options.licence:
            raise ConfigError("without a licence nobody may use it: give --licence, such as CC-BY-4.0 or Apache-2.0")
        item = _described(options)
        found = push(place, item, Path(options.word))
        out.print(f"pushed {item.name}: {item.content} of {item.task} by {item.kind}, {item.licence}", soft_wrap=True)
        out.print(f"get it:  manikin demos get {item.name} --at {options.place} --sha256 {found[:16]}", soft_wrap=True)
        return OK
    item = get(place, options.word, options.out, sha256=options.sha256)
    folder = options.out / item.name
    out.print(f"{folder / item.file}: {item.content} of {item.task} by {item.kind}, {item.licence}", soft_wrap=True)
    if not options.verify:
        return OK
    verdict = verify(item, folder, episodes=options.episodes)
    out.print(verdict.said, soft_wrap=True, markup=False)
    return OK if verdict.good else NOT_GOOD


def _described(options: DemosOptions) -> Package:
    from manikin.learn.run.recipe import Recipe
    from manikin.learn.run.validate import test_protocol
    from manikin.policy.trained import read_about
    from manikin.shelf import describe

    protocol = ""
    if options.word.endswith(".safetensors") and (recipe := read_about(options.word).get("recipe")):
        protocol = test_protocol(Recipe.from_toml(recipe, source=options.word)).to_toml()
    return describe(
        options.word,
        licence=options.licence,
        kind=options.kind,
        name=options.name,
        note=options.note,
        protocol=protocol,
    )


def _list(out: Console, word: str) -> int:
    from rich.table import Table

    from manikin.shelf import listing, shelf_of

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("name", "content", "by", "task", "robot", "success", "MB", "licence", "note"):
        table.add_column(heading, no_wrap=True)
    found = listing(shelf_of(word))
    for item in found.values():
        rate = f"{item.successes}/{item.episodes}" if item.episodes else ""
        size = f"{item.size / 1e6:.1f}"
        table.add_row(item.name, item.content, item.kind, item.task, item.robot, rate, size, item.licence, item.note)
    show_table(out, table) if found else out.print("no packages there")
    return OK
