"""The Google Robot of SIMPLER against figures computed from the original's URDF and released code."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.assets.paths import data_root
from manikin.robots import google_robot_rt1, robot
from manikin.scene.robot import RobotModel, assemble

DATA = data_root()
MESHES = pytest.param(
    True,
    marks=pytest.mark.skipif(
        DATA is None or not (DATA / "simpler" / "descriptions" / "googlerobot_description").is_dir(),
        reason="needs the original's meshes in MANIKIN_DATA/simpler",
    ),
)


def standing(makers: bool, pos: tuple[float, ...], quat: tuple[float, ...]) -> tuple[RobotModel, mujoco.MjData]:
    spec, hand, _ = robot("google_robot_rt1")
    built = assemble(spec, hand, menagerie=makers)
    scene = mujoco.MjSpec()
    scene.attach(built.spec, frame=scene.worldbody.add_frame(pos=pos, quat=quat), prefix="robot/")
    data = mujoco.MjData(scene.compile())
    for name, value in zip(built.joints, built.qpos(), strict=True):
        data.joint(f"robot/{name}").qpos[0] = value
    mujoco.mj_forward(data.model, data)
    return built, data


@pytest.mark.parametrize("makers", [False, MESHES])
def test_the_tool_begins_where_the_original_has_it(makers: bool) -> None:
    built, data = standing(makers, (0, 0, 0), (1, 0, 0, 0))
    tool = data.body(f"robot/{built.tcp_body}")
    assert np.allclose(tool.xpos, (0.439384, -0.218417, 0.961869), atol=2e-6)
    assert np.allclose(tool.xquat, (0.160115, -0.603852, 0.780173, -0.032499), atol=3e-6)
    assert data.ncon == 0
    built, data = standing(makers, built.arm.base_pos, built.arm.base_quat)
    assert np.allclose(data.body(f"robot/{built.tcp_body}").xpos, (-0.089384, 0.418417, 1.040919), atol=2e-6)


@pytest.mark.parametrize(
    ("base", "turn", "place", "quat"),
    [  # picking the can, moving near, the drawers from a0; ``quat`` is of OpenGL's frame
        ((0.35, 0.20), 0.0, (0.20401, 0.200417, 1.292408), (0.654179, 0.271070, 0.270296, 0.652311)),
        ((0.35, 0.21), -0.09, (0.204638, 0.223537, 1.292408), (0.682861, 0.282955, 0.257829, 0.622223)),
        ((0.644, -0.179), -0.03, (0.498088, -0.174204, 1.292408), (0.663890, 0.275094, 0.266200, 0.642426)),
    ],
)
def test_the_camera_is_where_the_original_has_it(
    base: tuple[float, float], turn: float, place: tuple[float, ...], quat: tuple[float, ...]
) -> None:
    yaw = np.pi + turn
    _, data = standing(False, (*base, 0.07905), (np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)))
    camera, head = google_robot_rt1.CAMERA, data.body("robot/link_head_tilt")
    turned = head.xmat.reshape(3, 3)
    assert np.allclose(head.xpos + turned @ camera.pos, place, atol=2e-6)
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat) / np.linalg.norm(quat))
    assert np.allclose(turned @ camera.rotation @ np.diag((1, -1, -1)), matrix.reshape(3, 3), atol=3e-6)


def test_the_lens_is_the_originals() -> None:
    camera = google_robot_rt1.CAMERA
    assert (camera.width, camera.height) == (640, 512)
    assert np.isclose(np.degrees(2 * np.arctan(256 / camera.K()[1, 1])), 62.1256, atol=1e-4)
    assert np.isclose(np.degrees(2 * np.arctan(320 / camera.K()[0, 0])), 73.955, atol=1e-3)


@pytest.mark.parametrize("makers", [False, MESHES])
def test_masses_and_the_way_of_the_fingers_are_the_originals(makers: bool) -> None:
    _, data = standing(makers, (0, 0, 0), (1, 0, 0, 0))
    model = data.model
    wanted = {"torso": 1.8957, "shoulder": 1.8472, "bicep": 1.2474, "elbow": 0.6464, "forearm": 0.7244, "wrist": 0.5019}
    wanted |= {"gripper": 0.4051, "finger_left": 0.0333, "finger_tip_left": 0.0162, "head_pan": 0.9634}
    for name, mass in (wanted | {"head_tilt": 0.8792, "base": 52.9101}).items():
        assert model.body(f"robot/link_{name}").mass[0] == pytest.approx(mass, abs=6e-5)
    gaps = []
    for q in (0.0, 1.3):  # from wide open until the tips would have passed one another
        data.qpos[[model.joint(f"robot/joint_finger_{side}").qposadr[0] for side in ("right", "left")]] = q
        mujoco.mj_kinematics(model, data)
        tips = [data.body(f"robot/link_finger_tip_{side}") for side in ("left", "right")]
        ends = [tip.xpos + 0.045 * tip.xmat.reshape(3, 3)[:, 2] for tip in tips]
        gaps.append(float((ends[0] - ends[1]) @ data.body("robot/link_gripper").xmat.reshape(3, 3)[:, 1]))
    assert 0.12 < gaps[0] < 0.25 and gaps[1] < 0.02


def test_gains_are_the_identified_ones() -> None:
    """A drive's lag kd / kp, as the paper's gains give it."""
    spec = robot("google_robot_rt1").arm
    lags = [d / k for k, d in zip(spec.gains.kp, spec.gains.kd, strict=True)]
    assert np.allclose(lags[:7], (0.62, 0.58, 0.78, 0.73, 0.56, 0.63, 0.73), atol=0.006)
    assert spec.effort == (300, 300, *(100,) * 7) and spec.ik_joints == spec.joints[:7]
