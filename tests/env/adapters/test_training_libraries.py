"""Adapters for Stable-Baselines3, skrl and rsl_rl: ends, seeds, final observations, bounds, and what the libraries
compute from them. Where a library is missing, its base class is replaced by a small one and its own part is skipped."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
import torch

import manikin
from manikin.errors import ConfigError
from toy_clock import ToyClock, episodes_of, stand_ins, written_returns

GAMMA = 0.9
LIBRARIES = {"sb3_env": "stable_baselines3", "skrl_env": "skrl", "rsl_rl_env": "rsl_rl"}
MISSING = {name for name in LIBRARIES.values() if importlib.util.find_spec(name) is None}


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports an adapter's module, with a stand-in where its library is missing."""

    def imported(name: str) -> Any:
        place = f"manikin.env.adapters.{name}"
        if LIBRARIES[name] in MISSING:
            for module, made in stand_ins(name).items():
                monkeypatch.setitem(sys.modules, module, made)
            monkeypatch.delitem(sys.modules, place, raising=False)
            found = importlib.import_module(place)
            monkeypatch.delitem(sys.modules, place)
            return found
        return importlib.import_module(place)

    return imported


def actions(rows: int = 4) -> np.ndarray:
    return np.zeros((rows, 2), np.float32)


@pytest.mark.parametrize("name", LIBRARIES)
def test_missing_library_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in list(sys.modules):
        if module.split(".")[0] in (LIBRARIES[name], "tensordict"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, LIBRARIES[name], None)
    monkeypatch.delitem(sys.modules, f"manikin.env.adapters.{name}", raising=False)
    with pytest.raises(ConfigError, match="pip install"):
        importlib.import_module(f"manikin.env.adapters.{name}")


@pytest.mark.parametrize("name, made", [("sb3_env", "Sb3Env"), ("skrl_env", "SkrlEnv"), ("rsl_rl_env", "RslRlEnv")])
def test_other_restarts_are_refused(adapters: Any, name: str, made: str) -> None:
    env = ToyClock()
    env.autoreset = "disabled"
    with pytest.raises(ConfigError, match="same_step"):
        getattr(adapters(name), made)(env)
    with pytest.raises(ConfigError, match=r"manikin\.make"):
        getattr(adapters(name), made)(object())


# ---- Stable-Baselines3 -----------------------------------------------------------------------------------------------


def test_sb3_tells_time_outs_from_ends(adapters: Any) -> None:
    env = adapters("sb3_env").Sb3Env(ToyClock())
    env.seed(10)
    first = env.reset()
    assert first.tolist() == [[0, 1000], [0, 1100], [0, 1200], [0, 1300]]
    for step in range(11):
        seen, reward, done, infos = env.step(actions())
        for row in range(4):
            clock, ended, out = episodes_of(10 + row, 11)[step]
            assert reward[row] == 1 + clock and done[row] == (ended or out)
            assert infos[row]["TimeLimit.truncated"] is (out and not ended)
            if done[row]:
                episode = step // (3 if row % 2 else 5)
                assert infos[row]["terminal_observation"].tolist() == [clock + 1, 100 * (10 + row) + episode]
                assert seen[row].tolist() == [0, 100 * (10 + row) + episode + 1]
                assert infos[row]["is_success"] is ended
            else:
                assert "terminal_observation" not in infos[row] and seen[row, 0] == clock + 1


def test_sb3_both_ends_at_once_are_no_time_out(adapters: Any) -> None:
    env = adapters("sb3_env").Sb3Env(ToyClock(horizon=3))
    env.seed(1)
    env.reset()
    for _ in range(3):
        _, _, done, infos = env.step(actions())
    assert done.all() and [info["TimeLimit.truncated"] for info in infos] == [False, True, False, True]


def test_sb3_seeds_count_once_and_options_are_one_for_all(adapters: Any) -> None:
    env = adapters("sb3_env").Sb3Env(ToyClock())
    env.seed(4)
    assert env.reset()[:, 1].tolist() == [400, 500, 600, 700]
    assert env.reset()[:, 1].tolist() == [401, 501, 601, 701]
    env.set_options([{"a": 1}, {}, {}, {}])
    with pytest.raises(ConfigError, match="one dictionary"):
        env.reset()
    with pytest.raises(ConfigError, match=r"\.batched"):
        env.set_attr("horizon", 3)
    with pytest.raises(ConfigError, match=r"\.batched"):
        env.env_method("look")
    assert env.get_attr("horizon", [0, 2]) == [5, 5] and env.env_is_wrapped(object) == [False] * 4
    env.close()
    assert env.batched.closed


def test_sb3_names_of_an_observation_are_flat(adapters: Any) -> None:
    env = adapters("sb3_env").Sb3Env(ToyClock(named=True))
    assert set(env.observation_space.spaces) == {"policy/clock", "privileged/key"}
    assert set(env.reset()) == {"policy/clock", "privileged/key"}
    for _ in range(5):
        _, _, done, infos = env.step(actions())
    assert done[0] and infos[0]["terminal_observation"]["privileged/key"].tolist() == [5.5, 0.5]


# ---- skrl ------------------------------------------------------------------------------------------------------------


def test_skrl_rows_restart_and_say_where_they_ended(adapters: Any) -> None:
    env = adapters("skrl_env").SkrlEnv(ToyClock(), seed=10)
    first, _ = env.reset()
    assert first[:, 1].tolist() == [1000, 1100, 1200, 1300] and env.num_envs == 4 and env.state() is None
    for step in range(11):
        seen, reward, terminated, truncated, info = env.step(torch.zeros(4, 2))
        assert reward.shape == terminated.shape == truncated.shape == (4, 1)
        for row in range(4):
            clock, ended, out = episodes_of(10 + row, 11)[step]
            assert reward[row, 0] == 1 + clock
            assert bool(terminated[row]) == ended and bool(truncated[row]) == out
            if ended or out:
                assert info["final_observation"][row, 0] == clock + 1 and seen[row, 0] == 0
            elif "final_observation" in info:
                assert torch.equal(info["final_observation"][row], seen[row])
    again, _ = env.reset()
    assert torch.equal(again, seen)  # rows restart by themselves


def test_skrl_agents_record_the_real_end(adapters: Any) -> None:
    module, recorded = adapters("skrl_env"), []

    class Agent:
        def record_transition(self, *, next_observations: Any, infos: Any, rewards: Any) -> None:
            recorded.append((next_observations, rewards))

    env, agent = module.SkrlEnv(ToyClock(), seed=10), module.recording_ends(Agent)()
    assert type(agent).__name__ == "Agent"
    env.reset()
    for _ in range(3):
        seen, reward, _, _, info = env.step(torch.zeros(4, 2))
        agent.record_transition(next_observations=seen, infos=info, rewards=reward)
    assert [row[:, 0].tolist() for row, _ in recorded] == [[1] * 4, [2] * 4, [3] * 4]
    assert seen[:, 0].tolist() == [3, 0, 3, 0] and info["episode"]["success"] == 1.0


def test_skrl_names_of_an_observation_are_joined(adapters: Any) -> None:
    env = adapters("skrl_env").SkrlEnv(ToyClock(named=True), seed=0)
    assert env.reset()[0].tolist()[1] == [0, 100, 0.5, 100.5]


# ---- rsl_rl ----------------------------------------------------------------------------------------------------------


def test_rsl_rl_time_outs(adapters: Any) -> None:
    env = adapters("rsl_rl_env").RslRlEnv(ToyClock(), seed=10)
    assert (env.num_envs, env.num_actions, env.max_episode_length) == (4, 2, 5)
    assert env.get_observations()["policy"][:, 1].tolist() == [1000, 1100, 1200, 1300]
    for step in range(11):
        with torch.inference_mode():  # as the runner does
            seen, reward, dones, extras = env.step(torch.zeros(4, 2))
        for row in range(4):
            clock, ended, out = episodes_of(10 + row, 11)[step]
            assert reward[row] == 1 + clock and bool(dones[row]) == (ended or out)
            assert bool(extras["time_outs"][row]) == (out and not ended)
            assert seen["policy"][row, 0] == (0 if ended or out else clock + 1)
            assert env.episode_length_buf[row] == seen["policy"][row, 0]
    assert not seen["policy"].is_inference() and not env.batched.elapsed.is_inference()


def test_rsl_rl_lengths_that_it_sets_end_episodes(adapters: Any) -> None:
    env = adapters("rsl_rl_env").RslRlEnv(ToyClock(), seed=10)
    env.episode_length_buf = torch.tensor([0, 0, 3, 4])
    ends, outs = [], []
    for _ in range(6):
        seen, _, dones, extras = env.step(torch.zeros(4, 2))
        ends.append(dones.tolist())
        outs.append(extras["time_outs"].int().tolist())
    # row 2 counts from 3, row 3 from 4; row 1 and then row 3 end by the task every 3 steps
    assert ends == [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert outs == [[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert seen["policy"].tolist() == [[1, 1001], [0, 1102], [4, 1201], [2, 1302]]


def test_rsl_rl_groups(adapters: Any) -> None:
    env = adapters("rsl_rl_env").RslRlEnv(ToyClock(named=True), seed=0)
    groups = env.get_observations()
    assert set(groups.keys()) == {"policy", "privileged"} and groups["privileged"][1].tolist() == [0.5, 100.5]

    class Pictures(ToyClock):
        def _observe(self) -> Any:
            return {"cameras": {"base_camera": torch.zeros(self.num_envs, 8, 8, 3)}}

    with pytest.raises(ConfigError, match="state_dict"):
        adapters("rsl_rl_env").RslRlEnv(Pictures())


# ---- a task of manikin -----------------------------------------------------------------------------------------------


def test_adapters_play_what_the_environment_plays(adapters: Any) -> None:
    """Same seeds, same actions beyond the bounds, same rewards and ends as the environment itself."""
    made = lambda: manikin.make("PushCube-v2", 2, horizon=3, terminate=False)  # noqa: E731
    plain, sb3 = made(), adapters("sb3_env").Sb3Env(made())
    skrl, rsl = adapters("skrl_env").SkrlEnv(made(), seed=7), adapters("rsl_rl_env").RslRlEnv(made(), seed=7)
    sb3.seed(7)
    seen, _ = plain.reset(seed=7)
    for other in (sb3.reset(), skrl.reset()[0], rsl.get_observations()["policy"]):
        assert torch.equal(torch.as_tensor(other), seen)
    for step in range(4):
        wide = torch.full((2, 8), 3.0 if step % 2 else -0.5)
        seen, reward, _, truncated, info = plain.step(wide)
        by_sb3, by_skrl, by_rsl = sb3.step(wide.numpy()), skrl.step(wide), rsl.step(wide)
        for other in (by_sb3[0], by_skrl[0], by_rsl[0]["policy"]):
            assert torch.equal(torch.as_tensor(other), seen)
        for other in (by_sb3[1], by_skrl[1][:, 0], by_rsl[1]):
            assert torch.equal(torch.as_tensor(other), reward)
        assert by_rsl[3]["time_outs"].tolist() == truncated.tolist() == by_skrl[3][:, 0].tolist() == [step == 2] * 2
        if step == 2:
            last = info["final_obs"][1]
            assert torch.equal(torch.from_numpy(by_sb3[3][1]["terminal_observation"]), last)
            assert torch.equal(by_skrl[4]["final_observation"][1], last) and not torch.equal(seen[1], last)
    for env in (plain, sb3, skrl, rsl):
        env.close()


# ---- what the libraries make of it -----------------------------------------------------------------------------------


@pytest.mark.skipif("stable_baselines3" in MISSING, reason="stable-baselines3 is not installed")
def test_sb3_computes_the_returns_that_are_written_down() -> None:
    from stable_baselines3 import PPO

    from manikin.env.adapters.sb3_env import Sb3Env

    steps = 11
    ppo = PPO("MlpPolicy", Sb3Env(ToyClock()), n_steps=steps, gamma=GAMMA, gae_lambda=1.0, batch_size=44, seed=10)
    worth = lambda seen: seen[:, :1].float()  # noqa: E731
    forward = ppo.policy.forward
    ppo.policy.predict_values = worth  # type: ignore[method-assign]

    def valued(seen: Any, deterministic: bool = False) -> Any:
        acts, _, chances = forward(seen, deterministic)
        return acts, worth(seen), chances

    ppo.policy.forward = valued
    ppo.train = lambda: None  # type: ignore[method-assign]
    ppo.learn(steps * 4)
    for row in range(4):
        expected = written_returns(10 + row, steps, GAMMA)
        assert ppo.rollout_buffer.returns[:, row] == pytest.approx(expected, rel=1e-5)


@pytest.mark.skipif("stable_baselines3" in MISSING, reason="stable-baselines3 is not installed")
def test_sb3_replays_final_observations_and_its_actions_are_in_bounds() -> None:
    from stable_baselines3 import SAC

    from manikin.env.adapters.sb3_env import Sb3Env

    sac = SAC(
        "MlpPolicy",
        Sb3Env(ToyClock()),
        learning_starts=10_000,
        replay_buffer_kwargs={"handle_timeout_termination": True},
    )
    sac.learn(4 * 11)
    buffer = sac.replay_buffer
    for row in range(4):
        for step, (clock, ended, out) in enumerate(episodes_of(int(buffer.observations[0, row, 1]) // 100, 11)):
            assert buffer.next_observations[step, row, 0] == clock + 1
            assert buffer.dones[step, row] == (ended or out) and buffer.timeouts[step, row] == (out and not ended)
    assert all(bool((a.abs() <= 1).all()) for a in sac.env.unwrapped.batched.actions)


@pytest.mark.skipif("skrl" in MISSING, reason="skrl is not installed")
@pytest.mark.parametrize("real_ends", [True, False])
def test_skrl_computes_the_returns_that_are_written_down(real_ends: bool) -> None:
    """With the real ends they are; with the class as skrl has it, the next episode's beginning is taken instead."""
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg

    from manikin.env.adapters.skrl_env import SkrlEnv, recording_ends

    class Policy(GaussianMixin, Model):
        def __init__(self, observation_space: Any, action_space: Any, device: Any) -> None:
            Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
            GaussianMixin.__init__(self)
            self.layer, self.spread = torch.nn.Linear(2, 2), torch.nn.Parameter(torch.zeros(2))

        def compute(self, inputs: Any, role: str) -> Any:
            return self.layer(inputs["observations"]), {"log_std": self.spread}

    class Worth(DeterministicMixin, Model):
        def __init__(self, observation_space: Any, action_space: Any, device: Any) -> None:
            Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
            DeterministicMixin.__init__(self)
            self.zero = torch.nn.Parameter(torch.zeros(1))

        def compute(self, inputs: Any, role: str) -> Any:
            return inputs["observations"][:, :1] + 0.0 * self.zero, {}

    steps, env = 11, SkrlEnv(ToyClock(), seed=10)
    spaces = env.observation_space, env.action_space, env.device
    memory = RandomMemory(memory_size=steps, num_envs=4, device=env.device)
    cfg = PPO_CFG(
        rollouts=steps,
        learning_epochs=1,
        mini_batches=1,
        discount_factor=GAMMA,
        gae_lambda=1.0,
        time_limit_bootstrap=True,
    )
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    agent = (recording_ends(PPO) if real_ends else PPO)(
        models={"policy": Policy(*spaces), "value": Worth(*spaces)},
        memory=memory,
        observation_space=env.observation_space,
        action_space=env.action_space,
        device=env.device,
        cfg=cfg,
    )
    setup = SequentialTrainerCfg(
        timesteps=steps, headless=True, disable_progressbar=True, close_environment_at_exit=False
    )
    SequentialTrainer(cfg=setup, env=env, agents=agent).train()
    returns = memory.get_tensor_by_name("returns")[..., 0]
    same = [returns[:, row].tolist() == pytest.approx(written_returns(10 + row, steps, GAMMA)) for row in range(4)]
    assert same == ([True] * 4 if real_ends else [False, True, False, True])  # rows 0 and 2 run out of time


@pytest.mark.skipif("rsl_rl" in MISSING, reason="rsl-rl-lib is not installed")
def test_rsl_rl_computes_the_returns_that_are_written_down() -> None:
    from rsl_rl.runners import OnPolicyRunner

    from manikin.env.adapters.rsl_rl_env import RslRlEnv

    steps = 11
    normal = {"class_name": "GaussianDistribution", "init_std": 1.0}
    config = {
        "num_steps_per_env": steps,
        "save_interval": 100,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {"class_name": "MLPModel", "hidden_dims": [8], "distribution_cfg": normal},
        "critic": {"class_name": "MLPModel", "hidden_dims": [8]},
        "algorithm": {"class_name": "PPO", "gamma": GAMMA, "lam": 1.0},
    }
    runner = OnPolicyRunner(RslRlEnv(ToyClock(), seed=10), config)
    runner.alg.critic.forward = lambda seen, **_: seen["policy"][:, :1].clone()
    found = []
    runner.alg.update = lambda: found.append(runner.alg.storage.returns[..., 0].clone()) or {"value": 0.0}
    runner.learn(1)
    for row in range(4):
        expected = written_returns(10 + row, steps, GAMMA, before=True)
        assert found[0][:, row].tolist() == pytest.approx(expected, rel=1e-5)
