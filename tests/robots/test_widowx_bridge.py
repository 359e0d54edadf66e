"""WidowX of SIMPLER's tasks against the figures that follow from the original's URDF and released code."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manikin.robots import robot, widowx_bridge
from manikin.scene.robot import assemble
from manikin.spec.camera import CameraSpec

FORWARD = np.array([0, np.sqrt(0.5), 0, np.sqrt(0.5)])  # of the tool with z forward, in ee_gripper_link, whose x is


def tool(keyframe: str, base: tuple[float, float, float], turn: tuple[float, float, float, float]) -> np.ndarray:
    """(7,) pose of ee_gripper_link with the base at ``base``."""
    spec, hand, _ = robot("widowx_bridge")
    built = assemble(spec, hand)
    scene = mujoco.MjSpec()
    scene.attach(built.spec, frame=scene.worldbody.add_frame(pos=base, quat=turn), prefix="robot/")
    model = scene.compile()
    data = mujoco.MjData(model)
    for name, value in zip(built.joints, built.qpos(keyframe), strict=True):
        data.joint(f"robot/{name}").qpos[0] = value
    mujoco.mj_kinematics(model, data)
    body, quat, back = data.body(f"robot/{built.tcp_body}"), np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, FORWARD)
    mujoco.mju_mulQuat(quat, body.xquat, back)
    return np.concatenate([body.xpos, quat * np.sign(quat[0] or 1)])


def test_the_tool_begins_where_the_original_has_it() -> None:
    here, level, half = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
    at = tool("table", here, level)
    assert np.allclose(at[:3], (0.292069, -0.006091, 0.135321), atol=2e-6)
    assert np.allclose(at[3:], (0.686712, 0.005257, 0.726865, -0.008084), atol=2e-6)
    assert np.allclose(tool("table", widowx_bridge.TABLE_BASE, half)[:3], (-0.145069, 0.034091, 1.005321), atol=2e-6)
    assert np.allclose(tool("sink", widowx_bridge.SINK_BASE, half)[:3], (-0.122719, 0.127508, 1.077593), atol=2e-6)


@pytest.mark.parametrize(
    ("camera", "base", "place", "quat"),
    [
        (
            *(widowx_bridge.TABLE_CAMERA, widowx_bridge.TABLE_BASE),
            *((0.147, 0.188, 1.230), (0.466746, 0.200454, 0.339913, 0.791470)),
        ),
        (
            *(widowx_bridge.SINK_CAMERA, widowx_bridge.SINK_BASE),
            *((0.130, 0.270, 1.240), (0.499356, 0.213216, 0.329757, 0.772297)),
        ),
    ],
)
def test_the_camera_is_where_the_original_has_it(
    camera: CameraSpec, base: tuple[float, ...], place: tuple[float, ...], quat: tuple[float, ...]
) -> None:
    """``quat`` is of OpenGL's frame, x right, y up, which looks along -z."""
    turned = np.diag((-1.0, -1.0, 1.0))  # the base's half turn
    assert np.allclose(np.array(base) + turned @ camera.pos, place, atol=1e-9)
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat) / np.linalg.norm(quat))
    optical = turned @ camera.rotation
    assert np.allclose(optical @ np.diag((1, -1, -1)), matrix.reshape(3, 3), atol=2e-6)


def test_the_lens_is_the_originals() -> None:
    camera = widowx_bridge.TABLE_CAMERA
    assert (camera.width, camera.height) == (640, 480)
    assert np.isclose(np.degrees(2 * np.arctan(camera.height / 2 / camera.K()[1, 1])), 42.1004, atol=1e-4)
    assert np.isclose(camera.K()[0, 2], 319.501) and np.isclose(camera.K()[1, 2], 239.545)


def test_the_joints_lag_as_they_were_identified() -> None:
    """After a step of its target a joint has gone 1 - exp(-t k / d) of the way: the drive's law without inertia."""
    spec, hand, _ = robot("widowx_bridge")
    built = assemble(spec, hand)
    model = built.spec.compile()
    model.opt.timestep, model.opt.integrator = 0.002, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    lag = [d / k for k, d in zip(spec.gains.kp, spec.gains.kd, strict=True)]
    assert np.allclose(np.round(lag, 2), (0.28, 0.25, 0.19, 0.25, 0.16, 0.26))
    for i in range(6):
        data = mujoco.MjData(model)
        data.qpos[:] = built.qpos("table")
        data.ctrl[:] = np.concatenate([built.arm_qpos("table"), hand.open_q])
        start = data.qpos[i]
        data.ctrl[i] += 0.1
        for _ in range(100):
            mujoco.mj_step(model, data)
        assert abs((data.qpos[i] - start) / 0.1 - (1 - np.exp(-0.2 / lag[i]))) < 0.01, built.arm_joints[i]
