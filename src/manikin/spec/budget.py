"""How much room a Warp world has."""

from __future__ import annotations

from dataclasses import dataclass

from manikin.errors import ConfigError

__all__ = ["Budget"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Room in a Warp world, per row.

    Attributes:
        nconmax: pairs of geoms near each other, and contacts; shared by all rows, so it is their mean that counts.
        njmax: rows of constraints, a hard limit of each row.
        nccdmax: penetrating pairs of one kind of convex shapes at once, shared by all rows; None for ``nconmax``.

    Raises:
        ConfigError: a number below 1.
    """

    nconmax: int = 64
    njmax: int = 256
    nccdmax: int | None = None

    def __post_init__(self) -> None:
        for name in ("nconmax", "njmax", "nccdmax"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
                raise ConfigError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.nccdmax is not None and self.nccdmax > self.nconmax:
            raise ConfigError(f"nccdmax ({self.nccdmax}) cannot be larger than nconmax ({self.nconmax})")
