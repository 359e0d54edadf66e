"""Two ways through a control step, with the same results: on the CPU by rows, on a Warp device by masks."""

from manikin.moved import old_names

__getattr__ = old_names(__name__)
