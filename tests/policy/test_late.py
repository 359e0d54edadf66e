"""Policies that think while the world goes on, and policies of graded quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError, UnknownNameError
from manikin.eval.runner import run_episodes
from manikin.policy.choices import policy_maker
from manikin.policy.chunk import Execution
from manikin.policy.delay import LatePolicy, late_steps, standing
from manikin.policy.expert import ExpertPolicy
from manikin.policy.graded import Grade, GradedPolicy
from manikin.policy.random_policy import RandomPolicy


@pytest.fixture(scope="module")
def env() -> Any:
    made = manikin.make("PickCube-v2", num_envs=3, autoreset="disabled", horizon=25)
    made.reset(seed=[1, 2, 3])
    return made


class Counter:
    """Every number of an action says when the row asked and how far into the chunk it is: (10 t + i) / 1000."""

    stateless = True

    def __init__(self, length: int) -> None:
        self.length, self.asked = length, []

    def reset(self, rows: torch.Tensor) -> None:
        pass

    def act(self, observation: torch.Tensor, instruction: list[str]) -> torch.Tensor:
        self.asked.append(observation[:, 0].tolist())
        chunk = (10 * observation[:, :1, None] + torch.arange(self.length)[None, :, None]) / 1000
        return chunk.expand(-1, -1, 8).float()


STANDS = None  # no answer yet


@pytest.mark.parametrize(
    "length, execute, late, seen, asked",
    [
        # asked at 0, there at 2: the first two of the chunk are over; asked again with two left
        (6, None, 2, [STANDS, STANDS, 2, 3, 4, 5, 42, 43, 44, 45, 82], [0, 4, 8]),
        (6, 3, 2, [STANDS, STANDS, 2, 3, 4, 32, 33, 34, 62, 63, 64], [0, 3, 6, 9]),
        # a chunk no longer than the wait is executed late, whole; then it stands until the next one
        (2, None, 3, [STANDS, STANDS, STANDS, 0, 1, STANDS, 30, 31, STANDS, 60, 61], [0, 3, 6, 9]),
        (1, None, 1, [STANDS, 0, 10, 20, 30, 40], [0, 1, 2, 3, 4, 5]),
        (4, 2, 1, [STANDS, 1, 2, 21, 22, 41, 42], [0, 2, 4, 6]),
    ],
)
def test_chunks_come_late_by_the_step(env: Any, length, execute, late, seen, asked) -> None:
    inner = Counter(length)
    policy = LatePolicy(inner, env, late, execution=Execution(execute))
    policy.reset(torch.arange(3))
    still = standing(env)[0]
    assert torch.equal(still[:7], torch.zeros(7)) and still[7] == pytest.approx(1.0, abs=0.02)  # the gripper is open
    gripper = still[7]
    for t, number in enumerate(seen):
        action = policy.act(torch.full((3, 2), float(t)), [""] * 3)[0, 0]
        if number is STANDS:
            assert torch.equal(action[:7], torch.zeros(7)) and action[7] == gripper, t
        else:
            assert torch.allclose(action, torch.full((8,), number / 1000)), t
            gripper = action[7]  # while it stands, a gripper keeps its command
    assert [one[0] for one in inner.asked] == asked


def test_a_row_waits_by_its_own_clock(env: Any) -> None:
    inner = Counter(4)
    policy = LatePolicy(inner, env, 1)
    policy.reset(torch.arange(3))
    seen = []
    for t in range(6):
        if t == 3:
            policy.reset(torch.tensor([1]))
        seen.append(policy.act(torch.full((3, 1), float(t)), [""] * 3)[:, 0, 0] * 1000)
    rows = torch.stack(seen, 1).round().int().tolist()
    assert rows == [[0, 1, 2, 3, 31, 32], [0, 1, 2, 0, 31, 32], [0, 1, 2, 3, 31, 32]]


def test_time_becomes_control_steps() -> None:
    assert [late_steps(ms, 20.0) for ms in (0, 1, 50, 50.1, 120)] == [0, 1, 1, 2, 3]
    assert [late_steps(120, hz) for hz in (3, 5, 10)] == [1, 1, 2]
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="0 or more milliseconds"):
            late_steps(wrong, 20.0)


def test_a_slow_policy_in_the_runner(env: Any) -> None:
    """The recorded actions of an expert are executed as many steps later; a stateful policy that is quick is itself."""
    steps: list[torch.Tensor] = []

    class Sees:
        def start(self, *_: Any) -> None: ...

        def step(self, rows: Any, actions: torch.Tensor, *_: Any) -> None:
            steps.append(actions[0].clone())

        def finish(self, *_: Any) -> None: ...

    run_episodes(env, RandomPolicy(env), [5], observers=[Sees()])
    quick, steps = steps, []
    run_episodes(env, RandomPolicy(env), [5], observers=[Sees()], inference_ms=0.0)
    assert torch.equal(torch.stack(quick), torch.stack(steps))
    steps = []
    run_episodes(env, RandomPolicy(env), [5], observers=[Sees()], inference_ms=100.0)
    assert torch.equal(steps[0][:7], torch.zeros(7)) and torch.equal(steps[1][:7], torch.zeros(7))
    # one action per answer, which takes two steps: every second step acts
    assert torch.equal(torch.stack(steps[2::2]), torch.stack(quick[: len(steps[2::2])]))
    assert torch.equal(torch.stack(steps[3::2])[:, :7], torch.zeros(len(steps[3::2]), 7))
    with pytest.raises(ConfigError, match=r"cannot be averaged \(ensemble\)"):
        run_episodes(env, RandomPolicy(env), [5], execution=Execution(None, 0.0), inference_ms=100.0)


# ---- graded policies -------------------------------------------------------------------------------------------------


def actions_of(env: Any, policy: Any, steps: int) -> torch.Tensor:
    """(N, steps, A) in episodes 1, 2, 3, with the robot at rest."""
    env.reset(seed=[1, 2, 3])
    policy.reset(torch.arange(3))
    return torch.stack([policy.act(None, [""] * 3)[:, 0] for _ in range(steps)], 1)


class Ramp:
    """Action t in step t, in hundredths; the gripper is closed."""

    name = "ramp"

    def __init__(self, env: Any) -> None:
        self.step = 0

    def reset(self, rows: torch.Tensor) -> None:
        self.step = 0

    def act(self, observation: Any, instruction: Any) -> torch.Tensor:
        self.step += 1
        return torch.cat([torch.full((3, 1, 7), (self.step - 1) / 100), -torch.ones(3, 1, 1)], 2)


def test_faults_are_what_they_are_declared_to_be(env: Any) -> None:
    noise = actions_of(env, GradedPolicy(Ramp(env), env, Grade(noise=0.05)), 20) - actions_of(env, Ramp(env), 20)
    drawn = noise[..., :7]
    assert (noise[..., 7] == 0).all() and abs(float(drawn.std()) - 0.05) < 0.006 and abs(float(drawn.mean())) < 0.01
    assert len(np.unique(drawn.numpy().round(6))) > 400  # every step, row and joint its own
    bias = actions_of(env, GradedPolicy(Ramp(env), env, Grade(bias=-0.02)), 5) - actions_of(env, Ramp(env), 5)
    assert torch.allclose(bias[..., :7], torch.tensor(-0.02)) and (bias[..., 7] == 0).all()
    late = actions_of(env, GradedPolicy(Ramp(env), env, Grade(delay=3)), 6)
    assert torch.allclose(late[0, :, 0], torch.tensor([0, 0, 0, 0, 0.01, 0.02]))
    assert torch.allclose(late[0, :, 7], torch.tensor([1.0, 1, 1, -1, -1, -1]), atol=0.02)


def test_a_gripper_drops_out_for_half_a_second(env: Any) -> None:
    found = actions_of(env, GradedPolicy(Ramp(env), env, Grade(drop=0.04)), 25)[..., 7] > 0
    assert 0 < int(found.sum()) < found.numel()
    for row in found.tolist():  # an opening lasts ten steps of 20 Hz or longer, unless the episode ends
        runs, length = [], 0
        for open_now in [*row, False]:
            if not open_now and length:
                runs.append(length)
            length = length + 1 if open_now else 0
        assert all(run >= 10 for run in runs[:-1]) and (not runs or runs[-1] >= 10 or row[-1])


def test_faults_follow_the_episode_and_the_policy_s_seed(env: Any) -> None:
    maker = policy_maker("graded:noise=0.3,delay=1,drop=0.1")
    env.reset(seed=[1, 2, 3])
    one, again = (actions_of(env, maker(env), 4) for _ in range(2))
    other = actions_of(env, policy_maker("graded:noise=0.3,delay=1,drop=0.1", seed=7)(env), 4)
    assert torch.equal(one, again) and not torch.equal(one, other) and not torch.equal(one[0], one[1])
    assert maker(env).name == "expert (noise=0.3,delay=1,drop=0.1)"
    assert policy_maker("graded:of=random")(env).name == "random (no fault)"
    assert torch.equal(actions_of(env, policy_maker("graded:")(env), 4), actions_of(env, ExpertPolicy(env), 4))


def test_the_worse_the_grade_the_fewer_succeed() -> None:
    made = manikin.make("PushCube-v2", num_envs=16, autoreset="disabled")
    rates = []
    for word in ("graded:", "graded:noise=1.0,delay=2", "graded:noise=3.0,delay=8"):
        run = run_episodes(made, policy_maker(word)(made), range(16))
        rates.append(sum(r.success_once for r in run.results) / 16)
    assert rates[0] >= 0.9 and rates[0] > rates[1] > rates[2], rates


@pytest.mark.parametrize(
    "word, said",
    [
        ("graded:nois=1", "takes noise, bias, delay, drop and of"),
        ("graded:noise=much", "got 'noise=much'"),
        ("graded:delay=1.5", "got 'delay=1.5'"),
        ("graded:noise=-1", "noise must be 0 or more"),
        ("graded:drop=2", "drop from 0 to 1"),
    ],
)
def test_a_grade_that_is_none_says_so(word: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        policy_maker(word)


def test_a_policy_without_a_seed_says_so() -> None:
    with pytest.raises(ConfigError, match="the policy expert takes no seed"):
        policy_maker("expert", seed=1)
    with pytest.raises(UnknownNameError, match="graded:noise"):
        policy_maker("expart")
