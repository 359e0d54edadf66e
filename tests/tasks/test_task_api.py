"""What a task may do: memory, failure, settling, placement, variation, options; tried on a small task of our own."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import manikin
from manikin.env.registry import task_class, task_ids
from manikin.env.task import Quantity, Task
from manikin.errors import ConfigError, SceneError, UnknownNameError
from manikin.rng import EpisodeRng
from manikin.spec.prop import Shape
from manikin.spec.vary import Choice, Normal, Uniform
from states import states


class Drop(Task):
    """A ball falls on the floor; success after it has been low for some steps, failure when it starts too high."""

    id = "Drop-v0"
    horizon_s = 1.0
    instruction = "let the ball fall"
    control = "joint_pos"
    reward_max = 1.0
    observations = {"ball_pos": Quantity("m", "world"), "low_for": Quantity("steps"), "size": Quantity("m")}

    @dataclass(frozen=True)
    class Config:
        settle: float = 0.0
        fail_above: float = 0.5

    def __init__(self, config=None, **kw):
        super().__init__(config, **kw)
        self.settle_s = self.config.settle

    def scene(self, b):
        b.fixture("ground", Shape(type="box", size=(1, 1, 0.05), pos=(0, 0, -0.05)))
        ball = b.sphere(
            "ball", radius=Uniform(0.02, 0.05), mass=Uniform(0.05, 0.2), rgba=Choice(((1, 0, 0, 1), (0, 0, 1, 1)))
        )
        slab = b.box("slab", half_size=(0.05, 0.05, 0.01), friction=Normal(0.5, 0.2, 0.3, 0.8), pos=(0.4, 0, 0.01))
        return {
            "robot": b.robot(pos=(-0.6, 0, 0)),
            "ball": ball,
            "slab": slab,
            "low_for": b.variable("low_for"),
            "episodes": b.variable("episodes", persist=True),
        }

    def start(self, h, ep):
        height = ep.options.get("height")
        z = ep.rng.uniform("z", 0.1, 0.2, (1,)) if height is None else torch.full((h.n, 1), float(height))
        spot = ep.place(2, low=(-0.2, -0.2), high=(0.2, 0.2), gap=0.15)
        h.ball.set_pose(torch.cat([spot[:, 0], z], 1))
        h.slab.set_pose(torch.cat([spot[:, 1], torch.full((h.n, 1), 0.01)], 1))
        h.episodes.set(h.episodes.value + 1)

    def advance(self, h):
        low = h.ball.pos[:, 2] < h.ball.size[:, 0] + 0.005
        h.low_for.set(torch.where(low, h.low_for.value + 1, 0.0))

    def evaluate(self, h):
        return {"success": h.low_for.value >= 3, "fail": h.ball.pos[:, 2] > self.config.fail_above}

    def observe(self, h):
        return {
            "policy": {"ball_pos": h.ball.pos},
            "privileged": {"low_for": h.low_for.value, "size": h.ball.size[:, 0]},
        }

    def reward(self, h, ev, action):
        return {"low": (h.low_for.value / 3).clamp(max=1.0)}


def hold(env):
    from manikin.author.card import hold_action

    return hold_action(env)


def test_memory_success_and_persistence():
    env = manikin.make(Drop, num_envs=4, reward="dense")
    env.reset(seed=0)
    seen = []
    for _ in range(14):
        _, reward, terminated, _, info = env.step(hold(env))
        done = info["_final_info"] if "_final_info" in info else torch.zeros(4, dtype=torch.bool)
        assert torch.equal(terminated, done)
        if done.any():
            assert info["final_info"]["success"][done].all() and (reward[done] == 1).all()
            assert (env.h.low_for.value[done] == 0).all()  # memory starts anew with the episode
            seen += torch.nonzero(done).flatten().tolist()
    assert set(seen) == {0, 1, 2, 3}
    counts = torch.tensor([1.0 + seen.count(k) for k in range(4)])
    assert torch.equal(env.h.episodes.value, counts)  # persist=True outlives episodes


def test_rows_left_out_keep_their_memory():
    env = manikin.make(Drop, num_envs=3, autoreset="disabled", terminate=False)
    env.reset(seed=0)
    for _ in range(8):
        env.step(hold(env))
    before = env.h.low_for.value.clone()
    assert (before > 0).all()
    env.step(hold(env), active=torch.tensor([True, False, True]))
    assert env.h.low_for.value.tolist() == [before[0] + 1, before[1], before[2] + 1]


def test_failure_ends_an_episode_and_options_reach_start():
    env = manikin.make(Drop, num_envs=2, autoreset="disabled")
    env.reset(seed=0, options={"height": 1.0})
    _, _, terminated, truncated, info = env.step(hold(env))
    assert terminated.all() and info["fail"].all() and not info["success"].any() and not truncated.any()
    assert manikin.make(Drop, num_envs=2, reward="sparse", autoreset="disabled", terminate=False).reset(seed=0)
    loose = manikin.make(Drop, num_envs=2, reward="sparse", autoreset="disabled", terminate=False)
    loose.reset(seed=0, options={"height": 1.0})
    _, reward, terminated, _, _ = loose.step(hold(loose))
    assert not terminated.any() and reward.tolist() == [-1, -1]


def test_settling_happens_before_the_episode():
    env = manikin.make(Drop, num_envs=3, config={"settle": 0.5})
    plain = manikin.make(Drop, num_envs=3)
    settled, free = env.reset(seed=0)[0], plain.reset(seed=0)[0]
    z = env.observation_names.index("policy/ball_pos[2]")
    radius = env.observation_names.index("privileged/size")
    assert torch.allclose(settled[:, z], settled[:, radius], atol=2e-3) and (free[:, z] >= 0.1).all()
    for _ in range(3):
        state = states(env.world)[1:]
        env.reset(options={"reset_mask": np.array([True, False, False])})
        assert np.array_equal(states(env.world)[1:], state)  # settling touches only the rows that start


def test_variation_is_drawn_per_episode_and_is_the_episodes_own():
    env = manikin.make(Drop, num_envs=64)
    env.reset(seed=0)
    radius = env.h.ball.size[:, 0].clone()
    mass = env.world.model_field("body_mass")[:, env.h.ball.body_id].copy()
    inertia = env.world.model_field("body_inertia")[:, env.h.ball.body_id]
    friction = env.world.model_field("geom_friction")[:, env.h.slab.geom_ids[0], 0]
    colour = env.world.model_field("geom_rgba")[:, env.h.ball.geom_ids[0]]
    assert 0.02 <= radius.min() < 0.025 and 0.045 < radius.max() < 0.05
    assert 0.05 <= mass.min() < 0.07 and 0.18 < mass.max() < 0.2
    assert np.allclose(inertia[:, 0], 0.4 * mass * radius.double().numpy() ** 2, rtol=1e-6)  # a solid ball of that size
    assert friction.min() >= np.float32(0.3) and friction.max() <= np.float32(0.8) and friction.std() > 0.1
    assert {tuple(c) for c in colour} == {(1, 0, 0, 1), (0, 0, 1, 1)}
    one = manikin.make(Drop, num_envs=2)
    one.reset(seed=[40, 7])
    assert one.h.ball.size[:, 0].tolist() == [radius[40], radius[7]]
    assert one.world.model_field("body_mass")[0, one.h.ball.body_id] == mass[40]
    env.reset()
    assert not torch.equal(env.h.ball.size[:, 0], radius)


def test_place_keeps_its_distance_and_says_when_there_is_no_room():
    from manikin.env.task import Episode

    n = 200
    seed = torch.arange(n)
    episode = Episode(np.arange(n), torch.zeros(n, dtype=torch.int64), EpisodeRng(seed, torch.zeros_like(seed)))
    spots = episode.place(3, low=(-0.1, 0.0), high=(0.1, 0.3), gap=0.08)
    apart = (spots[:, :, None] - spots[:, None]).norm(dim=-1) + 10 * torch.eye(3)
    assert apart.min() >= 0.08 and spots[..., 1].min() >= 0 and spots[..., 0].abs().max() <= 0.1
    alone = Episode(
        np.array([3]), torch.zeros(1, dtype=torch.int64), EpisodeRng(seed[3:4], torch.zeros(1, dtype=torch.int64))
    )
    assert torch.equal(alone.place(3, low=(-0.1, 0.0), high=(0.1, 0.3), gap=0.08)[0], spots[3])
    with pytest.raises(SceneError, match=r"no room for 3 things 1.0 m apart .* rows \[0, 1"):
        episode.place(3, low=(0, 0), high=(0.1, 0.1), gap=1.0, name="other")


class TwoRobots(Drop):
    id = "TwoRobots-v0"

    def scene(self, b):
        return {**super().scene(b), "second": b.robot(name="second")}


class NoRobot(Drop):
    id = "NoRobot-v0"

    def scene(self, b):
        return {"ball": b.sphere("ball", radius=0.1)}


class Twice(Drop):
    id = "Twice-v0"

    def scene(self, b):
        b.box("ball", half_size=(1, 1, 1))
        return super().scene(b)


class Undeclared(Drop):
    id = "Undeclared-v0"

    def evaluate(self, h):
        slab = h.slab
        h.robot.grasps.pop(slab.name, None)
        return {"success": h.robot.is_grasping(slab)}


class Broken(Drop):
    id = "Broken-v0"

    def scene(self, b):
        parts = super().scene(b)
        b.box("thin", half_size=(0.1, 0.1, -1))
        return parts


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (TwoRobots, "asks for 2 robots but 1 were chosen"),
        (Twice, "two things in the scene are named 'ball'"),
        (Broken, "(?s)does not compile: .*thin/0"),
    ],
)
def test_scenes_that_cannot_be_made_say_why(task, message):
    with pytest.raises(SceneError, match=message):
        manikin.make(task)


def test_other_mistakes_say_what_to_do():
    with pytest.raises(ConfigError, match=r"no robots instead of 1; call b\.robot\(\)"):
        manikin.make(NoRobot)
    with pytest.raises(ConfigError, match=r"task Endless has no horizon_s; for example horizon_s = 5\.0"):
        manikin.make(type("Endless", (Task,), {"id": "Endless-v0"}))
    env = manikin.make(Undeclared)
    with pytest.raises(SceneError, match=r"in scene\(\) add: b\.grasp\(robot, slab\)"):
        env.reset(seed=0)
    fine = manikin.make(Drop, num_envs=2)
    with pytest.raises(ConfigError, match=r"expected shape \(2, 3\) or \(3,\)"):
        fine.h.ball.set_pose(torch.zeros(2, 2))
    with pytest.raises(UnknownNameError, match="keyframe of panda"):
        fine.robot.keyframe("home")
    with pytest.raises(SceneError, match="resizable=True"):
        fine.h.slab.set_size(torch.ones(2, 3))


def test_a_second_creation_is_quick():
    import time

    manikin.make("PickCube-v2")
    begin = time.process_time()  # of this process: the machine may be busy
    manikin.make("PickCube-v2", num_envs=16)
    assert time.process_time() - begin < 2.0


def test_a_configuration_is_the_same_when_it_comes_from_a_file():
    """JSON and TOML know lists only; a door whose range of turns was one turned otherwise than the recorded one."""
    for name in task_ids():
        task = task_class(name)()
        read = json.loads(json.dumps(dataclasses.asdict(task.config)))
        assert task_class(name)(read).config == task.config, name
    door = task_class("Door-v2")
    starts = []
    for turn in ((-1.8, -1.6), [-1.8, -1.6]):
        env = manikin.make(door, config={"turn": turn})
        env.reset(seed=3)
        starts.append(env.h.place.value.clone())
        env.close()
    assert torch.equal(*starts)


@pytest.mark.parametrize("task", ["GraspCube-v1", "StackCube-v2", "PlaceSphere-v2"])
@pytest.mark.parametrize("word", ["go2", "trifinger", "panda+none", "panda+stick", "panda+shadow", "g1_upper_body"])
def test_who_cannot_close_fingers_on_a_cube_is_told_who_can(task: str, word: str) -> None:
    with pytest.raises(ConfigError, match=rf"{task} needs a robot with arm and gripper, and '.*' has no .*; it takes "):
        manikin.make(task, robot=word)


def test_two_robots_on_legs_put_no_peg_into_a_hole() -> None:
    with pytest.raises(ConfigError, match="needs a robot with arm and flange and held base, and 'go2' has no arm"):
        manikin.make("TwoArmPegInHole-v2", robot="go2,go2")
