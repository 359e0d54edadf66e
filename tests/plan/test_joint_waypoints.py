"""Waypoints that say where joints go."""

from __future__ import annotations

import pytest
import torch

from manikin.arenas.table import table
from manikin.env.env import Env
from manikin.env.task import Task
from manikin.errors import ConfigError
from manikin.plan.executor import WaypointExecutor
from manikin.spec.plan import Waypoint

AWAY = (0.0, 0.5, 0.0, -1.6, 0.0, 2.0, 0.3)  # [rad]
TURN = 0.5  # [rad/s]


class Bend(Task):
    """Bend to one place, then bring the tool back to where it began.

    Randomization: none.
    Success: never.
    """

    id = "Bend-v0"
    horizon_s = 10.0
    instruction = "bend"
    control = "joint_delta_pos"

    def scene(self, b):
        table(b)
        return {"robot": b.robot()}

    def start(self, h, ep):
        h.robot.set_qpos(h.robot.keyframe())

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {}, "privileged": {}}

    def expert(self, h):
        joints = torch.tensor([AWAY]).expand(h.n, 7)
        back = torch.tensor([[-0.1, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0]]).expand(h.n, 7)
        return [
            Waypoint(joints=joints, gripper=1, turn=TURN, rot_tol=0.01, timeout_s=6.0, name="bend"),
            Waypoint(pose=back, gripper=1, name="back").hold(),
        ]


def test_joints_go_there_together_no_faster_than_told_and_then_the_tool_goes_to_its_pose() -> None:
    env = Env(Bend, num_envs=2, autoreset="disabled", reward="sparse")
    env.reset(seed=0)
    expert, begun = WaypointExecutor(env), env.arm_qpos.clone()
    goal = torch.tensor(AWAY)
    way, last, steps = goal - begun[0], begun, 0
    while True:
        action = expert.act()
        if expert.waypoint != ["bend"] * 2:
            break
        env.step(action)
        now = env.arm_qpos.clone()
        assert ((now - last).abs() <= 1.3 * TURN / env.control_hz).all()
        if 10 < steps < 0.8 * way.abs().max() / TURN * env.control_hz:  # every joint as far on its way as the others
            share = ((now - begun) / way)[0, way.abs() > 0.1]
            assert share.max() - share.min() < 0.05
        last, steps = now, steps + 1
    assert steps == pytest.approx(way.abs().max().item() / TURN * env.control_hz, abs=6)
    assert (last - goal).abs().max() <= 0.01
    assert expert.timeouts == [(), ()]
    for _ in range(60):
        env.step(expert.act())
    assert (env.tcp_poses[:, 0, :3] - torch.tensor([-0.1, 0.0, 0.3])).norm(dim=1).max() < 0.01


def test_a_joint_out_of_reach_times_out_and_is_reported_in_radians() -> None:
    class Far(Bend):
        id = "Far-v0"

        def expert(self, h):
            joints = h.robot.arm_qpos.clone()
            joints[:, 3] = 1.0  # its limit is -0.07
            stage = Waypoint(joints=joints, gripper=1, timeout_s=1.5, name="far", turn=3.0)
            return [stage, Waypoint(joints=h.robot.arm_qpos.clone(), gripper=1, name="end").hold()]

    env = Env(Far, autoreset="disabled", reward="sparse")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    for _ in range(40):
        env.step(expert.act())
    (late,) = expert.timeouts[0]
    assert late.waypoint == "far" and late.away == 0.0 and late.turned > 1.0


def test_a_new_episode_begins_from_where_the_arm_is() -> None:
    env = Env(Bend, autoreset="disabled", reward="sparse")
    env.reset(seed=0)
    expert = WaypointExecutor(env)
    first = expert.act().clone()
    for _ in range(20):
        env.step(expert.act())
    env.reset(seed=0)
    assert torch.equal(expert.act(), first)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "neither a pose nor joints"),
        ({"pose": torch.zeros(1, 7), "joints": torch.zeros(1, 7)}, "both a pose and joints"),
        ({"joints": torch.zeros(1, 7), "avoid": True}, "avoid="),
        ({"base": torch.zeros(1, 3), "avoid": True}, "base and avoid="),
        ({"base": torch.zeros(3)}, r"base must be \(n, 3\) or a path \(n, k, 3\)"),
        ({"pose": torch.zeros(1, 7), "base": torch.zeros(1, 2, 3)}, r"base must be \(n, 3\), x, y and turn"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Waypoint(gripper=1, name="one", **given)


def test_only_a_waypoint_of_a_tool_has_a_pose() -> None:
    there = torch.zeros(2, 7)
    assert Waypoint(pose=there, gripper=1).at is there
    with pytest.raises(ConfigError, match="'reach' has no pose of a tool"):
        _ = Waypoint(joints=torch.zeros(2, 7), gripper=1, name="reach").at
