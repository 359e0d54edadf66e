"""A parametric family of faucets: a foot, a column, a spout, and a switch that turns.

A faucet stands on z = 0 with the middle of its foot at the origin and is used from -x. Its switch is a lever, a cross,
a wheel with spokes or a knob with a fin, on top of the column (it turns about the vertical) or at its front (it turns
about x). Sizes, limits and directions are drawn once from the number of the faucet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import mujoco
import numpy as np

from manikin.assets.builtin import build
from manikin.errors import UnknownNameError
from manikin.spec.links import Geom, Joint, Link, Vec3, box, capsule, cylinder, solid

__all__ = ["FAUCETS", "SWITCHES", "Faucet"]

SWITCHES = ("lever", "cross", "wheel", "knob")
_STEEL, _DARK = (0.67, 0.67, 0.69, 1.0), (0.32, 0.33, 0.36, 1.0)
_DENSITY = 2000.0  # [kg/m^3] of the switch, which is hollow: its friction holds it against its weight
_FRONT = (0.5, 0.5, -0.5, -0.5)  # wxyz: z towards -x, y up
_HUB = 0.012  # [m] radius


@dataclass(frozen=True, kw_only=True)
class Faucet:
    """One of the family.

    Attributes:
        switch: one of :data:`SWITCHES`.
        front: whether the switch is at the column's front instead of on its top.
        height: of the column [m].
        radius: of the column [m].
        reach: from the switch's axis to the end of its arms, or to the middle of the wheel's rim [m].
        start: direction of an arm in the closed position, in the switch's own plane [rad].
        sign: 1 if it opens anticlockwise, seen from outside, else -1.
        limits: of the joint [rad]; None for one without limits, which is closed at 0.
        spout: direction of the spout about the vertical [rad].
        spout_length: [m].
        arched: whether the spout rises before it goes out.
    """

    switch: str
    front: bool
    height: float
    radius: float
    reach: float
    start: float
    sign: int
    limits: tuple[float, float] | None
    spout: float
    spout_length: float
    arched: bool

    @property
    def pivot(self) -> Vec3:
        """[m] where the switch's axis leaves the column."""
        return (-self.radius, 0.0, self.height - 0.04) if self.front else (0.0, 0.0, self.height)

    @property
    def quat(self) -> tuple[float, float, float, float]:
        """Wxyz of the switch in the closed position: z out of the column along its axis."""
        return _FRONT if self.front else (1.0, 0.0, 0.0, 0.0)

    @property
    def closed(self) -> float:
        """[rad] the joint's closed position."""
        return 0.0 if self.limits is None else self.limits[0]

    def opened(self, share: float) -> float:
        """[rad] the position that counts as open: that share of the joint's range, a quarter turn where it has none."""
        return math.pi / 2 if self.limits is None else self.limits[0] + share * (self.limits[1] - self.limits[0])

    @property
    def plane(self) -> float:
        """[m] from the pivot along the axis to the middle of the arms; to the outer part of a fin."""
        return 0.056 if self.switch == "knob" else 0.04

    @property
    def push_radius(self) -> float:
        """[m] from the axis to where an arm is to be pushed."""
        return {"lever": 0.75, "cross": 0.75, "wheel": 0.58, "knob": 0.65}[self.switch] * self.reach

    def build(self) -> mujoco.MjSpec:
        """The model: bodies ``body`` and ``switch``, the joint ``switch``, and the site ``handle/switch`` on the arm
        that is to be pushed.

        Raises:
            UnknownNameError: a switch of another kind.
        """
        if self.switch not in SWITCHES:
            raise UnknownNameError("kind of switch", self.switch, SWITCHES)
        joint = Joint(
            name="switch", axis=(0, 0, self.sign), range=self.limits, damping=2.0, frictionloss=0.1, armature=1e-4
        )
        switch = Link(name="switch", parent="body", pos=self.pivot, quat=self.quat, joint=joint, geoms=self._switch())
        spec = build((Link(name="body", parent=None, geoms=self._body()), solid(switch, _DENSITY)), name="faucet")
        arm = (self.push_radius * math.cos(self.start), self.push_radius * math.sin(self.start), self.plane)
        spec.body("switch").add_site(name="handle/switch", pos=arm, size=[0.005, 0, 0], group=4)
        return spec

    def _body(self) -> tuple[Geom, ...]:
        r, c, s = self.radius, math.cos(self.spout), math.sin(self.spout)
        long, pipe = self.spout_length, 0.6 * self.radius

        def out(away: float, height: float) -> Vec3:
            return (away * c, away * s, height)

        start = self.height if self.arched else self.height - (0.07 if self.front else 0.05)
        rise = start + (0.06 if self.arched else 0.0)
        points = [out(0.0, start), out(0.35 * long, rise), out(0.8 * long, rise), out(long, rise - 0.04)]
        pipes = [capsule(a, b, pipe, _STEEL) for a, b in pairwise(points)]
        foot, column = (
            cylinder((0, 0, 0), (0, 0, 0.012), 2.2 * r, _STEEL),
            cylinder((0, 0, 0), out(0, self.height), r, _STEEL),
        )
        return (foot, column, *pipes)

    def _switch(self) -> tuple[Geom, ...]:
        z, far = self.plane, self.reach
        hub = cylinder((0, 0, -0.01), (0, 0, z + 0.006), _HUB, _DARK)

        def at(angle: float, away: float, height: float = z) -> Vec3:
            return (away * math.cos(self.start + angle), away * math.sin(self.start + angle), height)

        if self.switch == "lever":
            return (hub, capsule((0, 0, z), at(0, far), 0.007, _DARK))
        if self.switch == "cross":
            return (hub, *(capsule(at(a, far), at(a + math.pi, far), 0.007, _DARK) for a in (0, math.pi / 2)))
        if self.switch == "wheel":
            spokes = [capsule((0, 0, z), at(2 * math.pi * k / 3, far), 0.006, _DARK) for k in range(3)]
            step = 2 * math.pi / 15
            rim = [capsule(at(k * step, far), at((k + 1) * step, far), 0.006, _DARK) for k in range(15)]
            return (hub, *spokes, *rim)
        half = self.start / 2
        turned = (math.cos(half), 0.0, 0.0, math.sin(half))
        fin = box((far, 0.005, 0.017), (0, 0, z - 0.004), _DARK, quat=turned)
        return (cylinder((0, 0, -0.01), (0, 0, 0.036), 0.65 * far, _DARK), fin)


def _drawn(number: int) -> Faucet:
    """The faucet of a number: switches and sides in turn, the rest drawn, in whole millimetres and hundredths."""
    rng = np.random.default_rng(number)  # house: random, a generator of its own with the number as its seed
    switch, front = SWITCHES[number % 4], number // 4 % 2 == 1
    low, high = {"lever": (0.075, 0.11), "cross": (0.05, 0.065), "wheel": (0.066, 0.08), "knob": (0.043, 0.05)}[switch]
    reach, height = _rounded(rng.uniform(low, high), 3), _rounded(rng.uniform(0.14, 0.2) + 0.07 * front, 3)
    least = _rounded(rng.choice([0.0, 0.0, -0.4]), 2)
    limits = (least, _rounded(least + rng.uniform(1.2, 2.0), 2))
    side, sign = rng.choice([-1.0, 1.0]), int(rng.choice([-1, 1]))
    # an arm in front is pushed down at a side, from above, where there is room for a hand
    down = (0.0 if sign < 0 else math.pi) - sign * (limits[1] - least) / 2
    start = down + rng.uniform(-0.25, 0.25) if front else rng.uniform(-3.1, 3.1)
    return Faucet(
        switch=switch,
        front=front,
        height=height,
        radius=_rounded(rng.uniform(0.016, 0.022), 3),
        reach=reach,
        start=_rounded(start, 2),
        sign=sign,
        limits=None if switch == "wheel" and number % 8 == 2 else limits,
        spout=_rounded(side * rng.uniform(0.0, 0.7) if front else side * rng.uniform(0.4, 1.4), 2),
        spout_length=_rounded(rng.uniform(0.1, 0.15), 3),
        arched=bool(front and rng.random() < 0.6),
    )


def _rounded(value: float, digits: int) -> float:
    return float(round(value, digits))


FAUCETS = {
    f"{'front' if one.front else 'top'}_{one.switch}_{k // 8}": one for k, one in enumerate(map(_drawn, range(24)))
}
