"""Success rates that SIMPLER published: of its policies in reality and under visual matching.

Source: Li et al., SIMPLER, 2024, arXiv:2405.05941, Tables IV and V, with the authors' real rates of the eggplant task
and 97 of 108 for RT-1-X closing drawers (docs/rank-policies.md says why).
"""

from __future__ import annotations

__all__ = ["PUBLISHED"]

PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "GooglePickCokeCan-v1": {
        "rt-2-x": (0.907, 0.787),
        "rt-1-converged": (0.853, 0.857),
        "rt-1-15pct": (0.920, 0.710),
        "rt-1-x": (0.760, 0.567),
        "rt-1-begin": (0.133, 0.027),
        "octo-base": (0.293, 0.170),
    },
    "GoogleMoveNear-v1": {
        "rt-2-x": (0.733, 0.779),
        "rt-1-converged": (0.633, 0.442),
        "rt-1-15pct": (0.583, 0.354),
        "rt-1-x": (0.450, 0.317),
        "rt-1-begin": (0.017, 0.050),
        "octo-base": (0.350, 0.042),
    },
    "GoogleOpenDrawer-v1": {
        "rt-2-x": (0.333, 0.157),
        "rt-1-converged": (0.815, 0.601),
        "rt-1-15pct": (0.704, 0.463),
        "rt-1-x": (0.519, 0.296),
        "rt-1-begin": (0.0, 0.0),
        "octo-base": (0.148, 0.009),
    },
    "GoogleCloseDrawer-v1": {
        "rt-2-x": (0.630, 0.343),
        "rt-1-converged": (0.926, 0.861),
        "rt-1-15pct": (0.889, 0.667),
        "rt-1-x": (0.741, 0.898),
        "rt-1-begin": (0.0, 0.278),
        "octo-base": (0.519, 0.444),
    },
    "GooglePlaceAppleInDrawer-v1": {
        "rt-2-x": (0.074, 0.037),
        "rt-1-converged": (0.185, 0.065),
        "rt-1-15pct": (0.185, 0.130),
        "rt-1-x": (0.407, 0.213),
        "rt-1-begin": (0.0, 0.0),
        "octo-base": (0.0, 0.0),
    },
    "WidowXSpoonOnTowel-v2": {"rt-1-x": (0.0, 0.0), "octo-base": (0.333, 0.125), "octo-small": (0.417, 0.472)},
    "WidowXCarrotOnPlate-v2": {"rt-1-x": (0.0, 0.042), "octo-base": (0.250, 0.083), "octo-small": (0.083, 0.097)},
    "WidowXStackCube-v2": {"rt-1-x": (0.0, 0.0), "octo-base": (0.0, 0.0), "octo-small": (0.125, 0.042)},
    "WidowXEggplantInBasket-v2": {"rt-1-x": (0.0, 0.0), "octo-base": (0.250, 0.431), "octo-small": (0.400, 0.569)},
}
"""Task's id -> policy -> (success rate in reality, in simulation)."""
