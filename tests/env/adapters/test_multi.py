"""Several robots in one environment: words, one action, observations, the executor of waypoints."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import manikin
from card import on_card
from manikin.author.card import hold_action
from manikin.author.contracts import any_batch_size, save_and_load, start_anywhere
from manikin.author.sheet import task_sheet
from manikin.author.under_test import TaskUnderTest
from manikin.env.task import Quantity, Task
from manikin.errors import ActionError, ConfigError, UnknownNameError
from manikin.plan.executor import WaypointExecutor
from manikin.robots import members, parse_robots, stand_together
from manikin.spec.plan import Waypoint

POSE = Quantity("m, quaternion wxyz", "world")


class Pair(Task):
    """Two robots side by side: the first raises its hand, the second lowers it.

    Success: never.
    """

    id = "Pair-v0"
    instruction = "raise one hand and lower the other"
    horizon_s = 5.0
    robot_count = 2
    robots = ("panda,panda",)
    observations = {"robot0_tcp_pose": POSE, "robot1_tcp_pose": POSE}

    def scene(self, b):
        apart = {} if stand_together(b.robots) else {"pos": (0.0, 1.2, 0.0)}
        return {"one": b.robot(name="robot0"), "two": b.robot(name="robot1", **apart)}

    def start(self, h, ep):
        for name, robot in (("one", h.one), ("two", h.two)):
            rest = robot.keyframe()
            robot.set_qpos(rest + ep.rng.normal(f"{name}/qpos", 0.0, 0.02, (len(rest),)))

    def evaluate(self, h):
        return {"success": torch.zeros(h.n, dtype=torch.bool)}

    def observe(self, h):
        return {"policy": {"robot0_tcp_pose": h.one.tcp_pose, "robot1_tcp_pose": h.two.tcp_pose}}

    def expert(self, h):
        def by(robot, height, **options):
            goal = robot.tcp_pose + torch.tensor([0.0, 0.0, height, 0.0, 0.0, 0.0, 0.0])
            return Waypoint(pose=goal, pos_tol=0.004, **options)

        return [
            (by(h.one, 0.05, gripper=1), by(h.two, -0.05, gripper=-1)),
            (by(h.one, 0.0, gripper=1), by(h.two, 0.0, gripper=-1)),
        ]


def test_words_for_several_robots() -> None:
    assert members("panda") == ("panda",)
    assert members("baxter+none") == ("baxter_right+none", "baxter_left+none")
    assert members(("panda", "ur5e+robotiq_2f85:menagerie")) == members("panda, ur5e+robotiq_2f85:menagerie")
    assert [one.arm.name for one in parse_robots("panda,sawyer")] == ["panda", "sawyer"]
    assert stand_together(parse_robots("aloha")) and not stand_together(parse_robots("panda,panda"))


def test_a_task_says_how_many_robots_it_takes() -> None:
    with pytest.raises(ConfigError, match=r"Pair-v0 takes 2 robots, but 'panda' is 1; for example robot='panda,panda'"):
        manikin.make(Pair, robot="panda")
    with pytest.raises(ConfigError, match="takes 1 robot, but 'baxter' is 2; PickCube-v2 is tested with 'panda' or "):
        manikin.make("PickCube-v2", robot="baxter")
    with pytest.raises(UnknownNameError, match="Valid"):
        manikin.make(Pair, robot=("panda", "pandda"))


@pytest.mark.parametrize(
    ("robot", "control"),
    [("panda,panda", "joint_delta_pos"), (("panda", "sawyer"), "osc_pose"), ("baxter", "ee_delta_pose")],
)
def test_each_robot_follows_its_own_waypoints(robot, control) -> None:
    env = manikin.make(Pair, 2, robot=robot, control=control, reward="none", autoreset="disabled", physics_hz=500)
    env.reset(seed=0)
    before = [one.tcp_pos[:, 2].clone() for one in env.robots]
    expert = WaypointExecutor(env)
    heights = []
    for _ in range(20):
        env.step(expert.act())
        heights.append([(one.tcp_pos[:, 2] - z).mean().item() for one, z in zip(env.robots, before, strict=True)])
    assert heights[-1] == pytest.approx([0.05, -0.05], abs=0.012)
    assert (expert.stage == 1).all()
    assert env.robots[1].opening.max() < 0.6 < env.robots[0].opening.min()  # the second closed its gripper
    env.close()


def test_one_action_names_its_robots_and_moves_only_the_one_it_speaks_to() -> None:
    env = manikin.make(Pair, 1, robot=("panda", "sawyer"), control="joint_delta_pos", reward="none")
    env.reset(seed=3)
    card = env.controller.card
    assert [d.name for d in card.dims[6:10]] == ["robot0/joint7", "robot0/gripper", *[d.name for d in card.dims[8:10]]]
    assert all(d.name.startswith("robot1/") for d in card.dims[8:])
    assert card.grippers == (7, 15) and card.robot == "panda and sawyer"
    assert env.fingerprint()["robot"] == "panda,sawyer"
    for _ in range(10):
        env.step(hold_action(env))
    before = [one.arm_qpos.clone() for one in env.robots]
    action = hold_action(env)
    action[0, 8] = 1.0
    for _ in range(3):
        env.step(action)
    moved = [(one.arm_qpos - q).abs().amax(1).item() for one, q in zip(env.robots, before, strict=True)]
    assert moved[0] < 1e-3 and moved[1] > 0.05
    env.close()


def test_observations_of_several_robots_have_their_names() -> None:
    env = manikin.make(Pair, 2, reward="none")
    observation, _ = env.reset(seed=0)
    columns = env.observation_names
    assert columns[0] == "policy/robot0_qpos[0]" and "policy/robot1_qvel[8]" in columns
    at = columns.index("policy/robot1_qpos[0]")
    torch.testing.assert_close(observation[:, at : at + 9], env.robots[1].qpos)
    sheet = task_sheet(Pair, measure=False)
    assert [seen.name for seen in sheet.observations] == [
        *("robot0_qpos", "robot0_qvel", "robot1_qpos", "robot1_qvel"),
        *("robot0_tcp_pose", "robot1_tcp_pose"),
    ]
    env.close()


@pytest.mark.parametrize("promise", [start_anywhere, any_batch_size, save_and_load])
def test_rows_do_not_depend_on_one_another(promise) -> None:
    promise(TaskUnderTest(Pair, {"control": "osc_pose"}, 3, range(3), None))


def test_a_scene_with_too_few_robots_is_refused() -> None:
    class One(Pair):
        id = "One-v0"

        def scene(self, b):
            return {"one": b.robot(name="robot0")}

    with pytest.raises(ConfigError, match="declares 1 robots instead of 2"):
        manikin.make(One)


# ---- agents --------------------------------------------------------------------------------------------------------


def parallel(task=Pair, **options):
    pytest.importorskip("pettingzoo")
    from manikin.env.adapters.parallel import ParallelTask

    return ParallelTask(task, **{"reward": "sparse", **options})


@pytest.mark.filterwarnings("ignore:No agents present:UserWarning")
def test_passes_the_parallel_api_test() -> None:
    env = parallel(horizon=20)
    from pettingzoo.test import parallel_api_test

    parallel_api_test(env, num_cycles=50)


def test_agents_of_a_card_get_the_hosts_arrays(monkeypatch) -> None:
    here, there = parallel(), parallel()
    for name in ("reset", "step"):
        plain = getattr(there.batched, name)
        monkeypatch.setattr(there.batched, name, lambda *args, plain=plain, **more: on_card(plain(*args, **more)))
    action = {agent: np.full(8, 0.3, np.float32) for agent in here.possible_agents}
    assert repr(here.reset(seed=1)) == repr(there.reset(seed=1))
    assert repr(here.step(action)) == repr(there.step(action))
    assert type(there.state()) is np.ndarray and np.array_equal(here.state(), there.state())


def test_agents_together_do_what_the_one_action_does() -> None:
    env, whole = parallel(), manikin.make(Pair, autoreset="disabled", reward="sparse")
    seen, infos = env.reset(seed=5)
    flat, _ = whole.reset(seed=5)
    assert set(seen) == set(infos) == {"robot0", "robot1"} == set(env.agents)
    for _ in range(3):
        action = whole.action_space.sample()
        parts = {"robot0": action[0, :8], "robot1": action[0, 8:]}
        seen, rewards, terminated, truncated, _ = env.step(parts)
        flat, *_ = whole.step(action)
        np.testing.assert_array_equal(env.state(), flat[0].numpy())
        for agent in env.agents:
            names = env.observation_names[agent]
            at = [whole.observation_names.index(name) for name in names]
            np.testing.assert_array_equal(seen[agent], flat[0, at].numpy())
            assert not any("robot1" in name for name in names) or agent == "robot1"
            assert env.observation_space(agent).contains(seen[agent])
    assert env.action_names["robot1"][0] == "robot1/joint1"
    assert not any(terminated.values()) and not any(truncated.values()) and set(rewards.values()) == {0.0}


def test_an_action_that_is_missing_or_too_long_is_refused() -> None:
    env = parallel()
    env.reset(seed=0)
    with pytest.raises(ActionError, match=r"each of \['robot0', 'robot1'\], got \['robot0'\]"):
        env.step({"robot0": np.zeros(8)})
    with pytest.raises(ActionError, match=r"robot1 has shape \(9,\), expected \(8,\)"):
        env.step({"robot0": np.zeros(8), "robot1": np.zeros(9)})
    with pytest.raises(ConfigError, match="flat vectors"):
        parallel(observe="state_dict")
