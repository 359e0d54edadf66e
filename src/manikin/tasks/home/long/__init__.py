"""The long tasks of homes: sequences of subtasks."""
