"""What was measured, as rows that can be found again: ``manikin results``. Needs ``pip install 'manikin[results]'``."""

from manikin.results.schema import COLUMNS, Result
from manikin.results.store import Store

__all__ = ["COLUMNS", "Result", "Store"]
