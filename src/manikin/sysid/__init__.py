"""System identification: the parameters with which the simulator follows recorded motions.

Example:
    from manikin.sysid import identify, read_trajectories

    found = identify(read_trajectories("clips.npz"), ["kp=50:2000:log", "kd=5:500:log"])
    print(found.summary())
"""

from __future__ import annotations

from manikin.sysid.methods import Anneal, Cma, Squares
from manikin.sysid.parameters import KINDS, Parameter, parse_parameter
from manikin.sysid.search import METHODS, Identified, identify
from manikin.sysid.trajectories import Trajectories, Trajectory, read_trajectories

__all__ = [
    "KINDS",
    "METHODS",
    "Anneal",
    "Cma",
    "Identified",
    "Parameter",
    "Squares",
    "Trajectories",
    "Trajectory",
    "identify",
    "parse_parameter",
    "read_trajectories",
]
