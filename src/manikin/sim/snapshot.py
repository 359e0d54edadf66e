"""A complete saved state of some rows: enough to continue bit for bit, in any row, at any batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manikin.errors import DataError
from manikin.spec.scene import COSMETIC

__all__ = ["Snapshot"]


@dataclass
class Snapshot:
    """State of n rows.

    Attributes:
        scene_hash: of the physics of the scene it belongs to; a scene with other physics refuses it.
        kind: of the world it is of, ``World.kind``; a world of another kind refuses it.
        look_hash: of the whole scene; one with other cameras, lights or materials takes all but how the rows looked.
        state: (n, nstate) float64, MuJoCo's integration state (time, positions, velocities, warm start, inputs).
        model: per-row model fields, derived constants included; name -> (n, ...). Empty when no field varies.
        served: force-stage outputs as last reported, name -> (n, k) float64; served again until the next step.
        health: (n,) int32.
        extra: what the environment adds: controller carry, task variables, counters, episode keys.
    """

    scene_hash: str
    kind: str
    state: np.ndarray
    model: dict[str, np.ndarray] = field(default_factory=dict)
    served: dict[str, np.ndarray] = field(default_factory=dict)
    look_hash: str = ""
    health: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    extra: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.state)

    def fields_for(self, look_hash: str) -> dict[str, np.ndarray]:
        """The model fields that mean the same in the scene of this hash."""
        if look_hash == self.look_hash:
            return self.model
        return {name: value for name, value in self.model.items() if not name.startswith(COSMETIC)}

    @property
    def pieces(self) -> list[tuple[np.ndarray, Snapshot]]:
        """Rows of one layout each: which, and their snapshot. Here all in one; see ``BucketSnapshot``."""
        return [(np.arange(len(self)), self)]

    def rows(self, index: np.ndarray) -> Snapshot:
        """Some of its rows."""

        def some(tree: Any) -> Any:
            return {k: some(v) for k, v in tree.items()} if isinstance(tree, dict) else tree[index]

        return Snapshot(
            scene_hash=self.scene_hash,
            kind=self.kind,
            state=self.state[index],
            model=some(self.model),
            served=some(self.served),
            look_hash=self.look_hash,
            health=self.health[index] if len(self.health) else self.health,
            extra=some(self.extra),
        )

    @classmethod
    def joined(cls, parts: Sequence[Snapshot]) -> Snapshot:
        """The rows of several snapshots of one environment, in their order."""

        def all_of(trees: Sequence[Any]) -> Any:
            if isinstance(trees[0], dict):
                return {name: all_of([tree[name] for tree in trees]) for name in trees[0]}
            return np.concatenate(trees)

        first = parts[0]
        for part in parts:
            part.index_for(len(part), first.scene_hash, first.kind)
        names = ("state", "model", "served", "health", "extra")
        values = {name: all_of([getattr(part, name) for part in parts]) for name in names}
        return cls(scene_hash=first.scene_hash, kind=first.kind, look_hash=first.look_hash, **values)

    def index_for(self, n: int, scene_hash: str, kind: str) -> np.ndarray:
        """Which snapshot row goes to each of n target rows: one to one, or one row to all.

        Raises:
            DataError: it belongs to another scene or kind of world, or the number of rows fits neither way.
        """
        if kind != self.kind:
            raise DataError(
                f"this snapshot was taken on {self.kind!r} and cannot be loaded on {kind!r}; load it on the same kind "
                "of device"
            )
        if scene_hash != self.scene_hash:
            raise DataError(f"this snapshot belongs to scene {self.scene_hash}, not to {scene_hash}")
        if len(self) == n:
            return np.arange(n)
        if len(self) == 1:
            return np.zeros(n, np.int64)
        raise DataError(f"a snapshot of {len(self)} rows cannot be loaded into {n}: give as many rows, or one for all")
