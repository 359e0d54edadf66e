"""What the numbers in a segmentation picture stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from manikin.errors import UnknownNameError

__all__ = ["SegmentationTable"]

KINDS = ("background", "robot", "part", "fixture")


@dataclass(frozen=True)
class SegmentationTable:
    """Names by number: row 0 is the background, row i + 1 geom i.

    Attributes:
        geoms: name of the geom, "" where it has none.
        bodies: name of its body, "world" for what stands still.
        things: what it belongs to: the name of a robot or a part; of a fixture the name of its geom.
        kinds: ``background``, ``robot``, ``part`` or ``fixture``.
    """

    geoms: tuple[str, ...]
    bodies: tuple[str, ...]
    things: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, model: mujoco.MjModel) -> SegmentationTable:
        """The table of a compiled scene, where names of a robot's bodies are ``robot/body`` (as SceneBuilder's are)."""
        rows = [("", "", "background", "background")]
        for i in range(model.ngeom):
            geom, body = model.geom(i).name, int(model.geom_bodyid[i])
            top = model.body(int(model.body_rootid[body])).name
            if body == 0:
                row = (geom, "world", geom or f"geom {i}", "fixture")
            else:
                thing, slash, _ = top.partition("/")
                row = (geom, model.body(body).name, thing, "robot" if slash else "part")
            rows.append(row)
        return cls(*zip(*rows, strict=True))

    def ids(self, *, thing: str | None = None, body: str | None = None, kind: str | None = None) -> np.ndarray:
        """Numbers (k,) int32 of what has all the names given. Raises :class:`UnknownNameError` for one nothing has."""
        keep = np.ones(len(self.geoms), bool)
        asked = (("thing", thing, self.things), ("body", body, self.bodies), ("kind", kind, self.kinds))
        for what, name, names in asked:
            if name is not None:
                if name not in names:
                    raise UnknownNameError(f"{what} in the scene", name, set(names) - {""})
                keep &= np.array([n == name for n in names])
        return np.flatnonzero(keep).astype(np.int32)

    def by_thing(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """A lookup (n,) int32 from geom numbers to thing numbers, and the things' names; 0 is the background.

        ``lookup[segmentation]`` is the segmentation by robots, parts and fixtures.
        """
        return _numbered(self.things)

    def by_body(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """As :meth:`by_thing`, by bodies."""
        return _numbered(("background", *self.bodies[1:]))


def _numbered(names: Iterable[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    number: dict[str, int] = {}
    lookup = [number.setdefault(name, len(number)) for name in names]
    return np.array(lookup, np.int32), tuple(number)
