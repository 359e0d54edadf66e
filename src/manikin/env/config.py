"""The options of a task, its Config, checked: of the kind of their defaults, finite, and no length below zero."""

from __future__ import annotations

import dataclasses
import math
import re
from numbers import Integral, Real
from typing import Any

import numpy as np

from manikin.errors import ConfigError

__all__ = ["check_options"]

_MOST = 2.0**53
"""Beyond it, whole numbers and floats are not the same."""
_NOT_NEGATIVE = re.compile(
    r"half|^still_|(^|_)(radius|tol|gap|margin|speed|spread|clearance|friction|distance|size|room|marks|steps?|std)$"
)
"""Names of lengths, speeds and numbers of things, which cannot be below zero."""

_LISTS = {"tuple[str, ...]": "a name", "tuple[float, ...]": 0.0, "tuple[int, ...]": 0}
"""An item of a list by its type, for those that are empty by default."""
_OR_NONE = {"float | None": 1.0}
"""A value by its type, for those that are None by default."""


def check_options(config: Any, task: str) -> None:
    """Each option of a Config must be of the kind of its default.

    Raises:
        ConfigError: it is not, is not finite, or is below zero where its name says that it is a length; says what it
            may be.
    """
    for field in dataclasses.fields(config):
        value, default = getattr(config, field.name), field.default
        if default == () and (kind_of := _LISTS.get(str(field.type))) is not None:
            default = (kind_of,)  # an empty one does not show of what kind the others are
        if default is None and (other := _OR_NONE.get(str(field.type))) is not None:
            if value is None:
                continue
            default = other
        least = 0.0 if _NOT_NEGATIVE.search(field.name) else -math.inf
        if not _fits(value, default, least, "..." in str(field.type)):
            kind = f"like {default!r}" if default is not dataclasses.MISSING else "finite"
            least_of_all = ", not negative" if least == 0.0 else ""
            raise ConfigError(f"option {field.name!r} of {task} must be {kind}{least_of_all}, not {value!r:.80}")


def _fits(value: Any, default: Any, least: float, any_length: bool = False) -> bool:
    if isinstance(default, tuple) and default:
        if not isinstance(value, tuple):
            return False
        kinds = default[:1] * len(value) if any_length else default
        return len(value) == len(kinds) and all(_fits(v, kind, least) for v, kind in zip(value, kinds, strict=True))
    if isinstance(default, bool):
        return isinstance(value, bool | np.bool_)
    if isinstance(default, str):
        return isinstance(value, str)
    if isinstance(default, int | float):
        kind = Integral if isinstance(default, int) else Real
        number: Any = value if isinstance(value, kind) and not isinstance(value, bool) else math.nan
        return bool(max(least, -_MOST) <= number <= _MOST)
    return not isinstance(value, float) or math.isfinite(value)  # of another kind, or without a default
