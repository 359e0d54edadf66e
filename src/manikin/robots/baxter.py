"""Rethink Robotics Baxter: two arms of seven joints on one torso, with Rethink's electric grippers.

`baxter` is both arms; each is a robot of its own, and torso and head belong to the right one.

Kinematics, inertia, limits and forces: the figures of robosuite 1.5.2, from Rethink's description; no mesh model is at
hand. kd lets a joint reach 1 rad/s at its force; kp = 10 kd. Armature is chosen. Pedestal and head do not move; the
torso's centre of mass is at its origin, as there, which a body that stands still does not feel. Base placement and rest
poses are chosen: TCP 0.15 m to the arm's side of the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, capsule, cylinder
from manikin.spec.robot import ArmSpec, Gains

RED, BLACK, GREY, LIGHT = (0.5, 0.05, 0.05, 1), (0.06, 0.06, 0.07, 1), (0.45, 0.45, 0.45, 1), (0.65, 0.65, 0.65, 1)
H = 0.5**0.5


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 0, 1), armature: float = 0.1
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


TORSO = Link(
    name="torso",
    parent=None,
    mass=35.3365,
    com_quat=(0.997433, 0.00167178, 0.0715546, -0.00209003),
    inertia=(1.87139, 1.66268, 0.779991),
    geoms=(
        box((0.08, 0.09, 0.19), (-0.05, 0, 0.3), RED, visible=False),
        cylinder((-0.01, 0, -0.06), (-0.01, 0, 0.08), 0.17, GREY, collide=False),
        cylinder((0.0, 0, 0.08), (0.0, 0, 0.56), 0.13, LIGHT, collide=False),
        box((0.09, 0.15, 0.27), (-0.11, 0, 0.31), BLACK, collide=False),
        box((0.09, 0.155, 0.02), (-0.1, 0, 0.58), RED, collide=False),
        box((0.07, 0.25, 0.045), (0.0, 0, 0.06), BLACK, collide=False),
        cylinder((-0.03, 0, -0.9), (-0.03, 0, -0.06), 0.1, BLACK, collide=False),
        box((0.3, 0.3, 0.02), (-0.03, 0, -0.89), BLACK, collide=False),
        cylinder((0.05, 0, 0.48), (0.06, 0, 0.72), 0.05, BLACK),
        cylinder((0.06, 0, 0.72), (0.06, 0, 0.86), 0.07, LIGHT, collide=False),
        box((0.012, 0.13, 0.09), (0.17, 0, 0.69), RED, collide=False),  # the real one pans out of the way
        box((0.002, 0.11, 0.075), (0.184, 0, 0.69), BLACK, collide=False),
        capsule((0.06, 0, 0.66), (0.16, 0, 0.68), 0.035, BLACK, collide=False),
    ),
)

LINKS = (
    Link(
        name="upper_shoulder",
        parent="arm_mount",
        pos=(0.055695, 0, 0.011038),
        joint=J("s0", (-1.70168, 1.70168)),
        mass=5.70044,
        com=(0.01783, 0.00086, 0.19127),
        com_quat=(0.975666, 0.0673303, -0.206117, 0.0325173),
        inertia=(0.0498344, 0.0377511, 0.0331351),
        geoms=(
            cylinder((0.026, 0.03, 0.347), (0.026, 0.03, 0.044), 0.104, BLACK),
            cylinder((-0.069, -0.006, 0.239), (0.126, -0.006, 0.239), 0.134, BLACK),
            cylinder((0.023, -0.028, 0.042), (0.023, -0.028, 0.269), 0.111, BLACK),
        ),
    ),
    Link(
        name="lower_shoulder",
        parent="upper_shoulder",
        pos=(0.069, 0, 0.27035),
        quat=(H, -H, 0, 0),
        joint=J("s1", (-2.147, 1.047)),
        mass=3.22698,
        com=(0.06845, 0.00269, -0.00529),
        com_quat=(0.447487, 0.536948, 0.56425, 0.439391),
        inertia=(0.0278991, 0.0212327, 0.0112937),
        geoms=(
            cylinder((0.02, -0.002, -0.098), (0.02, -0.002, -0.05), 0.088, RED),
            capsule((0.017, -0.008, 0.098), (0.017, 0.003, 0.098), 0.080, RED),
        ),
    ),
    Link(
        name="upper_elbow",
        parent="lower_shoulder",
        pos=(0.102, 0, 0),
        quat=(0.5, 0.5, 0.5, 0.5),
        joint=J("e0", (-3.05418, 3.05418)),
        mass=4.31272,
        com=(-0.00276, 0.00132, 0.18086),
        com_quat=(0.838995, -0.0423128, -0.121287, 0.52876),
        inertia=(0.0287695, 0.0273625, 0.011409),
        geoms=(
            cylinder((0.003, -0.077, 0.098), (0.003, 0.074, 0.098), 0.096, RED),
            cylinder((-0.013, -0.001, 0.09), (-0.013, -0.001, 0.3), 0.082, RED),
            cylinder((0.058, -0.009, 0.308), (0.025, 0.013, 0.101), 0.071, RED),
        ),
    ),
    Link(
        name="lower_elbow",
        parent="upper_elbow",
        pos=(0.069, 0, 0.26242),
        quat=(0.5, -0.5, -0.5, -0.5),
        joint=J("e1", (-0.05, 2.618)),
        mass=2.07206,
        com=(0.02611, 0.00159, -0.01117),
        com_quat=(0.440433, 0.577149, 0.562777, 0.395221),
        inertia=(0.0132096, 0.00950002, 0.00685697),
        geoms=(
            cylinder((0.024, -0.059, 0.038), (0.024, 0.053, 0.038), 0.060, RED),
            cylinder((-0.005, 0.063, 0.031), (-0.005, -0.052, 0.031), 0.066, RED),
            cylinder((0.036, -0.053, -0.049), (0.036, 0.061, -0.049), 0.049, RED),
            cylinder((-0.019, 0.059, -0.051), (-0.03, -0.063, -0.072), 0.041, RED),
        ),
    ),
    Link(
        name="upper_forearm",
        parent="lower_elbow",
        pos=(0.10359, 0, 0),
        quat=(0.5, 0.5, 0.5, 0.5),
        joint=J("w0", (-3.059, 3.059)),
        mass=2.24665,
        com=(-0.00168, 0.0046, 0.13952),
        com_quat=(0.892709, -0.0256256, 0.00446984, 0.449882),
        inertia=(0.016916, 0.0165511, 0.00371123),
        geoms=(
            capsule((-0.017, -0.003, 0.099), (-0.017, -0.003, 0.263), 0.066, RED),
            capsule((-0.006, -0.001, 0.039), (-0.006, -0.001, 0.133), 0.077, RED),
        ),
    ),
    Link(
        name="lower_forearm",
        parent="upper_forearm",
        pos=(0.01, 0, 0.2707),
        quat=(0.5, -0.5, -0.5, -0.5),
        joint=J("w1", (-1.5708, 2.094)),
        mass=1.60979,
        com=(0.06041, 0.00697, 0.006),
        com_quat=(0.456911, 0.468526, 0.475683, 0.587743),
        inertia=(0.00708828, 0.00552689, 0.00379383),
        geoms=(
            cylinder((0.105, 0.001, -0.077), (0.105, 0.001, 0.073), 0.067, BLACK),
            cylinder((-0.004, 0, -0.084), (-0.004, 0, 0.081), 0.060, BLACK),
        ),
    ),
    Link(
        name="wrist",
        parent="lower_forearm",
        pos=(0.115975, 0, 0),
        quat=(0.5, 0.5, 0.5, 0.5),
        joint=J("w2", (-3.059, 3.059)),
        mass=0.35093,
        com=(0.00198, 0.00125, 0.01855),
        com_quat=(0.0594843, 0.68926, -0.16016, 0.704082),
        inertia=(0.0003082, 0.000269928, 0.000251035),
        geoms=(cylinder((0.007, 0.001, 0.053), (0.007, 0.001, 0.139), 0.045, BLACK),),
    ),
)


def links(side: str) -> tuple[Link, ...]:
    """The torso with one arm; only the right one's torso has mass and shape."""
    s = 1 if side == "left" else -1
    torso = TORSO if side == "right" else Link(name="torso", parent=None)
    mount = Link(
        name="arm_mount", parent="torso", pos=(0.024645, s * 0.219645, 0.118588), quat=(0.923879, 0, 0, s * 0.382684)
    )
    return torso, mount, *LINKS


def side(side: str, rest: tuple[float, ...]) -> ArmSpec:
    return ArmSpec(
        name=f"baxter_{side}",
        title=f"Rethink Baxter, {side} arm",
        links=links(side),
        menagerie=None,
        joints=tuple(joint.name for link in LINKS for joint in link.joints),
        gains=Gains(
            kp=(500, 1000, 500, 500, 150, 150, 150),
            kd=(50, 100, 50, 50, 15, 15, 15),
            force=(50, 100, 50, 50, 15, 15, 15),
            source="derived, see above",
        ),
        flange_body="wrist",
        flange_pos=(0, 0, 0.11355),
        flange_quat=(0, 0, 0, 1),
        gripper="rethink",
        keyframes={"rest": rest},
        base_pos=(-0.7, 0, 0),
        excludes=(
            ("torso", "upper_shoulder"),
            ("torso", "lower_shoulder"),
            ("upper_shoulder", "upper_elbow"),
            ("upper_elbow", "upper_forearm"),
        ),
        reach=1.21,
        payload=2.2,
        source="robosuite 1.5.2, from Rethink's description",
    )


ARMS = {
    "baxter_left": side("left", (-0.95428, -1.07816, -0.00133, 1.46336, 0.00068, 1.1856, -0.17031)),
    "baxter_right": side("right", (0.98499, -1.07773, -0.04401, 1.46322, 0.02247, 1.1858, 0.15238)),
}
