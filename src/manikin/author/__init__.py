"""For who writes a task or a robot: templates, checks, measured action cards, task pages, speed."""
