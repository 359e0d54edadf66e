"""Recordings and demonstrations as other projects lay them out: written and read. Nothing else knows their tasks."""
