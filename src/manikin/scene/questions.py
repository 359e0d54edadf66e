"""Sensors that answer questions about contact."""

from __future__ import annotations

import mujoco

__all__ = ["add_contact_sensor"]

_NET_FORCE = (2, 3, 1)  # data="force", reduce="netforce", num=1


def add_contact_sensor(
    spec: mujoco.MjSpec, name: str, first: str, second: str, *, finger: bool = False, geom: bool = False
) -> None:
    """The net force of a body on another one.

    Args:
        spec: the scene.
        name: of the sensor.
        first: body, which counts with all that hangs on it.
        second: body, which does so, too; ``world`` is its own geoms, the fixtures.
        finger: the first counts alone.
        geom: the second is a geom.
    """
    xbody = mujoco.mjtObj.mjOBJ_XBODY  # a body with all that hangs on it; a finger counts alone
    spec.add_sensor(
        name=name,
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_BODY if finger else xbody,
        objname=first,
        # all that there is hangs on the world: of that body only its own geoms are meant, the fixtures
        reftype=mujoco.mjtObj.mjOBJ_GEOM if geom else mujoco.mjtObj.mjOBJ_BODY if second == "world" else xbody,
        refname=second,
        intprm=_NET_FORCE,
    )
