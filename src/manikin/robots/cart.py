"""A cart on a rail, pushed along x by a motor: the cart of dm_control's cart-pole, to which a task adds the pole.

A robot without tools: one group of one sliding joint, whose force is the action. Figures: dm_control's
cartpole.xml, 1 kg, 0.4 x 0.3 x 0.2 m, 1.8 m of rail either way, damping 5e-4 N s/m, 10 N. It touches nothing.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box
from manikin.spec.robot import Gains, JointGroup, RobotSpec

HALF = (0.2, 0.15, 0.1)
X, Y, Z = (h * h for h in HALF)

ROBOT = RobotSpec(
    name="cart",
    title="Cart on a rail",
    links=(
        Link(name="rail", parent=None),
        Link(
            name="cart",
            parent="rail",
            joint=Joint(name="slider", type="slide", axis=(1, 0, 0), range=(-1.8, 1.8), damping=5e-4),
            mass=1.0,
            inertia=((Y + Z) / 3, (X + Z) / 3, (X + Y) / 3),
            geoms=(box(HALF, rgba=(0.05, 0.35, 0.55, 1), collide=False),),
        ),
    ),
    groups={
        "rail": JointGroup(
            joints=("slider",),
            gains=Gains(
                kp=(1000,), kd=(100,), force=(10,), source="dm_control's motor; stiffness chosen, unused by its force"
            ),
        )
    },
    keyframes={"rest": (0.0,)},
    gravcomp=False,
    controllers=("joint_torque",),
    source="dm_control cartpole.xml",
)
