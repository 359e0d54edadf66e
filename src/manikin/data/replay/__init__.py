"""Recorded episodes played again: compared, observed anew."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
