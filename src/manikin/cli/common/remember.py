"""Adds what was measured to the store of results, where there is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from manikin.errors import ManikinError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["FOLDER", "remember"]

FOLDER = "MANIKIN_RESULTS"
"""Environment variable: the folder of the store."""


def remember(out: Console, folder: Path) -> None:
    """Add an evaluation or a training to the store that MANIKIN_RESULTS names. What goes wrong is said, and loses
    nothing: the folder can be added later."""
    where = os.environ.get(FOLDER)
    if not where:
        return
    try:
        from manikin.results import Store
        from manikin.results.intake import results_of

        for result in results_of(folder):
            Store(where).add(result)
            if result.note:
                out.print(f"results: {result.note}", soft_wrap=True)
    except ImportError:
        why = "pip install 'manikin[results]'"
    except ManikinError as error:
        why = str(error)
    else:
        out.print(f"results: added to {where}", soft_wrap=True)
        return
    out.print(f"results: not added to {where} ({why}); later: manikin results add {folder}", soft_wrap=True)
