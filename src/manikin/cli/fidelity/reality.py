"""Which recordings simulations are compared with."""

from __future__ import annotations

from pathlib import Path

from manikin.errors import AssetError

__all__ = ["mask_of", "reality_of"]


def reality_of(given: Path | None) -> Path:
    """Folder of the recordings. Raises AssetError where none is given and MANIKIN_DATA has none."""
    from manikin.assets.paths import data_root

    if given is not None:
        return given
    root = data_root()
    if root is None or not (root / "collins2020").is_dir():
        where = "MANIKIN_DATA is not set" if root is None else f"{root} has no collins2020"
        raise AssetError(f"there are no recordings: {where}; name their folder with --reality")
    return root / "collins2020" / "real_mean_10hz"


def mask_of(mask: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Kinds of defects that are masked, of an option: the word none is for none."""
    return () if mask == ("none",) else mask
