"""3Dconnexion's SpaceMouse, read through hidapi without the maker's driver."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass, replace
from typing import Any

from manikin.errors import ConfigError
from manikin.teleop.device import STILL, Device, Motion

__all__ = ["PRODUCTS", "SpaceMouse", "SpaceState", "parse_report"]

# (vendor, product); the vendor is Logitech for older models and 3Dconnexion for newer ones
PRODUCTS: dict[tuple[int, int], str] = {
    (0x046D, 0xC603): "SpaceMouse Plus XT",
    (0x046D, 0xC626): "SpaceNavigator",
    (0x046D, 0xC627): "SpaceExplorer",
    (0x046D, 0xC628): "SpaceNavigator for Notebooks",
    (0x046D, 0xC629): "SpacePilot Pro",
    (0x046D, 0xC62B): "SpaceMouse Pro",
    (0x256F, 0xC62E): "SpaceMouse Wireless (cable)",
    (0x256F, 0xC62F): "SpaceMouse Wireless (receiver)",
    (0x256F, 0xC631): "SpaceMouse Pro Wireless (cable)",
    (0x256F, 0xC632): "SpaceMouse Pro Wireless (receiver)",
    (0x256F, 0xC633): "SpaceMouse Enterprise",
    (0x256F, 0xC635): "SpaceMouse Compact",
    (0x256F, 0xC652): "Universal Receiver",
}

FULL = 350  # what the device's descriptor gives as the largest deflection
DEAD = 0.05  # share of it that counts as nothing: a cap that rests is not quite at zero
TRANSLATION, ROTATION, KEYS = 1, 2, 3  # numbers of reports
LEFT, RIGHT = 1, 2  # bits of the buttons
MOST = 256  # reports taken at once


@dataclass(frozen=True, kw_only=True)
class SpaceState:
    """The cap and the buttons, in the robot's axes: forward, left, up."""

    linear: tuple[float, float, float] = STILL
    angular: tuple[float, float, float] = STILL
    keys: int = 0


def parse_report(report: bytes, state: SpaceState) -> SpaceState:
    """What the device says after one of its reports.

    Report 1 has x, y, z and report 2 the rotations about them, as signed little-endian 16-bit numbers from -350 to
    350; newer models put all six into report 1. Report 3 has a bit for each button. The device's axes point right,
    towards the person and down. Others (battery, lamp), and what is cut off, change nothing.
    """
    if len(report) < 2:
        return state
    number, body = report[0], report[1:]
    if number == TRANSLATION and len(body) >= 12:
        six = struct.unpack_from("<6h", body)
        return replace(state, linear=_turned(six[:3]), angular=_turned(six[3:]))
    if number in (TRANSLATION, ROTATION) and len(body) >= 6:
        turned = _turned(struct.unpack_from("<3h", body))
        return replace(state, linear=turned) if number == TRANSLATION else replace(state, angular=turned)
    if number == KEYS:
        return replace(state, keys=int.from_bytes(body[:4], "little"))
    return state


def _turned(values: tuple[int, ...]) -> tuple[float, float, float]:
    """From the device's axes to the robot's; rotation vectors turn like others."""
    right, back, down = (_share(v) for v in values)
    return -back + 0.0, -right + 0.0, -down + 0.0  # + 0.0: no negative zeros


def _share(value: int) -> float:
    share = min(1.0, max(-1.0, value / FULL))
    return 0.0 if abs(share) < DEAD else share


class SpaceMouse(Device):
    """The first SpaceMouse that is plugged in. Needs hidapi: ``pip install 'manikin[teleop]'``."""

    name = "spacemouse"
    help = (
        ("cap", "push and twist it: the tool does the same"),
        ("left button", "gripper"),
        ("right button", "discard, and begin again"),
    )

    def __init__(self) -> None:
        self._device: Any = None
        self._state = SpaceState()
        self._at: float | None = None

    def start(self) -> None:
        """Open it.

        Raises:
            ConfigError: hidapi is not installed, none is plugged in, or this user may not read it.
        """
        try:
            import hid
        except ImportError as error:
            raise ConfigError(
                f"a SpaceMouse needs hidapi ({error}): pip install 'manikin[teleop]', or use --device keyboard"
            ) from error
        found = [d for d in hid.enumerate() if (d["vendor_id"], d["product_id"]) in PRODUCTS]
        if not found:
            raise ConfigError(f"no SpaceMouse is plugged in; known are {', '.join(sorted(set(PRODUCTS.values())))}")
        # some offer a keyboard and a mouse as well: theirs is the multi-axis controller of the generic desktop page
        chosen = next((d for d in found if (d.get("usage_page"), d.get("usage")) == (1, 8)), found[0])
        self._device = hid.device()
        try:
            self._device.open_path(chosen["path"])
        except OSError as error:
            raise ConfigError(
                f"the SpaceMouse cannot be opened ({error}); on Linux its /dev/hidraw file must be readable for you: "
                f'a udev rule KERNEL=="hidraw*", ATTRS{{idVendor}}=="{chosen["vendor_id"]:04x}", MODE="0666"'
            ) from error
        self._device.set_nonblocking(True)

    def read(self) -> Motion:
        """Where the cap is after all reports that have come."""
        for _ in range(MOST):
            report = bytes(self._device.read(64))
            if not report:
                break
            self._state, self._at = parse_report(report, self._state), time.monotonic()
        keys = {name for bit, name in ((LEFT, "gripper"), (RIGHT, "reset")) if self._state.keys & bit}
        return Motion(linear=self._state.linear, angular=self._state.angular, buttons=keys, at=self._at)

    def close(self) -> None:
        """Let go of it."""
        if self._device is not None:
            self._device.close()
            self._device = None
