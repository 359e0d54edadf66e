"""Where episodes begin in place of the task's own starts."""
