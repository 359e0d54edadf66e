"""Checks a robot: its declaration, its motions and its reach."""
