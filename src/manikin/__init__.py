"""manikin: robot manipulation from an idea to a number that can be trusted."""

__version__ = "0.1.0"
