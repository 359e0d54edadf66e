"""A session that a person in a headset drives."""

from __future__ import annotations

import copy
import time
from typing import Any, ClassVar

import mujoco
import numpy as np

from manikin.errors import ConfigError
from manikin.teleop.headset.headset import Headset
from manikin.teleop.headset.pilot import HandPilot
from manikin.teleop.headset.poses import hand_said, head_said
from manikin.teleop.loop import TeleopLoop
from manikin.view.hand import HandSession
from manikin.view.session import Wishes

__all__ = ["HeadsetSession"]


def _order(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ConfigError(f"{name} must be a whole number from 0 on; got {value!r}")
    return value


def _seconds(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ConfigError(f"{name} must be a number; got {value!r}")
    return float(value)


class HeadsetSession(HandSession):
    """Also takes ``poses``: ``order`` grows from report to report, ``seconds`` says when it was seen; ``head`` is
    ``[x, y, z, qx, qy, qz, qw]`` in the headset's axes, and ``left`` and ``right`` as
    :func:`~manikin.teleop.headset.poses.hand_said` has them. ``calibrate`` is the button of that name.

    Where the headset is ``smooth``, the way from the last state to the newest is shown between control steps, so that
    motion is smooth at the rate of the pictures. A picture is up to one control step late for that.

    Args:
        loop: with a :class:`Headset` as its device.

    Raises:
        ConfigError: the device is another.
    """

    wishes: ClassVar[Wishes] = {
        **HandSession.wishes,
        "poses": {"order": _order, "seconds": _seconds, "head": head_said, "left": hand_said, "right": hand_said},
        "calibrate": {},
    }

    def __init__(self, loop: TeleopLoop) -> None:
        if not isinstance(loop.device, Headset) or not isinstance(loop.pilot, HandPilot):
            raise ConfigError(f"a headset's session needs the device headset, not {loop.device.name}")
        self.headset = loop.device
        self._latest: tuple[mujoco.MjModel, mujoco.MjData, int] | None = None  # and the report that led there
        self._before: tuple[np.ndarray, int, float] | None = None  # where the way begins: qpos, report, when
        self._sides = dict(loop.pilot.sides)
        super().__init__(loop)

    def show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        super().show(model, data)
        latest, acted = self._latest, self.headset.acted
        self._before = None
        if self.headset.smooth and latest is not None and latest[0] is model and data.time > latest[1].time:
            self._before = latest[1].qpos.copy(), latest[2], time.monotonic()
        self._latest = model, data, acted

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the way to the newest state has not been shown to its end."""
        before = self._before
        return before is not None and time.monotonic() - before[2] < 1.2 / self.env.control_hz

    def look(self, row: int | None = None) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Model and data to be shown now; for the thread that makes pictures."""
        before, latest = self._before, self._latest
        assert latest is not None
        model, data, acted = latest
        part = 1.0 if before is None else (time.monotonic() - before[2]) * self.env.control_hz
        if before is None or part >= 1.0:
            self.pictured = {"pose": acted}
            return model, data
        self.pictured = {"pose": before[1]}
        return model, between(model, before[0], data, part)

    def _take(self, wish: str, checked: dict[str, Any]) -> None:
        if wish == "poses":
            self.headset.tell(**checked)
        elif wish == "calibrate":
            self.headset.press("calibrate")
        else:
            super()._take(wish, checked)

    def _extra(self) -> dict[str, Any]:
        said = super()._extra()
        said["hand"] |= {"pose": self.headset.acted, "sides": self._sides}
        return said


def between(model: mujoco.MjModel, start: np.ndarray, data: mujoco.MjData, part: float) -> mujoco.MjData:
    """A state on the way to ``data``, a share of it from the positions ``start`` (nq,) on; what moves by itself alone,
    as a light, is where it is in ``data``."""
    made, way = copy.copy(data), np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, way, 1.0, start, data.qpos)
    made.qpos[:] = start
    mujoco.mj_integratePos(model, made.qpos, way, part)
    mujoco.mj_kinematics(model, made)
    mujoco.mj_comPos(model, made)
    mujoco.mj_camlight(model, made)
    return made
