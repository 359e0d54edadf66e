"""Cells of CSV files, and the numbers in them; errors name the row, the line and the column."""

from __future__ import annotations

import csv
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from manikin.errors import DataError

__all__ = ["cells_of", "is_number", "table_of"]

_LARGEST = 200_000_000  # [bytes] of a file's text: a hundred times what the longest summary takes


def cells_of(path: Path) -> list[list[str]]:
    """Cells of a CSV file, also compressed, by line, without blank lines at the end.

    Raises:
        DataError: it cannot be read.
    """
    try:
        found = list(csv.reader(_lines(path)))
    except csv.Error as error:
        raise DataError(f"{path} is no CSV file: {error}") from None
    while found and not found[-1]:
        found.pop()
    return found


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".xz":
            decoder = lzma.LZMADecompressor()
            content = decoder.decompress(content, _LARGEST)
            if not decoder.eof:
                raise DataError(f"{path} is damaged, or holds more than {_LARGEST / 1e6:.0f} MB")
        return content.decode("utf-8-sig").splitlines()
    except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def is_number(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def table_of(path: Path, rows: Sequence[Sequence[str]], first: int, named: Callable[[int], str]) -> np.ndarray:
    """(N, columns) numbers; NaN where a cell is blank.

    Args:
        path: the file.
        rows: cells of each row, all of one length.
        first: line of the first row.
        named: what an error calls a column.

    Raises:
        DataError: a cell is no number, or infinite; says which.
    """
    try:
        table = np.array([[cell if cell.strip() else "nan" for cell in cells] for cells in rows]).astype(np.float64)
    except ValueError:
        for k, cells in enumerate(rows):
            for column, cell in enumerate(cells):
                if cell.strip() and not is_number(cell):
                    said = f"row {k} (line {first + k}), {named(column)}: {cell!r:.40} is not a number"
                    raise DataError(f"{path}: {said}") from None
        raise
    if np.isinf(table).any():
        k, column = np.argwhere(np.isinf(table))[0]
        raise DataError(f"{path}: row {k} (line {first + k}), {named(int(column))} is infinite")
    return table
