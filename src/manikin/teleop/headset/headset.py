"""A headset with its controllers, or with hands that it sees, as its page in the browser reports them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

import numpy as np

from manikin.errors import ConfigError
from manikin.teleop.device import SIDES, Device, Hand, HandOptions, Motion
from manikin.teleop.headset import turns
from manikin.teleop.headset.filter import OneEuro, PoseFilter
from manikin.teleop.headset.poses import BUTTONS_OF, TIPS, SeenHand

__all__ = ["AXES", "Headset", "heading", "palm_axes"]

LEASE = 0.5  # without word from the page for this long, no hand is seen [s]

AXES = turns.matrix_quat(np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
"""From the headset's axes (right, up, backward) to forward, left, up."""


def heading(quat: np.ndarray) -> float:
    """[rad] about the vertical, to the left, where a head (4,) looks that is turned so in the headset's axes; 0 is
    straight ahead."""
    ahead = turns.rotate(AXES, turns.rotate(quat, np.array([0.0, 0.0, -1.0])))
    return math.atan2(ahead[1], ahead[0])


def palm_axes(joints: np.ndarray, side: str) -> np.ndarray:
    """(3, 3) the axes of a hand that is seen, from its ``joints`` (25, 3): along the fingers, to the right of them for
    who looks down at the back of the hand, and out of the palm."""
    along = joints[11] - joints[0]  # to the middle finger's knuckle
    across = joints[21] - joints[6]  # from the index finger's knuckle to the little finger's
    if side == "left":
        across = -across
    along = along / max(1e-6, float(np.linalg.norm(along)))
    across = across - along * float(across @ along)
    across = across / max(1e-6, float(np.linalg.norm(across)))
    return np.stack([along, across, np.cross(along, across)], 1)


class Headset(Device):
    """Told by its page where head and hands are, as often as the headset knows it.

    Poses are filtered where they arrive. A hand that squeezes its controller, or bends ring and little finger, holds
    its tool. The person's forward is where the head looked first, until ``calibrate``.

    Args:
        options: how hands drive tools.
        smooth: whether its pictures show the way between states, one control step late.
        clock: gives the time [s].

    Attributes:
        acted: the number of the newest report that :meth:`read` has passed on; -1 before the first.
    """

    name = "headset"
    help = (
        ("grip, or ring and little finger bent", "the tool moves with the hand"),
        ("trigger, or thumb and index finger", "gripper"),
        ("A", "keep the episode"),
        ("B", "discard, and begin again"),
        ("X", "show or hide the cloud of points"),
        ("Y, or a stick pressed", "calibrate: look ahead, hold the hands as the tools are"),
    )

    hands: HandOptions

    def __init__(
        self,
        options: HandOptions | None = None,
        *,
        smooth: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.hands, self.smooth = options or HandOptions(), smooth
        self._clock, self._lock = clock, threading.Lock()
        self._filters = {side: (PoseFilter(), OneEuro(cutoff=4.0)) for side in SIDES}
        self._held = dict.fromkeys(SIDES, False)
        self._pinched = dict.fromkeys(SIDES, False)
        self._now: dict[str, Hand] = {}
        self._down: frozenset[str] = frozenset()
        self._tapped: frozenset[str] = frozenset()
        self._yaw: float | None = None
        self._look: float | None = None
        self._order, self._heard, self._time = -1, -math.inf, -math.inf
        self.acted = -1

    def tell(
        self,
        *,
        order: int,
        seconds: float,
        head: tuple[np.ndarray, np.ndarray] | None,
        left: SeenHand | None = None,
        right: SeenHand | None = None,
    ) -> None:
        """What the headset sees now. From any thread.

        Args:
            order: grows from report to report; older ones that come late are left out.
            seconds: when it was seen, on a clock of the page's [s].
            head: place and turn; None where it is not known.
            left: that hand; None where it is not seen.
            right: that hand.

        Raises:
            ConfigError: ``seconds`` is not a number.
        """
        if not math.isfinite(seconds):
            raise ConfigError(f"seconds must be a number; got {seconds!r}")
        with self._lock:
            if order <= self._order and seconds <= self._time:
                return  # a page that is loaded again begins to count anew, its clock goes on
            self._order, self._time, self._heard = order, seconds, self._clock()
            if head is not None:
                self._look = heading(head[1])
            if self._yaw is None:
                self._yaw = self._look
            down: set[str] = set()
            seen = {side: one for side, one in (("left", left), ("right", right)) if one is not None}
            for side, one in seen.items():
                down |= {BUTTONS_OF[side][button] for button in one.pressed if button in BUTTONS_OF[side]}
            pressed = down - self._down
            self._tapped, self._down = self._tapped | pressed, frozenset(down)
            if "calibrate" in pressed:
                self._yaw = self._look if self._look is not None else self._yaw
            self._now = {side: self._hand(side, one, seconds) for side, one in seen.items()}
            for side in SIDES:
                if side not in seen:
                    self._held[side] = self._pinched[side] = False

    def press(self, button: str) -> None:
        """A button in the scene was touched, or one of the page pressed. From any thread."""
        with self._lock:
            self._tapped |= {button}
            if button == "calibrate" and self._look is not None:
                self._yaw = self._look

    def read(self) -> Motion:
        """The hands as they were reported last; none after half a second without word."""
        with self._lock:
            if self._clock() - self._heard > LEASE:
                self._now, self._down = {}, frozenset()
                self._held, self._pinched = dict.fromkeys(SIDES, False), dict.fromkeys(SIDES, False)
            buttons, self._tapped = self._down | self._tapped, frozenset()
            self.acted = self._order
            at = self._heard if math.isfinite(self._heard) else None
            return Motion(hands={side: self._faced(hand) for side, hand in self._now.items()}, buttons=buttons, at=at)

    def _hand(self, side: str, seen: SeenHand, seconds: float) -> Hand:
        """A hand in the headset's axes, filtered."""
        poses, gaps = self._filters[side]
        quat = seen.quat
        if seen.joints is not None:  # how the palm is turned shakes less than how the wrist is
            quat = turns.matrix_quat(palm_axes(seen.joints, side))
        pos, quat = poses(seen.pos, quat, seconds)
        self._held[side] = seen.holds(self._held[side])
        self._pinched[side] = seen.pinches(self._pinched[side])
        grip, tips = seen.grip, None
        if seen.joints is not None:
            axes = palm_axes(seen.joints, side)
            away = (seen.joints[list(TIPS)] - seen.joints[0]) @ axes
            tips = gaps(away.reshape(-1), seconds).reshape(5, 3)
        return Hand(pos=pos, quat=quat, held=self._held[side], pinched=self._pinched[side], grip=grip, tips=tips)

    def _faced(self, hand: Hand) -> Hand:
        """The hand in axes that point forward, left and up of the person."""
        face = turns.mul(turns.about_z(-(self._yaw or 0.0)), AXES)
        return Hand(
            pos=turns.rotate(face, hand.pos),
            quat=turns.mul(face, hand.quat),
            held=hand.held,
            pinched=hand.pinched,
            grip=hand.grip,
            tips=hand.tips,
        )
