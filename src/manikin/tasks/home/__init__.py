"""Tasks in a home: the subtasks of MS-HAB, and what they are made of."""
