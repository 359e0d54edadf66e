"""No arm at all: a gripper that floats, driven along x, y and z and turned about z, y and x, in this order.

Any gripper can hang on it: ``floating+robotiq_2f85``. Mass, gains and forces are chosen, so that it follows like a
stiff arm: kp / kd = 10 / s, 100 N and 20 N m. At 90 deg about y the first and the last turn coincide.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, cylinder
from manikin.spec.robot import ArmSpec, Gains

GREY, PALE = (0.35, 0.36, 0.38, 1), (0.7, 0.72, 0.75, 1)
X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def slide(name: str, axis: tuple[float, float, float]) -> Joint:
    return Joint(name=name, type="slide", axis=axis, range=(-2, 2))


def turn(name: str, axis: tuple[float, float, float], limit: float) -> Joint:
    return Joint(name=name, axis=axis, range=(-limit, limit), armature=0.01)


LINKS = (
    Link(name="floating_base", parent=None),
    Link(
        name="carriage",
        parent="floating_base",
        joint=(
            slide("x", X),
            slide("y", Y),
            slide("z", Z),
            turn("turn_z", Z, 6.28319),
            turn("turn_y", Y, 1.5),
            turn("turn_x", X, 3.1415),
        ),
        mass=1.0,
        com=(0, 0, 0.02),
        inertia=(0.002, 0.002, 0.002),
        geoms=(
            cylinder((0, 0, 0), (0, 0, 0.012), 0.042, GREY),
            cylinder((0, 0, 0.012), (0, 0, 0.04), 0.03, PALE),
        ),
    ),
)

ARM = ArmSpec(
    name="floating",
    title="Floating gripper",
    links=LINKS,
    menagerie=None,
    joints=("x", "y", "z", "turn_z", "turn_y", "turn_x"),
    gains=Gains(
        kp=(2000,) * 3 + (200,) * 3, kd=(200,) * 3 + (20,) * 3, force=(100,) * 3 + (20,) * 3, source="chosen, see above"
    ),
    flange_body="carriage",
    flange_quat=(0, 1, 0, 0),
    gripper="panda_hand",
    keyframes={"rest": (0, 0, 0.35, 0, 0, 0)},
    source="chosen",
)
