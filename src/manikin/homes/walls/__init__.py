"""Walls of apartments whose own are missing."""
