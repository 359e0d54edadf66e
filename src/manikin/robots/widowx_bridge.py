"""WidowX-250 S of SIMPLER's Bridge tasks (Li et al. 2024, arXiv 2405.05941): the arm of ``widowx`` with the gains that
SIMPLER fitted to the real arm's motion in BridgeData, its gripper, its starting poses and its fixed camera.

Gains, force limits, poses and cameras: the paper and its released code. The gains are strongly overdamped: a joint
follows its target with a lag kd / kp of 0.16 to 0.28 s, which is what SIMPLER fitted. Gravity is compensated. The
original's joints have no rotor inertia; that of ``widowx`` stays, since MuJoCo makes a contact as stiff as what it
meets is inert, and beside these dampings it does not count (0.1 kg m^2 / 180 N m s is half a millisecond).

The original limits the force of a servo and its damping together, here ``effort``. A servo alone may use more: what its
damping takes at 1.5 rad/s. Under the limit alone it would be slower than 0.6 rad/s, and the real arm's wrist is not.

"table" is where episodes at the table begin, "sink" where those at the sink do, with the base at ``TABLE_BASE`` and
``SINK_BASE``. "rest" and ``base_pos``, for other tasks, are those of ``widowx``.
"""

from __future__ import annotations

from dataclasses import replace

from manikin.robots.widowx import ARM as WIDOWX
from manikin.spec.camera import CameraSpec
from manikin.spec.robot import ArmSpec, Gains, RobotSpec

__all__ = ["ARM", "SINK_BASE", "SINK_CAMERA", "TABLE_BASE", "TABLE_CAMERA"]

TABLE_BASE, SINK_BASE = (0.147, 0.028, 0.870), (0.127, 0.060, 0.85)
"""[m] in the world of the tasks, where the robot is turned by half a turn: it faces the world's -x."""
_KP = (1169.7891719504198, 730.0, 808.4601346394447, 1229.1299089624076, 1272.2760456418862, 1056.3326605132252)
_KD = (330.0, 180.0, 152.12036565582588, 309.6215302722146, 201.04998711007383, 269.51458932695414)
_LIMIT = (200, 200, 100, 100, 100, 100)
_FAST = 1.5  # [rad/s]
_PIXELS = {"width": 640, "height": 480, "intrinsics": (623.588, 623.588, 319.501, 239.545)}


TABLE_CAMERA = CameraSpec(
    name="3rd_view_camera",
    on="base_link",
    pos=(0.0, -0.16, 0.36),
    quat=(0.3399134, -0.7914702, 0.4667464, -0.2004534),
    **_PIXELS,  # type: ignore[arg-type]
)
SINK_CAMERA = replace(TABLE_CAMERA, pos=(-0.003, -0.21, 0.39), quat=(0.329757, -0.7722971, 0.499356, -0.213216))

ARM = ArmSpec(
    name="widowx_bridge",
    title="Trossen WidowX-250 S, SIMPLER",
    links=WIDOWX.links,
    menagerie=WIDOWX.menagerie,
    joints=WIDOWX.joints,
    gains=Gains(
        kp=_KP,
        kd=_KD,
        force=tuple(limit + _FAST * kd for limit, kd in zip(_LIMIT, _KD, strict=True)),
        source="SIMPLER (arXiv 2405.05941), fitted to BridgeData",
    ),
    effort=_LIMIT,
    flange_body=WIDOWX.flange_body,
    flange_pos=WIDOWX.flange_pos,
    flange_quat=WIDOWX.flange_quat,
    gripper="widowx_bridge_fingers",
    keyframes={
        **WIDOWX.keyframes,
        "table": (-0.01840777, 0.0398835, 0.22242722, -0.00460194, 1.36524296, 0.00153398),
        "sink": (-0.2600599, -0.12875618, 0.04461369, -0.00652761, 1.7033415, -0.26983038),
    },
    base_pos=WIDOWX.base_pos,
    excludes=WIDOWX.excludes,
    cameras=(TABLE_CAMERA,),
    controllers=(*RobotSpec.controllers, "ee_target_delta_pose"),
    joint_delta=(0.25,) * 6,  # chosen: at 5 Hz what a joint can follow
    reach=WIDOWX.reach,
    payload=WIDOWX.payload,
    source="SIMPLER (arXiv 2405.05941) and mujoco_menagerie trossen_wx250s",
)
