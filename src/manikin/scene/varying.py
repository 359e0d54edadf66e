"""What is drawn anew for each episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from manikin.errors import SceneError
from manikin.moved import old_names
from manikin.scene.handles.part import Part
from manikin.scene.handles.robot import Robot
from manikin.spec.vary import Choice, Normal, Uniform, Vary

__all__ = ["Variation", "factors"]

__getattr__ = old_names(__name__)  # of Servos


@dataclass(frozen=True)
class Variation:
    """A property of a part or a robot that is drawn anew for each episode."""

    part: Part | Robot
    what: str
    how: Vary


def factors(robot: Robot, **how: Vary | None) -> list[Variation]:
    """Those of a robot's properties that vary. Raises :class:`SceneError` for what is nothing to draw from, and for
    factors that may be negative."""
    given = {what: vary for what, vary in how.items() if vary is not None}
    for what, vary in given.items():
        if not isinstance(vary, Vary):
            raise SceneError(f"{what} of {robot.name} must be a Uniform, Normal or Choice of factors, not {vary!r}")
        if min(np.min(least) for least in _least(vary)) < 0:
            hint = "; give the Normal low=0" if isinstance(vary, Normal) else ""
            raise SceneError(f"{what} of {robot.name}: factors must not be negative, and {vary!r} can be{hint}")
    return [Variation(robot, what, vary) for what, vary in given.items()]


def _least(vary: Vary) -> Sequence[Any]:
    """Numbers below which nothing is drawn."""
    if isinstance(vary, Choice):
        return vary.options
    return (vary.low, vary.high) if isinstance(vary, Uniform) else (vary.low,)
