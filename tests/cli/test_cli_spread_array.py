"""A task of an array job: its worker has a deadline, is replaced, and nobody else does its share. Toy work."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from manikin.cli.spread.options import SpreadOptions
from manikin.cli.spread.run import spread
from manikin.errors import DataError
from manikin.spread.ledger import Ledger
from toy_work import outcome


def task(
    monkeypatch: pytest.MonkeyPatch, folder: Path, number: int, deadline: float, **settings: Any
) -> tuple[Ledger, bool, str]:
    """What task ``number`` of two does of six items in shards of two; the run, whether it is complete, what it said."""
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(number))
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    said = io.StringIO()
    ledger, complete = spread(
        Console(file=said, width=200),
        SpreadOptions(on="slurm-array", per_shard=2, deadline=deadline),
        folder=folder,
        work="toy_work:Squares",
        settings=settings,
        same={"items": 6},
        numbers=range(6),
        size=2,
        resume=False,
        words="squares",
        items="item",
    )
    return ledger, complete, said.getvalue()


def test_a_task_ends_what_hangs_by_its_deadline_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, complete, said = task(monkeypatch, tmp_path / "run", 0, 8.0, hangs_once=[1], raises=[5])
    assert not complete and outcome(ledger) == ([[0, 0], [1, 1], [4, 16]], [0, 1, 4])
    assert "4 items in 2 shards on slurm-array" in said
    assert "1 were out of time; 1 shards were handed out again" in said
    assert "item 5 (seed 1005) failed: RuntimeError: item 5 cannot be done" in said
    assert "1 shard of other tasks of the array are not finished" in said
    ledger, complete, said = task(monkeypatch, tmp_path / "run", 1, 60.0)
    assert complete and outcome(ledger)[0] == [[n, n * n] for n in range(5)]
    assert "out of time" not in said


def test_a_task_on_another_kind_of_machine_leaves_its_share_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(monkeypatch, tmp_path / "run", 0, 60.0)
    plan = tmp_path / "run" / "plan.json"
    plan.write_text(plan.read_text().replace('"cpu": "', '"cpu": "other '))
    with pytest.raises(DataError, match=r"no worker is left that can go on: .* of another kind than the run"):
        task(monkeypatch, tmp_path / "run", 1, 60.0)
    assert [shard.index for shard in Ledger(tmp_path / "run").left()] == [1]
    plan.write_text(plan.read_text().replace('"cpu": "other ', '"cpu": "'))  # submitted again, on the right machine
    ledger, complete, _ = task(monkeypatch, tmp_path / "run", 1, 60.0)
    assert complete and outcome(ledger) == ([[n, n * n] for n in range(6)], list(range(6)))
