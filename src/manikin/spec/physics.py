"""Physics options of a scene."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Physics"]


@dataclass(frozen=True, kw_only=True)
class Physics:
    """Solver options. The defaults hold a grasp without slipping: elliptic cone with impratio 10 slips 0.4 mm in 4 s
    where MuJoCo's defaults slip 8 mm (0.1 kg cube, measured); ``impratio=100`` a tenth of that, for precise tasks.

    Attributes:
        hz: physics steps per second; 200 to 500 with implicitfast, 100 only with ``discrete``.
        solref: contact stiffness, time constant [s] and damping ratio; at least two timesteps.
    """

    hz: float = 200.0
    integrator: str = "implicitfast"  # or "discrete", "implicit", "Euler", "RK4"
    cone: str = "elliptic"  # or "pyramidal"
    impratio: float = 10.0
    iterations: int = 50
    ls_iterations: int = 50  # 20 press cubes through a table at impratio 100, with no warning
    noslip_iterations: int = 0
    solref: tuple[float, float] = (0.01, 1.0)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
