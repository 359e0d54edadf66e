"""Tools for authors of tasks and robots: templates, checks, measured action cards, task pages, speed."""
