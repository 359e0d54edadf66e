"""What a package of demonstrations, or of a policy, says of itself: plain JSON, checked before anything is believed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from manikin._version import __version__
from manikin.data.recording.read import EpisodeFile
from manikin.errors import ConfigError, DataError, UnknownNameError
from manikin.policy.trained import policy_hash, read_about

__all__ = ["CONTENTS", "KINDS", "MANIFEST", "SCHEMA", "Package", "check_files", "describe", "hash_of", "read_manifest"]

MANIFEST = "manifest.json"
SCHEMA = "manikin.shelf/1"
KINDS = ("expert", "planner", "policy", "human")
"""Who acted: a scripted expert, a motion planner, a trained policy, or a person."""
CONTENTS = {".h5": "demonstrations", ".safetensors": "policy"}
"""What a file can hold, by its end. Both are read without running anything that is in them."""
LARGEST = 2**40  # [bytes] that a manifest may say of a file


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package on a shelf.

    Attributes:
        name: letters, digits, ``-``, ``_`` and ``.``.
        content: ``demonstrations`` or ``policy``.
        kind: who acted, one of :data:`KINDS`.
        task, robot, control: what was played, on which robot, by which controller.
        licence: an SPDX identifier, such as ``CC-BY-4.0``.
        file, size, sha256: the file's name, its bytes, and its SHA-256 (64 hex digits).
        episodes, successes: recorded episodes, and how many of them succeeded; of a policy those of its test.
        identity: of demonstrations the hash of their content, of a policy the hash of how it acts.
        verify: the protocol that verifies it, see :func:`manikin.shelf.verify.verify`: ``replay`` plays demonstrations
            again, bit for bit; of a policy the TOML of the protocol that it is evaluated under.
        note: a sentence for readers.
        manikin: the version that wrote the package.
    """

    name: str
    content: str
    kind: str
    task: str
    robot: str
    control: str
    licence: str
    file: str
    size: int
    sha256: str
    episodes: int
    successes: int
    identity: str
    verify: str
    note: str = ""
    manikin: str = __version__

    def to_json(self) -> bytes:
        """The manifest's text."""
        return (json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, sort_keys=True) + "\n").encode()


def hash_of(path: Path) -> str:
    """SHA-256 of a file of any size, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe(
    path: str | Path, *, licence: str, kind: str = "", name: str = "", note: str = "", protocol: str = ""
) -> Package:
    """The manifest of a recording (``.h5``) or a trained policy (``.safetensors``).

    Args:
        path: the file.
        licence: an SPDX identifier.
        kind: who acted; by default what the recording says, where that is one of :data:`KINDS`.
        name: of the package; by default that of the file.
        note: a sentence for readers.
        protocol: TOML of the protocol that verifies a policy; by default that of its training's test.

    Raises:
        ConfigError: the file is of another kind, or licence, name or kind is none.
        AssetError, DataError: the file is not there, or is not what its name says.
    """
    path = Path(path)
    content = CONTENTS.get(path.suffix)
    if content is None:
        raise ConfigError(f"{path.name} is neither a recording (.h5) nor a trained policy (.safetensors)")
    found = _of_recording(path) if content == "demonstrations" else _of_policy(path, protocol)
    said = str(found.pop("by"))
    item = Package(
        name=name or path.stem,
        content=content,
        kind=kind or ("policy" if content == "policy" else said if said in KINDS else ""),
        licence=licence,
        file=path.name,
        size=path.stat().st_size,
        sha256=hash_of(path),
        note=note,
        **found,
    )
    try:
        _checked(item)
    except DataError as error:
        raise ConfigError(str(error)) from None
    return item


def _of_recording(path: Path) -> dict[str, Any]:
    with EpisodeFile(path) as episodes:
        header = episodes.needed_header()
        wins = sum(bool(episodes.attributes(number)["success_once"]) for number in episodes.numbers)
        made = header.fingerprint
        return {
            **{name: str(made.get(name, "")) for name in ("task", "robot", "control")},
            "by": header.policy,
            "episodes": len(episodes),
            "successes": wins,
            "identity": episodes.content_hash(),
            "verify": "replay",
        }


def _of_policy(path: Path, protocol: str) -> dict[str, Any]:
    about = read_about(path)
    tested = about.get("tested") or {}
    episodes = int(tested.get("episodes", 0))
    return {
        **{name: str(about.get(name) or "") for name in ("task", "robot", "control")},
        "by": "policy",
        "episodes": episodes,
        "successes": round(float(tested.get("rate", 0.0)) * episodes),
        "identity": policy_hash(path),
        "verify": protocol,
    }


def read_manifest(text: bytes, where: str) -> Package:
    """The package that a manifest describes.

    Raises:
        DataError: it is no manifest, of a newer version, or says what cannot be.
    """
    try:
        plain = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    if not isinstance(plain, Mapping) or not str(plain.get("schema", "")).startswith("manikin.shelf/"):
        raise DataError(f"{where}: no manifest of a package of manikin's")
    if plain["schema"] != SCHEMA:
        raise DataError(f"{where}: schema {plain['schema']!r}, this manikin knows {SCHEMA}; install a newer one")
    kinds = {field.name: int if field.type == "int" else str for field in fields(Package)}
    wrong = [name for name, kind in kinds.items() if type(plain.get(name)) is not kind]
    if wrong or len(plain) != len(kinds) + 1:
        more = sorted(set(plain) - kinds.keys() - {"schema"})
        raise DataError(f"{where}: missing or of a wrong type: {', '.join(wrong) or 'nothing'}; unknown: {more}")
    return _checked(Package(**{name: plain[name] for name in kinds}), where)


def _checked(item: Package, where: str = "") -> Package:
    """Raise DataError for a package that cannot be, or that could write elsewhere than into its own folder."""
    plain = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
    at = f"{where}: " if where else ""
    for what, name in (("name", item.name), ("file", item.file)):
        if not plain.fullmatch(name):
            raise DataError(f"{at}the {what} {name!r:.120} must be of letters, digits, '-', '_' and '.'")
    if CONTENTS.get(Path(item.file).suffix) != item.content:
        raise DataError(f"{at}the file {item.file!r} cannot hold {item.content!r:.40}: {CONTENTS}")
    if item.kind not in KINDS:
        raise DataError(f"{at}{UnknownNameError('kind', item.kind, KINDS, 'It says who acted.')}")
    if not re.fullmatch(r"[A-Za-z0-9][\w.+ ()-]{0,99}", item.licence, re.ASCII):
        raise DataError(f"{at}{item.licence!r:.120} is no licence: give an SPDX identifier, such as CC-BY-4.0")
    if not re.fullmatch("[0-9a-f]{64}", item.sha256) or not 0 < item.size < LARGEST:
        raise DataError(f"{at}the file {item.file} has no SHA-256 of 64 hex digits, or no size in bytes")
    return item


def check_files(item: Package, folder: Path) -> None:
    """Compare a package's file with its manifest, then what is in the file with what the manifest says of it.

    Raises:
        DataError: size or hash is another one, or the file holds something else.
    """
    path = folder / item.file
    size = path.stat().st_size if path.is_file() else None
    if size != item.size or (found := hash_of(path)) != item.sha256:
        got = (
            "is not there" if size is None else f"has {size} bytes" if size != item.size else f"hashes to {found[:12]}"
        )
        raise DataError(
            f"{path.name} of {item.name!r} is not the file that was pushed: it {got}, the manifest says {item.size} "
            f"bytes and {item.sha256[:12]}"
        )
    inside = _of_recording(path) if item.content == "demonstrations" else _of_policy(path, item.verify)
    other = [name for name, value in inside.items() if name != "by" and value != getattr(item, name)]
    if other:
        said = "; ".join(f"{name} {inside[name]!r}, the manifest says {getattr(item, name)!r}" for name in other)
        raise DataError(f"the manifest of {item.name!r} does not describe {path.name}: {said:.600}")
