"""The Robot Studio SO-100: five joints of hobby servos and a jaw; the SO-101 came after it.

Kinematics, inertia, limits and armature: mujoco_menagerie trs_so_arm100 (Apache-2.0), from the maker's description;
joint names are LeRobot's and ManiSkill3's. Gains and step: ManiSkill3's so100, so that its policies meet the same arm;
its servos give up to 100 N m, the real STS3215 gives 2.94 N m. Joint friction is left out, as there. Zero of the joints
is Menagerie's; the keyframe ``maniskill`` is ManiSkill3's rest, as far as the elbow and the limits of Menagerie go.
Rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, Vec3, box, pad
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

WHITE, BLACK = (0.95, 0.95, 0.95, 1), (0.1, 0.1, 0.1, 1)
H = 0.5**0.5


def J(name: str, axis: Vec3, low: float, high: float) -> Joint:
    return Joint(name=name, axis=axis, range=(low, high), armature=0.1)


LINKS = (
    Link(
        name="Base",
        parent=None,
        quat=(H, 0, 0, H),  # it looks along its -y
        mass=0.56246559,
        com=(4.5359e-06, -0.0154104524, 0.0284425542),
        com_quat=(0.2895039, 0.6451142, -0.6453801, 0.2889631),
        inertia=(0.0006149863, 0.0004813835, 0.0003650314),
        geoms=(
            box((0.05, 0.04, 0.006), (0, -0.024, 0.006), WHITE),
            box((0.027, 0.013, 0.034), (0, 0.011, 0.046), WHITE),
            box((0.0124, 0.0225, 0.0198), (0, -0.0325, 0.0465), BLACK),
            box((0.02, 0.02, 0.008), (0, -0.02, 0.03), WHITE, collide=False),
        ),
    ),
    Link(
        name="Rotation_Pitch",
        parent="Base",
        pos=(0, -0.0452, 0.0165),
        quat=(0.7071053, 0.7071083, 0, 0),
        joint=J("shoulder_pan", (0, 1, 0), -1.92, 1.92),
        mass=0.119226,
        com=(-9.07886e-05, 0.0590972, 0.031089),
        com_quat=(0.363978, 0.441169, -0.623108, 0.533504),
        inertia=(5.94278e-05, 5.89975e-05, 3.13712e-05),
        geoms=(
            box((0.024, 0.004, 0.02), (0, 0.004, 0.006), WHITE, collide=False),
            box((0.024, 0.03, 0.006), (0, 0.032, 0.036), WHITE, collide=False),
            box((0.025, 0.0125, 0.018), (0, 0.068, 0.03), WHITE),
            box((0.0198, 0.0227, 0.0124), (0, 0.09, 0.0306), BLACK),
        ),
    ),
    Link(
        name="Upper_Arm",
        parent="Rotation_Pitch",
        pos=(0, 0.1025, 0.0306),
        quat=(0.707109, 0.7071045, 0, 0),
        joint=J("shoulder_lift", (1, 0, 0), -3.32, 0.174),
        mass=0.162409,
        com=(-1.72052e-05, 0.0701802, 0.00310545),
        com_quat=(0.50104, 0.498994, -0.493562, 0.50632),
        inertia=(0.000213312, 0.000167164, 7.01522e-05),
        geoms=(
            box((0.0045, 0.046, 0.011), (0.0295, 0.034, 0), WHITE),
            box((0.0045, 0.046, 0.011), (-0.0295, 0.034, 0), WHITE),
            box((0.026, 0.024, 0.011), (0, 0.085, 0.002), WHITE),
            box((0.0198, 0.0124, 0.0227), (0, 0.1126, 0.0155), BLACK),
        ),
    ),
    Link(
        name="Lower_Arm",
        parent="Upper_Arm",
        pos=(0, 0.11257, 0.028),
        quat=(0.707109, -0.7071045, 0, 0),
        joint=J("elbow_flex", (1, 0, 0), -0.174, 3.14),
        mass=0.147968,
        com=(-0.00339604, 0.00137796, 0.0768007),
        com_quat=(0.701995, 0.0787996, 0.0645626, 0.704859),
        inertia=(0.000138803, 0.000107748, 4.84242e-05),
        geoms=(
            box((0.0045, 0.011, 0.034), (-0.0295, 0, 0.024), WHITE),
            box((0.0045, 0.011, 0.034), (0.0235, 0, 0.024), WHITE, collide=False),
            box((0.026, 0.012, 0.034), (-0.003, 0.003, 0.084), WHITE),
            box((0.0198, 0.0124, 0.0227), (0, 0.0052, 0.1224), BLACK),
        ),
    ),
    Link(
        name="Wrist_Pitch_Roll",
        parent="Lower_Arm",
        pos=(0, 0.0052, 0.1349),
        quat=(0.707109, -0.7071045, 0, 0),
        joint=J("wrist_flex", (1, 0, 0), -1.66, 1.66),
        mass=0.0661321,
        com=(-0.00852653, -0.0352279, -2.34622e-05),
        com_quat=(-0.0522806, 0.705235, 0.0549524, 0.704905),
        inertia=(3.45403e-05, 2.39041e-05, 1.94704e-05),
        geoms=(
            box((0.004, 0.022, 0.012), (0.0235, -0.01, 0), WHITE, collide=False),
            box((0.004, 0.022, 0.012), (-0.0285, -0.01, 0), WHITE, collide=False),
            box((0.024, 0.02, 0.0155), (-0.0045, -0.04, 0), WHITE),
            box((0.0227, 0.0198, 0.0124), (-0.0125, -0.0428, 0), BLACK, collide=False),
        ),
    ),
    Link(
        name="Fixed_Jaw",
        parent="Wrist_Pitch_Roll",
        pos=(0, -0.0601, 0),
        quat=(0.707109, 0, 0.7071045, 0),
        joint=J("wrist_roll", (0, 1, 0), -2.79, 2.79),
        mass=0.0929859,
        com=(0.00552377, -0.0280167, 0.000483583),
        com_quat=(0.41836, 0.620891, -0.350644, 0.562599),
        inertia=(5.03136e-05, 4.64098e-05, 2.72961e-05),
        geoms=(
            box((0.026, 0.006, 0.022), (0.001, -0.006, 0), WHITE),
            box((0.0227, 0.0124, 0.0198), (-0.0077, -0.0244, 0.0005), BLACK),
            box((0.009, 0.0195, 0.0215), (0.0255, -0.022, 0), WHITE),
            box((0.0075, 0.018, 0.014), (0.0235, -0.054, 0), WHITE, quat=(0.99816, 0, 0, -0.0607)),
            box((0.004, 0.021, 0.008), (0.0172, -0.086, 0), WHITE, quat=(0.99816, 0, 0, -0.0607)),
            pad((0.0015, 0.02, 0.007), (0.0114, -0.085, 0), WHITE, quat=(0.99816, 0, 0, -0.0607), name="fixed_jaw_pad"),
        ),
    ),
    Link(
        name="Moving_Jaw",
        parent="Fixed_Jaw",
        pos=(-0.0202, -0.0244, 0),
        quat=(0, 0, 1, 0),
        joint=J("gripper", (0, 0, 1), -0.174, 1.75),
        mass=0.0202444,
        com=(-0.00161745, -0.0303473, 0.000449646),
        com_quat=(0.696562, 0.716737, -0.0239844, -0.0227026),
        inertia=(1.11265e-05, 8.99651e-06, 2.99548e-06),
        geoms=(
            box((0.009, 0.015, 0.0035), (0, -0.006, 0.0203), WHITE),
            box((0.009, 0.015, 0.0035), (0, -0.006, -0.0203), WHITE),
            box((0.008, 0.004, 0.0235), (0, -0.022, 0), WHITE),
            box((0.0055, 0.019, 0.0105), (-0.0005, -0.043, 0), WHITE),
            box((0.003, 0.0125, 0.0072), (-0.0055, -0.0695, 0), WHITE, quat=(0.99595, 0, 0, -0.0899)),
            pad(
                (0.0015, 0.014, 0.007),
                (-0.0088, -0.0675, 0),
                WHITE,
                quat=(0.99595, 0, 0, -0.0899),
                name="moving_jaw_pad",
            ),
        ),
    ),
)

ARM = ArmSpec(
    name="so100",
    title="The Robot Studio SO-100",
    links=LINKS,
    menagerie=MenagerieModel(
        folder="trs_so_arm100",
        file="so_arm100.xml",
        rename={
            "Rotation": "shoulder_pan",
            "Pitch": "shoulder_lift",
            "Elbow": "elbow_flex",
            "Wrist_Pitch": "wrist_flex",
            "Wrist_Roll": "wrist_roll",
            "Jaw": "gripper",
        },
    ),
    joints=("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"),
    gains=Gains(kp=(1000,) * 5, kd=(100,) * 5, force=(100,) * 5, source="ManiSkill3 3.0.1 so100"),
    flange_body="",
    gripper="so100_jaw",
    keyframes={
        "rest": (-0.06773, -1.90468, 1.95379, 1.52167, 1.63853),
        "maniskill": (0.0, -3.1416, 3.14, 0.66, 0.0),
    },
    base_pos=(-0.2, 0, 0),
    gravcomp=False,
    joint_delta=(0.05,) * 5,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos"),
    excludes=(("Base", "Rotation_Pitch"),),
    source="mujoco_menagerie trs_so_arm100",
)
