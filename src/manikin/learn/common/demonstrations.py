"""Demonstrations of a task by state, all in memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manikin.data.dataset import Dataset
from manikin.data.recording.read import EpisodeFile
from manikin.env.interface import BatchEnv
from manikin.env.observe import Observation
from manikin.errors import ConfigError
from manikin.policy.pushes import Pushes

__all__ = ["Demonstrations", "check_recording", "load_demonstrations", "window_of"]

_AT_ONCE = 65_536  # frames
_KEEP = "success"  # what is imitated
_SAME = ("task", "robot", "control", "control_hz")


@dataclass(frozen=True)
class Demonstrations:
    """Frames of episodes that succeeded.

    Attributes:
        observations: (F, window, D) float32, oldest first, as a ``Stack`` of the environment has them.
        actions: (F, chunk, A) float32, from the present on.
        padded: (F, chunk) bool, behind the end of the episode, where the last action is repeated.
        pushed: (F, chunk) bool, from a push on that the demonstrator did not want (see
            :class:`~manikin.policy.pushes.Pushes`). No frame is itself pushed: those are left out.
        episodes: how many. digest: SHA-256 of the frames.
    """

    observations: Tensor
    actions: Tensor
    padded: Tensor
    pushed: Tensor
    episodes: int
    digest: str

    def batch(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Observations, actions, padding and pushes of these frames (B,)."""
        return self.observations[frames], self.actions[frames], self.padded[frames], self.pushed[frames]


def window_of(env: BatchEnv) -> tuple[int, int]:
    """How many observations a policy sees together, and columns of one.

    Raises:
        ConfigError: the observation is not flat; says which option makes it so.
    """
    shape = env.single_observation_space.shape
    if not Observation.of(env.observe).flat or shape is None:
        raise ConfigError(
            "this algorithm learns from flat observations: observe='state' or 'policy', and for a window of the last "
            'two observe = ["state", {kind = "Stack", frames = 2}]'
        )
    return (1, int(shape[0])) if len(shape) == 1 else (int(shape[0]), int(shape[1]))


def load_demonstrations(path: str | Path, env: BatchEnv, *, chunk: int = 1, most: int = 0) -> Demonstrations:
    """The successful episodes of a recording, those of the lowest numbers first.

    Args:
        path: made with ``manikin collect ... --observations``, with the observation of ``env`` but for its stack.
        env: what the policy is for.
        chunk: actions per frame.
        most: take at most so many episodes; 0 for all.

    Raises:
        ConfigError: demonstrations of another task, robot, controller, control rate, observation or action size, or an
            observation that is not flat.
        DataError: no recording, damaged, without observations, or no episode in it succeeded.
    """
    window, columns = window_of(env)
    with EpisodeFile(path) as file:
        header = file.needed_header()
        check_recording(path, header.fingerprint, env)
        keys = {
            number: (int(block.table["seed"][k]), int(block.table["index"][k]))
            for block, ks in file.blocks()
            for number, k in ((int(block.table["number"][k]), k) for k in ks)
        }
    with Dataset(
        path, batch_size=_AT_ONCE, chunk=chunk, stack=window, keep=_KEEP, observations=["value"], shuffle=False
    ) as data:
        parts = list(data)
    seen = torch.cat([part["observations"]["value"] for part in parts])
    names = ("actions", "padded", "episode", "step")
    actions, padded, episode, step = (torch.cat([part[name] for part in parts]) for name in names)
    for what, found, needed in (
        ("numbers per observation", seen.shape[2], columns),
        ("numbers per action", actions.shape[2], env.single_action_space.shape[0]),
    ):
        if found != needed:
            raise ConfigError(f"{path} has {found} {what}, the environment {needed}. {_advice(env)}")
    numbers = episode.unique()
    if most and len(numbers) > most:
        numbers = numbers[:most]
        kept = torch.isin(episode, numbers)
        seen, actions, padded, episode, step = (one[kept] for one in (seen, actions, padded, episode, step))
    pushed = torch.zeros_like(padded)
    if (pushes := Pushes.of(header.recorded)) is not None:
        seed, index = torch.tensor([keys[number] for number in numbers.tolist()]).unbind(1)
        when, _ = pushes.begins(seed, index, int(step.max()) + chunk)
        pushed = when[torch.searchsorted(numbers, episode).unsqueeze(1), step.unsqueeze(1) + torch.arange(chunk)]
        pushed = pushed.cumsum(1) > 0
        kept = ~pushed[:, 0]
        seen, actions, padded, pushed = (one[kept] for one in (seen, actions, padded, pushed))
    digest = hashlib.sha256()
    for tensor in (seen, actions, padded, *([pushed] if pushes else [])):
        digest.update(tensor.numpy().tobytes())
    device = env.device
    return Demonstrations(
        observations=seen.to(device),
        actions=actions.to(device),
        padded=padded.to(device),
        pushed=pushed.to(device),
        episodes=len(numbers),
        digest=digest.hexdigest(),
    )


def _word(env: BatchEnv) -> str:
    return Observation.of(env.observe).word


def _advice(env: BatchEnv) -> str:
    return f"Collect demonstrations of {env.fingerprint()['task']} as it is trained here"


def check_recording(path: str | Path, recorded: Mapping[str, Any], env: BatchEnv, *, also: Sequence[str] = ()) -> None:
    """Refuse demonstrations of another environment.

    Args:
        path: of the recording, for the error.
        recorded: its fingerprint.
        env: where the policy learns; its observation may be a stack of the recorded one.
        also: what has to be the same besides task, robot, controller, control rate and observation.

    Raises:
        ConfigError: names what differs.
    """
    here = env.fingerprint()
    names = (*_SAME, *also)
    other = [f"{name} {recorded.get(name)!r}, here {here[name]!r}" for name in names if _other(recorded, here, name)]
    shown = Observation.of(recorded.get("observe") or "state")
    if (shown.word, shown.stacks) != (_word(env), ()):
        other.append(f"observe {shown.plain!r}, here {_word(env)!r}")
    if other:
        said = "; ".join(other)
        raise ConfigError(f"the demonstrations in {path} are of another environment: {said}. {_advice(env)}")


def _other(recorded: Any, here: Any, name: str) -> bool:
    ours, theirs = here[name], recorded.get(name)
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return not math.isclose(ours, theirs)
    return bool(ours != theirs)
