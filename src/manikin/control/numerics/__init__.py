"""Arithmetic of controllers: the laws of torque controllers, their machine code, jerk-limited motion."""
