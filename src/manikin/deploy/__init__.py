"""Policies on robots: one loop for a real arm behind LeRobot's interface, and for a simulated arm behind the same."""

from manikin.deploy.clock import SteppedClock, WallClock
from manikin.deploy.interface import RobotInterface
from manikin.deploy.lerobot import lerobot_robot
from manikin.deploy.loop import Run, Safety, run_on_robot
from manikin.deploy.simulated import Faults, SimulatedRobot
from manikin.deploy.units import MOTORS, JointUnits

__all__ = [
    "MOTORS",
    "Faults",
    "JointUnits",
    "RobotInterface",
    "Run",
    "Safety",
    "SimulatedRobot",
    "SteppedClock",
    "WallClock",
    "lerobot_robot",
    "run_on_robot",
]
