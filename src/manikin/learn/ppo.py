"""Proximal policy optimization (Schulman et al., 2017, arXiv:1707.06347), from flat observations or pictures.

One iteration: every row makes ``num_steps`` steps, then ``epochs`` passes over these steps improve actor and critic.
Episodes that ran out of time are bootstrapped: their last observation has its value. By ``bootstrap_at_success`` those
that succeeded are too. Without it a policy that is paid per step does better to hover at the goal than to reach it.

With pictures, actor and critic share the encoder, and both of their losses train it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.begin import begin_as
from manikin.learn.common.numerics.advantage import advantages
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.numerics.noise import lasting
from manikin.learn.common.parallel.ahead import Ahead
from manikin.learn.common.parallel.ranks import Ranks
from manikin.learn.common.pictures import PictureConfig, augmented, inputs_of
from manikin.learn.common.random import Streams
from manikin.learn.common.recorded import Recorded
from manikin.learn.common.rollout import Episodes
from manikin.learn.common.spent import Spent
from manikin.learn.common.starts.successes import SuccessStarts
from manikin.learn.common.threads import CORES, torch_threads
from manikin.learn.common.tree import mapped, numbers_of
from manikin.policy.networks.mlp import GaussianActor, mlp

__all__ = ["PPO", "Config"]


@dataclass(frozen=True, kw_only=True)
class Config(PictureConfig):
    """Settings of PPO, and those of :class:`~manikin.learn.common.pictures.PictureConfig`.

    Attributes:
        num_steps: control steps per row and iteration.
        epochs: passes over them. minibatches: parts of each pass.
        gamma: discount per control step. gae_lambda: weight of longer returns.
        clip: how far the probability of an action may move in one iteration.
        value_weight, entropy_weight: of the critic's loss and of the entropy, beside the actor's loss.
        bounds_weight: of how far mean actions lie beyond [-1, 1], squared and added over the action. No noise brings
            an action back whose mean has wandered far outside.
        learning_rate: of Adam, at the beginning; ``anneal`` lowers it linearly to 0 at the planned end.
        critic_rate: learning rate of the critic, where it is to be another one; 0: the same.
        max_grad_norm: gradients are scaled down to this norm.
        target_kl: an iteration ends once a minibatch has moved the policy further than this; 0 never.
        hidden, critic_hidden: sizes of the layers between. activation: tanh, relu, elu or silu.
        log_std: logarithm of the actions' spread at the beginning. min_log_std: it does not fall below.
        state_std: the spread depends on the observation. Then entropy_weight makes it wide where it costs nothing, and
            the policy tries there what it does not do; with one spread for all it is as small as anywhere needed.
        noise_memory: in training the noise of an action is this share of the last one's and the rest new (an AR(1)
            process), from 0 to below 1, as in :class:`~manikin.learn.sac.Config`. The loss takes each action for an
            independent draw (Hollenstein et al., 2024, arXiv:2312.11091).
        normalize: scale observations by their running mean and spread.
        bootstrap_at_success: an episode that succeeded has its last observation's value afterwards.
        end_at_fail: an episode that failed ends there without value, also where the environment's go on
            (``terminate=False``).
        success_starts: this share of the episodes begins where earlier episodes of the run first succeeded, once there
            are any; see :class:`~manikin.learn.common.starts.successes.SuccessStarts`.
        stagger: at the beginning rows restart after different times, so that not all end together.
        lag: 1: the next steps are made while the policy learns, so that they are one update behind it; see
            :mod:`~manikin.learn.common.parallel.ahead`.
        cuda_graphs: on a GPU, policy and update are recorded as CUDA graphs; not together with ``anneal``, ``lag``.
        begin_from: the policy begins as this one, see :func:`~manikin.learn.common.begin.begin_as`: a run's folder, its
            policy.safetensors, or the name of a policy that comes with manikin. The critic begins anew.
        critic_first: in so many iterations at the beginning only the critic learns.
    """

    num_steps: int = 25
    epochs: int = 4
    minibatches: int = 16
    gamma: float = 0.8
    gae_lambda: float = 0.9
    clip: float = 0.2
    value_weight: float = 0.5
    entropy_weight: float = 0.0
    bounds_weight: float = 0.0
    learning_rate: float = 3e-4
    critic_rate: float = 0.0
    anneal: bool = False
    max_grad_norm: float = 0.5
    target_kl: float = 0.1
    hidden: tuple[int, ...] = (256, 256)
    critic_hidden: tuple[int, ...] = (256, 256)
    activation: str = "tanh"
    log_std: float = -0.5
    min_log_std: float = -3.0
    state_std: bool = False
    noise_memory: float = 0.0
    normalize: bool = True
    bootstrap_at_success: bool = True
    end_at_fail: bool = False
    success_starts: float = 0.0
    stagger: bool = True
    lag: int = 0
    cuda_graphs: bool = False
    begin_from: str = ""
    critic_first: int = 0


class PPO:
    """Trains a :class:`~manikin.policy.networks.mlp.GaussianActor`.

    Args:
        env: made with ``autoreset="same_step"`` and a flat observation, or one with pictures.
        config: settings.
        seed: of weights, actions and the order of minibatches. Rows start at episode seeds that follow from it.
        ranks: processes that train the network together, each with an environment.

    Attributes:
        steps: control steps of all rows so far, of all processes.
        progress: share of the planned run that is done, 0 to 1; who trains sets it. Only ``anneal`` reads it.
        about: what the policy was made from beside the recipe, for its file: the policy that it began from.
        spent: where the time went.

    Raises:
        ConfigError: settings that do not go together, or as :func:`~manikin.learn.common.begin.begin_as`.
    """

    counts = "control steps"
    network = "gaussian"

    def __init__(self, env: BatchEnv, config: Config, seed: int, ranks: Ranks | None = None) -> None:
        self.ranks = ranks or Ranks()
        if config.cuda_graphs and (config.anneal or config.lag):
            raise ConfigError("ppo's cuda_graphs record one learning rate and one policy: leave anneal and lag out")
        count = config.num_steps * env.num_envs
        if (size := -(-count // config.minibatches)) == 1 or count % size == 1:
            raise ConfigError(
                f"of {count} steps (num_steps * num_envs) in {config.minibatches} minibatches one holds a single step, "
                "whose gain has no spread: set minibatches to a number that divides them, or num_envs to more"
            )
        self.env, self.config, self.device = env, config, env.device
        self.steps, self.iterations, self.progress = 0, 0, 0.0
        self.about: dict[str, Any] = {}
        self.spent = Spent()
        self.streams = Streams(seed, env.device)
        window, inputs = inputs_of(env, config)
        if window > 1:
            raise ConfigError("ppo sees one observation at a time: leave the Stack out")
        actions = env.single_action_space.shape[0]
        self.network_options: dict[str, Any] = {
            "observations": inputs,
            "actions": actions,
            "log_std": config.log_std,
            "hidden": list(config.hidden),
            "activation": config.activation,
        }
        if config.state_std:
            self.network_options["state_std"] = True
        weights = self.streams.on_cpu("weights")
        with self.streams.globally("encoder"):
            self.actor = GaussianActor(**self.network_options, generator=weights).to(self.device)
        self.critic = mlp(self.actor.columns, config.critic_hidden, 1, activation=config.activation, generator=weights)
        self.critic.to(self.device)
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self._graphs = config.cuda_graphs and self.device.type == "cuda"
        self._rates = [config.learning_rate, config.critic_rate] if config.critic_rate else [config.learning_rate]
        parts = [self.actor.parameters(), self.critic.parameters()] if config.critic_rate else [self.parameters]
        groups = [{"params": part, "lr": rate} for part, rate in zip(parts, self._rates, strict=True)]
        self.optimizer = torch.optim.Adam(groups, eps=1e-5, fused=True, capturable=self._graphs)
        self._act = Recorded(partial(_distribution, self.actor), record=self._graphs)
        self._gradients = Recorded(self._backward, record=self._graphs, generators=[self.streams["pictures"]])
        self._move = Recorded(self._step, record=self._graphs)
        self.moments = Moments(len(self.actor.scaling.mean), self.device)
        if config.begin_from:
            self.about["begun_from"] = begin_as(config.begin_from, self.actor, self.network_options, self.moments, env)
        self.episodes = Episodes(
            env,
            seed,
            self.spent,
            stagger=config.stagger,
            bootstrap_at_success=config.bootstrap_at_success,
            end_at_fail=config.end_at_fail,
            starts=SuccessStarts(env, share=config.success_starts, seed=seed) if config.success_starts else None,
            ranks=self.ranks,
        )
        self.observation = self.episodes.begin()
        self.noise = torch.zeros(env.num_envs, actions, device=self.device)
        self.ahead = Ahead(self._collect, [self.actor, self.critic], config.lag)

    # ---- one iteration -----------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Steps, then passes over them. Returns losses and how the episodes that ended went.

        Raises:
            DivergedError: a loss is not finite.
        """
        config = self.config
        if config.anneal:
            for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * max(0.0, 1.0 - self.progress)
        with torch_threads(1), self.spent.on(self.ahead.doing):
            batch, summary = self.collect()
            self.ahead.go_on()
        with torch_threads(CORES), self.spent.on("update"):
            losses = self._update(batch)
        self.iterations += 1
        return {**summary, **losses, "behind": float(self.ahead.behind)}

    @torch.no_grad()
    def collect(self) -> tuple[dict[str, Any], dict[str, float]]:
        """``num_steps`` steps of every row, flattened to (T * N, ...), and how the episodes went that ended in them."""
        config = self.config
        if config.normalize and self.iterations == 0:
            self._normalize(self.actor.scaling.take(self.observation))
        made = self.ahead.steps()
        self.steps += config.num_steps * self.env.num_envs * self.ranks.size
        if config.normalize:
            self._normalize(made["taken"])
        return made["batch"], made["summary"]

    @torch.no_grad()
    def _collect(self, actor: GaussianActor, critic: nn.Module) -> dict[str, Any]:
        config, n, begun = self.config, self.env.num_envs, self.steps // (self.env.num_envs * self.ranks.size)
        take, values_of = actor.scaling.take, partial(_values, actor, critic)
        act = self._act if actor is self.actor else partial(_distribution, actor)
        shape = (config.num_steps, n)
        seen = mapped(lambda one: one.new_empty((config.num_steps + 1, *one.shape)), take(self.observation))
        actions = torch.empty((*shape, self.network_options["actions"]), device=self.device)
        chances, rewards = torch.empty(shape, device=self.device), torch.empty(shape, device=self.device)
        dones = torch.zeros(shape, dtype=torch.bool, device=self.device)
        worth: list[tuple[int, Tensor, Any]] = []  # step, rows and observations where an episode is bootstrapped
        noise = self.streams["actions" if self.ranks.rank == 0 else f"actions/{self.ranks.rank}"]
        for t in range(config.num_steps):
            mapped(lambda all_steps, now: all_steps[t].copy_(now), seen, take(self.observation))  # noqa: B023
            mean, log_std = act(self.observation).values()
            drawn = torch.randn(mean.shape, generator=noise, device=self.device)
            self.noise = drawn = lasting(self.noise, drawn, config.noise_memory)
            actions[t] = mean + log_std.exp() * drawn
            chances[t] = _log_chance(drawn, log_std)
            moved = self.episodes.step(actions[t].clamp(-1.0, 1.0), begun + t + 1)
            rewards[t] = moved.rewards
            dones[t] = moved.ended | moved.cut  # a row that was cut is as if its episode had ended without value
            rows = torch.nonzero(moved.kept & moved.ended).squeeze(1)
            if len(rows):
                worth.append((t, rows, mapped(lambda one: one[rows], take(moved.following))))  # noqa: B023
            self.observation = moved.observation
        mapped(lambda all_steps, now: all_steps[-1].copy_(now), seen, take(self.observation))
        values = values_of(seen)
        following = values[1:].masked_fill(dones, 0.0)
        for t, rows, final_seen in worth:
            following[t, rows] = values_of(final_seen)
        gains = advantages(
            rewards=rewards,
            values=values[:-1],
            next_values=following,
            dones=dones,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
        )
        seen = mapped(lambda all_steps: all_steps[:-1], seen)
        batch = {"seen": actor.scaling(seen), "actions": actions, "chances": chances, "gains": gains}
        batch |= {"returns": gains + values[:-1]}
        flat = mapped(lambda value: value.flatten(0, 1), batch)
        return {"batch": flat, "taken": seen, "summary": self.episodes.summary()}

    def _update(self, batch: dict[str, Any]) -> dict[str, float]:
        config, count = self.config, len(batch["gains"])
        size = -(-count // config.minibatches)
        found, stopped = Losses(), False
        gradients, move = (self._backward, self._step) if self._actor_waits else (self._gradients, self._move)
        for _ in range(config.epochs):
            order = torch.randperm(count, generator=self.streams["order"], device=self.device)
            mixed = mapped(lambda value: value[order], batch)  # noqa: B023 (one gather for all minibatches of a pass)
            for at in range(0, count, size):
                losses = gradients(mapped(lambda value: value[at : at + size], mixed))  # noqa: B023
                self.ranks.average([*(one.grad for one in self.parameters if one.grad is not None), losses["kl"]])
                if config.target_kl and found.batches and float(losses["kl"]) > 1.5 * config.target_kl:
                    stopped = True
                    break
                move(losses)
                found.add(losses)
            if stopped:
                break
        where = f"iteration {self.iterations + 1}, after {self.steps:,} steps"
        means = found.means(where, self.parameters)
        return {**means, "updates": float(found.batches)}

    def _backward(self, part: dict[str, Any]) -> dict[str, Tensor]:
        """The losses of a minibatch; their gradients are with the parameters."""
        losses = self._losses(part)
        self.optimizer.zero_grad(set_to_none=not self._graphs)  # graphs need them to stay where they are
        losses["loss"].backward()
        return mapped(Tensor.detach, losses)

    @torch.no_grad()
    def _step(self, losses: dict[str, Tensor]) -> dict[str, Tensor]:
        """Along the gradients."""
        nn.utils.clip_grad_norm_(self.parameters, self.config.max_grad_norm)
        self.optimizer.step()
        self.actor.log_std.clamp_(min=self.config.min_log_std)
        return losses

    @property
    def _actor_waits(self) -> bool:
        """Only the critic learns. The actor's parameters then have no gradient at all, and not one of 0: the optimizer
        would count its steps, and take those that follow for larger ones."""
        return self.iterations < self.config.critic_first

    def _losses(self, part: dict[str, Any]) -> dict[str, Tensor]:
        config = self.config
        features = self.actor.encoder(augmented(part["seen"], config, self.streams["pictures"]))
        mean, log_std = self.actor.of_features(features)
        chances = _log_chance((part["actions"] - mean) / log_std.exp(), log_std)
        change = chances - part["chances"]
        ratio = change.exp()
        gains = part["gains"]
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        actor = -torch.minimum(gains * ratio, gains * ratio.clamp(1 - config.clip, 1 + config.clip)).mean()
        known = features.detach() if self._actor_waits else features
        critic = 0.5 * (self.critic(known).squeeze(1) - part["returns"]).square().mean()
        loss = config.value_weight * critic
        if not self._actor_waits:
            loss = actor + loss - config.entropy_weight * log_std.sum(-1).mean()
            if config.bounds_weight:
                loss = loss + config.bounds_weight * functional.relu(mean.abs() - 1.0).square().sum(1).mean()
        kl, spread = ((ratio - 1) - change).mean(), log_std.exp().mean()
        return {"loss": loss, "actor_loss": actor, "critic_loss": critic, "kl": kl, "spread": spread}

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _normalize(self, taken: Any) -> None:
        self.moments.add(self.ranks.joined(numbers_of(taken)))
        self.moments.write(self.actor.scaling)

    def state_dict(self) -> dict[str, Any]:
        """All that later iterations depend on."""
        return {
            "ahead": self.ahead.state_dict(),  # first: afterwards nothing moves
            "actor": self.actor.state_dict(),
            "critic": self.critic.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "moments": self.moments.state_dict(),
            "streams": self.streams.state_dict(),
            "episodes": self.episodes.state_dict(),
            "about": self.about,
            "noise": self.noise,
            "counts": {"steps": self.steps, "iterations": self.iterations},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.moments.load_state_dict(state["moments"])
        self.streams.load_state_dict(state["streams"])
        self.observation = self.episodes.load_state_dict(state["episodes"])
        self.steps, self.iterations = state["counts"]["steps"], state["counts"]["iterations"]
        self.noise = state.get("noise", self.noise).to(self.device)  # which older checkpoints lack
        self.ahead.load_state_dict(state.get("ahead", {"steps": None}))  # which older checkpoints lack
        self.about = state.get("about", {})

    def close(self) -> None:
        """Wait for what still moves."""
        self.ahead.close()


def _distribution(actor: GaussianActor, observation: Any) -> dict[str, Tensor]:
    """Mean and logarithm of the spread of the actions."""
    return dict(zip(("mean", "log_std"), actor.distribution(actor.scaling(observation)), strict=True))


def _values(actor: GaussianActor, critic: nn.Module, seen: Any) -> Tensor:
    """(...) of observations (..., D)."""
    found: Tensor = critic(actor.encoder(actor.scaling(seen))).squeeze(-1)
    return found


def _log_chance(drawn: Tensor, log_std: Tensor) -> Tensor:
    """Log density (B,) of a Gaussian at ``drawn`` (B, A) spreads from its mean, up to a constant."""
    return (-0.5 * drawn.square() - log_std).sum(-1)
