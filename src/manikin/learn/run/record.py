"""The log of a run: a CSV file, and TensorBoard by option."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manikin.data.recording.durable import write_file
from manikin.errors import ConfigError, DataError

__all__ = ["Progress", "read_progress"]

_FIRST = ("iteration", "steps", "seconds", "cpu_seconds")


class Progress:
    """One line per iteration; a line is on disk as soon as it is added.

    Args:
        path: of the CSV file.
        keep: lines up to this iteration stay, of a run that goes on; -1 begins anew.
        tensorboard: folder of TensorBoard's events; None for none.

    Raises:
        ConfigError: TensorBoard is asked for and not installed.
        DataError: the file cannot be written.
    """

    def __init__(self, path: Path, *, keep: int = -1, tensorboard: Path | None = None) -> None:
        self.path, self._writer = path, None
        rows = [row for row in read_progress(path) if row["iteration"] <= keep] if keep >= 0 and path.exists() else []
        self.columns: list[str] = _ordered(name for row in rows for name in row) if rows else []
        self._rows: list[dict[str, float]] = rows
        self._write_all()
        if tensorboard is not None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ConfigError("TensorBoard is not installed: pip install 'manikin[learn]'") from None
            self._writer = SummaryWriter(str(tensorboard))

    def add(self, row: Mapping[str, float]) -> None:
        """A line of named numbers. A name that is new makes a column; lines before have nothing there."""
        line = dict(row)
        self._rows.append(line)
        new = [name for name in line if name not in self.columns]
        if new:
            self.columns = _ordered([*self.columns, *new])
            self._write_all()
        else:
            self._append(line)
        if self._writer is not None:
            for name, value in line.items():
                if name not in _FIRST[:2]:
                    self._writer.add_scalar(name, value, int(line["steps"]))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _append(self, line: Mapping[str, float]) -> None:
        try:
            with self.path.open("a", newline="") as file:
                csv.writer(file).writerow([_cell(line.get(name)) for name in self.columns])
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror}") from None

    def _write_all(self) -> None:
        text = io.StringIO(newline="")
        out = csv.writer(text)
        if self.columns:
            out.writerow(self.columns)
        out.writerows([_cell(row.get(name)) for name in self.columns] for row in self._rows)
        write_file(self.path, text.getvalue().encode())  # as a whole: the lines of hours are in it


def read_progress(path: Path) -> list[dict[str, float]]:
    """The lines of a log; a last one that was cut short is left out.

    Raises:
        DataError: there is no log, or it is none.
    """
    try:
        with path.open(newline="") as file:
            rows = list(csv.reader(file))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if not rows:
        return []
    columns, found = rows[0], []
    for number, row in enumerate(rows[1:]):
        try:
            if len(row) != len(columns):
                raise ValueError
            found.append({name: float(cell) for name, cell in zip(columns, row, strict=True) if cell != ""})
        except ValueError:
            if number < len(rows) - 2:
                raise DataError(f"{path}: line {number + 2} is damaged") from None
    return found


def _ordered(names: Iterable[str]) -> list[str]:
    return [*_FIRST, *sorted({*names} - {*_FIRST})]


def _cell(value: Any) -> str:
    return "" if value is None else repr(int(value)) if float(value).is_integer() else repr(float(value))
