"""What a row's future depends on: its state, saved and loaded, and the versions and options behind it."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
