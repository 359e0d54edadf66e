"""Policies on robots: one loop for a real arm behind LeRobot's interface, and for a simulated arm behind the same."""

from manikin.deploy.clock import SteppedClock, WallClock
from manikin.deploy.interface import RobotInterface
from manikin.deploy.lerobot import lerobot_robot
from manikin.deploy.loop import RobotRun, Safety, run_on_robot
from manikin.deploy.simulated import Faults, SimulatedRobot
from manikin.deploy.units import MOTORS, JointUnits
from manikin.moved import old_names

__all__ = [
    "MOTORS",
    "Faults",
    "JointUnits",
    "RobotInterface",
    "RobotRun",
    "Safety",
    "SimulatedRobot",
    "SteppedClock",
    "WallClock",
    "lerobot_robot",
    "run_on_robot",
]

__getattr__ = old_names(__name__)
