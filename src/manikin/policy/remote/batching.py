"""Requests of many clients answered together, and numbers about it for Prometheus."""

from __future__ import annotations

import bisect
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch import Tensor

__all__ = ["Batcher", "Histogram", "Metrics"]

Answer = Callable[[dict[str, Tensor], list[str]], Tensor]
"""Leaves (n, ...) and n instructions -> actions (n, H, A)."""


@dataclass
class Histogram:
    """How many values were at most as large as each bound, as Prometheus has it."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect.bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> list[str]:
        """In Prometheus' text format."""
        out, so_far = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            so_far += count
            out.append(f'{name}_bucket{{le="{bound}"}} {so_far}')
        return [*out, f"{name}_sum {self.total:.6g}", f"{name}_count {so_far}"]


class Metrics:
    """What a server of policies did since it began. Threads may count at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(("requests", "rows", "errors"), 0)
        self._connections = 0
        self._rows = Histogram((1, 2, 4, 8, 16, 32, 64))
        self._seconds = Histogram((0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0))

    def connected(self, change: int) -> None:
        """A client came (1) or went (-1)."""
        with self._lock:
            self._connections += change

    def request(self, rows: int, seconds: float) -> None:
        """A request of so many rows was answered after so long."""
        with self._lock:
            self._counts["requests"] += 1
            self._counts["rows"] += rows
            self._seconds.add(seconds)

    def error(self) -> None:
        """A request could not be answered."""
        with self._lock:
            self._counts["errors"] += 1

    def batch(self, rows: int) -> None:
        """The policy was asked about so many rows at once."""
        with self._lock:
            self._rows.add(rows)

    def text(self) -> str:
        """In Prometheus' text format."""
        with self._lock:
            lines = []
            for name, value in self._counts.items():
                lines += [f"# TYPE manikin_{name}_total counter", f"manikin_{name}_total {value}"]
            lines += ["# TYPE manikin_connections gauge", f"manikin_connections {self._connections}"]
            for name, histogram in (("batch_rows", self._rows), ("request_seconds", self._seconds)):
                lines += [f"# TYPE manikin_{name} histogram", *histogram.lines(f"manikin_{name}")]
        return "\n".join(lines) + "\n"


@dataclass
class _Waiting:
    rows: dict[str, Tensor]
    prompts: list[str]
    future: Future[Tensor]


class Batcher:
    """Asks a policy about the rows of many requests at once.

    While the policy computes, requests wait; the next answer takes as many of them as fit. So nobody waits for others
    who may never come, and the more clients there are, the larger the batches.

    Args:
        answer: asks the policy; called from one thread.
        most: rows at once. A request of more is asked alone.
        metrics: told about each batch.
    """

    def __init__(self, answer: Answer, most: int, metrics: Metrics) -> None:
        self._answer, self._most, self._metrics = answer, most, metrics
        self._waiting: deque[_Waiting] = deque()
        self._changed, self._open = threading.Condition(), True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, rows: Mapping[str, Tensor], prompts: Sequence[str]) -> Tensor:
        """Actions (n, H, A) for leaves (n, ...). Blocks. Raises what the policy raised; RuntimeError when closed."""
        one = _Waiting(dict(rows), list(prompts), Future())
        with self._changed:
            if not self._open:
                raise RuntimeError("the server stops")
            self._waiting.append(one)
            self._changed.notify()
        return one.future.result()

    def close(self) -> None:
        """Answer what waits, and stop. Idempotent."""
        with self._changed:
            self._open = False
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and self._open:
                    self._changed.wait()
                if not self._waiting:
                    return
                together = self._take()
            self._metrics.batch(sum(len(one.prompts) for one in together))
            try:
                names = together[0].rows
                rows = {name: torch.cat([one.rows[name] for one in together]) for name in names}
                actions = self._answer(rows, [prompt for one in together for prompt in one.prompts])
            except Exception as error:  # whatever a policy raises is for who asked
                for one in together:
                    one.future.set_exception(error)
                continue
            for one, own in zip(together, actions.split([len(one.prompts) for one in together]), strict=True):
                one.future.set_result(own)

    def _take(self) -> list[_Waiting]:
        """The oldest requests that fit together."""
        together = [self._waiting.popleft()]
        rows = len(together[0].prompts)
        while self._waiting and rows + len(self._waiting[0].prompts) <= self._most:
            together.append(self._waiting.popleft())
            rows += len(together[-1].prompts)
        return together
