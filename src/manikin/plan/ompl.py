"""OMPL's RRT-Connect with MuJoCo's collision detection, one problem after the other.

The Open Motion Planning Library (``pip install 'manikin[plan]'``) draws from generators of its own: its paths differ
from run to run. It is here to compare with, and for its other planners; :mod:`manikin.plan.batched` needs nothing extra
and repeats exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manikin.errors import ConfigError, UnknownNameError
from manikin.plan.batched import Problems
from manikin.plan.collision import CollisionChecker

__all__ = ["PLANNERS", "search_with_ompl"]

PLANNERS = ("RRTConnect", "RRTstar", "BKPIECE1", "LBKPIECE1", "PRM", "BITstar")


def search_with_ompl(
    checker: CollisionChecker,
    problems: Problems,
    *,
    planner: str = "RRTConnect",
    step: float = 0.05,
    seconds: float = 5.0,
    simplify: bool = True,
) -> list[np.ndarray | None]:
    """Of each row the corners (points, joints) of a path, or None where none was found in time.

    Args:
        checker: has looked at the rows.
        problems: as for :func:`manikin.plan.batched.search`; the first goal of each row is the one.
        planner: one of :data:`PLANNERS`.
        step: [rad] between checked configurations, as OMPL measures it (the length of the joint vector).
        seconds: limit per problem.
        simplify: shorten the path found.

    Raises:
        ConfigError: OMPL is not installed.
    """
    base, geometric = _ompl()
    if planner not in PLANNERS:
        raise UnknownNameError("OMPL planner", planner, PLANNERS)
    moved = np.flatnonzero(problems.moved)
    paths: list[np.ndarray | None] = []
    for row, start in enumerate(problems.start):
        if not len(problems.goals[row]):
            paths.append(None)
            continue
        free, whole = checker.single(row), start.copy()

        def valid(state: Any, free: Any = free, whole: np.ndarray = whole) -> bool:
            whole[moved] = state[0 : len(moved)]
            return bool(free(whole))

        space = base.RealVectorStateSpace(len(moved))
        bounds = base.RealVectorBounds(len(moved))
        for k, j in enumerate(moved):
            bounds.setLow(k, float(problems.low[j]))
            bounds.setHigh(k, float(problems.high[j]))
        space.setBounds(bounds)
        setup = geometric.SimpleSetup(space)
        setup.setStateValidityChecker(valid)
        information = setup.getSpaceInformation()
        information.setStateValidityCheckingResolution(step / space.getMaximumExtent())
        ends = []
        for q in (start, problems.goals[row][0]):
            state = space.allocState()
            state[0 : len(moved)] = q[moved].tolist()
            ends.append(state)
        setup.setStartAndGoalStates(*ends)
        setup.setPlanner(getattr(geometric, planner)(information))
        setup.solve(seconds)
        if not setup.haveExactSolutionPath():
            paths.append(None)
            continue
        if simplify:
            setup.simplifySolution()
        path = np.repeat(start[None], setup.getSolutionPath().getStateCount(), 0)
        for k, state in enumerate(setup.getSolutionPath().getStates()):
            path[k, moved] = state[0 : len(moved)]
        paths.append(path)
    return paths


def _ompl() -> tuple[Any, Any]:
    try:
        from ompl import base, geometric, util
    except ImportError as error:
        raise ConfigError(f"OMPL is not installed ({error}): pip install 'manikin[plan]'") from None
    util.setLogLevel(util.LogLevel.LOG_ERROR)
    return base, geometric
