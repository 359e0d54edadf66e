"""The small table with two upright pegs, one square, one round."""

from __future__ import annotations

from manikin.arenas.square_table import square_table
from manikin.scene.builder import SceneBuilder
from manikin.scene.handles import Robot
from manikin.spec.prop import Shape

__all__ = ["PEGS", "pegs"]

PEGS = {"square": (0.23, 0.1), "round": (0.23, -0.1)}  # [m] where each stands


def pegs(b: SceneBuilder, *, surface: bool = False) -> Robot:
    """Add :func:`square_table` and the pegs, which reach 0.13 m above its top; returns the robot.

    Sizes and places as in robosuite's pegs arena: pegs 0.2 m long, 0.032 m square and 0.04 m across, of which 0.07 m
    are inside the table. ``surface`` says that its top is one for ``rests_on``.
    """
    robot = square_table(b, height=0.82, base=(-0.56, 0.0, 0.093), surface=surface)
    steel = (0.72, 0.74, 0.77, 1.0)
    b.fixture("peg/square", Shape(type="box", size=(0.016, 0.016, 0.1), pos=(*PEGS["square"], 0.03), rgba=steel))
    b.fixture("peg/round", Shape(type="cylinder", size=(0.02, 0.1), pos=(*PEGS["round"], 0.03), rgba=steel))
    return robot
