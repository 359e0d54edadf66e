"""The protocol of the CSIRO manipulation benchmark: ten tasks, their objects, joint targets and times.

Source: Collins et al., Benchmarking Simulated Robotic Manipulation through a Real World Dataset, IEEE RA-L 2020,
arXiv 1911.01557, and the exemplar code that the authors released. World frame: origin under the robot's base on the
table, x towards the objects, z up. Joint angles are those of the URDF, zero where the arm points up; the authors'
targets have 180 degrees more in joints 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from manikin.errors import UnknownNameError

__all__ = [
    "BASE_HEIGHT",
    "GAIN",
    "HZ",
    "REPEATS",
    "SUBGROUPS",
    "TASKS",
    "BenchmarkTask",
    "TrackedObject",
    "benchmark_task",
]

HZ = 10.0
"""Rate of commands, of the summary files and of submitted files [1/s]."""
REPEATS = 20
"""Repeats of each task."""
BASE_HEIGHT = 0.055
"""Height of the robot's base above the table [m]. The paper prints 0.055 mm; its code uses metres."""
GAIN = 4.0
"""Of the controller: commanded joint velocity per difference to the target [1/s]."""


@dataclass(frozen=True, kw_only=True)
class TrackedObject:
    """What the arm pushes.

    Attributes:
        shape: cube, cylinder, cone or cuboid.
        material: plastic or wood.
        size: edges (x, y, z), or (diameter, length) [m].
        mass: [kg].
        start: position (x, y, z) [m] and roll, pitch, yaw [rad]. A cone's origin is the middle of its base.
    """

    shape: str
    material: str
    size: tuple[float, ...]
    mass: float
    start: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class BenchmarkTask:
    """One task.

    Attributes:
        number: 1 to 10.
        title: what is done.
        seconds: nominal duration, that of the released script.
        segments: (end [s], joint targets [degrees]); a target holds until its end.
        thing: what is pushed; None in tasks 1 and 2.
    """

    number: int
    title: str
    seconds: float
    segments: tuple[tuple[float, tuple[float, ...]], ...]
    thing: TrackedObject | None = None

    @property
    def rows(self) -> int:
        """Samples at 10 Hz in the nominal duration."""
        return round(self.seconds * HZ)


_SIMPLE = ((3, (0, -90, 0, 0, 0, 0)), (6, (0, 0, 90, 0, 0, 0)), (10, (0, -90, 0, 0, 90, 0)))
_COMPLEX = (
    (3, (-2, -3, -8, 10, -2, 0)),  # the recording does not go there
    (5, (47, -20, 34, 8, -19, 0)),
    (7, (46, -23, 70, 13, -42, 0)),
    (9, (19, -37, 83, 0, -63, 0)),
    (11, (-23, -26, 104, -88, -47, 0)),
    (14, (-32, -20, 34, 2, -21, 0)),
)
_PUSH = (
    (3, (-3, -30, 101, 97, -4, -11)),
    (5, (-3, -57, 73, 101, -4, -12)),
    (7, (-3, -66, 44, 101, -4, -12)),
    (9, (15, -60, 49, 107, -3, -96)),
    (11, (15, -84, 28, 107, -4, -96)),
    (13, (-20, -84, 28, 107, -4, -96)),
)
_ROLL = (
    (3, (0, -11, 105, 87, -4, 1)),
    (6, (0, -40, 94, 87, -4, 1)),
    (9, (2, -57, 70, 87, -4, 1)),
    (79, (0, -57, 63, 87, -5, 1)),
)
_CONE = (
    (3, (-11, -66, 5, 11, -58, 100)),
    (6, (2, -88, 5, 11, -49, 100)),
    (69, (9, -88, 8, 11, -49, 100)),
)
_TOPPLE = ((3, (-5, -14, 110, 91, 0, 0)), (6, (-2, -40, 85, 91, 0, 0)), (9, (-2, -50, 20, 91, 0, 0)))

_SHAPES = {  # size, start
    "cube": ((0.075, 0.075, 0.075), (0.6, 0.0, 0.0375, 0.0, 0.0, 0.0)),
    "cylinder": ((0.075, 0.15), (0.6, 0.0, 0.0375, 1.571, 0.0, 0.0)),
    "cone": ((0.075, 0.1), (0.6, 0.0, 0.0375, 0.0, 1.92957, 0.0)),
    "cuboid": ((0.075, 0.075, 0.15), (0.6, 0.0, 0.075, 0.0, 0.0, 0.0)),
}


def _thing(shape: str, material: str, mass: float) -> TrackedObject:
    size, start = _SHAPES[shape]
    return TrackedObject(shape=shape, material=material, size=size, mass=mass, start=start)


_ALL = (
    (1, "simple motion of the arm", 10, _SIMPLE, None),
    (2, "complex motion of the arm", 14, _COMPLEX, None),
    (3, "push a plastic cube", 13, _PUSH, _thing("cube", "plastic", 0.07)),
    (4, "push a wooden cube", 13, _PUSH, _thing("cube", "wood", 0.46)),
    (5, "roll a plastic cylinder", 79, _ROLL, _thing("cylinder", "plastic", 0.12)),
    (6, "roll a wooden cylinder", 79, _ROLL, _thing("cylinder", "wood", 0.78)),
    (7, "roll a plastic cone", 69, _CONE, _thing("cone", "plastic", 0.04)),
    (8, "roll a wooden cone", 69, _CONE, _thing("cone", "wood", 0.17)),
    (9, "push a plastic cuboid", 9, _TOPPLE, _thing("cuboid", "plastic", 0.14)),
    (10, "push a wooden cuboid", 9, _TOPPLE, _thing("cuboid", "wood", 0.85)),
)
TASKS: dict[int, BenchmarkTask] = {
    k: BenchmarkTask(number=k, title=title, seconds=s, segments=segments, thing=thing)
    for k, title, s, segments, thing in _ALL
}
"""The ten tasks by number."""
SUBGROUPS: dict[int, tuple[int, ...]] = {1: (1, 2), 2: (3, 4, 5, 6, 7, 8, 9, 10)}
"""Tables II and III of the paper: the arm alone, and the arm with an object."""


def benchmark_task(number: int | str) -> BenchmarkTask:
    """A task by its number. Raises :class:`UnknownNameError` for another number or a name."""
    if not isinstance(number, int) or number not in TASKS:
        raise UnknownNameError("task of the benchmark", str(number), map(str, TASKS))
    return TASKS[number]
