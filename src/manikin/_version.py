"""The version, in one place; importing it loads nothing else."""

__version__ = "0.1.0"
