"""What learning from demonstrations has in common: the data, the gradient steps, the average of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError, UnknownNameError
from manikin.learn.common.data.demonstrations import load_demonstrations
from manikin.learn.common.numerics.average import Average
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.numerics.schedule import cosine, warm_up
from manikin.learn.common.pictures import PictureConfig, augmented, inputs_of
from manikin.learn.common.random import Streams
from manikin.learn.common.settings import TrainerSettings
from manikin.learn.common.spent import Spent
from manikin.learn.common.threads import CORES, torch_threads
from manikin.learn.common.tree import numbers_of
from manikin.policy.chunk import Execution
from manikin.policy.networks import NETWORKS

__all__ = ["ChunkConfig", "GradientConfig", "Imitation", "ImitationConfig"]


@dataclass(frozen=True, kw_only=True)
class GradientConfig(TrainerSettings):
    """Settings of gradient steps on demonstrations.

    Attributes:
        demos: a recording with observations; "" records ``demonstrations_of`` first.
        demonstrations_of: who is recorded: expert, planner, or another policy by a word of
            :func:`~manikin.policy.choices.policy_maker`, such as a trained one.
        demonstrations: how many successful episodes: taken of the recording at most, or collected. 0: all there are.
        pushes: chance per step that who is recorded first is pushed off its way; 0 never. See
            :class:`~manikin.policy.pushes.Pushes`.
        updates: gradient steps in an iteration.
        batch_size: frames in each, drawn with replacement.
        learning_rate, weight_decay: of AdamW.
        warm_up: gradient steps over which the learning rate rises. anneal: it falls as a cosine to 0 at the end.
        max_grad_norm: gradients are scaled down to this norm; 0 never.
        average: power of the moving average of the weights that acts, see
            :func:`~manikin.learn.common.numerics.average.decay_at`; 0 for the weights themselves.
    """

    ranges: ClassVar = {"max_grad_norm": "0 or more"}

    demos: str = ""
    demonstrations_of: str = "expert"
    demonstrations: int = 100
    pushes: float = 0.0
    updates: int = 500
    batch_size: int = 256
    learning_rate: float = 3e-4
    weight_decay: float = 0.0
    warm_up: int = 0
    anneal: bool = True
    max_grad_norm: float = 0.0
    average: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ImitationConfig(GradientConfig, PictureConfig):
    """Settings of algorithms that imitate actions, those of :class:`GradientConfig`, and those of
    :class:`~manikin.learn.common.pictures.PictureConfig`.

    Attributes:
        hide: columns of the observation whose names contain one of these words are hidden from the network.
        labels: of the successful demonstrations, those with one of these labels are learned from; () for all. See
            :mod:`manikin.spec.labels`.
        after_success: of each demonstration, frames up to so many after its first success are learned from; -1 for all.
            Where success does not end an episode, most frames of a demonstration show an arm that waits.
        least_action: frames in which every part of the action is smaller than this, of the 1 that a step can do, are
            not learned from; of absolute positions, as a hand's opening, the change counts. 0: all are. A network that
            sees one observation and was shown waits stays there.
    """

    hide: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    after_success: int = -1
    least_action: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ChunkConfig(ImitationConfig):
    """Settings of algorithms that answer with chunks, and those of :class:`ImitationConfig`.

    Attributes:
        predict: actions of a chunk, from the present on.
        execute: how many of them are executed before the policy is asked again.
        ensemble: average all chunks that hold an action for the present step, with weights that fall by ``ensemble_m``;
            see :class:`~manikin.policy.chunk.Execution`.
        ensemble_m: only with ``ensemble``.
    """

    predict: int = 16
    execute: int = 1
    ensemble: bool = False
    ensemble_m: float = 0.01

    @property
    def execution(self) -> Execution:
        """How the policy's chunks are executed.

        Raises:
            ConfigError: ``execute`` is not between 1 and ``predict``, or ``ensemble_m`` is not finite.
        """
        if not 1 <= self.execute <= self.predict:
            raise ConfigError(f"execute must be between 1 and predict = {self.predict}, got {self.execute}")
        return Execution(self.execute, self.ensemble_m if self.ensemble else None)


class Imitation:
    """Gradient steps on demonstrations. An algorithm adds its network and its loss.

    The environment is not stepped: it gives shapes, and says what demonstrations must be of.

    Args:
        env: with a flat observation or one with pictures, or a ``Stack`` of it: the window that the policy sees.
        config: settings.
        seed: of weights, batches and noise.
        demos: the recording.

    Attributes:
        steps: gradient steps so far.
        progress: share of the planned run that is done, 0 to 1; who trains sets it. Only ``anneal`` reads it.
        about: what the policy was made from, for its file.
        taken: says how many of the recorded episodes are learned from, where that is not all, or fewer than wanted.
        spent: where the time went.
    """

    counts = "gradient steps"
    network = ""
    takes_pictures = True

    def __init__(self, env: BatchEnv, config: Any, seed: int, demos: str | Path) -> None:
        self.config, self.device = config, env.device
        self.steps, self.iterations, self.progress = 0, 0, 0.0
        self.spent = Spent()
        self.streams = Streams(seed, env.device)
        self.about: dict[str, Any] = {}
        self.network_options: dict[str, Any] = {}
        self.data: Any = self.loaded(env, demos)
        episodes, there, wanted = self.data.episodes, self.data.there, config.demonstrations
        self.taken = ""
        if episodes < there:
            self.taken = f"{episodes} of {there} successful episodes are learned from: --set demonstrations=0 takes all"
        elif episodes < wanted:
            self.taken = f"{episodes} successful episodes are learned from, of the {wanted} that the recipe takes"
        self.about |= {
            "demonstrations": {
                "episodes": self.data.episodes,
                "frames": len(self.data),
                "sha256": self.data.digest,
            }
        }
        self.module: Any
        with self.streams.globally("weights"):
            self.module = NETWORKS[self.network](**self.network_options).to(self.device)
            self.helper: Any = self.made_helper()
        self.fitted(env)
        self.average = Average(self.module, config.average) if config.average else None
        self.parameters = [*self.module.parameters(), *(self.helper.parameters() if self.helper else ())]
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )

    # ---- the data ----------------------------------------------------------------------------------------------------

    def loaded(self, env: BatchEnv, demos: str | Path) -> Any:
        """The demonstrations, with ``episodes``, ``digest`` and a length in frames. Fills ``network_options``."""
        config = self.config
        window, inputs = inputs_of(env, config)
        if not isinstance(inputs, int) and not self.takes_pictures:
            raise ConfigError("this algorithm learns from flat observations: observe='state' or 'policy'")
        chunk = 1
        if isinstance(config, ChunkConfig):
            chunk, self.about = config.predict, {"execution": config.execution.plain}
        data = load_demonstrations(
            demos,
            env,
            config,
            chunk=chunk,
            most=config.demonstrations,
            labels=config.labels,
            after_success=config.after_success,
            least_action=config.least_action,
        )
        self.network_options = {
            "observations": inputs,
            "actions": env.single_action_space.shape[0],
            "window": window,
            **self.options(),
        }
        return data

    def fitted(self, env: BatchEnv) -> None:
        """Give the network the scales of the data."""
        moments = Moments(len(self.module.scaling.mean), self.device)
        moments.add(numbers_of(self.data.present))
        moments.write(self.module.scaling)
        self.module.scaling.hide(self._hidden(env))
        self.module.span.fit(self.data.actions[:, 0])

    def drawn(self) -> dict[str, Tensor]:
        """The losses of a batch of frames."""
        config = self.config
        frames = torch.randint(
            len(self.data), (config.batch_size,), generator=self.streams["frames"], device=self.device
        )
        seen, actions, padded, pushed = self.data.batch(frames)
        seen = augmented(seen, config, self.streams["pictures"])
        return self.losses(seen, self.module.span(actions), padded, pushed)

    def _hidden(self, env: BatchEnv) -> list[int]:
        names, words = env.observation_names, self.config.hide
        for word in words:
            if not any(word in name for name in names):
                raise UnknownNameError("column of the observation to hide", word, names)
        return [i for i, name in enumerate(names) if any(word in name for word in words)]

    # ---- what an algorithm says --------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """Of the network, beside its sizes."""
        raise NotImplementedError

    def losses(self, seen: Any, actions: Tensor, padded: Tensor, pushed: Tensor) -> dict[str, Tensor]:
        """``loss``, and what else is worth a column.

        Args:
            seen: observations (B, window, D), or with pictures what ``scaling.take`` of the network gives of them.
            actions: scaled, (B, chunk, A).
            padded: (B, chunk) bool, behind the end of the episode.
            pushed: (B, chunk) bool, behind a push.
        """
        raise NotImplementedError

    def made_helper(self) -> nn.Module | None:
        """What is trained beside the network and does not act."""
        return None

    # ---- one iteration -----------------------------------------------------------------------------------------------

    @property
    def actor(self) -> nn.Module:
        """What acts: the averaged weights where there are."""
        return self.module if self.average is None else self.average.module

    def iterate(self) -> dict[str, float]:
        """``updates`` gradient steps. Returns the means of the losses.

        Raises:
            DivergedError: a loss is not finite.
        """
        config = self.config
        self.module.train()
        found = Losses()
        fall = cosine(self.progress) if config.anneal else 1.0
        with self.spent.on("update"), torch_threads(CORES), self.streams.globally("dropout"):
            for _ in range(config.updates):
                for group in self.optimizer.param_groups:
                    group["lr"] = config.learning_rate * fall * warm_up(self.steps, config.warm_up)
                losses = self.drawn()
                self.optimizer.zero_grad(set_to_none=True)
                losses["loss"].backward()
                if config.max_grad_norm:
                    nn.utils.clip_grad_norm_(self.parameters, config.max_grad_norm)
                self.optimizer.step()
                if self.average is not None:
                    self.average.update(self.module)
                self.steps += 1
                found.add(losses)
        self.iterations += 1
        where = f"iteration {self.iterations}, gradient steps {self.steps - config.updates + 1:,} to {self.steps:,}"
        return found.means(where, self.parameters)

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that later iterations depend on."""
        return {
            "module": self.module.state_dict(),
            "helper": {} if self.helper is None else self.helper.state_dict(),
            "average": {} if self.average is None else self.average.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "streams": self.streams.state_dict(),
            "digest": self.data.digest,
            "counts": {"steps": self.steps, "iterations": self.iterations},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken.

        Raises:
            ConfigError: with other demonstrations.
        """
        if state["digest"] != self.data.digest:
            raise ConfigError("the run was begun with other demonstrations: put the recording back as it was")
        self.module.load_state_dict(state["module"])
        if self.helper is not None:
            self.helper.load_state_dict(state["helper"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.streams.load_state_dict(state["streams"])
        self.steps, self.iterations = state["counts"]["steps"], state["counts"]["iterations"]
        if self.average is not None:
            self.average.module.load_state_dict(state["average"])
            self.average.step = self.steps
