"""How far a place is from where a robot like Fetch can drive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from manikin.homes.apartment import Apartment
from manikin.homes.free_space import CELL, free_space

__all__ = ["ARM", "RADIUS", "DriveMap"]

RADIUS, ARM = 0.32, (0.56, 0.8)  # [m] of Fetch, for which stands are asked; see manikin.tasks.home.scene


class DriveMap:
    """The largest region of an apartment in which the robot can drive and turn, with its arm at rest.

    Args:
        home: which apartment.
        joints: positions of joints that are not at 0, by mechanism and joint [m or rad].

    Raises:
        See :func:`manikin.homes.free_space`.
    """

    def __init__(self, home: Apartment, joints: Mapping[str, Mapping[str, float]]) -> None:
        free = free_space(home, radius=RADIUS, arm=ARM, joints=joints)  # says so where scipy is not installed
        from scipy import ndimage

        self._origin, self._away = free.origin, ndimage.distance_transform_edt(~free.inside) * CELL

    def away(self, place: np.ndarray) -> float:
        """[m] from a place (3,) [m] to the nearest cell of the region, as the crow flies."""
        cell = np.clip(np.rint((place[:2] - self._origin) / CELL).astype(int), 0, np.array(self._away.shape) - 1)
        return float(self._away[tuple(cell)])
