"""Recorded episodes for other controllers."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
