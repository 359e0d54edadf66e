"""Trained policies that come with manikin: one safetensors file each, by the name ``ALGORITHM-TASK``, with its hash."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from manikin.assets.paths import file_hash
from manikin.data.recording.durable import write_file
from manikin.errors import DataError

__all__ = [
    "FOLDER",
    "HASHES",
    "LARGEST",
    "check_shipped",
    "record_hashes",
    "shipped_for",
    "shipped_policies",
    "shipped_policy",
]

FOLDER = Path(str(resources.files("manikin.policy.shipped")))
HASHES = "sha256.txt"
"""The SHA-256 of each file, as ``sha256sum`` writes and checks them."""
LARGEST = 300_000
"""Bytes that a file may have."""


def shipped_policies() -> dict[str, Path]:
    """Name -> file."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.safetensors"))}


def shipped_policy(name: str) -> Path | None:
    """The file of a policy, which is the one that was recorded; None where there is no policy of that name.

    Raises:
        DataError: as :func:`check_shipped`.
    """
    file = shipped_policies().get(name)
    if file is not None:
        check_shipped(name)
    return file


def shipped_for(task: str) -> str | None:
    """The name of a policy for a task, the first by name where there are several; None without one."""
    return next((name for name in shipped_policies() if name.partition("-")[2] == task), None)


def check_shipped(name: str) -> None:
    """Compare the file of a policy that is there with its hash in ``sha256.txt``.

    Raises:
        DataError: it is another file, or has no hash.
    """
    file, hashes = shipped_policies()[name], FOLDER / HASHES
    lines = hashes.read_text(encoding="ascii").splitlines() if hashes.is_file() else []
    recorded = {place: digest for digest, place in (line.split(maxsplit=1) for line in lines)}.get(file.name)
    found = file_hash(file)
    if found != recorded:
        raise DataError(
            f"the policy {name} is not the one that comes with manikin: {file} has the SHA-256 {found[:12]}, and "
            f"{HASHES} {'none for it' if recorded is None else recorded[:12]}. Install manikin again"
        )


def record_hashes() -> None:
    """Write ``sha256.txt`` anew, of the files as they are.

    Raises:
        DataError: it cannot be written.
    """
    lines = [f"{file_hash(file)}  {file.name}\n" for file in shipped_policies().values()]
    write_file(FOLDER / HASHES, "".join(lines).encode())
