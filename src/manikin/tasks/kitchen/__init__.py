"""Atomic tasks in a kitchen, after RoboCasa."""
