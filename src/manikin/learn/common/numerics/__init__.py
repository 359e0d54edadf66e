"""Arithmetic that trainers share: advantages, running normalization, averages of weights, critics, schedules."""
