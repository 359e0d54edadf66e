"""Several groups of a robot's joints as one: inverse kinematics that drives the base, and the controllers on it.
References are plain MuJoCo's kinematics of the found joints and how far an arm alone reaches."""

from __future__ import annotations

import math

import mujoco
import pytest
import torch

from manikin.arenas.ground import ground
from manikin.control.ik import Chain, IkSolver
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.errors import ConfigError, UnknownNameError
from manikin.math import quat_to_yaw
from manikin.robots import robot
from manikin.scene.robot import assemble

VIEW = ((2.0, 2.0, 1.5), (0, 0, 0.5))
MOBILE = ("panda@planar", "ur5e@differential")


class Yard(Task):
    """A robot at rest on an empty floor.

    Randomization: none.
    Success: never.
    """

    id = "WholeYard-v0"
    horizon_s = 60.0

    def scene(self, b):
        ground(b, height=0.0, base_camera=VIEW, human_camera=VIEW)
        return {"robot": b.robot(pos=(0, 0, 0))}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"root": h.robot.root_pose}}


def yard(word: str, control: str | dict[str, str], rows: int = 1) -> Env:
    env = Env(Yard, num_envs=rows, robot=word, control=control, reward="none", autoreset="disabled")
    env.reset(seed=0)
    return env


def whole(word: str) -> Chain:
    spec, hand, _ = robot(word)
    return Chain(spec, hand).of_groups(tuple(spec.groups), "tool")


@pytest.mark.parametrize("word", MOBILE)
def test_it_finds_poses_that_an_arm_alone_does_not_reach(word: str) -> None:
    """MuJoCo's own kinematics of the found joints bring the tool there."""
    spec, hand, _ = robot(word)
    chain = whole(word)
    pos, quat = (x.clone() for x in chain.fk(chain.rest.expand(4, -1)))
    pos[:, 0] += torch.tensor([2.0, -1.5, 0.6, 0.0], dtype=torch.float64)
    pos[:, 1] += torch.tensor([1.0, 0.5, -0.4, 2.0], dtype=torch.float64)
    start = chain.rest.expand(4, -1)
    assert not IkSolver(Chain(spec, hand)).solve(pos, quat, start).reached[:2].any()
    found = IkSolver(chain).solve(pos, quat, start, iterations=100, posture=0.0)
    assert found.reached.all()

    built = assemble(spec, hand)
    model = built.spec.compile()
    data = mujoco.MjData(model)
    for row in range(4):
        for name, value in zip(built.arm_joints, found.q[row].tolist(), strict=True):
            data.joint(name).qpos[0] = value
        mujoco.mj_kinematics(model, data)
        assert abs(data.body(built.tcp_body).xpos - pos[row].numpy()).max() < 2e-4
        turn = abs(data.body(built.tcp_body).xquat @ quat[row].numpy())
        assert 2 * math.acos(min(turn, 1.0)) < 2e-3


def test_a_base_with_two_wheels_is_not_asked_to_go_sideways() -> None:
    """For a small way to the left it turns and moves forward; a base that can go sideways does."""
    left = {}
    for word in ("panda@planar", "panda@differential"):
        chain = whole(word)
        pos, quat = (x.clone() for x in chain.fk(chain.rest[None]))
        pos[:, 1] += 0.05
        found = IkSolver(chain).solve(pos, quat, chain.rest[None], posture=0.0)
        assert found.reached.all()
        left[word] = found.q[0, :3].tolist()
    x, y, yaw = left["panda@differential"]
    assert abs(y) <= math.hypot(x, y) * abs(math.sin(yaw)) + 1e-9  # within the angle that it turned by
    assert left["panda@planar"][1] > 10 * abs(y)


@pytest.mark.parametrize("word", MOBILE)
def test_the_kernel_of_a_gpu_finds_the_same(word: str) -> None:
    pytest.importorskip("mujoco_warp", reason="MuJoCo Warp is not installed: pip install 'manikin[gpu]'")
    chain = whole(word)
    pos, quat = (x.clone() for x in chain.fk(chain.rest.expand(3, -1)))
    pos[:, :2] += torch.tensor([[0.4, 0.2], [-0.3, 0.1], [0.05, -0.6]], dtype=torch.float64)
    asked = {"iterations": 25, "posture": 0.02}
    here = IkSolver(chain).solve(pos, quat, chain.rest.expand(3, -1), **asked)
    chain.on_device = chain.warp()
    there = IkSolver(chain).solve(pos, quat, chain.rest.expand(3, -1), **asked)
    assert torch.equal(here.reached, there.reached) and here.reached.any()
    assert (here.q - there.q).abs().max() < 1e-6


@pytest.mark.parametrize(("word", "groups"), [("panda@planar", "base+arm"), ("tiago", "base+torso+arm")])
def test_its_card_moves_the_tool_and_the_base_follows(word: str, groups: str) -> None:
    env = yard(word, f"{groups}: ee_delta_pose", rows=2)
    dims = [dim.name for dim in env.controller.card.dims]
    assert dims == [*(f"{groups}/{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")), "gripper"]
    before, root = env.robot.tcp_pose.clone(), env.robot.root_pose.clone()
    action = torch.zeros(2, 7)
    action[:, 0] = 1.0
    sideways = 0.0
    for _ in range(40):
        was = env.robot.root_pose.clone()
        env.step(action)
        step, yaw = env.robot.root_pose - was, quat_to_yaw(was[:, 3:])
        sideways = max(sideways, float((step[:, 1] * torch.cos(yaw) - step[:, 0] * torch.sin(yaw)).abs().max()))
    moved = env.robot.tcp_pose - before
    assert (moved[:, 0] > 1.2).all() and (env.robot.root_pose - root)[0, 0] > 1.0  # further than an arm reaches
    assert moved[:, 1:3].abs().max() < 0.05 * float(moved[0, 0])
    assert torch.equal(moved[0], moved[1])
    assert sideways * env.control_hz < 0.05
    for _ in range(20):
        env.step(env.hold())
    rests = env.robot.arm_qpos.clone()
    for _ in range(20):
        env.step(env.hold())
    assert (env.robot.arm_qpos - rests).abs().max() < 2e-3


def test_joints_of_several_groups_are_one_controllers() -> None:
    env = yard("tiago", {"torso+arm": "joint_target_delta_pos", "base": "base_vel"})
    names = [dim.name for dim in env.controller.card.dims]
    assert names[0] == "torso+arm/torso_lift_joint" and names[1] == "torso+arm/arm_1_joint" and len(names) == 11
    before = env.robot.arm_qpos.clone()
    action = torch.zeros(1, 11)
    action[:, 0] = -1.0
    env.step(action)
    torso, head = env.robot.groups["torso"].start, env.robot.groups["head"]
    step = env.robot.arm.groups["torso"].delta[0]
    assert float(env.robot.ctrl[0, torso]) == pytest.approx(float(before[0, torso]) - step, abs=1e-4)
    assert torch.allclose(env.robot.ctrl[0, head], before[0, head], atol=1e-4)


@pytest.mark.parametrize(
    ("word", "control", "error", "said"),
    [
        ("panda@planar", "base+arm: osc_pose", ConfigError, "moves one group by torque, not 'base\\+arm'"),
        ("panda@planar", "base+legs: ee_pose", UnknownNameError, "joint group of panda@planar 'legs'.*arm, base"),
        ("panda@planar", "base+arm: ee_pose, arm: joint_pos", ConfigError, "names a group twice"),
        ("panda@planar", "arm: ee_pose, gripper: joint_pos", ConfigError, "'gripper' takes 'opening'"),
        ("panda@planar", "arm: opening", ConfigError, "'gripper' takes 'opening'"),
        ("panda+none@planar", "arm: ee_pose, gripper: opening", ConfigError, "has no gripper here that opens"),
        ("panda@planar", "base+arm: base_vel", ConfigError, "base_vel drives the base alone"),
    ],
)
def test_what_does_not_go_is_said(word: str, control: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        yard(word, control)


def test_the_grippers_number_stands_where_the_word_has_it() -> None:
    env = yard("panda@planar", "arm: joint_delta_pos, gripper: opening, base: base_vel")
    names = [dim.name for dim in env.controller.card.dims]
    assert names[7] == "gripper" and names[8] == "base/forward" and env.controller.card.grippers == (7,)
    action = torch.zeros(1, 11)
    action[:, 7], action[:, 8] = -1.0, 1.0
    for _ in range(20):
        env.step(action)
    assert float(env.robot.opening) < 0.25 and 0.6 < float(env.robot.root_pose[0, 0]) < 1.1
    still = env.towards(env.robot.arm_qpos)
    assert still.shape == (1, 11) and still[0, 7] == 0
