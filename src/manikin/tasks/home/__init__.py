"""Tasks in a home: the subtasks of MS-HAB, and what they are made of."""

from manikin.tasks.home.scene import in_apartments

__all__ = ["in_apartments"]
