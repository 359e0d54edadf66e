"""Which tasks exist, and how Gymnasium learns of them. Light: only Gymnasium and the standard library at import."""

from __future__ import annotations

__all__ = ["register_gymnasium"]


def register_gymnasium() -> None:
    """Make every task known to Gymnasium as ``manikin/<id>``. Called when manikin is imported; nothing is loaded."""
