"""A gripper of one's own from MJCF, to a grasp."""

from __future__ import annotations

from pathlib import Path

import pytest

import manikin
from manikin.errors import SceneError
from manikin.eval.runner import run_episodes
from manikin.policy.expert import ExpertPolicy
from manikin.robots import gripper_from_file, register
from manikin.spec.robot import Finger, Gains, GripperSpec

GRIPPER_MJCF = """<mujoco><worldbody><body name="{palm}"><geom type="box" size=".03 .03 .02" mass=".3"/>
<body name="left" pos="0 .03 .05"><joint name="l" type="slide" axis="0 1 0" range="-.03 .01"/>
<geom type="box" size=".01 .005 .03" mass=".05"/></body>
<body name="right" pos="0 -.03 .05"><joint name="r" type="slide" axis="0 -1 0" range="-.03 .01"/>
<geom type="box" size=".01 .005 .03" mass=".05"/></body></body></worldbody></mujoco>"""


def _own_gripper(folder: Path, palm: str) -> GripperSpec:
    file = folder / f"{palm}.xml"
    file.write_text(GRIPPER_MJCF.format(palm=palm))
    return gripper_from_file(
        file,
        name=f"my_{palm}",
        drivers=["l", "r"],
        open_q=[0.01, 0.01],
        closed_q=[-0.03, -0.03],
        fingers=[Finger(body="left", closing=(0, -1, 0)), Finger(body="right", closing=(0, 1, 0))],
        tcp_body=palm,
        tcp_pos=(0, 0, 0.08),
        max_width=0.07,
        gains=Gains(kp=(400.0, 400.0), kd=(40.0, 40.0), force=(60.0, 60.0), source="chosen here"),
    )


def test_a_gripper_of_mjcf_grasps(tmp_path: Path) -> None:
    register(_own_gripper(tmp_path, "my_palm"))
    env = manikin.make("PickCube-v2", num_envs=4, robot="panda+my_my_palm", autoreset="disabled")
    done = run_episodes(env, ExpertPolicy(env), range(4))
    env.close()
    assert sum(result.success_once for result in done.results) >= 3


def test_names_that_arm_and_gripper_share_are_listed(tmp_path: Path) -> None:
    register(_own_gripper(tmp_path, "base"))
    with pytest.raises(SceneError, match="arm and gripper both have bodies named 'base'; rename them"):
        manikin.make("PickCube-v2", robot="ur5e+my_base")
