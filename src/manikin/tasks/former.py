"""Versions of tasks that a newer one replaced. A recording, protocol or result that names one means what it meant.

Lists show the newest versions alone; ``manikin.make("PickCube-v1")`` gives the former one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from manikin.spec.physics import Physics

__all__ = ["FORMER"]

_AT_200 = Physics(hz=200, integrator="implicitfast", solref=(0.01, 1.0))
_PRECISE = dataclasses.replace(_AT_200, impratio=100)
_AT_500 = Physics(hz=500, integrator="implicitfast", solref=(0.01, 1.0), impratio=20)

FORMER: dict[str, dict[str, Any]] = {
    **{
        f"{name}-v1": {"physics": _AT_200}
        for name in (
            *("LiftPegUpright", "OpenCabinetDrawer", "PickClutterYCB", "PickCube", "PickSingleYCB", "PlaceSphere"),
            *("PullCube", "PushCube", "TwoRobotPickCube"),
        )
    },
    **{f"{name}-v1": {"physics": _PRECISE} for name in ("PegInsertionSide", "StackCube", "TwoRobotStackCube")},
    **{
        f"{name}-v1": {"physics": _AT_500}
        for name in (
            *("Door", "PickPlace", "PickPlaceBread", "PickPlaceCan", "PickPlaceCereal", "PickPlaceMilk"),
            "TwoArmPegInHole",
        )
    },
    "TwoArmLift-v1": {"physics": _AT_500, "rests": False},
    "TwoArmLift-v2": {"rests": False},
    **{
        f"{name}-{version}": {"rests": False, **more}
        for name in ("NutAssembly", "NutAssemblyRound", "NutAssemblySquare")
        for version, more in (("v2", {"pads": None}), ("v3", {}))
    },
}
"""Id of a former version -> what its class has otherwise than the newest. Where starts, rewards, successes or the robot
were wrong (version 1 of Lift, Stack, NutAssembly, TwoArmHandover, Wipe, of the WidowX's four), the former version is
gone."""
