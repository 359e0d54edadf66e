"""Where the robot of a task in a home is on its floor plan: what a page shows as a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from manikin.errors import ConfigError, SceneError
from manikin.homes import Apartment, FreeSpace, Home, free_space
from manikin.homes.footprints import outlines
from manikin.homes.plan import FloorPlan, drawn_plan
from manikin.math import quat_to_yaw

if TYPE_CHECKING:
    from manikin.env.interface import BatchEnv, SceneEnv
    from manikin.scene.handles import Robot

__all__ = ["HomeMap"]

Places = list[list[float]]

_APART = 0.05  # [m] between places of the trail; and as far something moves before another way is looked for
_TURNS = 0.05  # [m] so near a base is while it turns on the spot
_TRAIL = 2000  # places of it that are kept
_REACH = 1.0  # [m] so near to where it is to go a robot needs no way
_TALL = 1.5  # [m] height of the robot in the map that a way is looked for in
_FOOT = 0.5  # [m] what of a base is below this, it needs room for


class HomeMap:
    """The floor plans of the homes that the rows of an environment are in, and where their robots are and have been.

    For the thread that owns the simulation, but for :meth:`svg`.

    Args:
        env: whose rows. Its scenes have a home each, see :meth:`of`.
    """

    def __init__(self, env: BatchEnv) -> None:
        self._env = env
        self._trails: list[Places] = [[] for _ in range(env.num_envs)]
        self._last = np.full((env.num_envs, 2), np.nan)
        self._numbers: dict[tuple[str, str], int] = {}  # of the plans, by layout and name of the home
        self._plans: list[FloorPlan] = []
        self._spaces: dict[int, FreeSpace | None] = {}
        self._found: tuple[int, int, np.ndarray, np.ndarray, np.ndarray] | None = None  # the way looked for last

    @classmethod
    def of(cls, env: BatchEnv) -> HomeMap | None:
        """The map for an environment; None for one whose scene has no home."""
        return None if _home(env.part(0)[0]) is None else cls(env)

    def svg(self, number: int) -> str | None:
        """The drawing of a plan; None where there is none of that number. From any thread."""
        plans = self._plans
        return plans[number].svg if 0 <= number < len(plans) else None

    def begin(self, rows: np.ndarray) -> None:
        """Episodes begin in these rows: where their robots have been before is forgotten."""
        self._last[rows] = np.nan
        for row in rows.tolist():
            self._trails[row] = []
        if self._found is not None and self._found[0] in rows:
            self._found = None

    def note(self) -> None:
        """Remember where the robots of all rows are now."""
        for part in self._env.parts():
            with torch.no_grad(), part.env.on_device():
                here = part.env.robot.root_pose[:, :2].double().numpy(force=True)[part.rows]
            moved = ~(np.linalg.norm(here - self._last[part.places], axis=1) < _APART)  # also at first
            for row, place in zip(part.places[moved].tolist(), here[moved], strict=True):
                self._last[row] = place
                self._trails[row] = [*self._trails[row][-_TRAIL:], _short(place)]

    def seen(self, row: int, ahead: Callable[[int], np.ndarray] | None = None) -> dict[str, Any]:
        """What there is to show of a row, as JSON allows. Places are x and y in the world [m].

        Args:
            row: which.
            ahead: gives (k, 3) places to which a row's base still drives as who drives it has planned. Without it the
                way is the shortest one to the place next to where the robot is to go, and none where that is near.

        Returns:
            ``plan``: number of its drawing; ``home``: name; ``corner`` [m], ``size`` [pixels] and ``scale`` [pixels/m]
            of the drawing, see :class:`manikin.homes.plan.FloorPlan`; ``robots``: x, y and yaw [rad] of each;
            ``marks``: the task's landmarks; ``way``: from the robot on, empty where there is none; ``planned``: whether
            who drives has planned it; ``trail``: where the robot has been in this episode.
        """
        one, at = self._env.part(row)
        home = _home(one)
        assert home is not None
        number = self._number(one, home.apartment)
        plan = self._plans[number]
        with torch.no_grad(), one.on_device():
            poses = torch.stack([robot.root_pose[at] for robot in one.robots])
            robots = torch.cat([poses[:, :2], quat_to_yaw(poses[:, 3:])[:, None]], 1).double().numpy(force=True)
            marks = {
                name: value[at, :2].double().numpy(force=True) for name, value in one.task.landmarks(one.h).items()
            }
        here = robots[0, :2]
        if ahead is not None:
            way = _corners(here, ahead(row)[:, :2])
        else:
            way = self._shortest(row, number, one, at, here, next(iter(marks.values()), None))
        return {
            "plan": number,
            "home": home.apartment.name,
            "corner": list(plan.corner),
            "size": list(plan.size),
            "scale": plan.scale,
            "robots": [[round(v, 4) for v in robot] for robot in robots.tolist()],
            "marks": [{"name": name.replace("_", " "), "at": _short(place)} for name, place in marks.items()],
            "way": [_short(place) for place in (here, *way)] if len(way) else [],
            "planned": ahead is not None,
            "trail": self._trails[row],
        }

    # ---- inside ------------------------------------------------------------------------------------------------------

    def _number(self, one: SceneEnv, apartment: Apartment) -> int:
        key = (one.task.layout or "", apartment.name)
        if key not in self._numbers:
            self._plans = [*self._plans, drawn_plan(apartment)]
            self._numbers[key] = len(self._plans) - 1
        return self._numbers[key]

    def _shortest(
        self, row: int, number: int, one: SceneEnv, at: int, here: np.ndarray, goal: np.ndarray | None
    ) -> np.ndarray:
        """(k, 2) [m] corners of a short way from a robot to the place before a goal, without the first."""
        if goal is None or np.linalg.norm(goal - here) < _REACH:  # what it holds is that near, too
            return np.zeros((0, 2))
        found = self._found
        if (
            found is None
            or found[:2] != (row, number)
            or max(np.linalg.norm(here - found[2]), np.linalg.norm(goal - found[3])) > _APART
        ):
            found = self._found = (row, number, here, goal, self._look(number, one, at, here, goal))
        return found[4]

    def _look(self, number: int, one: SceneEnv, at: int, here: np.ndarray, goal: np.ndarray) -> np.ndarray:
        if number not in self._spaces:
            self._spaces[number] = _space(one, at)
        space = self._spaces[number]
        if space is None:
            return np.zeros((0, 2))
        begin, end = space.closest(np.stack([here, goal]))
        return space.path(begin, end)[1:]


def _home(one: SceneEnv) -> Home | None:
    """The home of a scene; None where its task has declared none."""
    return next((value for value in vars(one.h).values() if isinstance(value, Home)), None)


def _space(one: SceneEnv, at: int) -> FreeSpace | None:
    """Where the first robot of a scene can drive with its doors shut; None where it does not drive, or does not fit."""
    robot, home = one.robot, _home(one)
    assert home is not None
    radius = _radius(one, at, robot) if robot.arm.base.drives else 0.0
    if not 0 < radius < math.inf:
        return None
    try:
        return free_space(home.apartment, radius=radius, height=_TALL)
    except (ConfigError, SceneError):  # no scipy, or no room
        return None


def _radius(one: SceneEnv, at: int, robot: Robot) -> float:
    """[m] of the circle around a robot's base."""
    model, data = one.model_data(at)
    base = model.body(robot.prefix + robot.model.base_body).id
    own = {g for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] == model.body_weldid[base]}
    around = [p for g, p in outlines(model, data, low=0.0, high=_FOOT).items() if g in own]
    middle = data.xpos[base, :2]
    return max((float(np.linalg.norm(p - middle, axis=1).max()) for p in around), default=0.0)


def _corners(here: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Of places (k, 2) that are driven to from ``here``, those to which it is some way; at the others it only turns."""
    before = np.concatenate([here[None], places[:-1]])
    return places[np.linalg.norm(places - before, axis=1) > _TURNS]


def _short(place: np.ndarray) -> list[float]:
    """A place [m] to the centimetre."""
    return [round(float(v), 2) for v in place]
