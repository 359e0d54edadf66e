"""Kitchens from parametric fixtures: the built-in ones, and RoboCasa's layouts and styles."""

from manikin.homes.kitchens.assemble import Colours, assembled, boxes
from manikin.homes.kitchens.own import KITCHENS, kitchen
from manikin.homes.kitchens.robocasa import kitchen as robocasa_kitchen

__all__ = ["KITCHENS", "Colours", "assembled", "boxes", "kitchen", "robocasa_kitchen"]
