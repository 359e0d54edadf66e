"""PushCube trained by other libraries through manikin's adapters, and tested on held-out episodes.

    ENV/bin/python benchmarks/adapters.py sb3         # or skrl, or rsl_rl: in a Python that has the library
    python benchmarks/adapters.py chance              # random actions on the same episodes; needs no library

All three train PPO with the same settings: 256 rows, 25 steps, four epochs of 16 minibatches. Episodes go on after
success until time runs out, so that time-outs decide what is learned. The test is manikin's: 512 episodes that no run
trains on, success at least once, with Wilson's 95 % interval, by the mean action. ``untrained`` is the same network
before the first update. ``cpu_seconds`` is the processor time of training alone.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from common import ROOT, arguments, command, parsed

import manikin
from manikin.eval.evaluation import evaluate
from manikin.eval.protocol import Protocol
from manikin.learn.common.seeds import TEST, training_seeds
from manikin.machine import machine
from manikin.policy.network import NetworkPolicy
from manikin.policy.random_policy import RandomPolicy

OUT = ROOT / "benchmarks" / "results" / "adapters.json"
TASK = "PushCube-v2"
PACKAGES = {"sb3": "stable-baselines3", "skrl": "skrl", "rsl_rl": "rsl-rl-lib", "chance": ""}
STEPS, EPOCHS, MINIBATCHES = 25, 4, 16
GAMMA, LAMBDA, RATE, CLIP, VALUE, NORM, LOG_STD = 0.8, 0.9, 3e-4, 0.2, 0.5, 0.5, -0.5
HIDDEN = [256, 256]

Trained = tuple[Callable[[torch.Tensor], torch.Tensor], Callable[[], None]]
"""The mean action of observations (B, D), and the function that trains it."""


class Acting(torch.nn.Module):
    """A library's policy as a module."""

    def __init__(self, act: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.act = act

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return self.act(seen).clamp(-1.0, 1.0)


def by_sb3(env: Any, seed: int, iterations: int) -> Trained:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecNormalize

    from manikin.env.adapters.sb3_env import Sb3Env

    scaled = VecNormalize(Sb3Env(env), norm_reward=False, clip_obs=10.0, gamma=GAMMA)
    count = env.num_envs * STEPS
    ppo = PPO(
        "MlpPolicy",
        scaled,
        learning_rate=RATE,
        n_steps=STEPS,
        batch_size=-(-count // MINIBATCHES),
        n_epochs=EPOCHS,
        gamma=GAMMA,
        gae_lambda=LAMBDA,
        clip_range=CLIP,
        vf_coef=VALUE,
        max_grad_norm=NORM,
        target_kl=0.1,
        policy_kwargs={"net_arch": HIDDEN, "activation_fn": torch.nn.Tanh, "log_std_init": LOG_STD},
        seed=seed,
        device="cpu",
    )
    scaled.seed(training_seeds(seed, 1)[0])

    def act(seen: torch.Tensor) -> torch.Tensor:
        normal = torch.from_numpy(scaled.normalize_obs(seen.numpy())).float()
        return ppo.policy._predict(normal, deterministic=True)

    return act, lambda: ppo.learn(iterations * count)


def by_skrl(env: Any, seed: int, iterations: int) -> Trained:
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.resources.preprocessors.torch import RunningStandardScaler
    from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
    from skrl.utils import set_seed

    from manikin.env.adapters.skrl_env import SkrlEnv, recording_ends

    set_seed(seed)
    rows = SkrlEnv(env, seed=training_seeds(seed, 1)[0])
    size, actions = rows.observation_space.shape[0], rows.action_space.shape[0]

    def layers(outputs: int) -> torch.nn.Sequential:
        a, b = HIDDEN
        parts = torch.nn.Linear(size, a), torch.nn.Tanh(), torch.nn.Linear(a, b), torch.nn.Tanh()
        return torch.nn.Sequential(*parts, torch.nn.Linear(b, outputs))

    class Policy(GaussianMixin, Model):
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.layers, self.log_std = layers(actions), torch.nn.Parameter(torch.full((actions,), LOG_STD))

        def compute(self, inputs: Any, role: str) -> Any:
            return self.layers(inputs["observations"]), {"log_std": self.log_std}

    class Value(DeterministicMixin, Model):
        def __init__(self, **spaces: Any) -> None:
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.layers = layers(1)

        def compute(self, inputs: Any, role: str) -> Any:
            return self.layers(inputs["observations"]), {}

    spaces = {"observation_space": rows.observation_space, "action_space": rows.action_space, "device": rows.device}
    models = {"policy": Policy(**spaces), "value": Value(**spaces)}
    cfg = PPO_CFG(
        rollouts=STEPS,
        learning_epochs=EPOCHS,
        mini_batches=MINIBATCHES,
        discount_factor=GAMMA,
        gae_lambda=LAMBDA,
        learning_rate=RATE,
        ratio_clip=CLIP,
        value_clip=0.0,
        value_loss_scale=VALUE,
        grad_norm_clip=NORM,
        kl_threshold=0.15,
        time_limit_bootstrap=True,
        observation_preprocessor=RunningStandardScaler,
        observation_preprocessor_kwargs={"size": rows.observation_space, "device": rows.device},
    )
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=STEPS, num_envs=rows.num_envs, device=rows.device)
    agent = recording_ends(PPO)(models=models, memory=memory, cfg=cfg, **spaces)
    setup = SequentialTrainerCfg(
        timesteps=iterations * STEPS, headless=True, disable_progressbar=True, close_environment_at_exit=False
    )
    trainer = SequentialTrainer(cfg=setup, env=rows, agents=agent)

    def act(seen: torch.Tensor) -> torch.Tensor:
        return models["policy"].compute({"observations": agent._observation_preprocessor(seen)}, "policy")[0]

    return act, trainer.train


def by_rsl_rl(env: Any, seed: int, iterations: int) -> Trained:
    from rsl_rl.runners import OnPolicyRunner
    from tensordict import TensorDict

    from manikin.env.adapters.rsl_rl_env import RslRlEnv

    torch.manual_seed(seed)
    network = {"class_name": "MLPModel", "hidden_dims": HIDDEN, "activation": "tanh", "obs_normalization": True}
    spread = {"class_name": "GaussianDistribution", "init_std": float(torch.tensor(LOG_STD).exp())}
    config = {
        "num_steps_per_env": STEPS,
        "save_interval": 1_000_000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": spread},
        "critic": dict(network),
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": EPOCHS,
            "num_mini_batches": MINIBATCHES,
            "gamma": GAMMA,
            "lam": LAMBDA,
            "clip_param": CLIP,
            "value_loss_coef": VALUE,
            "use_clipped_value_loss": False,
            "entropy_coef": 0.0,
            "learning_rate": RATE,
            "schedule": "fixed",
            "max_grad_norm": NORM,
        },
    }
    runner = OnPolicyRunner(RslRlEnv(env, seed=training_seeds(seed, 1)[0]), config, device="cpu")
    actor = runner.alg.get_policy()

    def act(seen: torch.Tensor) -> torch.Tensor:
        return actor(TensorDict({"policy": seen}, batch_size=[len(seen)]))

    return act, lambda: runner.learn(iterations, init_at_random_ep_len=True)


BY = {"sb3": by_sb3, "skrl": by_skrl, "rsl_rl": by_rsl_rl}


def tested(policy: Callable[[Any], Any], episodes: int, horizon: int | None) -> dict[str, Any]:
    seeds = tuple(range(TEST, TEST + episodes))
    protocol = Protocol(name="adapters", tasks=(TASK,), seeds=seeds, horizon=horizon)
    evaluation = evaluate(protocol, policy, num_envs=min(128, episodes))
    evaluation.raise_if_unhealthy()
    found = evaluation.tasks[0].rate("once")
    return {"rate": round(found.estimate, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


def trained(library: str, seed: int, steps: int, rows: int, episodes: int, horizon: int | None) -> dict[str, Any]:
    env = manikin.make(TASK, rows, terminate=False, horizon=horizon)
    iterations = max(1, steps // (rows * STEPS))
    act, train = BY[library](env, seed, iterations)
    module = Acting(act)
    before = tested(lambda _: NetworkPolicy(module), episodes, horizon)
    began, cpu = time.perf_counter(), time.process_time()
    train()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    env.close()
    return {
        "steps": iterations * rows * STEPS,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu, 1),
        "tested": tested(lambda _: NetworkPolicy(module), episodes, horizon),
        "untrained": before,
        "versions": {name: importlib.metadata.version(name) for name in (PACKAGES[library], "torch", "mujoco")},
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("library", choices=list(PACKAGES))
    parser.add_argument("--steps", type=int, default=960_000, help="control steps of all rows")
    parser.add_argument("--seed", type=int, default=9351)
    parser.add_argument("--loaded", action="store_true", help="other work runs here: keep processor time, not seconds")
    args = parsed(parser, OUT)
    small = {"episodes": 8, "horizon": 5} if args.quick else {"episodes": 512, "horizon": None}
    steps, rows = (400, 8) if args.quick else (args.steps, 256)
    torch.set_num_threads(1)
    if args.library == "chance":
        found = tested(RandomPolicy, **small)
    else:
        found = trained(args.library, args.seed, steps, rows, **small)
        found["seconds"] = None if args.loaded else found["seconds"]
    done = json.loads(args.out.read_text()) if args.out.exists() else {}  # as others have written it meanwhile
    done |= {"task": TASK, "machine": {**machine(), "cores": os.cpu_count()}, f"command_{args.library}": command()}
    if args.library == "chance":
        done["chance"] = found
    else:
        done.setdefault("runs", {}).setdefault(args.library, {})[str(args.seed)] = found
    args.out.write_text(json.dumps(dict(sorted(done.items())), indent=1) + "\n")
    print(json.dumps(done.get("runs", done), indent=1))


if __name__ == "__main__":
    main()
