"""Where models and caches lie. Nothing here is read at import time."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_root", "data_root"]


def data_root() -> Path | None:
    """The folder named by the environment variable MANIKIN_DATA, or None when it is not set."""
    value = os.environ.get("MANIKIN_DATA")
    return Path(value).expanduser() if value else None


def cache_root() -> Path:
    """The folder for things that can be made again: MANIKIN_CACHE, else ``$XDG_CACHE_HOME/manikin``, else
    ``~/.cache/manikin``. It is not created here."""
    value = os.environ.get("MANIKIN_CACHE")
    if value:
        return Path(value).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "manikin"
