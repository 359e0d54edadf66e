"""Worlds on MuJoCo Warp."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
