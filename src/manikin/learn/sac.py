"""Soft actor-critic (Haarnoja et al., 2018, arXiv:1812.05905) in many environments, from flat observations or pictures.

One iteration: every row makes ``num_steps`` steps, which go into a replay, then ``updates`` batches drawn from it
improve critics, actor and temperature. Critics have layer normalization, and there may be more than two of them (Chen
et al., 2021, arXiv:2101.05982). With ``demos`` a share of each batch comes from demonstrations (RLPD: Ball et al.,
2023, arXiv:2302.02948), which suffices to learn from the sparse reward. With ``reverse`` episodes begin along the
demonstrations, further and further from their ends (RFCL: Tao et al., 2024, arXiv:2405.03379).

With pictures, actor and critics share the encoder. The critics' loss trains it, and the actor's does not (Yarats et
al., 2021, arXiv:1910.01741).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.data.recorded_steps import recorded_steps
from manikin.learn.common.data.replay import Replay, drawn_together
from manikin.learn.common.numerics.average import follow
from manikin.learn.common.numerics.critics import Ensemble
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.numerics.noise import lasting
from manikin.learn.common.parallel.ahead import Ahead
from manikin.learn.common.pictures import PictureConfig, augmented, inputs_of
from manikin.learn.common.random import Streams
from manikin.learn.common.recorded import Recorded
from manikin.learn.common.rollout import Episodes
from manikin.learn.common.spent import Spent
from manikin.learn.common.starts.reverse import ReverseStarts
from manikin.learn.common.threads import CORES, torch_threads
from manikin.learn.common.tree import mapped, numbers_of
from manikin.policy.networks.mlp import TanhGaussianActor

__all__ = ["SAC", "Config"]


@dataclass(frozen=True, kw_only=True)
class Config(PictureConfig):
    """Settings of SAC, and those of :class:`~manikin.learn.common.pictures.PictureConfig`.

    Attributes:
        num_steps: control steps per row and iteration.
        updates: batches per iteration. Updates per step of a row are ``updates / (num_steps * num_envs)``.
        batch: steps in a batch.
        buffer: steps in the replay, of all rows.
        start_steps: of all rows, before these actions are uniform noise, which lasts as later noise does, and nothing
            is learned.
        gamma: discount per control step. n_step: rewards in a return.
        learning_rate: of Adam, for actor and critics. temperature_rate: for the temperature.
        follow: by which share of the way the target critics move to the critics at each update.
        critics: how many. min_of: a target is the least of so many of them, drawn anew for each batch.
        actor_every: updates of the critics for one of the actor and the temperature.
        temperature: weight of the entropy at the beginning.
        target_entropy: per action dimension; the temperature is adapted to it.
        entropy_in_target: the entropy of later actions is part of a value.
        value_range: least and largest value that there can be; none: no limits. Where success seldom comes, values that
            begin too high would feed on each other.
        noise_memory: in training the noise of an action is this share of the last one's and the rest new (an AR(1)
            process), from 0 to below 1: noise that lasts moves an arm further than noise that changes in every step
            (Eberhard et al., 2023). An action's spread stays the same.
        hidden, critic_hidden: sizes of the layers between. critic_norm: layer normalization in the critics.
        log_std_range: least and largest logarithm of the actions' spread before tanh.
        normalize: scale observations by their running mean and spread.
        bootstrap_at_success: an episode that succeeded has its last observation's value afterwards.
        stagger: at the beginning rows restart after different times, so that not all end together.
        lag: 1: the next steps are made while the policy learns, so that they are one iteration behind it; see
            :mod:`~manikin.learn.common.parallel.ahead`. Observations are scaled by the moments of before, too.
        cuda_graphs: on a GPU, policy and update are recorded as CUDA graphs; not together with ``lag``.
        demos: a recording of demonstrations; none where empty. demo_share: their share of each batch.
        reverse: control steps by which the start along a demonstration moves back once episodes succeed from it; 0 for
            the task's own starts. reverse_wins: so many in a row. reverse_patience: such an episode has so many times
            the steps that the demonstration had left.
    """

    num_steps: int = 4
    updates: int = 32
    batch: int = 512
    buffer: int = 500_000
    start_steps: int = 10_000
    gamma: float = 0.8
    n_step: int = 1
    learning_rate: float = 5e-4
    temperature_rate: float = 1e-3
    follow: float = 0.02
    critics: int = 2
    min_of: int = 2
    actor_every: int = 1
    temperature: float = 0.1
    target_entropy: float = 0.3
    entropy_in_target: bool = True
    value_range: tuple[float, ...] = ()
    noise_memory: float = 0.8
    hidden: tuple[int, ...] = (128, 128)
    critic_hidden: tuple[int, ...] = (128, 128)
    critic_norm: bool = True
    log_std_range: tuple[float, ...] = (-5.0, 2.0)
    normalize: bool = True
    bootstrap_at_success: bool = True
    stagger: bool = True
    lag: int = 0
    cuda_graphs: bool = False
    demos: str = ""
    demo_share: float = 0.5
    reverse: int = 0
    reverse_wins: int = 3
    reverse_patience: float = 3.0


_PARTS = ("ahead", "actor", "critics", "targets", "lagging", "moments", "replay", "streams")  # saved; the first stops


class SAC:
    """Trains a :class:`~manikin.policy.networks.mlp.TanhGaussianActor`.

    Args:
        env: made with ``autoreset="same_step"`` and a flat observation, or one with pictures.
        config: settings.
        seed: of weights, actions and what is drawn from the replay. Rows start at episode seeds that follow from it.

    Attributes:
        steps: control steps of all rows so far.
        updates: batches so far.
        progress: share of the planned run that is done, 0 to 1; who trains sets it. Nothing reads it.
        spent: where the time went.

    Raises:
        ConfigError: settings that do not go together, too little memory for the replay, or demonstrations of another
            environment.
    """

    counts = "control steps"
    network = "tanh_gaussian"

    def __init__(self, env: BatchEnv, config: Config, seed: int) -> None:
        _check(config)
        self.env, self.config, self.device = env, config, env.device
        self.steps, self.iterations, self.updates, self.progress = 0, 0, 0, 0.0
        self.about: dict[str, Any] = {}
        self.spent = Spent()
        self.streams = Streams(seed, env.device)
        window, inputs = inputs_of(env, config)
        if window > 1:
            raise ConfigError("sac sees one observation at a time: leave the Stack out")
        if config.demos and not isinstance(inputs, int):
            raise ConfigError("sac takes demonstrations of flat observations only: observe='state', or no demos")
        actions = int(env.single_action_space.shape[0])
        self.network_options: dict[str, Any] = {
            "observations": inputs,
            "actions": actions,
            "hidden": list(config.hidden),
            "log_std_range": list(config.log_std_range),
        }
        weights = self.streams.on_cpu("weights")
        with self.streams.globally("encoder"):
            self.actor = TanhGaussianActor(**self.network_options, generator=weights).to(self.device)
        self.encoder = self.actor.encoder
        self.critics = Ensemble(
            config.critics,
            self.actor.columns + actions,
            config.critic_hidden,
            norm=config.critic_norm,
            generator=weights,
        ).to(self.device)
        self.targets = copy.deepcopy(self.critics).requires_grad_(False)
        self.lagging = copy.deepcopy(self.encoder).requires_grad_(False)  # the targets see through it
        self.log_temperature = torch.full((), math.log(config.temperature), device=self.device, requires_grad=True)
        self.parameters = [*self.actor.parameters(), *self.critics.parameters(), self.log_temperature]
        graphs = config.cuda_graphs and self.device.type == "cuda"
        adam = partial(torch.optim.Adam, lr=config.learning_rate, fused=True, capturable=graphs)
        self.optimizers = {
            "actor": adam(self.actor.layers.parameters()),
            "critics": adam([*self.encoder.parameters(), *self.critics.parameters()]),
            "temperature": adam([self.log_temperature], lr=config.temperature_rate),
        }
        self._sample = Recorded(partial(_sampled, self.actor), record=graphs)
        drawn_from = [self.streams[name] for name in ("updates", "critics", "pictures")]
        self._improve = {  # by whether the actor moves, too
            turn: Recorded(partial(self._improved, actor=turn), record=graphs, generators=drawn_from)
            for turn in (False, True)
        }
        self.moments = Moments(len(self.actor.scaling.mean), self.device)
        bootstrap = config.bootstrap_at_success
        self.demos, self.demos_hash, starts = None, "", None
        if config.demos:
            self.demos, self.demos_hash = recorded_steps(
                config.demos, env, gamma=config.gamma, n_step=config.n_step, bootstrap_at_success=bootstrap
            )
            if config.normalize:
                self._normalize(self.demos.seen)
        if config.reverse:
            wins, patience = config.reverse_wins, config.reverse_patience
            starts = ReverseStarts(env, config.demos, back=config.reverse, wins=wins, patience=patience, seed=seed)
        self.episodes = Episodes(
            env, seed, self.spent, stagger=config.stagger, bootstrap_at_success=bootstrap, starts=starts
        )
        self.noise = torch.zeros((env.num_envs, actions), device=self.device)
        self.observation = self.episodes.begin()
        example = None
        if not isinstance(inputs, int):
            example = mapped(lambda one: one[:1], self.actor.scaling.take(self.observation))
        self.replay = Replay.of(env, config.buffer, gamma=config.gamma, n_step=config.n_step, observations=example)
        self.ahead = Ahead(self._collect, [self.actor], config.lag)

    # ---- one iteration -----------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Steps, then updates. Returns losses and how the episodes that ended went.

        Raises:
            DivergedError: a loss is not finite.
        """
        with torch_threads(1), self.spent.on(self.ahead.doing):
            made = self.ahead.steps()
            for step in made["steps"]:
                if self.config.normalize and self.config.lag:
                    self._normalize(step["seen"])
                self.replay.add(**step)
                self.steps += self.env.num_envs
            self.ahead.go_on()
        losses: dict[str, float] = {}
        if self.steps >= self.config.start_steps:
            with torch_threads(CORES), self.spent.on("update"):
                losses = self._update()
        self.iterations += 1
        return {**made["summary"], **losses, "behind": float(self.ahead.behind)}

    @torch.no_grad()
    def _collect(self, actor: TanhGaussianActor) -> dict[str, Any]:
        """``num_steps`` steps of every row, as the replay takes them, and how the episodes went that ended in them."""
        config, n = self.config, self.env.num_envs
        shape, steps = (n, self.network_options["actions"]), []
        sample = self._sample if actor is self.actor else partial(_sampled, actor)
        noise, take = self.streams["actions"], actor.scaling.take
        for t in range(config.num_steps):
            seen = take(self.observation)
            if config.normalize and not config.lag:
                self._normalize(seen)
            starting = self.steps + t * n < config.start_steps
            if starting and not config.noise_memory:
                actions = 2.0 * torch.rand(shape, generator=noise, device=self.device) - 1.0
            else:
                new = torch.randn(shape, generator=noise, device=self.device)
                self.noise = lasting(self.noise, new, config.noise_memory)
                if starting:
                    actions = torch.erf(self.noise / math.sqrt(2.0))  # which makes it uniform
                else:
                    actions = sample({"seen": seen, "drawn": self.noise})
            moved = self.episodes.step(actions, self.steps // n + t + 1)
            after = {**moved.for_replay, "following": take(moved.following)}
            steps.append({"seen": seen, "actions": actions, **after})
            self.observation = moved.observation
        return {"steps": steps, "summary": self.episodes.summary()}

    def _update(self) -> dict[str, float]:
        found = Losses()
        for part in self.batches():
            self.updates += 1
            found.add(self._improve[self.updates % self.config.actor_every == 0](part))
        where = f"iteration {self.iterations + 1}, after {self.steps:,} steps"
        return {**found.means(where, self.parameters), "updates": float(self.updates)}

    def _improved(self, part: dict[str, Any], *, actor: bool) -> dict[str, Tensor]:
        """One update with a batch; its losses."""
        seen, following = (augmented(part[one], self.config, self.streams["pictures"]) for one in ("seen", "following"))
        losses = {"critic_loss": self.improve_critics({**part, "seen": seen, "following": following})}
        if actor:
            losses |= self.improve_actor(seen)
        follow(self.targets, self.critics, self.config.follow)
        follow(self.lagging, self.encoder, self.config.follow)
        return {name: value.detach() for name, value in losses.items()}

    def batches(self) -> Iterator[dict[str, Any]]:
        """The batches of this iteration, drawn together; observations are scaled."""
        config, stream = self.config, self.streams["replay"]
        shown = 0 if self.demos is None else round(config.batch * config.demo_share)
        drawn = drawn_together([(self.replay, config.batch - shown), (self.demos, shown)], config.updates, stream)
        for name in ("seen", "following"):
            drawn[name] = self.actor.scaling(drawn[name])
        for i in range(config.updates):
            yield mapped(lambda value: value[i], drawn)  # noqa: B023

    def improve_critics(self, part: dict[str, Any]) -> Tensor:
        config = self.config
        with torch.no_grad():
            actions, chances = self.act_with_chances(self.encoder(part["following"]))
            values = self.targets(torch.cat([self.lagging(part["following"]), actions], 1))
            if config.min_of < config.critics:
                order = torch.randperm(config.critics, generator=self.streams["critics"], device=self.device)
                values = values[order[: config.min_of]]
            following = values.amin(0)
            if config.entropy_in_target:
                following = following - self.log_temperature.exp() * chances
            goal = part["returns"] + part["discounts"] * following
            if config.value_range:
                goal = goal.clamp(*config.value_range)
        found = self.critics(torch.cat([self.encoder(part["seen"]), part["actions"]], 1))
        loss = (found - goal).square().mean(1).sum()
        self._step("critics", loss)
        return loss / config.critics

    def improve_actor(self, seen: Any) -> dict[str, Tensor]:
        """An update of the actor and the temperature with scaled observations; its losses."""
        with torch.no_grad():
            features = self.encoder(seen)
        actions, chances = self.act_with_chances(features)
        self.critics.requires_grad_(False)
        values = self.critics(torch.cat([features, actions], 1))
        # two critics: the lesser, as in SAC; more of them: the mean, as in REDQ and RLPD
        value = values.amin(0) if self.config.critics <= 2 else values.mean(0)
        loss = (self.log_temperature.exp().detach() * chances - value).mean()
        self._step("actor", loss)
        self.critics.requires_grad_(True)
        entropy = -chances.detach().mean()
        goal = self.config.target_entropy * actions.shape[1]
        self._step("temperature", self.log_temperature * (entropy - goal))
        temperature = self.log_temperature.detach().exp()
        return {"actor_loss": loss, "value": value.mean(), "entropy": entropy, "temperature": temperature}

    # ---- parts -------------------------------------------------------------------------------------------------------

    def act_with_chances(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (B, A) drawn for what the encoder gives, and the logarithm of their density (B,)."""
        shape = (len(features), self.network_options["actions"])
        drawn = torch.randn(shape, generator=self.streams["updates"], device=self.device)
        return self.actor.sample_of_features(features, drawn)

    def _step(self, name: str, loss: Tensor) -> None:
        optimizer = self.optimizers[name]
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    def _normalize(self, taken: Any) -> None:
        self.moments.add(numbers_of(taken))
        self.moments.write(self.actor.scaling)

    def state_dict(self) -> dict[str, Any]:
        """All that later iterations depend on."""
        return {
            **{name: getattr(self, name).state_dict() for name in _PARTS},
            "log_temperature": self.log_temperature.detach(),
            "optimizers": {name: one.state_dict() for name, one in self.optimizers.items()},
            "noise": self.noise,
            "demos": self.demos_hash,
            "episodes": self.episodes.state_dict(),
            "counts": {"steps": self.steps, "iterations": self.iterations, "updates": self.updates},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken.

        Raises:
            ConfigError: the demonstrations are others than then.
        """
        if state["demos"] != self.demos_hash:
            raise ConfigError(f"{self.config.demos} holds other demonstrations than when this run was begun")
        state = {"ahead": {"steps": None}, "lagging": {}, **state}  # which older checkpoints lack
        for name in _PARTS:
            getattr(self, name).load_state_dict(state[name])
        with torch.no_grad():
            self.log_temperature.copy_(state["log_temperature"])
            self.noise.copy_(state["noise"])
        for name, one in self.optimizers.items():
            one.load_state_dict(state["optimizers"][name])
        self.observation = self.episodes.load_state_dict(state["episodes"])
        for name, value in state["counts"].items():
            setattr(self, name, value)

    def close(self) -> None:
        """Wait for what still moves."""
        self.ahead.close()


def _sampled(actor: TanhGaussianActor, given: dict[str, Any]) -> Tensor:
    """Actions (N, A) for observations, from numbers drawn for them."""
    return actor.sample(actor.scaling(given["seen"]), given["drawn"])[0]


def _check(config: Config) -> None:
    if config.min_of > config.critics:
        raise ConfigError(f"sac's min_of must be at most critics ({config.critics}), got {config.min_of}")
    if config.reverse and not config.demos:
        raise ConfigError("sac's reverse needs demonstrations: demos=FILE, or --demos FILE")
    if config.cuda_graphs and config.lag:
        raise ConfigError("sac's cuda_graphs record one policy: leave lag out")
