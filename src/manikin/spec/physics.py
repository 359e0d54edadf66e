"""Physics options of a scene."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Physics"]


@dataclass(frozen=True, kw_only=True)
class Physics:
    """Solver options. The defaults hold what a gripper holds: a cube in the gripper of an arm that moves at random
    slips by less than 1 mm in 1.5 s (``benchmarks/physics.py``; the page on physics has a table of all tasks).

    Attributes:
        hz: physics steps per second. ``discrete`` holds a grasp from 60 Hz, other integrators and grippers with
            linkages from 200 Hz: :meth:`least_hz`. An environment whose gripper has linkages takes a multiple of this
            rate; below the least the log warns.
        solref: contact stiffness of everything in the scene, robots too: time constant [s] and damping ratio.
            ``discrete`` takes any, other integrators at least two timesteps.
        impratio: how much stiffer friction is than the contact's normal; 100 for things that stand on others.
    """

    hz: float = 100.0
    integrator: str = "discrete"  # or "implicitfast", "implicit", "Euler", "RK4"
    cone: str = "elliptic"  # or "pyramidal"
    impratio: float = 10.0
    iterations: int = 50
    ls_iterations: int = 50  # 20 press cubes through a table at impratio 100, with no warning
    noslip_iterations: int = 0
    solref: tuple[float, float] = (0.005, 1.0)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    def least_hz(self, *, closed_loops: bool = False) -> float:
        """The lowest rate at which a gripper on a moving arm keeps hold of things [Hz]; ``closed_loops`` if its fingers
        are linkages."""
        return 60.0 if self.integrator == "discrete" and not closed_loops else 200.0
