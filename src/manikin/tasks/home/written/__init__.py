"""Home tasks whose episodes are written down: generated ones, or those of a file."""

from manikin.tasks.home.written.make import in_episodes

__all__ = ["in_episodes"]
