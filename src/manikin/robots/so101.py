"""The Robot Studio SO-101: five joints of hobby servos and a jaw. It has no gravity compensation.

``bi_so101`` are two of them side by side, 0.3 m apart and looking ahead; the distance is chosen.

Kinematics, inertia, limits, friction and armature: mujoco_menagerie robotstudio_so101 (Apache-2.0), from the maker's
description. Force: the STS3215 servo's stall torque. Gains: kp = I w^2 with I = 0.045 kg m^2 (rotor 0.028 and the
stretched arm) and 5.8 Hz; kd lets a joint reach 1.2 rad/s at its force, damping ratio 0.7. Menagerie's kp of 998
chatters at 5 ms. Under its own weight the arm sags 1.9 mm. Rest pose and base placement are chosen: TCP above the
origin, pointing straight down, which this arm can up to z = 0.08 at 0.15 to 0.25 m from its base.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.spec.camera import CameraSpec
from manikin.spec.links import Joint, Link, Quat, Vec3, box, pad
from manikin.spec.robot import ArmSpec, Gains, MenagerieModel

YELLOW, BLACK = (1, 0.82, 0.12, 1), (0.1, 0.1, 0.1, 1)
H = 0.5**0.5


def L(
    name: str,
    parent: str | None,
    pos: Vec3,
    quat: Quat,
    low: float = 0,
    high: float = 0,
    joint: str = "",
    **rest: object,
) -> Link:
    servo = Joint(name=joint, range=(low, high), damping=0.6, frictionloss=0.052, armature=0.028) if joint else None
    return Link(name=name, parent=parent, pos=pos, quat=quat, joint=servo, **rest)  # type: ignore[arg-type]


LINKS = (
    L(
        "base",
        None,
        (0, 0, 0),
        (1, 0, 0, 0),
        mass=0.147,
        com=(0.0137179, -5.19711e-05, 0.0334843),
        inertia=(0.000114686, 0.000136117, 0.000130364, -4.59787e-07, 4.97151e-06, 9.75275e-08),
        geoms=(
            box((0.035, 0.05, 0.007), (0.028, 0, 0.005), YELLOW),
            box((0.015, 0.027, 0.034), (-0.013, 0, 0.034), YELLOW),
            box((0.022, 0.0125, 0.02), (0.027, 0, 0.044), BLACK),
            box((0.017, 0.022, 0.008), (0.014, 0, 0.045), YELLOW, collide=False),
        ),
    ),
    L(
        "shoulder",
        "base",
        (0.0388353, 0, 0.0624),
        (0, 0, -1, 0),
        -1.91986,
        1.91986,
        "shoulder_pan",
        mass=0.100006,
        com=(-0.0307604, -1.7e-05, -0.0252713),
        inertia=(8.3759e-05, 8.10403e-05, 2.39783e-05, 7.55525e-08, -1.16342e-06, 1.54663e-07),
        geoms=(
            box((0.0125, 0.02, 0.0225), (-0.0305, 0, -0.0415), BLACK),
            box((0.019, 0.027, 0.012), (-0.032, 0, -0.023), YELLOW),
            box((0.007, 0.02, 0.028), (-0.04, 0, 0.017), YELLOW, collide=False),
            box((0.026, 0.018, 0.004), (-0.016, 0, 0.042), YELLOW, collide=False),
            box((0.026, 0.018, 0.005), (-0.016, 0, -0.007), YELLOW, collide=False),
        ),
    ),
    L(
        "upper_arm",
        "shoulder",
        (-0.0303992, -0.0182778, -0.0542),
        (0.5, -0.5, -0.5, -0.5),
        -1.7453293,
        1.7453293,
        "shoulder_lift",
        mass=0.103,
        com=(-0.089847, -0.008382, 0.018409),
        inertia=(4.08002e-05, 0.000147318, 0.000142487, -1.97819e-05, -4.03016e-08, 8.97326e-09),
        geoms=(
            box((0.064, 0.012, 0.006), (-0.056, 0, -0.008), YELLOW),
            box((0.064, 0.012, 0.006), (-0.056, 0, 0.048), YELLOW),
            box((0.03, 0.012, 0.03), (-0.09, 0, 0.02), YELLOW),
            box((0.0125, 0.0225, 0.02), (-0.1125, -0.0155, 0.018), BLACK),
        ),
    ),
    L(
        "lower_arm",
        "upper_arm",
        (-0.11257, -0.028, 0),
        (H, 0, 0, H),
        -1.69,
        1.69,
        "elbow_flex",
        mass=0.104,
        com=(-0.098070, 0.0032438, 0.018283),
        inertia=(2.87438e-05, 0.000159844, 0.00014529, 7.41152e-06, 1.26409e-06, -4.90188e-08),
        geoms=(
            box((0.03, 0.012, 0.005), (-0.018, 0, -0.007), YELLOW, collide=False),
            box((0.03, 0.012, 0.005), (-0.018, 0, 0.047), YELLOW, collide=False),
            box((0.038, 0.012, 0.03), (-0.079, 0, 0.02), YELLOW),
            box((0.014, 0.018, 0.028), (-0.105, 0.003, 0.02), YELLOW, collide=False),
            box((0.0225, 0.0125, 0.02), (-0.1225, 0.0055, 0.018), BLACK),
        ),
    ),
    L(
        "wrist",
        "lower_arm",
        (-0.1349, 0.0052, 0),
        (H, 0, 0, -H),
        -1.658063,
        1.658063,
        "wrist_flex",
        mass=0.079,
        com=(-0.000103312, -0.0386143, 0.0281156),
        inertia=(3.68263e-05, 2.5391e-05, 2.1e-05, 1.7893e-08, -5.28128e-08, 3.6412e-06),
        geoms=(
            box((0.012, 0.022, 0.004), (0, -0.01, -0.006), YELLOW, collide=False),
            box((0.012, 0.022, 0.004), (0, -0.01, 0.05), YELLOW, collide=False),
            box((0.012, 0.02, 0.0225), (0, -0.043, 0.0305), BLACK),
            box((0.017, 0.018, 0.031), (0, -0.045, 0.022), YELLOW),
        ),
    ),
    L(
        "gripper",
        "wrist",
        (0, -0.0611, 0.0181),
        (0.0172091, -0.0172091, 0.706897, 0.706897),
        -2.7438473,
        2.7438473,
        "wrist_roll",
        mass=0.087,
        com=(0.000214, 0.000245, -0.025187),
        inertia=(2.75087e-05, 4.33657e-05, 3.45059e-05, -3.35241e-07, -5.7352e-06, -5.17847e-08),
        geoms=(
            box((0.0225, 0.019, 0.0125), (0.0075, 0, -0.0235), BLACK),
            box((0.03, 0.022, 0.003), (-0.004, 0, -0.005), YELLOW, collide=False),
            box((0.009, 0.018, 0.022), (-0.025, 0, -0.024), YELLOW),
            box((0.005, 0.012, 0.022), (-0.0205, 0, -0.06), YELLOW, quat=(0.9962, 0, -0.0872, 0)),
            box((0.003, 0.006, 0.014), (-0.0155, 0, -0.089), YELLOW, quat=(0.9962, 0, -0.0872, 0)),
            pad(
                (0.0015, 0.007, 0.012),
                (-0.0112, 0, -0.0907),
                YELLOW,
                quat=(0.99807, 0, -0.0621, 0),
                name="fixed_jaw_pad",
            ),
        ),
    ),
    L(
        "camera_mount",
        "gripper",
        (0, 0, 0),
        (1, 0, 0, 0),
        mass=0.012,
        com=(-0.0009316, 0.0501595, -0.0354382),
        com_quat=(-0.370991, 0.603918, -0.598015, -0.374200),
        inertia=(4.871996e-06, 3.833764e-06, 1.172728e-06),
        geoms=(
            box((0.015, 0.015, 0.003), (-0.0025, 0.03, -0.03), YELLOW),
            box((0.021, 0.021, 0.003), (-0.001, 0.06, -0.04), YELLOW, quat=(0.9624, -0.2715, 0, 0)),
            box((0.012, 0.012, 0.0033), (-0.001, 0.06, -0.04), BLACK, quat=(0.9624, -0.2715, 0, 0), collide=False),
        ),
    ),
    L(
        "moving_jaw_so101_v1",
        "gripper",
        (0.0202, 0.0188, -0.0234),
        (H, H, 0, 0),
        -0.174533,
        1.7453292,
        "gripper",
        mass=0.012,
        com=(-0.001575, -0.0300244, 0.0192755),
        inertia=(6.61427e-06, 1.89032e-06, 5.28738e-06, -3.19807e-07, -5.90717e-09, -1.09945e-07),
        geoms=(
            box((0.009, 0.016, 0.024), (0, -0.004, 0.019), YELLOW),
            box((0.006, 0.022, 0.013), (-0.001, -0.038, 0.019), YELLOW),
            box((0.0035, 0.013, 0.008), (-0.004, -0.068, 0.019), YELLOW, quat=(0.9962, 0, 0, -0.0872)),
            pad(
                (0.0015, 0.010, 0.007),
                (-0.0098, -0.0718, 0.019),
                YELLOW,
                quat=(0.9936, 0, 0, -0.1132),
                name="moving_jaw_pad",
            ),
        ),
    ),
)

SO101 = ArmSpec(
    name="so101",
    title="The Robot Studio SO-101",
    links=LINKS,
    menagerie=MenagerieModel(folder="robotstudio_so101", file="so101.xml"),
    joints=("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"),
    gains=Gains(kp=(60,) * 5, kd=(2.4,) * 5, force=(2.94,) * 5, source="derived, see above"),
    flange_body="",
    gripper="so101_jaw",
    keyframes={"rest": (-0.07532, -0.27449, 0.30056, 1.54473, -1.59744)},
    base_pos=(-0.2, 0, 0),
    gravcomp=False,
    joint_delta=(0.1,) * 5,
    controllers=("joint_pos", "joint_delta_pos", "joint_target_delta_pos", "joint_vel", "ee_delta_pos"),
    excludes=(("base", "shoulder"),),
    cameras=(  # the maker's 32 mm camera module: 3.6 mm lens before 5.76 x 3.24 mm, tilted by 0.57 rad
        CameraSpec(
            name="hand_camera",
            on="camera_mount",
            pos=(0, 0.055, -0.045),
            quat=(0.281157, 0.959662, 0, 0),
            fovy=0.8456,
            width=128,
            height=72,
        ),
    ),
    source="mujoco_menagerie robotstudio_so101",
)

ARMS = {
    "so101": SO101,
    "bi_so101_left": replace(SO101, name="bi_so101_left", title="Two SO-101, left arm", base_pos=(-0.2, 0.15, 0)),
    "bi_so101_right": replace(SO101, name="bi_so101_right", title="Two SO-101, right arm", base_pos=(-0.2, -0.15, 0)),
}
