"""Batched rotations, poses and a few scalars, in torch alone.

Every function gives a row the same bits whatever the batch size and the strides of its arguments.
"""

from __future__ import annotations

from manikin.math._constants import Constant
from manikin.math.misc import atan2, dot, lerp, norm, tolerance, wrap_to_pi
from manikin.math.pose import pose, pose_apply, pose_from_matrix, pose_inv, pose_mul, pose_to_matrix
from manikin.math.rotation import (
    quat_angle,
    quat_conj,
    quat_from_axis_angle,
    quat_from_euler,
    quat_from_matrix,
    quat_from_rotvec,
    quat_from_yaw,
    quat_mul,
    quat_normalize,
    quat_rotate,
    quat_rotate_inv,
    quat_slerp,
    quat_standardize,
    quat_to_euler,
    quat_to_matrix,
    quat_to_rotvec,
    quat_to_yaw,
    yaw_rotate,
)

__all__ = [
    "Constant",
    "atan2",
    "dot",
    "lerp",
    "norm",
    "pose",
    "pose_apply",
    "pose_from_matrix",
    "pose_inv",
    "pose_mul",
    "pose_to_matrix",
    "quat_angle",
    "quat_conj",
    "quat_from_axis_angle",
    "quat_from_euler",
    "quat_from_matrix",
    "quat_from_rotvec",
    "quat_from_yaw",
    "quat_mul",
    "quat_normalize",
    "quat_rotate",
    "quat_rotate_inv",
    "quat_slerp",
    "quat_standardize",
    "quat_to_euler",
    "quat_to_matrix",
    "quat_to_rotvec",
    "quat_to_yaw",
    "tolerance",
    "wrap_to_pi",
    "yaw_rotate",
]
