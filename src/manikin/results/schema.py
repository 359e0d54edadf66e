"""What the store holds: three tables, and what each column means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

__all__ = ["COLUMNS", "TABLES", "VERSION", "Result"]

VERSION = 2
"""Of the schema. A store with rows of a newer one is refused; columns that came later are empty in older rows."""

COLUMNS: dict[str, dict[str, tuple[pa.DataType, str]]] = {
    "runs": {
        "run": (pa.string(), "SHA-256 of what was measured; the same result added twice is one run"),
        "schema_version": (pa.int32(), "of these tables"),
        "kind": (pa.string(), "evaluation, training or benchmark"),
        "name": (pa.string(), "of the protocol, the folder of training, or the benchmark"),
        "created": (pa.string(), "ISO time; of a training without a test and of a benchmark, that of its file"),
        "policy": (pa.string(), "as it was named"),
        "policy_sha256": (pa.string(), "of its file; empty where it has none"),
        "policy_seed": (pa.int64(), "of a policy that draws random numbers, or of a training"),
        "protocol_hash": (pa.string(), "results are comparable where it is equal; of a training, that of its test"),
        "recipe_hash": (pa.string(), "of a training"),
        "recipe": (pa.string(), "TOML of a training; as a file, manikin train --recipe FILE trains it again"),
        "device": (pa.string(), "where physics ran"),
        "command": (pa.string(), "that makes it again"),
        "healthy": (pa.bool_(), "no episode dropped contacts or diverged"),
        "complete": (pa.bool_(), "it was not interrupted"),
        "versions": (pa.string(), "JSON: name -> version"),
        "machine": (pa.string(), "JSON"),
        "source": (pa.string(), "the file that was added"),
        "page": (pa.string(), "its page of HTML in this store, with pictures of failures; empty where there is none"),
    },
    "episodes": {
        "run": (pa.string(), "whose"),
        "task": (pa.string(), "id"),
        "named": (pa.string(), "the protocol's word for it"),
        "seed": (pa.int64(), "of the episode"),
        "episode_index": (pa.int64(), "of several with this seed"),
        "success": (pa.bool_(), "by the protocol's rule"),
        "success_once": (pa.bool_(), "at some step"),
        "success_at_end": (pa.bool_(), "at the last"),
        "steps": (pa.int64(), "control steps"),
        "first_success": (pa.int64(), "control step; empty without success"),
        "sum_reward": (pa.float64(), ""),
        "max_reward": (pa.float64(), ""),
        "mode": (pa.string(), "how it succeeded or failed"),
        "health": (pa.string(), "ok, or what went wrong in physics"),
        "force_peak": (pa.float64(), "N, largest contact force on the robot but its fingers"),
    },
    "metrics": {
        "run": (pa.string(), "whose"),
        "name": (pa.string(), "of the number; the keys of a benchmark's file are joined by /"),
        "step": (pa.int64(), "of training; empty elsewhere"),
        "value": (pa.float64(), ""),
    },
}
"""Table -> column -> type, and what it means."""

TABLES = tuple(COLUMNS)

_PLACE = ("source", "page")
_OF_THE_FILE = {"training": ("name", "created", "command"), "benchmark": ("name", "created")}
"""By kind: what the place of a file says, and not its content. An evaluation says these itself."""


def arrow_schema(table: str) -> pa.Schema:
    """Of a table."""
    return pa.schema([(name, kind) for name, (kind, _) in COLUMNS[table].items()])


@dataclass(frozen=True)
class Result:
    """One evaluation, training or benchmark.

    Attributes:
        run: values of the columns of ``runs`` but ``run`` and ``schema_version``; what is missing is empty.
        episodes, metrics: rows without ``run``.
        page: HTML to be stored beside; None for none.
        films: that the page shows, by their names from its folder.
        note: what is to be said to who adds it; "" for nothing.
    """

    run: Mapping[str, Any]
    episodes: Sequence[Mapping[str, Any]] = ()
    metrics: Sequence[Mapping[str, Any]] = ()
    page: bytes | None = field(default=None, repr=False)
    films: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    note: str = ""

    @property
    def id(self) -> str:
        """SHA-256 of what was measured, wherever its file lies and whenever that was written."""
        place = (*_PLACE, *_OF_THE_FILE.get(self.run.get("kind", ""), ()))
        said = {key: value for key, value in self.run.items() if key not in place and value is not None}
        content = json.dumps([said, list(self.episodes), list(self.metrics)], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()
