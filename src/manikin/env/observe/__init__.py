"""What a row sees: observations as lists of named sources, and the cameras behind them."""

from __future__ import annotations

from manikin.env.observe.flat import column_names, flatten, merge, own_names, space_of
from manikin.env.observe.observer import ObservationBuilder
from manikin.env.observe.views import CAMERA_WORDS
from manikin.env.observe.vision import Vision
from manikin.env.observe.words import CLOUD_WORDS, STATE_WORDS, Observation, holds, parse
from manikin.moved import old_names

__all__ = [
    "CAMERA_WORDS",
    "CLOUD_WORDS",
    "STATE_WORDS",
    "Observation",
    "ObservationBuilder",
    "Vision",
    "column_names",
    "flatten",
    "holds",
    "merge",
    "own_names",
    "parse",
    "space_of",
]


__getattr__ = old_names(__name__)
