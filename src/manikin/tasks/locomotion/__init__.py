"""Robots on legs that go where they are told."""
