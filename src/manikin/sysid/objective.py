"""What a candidate is worth, each worked out once: in this run, or in the one that the journal goes on with."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from manikin.data.recording.lines import CheckedLines
from manikin.spread.blackboard import Blackboard, answers
from manikin.sysid.loss import distances, residuals
from manikin.sysid.rollout import Rollout, Tracks

__all__ = ["Objective"]


class Objective:
    """Losses and residuals of points in the unit cube of a rollout's space.

    Args:
        rollout: plays candidates.
        loss: a name of :data:`~manikin.sysid.loss.LOSSES`.
        journal: where what was worked out is kept; None for nowhere.
        board: where it is shared with others who make the same search; None for alone.
        on_candidates: told how many were worked out, or found in the journal.

    Attributes:
        count: candidates so far, those of the journal included.
        best, least: the point (P,) of the smallest loss so far, and that loss.
    """

    def __init__(
        self,
        rollout: Rollout,
        loss: str,
        *,
        journal: CheckedLines | None = None,
        board: Blackboard | None = None,
        on_candidates: Callable[[int], None] | None = None,
    ) -> None:
        self.rollout, self.loss, self._tell = rollout, loss, on_candidates
        self._journal, self._board = journal, board
        self._recorded, self._lengths = rollout.recorded_tensors(), rollout.lengths
        self._known: dict[bytes, float] = {}
        self._residuals: dict[bytes, np.ndarray] = {}
        self.count = 0
        self.best, self.least = np.zeros(0), np.inf
        for line in () if journal is None else journal.found:
            self._take(line)

    def losses(self, unit: np.ndarray) -> np.ndarray:
        """(k,) of points (k, P); infinite where the simulation broke down."""
        self._work_out(unit, self._known, keep=False)
        found = np.array([self._known[x.tobytes()] for x in unit])
        self._note(unit, found)
        return found

    def residuals(self, unit: np.ndarray) -> np.ndarray:
        """(k, R) of points (k, P), scaled so that the sum of squares of a row is the mean over steps and trajectories.
        NaN where the simulation broke down."""
        unit = np.ascontiguousarray(unit, np.float64)
        self._work_out(unit, self._residuals, keep=True)
        self._note(unit, np.array([self._known[x.tobytes()] for x in unit]))
        return np.stack([self._residuals[x.tobytes()] for x in unit])

    def _note(self, unit: np.ndarray, found: np.ndarray) -> None:
        at = int(np.argmin(found))
        if found[at] < self.least:
            self.best, self.least = unit[at].copy(), float(found[at])
        self.count += len(unit)
        if self._tell is not None:
            self._tell(len(unit))

    def _work_out(self, unit: np.ndarray, known: dict[bytes, Any], *, keep: bool) -> None:
        missing = list({key: x for x in unit if (key := x.tobytes()) not in known}.values())
        members = 1 if self._board is None else self._board.members
        batch = max(1, min(self.rollout.batch, -(-len(missing) // members)))
        parts = [np.stack(missing[at : at + batch]) for at in range(0, len(missing), batch)]
        named = {_name(some, keep): partial(self._lines, some, keep=keep) for some in parts}
        for lines in answers(self._board, named):
            for line in lines:
                self._take(line)
            if self._journal is not None:
                self._journal.write(lines)

    def _lines(self, some: np.ndarray, *, keep: bool) -> list[dict[str, Any]]:
        """What is known of points (k, P) once they are played, as plain values."""
        tracks = self.rollout(self.rollout.space.values(some))
        parts, each = self.measure(tracks)
        losses = each.mean(1)
        lines: list[dict[str, Any]] = [
            {"x": x.tolist(), "loss": float(loss) if np.isfinite(loss) else None}
            for x, loss in zip(some, losses, strict=True)
        ]
        if keep:
            for line, row in zip(lines, self._rows(parts, tracks), strict=True):
                line["residual"] = base64.b64encode(zlib.compress(row.tobytes(), 1)).decode()
        return lines

    def _take(self, line: Mapping[str, Any]) -> None:
        key = np.array(line["x"], np.float64).tobytes()
        self._known[key] = np.inf if line["loss"] is None else float(line["loss"])
        if "residual" in line:
            content = zlib.decompress(base64.b64decode(line["residual"]))
            self._residuals[key] = np.frombuffer(content, np.float64)

    def measure(self, tracks: Tracks) -> tuple[list[torch.Tensor], np.ndarray]:
        """Residuals of tracks before their lengths are taken, and (k, E) the loss on each trajectory."""
        simulated = {key: getattr(tracks, key) for key in self._recorded}
        parts = residuals(self.loss, simulated, self._recorded)
        each = distances(parts, self._lengths)
        return parts, np.where(tracks.diverged | ~np.isfinite(each), np.inf, each)

    def _rows(self, parts: list[torch.Tensor], tracks: Tracks) -> np.ndarray:
        whole, lengths = torch.cat(parts, -1).numpy(), self._lengths
        each = [whole[:, e, :n].reshape(len(whole), -1) / np.sqrt(n * len(lengths)) for e, n in enumerate(lengths)]
        rows = np.concatenate(each, 1)
        rows[tracks.diverged.any(1)] = np.nan
        return rows


def _name(some: np.ndarray, keep: bool) -> str:
    return hashlib.sha256(some.tobytes() + bytes([keep])).hexdigest()[:32]
