"""Trained policies that come with manikin: one safetensors file each, by the name ``ALGORITHM-TASK``."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

__all__ = ["LARGEST", "shipped_policies"]

LARGEST = 300_000
"""Bytes that a file may have."""


def shipped_policies() -> dict[str, Path]:
    """Name -> file."""
    folder = Path(str(resources.files("manikin.policy.shipped")))
    return {file.stem: file for file in sorted(folder.glob("*.safetensors"))}
