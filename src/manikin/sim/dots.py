"""Dots on surfaces: ink, dirt, an outline to follow. Pictures show them, and physics does not know them.

A scene declares a group as a custom numeric field of the model, which MuJoCo carries along and never reads: the look,
then ``x, y, z, shown`` of every dot. ``World.dots`` has the dots of all rows. A model that shows one row, which is what
renderers get, has that row's in the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np
from torch import Tensor

from manikin.errors import SceneError

__all__ = ["RGBA", "DotGroup", "dot_groups", "show_dots"]

RGBA = tuple[float, float, float, float]
_PREFIX = "dots/"
_LOOK = 6  # numbers before the dots: radius, height, red, green, blue, opacity


@dataclass(frozen=True, eq=False)
class DotGroup:
    """Dots of one look.

    Attributes:
        name: in the scene.
        count: how many there are, shown or not.
        radius: across the surface, if that is level [m].
        height: how far above or below a dot's place a surface may lie that it colours [m].
        rgba: red, green and blue are the share of light that the dot leaves of what is beneath; opacity 1 is all of it.
        places: (count, 4) x, y, z [m] and 1 if shown else 0, as the model has them.
    """

    name: str
    count: int
    radius: float
    height: float
    rgba: RGBA
    places: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))

    def declare(self, spec: mujoco.MjSpec) -> None:
        """Add the group, no dot shown, to a scene.

        Raises:
            SceneError: a size is not positive, or a colour not within 0..1.
        """
        if self.count < 1 or not (self.radius > 0 and self.height > 0):
            raise SceneError(
                f"dots {self.name!r}: count, radius and height must be positive, not {self.count}, {self.radius}, "
                f"{self.height}"
            )
        if len(self.rgba) != 4 or not all(0 <= value <= 1 for value in self.rgba):
            raise SceneError(f"dots {self.name!r}: rgba must be four numbers in 0..1, not {self.rgba}")
        look = [self.radius, self.height, *self.rgba]
        spec.add_numeric(name=_PREFIX + self.name, size=_LOOK + 4 * self.count, data=look)


def dot_groups(model: mujoco.MjModel) -> list[DotGroup]:
    """The groups of a model, in the order of their declaration; ``places`` are views of the model's field."""
    found = []
    for number in range(model.nnumeric):
        name = model.numeric(number).name
        if name.startswith(_PREFIX):
            start, size = int(model.numeric_adr[number]), int(model.numeric_size[number])
            radius, height, r, g, b, a = model.numeric_data[start : start + _LOOK].tolist()
            places = model.numeric_data[start + _LOOK : start + size].reshape(-1, 4)
            found.append(DotGroup(name.removeprefix(_PREFIX), len(places), radius, height, (r, g, b, a), places))
    return found


def show_dots(model: mujoco.MjModel, dots: Mapping[str, np.ndarray | Tensor]) -> None:
    """Put the dots of one row, by group (count, 4), into a model of one's own."""
    for group in dot_groups(model) if dots else ():
        group.places[...] = np.asarray(dots[group.name])
