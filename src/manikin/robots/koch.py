"""Koch v1.1, Alexander Koch's low-cost arm: five joints and a jaw, all hobby servos.

Kinematics, inertia and limits: mujoco_menagerie low_cost_robot_arm (Apache-2.0), from the maker's drawings. Force:
stall torque of the servos by Robotis' manual, XL430 (1.4 N m at 11.1 V) in the two shoulder joints, XL330-M288 (0.52 N
m at 5 V) in the others. kp reaches it at 0.03 rad (chosen: the servo's own gain, 6 N m/rad, sags further); kd = kp /
17. Armature 0.01 kg m^2 stands for rotor and gears (chosen; Menagerie's 0.5 steadies its own gains). The servos do not
compensate gravity. Rest pose and base placement are chosen: TCP above the origin, pointing down.
"""

from __future__ import annotations

from manikin.spec.links import Joint, Link, box, pad
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

WHITE, BLACK = (0.85, 0.85, 0.85, 1), (0.1, 0.1, 0.1, 1)


def J(
    name: str, range: tuple[float, float], axis: tuple[float, float, float] = (0, 1, 0), armature: float = 0.01
) -> Joint:
    return Joint(name=name, range=range, axis=axis, armature=armature)


LINKS = (
    Link(
        name="base_link",
        parent=None,
        quat=(0, 0, 0, 1),
        mass=0.1185189,
        com=(0.0360961, -7.54328e-05, 0.0122314),
        com_quat=(0.59013, 0.543793, -0.441124, 0.401801),
        inertia=(0.000137198, 8.8597e-05, 6.75025e-05),
        geoms=(
            box((0.04, 0.03, 0.0045), (0.04, 0, 0.0045), WHITE),
            box((0.018, 0.08, 0.0045), (0.062, 0.011, 0.0045), WHITE),
            box((0.023, 0.014, 0.016), (0.024, 0, 0.025), BLACK),
        ),
    ),
    Link(
        name="shoulder_rotation",
        parent="base_link",
        pos=(0.012, 0, 0.0409),
        joint=J("base_rotation", (-2.2, 2.2), (0, 0, -1)),
        mass=0.05014,
        com=(0.011924, -0.00048792, 0.013381),
        com_quat=(-0.0190903, 0.705417, 0.0178052, 0.708312),
        inertia=(1.44921e-05, 1.2371e-05, 7.59138e-06),
        geoms=(
            box((0.026, 0.02, 0.005), (0.012, 0, 0.004), WHITE),
            box((0.023, 0.0145, 0.0105), (0.012, 0, 0.0195), BLACK),
        ),
    ),
    Link(
        name="shoulder_to_elbow",
        parent="shoulder_rotation",
        pos=(0, -0.0209, 0.0154),
        joint=J("pitch", (-1.57, 0.6)),
        mass=0.050177,
        com=(0.0011747, 0.02097, 0.071547),
        com_quat=(0.998768, 2.01447e-05, 0.0496266, 0.000367169),
        inertia=(3.73065e-05, 3.3772e-05, 7.94901e-06),
        geoms=(
            box((0.013, 0.002, 0.026), (0, 0.001, 0.013), WHITE),
            box((0.013, 0.002, 0.026), (0, 0.041, 0.013), WHITE),
            box((0.007, 0.022, 0.008), (0.006, 0.021, 0.045), WHITE),
            box((0.006, 0.0145, 0.035), (0.0075, 0.0205, 0.084), WHITE),
            box((0.014, 0.0145, 0.01), (-0.01, 0.0205, 0.108), BLACK),
        ),
    ),
    Link(
        name="elbow_to_wrist_extension",
        parent="shoulder_to_elbow",
        pos=(-0.0148, 0.0065, 0.1083),
        joint=J("elbow", (-1.57, 1.45), (0, -1, 0)),
        mass=0.06379,
        com=(-0.05537, 0.014505, 0.0028659),
        com_quat=(8.17663e-05, 0.710999, -4.16983e-05, 0.703193),
        inertia=(2.45081e-05, 2.2231e-05, 7.34061e-06),
        geoms=(
            box((0.042, 0.0175, 0.0045), (-0.04, 0.0145, -0.0035), WHITE),
            box((0.035, 0.0175, 0.003), (-0.045, 0.0145, 0.012), WHITE),
            box((0.009, 0.0175, 0.008), (0, 0.0145, 0), WHITE),
            box((0.017, 0.0145, 0.01), (-0.093, 0.0145, 0.003), BLACK),
        ),
    ),
    Link(
        name="elbow_to_wrist",
        parent="elbow_to_wrist_extension",
        pos=(-0.10048, 5e-05, 0.0026999),
        joint=J("wrist_pitch", (-2, 2)),
        mass=0.019805,
        com=(-0.02652, 0.019195, -9.0614e-06),
        com_quat=(0.707361, 0.706812, 0.00580344, 0.00484124),
        inertia=(2.95813e-06, 2.8759e-06, 1.07787e-06),
        geoms=(
            box((0.025, 0.002, 0.008), (-0.017, 0.03, 0), BLACK),
            box((0.016, 0.002, 0.009), (-0.008, -0.002, 0), WHITE),
            box((0.014, 0.018, 0.01), (-0.03, 0.02, 0), BLACK),
        ),
    ),
    Link(
        name="gripper_static_finger",
        parent="elbow_to_wrist",
        pos=(-0.045, 0.013097, 0),
        joint=J("wrist_roll", (-3.14, 3.14), (1, 0, 0)),
        mass=0.029277,
        com=(-0.019091, 0.0053379, 0.00018011),
        com_quat=(0.105295, 0.703509, -0.0986543, 0.695885),
        inertia=(8.11303e-06, 7.14908e-06, 3.27429e-06),
        geoms=(
            box((0.0215, 0.006, 0.015), (-0.0215, 0.015, 0), WHITE),
            box((0.012, 0.019, 0.015), (-0.011, 0.001, 0), BLACK),
            box((0.025, 0.0045, 0.007), (-0.042, 0.0155, 0), WHITE),
            pad((0.008, 0.002, 0.008), (-0.063, 0.0105, 0.0005), BLACK, name="static_finger_pad"),
        ),
    ),
    Link(
        name="gripper_moving_finger",
        parent="gripper_static_finger",
        pos=(-0.01315, -0.0075, 0.0145),
        joint=J("gripper", (-1.6, 0.032), (0, 0, -1)),
        mass=0.012831,
        com=(-0.02507, 0.0010817, -0.01414),
        com_quat=(0.528148, 0.5474, 0.466496, 0.451436),
        inertia=(3.49922e-06, 2.45768e-06, 1.4645e-06),
        geoms=(
            box((0.016, 0.006, 0.002), (-0.008, 0.001, 0.002), WHITE),
            box((0.009, 0.0045, 0.008), (-0.044, 0.0042, -0.014), WHITE, quat=(0.9888, 0, 0, -0.1494)),
            box((0.012, 0.004, 0.015), (-0.026, -0.003, -0.013), WHITE),
            box((0.016, 0.008, 0.002), (-0.01, 0, -0.03), WHITE),
            pad(
                (0.008, 0.002, 0.008),
                (-0.0515, 0.0113, -0.01395),
                BLACK,
                quat=(0.9888, 0, 0, -0.1494),
                name="moving_finger_pad",
            ),
        ),
    ),
)

ARM = ArmSpec(
    name="koch",
    title="Koch v1.1",
    links=LINKS,
    menagerie=MenagerieModel(folder="low_cost_robot_arm", file="low_cost_robot_arm.xml"),
    joints=("base_rotation", "pitch", "elbow", "wrist_pitch", "wrist_roll"),
    gains=Gains(
        kp=(40, 40, 20, 20, 20),
        kd=(2.4, 2.4, 1.2, 1.2, 1.2),
        force=(1.4, 1.4, 0.52, 0.52, 0.52),
        source="derived, see above",
    ),
    flange_body="",
    gripper="koch_jaw",
    keyframes={"rest": (0.05773, -0.35129, -0.32549, -1.54499, 0.05773)},
    base_pos=(-0.14, 0, 0),
    gravcomp=False,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos"),
    excludes=(("base_link", "shoulder_rotation"), ("base_link", "shoulder_to_elbow")),
    source="mujoco_menagerie low_cost_robot_arm",
)
