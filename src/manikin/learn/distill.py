"""Distillation of a policy by state into one that sees pictures: DAgger (Ross et al., 2011, arXiv:1011.0686).

The student acts, the teacher says what it would have done in the same states, and the student learns that from all
frames so far. So it learns what to do where its own mistakes lead. In the first ``lead`` steps the teacher acts in a
share of the rows that falls from all to none. The student's network is told pictures and what a real robot knows; the
privileged values of the environment go to the teacher alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from manikin.env.interface import BatchEnv
from manikin.errors import ConfigError
from manikin.learn.common.data.frames import Frames
from manikin.learn.common.numerics.average import Average
from manikin.learn.common.numerics.losses import Losses
from manikin.learn.common.numerics.moments import Moments
from manikin.learn.common.numerics.schedule import cosine
from manikin.learn.common.pictures import PictureConfig, augmented_with_places, inputs_of
from manikin.learn.common.places import Locator, place_loss
from manikin.learn.common.random import Streams
from manikin.learn.common.rollout import Episodes
from manikin.learn.common.spent import Spent
from manikin.learn.common.teacher import Teacher
from manikin.learn.common.threads import CORES, torch_threads
from manikin.learn.common.tree import numbers_of
from manikin.policy.networks.cloned import Cloned

__all__ = ["Config", "Distill"]


@dataclass(frozen=True, kw_only=True)
class Config(PictureConfig):
    """Settings of distillation, and those of :class:`~manikin.learn.common.pictures.PictureConfig`.

    Attributes:
        teacher: a run's folder, its policy.safetensors, or the name of a policy that comes with manikin.
        num_steps: control steps per row and iteration. updates: gradient steps after them.
        batch_size: frames in each, drawn with replacement.
        buffer: frames that are kept, the newest.
        lead: control steps of all rows over which the teacher's share of the acting falls from 1 to 0.
        noise: standard deviation of what is added to the actions that are executed, not to those that are learned.
        learning_rate: of AdamW. anneal: it falls as a cosine to 0 at the planned end. weight_decay: of AdamW.
        find: names of parts of the scene, or of robots for their tool. The first channels of a keypoints encoder are
            taught where these are in the pictures, which the simulator knows. The policy that is saved needs only the
            pictures.
        find_weight: of that loss, see :func:`~manikin.learn.common.places.place_loss`.
        hidden: sizes of the layers behind the encoder. activation: tanh, relu, elu or silu.
        average: power of the moving average of the weights that is validated and saved, see
            :func:`~manikin.learn.common.numerics.average.decay_at`; 0 for the weights themselves.
    """

    teacher: str = ""
    num_steps: int = 5
    updates: int = 8
    batch_size: int = 256
    buffer: int = 50_000
    lead: int = 5_000
    noise: float = 0.0
    learning_rate: float = 1e-3
    anneal: bool = True
    weight_decay: float = 0.0
    find: tuple[str, ...] = ()
    find_weight: float = 0.1
    hidden: tuple[int, ...] = (256, 256)
    activation: str = "relu"
    average: float = 0.75


class Distill:
    """Trains a :class:`~manikin.policy.networks.cloned.Cloned`.

    Args:
        env: made with ``autoreset="same_step"``; observes pictures, and with names all that the teacher observes.
        config: settings.
        seed: of weights, noise and what is drawn from the frames. Rows start at episode seeds that follow from it.

    Attributes:
        steps: control steps of all rows so far.
        progress: share of the planned run that is done, 0 to 1; who trains sets it. Only ``anneal`` reads it.
        about: what the policy was made from, for its file.
        spent: where the time went.

    Raises:
        ConfigError: settings that cannot work, an observation without pictures, or as
            :class:`~manikin.learn.common.teacher.Teacher`.
        UnknownNameError: ``find`` names what is not in the scene.
    """

    counts = "control steps"
    network = "bc"
    also_observes = "state"
    """What the environment observes in training, beside what the policy is told."""

    def __init__(self, env: BatchEnv, config: Config, seed: int) -> None:
        window, inputs = inputs_of(env, config)
        if isinstance(inputs, int):
            raise ConfigError(f"distill teaches a policy that sees: observe='rgb', not {env.observe!r}")
        self.env, self.config, self.device = env, config, env.device
        self.steps, self.iterations, self.progress = 0, 0, 0.0
        self.places = Locator(env, config.find, inputs["pictures"]) if config.find else None
        if config.find and (config.encoder != "keypoints" or len(config.find) > config.channels[-1]):
            raise ConfigError(
                f"distill finds {len(config.find)} things by as many channels of the encoder 'keypoints', got "
                f"{config.encoder!r} with {config.channels[-1]}"
            )
        self.teacher = Teacher(config.teacher, env)
        told = {name: self.teacher.about.get(name) for name in ("algorithm", "seed", "recipe_hash", "steps")}
        self.about: dict[str, Any] = {"teacher": {**told, "sha256": self.teacher.digest}}
        self.spent = Spent()
        self.streams = Streams(seed, env.device)
        self.episodes = Episodes(env, seed, self.spent, stagger=False, bootstrap_at_success=True)
        self.observation = self.episodes.begin()
        self.network_options: dict[str, Any] = {
            "observations": inputs,
            "actions": env.single_action_space.shape[0],
            "window": window,
            "hidden": list(config.hidden),
            "activation": config.activation,
        }
        with self.streams.globally("weights"):
            self.module = Cloned(**self.network_options).to(self.device)
        self.average = Average(self.module, config.average) if config.average else None
        self.optimizer = torch.optim.AdamW(
            self.module.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self.frames = Frames(config.buffer, self.device)
        self.moments = Moments(sum(inputs["numbers"].values()), self.device)

    @property
    def actor(self) -> torch.nn.Module:
        """What is validated and saved: the averaged weights where there are."""
        return self.module if self.average is None else self.average.module

    # ---- one iteration -----------------------------------------------------------------------------------------------

    def iterate(self) -> dict[str, float]:
        """Steps, then gradient steps. Returns losses and how the episodes that ended went.

        Raises:
            DivergedError: a loss is not finite.
        """
        with torch_threads(1), self.spent.on("policy"):
            self._collect()
        with torch_threads(CORES), self.spent.on("update"):
            losses = self._update()
        self.iterations += 1
        return {**self.episodes.summary(), **losses, "teacher_share": self._share()}

    def _share(self) -> float:
        """Of the rows, in how many the teacher acts."""
        return max(0.0, 1.0 - self.steps / self.config.lead) if self.config.lead else 0.0

    @torch.no_grad()
    def _collect(self) -> None:
        """``num_steps`` steps of every row; each frame is kept with the teacher's action."""
        n = self.env.num_envs
        self.module.eval()
        for _ in range(self.config.num_steps):
            taken = self.module.scaling.take(self.observation)
            wanted = self.teacher(self.observation)
            led = round(self._share() * n)
            actions = wanted.clone()
            if led < n:
                actions[led:] = self.module(taken)[led:]
            if self.config.noise:
                drawn = torch.randn(actions.shape, generator=self.streams["noise"], device=self.device)
                actions = actions + self.config.noise * drawn
            places = {} if self.places is None else {"places": self.places(self.observation)}
            self.frames.add({"seen": taken, "actions": wanted, **places})
            self.moments.add(numbers_of(taken))
            self.observation = self.episodes.step(actions.clamp(-1.0, 1.0), self.steps // n + 1).observation
            self.steps += n
        self.moments.write(self.module.scaling)

    def _update(self) -> dict[str, float]:
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * (cosine(self.progress) if config.anneal else 1.0)
        self.module.train()
        found = Losses()
        for _ in range(config.updates):
            part = self.frames.sample(config.batch_size, self.streams["frames"])
            seen, places = augmented_with_places(part["seen"], part.get("places", {}), config, self.streams["pictures"])
            loss = self._loss(seen, places, part["actions"])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            if self.average is not None:
                self.average.update(self.module)
            found.add({"loss": loss})
        where = f"iteration {self.iterations + 1}, after {self.steps:,} steps"
        return found.means(where, self.module.parameters())

    def _loss(self, seen: Any, places: dict[str, Tensor], actions: Tensor) -> Tensor:
        """Mean squared distance from the teacher's actions, and how unlikely the true places are to the encoder."""
        if not places:
            return (self.module.answer(seen) - actions).square().mean()
        features, chances = self.module.located(seen)
        loss = (self.module.layers(features) - actions).square().mean()
        for path, chance in chances.items():
            present = chance if chance.ndim == 4 else chance[:, -1]
            loss = loss + self.config.find_weight * place_loss(present, places[path])
        return loss

    # ---- checkpoints -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that later iterations depend on."""
        return {
            "module": self.module.state_dict(),
            "average": {} if self.average is None else self.average.module.state_dict(),
            "averaged": 0 if self.average is None else self.average.step,
            "optimizer": self.optimizer.state_dict(),
            "moments": self.moments.state_dict(),
            "frames": self.frames.state_dict(),
            "streams": self.streams.state_dict(),
            "episodes": self.episodes.state_dict(),
            "teacher": self.teacher.digest,
            "counts": {"steps": self.steps, "iterations": self.iterations},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken.

        Raises:
            ConfigError: the teacher is another one than then.
        """
        if state["teacher"] != self.teacher.digest:
            raise ConfigError(f"the run was begun with another teacher than {self.config.teacher} is now")
        self.module.load_state_dict(state["module"])
        if self.average is not None:
            self.average.module.load_state_dict(state["average"])
            self.average.step = state["averaged"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.moments.load_state_dict(state["moments"])
        self.frames.load_state_dict(state["frames"])
        self.streams.load_state_dict(state["streams"])
        self.observation = self.episodes.load_state_dict(state["episodes"])
        self.steps, self.iterations = state["counts"]["steps"], state["counts"]["iterations"]
