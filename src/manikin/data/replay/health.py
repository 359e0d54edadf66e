"""Episodes in which the physics broke down or found no room: in words, with what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from manikin.sim.health import Health, describe

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv

__all__ = ["advice_for", "unhealthy_words"]

_NO_BUDGET = "what was lost is nothing that a budget has room for"


def advice_for(env: BatchEnv, health: Iterable[int]) -> str:
    """Which budget to raise to what, where among the bits of health of an environment's episodes is an overflow; else
    ""."""
    return (env.budget_advice() or _NO_BUDGET) if any(bits & Health.OVERFLOW for bits in health) else ""


def unhealthy_words(unhealthy: Sequence[tuple[int, int]], advice: str = "", *, aside: str = "") -> str:
    """How many episodes (seed, bits of health) were not healthy, what went wrong in the first of them, what to do."""
    n = len(unhealthy)
    head = f"{n} {'episode was' if n == 1 else 'episodes were'} not healthy{aside and ' ' + aside}"
    said = ", ".join(f"seed {seed} ({describe(bits)})" for seed, bits in unhealthy[:5])
    more = f" and {n - 5} more" if n > 5 else ""
    return f"{head}: {said}{more}" + (f"; {advice}" if advice else "")
