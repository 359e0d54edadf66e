"""TD-MPC2 (Hansen et al., 2024, arXiv:2310.16828): a latent model of the world is learned, actions are planned in it.

One iteration: every row makes ``num_steps`` steps with planned actions, which go into a replay. Then ``updates``
batches of short windows improve encoder, dynamics, reward and critics together, and the policy that guides the planner.
The model does not predict that an episode ends: a fail only cuts the value behind it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from manikin.env.interface import BatchEnv
from manikin.learn.common.data.replay import Replay
from manikin.learn.common.numerics.average import follow
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.random import Streams
from manikin.learn.common.rollout import Episodes, flat_size
from manikin.learn.common.settings import TrainerSettings
from manikin.learn.common.spent import Spent
from manikin.learn.common.threads import CORES, torch_threads
from manikin.policy.networks.world_model import WorldModel

__all__ = ["TDMPC2", "Config"]


@dataclass(frozen=True, kw_only=True)
class Config(TrainerSettings):
    """Settings of TD-MPC2. The published model is four times as wide and plans with 512 samples.

    Attributes:
        num_steps: control steps per row and iteration. updates: batches per iteration.
        batch: windows in a batch. buffer: steps in the replay, of all rows.
        start_steps: of all rows, before these actions are random and nothing is learned.
        gamma: discount per control step; 0 computes it from the horizon: ``1 - 5 / horizon``, from .95 to .995.
        plan: steps of a window and of a plan. rho: weight of a later step in a window, relative to the one before.
        learning_rate: of Adam. encoder_share: of it for the encoder.
        consistency_weight, reward_weight, value_weight: of the three losses.
        follow: by which share of the way the target critics move at each update.
        entropy_weight: of the policy's entropy. max_grad_norm: gradients are scaled down to this norm.
        latent, group, hidden, critics, iterations, samples, proposals, elites, sharpness, std_range: see
            :class:`~manikin.policy.networks.world_model.WorldModel`.
        bootstrap_at_success: an episode that succeeded has its last observation's value afterwards.
        stagger: at the beginning rows restart after different times, so that not all end together.
    """

    ranges: ClassVar = {"gamma": "from 0 (of the horizon) to below 1"}

    num_steps: int = 1
    updates: int = 8
    batch: int = 256
    buffer: int = 300_000
    start_steps: int = 5_000
    gamma: float = 0.0
    plan: int = 3
    rho: float = 0.5
    learning_rate: float = 3e-4
    encoder_share: float = 0.3
    consistency_weight: float = 20.0
    reward_weight: float = 0.1
    value_weight: float = 0.1
    follow: float = 0.01
    entropy_weight: float = 1e-4
    max_grad_norm: float = 20.0
    latent: int = 128
    group: int = 8
    hidden: tuple[int, ...] = (256, 256)
    critics: int = 5
    iterations: int = 6
    samples: int = 128
    proposals: int = 8
    elites: int = 16
    sharpness: float = 0.5
    std_range: tuple[float, ...] = (0.05, 2.0)
    bootstrap_at_success: bool = True
    stagger: bool = True


_PLANNING = ("plan", "iterations", "samples", "proposals", "elites", "sharpness", "std_range")
_NETWORK = ("latent", "group", "hidden", "critics", *_PLANNING)


class TDMPC2:
    """Trains a :class:`~manikin.policy.networks.world_model.WorldModel`.

    Args:
        env: made with ``autoreset="same_step"`` and a flat observation.
        config: settings.
        seed: of weights, actions and what is drawn from the replay. Rows start at episode seeds that follow from it.

    Attributes:
        steps: control steps of all rows so far.
        updates: batches so far.
        progress: share of the planned run that is done, 0 to 1; who trains sets it. Nothing reads it.
        spent: where the time went.

    Raises:
        ConfigError: settings that do not go together, or too little memory for the replay.
    """

    counts = "control steps"
    network = "world_model"

    def __init__(self, env: BatchEnv, config: Config, seed: int) -> None:
        self.env, self.config, self.device = env, config, env.device
        self.steps, self.iterations, self.updates, self.progress = 0, 0, 0, 0.0
        self.about: dict[str, Any] = {}
        self.spent = Spent()
        self.streams = Streams(seed, env.device)
        self.gamma = config.gamma or min(0.995, max(0.95, 1.0 - 5.0 / env.horizon))
        columns, actions = flat_size(env), int(env.single_action_space.shape[0])
        values = {name: getattr(config, name) for name in _NETWORK}
        self.network_options: dict[str, Any] = {
            "observations": columns,
            "actions": actions,
            "gamma": self.gamma,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
        }
        self.replay = Replay.of(env, config.buffer, gamma=self.gamma)
        with self.streams.globally("weights"):
            self.actor = WorldModel(**self.network_options).to(self.device)
        self.targets = copy.deepcopy(self.actor.critics).requires_grad_(False)
        rate, model = config.learning_rate, self.actor
        self.parameters = [p for part in (model.dynamics, model.reward, model.critics) for p in part.parameters()]
        groups: list[dict[str, Any]] = [
            {"params": [*model.encoder.parameters()], "lr": rate * config.encoder_share},
            {"params": self.parameters},
        ]
        self.optimizers = {
            "model": torch.optim.Adam(groups, lr=rate, fused=True),
            "policy": torch.optim.Adam(model.actor.parameters(), lr=rate, eps=1e-5, fused=True),
        }
        self.parameters = [*model.encoder.parameters(), *self.parameters]
        self.scale = torch.ones((), device=self.device)  # of the values, for the policy's loss
        self.moments = Moments(columns, self.device)
        self.episodes = Episodes(
            env, seed, self.spent, stagger=config.stagger, bootstrap_at_success=config.bootstrap_at_success
        )
        self.observation = self.episodes.begin()

    # ---- one iteration -----------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Steps, then updates. Returns losses and how the episodes that ended went.

        Raises:
            DivergedError: a loss is not finite.
        """
        with torch_threads(1), self.spent.on("policy"):
            self._collect()
        losses: dict[str, float] = {}
        if self.steps >= self.config.start_steps:
            with torch_threads(CORES), self.spent.on("update"):
                losses = self._update()
        self.iterations += 1
        return {**self.episodes.summary(), **losses}

    @torch.no_grad()
    def _collect(self) -> None:
        """``num_steps`` steps of every row into the replay."""
        config, n = self.config, self.env.num_envs
        shape, noise = (n, self.actor.actions), self.streams["actions"]
        for _ in range(config.num_steps):
            seen = self.observation
            self.moments.add(seen)
            self.moments.write(self.actor.scaling)
            if self.steps < config.start_steps:
                actions = 2.0 * torch.rand(shape, generator=noise, device=self.device) - 1.0
            else:
                mean, std = self.actor.planned(self._encoded(seen))
                actions = (mean + std * torch.randn(shape, generator=noise, device=self.device)).clamp(-1.0, 1.0)
            moved = self.episodes.step(actions, self.steps // n + 1)
            self.replay.add(seen=seen, actions=actions, **moved.for_replay)
            self.observation = moved.observation
            self.steps += n

    def _update(self) -> dict[str, float]:
        found = Losses()
        for _ in range(self.config.updates):
            part = self.replay.windows(self.config.batch, self.config.plan, self.streams["replay"])
            losses, latents = self.improve_model(part)
            losses |= self._improve_policy(latents, part["weights"])
            follow(self.targets, self.actor.critics, self.config.follow)
            self.updates += 1
            found.add(losses)
        where = f"iteration {self.iterations + 1}, after {self.steps:,} steps"
        return {**found.means(where, self.actor.parameters()), "updates": float(self.updates)}

    def improve_model(self, part: dict[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
        """Losses, and the latent states (plan + 1, B, L) that the model went through."""
        config, model, bins = self.config, self.actor, self.actor.bins
        b = len(part["seen"][0])
        with torch.no_grad():
            following = self._encoded(part["following"])
            value = self.value_of(following.flatten(0, 1)).view_as(part["rewards"])
            goals = part["rewards"] + self.gamma * part["kept"] * value
        latents = [self._encoded(part["seen"][0])]
        for actions in part["actions"]:
            latents.append(model.after(latents[-1], actions))
        went = torch.stack(latents)
        steps = config.rho ** torch.arange(config.plan, device=self.device)
        weights = part["weights"] * steps[:, None]
        before, actions = went[:-1].flatten(0, 1), part["actions"].flatten(0, 1)
        losses = {
            "consistency": (went[1:] - following).square().mean(-1),
            "reward": bins.loss(model.reward_of(before, actions), part["rewards"].flatten()).view(-1, b),
            "value": bins.loss(model.values(before, actions), goals.flatten()).mean(0).view(-1, b),
        }
        losses = {name: (weights * loss).mean() for name, loss in losses.items()}
        total = (
            config.consistency_weight * losses["consistency"]
            + config.reward_weight * losses["reward"]
            + config.value_weight * losses["value"]
        )
        self._step("model", total, self.parameters)
        return {f"{name}_loss": loss for name, loss in losses.items()}, went.detach()

    def _improve_policy(self, latents: Tensor, weights: Tensor) -> dict[str, Tensor]:
        config, model = self.config, self.actor
        flat = latents.flatten(0, 1)
        noise = torch.randn((len(flat), model.actions), generator=self.streams["policy"], device=self.device)
        actions, chances = model.drawn_action(flat, noise)
        model.critics.requires_grad_(False)
        values = model.bins.values(model.values(flat, actions)).mean(0).view(latents.shape[:2])
        model.critics.requires_grad_(True)
        with torch.no_grad():
            low, high = values[0].quantile(0.05), values[0].quantile(0.95)
            self.scale.lerp_((high - low).clamp_min(1.0), 0.01)
        steps = config.rho ** torch.arange(len(latents), device=self.device)
        alive = torch.cat([weights, weights[-1:]]) * steps[:, None]
        loss = (alive * (config.entropy_weight * chances.view_as(values) - values / self.scale)).mean()
        self._step("policy", loss, [*model.actor.parameters()])
        return {"policy_loss": loss, "value": values.detach().mean(), "entropy": -chances.detach().mean()}

    # ---- parts -------------------------------------------------------------------------------------------------------

    def _encoded(self, seen: Tensor) -> Tensor:
        return self.actor.encoder(self.actor.scaling(seen))

    def value_of(self, latent: Tensor) -> Tensor:
        """(...) the lesser of two target critics, drawn anew, for the policy's actions."""
        shape = (*latent.shape[:-1], self.actor.actions)
        stream = self.streams["targets"]
        actions, _ = self.actor.drawn_action(latent, torch.randn(shape, generator=stream, device=self.device))
        chosen = torch.randperm(self.targets.count, generator=stream, device=self.device)[:2].tolist()
        return self.actor.bins.values(self.targets(torch.cat([latent, actions], -1), chosen)).amin(0)

    def _step(self, name: str, loss: Tensor, parameters: list[nn.Parameter]) -> None:
        self.optimizers[name].zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        self.optimizers[name].step()

    def state_dict(self) -> dict[str, Any]:
        """All that later iterations depend on."""
        return {
            "actor": self.actor.state_dict(),
            "targets": self.targets.state_dict(),
            "optimizers": {name: one.state_dict() for name, one in self.optimizers.items()},
            "scale": self.scale,
            "moments": self.moments.state_dict(),
            "replay": self.replay.state_dict(),
            "streams": self.streams.state_dict(),
            "episodes": self.episodes.state_dict(),
            "counts": {"steps": self.steps, "iterations": self.iterations, "updates": self.updates},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        for name in ("actor", "targets", "moments", "replay", "streams"):
            getattr(self, name).load_state_dict(state[name])
        self.scale.copy_(state["scale"])
        for name, one in self.optimizers.items():
            one.load_state_dict(state["optimizers"][name])
        self.observation = self.episodes.load_state_dict(state["episodes"])
        for name, value in state["counts"].items():
            setattr(self, name, value)
