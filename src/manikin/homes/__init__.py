"""Apartments: furniture with doors and drawers, places where things lie, and where a robot can drive."""

from manikin.homes.apartment import Apartment, Fixture, Mechanism, Receptacle
from manikin.homes.built_in import VARIATIONS, apartment
from manikin.homes.free_space import FreeSpace, free_space
from manikin.homes.furnish import Home, furnish
from manikin.homes.starts import Starts

__all__ = [
    "VARIATIONS",
    "Apartment",
    "Fixture",
    "FreeSpace",
    "Home",
    "Mechanism",
    "Receptacle",
    "Starts",
    "apartment",
    "free_space",
    "furnish",
]
